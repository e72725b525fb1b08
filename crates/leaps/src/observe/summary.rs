//! Summaries of recorded chains: averages, their errors, and whether to believe them.

use std::borrow::Cow;

use rayon::prelude::*;
use serde::Serialize;

use super::autocorrelation::Lags;
use super::modes;
use super::observables::{correlation_map, site_mean, structure_factor_map, structure_factors};
use super::{
    Autocorrelation, Bins, ChainRecorder, ChainWarning, Families, Histogram, Jackknife, Layout,
    Observables, discs_ess,
};
use crate::{Error, Result};

/// Blocks of this many autocorrelation times are left out one at a time.
const BLOCK: f64 = 10.0;
/// Shorter blocks than this are never used where there is a choice.
const SHORT_BLOCK: f64 = 2.0;
/// Fewer blocks than this do not make an error.
const ENOUGH_BLOCKS: usize = 32;
/// As many groups as this make an error by themselves.
const ENOUGH_GROUPS: usize = 8;

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

impl Autocorrelations {
    /// Each with the name of its observable.
    pub fn named(&self) -> [(&'static str, &Autocorrelation); 4] {
        [
            ("energy_per_site", &self.energy_per_site),
            ("magnetization", &self.magnetization),
            ("abs_magnetization", &self.abs_magnetization),
            ("distance", &self.distance),
        ]
    }

    /// The largest R-hat; NaN for chains of fewer than 4 states.
    pub fn r_hat(&self) -> f64 {
        let all = self.named().map(|(_, memory)| memory.r_hat);
        if all.iter().any(|r_hat| r_hat.is_nan()) {
            f64::NAN
        } else {
            all.into_iter().fold(1.0, f64::max)
        }
    }
}

/// Chains of one target, analysed together.
///
/// What is independent is a *group*: one chain, or all chains that exchange parts of their states, such as the two copies of a ladder with
/// [`Houdayer`](crate::mcmc::Houdayer) moves. At one time copies are independent, because the moves leave the product of their distributions
/// invariant; but what was in one is soon in the other, so that their averages are correlated. A group is therefore analysed as one series in time, the
/// mean over its copies, and is never divided between blocks. Other rungs of a ladder are at other temperatures and are not measured: what a ladder
/// of parallel tempering says is what its last rung says, a group of one.
pub struct ChainSummary<'a> {
    groups: Vec<Vec<ChainRecorder<'a>>>,
    autocorrelations: Autocorrelations,
    discs_ess: f64,
    /// Fine blocks joined for the order parameter, for modes, and for everything else; `None`: one block per chain.
    order_join: Option<usize>,
    mode_join: Option<usize>,
    join: Option<usize>,
}

impl<'a> ChainSummary<'a> {
    /// A larger R-hat says that chains disagree.
    pub const R_HAT: f64 = 1.05;

    /// Analyse independent chains of the same target. At least one chain, and one state in each.
    pub fn new(chains: Vec<ChainRecorder<'a>>) -> Result<Self> {
        Self::of_groups(chains.into_iter().map(|chain| vec![chain]).collect())
    }

