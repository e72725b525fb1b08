//! Move walkers by the jump process of a network, and weigh them by how far it misses its target.
//!
//! | scheme | chain | log-weight |
//! |---|---|---|
//! | euler (the paper, alg:samp) | every site flips independently during a step of length h | `h K_t(x)` before the step; biased at O(h) |
//! | trapezoid | the same | mean of K before and after the step; samples still biased. One more pass where weights are looked at |
//! | events | time frozen at the midpoint of each interval, jumps drawn one by one | exact at any number of intervals, for any network |
//!
//! Sixteen walkers share a network pass; a walker that is done with its intervals gives its lane to the next
//! one, so nobody waits for the slowest. No result depends on who shares a pass.

use std::sync::Mutex;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::device::vector::WIDTH;
use crate::device::{Progress, Purpose, StopOnly, Stream};
use crate::mcmc::{AnyKernel, Kernel, KernelName};
use crate::net::{Net, Worker};
use crate::path::Path;
use crate::rates::{Parametrisation, Rates};
use crate::sampler::Grid;
use crate::sampler::walkers::{Population, check_energy};
use crate::target::{Density, Target, initial_state, show_state};
use crate::{Error, Result};

/// How the jump process is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// Steps of fixed length, weights from the left end.
    Euler,
    /// The same steps, weights from both ends.
    Trapezoid,
    /// Jump by jump at frozen times: exact.
    #[default]
    Events,
}

/// The rates of a trained, or untrained, network.
#[derive(Clone, Debug)]
pub struct RateModel<'a> {
    /// The network.
    pub net: &'a Net,
    /// Its parameters.
    #[cfg(feature = "cuda")]
    pub(super) parameters: Vec<f32>,
    /// The same, packed by [`Net::pack`].
    packed: Vec<f32>,
    /// What the network is told about the target.
    condition: Vec<f64>,
    /// How fluxes become rates.
    pub parametrisation: Parametrisation,
}

impl<'a> RateModel<'a> {
    /// The network with these parameters, in the order of [`Net::tensors`].
    pub fn new(net: &'a Net, parameters: &[f32], parametrisation: Parametrisation) -> Self {
        RateModel {
            net,
            #[cfg(feature = "cuda")]
            parameters: parameters.to_vec(),
            packed: net.pack(parameters),
            condition: vec![0.0; net.conditions()],
            parametrisation,
        }
    }

    /// Tell the network which target of its family is at hand: [`Ranges::condition`](crate::path::Ranges::condition).
    ///
    /// # Panics
    /// If it is not told [as many numbers](Net::conditions) as it listens to.
    pub fn conditioned_on(mut self, condition: &[f64]) -> Self {
        self.condition.copy_from_slice(condition);
        self
    }
}

/// The grid that a scheme goes along, and how long it stays in each interval.
///
/// `cuts` are the ends of the intervals, from 0 to 1. Euler and trapezoid go from cut to cut; events visits
/// the midpoints, and weighs once more at the end.
pub fn scheme_grid(path: &Path, scheme: Scheme, cuts: &[f64]) -> Result<(Grid, Vec<f64>)> {
    scheme_grid_with_stops(path, scheme, cuts, &[])
}

/// [`scheme_grid`] with stops, times above 0 at which walkers are measured ([`Ensemble::stops`](crate::sampler::Ensemble::stops)): intervals end there, and
/// events weighs there as it does at the end.
pub fn scheme_grid_with_stops(
    path: &Path,
    scheme: Scheme,
    cuts: &[f64],
    stops: &[f64],
) -> Result<(Grid, Vec<f64>)> {
    Grid::new(path, cuts.to_vec())?;
    let cuts = Grid::cut_at(cuts.to_vec(), stops);
    let checked = Grid::new(path, cuts.clone())?;
    let mut durations = vec![0.0];
    if scheme != Scheme::Events {
        durations.extend(cuts.windows(2).map(|pair| pair[1] - pair[0]));
        return Ok((checked.with_stops(stops), durations));
    }
    let mut times = vec![0.0];
    for pair in cuts.windows(2) {
        times.push(0.5 * (pair[0] + pair[1]));
        durations.push(pair[1] - pair[0]);
        if pair[1] == 1.0 || stops.contains(&pair[1]) {
            times.push(pair[1]);
            durations.push(0.0);
        }
    }
    Ok((Grid::new(path, times)?.with_stops(stops), durations))
}

