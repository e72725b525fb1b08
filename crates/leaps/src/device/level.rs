//! The instruction sets that computations are compiled for, and the choice between them at run time.
//!
//! A type stands for every level, and what a level can do is in traits of that type: [`Lanes`](super::lanes::Lanes) for
//! sweeps, [`Floats`](super::vector::Floats) for networks, each with one file per instruction set.

/// Instructions that a computation may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SimdLevel {
    /// Whatever the build targets.
    Portable,
    /// NEON, which every 64-bit ARM has.
    Neon,
    /// AVX2 with fused multiplication and addition.
    Avx2,
    /// AVX-512 with byte and word instructions.
    Avx512,
}

impl SimdLevel {
    /// Narrowest first.
    const ALL: [SimdLevel; 4] =
        [SimdLevel::Portable, SimdLevel::Neon, SimdLevel::Avx2, SimdLevel::Avx512];

    /// The widest level of this CPU.
    pub fn detect() -> SimdLevel {
        SimdLevel::ALL.into_iter().rfind(|level| level.runs()).unwrap_or(SimdLevel::Portable)
    }

    /// Every level this CPU can run, narrowest first.
    pub fn available() -> Vec<SimdLevel> {
        SimdLevel::ALL.into_iter().filter(|level| level.runs()).collect()
    }

    /// Whether this build knows the level and this CPU has its instructions.
    fn runs(self) -> bool {
        match self {
            SimdLevel::Portable => true,
            #[cfg(target_arch = "aarch64")]
            SimdLevel::Neon => std::arch::is_aarch64_feature_detected!("neon"),
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
            }
            _ => false,
        }
    }
}

/// Plain code.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

/// NEON.
#[cfg(target_arch = "aarch64")]
#[derive(Clone, Copy)]
pub(crate) struct Neon;

/// AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct Avx2;

/// AVX-512 F, BW and VL.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct Avx512;

/// Call `$body::<L>($args)` with the type of `$level`, compiled for its instructions.
macro_rules! dispatch {
    ($level:expr, $body:ident, ($($arg:ident : $ty:ty),* $(,)?)$( -> $out:ty)?) => {{
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
        fn avx512($($arg: $ty),*)$( -> $out)? {
            // SAFETY: this function is compiled for the instructions of the level.
            unsafe { $body::<$crate::device::level::Avx512>($($arg),*) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        fn avx2($($arg: $ty),*)$( -> $out)? {
            // SAFETY: this function is compiled for the instructions of the level.
            unsafe { $body::<$crate::device::level::Avx2>($($arg),*) }
        }
        #[cfg(target_arch = "aarch64")]
        #[target_feature(enable = "neon")]
        fn neon($($arg: $ty),*)$( -> $out)? {
            // SAFETY: this function is compiled for the instructions of the level.
            unsafe { $body::<$crate::device::level::Neon>($($arg),*) }
        }
        match $level {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a level beyond Portable comes from `SimdLevel::detect` on this CPU.
            $crate::device::SimdLevel::Avx512 => unsafe { avx512($($arg),*) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            $crate::device::SimdLevel::Avx2 => unsafe { avx2($($arg),*) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: as above.
            $crate::device::SimdLevel::Neon => unsafe { neon($($arg),*) },
            // SAFETY: plain code runs everywhere.
            _ => unsafe { $body::<$crate::device::level::Portable>($($arg),*) },
        }
    }};
}
pub(crate) use dispatch;
