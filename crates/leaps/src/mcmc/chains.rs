//! Independent chains, on any number of threads with the same result.
//!
//! Chain `c` starts from a uniform state and draws step `s` from the stream (seed, move, c, s), so that no
//! result depends on how chains are spread over threads. The first half of burn-in adapts step sizes, each chain its own; then all
//! chains (of a ladder: all states at one temperature) take the geometric mean of them, and they are fixed. While a step size follows the acceptance, the states do not follow the model: the second half forgets what adapting did to them.
//! All chains advance together, so that those of a run that is stopped are equally long.

use std::ops::Range;

use rayon::prelude::*;

use super::adapt::agree;
use super::rounds::in_rounds;
use super::{Kernel, Tempering};
use crate::device::{Draw, Progress, Purpose, Stream};
use crate::observe::{LadderTable, OrderParameter, Recorder};
use crate::target::{Density, Target, initial_state, show_state};
use crate::{Error, Result};

/// How long to run how many chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainSettings {
    /// Number of chains.
    pub chains: usize,
    /// Steps dropped at the start of each; step sizes adapt during the first half of them.
    pub burn_in: u64,
    /// Steps after burn-in.
    pub steps: u64,
    /// Keep every n-th state.
    pub thin: u64,
    /// Seed of all chains.
    pub seed: u64,
}

impl ChainSettings {
    /// Steps at the start of which step sizes learn.
    pub(super) fn adapting(&self) -> u64 {
        self.burn_in.div_ceil(2)
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.chains == 0 || self.chains > u32::MAX as usize {
            return Err(Error::invalid(
                "chains",
                self.chains,
                "from 1 to 2^32 - 1",
                "100 is usual for comparisons",
            ));
        }
        if self.thin == 0 {
            return Err(Error::invalid("thin", 0, "at least 1", "1 keeps every state"));
        }
        let total = self.burn_in.checked_add(self.steps);
        if total.is_none_or(|total| total >= 1 << 56) {
            return Err(Error::invalid("steps", self.steps, "below 2^56", "ask for fewer steps"));
        }
        Ok(())
    }
}

/// What a chain has to say.
#[derive(Clone, Debug)]
pub struct ChainOutcome<R> {
    /// Its recorder, having seen every kept state.
    pub recorder: R,
    /// Steps after burn-in, the same for all chains: fewer than asked for if `progress` stopped them.
    pub steps: u64,
    /// Mean acceptance probability after burn-in.
    pub acceptance: f64,
    /// Energy evaluations charged for the steps after burn-in, as DISCS counts.
    pub energy_calls: f64,
    /// The last state.
    pub last: Vec<u8>,
}

/// Site updates between two looks at the progress and at the potential.
const GLANCE: u64 = 1 << 18;

pub(super) fn glance(sites: usize) -> u64 {
    (GLANCE / sites as u64).clamp(1, 4096)
}

/// Stop a chain whose potential or acceptance is no number.
pub(super) fn check_finite(
    model: &Density<'_>,
    x: &[u8],
    acceptance: f64,
    (seed, walker, step): (u64, usize, u64),
) -> Result<()> {
    let potential = model.potential(x);
    for (what, value) in [("potential", potential), ("acceptance", acceptance)] {
        if !value.is_finite() {
            let (what, state) = (what.into(), show_state(x));
            return Err(Error::NonFinite { what, value, seed, walker, step, state });
        }
    }
    Ok(())
}

/// A chain on its way.
struct Chain<K, R> {
    number: usize,
    kernel: K,
    recorder: R,
    x: Vec<u8>,
    /// Sum of acceptance probabilities after burn-in.
    acceptance: f64,
}