    /// Analyse groups of chains of the same target, independent of each other, with equally many copies in each and as many states of every copy.
    pub fn of_groups(groups: Vec<Vec<ChainRecorder<'a>>>) -> Result<Self> {
        let chains = || groups.iter().flatten();
        if groups.is_empty() || groups.iter().any(Vec::is_empty) || chains().any(|c| c.is_empty()) {
            return Err(Error::invalid(
                "chains",
                format!("{} with states {:?}", chains().count(), chains().next().map(|c| c.len())),
                "at least one, with at least one kept state in each",
                "run longer, or drop fewer states at the start",
            ));
        }
        let copies = groups[0].len();
        let unequal = |group: &Vec<ChainRecorder<'_>>| {
            group.len() != copies || group.iter().any(|chain| chain.len() != group[0].len())
        };
        if groups.iter().any(unequal) {
            return Err(Error::invalid(
                "chains",
                "in unequal groups",
                "as many copies in every group, and as many states of every copy of a group",
                "record all copies at the same steps",
            ));
        }
        let layout = groups[0][0].layout();
        if chains().any(|chain| chain.layout() != layout) {
            return Err(Error::invalid(
                "chains",
                "of different kinds",
                "chains of one target at one temperature",
                "analyse them separately",
            ));
        }
        let autocorrelations = autocorrelations(&groups, layout.symmetric);
        let ess = |group: &Vec<ChainRecorder<'_>>| {
            copies as f64 * discs_ess(&mean_series(group, |chain, i| chain.distance[i]))
        };
        let ess: Vec<f64> = groups.par_iter().map(ess).collect();
        let discs_ess = ess.iter().sum::<f64>() / ess.len() as f64;
        let mut summary = ChainSummary {
            groups,
            autocorrelations,
            discs_ess,
            order_join: None,
            mode_join: None,
            join: None,
        };
        // An odd mode such as m can have a tail that no automatic window sees (tempering's round trips):
        // where groups suffice, they are the blocks.
        if summary.groups.len() < ENOUGH_GROUPS {
            summary.order_join = summary.choose(summary.slower_of_order());
            summary.mode_join = summary.choose(summary.slowest());
        }
        if summary.groups.len() < ENOUGH_BLOCKS {
            summary.join = summary.choose(summary.slower());
        }
        Ok(summary)
    }

    /// What blocks are chosen by: the slowest of all, since without a symmetry every observable has a part in the slowest motion. With
    /// one, the slower of energy and `|m|`, in which what is odd has no part: in an ordered phase `m` alone may never relax.
    fn slower(&self) -> &Autocorrelation {
        if self.layout().symmetric { self.even() } else { slower(self.even(), self.slowest()) }
    }

    /// The slower of energy and `|m|`.
    fn even(&self) -> &Autocorrelation {
        slower(&self.autocorrelations.energy_per_site, &self.autocorrelations.abs_magnetization)
    }

    /// The same for `m`.
    fn slower_of_order(&self) -> &Autocorrelation {
        let own = &self.autocorrelations.magnetization;
        if self.layout().symmetric { own } else { self.slower() }
    }

    /// The slower of `m` and the distance to a random state, which tells the colours of Potts models apart.
    fn slowest(&self) -> &Autocorrelation {
        slower(&self.autocorrelations.magnetization, &self.autocorrelations.distance)
    }

    /// How many fine blocks to join where groups are few: blocks of 10 autocorrelation times if there are 32 of them; else
    /// every group is a block if there are 8; else 32 blocks, but of 2 times at least, if there are 2.
    fn choose(&self, memory: &Autocorrelation) -> Option<usize> {
        let join = |states: f64| {
            let longest = self.firsts().map(|chain| chain.length).max().unwrap_or(1);
            (states / longest as f64).ceil().max(1.0) as usize
        };
        let blocks = |join| self.firsts().map(|chain| chain.blocks(join)).sum::<usize>();
        let (wide, narrow) = (join(BLOCK * memory.time.mean), join(SHORT_BLOCK * memory.time.mean));
        if !memory.constant && blocks(wide) >= ENOUGH_BLOCKS {
            return Some(wide);
        }
        if self.groups.len() >= ENOUGH_GROUPS || memory.constant {
            return None;
        }
        let as_many = (narrow..wide).rev().find(|&join| blocks(join) >= ENOUGH_BLOCKS);
        let join = as_many.unwrap_or(narrow);
        (blocks(join) > self.groups.len()).then_some(join)
    }

    /// The first copy of every group: all copies of a group have the same blocks.
    fn firsts(&self) -> impl Iterator<Item = &ChainRecorder<'a>> {
        self.groups.iter().map(|group| &group[0])
    }

    /// Number of groups, which are independent of each other.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Number of kept states over all chains.
    pub fn states(&self) -> usize {
        self.groups.iter().flatten().map(|chain| chain.len()).sum()
    }

    /// What the columns of a row are.
    pub fn layout(&self) -> &Layout {
        self.groups[0][0].layout()
    }

    /// Autocorrelations of the observables kept as series.
    pub fn autocorrelations(&self) -> &Autocorrelations {
        &self.autocorrelations
    }

    /// The effective sample size of the DISCS benchmark, per group: [`discs_ess`] of the distance to a
    /// random state, averaged over groups.
    pub fn discs_ess(&self) -> f64 {
        self.discs_ess
    }

    /// Sums over blocks long enough to be independent, for observables of your own.
    ///
    /// Blocks have 10 autocorrelation times: of the slowest series, or with a symmetry of the slower of energy and `|m|`. With fewer than 32 such
    /// blocks in all, each of at least 8 groups is a block of its own, which needs independent starts but no long
    /// chains, and so is each of 32 groups or more; fewer groups are cut into 32 blocks, or fewer if these would be shorter than 2
    /// autocorrelation times. What blocks of finite length miss is made up from the autocorrelation function. One block in all: infinite errors.
    pub fn jackknife(&self) -> Jackknife {
        self.block_sums(self.join, self.even())
    }

    fn block_sums(&self, join: Option<usize>, memory: &Autocorrelation) -> Jackknife {
        let origin = &self.groups[0][0].origin;
        let (mut weights, mut sums) = (Vec::new(), Vec::new());
        for group in &self.groups {
            let first = weights.len();
            for chain in group {
                let join = join.unwrap_or(usize::MAX);
                chain.add_blocks(first, join, origin, &mut weights, &mut sums);
            }
        }
        let jackknife = Jackknife::from_sums(origin.clone(), weights, sums);
        match join {
            Some(join) => {
                let shortest = self.firsts().map(|chain| chain.length).min().unwrap_or(1);
                jackknife.inflated(memory.block_inflation(join * shortest))
            }
            None => jackknife,
        }
    }

    /// The observables with their errors; see [`jackknife`](Self::jackknife). The mean of `m`, the masses of modes, means over sites and structure
    /// factors have blocks of their own.
    pub fn observables(&self) -> Observables {
        let order = self.block_sums(self.order_join, &self.autocorrelations.magnetization);
        let between = self.block_sums(self.mode_join, self.slowest());
        Observables {
            magnetization: order.mean(Layout::M),
            mode_masses: modes::masses(self.layout(), &between),
            density: site_mean(self.layout(), &between, "density"),
            quadrupole: site_mean(self.layout(), &between, "quadrupole"),
            polarization: site_mean(self.layout(), &between, "polarization"),
            structure_factor: structure_factors(self.layout(), &between),
            structure_factor_map: structure_factor_map(self.layout(), &between),
            correlation_map: correlation_map(self.layout(), &between),
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
        for group in &self.groups {
            for chain in group {
                values.extend((0..chain.len()).map(|i| f64::from(value(chain, i))));
                ids.extend((0..chain.len()).map(|i| (first + chain.block_of(i, join)) as u32));
            }
            first += group[0].blocks(join);
        }
        Histogram::new(bins, &values, &vec![1.0; values.len()], &Families::new(&ids))
    }

    /// Reasons to doubt the averages; none is good news.
    pub fn warnings(&self) -> Vec<ChainWarning> {
        let all = &self.autocorrelations;
        let length = self.firsts().map(|chain| chain.len()).min().unwrap_or(0);
        let mut warnings = Vec::new();
        for (name, memory) in all.named() {
            let observable = Cow::Borrowed(name);
            if memory.constant {
                warnings.push(ChainWarning::Constant { observable: observable.clone() });
            } else if memory.short {
                let (observable, time) = (observable.clone(), memory.time.mean);
                warnings.push(ChainWarning::Short { observable, length, time });
            }
            if memory.r_hat > Self::R_HAT {
                warnings.push(ChainWarning::Disagreement { observable, r_hat: memory.r_hat });
            }
        }
        warnings
    }
}

