//! Checks that the memory of a GPU suffices, before it is taken, and how much of what was asked for would fit.

use std::cell::Cell;

use super::{Gpu, failed};
use crate::{Error, Result};

thread_local! {
    /// Bytes asked for while nothing is to be taken.
    static COUNTED: Cell<Option<usize>> = const { Cell::new(None) };
}

/// What the driver says when there is no more; as in [`failed`].
const OUT_OF_MEMORY: &str = "CUDA_ERROR_OUT_OF_MEMORY";

/// Left to the driver: kernels, their stacks, fragments.
const SPARE: usize = 256 << 20;

/// Note that `bytes` are asked for. True if they are to be counted only.
pub(super) fn counts(bytes: usize) -> bool {
    COUNTED.with(|counted| {
        counted.set(counted.get().map(|all| all.saturating_add(bytes)));
        counted.get().is_some()
    })
}

/// The bytes that `build` asks a GPU for. It must launch nothing: the memory it gets is not there.
pub(crate) fn counted<T>(build: impl FnOnce() -> Result<T>) -> Result<usize> {
    /// Ends counting, whatever happens.
    struct Counting;
    impl Drop for Counting {
        fn drop(&mut self) {
            COUNTED.set(None);
        }
    }
    COUNTED.set(Some(0));
    let counting = Counting;
    let built = build();
    let bytes = COUNTED.get().unwrap_or(0);
    drop(counting);
    built.map(|_| bytes)
}

impl Gpu {
    /// Bytes that may be taken.
    pub(crate) fn free_memory(&self) -> Result<usize> {
        // What was given back counts once the work that used it is done.
        self.wait()?;
        let (free, _) = self.context.mem_get_info().map_err(failed("asking the GPU"))?;
        Ok(free.saturating_sub(SPARE))
    }

    /// What `build` makes, which takes `each` bytes for every one of `count` things beside `fixed` bytes. If that does not fit,
    /// or the GPU runs out of memory nevertheless, the error names the setting `key`, by which the user chose their
    /// number, and how many would.
    pub(crate) fn with_room<T>(
        &self,
        key: &str,
        count: usize,
        (fixed, each): (usize, usize),
        build: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        enough(key, count, fixed, each, self.free_memory()?)?;
        build().map_err(|error| match error {
            Error::Device { reason, .. } if reason == OUT_OF_MEMORY => {
                let free = self.free_memory().unwrap_or(0);
                // If there seems to be enough, it is in pieces.
                let need = fixed.saturating_add(count.saturating_mul(each));
                refusal(key, count, need, free, fitting(fixed, each, free).min(count / 2))
            }
            other => other,
        })
    }
}

/// How many things of `each` bytes fit beside `fixed` bytes.
pub(crate) fn fitting(fixed: usize, each: usize, free: usize) -> usize {
    free.saturating_sub(fixed) / each.max(1)
}

fn enough(key: &str, count: usize, fixed: usize, each: usize, free: usize) -> Result<()> {
    let need = fixed.saturating_add(count.saturating_mul(each));
    if need <= free {
        return Ok(());
    }
    Err(refusal(key, count, need, free, fitting(fixed, each, free)))
}

fn refusal(key: &str, count: usize, need: usize, free: usize, fits: usize) -> Error {
    let (need, free) = (gibibytes(need), gibibytes(free));
    let condition = format!("small enough for the GPU: {need} are needed, {free} are free");
    let advice = match fits {
        0 => "not even 1 would fit; use the device cpu".to_owned(),
        fits => format!("{} would fit, or use the device cpu", round_down(fits)),
    };
    Error::invalid(key, count, condition, advice)
}

/// To two digits, downwards.
fn round_down(n: usize) -> usize {
    let mut unit = 1;
    while n / unit >= 100 {
        unit *= 10;
    }
    n / unit * unit
}

fn gibibytes(bytes: usize) -> String {
    let amount = bytes as f64 / f64::from(1 << 30);
    if amount < 9.95 { format!("{amount:.1} GiB") } else { format!("{amount:.0} GiB") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_name_what_would_fit() {
        let gib = 1 << 30;
        assert!(enough("train.batch", 3, gib, gib, 4 * gib).is_ok());
        let error = enough("train.batch", 200_000, 2 * gib, 1 << 20, 138 * gib).unwrap_err();
        assert_eq!(
            error.to_string(),
            "train.batch = 200000: must be small enough for the GPU: 197 GiB are needed, 138 GiB are free; \
             130000 would fit, or use the device cpu"
        );
        let error = enough("train.batch", 1, 2 * gib, 1, gib).unwrap_err();
        assert!(error.to_string().contains("not even 1 would fit"), "{error}");
        assert!(enough("sample.walkers", usize::MAX, 1, 8, gib).is_err());
    }

    #[test]
    fn the_drivers_word_is_known() {
        use cudarc::driver::{DriverError, sys::CUresult};
        let error = failed("memory")(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY));
        assert!(matches!(error, Error::Device { reason, .. } if reason == OUT_OF_MEMORY));
    }

    #[test]
    fn counting_takes_nothing_and_ends() {
        let bytes = counted(|| {
            assert!(counts(5) && counts(7));
            Ok(())
        });
        assert_eq!(bytes.unwrap(), 12);
        assert!(!counts(1));
        let failed: Result<usize> = counted(|| {
            counts(3);
            Err::<(), _>(Error::Interrupted)
        });
        assert!(failed.is_err() && !counts(1));
    }
}
