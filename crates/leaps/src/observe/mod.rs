//! Observables of states, and the errors of their averages.
//!
//! [`Measure`] reduces a state to a row of basic observables. [`WeightedSamples`] collects such rows from
//! weighted walkers, [`ChainRecorder`] and [`ChainSummary`] from Markov chains. Either way [`Observables`] are functions of the averages, with errors from one [`Jackknife`].

mod autocorrelation;
mod bar;
mod chain;
pub(crate) mod cuda;
mod estimate;
mod families;
mod histogram;
mod integration;
mod ladder;
mod log_z_estimate;
mod mbar;
mod measure;
mod modes;
mod momenta;
mod observables;
mod order;
mod samples;
mod spec;
mod summary;
mod warnings;
mod waves;
mod weights;

pub use autocorrelation::{Autocorrelation, discs_ess, split_r_hat};
pub use bar::{TwoSided, two_sided};
pub use chain::ChainRecorder;
pub use estimate::{Estimate, Jackknife};
pub use families::Families;
pub use histogram::{Bins, Distance, Histogram};
pub use integration::integrated_log_z;
pub use ladder::LadderTable;
pub use log_z_estimate::{Segments, entropy, ess, lee_whiteley, log_z};
pub use mbar::Mbar;
pub use measure::{Layout, Measure, Reduced, symmetric};
pub use modes::ModeMass;
pub use momenta::OffsetCorrelation;
pub use observables::{Correlation, Observables};
pub use order::{Order, OrderParameter};
pub use samples::WeightedSamples;
pub use spec::MeasureSpec;
pub use summary::{Autocorrelations, ChainSummary};
pub use warnings::ChainWarning;
pub use waves::{StructureFactor, WaveVector};
pub use weights::LogWeights;

/// Takes in the kept states of one chain, in order.
pub trait Recorder: Send {
    /// Measure `x`.
    fn record(&mut self, x: &[u8]);

    /// Measure `x`, whose energy terms are known.
    fn record_with(&mut self, x: &[u8], energies: &[f64]) {
        let _ = energies;
        self.record(x);
    }
}

/// Takes in states that were reduced where they lie, as well as those that are at hand.
pub trait RemoteRecorder: Recorder {
    /// What measures the states.
    fn measures(&self) -> &ChainRecorder<'_>;

    /// Whether the states themselves are wanted.
    fn keeps_states(&self) -> bool {
        false
    }

    /// Take in a state; `x` is there if [`keeps_states`](Self::keeps_states).
    fn record_reduced(&mut self, state: &Reduced<'_>, x: Option<&[u8]>);
}
