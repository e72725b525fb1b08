//! Ranks: the processes that share one job.

use crate::Result;

/// The processes that share one job, as each of them sees the others. All ranks make the same calls in the same order.
pub trait Ranks: Send + Sync {
    /// The number of this process, from 0.
    fn rank(&self) -> usize;

    /// How many there are.
    fn size(&self) -> usize;

    /// Replace numbers by their sums over all ranks, added in the order of ranks: the bits do not depend on who is late.
    fn sum(&self, numbers: &mut [f32]) -> Result<()>;

    /// Give `parts[r]` to rank `r`; returns what the ranks gave to this one, in their order.
    fn exchange(&self, parts: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>>;
}

/// A job of one process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Single;

impl Ranks for Single {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn sum(&self, _numbers: &mut [f32]) -> Result<()> {
        Ok(())
    }

    fn exchange(&self, parts: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        Ok(parts)
    }
}
