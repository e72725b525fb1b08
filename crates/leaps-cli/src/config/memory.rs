//! Refuse runs that cannot fit the memory before they start.

use leaps::target::Target;
use leaps::{Error, Result};

use super::{Config, Problem};

/// Bytes of a measured walker beside its states: observables, weights, energies.
const PER_WALKER: f64 = 400.0;
/// Bytes of an interval: its time and the weights of two terms.
const PER_INTERVAL: f64 = 48.0;
/// Bytes of a kept state of a chain: its series of four numbers.
const PER_STATE: f64 = 16.0;

impl Config {
    /// Refuse more walkers or kept states than the free memory holds; where that is unknown, say nothing.
    pub fn check_memory(&self, problem: &Problem) -> Result<()> {
        let Some(free) = free_memory() else { return Ok(()) };
        let sites = problem.target.sites() as f64;
        let kept =
            self.chains.chains as f64 * (self.chains.steps / self.chains.every.max(1)) as f64;
        for (key, count, bytes) in [
            ("sample.walkers", self.walkers.walkers as f64, 2.0 * sites + PER_WALKER),
            ("sample.steps", kept, PER_STATE),
            ("sample.intervals", self.walkers.intervals as f64, PER_INTERVAL),
        ] {
            let need = count * bytes;
            if need > free {
                let (need, free) = (need / 1e9, free / 1e9);
                return Err(Error::invalid(
                    key,
                    count,
                    format!(
                        "such that memory suffices: about {need:.0} GB are needed, {free:.0} GB are free"
                    ),
                    "ask for fewer",
                ));
            }
        }
        Ok(())
    }
}

/// Bytes that a new process may use, where the system says so.
#[cfg(not(windows))]
fn free_memory() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(1024.0 * line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()?)
}

/// Bytes that a new process may use: what Windows would still commit.
#[cfg(windows)]
fn free_memory() -> Option<f64> {
    /// MEMORYSTATUSEX.
    #[repr(C)]
    #[derive(Default)]
    struct Status {
        length: u32,
        load: u32,
        physical: [u64; 2],
        /// Total and available, files for paging included.
        commit: [u64; 2],
        address_space: [u64; 2],
        extended: u64,
    }
    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn GlobalMemoryStatusEx(status: *mut Status) -> i32;
    }
    let mut status = Status { length: size_of::<Status>() as u32, ..Status::default() };
    // SAFETY: the structure is Windows' own and knows its length.
    (unsafe { GlobalMemoryStatusEx(&mut status) } != 0).then_some(status.commit[1] as f64)
}
