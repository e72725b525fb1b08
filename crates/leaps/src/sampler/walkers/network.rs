//! Walkers that follow the jump process of a network on the CPU, and are weighed by how far it misses its target.
//!
//! Sixteen walkers share a network pass; a walker that is done with its intervals gives its lane to the next
//! one, so nobody waits for the slowest. Where a jump changes little of what a pass computes, a walker goes alone and computes only that. No result depends on
//! who shares a pass.

#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::{Arc, Mutex};

use rayon::prelude::*;

use crate::Result;
use crate::device::{Progress, Purpose, StopOnly, Stream};
use crate::mcmc::{AnyKernel, Kernel, KernelName};
use crate::net::JumpWorker;
use crate::path::Path;
use crate::rates::Rates;
use crate::sampler::walkers::{Cost, Lineage, Population, Walkers, interval_by_interval};
use crate::sampler::{Grid, Interval, NetworkWalk, RateModel, Resampling, Scheme, Span, WalkPlan};
use crate::target::{Density, Target};

/// Jumps of a walker on its whole path, for every site: 0.3 to 0.5 were counted on critical Ising models from 8x8 to 64x64.
const JUMPS_PER_SITE: f64 = 0.4;

#[derive(Clone, Debug)]
struct Walker {
    x: Vec<u8>,
    energies: Vec<f64>,
    /// Half of the last step's length, still to be multiplied with K at its end (trapezoid).
    pending: f64,
    passes: u64,
}

/// Walkers that follow a [`RateModel`].
pub struct NetworkWalkers {
    target: Arc<dyn Target>,
    path: Path,
    rates: RateModel,
    plan: WalkPlan,
    kernel: Option<AnyKernel>,
    walkers: Vec<Walker>,
    population: Population,
    /// Whether walkers may go alone where that is faster.
    alone: bool,
}

/// A walker that has been called up.
struct Waiting<'w> {
    number: usize,
    walker: &'w mut Walker,
    log_weight: &'w mut f64,
}

/// A walker on its way through intervals.
struct Lane<'w> {
    waiting: Waiting<'w>,
    k: usize,
    left: f64,
    stream: Stream,
    /// Where it has jumped last in its interval.
    jumped: Option<usize>,
    /// Whether the network's outputs are those of its state at the interval's time, from an interval before.
    called: bool,
}

/// What a task of [`NetworkWalkers`] needs besides its walkers.
struct Scratch {
    worker: JumpWorker,
    rates: Rates,
    /// What every value of a site changes, in every place.
    changes: Vec<Vec<f64>>,
    /// For which walker and at which time the network was called in every place.
    called: Vec<Option<(usize, f64)>>,
    kernel: Option<AnyKernel>,
}

impl NetworkWalkers {
    /// The walkers in uniformly random states.
    pub fn new(walk: NetworkWalk<'_>) -> Result<Self> {
        let NetworkWalk { target, path, rates, plan, population } = walk;
        let kernel = match plan.sweeps {
            0 => None,
            _ => Some(AnyKernel::new(KernelName::HeatBath, &**target, path.ends())?),
        };
        let walkers: Result<Vec<Walker>> = (0..population.walkers)
            .into_par_iter()
            .map(|i| {
                let (x, energies) = population.initial(&**target, i)?;
                Ok(Walker { x, energies, pending: 0.0, passes: 0 })
            })
            .collect();
        Ok(NetworkWalkers {
            target: target.clone(),
            path: path.clone(),
            rates: rates.clone(),
            plan: plan.clone(),
            kernel,
            walkers: walkers?,
            population,
            alone: true,
        })
    }

    /// About how often a walker jumps for every time at which the network is called; 0 where all sites may move at once.
    fn jumps(&self) -> f64 {
        if !self.alone || self.plan.scheme != Scheme::Events {
            return 0.0;
        }
        JUMPS_PER_SITE * self.target.sites() as f64 / self.plan.network_calls() as f64
    }

