//! Reasons to doubt what chains say.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::estimate::null_is_infinite;

/// A reason to doubt the averages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", tag = "warning")]
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
}