/// Run `settings.chains` copies of `kernel` on `model`, each with its own recorder `make(chain)`.
///
/// Outcomes are in the order of the chains, and the same for any number of threads. `progress` is told
/// the total of `chains * (burn_in + steps)` and every advance. If it stops the chains once every one has a kept state, the outcomes
/// are those of [fewer steps](ChainOutcome::steps); before that, the error is [`Error::Interrupted`].
pub fn run_chains<K: Kernel + Sync, R: Recorder>(
    model: &Density<'_>,
    kernel: &K,
    settings: &ChainSettings,
    make: impl Fn(usize) -> R + Sync,
    progress: &dyn Progress,
) -> Result<Vec<ChainOutcome<R>>> {
    settings.check()?;
    let total = settings.burn_in + settings.steps;
    progress.total(total.saturating_mul(settings.chains as u64));
    let begin = |number: usize| {
        let x = initial_state(model.target, settings.seed, number as u32);
        check_finite(model, &x, 0.0, (settings.seed, number, 0))?;
        Ok(Chain { number, kernel: kernel.clone(), recorder: make(number), x, acceptance: 0.0 })
    };
    let mut chains: Vec<Chain<K, R>> =
        (0..settings.chains).into_par_iter().map(begin).collect::<Result<_>>()?;
    let stride = glance(model.target.sites());
    let advance = |chain: &mut Chain<K, R>, round: Range<u64>| {
        let Chain { number, kernel, recorder, x, acceptance } = chain;
        for step in round {
            let mut stream = Stream::new(settings.seed, Purpose::Move, *number as u32, step);
            let info = kernel.step(model, x, &mut stream);
            if step < settings.adapting() {
                kernel.adapt(&info);
            }
            if step >= settings.burn_in {
                *acceptance += info.acceptance;
                if (step - settings.burn_in + 1).is_multiple_of(settings.thin) {
                    recorder.record(x);
                }
            }
            let last = step + 1 == total;
            if (step + 1).is_multiple_of(stride) || last || !info.acceptance.is_finite() {
                check_finite(model, x, info.acceptance, (settings.seed, *number, step))?;
                progress.advance(if last { step % stride + 1 } else { stride });
            }
        }
        Ok(())
    };
    let steps = in_rounds(settings, &mut chains, progress, advance, |chains| {
        agree(chains.iter_mut().map(|chain| &mut chain.kernel));
    })?;
    let outcome = |chain: Chain<K, R>| ChainOutcome {
        steps,
        acceptance: chain.acceptance / steps.max(1) as f64,
        energy_calls: chain.kernel.energy_calls(model.q()) * steps as f64,
        recorder: chain.recorder,
        last: chain.x,
    };
    Ok(chains.into_iter().map(outcome).collect())
}

/// The ladder of a tempering run.
#[derive(Clone, Debug, PartialEq)]
pub struct TemperingSettings {
    /// Weights of every rung, from hot to cold; the last one is the distribution that is recorded.
    pub ladder: Vec<Vec<f64>>,
    /// Run two copies of the ladder with Houdayer moves between them.
    pub houdayer: bool,
    /// Whether neighbouring rungs exchange their states; without it they are independent chains.
    pub exchange: bool,
    /// Gather the states of all rungs in a table with bins of this width in energy.
    pub table: Option<f64>,
    /// The ladders as chains.
    pub chains: ChainSettings,
}

impl TemperingSettings {
    /// Refuse ladders that fit no run.
    pub(super) fn check(&self, target: &dyn Target) -> Result<()> {
        self.chains.check()?;
        let fits = |lambda: &Vec<f64>| {
            lambda.len() == target.terms() && lambda.iter().all(|l| l.is_finite())
        };
        if self.ladder.is_empty() || !self.ladder.iter().all(fits) {
            return Err(Error::invalid(
                "ladder",
                format!("{:?}", self.ladder),
                format!("at least one rung of {} finite weights", target.terms()),
                "give one weight per energy term, for example beta",
            ));
        }
        let copies = if self.houdayer { 2 } else { 1 };
        let states = copies * (self.ladder.len() + 1);
        if self.chains.chains.next_multiple_of(64).saturating_mul(states) > u32::MAX as usize {
            return Err(Error::invalid(
                "chains",
                self.chains.chains,
                "such that chains times states is below 2^32",
                "use fewer chains or rungs",
            ));
        }
        Ok(())
    }
}

/// What a tempering run has to say.
#[derive(Clone, Debug)]
pub struct TemperingOutcome<R> {
    /// One recorder for each copy of the ladder, having seen the kept states of its last rung.
    pub recorders: Vec<R>,
    /// Steps after burn-in, the same for all ladders: fewer than asked for if `progress` stopped them.
    pub steps: u64,
    /// Mean acceptance probability of the kernel on each rung after burn-in.
    pub acceptance: Vec<f64>,
    /// Fraction of accepted exchanges of each rung with the next after burn-in.
    pub swap_rates: Vec<f64>,
    /// Walks from the first rung to the last and back after burn-in.
    pub round_trips: u64,
    /// Energy evaluations charged for the steps after burn-in, of all rungs.
    pub energy_calls: f64,
    /// The kept states of all rungs, if asked for. Rung 0 of the table is infinite temperature, with one random state for every kept
    /// state of a rung; the ladder's own rungs follow.
    pub table: Option<LadderTable>,
    /// The last states, `copy * rungs + rung`.
    pub last: Vec<Vec<u8>>,
}

