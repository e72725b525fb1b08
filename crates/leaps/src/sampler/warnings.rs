//! Warnings about weighted walkers that should not be believed.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::Ensemble;
use crate::observe::WeightedSamples;

/// Fewer effective walkers than this make no error bar.
const FEW_WALKERS: f64 = 100.0;
/// A smaller part of the walkers than this comes from weights whose tail is not sampled.
const SMALL_PART: f64 = 0.01;
/// Weights with a heavier tail than this have no reliable mean.
const HEAVY_TAIL: f64 = 0.7;
/// Fewer effective families than this make no error bar.
const FEW_FAMILIES: f64 = 30.0;
/// Masses of modes that chance makes so unequal more rarely than this are not equal.
const UNEQUAL_BY_CHANCE: f64 = 1e-5;
/// A step of the path that keeps less than this is too large for the walkers to follow.
const LARGE_STEP: f64 = 0.75;

/// A reason to doubt estimates from weighted walkers, with advice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", tag = "warning")]
#[non_exhaustive]
pub enum WalkerWarning {
    /// A few walkers hold all the weight.
    #[error(
        "only {effective:.1} effective walkers: estimates may be biased and errors too small; use more intervals, more sweeps or more walkers, or train a network longer"
    )]
    FewWalkers {
        /// ESS times walkers.
        effective: f64,
    },
    /// More walkers would find heavier ones.
    #[error(
        "the weights have a heavy tail (index {tail_index:.2}, effective part {ess:.2e}): estimates may be biased and errors too small however many walkers there are; train longer or another network, or use more intervals, more sweeps or resampling"
    )]
    HeavyTail {
        /// Effective sample size as a part of the walkers.
        ess: f64,
        /// [`LogWeights::tail_index`](crate::observe::LogWeights::tail_index).
        tail_index: f64,
    },
    /// Modes that a symmetry makes equally likely have different masses.
    #[error(
        "the target is symmetric, but its modes have masses from {smallest:.3} to {largest:.3} where each has {exact:.3} (p = {p:.1e}): log Z is probably too low, and errors do not know of it; train longer, use more sweeps or more intervals"
    )]
    UnequalModes {
        /// The smallest mass of a mode.
        smallest: f64,
        /// The largest.
        largest: f64,
        /// What all of them are.
        exact: f64,
        /// The probability that masses come out as unequal by chance.
        p: f64,
    },
    /// Nearly all walkers descend from a few.
    #[error(
        "only {effective:.1} effective families after {resamplings} resamplings: errors may be too small; use more intervals or sweeps, so that walkers are resampled less often, or more walkers"
    )]
    FewFamilies {
        /// Inverse sum of the squared shares of families in the weight.
        effective: f64,
        /// Number of resamplings.
        resamplings: usize,
    },
    /// Steps of fixed length are not the process that the weights are for.
    #[error(
        "{scheme} steps are biased by their length, {biased}, and errors do not know of it; use the scheme events, or more intervals"
    )]
    FixedSteps {
        /// `euler` or `trapezoid`.
        scheme: Cow<'static, str>,
        /// What is biased.
        biased: Cow<'static, str>,
    },
    /// The walkers were stopped before the end of the path.
    #[error("{}", stopped(*t, *beta, *end))]
    Stopped {
        /// The time that all of them have reached.
        t: f64,
        /// The inverse temperature there, if all energy terms have one.
        beta: Option<f64>,
        /// The target's.
        end: f64,
    },
    /// The walkers were stopped before they had gone back.
    #[error(
        "interrupted before walkers had gone back: there is no estimate of log Z from both sides"
    )]
    NoWayBack,
    /// Some step changed the distribution by more than walkers can follow.
    #[error(
        "a step of the path keeps only {conditional_ess:.2} of the walkers: estimates may be biased and errors too small; use more intervals or the schedule adaptive"
    )]
    LargeSteps {
        /// The smallest conditional effective sample size of a step.
        conditional_ess: f64,
    },
}

/// [`WalkerWarning::Stopped`] in words.
fn stopped(t: f64, beta: Option<f64>, end: f64) -> String {
    match beta {
        Some(beta) => format!(
            "interrupted on the way: all numbers, states and weights are for beta = {beta:.6} (t = {t:.4} of the path), not for beta = {end}"
        ),
        None => format!(
            "interrupted on the way: all numbers, states and weights are for t = {t:.4} of the path, where energy terms have weights of their own, not for beta = {end}"
        ),
    }
}

impl WalkerWarning {
    /// [`UnequalModes`](Self::UnequalModes) where chance makes masses of modes as unequal in fewer than one of 100,000 runs.
    pub fn of_modes(samples: &WeightedSamples) -> Option<Self> {
        let p = samples.mode_equality().filter(|p| *p < UNEQUAL_BY_CHANCE)?;
        let masses = samples.observables().mode_masses;
        let all = || masses.iter().map(|mode| mode.mass.mean);
        Some(WalkerWarning::UnequalModes {
            smallest: all().fold(1.0, f64::min),
            largest: all().fold(0.0, f64::max),
            exact: 1.0 / masses.len() as f64,
            p,
        })
    }
}

impl Ensemble {
    /// Effective number of families: the inverse sum of their squared shares in the weight.
    pub fn effective_families(&self) -> f64 {
        let mut shares = vec![0.0; self.families.count()];
        for (i, share) in self.weights.normalised().into_iter().enumerate() {
            shares[self.families.of(i)] += share;
        }
        1.0 / shares.iter().map(|s| s * s).sum::<f64>()
    }

    /// Reasons to doubt the estimates.
    pub fn warnings(&self) -> Vec<WalkerWarning> {
        let mut found = Vec::new();
        let effective = self.weights.ess() * self.weights.len() as f64;
        if effective < FEW_WALKERS {
            found.push(WalkerWarning::FewWalkers { effective });
        }
        let (ess, tail_index) = (self.weights.ess(), self.weights.tail_index().unwrap_or(0.0));
        if effective >= FEW_WALKERS && (ess < SMALL_PART || tail_index > HEAVY_TAIL) {
            found.push(WalkerWarning::HeavyTail { ess, tail_index });
        }
        let resamplings = self.segments.resamplings();
        let effective = self.effective_families();
        if resamplings > 0 && effective < FEW_FAMILIES {
            found.push(WalkerWarning::FewFamilies { effective, resamplings });
        }
        let conditional_ess = self.smallest_step;
        if conditional_ess < LARGE_STEP {
            found.push(WalkerWarning::LargeSteps { conditional_ess });
        }
        found
    }
}