fn slower<'m>(a: &'m Autocorrelation, b: &'m Autocorrelation) -> &'m Autocorrelation {
    if a.constant || !b.constant && b.time.mean > a.time.mean { b } else { a }
}

/// The mean over the copies of a group at every time.
fn mean_series(
    group: &[ChainRecorder<'_>],
    value: fn(&ChainRecorder<'_>, usize) -> f32,
) -> Vec<f32> {
    let mean = |i| group.iter().map(|chain| value(chain, i)).sum::<f32>() / group.len() as f32;
    (0..group[0].len()).map(mean).collect()
}

/// Autocorrelations of all series in windows that are long enough for whatever they share.
///
/// The slowest motion of a chain may be a small part of the variance of an observable, and then lies beyond the window that its own
/// autocorrelations ask for, though not beyond its errors: half of the longest window of all, three times the slowest motion, has most of it. Without a symmetry every observable has a part in it. With one, what is even (the
/// energy and `|m|`) has none in what is odd.
fn autocorrelations(groups: &[Vec<ChainRecorder<'_>>], symmetric: bool) -> Autocorrelations {
    let values: [fn(&ChainRecorder<'_>, usize) -> f32; 4] = [
        |chain, i| chain.energy[i],
        |chain, i| chain.order[i].abs(),
        |chain, i| chain.order[i],
        |chain, i| chain.distance[i],
    ];
    let lags = values.map(|value| {
        let series: Vec<Vec<f32>> = groups.iter().map(|group| mean_series(group, value)).collect();
        Lags::new(&series.iter().map(Vec::as_slice).collect::<Vec<_>>())
    });
    let windows = lags.each_ref().map(|lags| lags.within(0).window());
    let longest = |windows: &[usize]| windows.iter().copied().max().unwrap_or(0) / 2;
    let (even, odd) = match symmetric {
        true => (longest(&windows[..2]), 0),
        false => (longest(&windows), longest(&windows)),
    };
    let analyse = |k: usize, window: usize| {
        let mut memory = lags[k].within(window);
        // The mean over copies, which are independent at one time, varies that much less than a state does.
        memory.effective_samples *= groups[0].len() as f64;
        memory
    };
    Autocorrelations {
        energy_per_site: analyse(0, even),
        abs_magnetization: analyse(1, even),
        magnetization: analyse(2, odd),
        distance: analyse(3, odd),
    }
}
