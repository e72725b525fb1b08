//! Clocks of benches.

use std::sync::OnceLock;
use std::time::Instant;

/// Seconds that the calling thread has been computing: those it waited for a core are not the network's fault.
pub fn cpu_time() -> f64 {
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    {
        unsafe extern "C" {
            fn clock_gettime(clock: i32, time: *mut [i64; 2]) -> i32;
        }
        const THREAD: i32 = 3;
        let mut time = [0; 2];
        // SAFETY: on 64-bit Linux a timespec is two 64-bit integers.
        if unsafe { clock_gettime(THREAD, &mut time) } == 0 {
            return time[0] as f64 + 1e-9 * time[1] as f64;
        }
    }
    wall_time()
}

/// Seconds.
pub fn wall_time() -> f64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64()
}