/// Run independent tempering ladders of `kernel`; recorders are `make(ladder, copy)`.
///
/// State `w` of ladder `c` moves by the streams of walker `c * states + w`, exchanges by those of ladder
/// `c`. Outcomes are the same for any number of threads, and of fewer steps if `progress` stops them, as for [`run_chains`].
pub fn run_tempering<K: Kernel + Sync, R: Recorder>(
    target: &dyn Target,
    kernel: &K,
    tempering: &TemperingSettings,
    make: impl Fn(usize, usize) -> R + Sync,
    progress: &dyn Progress,
) -> Result<Vec<TemperingOutcome<R>>> {
    let (settings, exchange) = (&tempering.chains, tempering.exchange);
    tempering.check(target)?;
    let fresh = Tempering::new(target, tempering.ladder.clone(), kernel, tempering.houdayer)?;
    let (states, rungs, total) = (fresh.states(), fresh.rungs(), settings.burn_in + settings.steps);
    progress.total(total.saturating_mul(settings.chains as u64));
    let coldest = &tempering.ladder[rungs - 1];
    let walker = |ladder: usize, state: usize| (ladder * states + state) as u32;
    let begin = |number: usize| Ladder {
        number,
        tempering: fresh.clone(),
        recorders: (0..fresh.copies()).map(|copy| make(number, copy)).collect(),
        x: (0..states)
            .map(|state| initial_state(target, settings.seed, walker(number, state)))
            .collect(),
        acceptance: vec![0.0; states],
        table: tempering.table.map(|width| LadderTable::new(rungs + 1, width)),
    };
    let mut ladders: Vec<Ladder<K, R>> = (0..settings.chains).into_par_iter().map(begin).collect();
    let stride = glance(target.sites() * states);
    // Short sweeps are not worth a thread each.
    let together = (4096 / target.sites()).max(1);
    let advance = |ladder: &mut Ladder<K, R>, round: Range<u64>| {
        let Ladder { number, tempering, recorders, x, acceptance, table } = ladder;
        for step in round {
            if step == settings.burn_in {
                tempering.reset_counts();
            }
            let (lambdas, kernels) = tempering.parts();
            x.par_iter_mut()
                .zip(kernels)
                .zip(&mut *acceptance)
                .enumerate()
                .with_min_len(together)
                .for_each(|(state, ((x, kernel), acceptance))| {
                    let model = Density::new(target, &lambdas[state % rungs]);
                    let walker = walker(*number, state);
                    let mut stream = Stream::new(settings.seed, Purpose::Move, walker, step);
                    let info = kernel.step(&model, x, &mut stream);
                    if step < settings.adapting() {
                        kernel.adapt(&info);
                    }
                    if step >= settings.burn_in {
                        *acceptance += info.acceptance;
                    }
                });
            let mut stream = Stream::new(settings.seed, Purpose::Exchange, *number as u32, step);
            tempering.exchange_clusters(x, &mut stream);
            if exchange {
                tempering.exchange(target, x, &mut stream);
            }
            if step >= settings.burn_in
                && (step - settings.burn_in + 1).is_multiple_of(settings.thin)
            {
                for (copy, recorder) in recorders.iter_mut().enumerate() {
                    recorder.record(&x[copy * rungs + rungs - 1]);
                }
                if let Some(table) = table {
                    if !exchange {
                        tempering.measure(target, x);
                    }
                    let terms = target.terms();
                    let order = OrderParameter::of(target);
                    for (state, x) in x.iter().enumerate() {
                        let energy = tempering.energies()[state * terms..][..terms].iter().sum();
                        table.record(1 + state % rungs, energy, order.of_state(x), || x.clone());
                        let walker = walker(*number, state);
                        if state % rungs == 0 {
                            record_uniform(table, target, (settings.seed, walker, step));
                        }
                    }
                }
            }
            let last = step + 1 == total;
            if (step + 1).is_multiple_of(stride) || last {
                let model = Density::new(target, coldest);
                for (x, acceptance) in x.iter().zip(&*acceptance) {
                    check_finite(&model, x, *acceptance, (settings.seed, *number, step))?;
                }
                progress.advance(if last { step % stride + 1 } else { stride });
            }
        }
        Ok(())
    };
    let steps = in_rounds(settings, &mut ladders, progress, advance, |ladders| {
        for rung in 0..rungs {
            let all = ladders.iter_mut().map(|ladder| ladder.tempering.parts().1);
            agree(all.flat_map(|kernels| kernels.iter_mut().skip(rung).step_by(rungs)));
        }
    })?;
    let copies = fresh.copies();
    let outcome = |ladder: Ladder<K, R>| TemperingOutcome {
        steps,
        acceptance: (0..rungs)
            .map(|rung| {
                let sum: f64 = ladder.acceptance.iter().skip(rung).step_by(rungs).sum();
                sum / (steps.max(1) as f64 * copies as f64)
            })
            .collect(),
        swap_rates: ladder.tempering.swap_rates(),
        round_trips: ladder.tempering.round_trips(),
        energy_calls: ladder.tempering.energy_calls(target.q()) * steps as f64,
        recorders: ladder.recorders,
        table: ladder.table,
        last: ladder.x,
    };
    Ok(ladders.into_iter().map(outcome).collect())
}

