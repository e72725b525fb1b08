//! Reasons to doubt what chains say.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::estimate::null_is_infinite;

/// A reason to doubt the averages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", tag = "warning")]
#[non_exhaustive]
pub enum ChainWarning {
    /// Chains are shorter than 50 autocorrelation times.
    #[error(
        "{observable}: chains of {length} states are shorter than 50 autocorrelation times ({time:.1}), errors may be too small; run longer"
    )]
    Short {
        /// The observable.
        observable: Cow<'static, str>,
        /// States of the shortest chain.
        length: usize,
        /// Its autocorrelation time.
        time: f64,
    },
    /// Chains disagree by more than their motion explains.
    #[error(
        "{observable}: R-hat is {r_hat:.3}, above 1.05: chains disagree, some may be stuck in a mode; drop more states at the start, run longer, or use a kernel that moves between modes"
    )]
    Disagreement {
        /// The observable.
        observable: Cow<'static, str>,
        /// Split R-hat; infinite (`null` in JSON) if no chain moves.
        #[serde(deserialize_with = "null_is_infinite")]
        r_hat: f64,
    },
    /// The series never changes.
    #[error("{observable} never changes: either it cannot, or the chains do not move")]
    Constant {
        /// The observable.
        observable: Cow<'static, str>,
    },
    /// Neighbouring temperatures have little in common.
    #[error(
        "log Z: the temperatures {hot} and {cold} (beta) overlap by {overlap:.3}, below 0.03, so that free energies beyond rest on few states; use more temperatures"
    )]
    Overlap {
        /// The smaller inverse temperature.
        hot: f64,
        /// The larger one.
        cold: f64,
        /// What they have in common.
        overlap: f64,
    },
    /// There are too few ladders for an error.
    #[error(
        "log Z: its error is the spread of {ladders} ladders, and itself uncertain by {percent:.0} %; run 32 chains or more"
    )]
    FewLadders {
        /// How many there are.
        ladders: usize,
        /// The error of the error.
        percent: f64,
    },
}

/// Overlaps below this are too small, see [`Mbar::overlaps`](super::Mbar::overlaps).
const OVERLAP: f64 = 0.03;
/// Ladders from which an error is known well enough.
const ENOUGH_LADDERS: usize = 16;

impl ChainWarning {
    /// What is wrong with a ladder at `betas` whose neighbours overlap like this.
    pub fn of_ladder(betas: &[f64], overlaps: &[f64], ladders: usize) -> Vec<Self> {
        let poor = |(pair, &overlap): (&[f64], &f64)| {
            let (hot, cold) = (pair[0], pair[1]);
            (overlap.is_nan() || overlap < OVERLAP).then_some(ChainWarning::Overlap {
                hot,
                cold,
                overlap,
            })
        };
        let mut all: Vec<Self> = betas.windows(2).zip(overlaps).filter_map(poor).collect();
        if ladders < ENOUGH_LADDERS {
            let percent = 100.0 / (2.0 * (ladders as f64 - 1.0)).sqrt();
            all.push(ChainWarning::FewLadders { ladders, percent });
        }
        all
    }
}
