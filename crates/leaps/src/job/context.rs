//! The context of a job: its device and threads, the ranks that share the work, and its progress.

use std::sync::Arc;

use crate::device::{Device, NoProgress, Placement, Precision, Progress, Ranks, Single};
use crate::results::Computed;
use crate::{Error, Result};

/// Most threads that can be asked for.
pub const MOST_THREADS: usize = 4096;

/// What every job is given.
#[derive(Clone)]
pub struct Context<'a> {
    /// The device that was asked for.
    pub device: Device,
    /// The precision of networks on a GPU.
    pub precision: Precision,
    /// Threads of the CPU; `None` for those that there are, all cores if nobody says otherwise.
    pub threads: Option<usize>,
    /// Who hears of progress, and can ask for a stop.
    pub progress: &'a dyn Progress,
    /// The processes that share the job; one until jobs share more than gradients.
    pub ranks: Arc<dyn Ranks>,
}

impl Default for Context<'_> {
    /// A GPU if there is one that can do the work, and nobody watching.
    fn default() -> Self {
        let precision = Precision::default();
        let (progress, ranks) = (&NoProgress, Arc::new(Single));
        Context { device: Device::Auto, precision, threads: None, progress, ranks }
    }
}

impl Context<'_> {
    /// The same with somebody else watching.
    pub fn watched_by<'b>(&self, progress: &'b dyn Progress) -> Context<'b> {
        let Context { device, precision, threads, ref ranks, .. } = *self;
        Context { device, precision, threads, progress, ranks: Arc::clone(ranks) }
    }

    /// Do work with as many threads as were asked for.
    pub(super) fn install<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        let Some(threads) = self.threads else { return work() };
        if !(1..=MOST_THREADS).contains(&threads) {
            let condition = format!("from 1 to {MOST_THREADS}");
            return Err(Error::invalid(
                "threads",
                threads,
                condition,
                "leave it out for all cores",
            ));
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|error| {
            let condition = format!("as many as the system can start: {error}");
            Error::invalid("threads", threads, condition, "ask for fewer")
        })?;
        pool.install(work)
    }

    /// Record the CPU as the place of work that no GPU does: refused where a GPU was asked for.
    pub(super) fn place_on_cpu(&self, work: &str) -> Result<Computed> {
        let reason = format!("{work} on the CPU alone; use the device cpu");
        let (_, computed) = self.place(Err(Error::not_applicable("a GPU", reason)))?;
        Ok(computed)
    }

    /// Turn the device into a place, once, before work starts; `able` says whether a GPU can do the work at all.
    ///
    /// # Errors
    /// A GPU that cannot be had, and several ranks: walkers and reference states of all of them would be the same.
    pub fn place(&self, able: Result<()>) -> Result<(Placement, Computed)> {
        let ranks = self.ranks.size();
        if ranks > 1 {
            let advice = "start processes with seeds of their own; train::Trainer::with_ranks shares gradients";
            return Err(Error::invalid(
                "ranks",
                ranks,
                "1, since jobs do not share work yet",
                advice,
            ));
        }
        let (placement, reason) = self.device.place(self.precision, able)?;
        self.progress.placed(&placement, reason.as_ref());
        let computed = Computed {
            device: placement.name().to_owned(),
            reason: reason.as_ref().map(Error::to_string),
        };
        Ok((placement, computed))
    }
}