#[derive(Clone, Debug)]
struct Walker {
    x: Vec<u8>,
    energies: Vec<f64>,
    /// Half of the last step's length, still to be multiplied with K at its end (trapezoid).
    pending: f64,
    passes: u64,
}

/// Walkers that follow a [`RateModel`].
pub struct NetworkWalkers<'a> {
    target: &'a dyn Target,
    path: &'a Path,
    flow: &'a RateModel<'a>,
    scheme: Scheme,
    durations: Vec<f64>,
    /// Heat-bath sweeps at the time of every interval.
    sweeps: u64,
    kernel: Option<AnyKernel>,
    walkers: Vec<Walker>,
    seed: u64,
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
}

/// What a task of [`NetworkWalkers`] needs besides its walkers.
struct Scratch {
    worker: Worker,
    rates: Rates,
    changes: Vec<f64>,
    kernel: Option<AnyKernel>,
}

impl<'a> NetworkWalkers<'a> {
    /// `walkers` walkers in uniformly random states; `durations` from [`scheme_grid`].
    pub fn new(
        target: &'a dyn Target,
        path: &'a Path,
        flow: &'a RateModel<'a>,
        scheme: Scheme,
        durations: Vec<f64>,
        sweeps: u64,
        walkers: usize,
        seed: u64,
    ) -> Result<Self> {
        let kernel = match sweeps {
            0 => None,
            _ => Some(AnyKernel::new(KernelName::HeatBath, target, path.ends())?),
        };
        let made: Result<Vec<Walker>> = (0..walkers)
            .into_par_iter()
            .map(|number| {
                let x = initial_state(target, seed, number as u32);
                let energies: Vec<f64> =
                    (0..target.terms()).map(|k| target.energy(k, &x)).collect();
                check_energy(target, &energies, || x.clone(), seed, number, 0)?;
                Ok(Walker { x, energies, pending: 0.0, passes: 0 })
            })
            .collect();
        let walkers = made?;
        Ok(NetworkWalkers { target, path, flow, scheme, durations, sweeps, kernel, walkers, seed })
    }

    /// Network passes per walker so far.
    pub fn passes(&self) -> f64 {
        let sum: u64 = self.walkers.iter().map(|w| w.passes).sum();
        sum as f64 / self.walkers.len() as f64
    }

    /// Run all walkers through the intervals, weighing first in each if `weigh`.
    fn drive(
        &mut self,
        grid: &Grid,
        intervals: std::ops::Range<usize>,
        weigh: bool,
        log_weights: &mut [f64],
        progress: &dyn Progress,
    ) -> Result<()> {
        let tasks = rayon::current_num_threads().min(self.walkers.len().div_ceil(WIDTH));
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

struct Task<'t, 'a> {
    this: &'t NetworkWalkers<'a>,
    grid: &'t Grid,
    intervals: std::ops::Range<usize>,
    weigh: bool,
}

impl Task<'_, '_> {
    /// Lead walkers through the intervals until `next` has no more.
    fn run<'w>(
        &self,
        next: &dyn Fn() -> Option<Waiting<'w>>,
        progress: &dyn Progress,
    ) -> Result<()> {
        let (this, q) = (self.this, self.this.target.q());
        let mut scratch = Scratch {
            worker: this.flow.net.forward_worker(),
            rates: Rates::default(),
            changes: vec![0.0; this.target.sites() * q],
            kernel: this.kernel.clone(),
        };
        for lane in 0..WIDTH {
            scratch.worker.set_condition(lane, &this.flow.condition);
        }
        let before = self.intervals.start - 1;
        let mut lanes: [Option<Lane>; WIDTH] = std::array::from_fn(|_| None);
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
            this.flow.net.forward(&this.flow.packed, &mut scratch.worker);
            for (place, slot) in lanes.iter_mut().enumerate() {
                let Some(mut lane) = slot.take() else { continue };
                lane.waiting.walker.passes += 1;
                *slot = if self.act(place, &mut lane, &mut scratch)? {
                    progress.advance(1);
                    self.enter(place, lane.waiting, lane.k, &mut scratch, progress)?
                } else {
                    Some(lane)
                };
            }
        }
    }