    /// Run all walkers through the intervals, weighing first in each if `weigh`.
    fn drive(
        &mut self,
        span: Span<'_>,
        weigh: bool,
        log_weights: &mut [f64],
        progress: &dyn Progress,
    ) -> Result<()> {
        let Span { grid, intervals } = span;
        let places = self.rates.net.places(self.jumps());
        let tasks = rayon::current_num_threads().min(self.walkers.len().div_ceil(places));
        let mut walkers = std::mem::take(&mut self.walkers);
        let task = Task { this: &*self, grid, intervals, weigh };
        // One queue for all tasks, so that lanes run empty only when all walkers are on their way.
        let waiting = walkers.iter_mut().zip(log_weights).enumerate();
        let queue = Mutex::new(waiting.map(|(number, (walker, log_weight))| Waiting {
            number,
            walker,
            log_weight,
        }));
        let next = || queue.lock().ok().and_then(|mut queue| queue.next());
        let done = (0..tasks).into_par_iter().try_for_each(|_| task.run(&next, progress));
        self.walkers = walkers;
        done
    }
}

struct Task<'t> {
    this: &'t NetworkWalkers,
    grid: &'t Grid,
    intervals: Range<usize>,
    weigh: bool,
}

impl Task<'_> {
    /// Lead walkers through the intervals until `next` has no more.
    fn run<'w>(
        &self,
        next: &dyn Fn() -> Option<Waiting<'w>>,
        progress: &dyn Progress,
    ) -> Result<()> {
        let (this, q) = (self.this, self.this.target.q());
        let (rates, jumps) = (&this.rates, this.jumps());
        let places = rates.net.places(jumps);
        // Where all sites may move at once, changes are always computed anew.
        let kept_changes = if this.plan.scheme == Scheme::Events { places } else { 1 };
        let mut scratch = Scratch {
            worker: rates.net.jump_worker(&rates.packed, jumps),
            rates: Rates::default(),
            changes: vec![vec![0.0; this.target.sites() * q]; kept_changes],
            called: vec![None; places],
            kernel: this.kernel.clone(),
        };
        for place in 0..places {
            scratch.worker.set_condition(place, &this.rates.condition);
            scratch.worker.set_couplings(place, &this.rates.couplings);
        }
        let before = self.intervals.start - 1;
        let mut lanes: Vec<Option<Lane>> = (0..places).map(|_| None).collect();
        loop {
            progress.check()?;
            for (place, lane) in lanes.iter_mut().enumerate() {
                // Walkers without anything left to do in their intervals leave at once.
                while lane.is_none() {
                    let Some(waiting) = next() else { break };
                    *lane = self.enter(place, waiting, before, &mut scratch, progress)?;
                }
            }
            if lanes.iter().all(Option::is_none) {
                return Ok(());
            }
            this.rates.net.follow(&this.rates.packed, &mut scratch.worker);
            for (place, slot) in lanes.iter_mut().enumerate() {
                let Some(mut lane) = slot.take() else { continue };
                lane.waiting.walker.passes += 1;
                *slot = loop {
                    if !self.jump_or_step(place, &mut lane, &mut scratch)? {
                        break Some(lane);
                    }
                    progress.advance(1);
                    match self.enter(place, lane.waiting, lane.k, &mut scratch, progress)? {
                        // The network has been called for this interval, too.
                        Some(next) if next.called => lane = next,
                        other => break other,
                    }
                };
            }
        }
    }

    /// Let a walker, done with interval `k`, into the next one that needs the network; `None` if it has arrived.
    fn enter<'w>(
        &self,
        place: usize,
        waiting: Waiting<'w>,
        mut k: usize,
        scratch: &mut Scratch,
        progress: &dyn Progress,
    ) -> Result<Option<Lane<'w>>> {
        let (this, number) = (self.this, waiting.number);
        let walker = &mut *waiting.walker;
        loop {
            k += 1;
            // Trapezoid counts its pass at the end of the stretch as one interval more.
            if k >= self.intervals.end {
                return Ok(None);
            }
            if self.weigh {
                *waiting.log_weight += this.drop(walker, Interval { grid: self.grid, k });
            }
            let at = this.plan.time(k);
            if let Some(kernel) = &mut scratch.kernel {
                let model = Density::new(&*this.target, self.grid.lambda(at));
                for sweep in 0..this.plan.sweeps {
                    progress.check()?;
                    let step = k as u64 * this.plan.sweeps + sweep;
                    let mut stream = this.stream(Purpose::Move, number, step);
                    kernel.step(&model, &mut walker.x, &mut stream);
                }
                this.measure(walker, number, k)?;
            }
            let left = this.plan.durations[k];
            if left > 0.0 {
                let time = this.plan.call(k);
                let called = scratch.called[place] == Some((number, time)) && this.plan.sweeps == 0;
                if !called {
                    scratch.worker.set(place, &walker.x, time);
                    scratch.called[place] = Some((number, time));
                }
                let stream = this.stream(Purpose::Jump, number, k as u64);
                return Ok(Some(Lane { waiting, k, left, stream, jumped: None, called }));
            }
            progress.advance(1);
        }
    }

    /// Use the network's outputs for the walker in lane `place`; whether its interval is over.
    fn jump_or_step(
        &self,
        place: usize,
        lane: &mut Lane<'_>,
        scratch: &mut Scratch,
    ) -> Result<bool> {
        let (this, q) = (self.this, self.this.target.q());
        let Waiting { number, walker, log_weight } = &mut lane.waiting;
        let number = *number;
        let at = this.plan.time(lane.k);
        let Scratch { worker, rates, changes, .. } = scratch;
        let (lambda, kept) = (self.grid.lambda(at), place % changes.len());
        let changes = &mut changes[kept];
        match lane.jumped {
            Some(site) => this.target.changes_after(lambda, &mut walker.x, site, changes),
            None => this.target.changes(lambda, &mut walker.x, changes),
        }
        let (parametrisation, output) =
            (this.rates.parametrisation, |i: usize| worker.output(place, i));
        let reversed = this.rates.reversed;
        rates.set(q, &walker.x, changes, output, |j, du| match reversed {
            false => parametrisation.rates(j, du),
            true => parametrisation.reversed_rates(j, du),
        });
        if !rates.balance().is_finite() {
            let visit = this.population.visit(&*this.target, number, lane.k as u64);
            return Err(visit.infinite("sum of the rates", rates.balance(), &walker.x));
        }
        if this.plan.scheme == Scheme::Events {
            let wait = -(1.0 - lane.stream.uniform()).ln() / rates.total_out;
            let stay = wait.min(lane.left);
            **log_weight += stay * rates.balance();
            lane.left -= stay;
            if wait > stay || lane.left <= 0.0 {
                this.measure(walker, number, lane.k)?;
                return Ok(true);
            }
            let (site, site_value) = rates.find(q, lane.stream.uniform() * rates.total_out);
            walker.x[site] = site_value;
            worker.set_value(place, site, site_value);
            lane.jumped = Some(site);
            return Ok(false);
        }
        let slope = this.path.slope(self.grid.time(at));
        let k_value =
            rates.balance() - walker.energies.iter().zip(&slope).map(|(e, s)| e * s).sum::<f64>();
        let h = lane.left;
        if walker.pending < 0.0 {
            // The pass at the end of the last step.
            **log_weight -= walker.pending * k_value;
            walker.pending = 0.0;
            return Ok(true);
        }
        let share = if this.plan.scheme == Scheme::Trapezoid { 0.5 * h } else { h };
        **log_weight += (share + walker.pending) * k_value;
        walker.pending = h - share;
        for site in 0..walker.x.len() {
            let row = &rates.out[site * q..(site + 1) * q];
            let total: f64 = row.iter().sum();
            // Every site has a block of its own, so that all can move at once on a GPU.
            lane.stream.go_to(site as u32);
            if total > 0.0 && lane.stream.uniform() < h * total {
                let point = lane.stream.uniform() * total;
                walker.x[site] = pick(row, point);
            }
        }
        this.measure(walker, number, lane.k)?;
        if this.plan.scheme == Scheme::Trapezoid && lane.k + 1 == self.intervals.end {
            worker.set(place, &walker.x, self.grid.time(lane.k));
            walker.pending = -walker.pending;
            lane.k += 1;
            lane.left = 0.0;
            return Ok(false);
        }
        Ok(true)
    }
}

