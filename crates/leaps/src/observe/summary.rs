//! Draw conclusions from recorded chains: averages, their errors, and whether to believe them.

use rayon::prelude::*;
use serde::Serialize;

use super::modes;
use super::{
    Autocorrelation, Bins, ChainRecorder, Families, Histogram, Jackknife, Layout, Observables,
    discs_ess,
};
use crate::{Error, Result};

/// Blocks of this many autocorrelation times are left out one at a time.
const BLOCK: f64 = 10.0;
/// Shorter blocks than this are never used where there is a choice.
const SHORT_BLOCK: f64 = 2.0;
/// Fewer blocks than this do not make an error.
const ENOUGH_BLOCKS: usize = 32;
/// As many chains as this make an error by themselves.
const ENOUGH_CHAINS: usize = 8;
/// A larger R-hat says that chains disagree.
const R_HAT: f64 = 1.05;

/// Autocorrelations by observable. Serialises under the names of `results.json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Autocorrelations {
    /// Of the energy.
    pub energy_per_site: Autocorrelation,
    /// Of the order parameter.
    pub magnetization: Autocorrelation,
    /// Of its size.
    pub abs_magnetization: Autocorrelation,
    /// Of the distance to a random state.
    pub distance: Autocorrelation,
}

/// A reason to doubt the averages.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", tag = "warning")]
pub enum ChainWarning {
    /// Chains are shorter than 50 autocorrelation times.
    #[error(
        "{observable}: chains of {length} states are shorter than 50 autocorrelation times ({time:.1}), errors may be too small; run longer"
    )]
    Short {
        /// The observable.
        observable: &'static str,
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
        observable: &'static str,
        /// Split R-hat.
        r_hat: f64,
    },
    /// The series never changes.
    #[error("{observable} never changes: either it cannot, or the chains do not move")]
    Constant {
        /// The observable.
        observable: &'static str,
    },
}

/// Chains of one target, analysed together.
pub struct ChainSummary<'a> {
    chains: Vec<ChainRecorder<'a>>,
    autocorrelations: Autocorrelations,
    discs_ess: f64,
    /// Fine blocks joined for the order parameter, for modes, and for everything else; `None`: one block per chain.
    order_join: Option<usize>,
    mode_join: Option<usize>,
    join: Option<usize>,
}

impl<'a> ChainSummary<'a> {
    /// Analyse chains of the same target. At least one chain, and one state in each.
    pub fn new(chains: Vec<ChainRecorder<'a>>) -> Result<Self> {
        if chains.is_empty() || chains.iter().any(ChainRecorder::is_empty) {
            return Err(Error::invalid(
                "chains",
                format!("{} with states {:?}", chains.len(), chains.first().map(|c| c.len())),
                "at least one, with at least one kept state in each",
                "run longer, or drop fewer states at the start",
            ));
        }
        if chains.iter().any(|chain| chain.layout() != chains[0].layout()) {
            return Err(Error::invalid(
                "chains",
                "of different kinds",
                "chains of one target at one temperature",
                "analyse them separately",
            ));
        }
        let analyse = |series: fn(&ChainRecorder<'_>) -> Vec<f32>| {
            let series: Vec<Vec<f32>> = chains.iter().map(series).collect();
            Autocorrelation::new(&series.iter().map(Vec::as_slice).collect::<Vec<_>>())
        };
        let autocorrelations = Autocorrelations {
            energy_per_site: analyse(|chain| chain.energy.clone()),
            magnetization: analyse(|chain| chain.order.clone()),
            abs_magnetization: analyse(|chain| chain.order.iter().map(|m| m.abs()).collect()),
            distance: analyse(|chain| chain.distance.clone()),
        };
        let ess: Vec<f64> = chains.par_iter().map(|chain| discs_ess(&chain.distance)).collect();
        let discs_ess = ess.iter().sum::<f64>() / ess.len() as f64;
        let mut summary = ChainSummary {
            chains,
            autocorrelations,
            discs_ess,
            order_join: None,
            mode_join: None,
            join: None,
        };
        // An odd mode such as m can have a tail that no automatic window sees (tempering's round trips):
        // where chains suffice, they are the blocks.
        if summary.chains.len() < ENOUGH_CHAINS {
            summary.order_join = summary.choose(&summary.autocorrelations.magnetization);
            summary.mode_join = summary.choose(summary.slowest());
        }
        if summary.chains.len() < ENOUGH_BLOCKS {
            summary.join = summary.choose(summary.slower());
        }
        Ok(summary)
    }

    /// The slower of energy and `|m|`, by which blocks are chosen for everything but `m` itself: in an
    /// ordered phase `m` alone may never relax.
    fn slower(&self) -> &Autocorrelation {
        let (energy, order) =
            (&self.autocorrelations.energy_per_site, &self.autocorrelations.abs_magnetization);
        if energy.constant || !order.constant && order.time.mean > energy.time.mean {
            order
        } else {
            energy
        }
    }

    /// The slower of `m` and the distance to a random state, which tells the colours of Potts models apart.
    fn slowest(&self) -> &Autocorrelation {
        let (order, distance) =
            (&self.autocorrelations.magnetization, &self.autocorrelations.distance);
        if order.constant || !distance.constant && distance.time.mean > order.time.mean {
            distance
        } else {
            order
        }
    }