/// A ladder on its way.
struct Ladder<K, R> {
    number: usize,
    tempering: Tempering<K>,
    recorders: Vec<R>,
    x: Vec<Vec<u8>>,
    /// Sums of acceptance probabilities after burn-in, by state.
    acceptance: Vec<f64>,
    table: Option<LadderTable>,
}

/// Take a random state into the rung of infinite temperature.
fn record_uniform(table: &mut LadderTable, target: &dyn Target, of: (u64, u32, u64)) {
    let (seed, walker, step) = of;
    let mut stream = Stream::new(seed, Purpose::Uniform, walker, step);
    let x: Vec<u8> = (0..target.sites()).map(|_| stream.below(target.q()) as u8).collect();
    let energy = (0..target.terms()).map(|term| target.energy(term, &x)).sum();
    table.record(0, energy, OrderParameter::of(target).of_state(&x), || x.clone());
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::device::NoProgress;
    use crate::mcmc::Info;
    use crate::target::{Boundary, Lattice, Pairwise};

    /// Stays where it is, and counts its steps and its lessons.
    #[derive(Clone, Default)]
    struct Pupil {
        steps: u64,
        lessons: Arc<AtomicU64>,
        last: Arc<AtomicU64>,
    }

    impl Kernel for Pupil {
        fn step<D: Draw>(&mut self, _: &Density<'_>, _: &mut [u8], _: &mut D) -> Info {
            self.steps += 1;
            Info::default()
        }

        fn adapt(&mut self, _: &Info) {
            self.lessons.fetch_add(1, Ordering::Relaxed);
            self.last.fetch_max(self.steps, Ordering::Relaxed);
        }

        fn energy_calls(&self, _: usize) -> f64 {
            0.0
        }
    }

    struct Nobody;

    impl Recorder for Nobody {
        fn record(&mut self, _: &[u8]) {}
    }

    #[test]
    fn adapting_ends_halfway_through_burn_in() {
        let lattice = Lattice::new(&[2, 2], Boundary::Free).unwrap();
        let target = Pairwise::ising(lattice, 1.0, 0.0).unwrap();
        let lambda = [0.3];
        for (burn_in, lessons) in [(0, 0), (1, 1), (10, 5), (11, 6)] {
            let settings = ChainSettings { chains: 1, burn_in, steps: 9, thin: 1, seed: 1 };
            let alone = Pupil::default();
            let model = Density::new(&target, &lambda);
            run_chains(&model, &alone, &settings, |_| Nobody, &NoProgress).unwrap();
            let ladder = vec![lambda.to_vec()];
            let tempering = TemperingSettings {
                ladder,
                houdayer: false,
                exchange: true,
                table: None,
                chains: settings,
            };
            let in_ladder = Pupil::default();
            run_tempering(&target, &in_ladder, &tempering, |_, _| Nobody, &NoProgress).unwrap();
            for pupil in [alone, in_ladder] {
                assert_eq!(pupil.lessons.load(Ordering::Relaxed), lessons, "{burn_in}");
                assert_eq!(pupil.last.load(Ordering::Relaxed), lessons, "the first steps");
            }
        }
    }
}