/// The index whose stretch of the summed weights holds `point`.
fn pick(weights: &[f64], mut point: f64) -> u8 {
    let mut last = 0;
    for (i, &weight) in weights.iter().enumerate() {
        if weight > 0.0 {
            last = i;
            if point < weight {
                break;
            }
            point -= weight;
        }
    }
    last as u8
}

impl NetworkWalkers {
    /// `U_{t_{k-1}}(x) - U_{t_k}(x)`, which only events weighs by.
    fn drop(&self, walker: &Walker, at: Interval<'_>) -> f64 {
        let mut drop = 0.0;
        if self.plan.scheme == Scheme::Events {
            at.weigh(&walker.energies, &mut drop);
        }
        drop
    }

    fn stream(&self, purpose: Purpose, i: usize, step: u64) -> Stream {
        Stream::new(self.population.seed, purpose, self.population.number(i), step)
    }

    fn measure(&self, walker: &mut Walker, i: usize, k: usize) -> Result<()> {
        let visit = self.population.visit(&*self.target, i, k as u64);
        visit.measure(&walker.x, &mut walker.energies)
    }
}

impl Walkers for NetworkWalkers {
    fn walkers(&self) -> usize {
        self.walkers.len()
    }

    fn weigh(&mut self, at: Interval<'_>, log_weights: &mut [f64]) -> Result<()> {
        for (walker, log_weight) in self.walkers.iter().zip(log_weights) {
            *log_weight += self.drop(walker, at);
        }
        Ok(())
    }