    /// How many fine blocks to join where chains are few: blocks of 10 autocorrelation times if there are 32 of them; else
    /// every chain is a block if there are 8; else blocks of 2 times, if there are 2.
    fn choose(&self, memory: &Autocorrelation) -> Option<usize> {
        let join = |times: f64| {
            let longest = self.chains.iter().map(|chain| chain.length).max().unwrap_or(1);
            (times * memory.time.mean / longest as f64).ceil().max(1.0) as usize
        };
        let blocks = |join| self.chains.iter().map(|chain| chain.blocks(join)).sum::<usize>();
        let (wide, narrow) = (join(BLOCK), join(SHORT_BLOCK));
        if !memory.constant && blocks(wide) >= ENOUGH_BLOCKS {
            Some(wide)
        } else if self.chains.len() >= ENOUGH_CHAINS || memory.constant {
            None
        } else {
            (blocks(narrow) > self.chains.len()).then_some(narrow)
        }
    }

    /// Number of chains.
    pub fn chains(&self) -> usize {
        self.chains.len()
    }

    /// Number of kept states over all chains.
    pub fn states(&self) -> usize {
        self.chains.iter().map(|chain| chain.len()).sum()
    }

    /// What the columns of a row are.
    pub fn layout(&self) -> &Layout {
        self.chains[0].layout()
    }

    /// Autocorrelations of the observables kept as series.
    pub fn autocorrelations(&self) -> &Autocorrelations {
        &self.autocorrelations
    }

    /// The effective sample size of the DISCS benchmark, per chain: [`discs_ess`] of the distance to a
    /// random state, averaged over chains.
    pub fn discs_ess(&self) -> f64 {
        self.discs_ess
    }

    /// The energy per site of every kept state of a chain.
    pub fn energies(&self, chain: usize) -> &[f32] {
        &self.chains[chain].energy
    }

    /// The order parameter of every kept state of a chain.
    pub fn orders(&self, chain: usize) -> &[f32] {
        &self.chains[chain].order
    }

    /// Sums over blocks long enough to be independent, for observables of your own.
    ///
    /// Blocks have 10 autocorrelation times of the slower of energy and `|m|`. With fewer than 32 such blocks
    /// in all, each of at least 8 chains is a block of its own, which needs independent starts but no long
    /// chains; with fewer chains, blocks have 2 autocorrelation times. What blocks of finite length miss
    /// is made up from the autocorrelation function. One block in all: infinite errors.
    pub fn jackknife(&self) -> Jackknife {
        self.block_sums(self.join, self.slower())
    }

    fn block_sums(&self, join: Option<usize>, memory: &Autocorrelation) -> Jackknife {
        let origin = &self.chains[0].origin;
        let (mut weights, mut sums) = (Vec::new(), Vec::new());
        for chain in &self.chains {
            chain.append_blocks(join.unwrap_or(usize::MAX), origin, &mut weights, &mut sums);
        }
        let jackknife = Jackknife::from_sums(origin.clone(), weights, sums);
        match join {
            Some(join) => {
                let shortest = self.chains.iter().map(|chain| chain.length).min().unwrap_or(1);
                jackknife.inflated(memory.block_inflation(join * shortest))
            }
            None => jackknife,
        }
    }

    /// The observables with their errors; see [`jackknife`](Self::jackknife). The mean of `m` and the masses of modes have blocks of
    /// their own.
    pub fn observables(&self) -> Observables {
        let order = self.block_sums(self.order_join, &self.autocorrelations.magnetization);
        let between = self.block_sums(self.mode_join, self.slowest());
        Observables {
            magnetization: order.mean(Layout::M),
            mode_masses: modes::masses(self.layout(), &between),
            ..Observables::new(self.layout(), &self.jackknife())
        }
    }

    /// The histogram of the energy per site.
    pub fn energy_histogram(&self, bins: Bins) -> Histogram {
        self.histogram(bins, |chain, i| chain.energy[i])
    }

    /// The histogram of `|m|`.
    pub fn abs_magnetization_histogram(&self, bins: Bins) -> Histogram {
        self.histogram(bins, |chain, i| chain.order[i].abs())
    }

    fn histogram(&self, bins: Bins, value: fn(&ChainRecorder<'_>, usize) -> f32) -> Histogram {
        let join = self.join.unwrap_or(usize::MAX);
        let (mut values, mut ids, mut first) = (Vec::new(), Vec::new(), 0);
        for chain in &self.chains {
            values.extend((0..chain.len()).map(|i| f64::from(value(chain, i))));
            ids.extend((0..chain.len()).map(|i| (first + chain.block_of(i, join)) as u32));
            first += chain.blocks(join);
        }
        Histogram::new(bins, &values, &vec![1.0; values.len()], &Families::new(&ids))
    }

    /// Reasons to doubt the averages; none is good news.
    pub fn warnings(&self) -> Vec<ChainWarning> {
        let all = &self.autocorrelations;
        let length = self.chains.iter().map(|chain| chain.len()).min().unwrap_or(0);
        let mut warnings = Vec::new();
        for (observable, memory) in [
            ("energy_per_site", &all.energy_per_site),
            ("magnetization", &all.magnetization),
            ("abs_magnetization", &all.abs_magnetization),
            ("distance", &all.distance),
        ] {
            if memory.constant {
                warnings.push(ChainWarning::Constant { observable });
            } else if memory.short {
                warnings.push(ChainWarning::Short { observable, length, time: memory.time.mean });
            }
            if memory.r_hat > R_HAT {
                warnings.push(ChainWarning::Disagreement { observable, r_hat: memory.r_hat });
            }
        }
        warnings
    }
}
