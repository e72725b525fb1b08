//! The loss $L = \langle (K_t(x) + \partial_t F_t)^2 \rangle$ and its gradient over a batch.
//!
//! Over [instances](super::Instances) the mean of K among the R configurations of an instance stands for $-\partial_t F_t$. A residual is then the
//! deviation from it times $s = \sqrt{R/(R-1)}$, so that the mean square is an unbiased variance; its derivative with respect to K is that of
//! a free energy held fixed, times s.

use std::sync::Arc;

use rayon::prelude::*;

use super::Objective;
use crate::device::Progress;
use crate::device::vector::WIDTH;
use crate::net::Worker;
use crate::rates::{Rates, flux};
use crate::target::{Pairwise, Target};
use crate::{Error, Result};

/// Reference states and their times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// States, `[configuration * sites + site]`.
    pub states: Vec<u8>,
    /// Their times.
    pub times: Vec<f64>,
    /// The members of the family that they belong to; empty if there is only one target.
    pub members: Vec<usize>,
    /// The instances that they belong to, as many configurations to each, one after the other; empty if there is only one target.
    pub instances: Vec<Arc<Pairwise>>,
    sites: usize,
}

impl Batch {
    /// An empty batch of states with `sites` sites.
    pub fn new(sites: usize) -> Self {
        Batch { sites, ..Batch::default() }
    }

    /// Number of configurations.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Configuration `i`.
    pub fn state(&self, i: usize) -> &[u8] {
        &self.states[i * self.sites..][..self.sites]
    }

    /// The member that configuration `i` belongs to.
    pub fn member(&self, i: usize) -> usize {
        self.members.get(i).copied().unwrap_or(0)
    }

    /// The target of configuration `i`: its instance, or that of all.
    pub fn target<'t>(&'t self, i: usize, own: &'t dyn Target) -> &'t dyn Target {
        self.instances.get(i / self.together()).map_or(own, |instance| &**instance)
    }
}

/// Accumulators of the gradient. Groups of 16 configurations go to them in turn and they are added up in
/// order, so that the bits do not depend on the number of threads.
const SLOTS: usize = 16;

struct Slot {
    worker: Worker,
    gradient: Vec<f32>,
    rates: Rates,
    changes: Vec<Vec<f64>>,
}

/// The loss of a network on a target, with space to compute its gradient.
pub struct Loss {
    objective: Objective,
    /// As many as the largest batch so far has needed.
    slots: Vec<Slot>,
}

impl Loss {
    /// The loss of an objective; [`Batch::members`] refers to its family.
    pub fn new(objective: &Objective) -> Self {
        Loss { objective: objective.clone(), slots: Vec::new() }
    }

    /// Make space for a batch with so many groups.
    fn make_space(&mut self, groups: usize) {
        let Objective { target, net, .. } = &self.objective;
        self.slots.resize_with(groups.min(SLOTS).max(self.slots.len()), || Slot {
            worker: net.worker(),
            gradient: vec![0.0; net.packed()],
            rates: Rates::default(),
            changes: vec![vec![0.0; target.sites() * target.q()]; WIDTH],
        });
    }

    /// The residuals `K_t(x) + dF/dt` of a batch, and the gradient of their mean square: the network's
    /// parameters first, then those of the free energy. The configurations of an instance must be 2, 4, 8 or 16.
    pub fn gradient(
        &mut self,
        parameters: &[f32],
        batch: &Batch,
        gradient: &mut [f32],
        progress: &dyn Progress,
    ) -> Result<Vec<f64>> {
        let groups = batch.len().div_ceil(WIDTH);
        let share = 2.0 / batch.len() as f64 * spread(batch.together());
        self.make_space(groups);
        let objective = &self.objective;
        let net = &objective.net;
        let (own, free) = parameters.split_at(net.parameters());
        let packed = net.pack(own);
        let condition = |i: usize| &objective.members[batch.member(i)].condition[..];
        let shift = objective.free.rates_at(free, &batch.times, condition);
        let job = Job { objective, batch, shift: &shift };
        let mut parts: Vec<Result<Vec<(usize, f64)>>> = Vec::new();
        self.slots
            .par_iter_mut()
            .enumerate()
            .map(|(number, slot)| {
                slot.gradient.fill(0.0);
                let mut found = Vec::new();
                for group in (number..groups).step_by(SLOTS) {
                    progress.check()?;
                    let range = group * WIDTH..((group + 1) * WIDTH).min(batch.len());
                    job.run(slot, &packed, range, share, &mut found)?;
                }
                Ok(found)
            })
            .collect_into_vec(&mut parts);
        let mut residuals = vec![0.0; batch.len()];
        for part in parts {
            for (i, residual) in part? {
                residuals[i] = residual;
            }
        }
        let (own, rest) = gradient.split_at_mut(net.parameters());
        own.fill(0.0);
        rest.fill(0.0);
        let mut sum = vec![0.0f32; net.packed()];
        sum.par_chunks_mut(4096).enumerate().for_each(|(chunk, sum)| {
            for slot in &self.slots {
                let part = &slot.gradient[chunk * 4096..][..sum.len()];
                for (sum, value) in sum.iter_mut().zip(part) {
                    *sum += value;
                }
            }
        });
        net.unpack(&sum, own);
        let d: Vec<f32> = residuals.iter().map(|r| (share * r) as f32).collect();
        objective.free.gradient_conditioned_on(free, &batch.times, condition, &d, rest);
        Ok(residuals)
    }
}