    fn mutate(
        &mut self,
        at: Interval<'_>,
        log_weights: &mut [f64],
        progress: &dyn Progress,
    ) -> Result<()> {
        self.drive(at.alone(), false, log_weights, &StopOnly(progress))
    }

    fn advance(
        &mut self,
        span: Span<'_>,
        rule: &Resampling,
        lineage: &mut Lineage,
        progress: &dyn Progress,
    ) -> Result<()> {
        if !rule.is_never() {
            return interval_by_interval(self, span, rule, lineage, progress);
        }
        self.drive(span, true, &mut lineage.log_weights, progress)
    }

    fn resample(&mut self, ancestors: &[u32]) -> Result<()> {
        self.walkers = ancestors
            .iter()
            .zip(&self.walkers)
            .map(|(&ancestor, old)| {
                // Passes are the walker's own, whatever state it takes over.
                Walker { passes: old.passes, ..self.walkers[ancestor as usize].clone() }
            })
            .collect();
        Ok(())
    }

    fn start_at(&mut self, states: &[u8]) -> Result<()> {
        self.population.put(&*self.target, &mut self.walkers, states, |walker| {
            (&mut walker.x, &mut walker.energies)
        })
    }

    fn energies(&self) -> Result<Vec<f64>> {
        Ok(self.walkers.iter().flat_map(|w| w.energies.iter().copied()).collect())
    }

    fn states(&self) -> Result<Vec<u8>> {
        Ok(self.walkers.iter().flat_map(|w| w.x.iter().copied()).collect())
    }

    fn cost(&self) -> Result<Cost> {
        let sum: u64 = self.walkers.iter().map(|w| w.passes).sum();
        let network_passes = sum as f64 / self.walkers.len() as f64;
        Ok(Cost { energy_calls: self.plan.energy_calls(network_passes), network_passes })
    }
}