    /// The time at which interval `k` calls the network.
    fn time(&self, k: usize) -> usize {
        if self.this.scheme == Scheme::Events { k } else { k - 1 }
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
                *waiting.log_weight += this.drop(walker, self.grid, k);
            }
            let at = self.time(k);
            if let Some(kernel) = &mut scratch.kernel {
                let model = Density::new(this.target, self.grid.lambda(at));
                for sweep in 0..this.sweeps {
                    progress.check()?;
                    let step = k as u64 * this.sweeps + sweep;
                    let mut stream = Stream::new(this.seed, Purpose::Move, number as u32, step);
                    kernel.step(&model, &mut walker.x, &mut stream);
                }
                this.measure(walker, number, k)?;
            }
            if this.durations[k] > 0.0 {
                scratch.worker.set(place, &walker.x, self.grid.time(at));
                let stream = Stream::new(this.seed, Purpose::Jump, number as u32, k as u64);
                return Ok(Some(Lane { waiting, k, left: this.durations[k], stream }));
            }
            progress.advance(1);
        }
    }

    /// Use the network's outputs for the walker in lane `place`; whether its interval is over.
    fn act(&self, place: usize, lane: &mut Lane<'_>, scratch: &mut Scratch) -> Result<bool> {
        let (this, q) = (self.this, self.this.target.q());
        let Waiting { number, walker, log_weight } = &mut lane.waiting;
        let number = *number;
        let at = self.time(lane.k);
        let Scratch { worker, rates, changes, .. } = scratch;
        this.target.changes(self.grid.lambda(at), &mut walker.x, changes);
        rates.set(this.flow.parametrisation, q, &walker.x, changes, |i| worker.output(place, i));
        if !rates.balance().is_finite() {
            return Err(Error::NonFinite {
                what: "sum of the rates".into(),
                value: rates.balance(),
                seed: this.seed,
                walker: number,
                step: lane.k as u64,
                state: show_state(&walker.x),
            });
        }
        if this.scheme == Scheme::Events {
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
        let share = if this.scheme == Scheme::Trapezoid { 0.5 * h } else { h };
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
        if this.scheme == Scheme::Trapezoid && lane.k + 1 == self.intervals.end {
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

impl NetworkWalkers<'_> {
    /// `U_{t_{k-1}}(x) - U_{t_k}(x)`, which only events weighs by.
    fn drop(&self, walker: &Walker, grid: &Grid, k: usize) -> f64 {
        if self.scheme != Scheme::Events {
            return 0.0;
        }
        let lambdas = grid.lambda(k - 1).iter().zip(grid.lambda(k));
        walker.energies.iter().zip(lambdas).map(|(e, (a, b))| (a - b) * e).sum()
    }

    fn measure(&self, walker: &mut Walker, number: usize, k: usize) -> Result<()> {
        for (term, energy) in walker.energies.iter_mut().enumerate() {
            *energy = self.target.energy(term, &walker.x);
        }
        check_energy(
            self.target,
            &walker.energies,
            || walker.x.clone(),
            self.seed,
            number,
            k as u64,
        )
    }
}

impl Population for NetworkWalkers<'_> {
    fn walkers(&self) -> usize {
        self.walkers.len()
    }

    fn weigh(&mut self, grid: &Grid, k: usize, log_weights: &mut [f64]) -> Result<()> {
        for (walker, log_weight) in self.walkers.iter().zip(log_weights) {
            *log_weight += self.drop(walker, grid, k);
        }
        Ok(())
    }

    fn mutate(
        &mut self,
        grid: &Grid,
        k: usize,
        log_weights: &mut [f64],
        progress: &dyn Progress,
    ) -> Result<()> {
        self.drive(grid, k..k + 1, false, log_weights, &StopOnly(progress))
    }

    fn advance(
        &mut self,
        grid: &Grid,
        intervals: std::ops::Range<usize>,
        log_weights: &mut [f64],
        progress: &dyn Progress,
    ) -> Result<()> {
        self.drive(grid, intervals, true, log_weights, progress)
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

    fn energies(&self) -> Result<Vec<f64>> {
        Ok(self.walkers.iter().flat_map(|w| w.energies.iter().copied()).collect())
    }

    fn states(&self) -> Result<Vec<u8>> {
        Ok(self.walkers.iter().flat_map(|w| w.x.iter().copied()).collect())
    }

    fn energy_calls(&self) -> f64 {
        // Every pass looks at all neighbours, about two energies.
        let sweeps = self.sweeps as f64 * (self.durations.len() - 1) as f64;
        1.0 + 2.0 * self.passes() + sweeps
    }
}