/// The factor of a deviation from the mean of so many numbers that makes the mean square an unbiased variance; 1 for one number, which has no
/// mean to be compared with.
pub(super) fn spread(together: usize) -> f64 {
    if together > 1 { (together as f64 / (together - 1) as f64).sqrt() } else { 1.0 }
}

/// Replace the residuals of an instance by their deviations from the mean.
fn deviate(residuals: &mut [f64]) {
    let mean = residuals.iter().sum::<f64>() / residuals.len() as f64;
    let spread = spread(residuals.len());
    residuals.iter_mut().for_each(|residual| *residual = spread * (*residual - mean));
}

struct Job<'a> {
    objective: &'a Objective,
    batch: &'a Batch,
    shift: &'a [f32],
}

impl Job<'_> {
    fn run(
        &self,
        slot: &mut Slot,
        packed: &[f32],
        range: std::ops::Range<usize>,
        share: f64,
        found: &mut Vec<(usize, f64)>,
    ) -> Result<()> {
        let Slot { worker, gradient, rates, changes } = slot;
        let Objective { target, net, parametrisation, members, .. } = self.objective;
        let (q, channels) = (target.q(), net.outputs());
        let (first, together) = (range.start, self.batch.together());
        let mut couplings = Vec::new();
        for lane in 0..WIDTH {
            // Lanes beyond the batch repeat its last configuration and get no gradient.
            let i = (range.start + lane).min(range.end - 1);
            let member = &members[self.batch.member(i)];
            worker.set_condition(lane, &member.condition);
            if let Some(instance) =
                self.batch.instances.get(i / together).filter(|_| net.couplings() > 0)
            {
                if i.is_multiple_of(together) {
                    couplings = instance.axis_couplings().unwrap_or_default();
                }
                worker.set_couplings(lane, &couplings);
            }
            worker.set(lane, self.batch.state(i), self.batch.times[i]);
        }
        net.forward(packed, worker);
        let mut x = Vec::with_capacity(target.sites());
        let mut residuals = [0.0; WIDTH];
        for (lane, i) in range.clone().enumerate() {
            let target = self.batch.target(i, &**target);
            let (t, path) = (self.batch.times[i], &members[self.batch.member(i)].path);
            x.clear();
            x.extend_from_slice(self.batch.state(i));
            let changes = &mut changes[lane];
            target.changes(&path.lambda(t), &mut x, changes);
            let output = |at: usize| worker.output(lane, at);
            rates.set(q, &x, changes, output, |j, du| parametrisation.rates(j, du));
            let slope = path.slope(t);
            let fall: f64 = slope.iter().enumerate().map(|(k, s)| s * target.energy(k, &x)).sum();
            let residual = rates.balance() - fall + f64::from(self.shift[i]);
            if !residual.is_finite() {
                return Err(Error::NonFinite {
                    what: format!("residual of the loss at t = {t}"),
                    value: residual,
                    seed: 0,
                    walker: i,
                    step: 0,
                    state: crate::target::show_state(&x),
                });
            }
            residuals[lane] = residual;
        }
        if together > 1 {
            residuals[..range.len()].chunks_exact_mut(together).for_each(deviate);
        }
        let mut outputs = [0.0f32; 256];
        for (lane, &residual) in residuals.iter().enumerate() {
            let i = first + lane;
            if i >= range.end {
                for d in worker.d_out.iter_mut() {
                    d.0[lane] = 0.0;
                }
                continue;
            }
            found.push((i, residual));
            let (x, changes) = (self.batch.state(i), &changes[lane]);
            for (site, &own) in x.iter().enumerate() {
                for s in 0..channels {
                    outputs[s] = worker.output(lane, site * channels + s);
                }
                let mut back = 0.0;
                for site_value in (0..q as u8).filter(|&site_value| site_value != own) {
                    let du = changes[site * q + site_value as usize];
                    let j = flux(&outputs[..channels], own, site_value);
                    let d = share * residual * parametrisation.slope(j, du);
                    if channels == 1 {
                        let d = if own == 1 { d } else { -d };
                        worker.d_out[site].0[lane] = d as f32;
                    } else {
                        worker.d_out[site * channels + site_value as usize].0[lane] = d as f32;
                        back -= d;
                    }
                }
                if channels > 1 {
                    worker.d_out[site * channels + own as usize].0[lane] = back as f32;
                }
            }
        }
        net.backward(packed, worker, gradient);
        Ok(())
    }
}
