//! Ladders of temperatures on a GPU, whose states are moved and exchanged there.

use std::ops::Range;
use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaViewMut};
use rayon::prelude::*;

use super::batches::{Batches, FIXED, KEY, Mover, Wanted, in_batches};
use super::check_gpu;
use super::places::{CudaLadders, CudaPlaces};
use crate::device::Progress;
use crate::device::cuda::Gpu;
use crate::mcmc::chains::{check_finite, check_states};
use crate::mcmc::lanes::Rule;
use crate::mcmc::{
    AnyKernel, ChainSettings, KernelName, Tempering, TemperingOutcome, TemperingSettings,
};
use crate::observe::RemoteRecorder;
use crate::observe::cuda::{CudaMeasure, Found};
use crate::target::cuda::CudaTarget;
use crate::target::{Density, Target, initial_state, pairwise_for_gpu};
use crate::{Error, Result};

/// Ladders on a GPU.
struct Ladders {
    target: Arc<CudaTarget>,
    places: CudaPlaces,
    ladders: CudaLadders,
    states: CudaSlice<u8>,
    /// `[row * terms + term]`.
    energies: CudaSlice<f64>,
    settings: ChainSettings,
    rungs: usize,
}

impl Mover for Ladders {
    fn advance(&mut self, steps: Range<u64>) -> Result<()> {
        let ChainSettings { seed, burn_in, chains, .. } = self.settings;
        for step in steps {
            let counted = step >= burn_in;
            self.places.sweep(&mut self.states, seed, (step, 1), counted)?;
            self.target.energies(&self.states, chains * self.rungs, &mut self.energies)?;
            self.ladders.exchange(&self.energies, seed, step, counted)?;
        }
        Ok(())
    }

    fn found(&self) -> Found<'_> {
        let (first, step) = (self.rungs - 1, self.rungs);
        Found { states: &self.states, rows: Some(&self.places.rows), first, step }
    }

    fn energies(&self, out: &mut CudaViewMut<'_, f64>) -> Result<()> {
        self.ladders.by_place(&self.energies, out)
    }
}

/// As [`run_tempering`](crate::mcmc::run_tempering) with the kernel of that name, on a GPU: the same states, but for exchanges and choices that are
/// closer to even than the rounding of an exponential. Ladders have one copy.
pub(crate) fn run_cuda_tempering<R: RemoteRecorder>(
    gpu: &Arc<Gpu>,
    target: &dyn Target,
    kernel: KernelName,
    tempering: &TemperingSettings,
    make: impl Fn(usize) -> R + Sync,
    progress: &dyn Progress,
) -> Result<Vec<TemperingOutcome<R>>> {
    let (ladder, settings) = (&tempering.ladder, &tempering.chains);
    settings.check()?;
    if tempering.houdayer {
        return Err(Error::not_applicable("a GPU", "Houdayer moves run on the device cpu alone"));
    }
    check_gpu("tempering_kernel", kernel, target)?;
    let (seed, chains, rungs) = (settings.seed, settings.chains, ladder.len());
    let coldest = ladder.last().map_or(&[][..], Vec::as_slice);
    let local = AnyKernel::new(kernel, target, coldest)?;
    let on_cpu = Tempering::new(target, ladder.clone(), &local, false)?;
    check_states(chains, rungs)?;
    let count = chains * rungs;
    let total = settings.burn_in + settings.steps;
    progress.total(total.saturating_mul(chains as u64));
    let model = Density::new(target, coldest);
    check_finite(&model, &initial_state(target, seed, 0), 0.0, (seed, 0, 0))?;
    let mut recorders: Vec<R> = (0..chains).into_par_iter().map(&make).collect();

    let pairs = pairwise_for_gpu(target)?;
    let (sites, terms) = (pairs.sites(), pairs.terms());
    let rule = kernel.rule().unwrap_or(Rule::HeatBath);
    let on_gpu = Arc::new(CudaTarget::new(gpu, target)?);
    let row = CudaMeasure::bytes(&recorders[0], pairs, gpu);
    // Energies lie there three times where recorders want them.
    let rung = sites + 3 * 8 * terms + CudaPlaces::bytes(terms) + CudaLadders::BYTES;
    let (mut mover, mut batches) =
        gpu.with_room(KEY, chains, (FIXED, rungs * rung + row), || {
            let places = CudaPlaces::new(&on_gpu, rule, count, ladder)?;
            let measure = CudaMeasure::new(&on_gpu, pairs, recorders[0].measures(), chains)?;
            let wanted = Wanted::by(&recorders[0], &measure, rungs * terms);
            let batches = Batches::new(gpu, measure, chains, wanted, settings)?;
            let mover = Ladders {
                ladders: CudaLadders::new(&places, rungs)?,
                places,
                states: on_gpu.initial_states(count, seed)?,
                energies: gpu.zeros(count * terms)?,
                settings: *settings,
                rungs,
                target: on_gpu.clone(),
            };
            Ok((mover, batches))
        })?;
    let steps = in_batches(settings, &mut mover, &mut batches, &mut recorders, progress)?;

    let rows = gpu.download(&mover.places.rows.slice(..count))?;
    let states = gpu.download(&mover.states.slice(..count * sites))?;
    let acceptance = mover.places.acceptance(steps)?;
    let [swaps, round_trips] = mover.ladders.counts()?;
    let energy_calls = on_cpu.energy_calls(target.q()) * steps as f64;
    let swap_rate = |(rung, &swaps): (usize, &u64)| {
        swaps as f64 / attempts(settings.burn_in, steps, rung).max(1) as f64
    };
    let outcome = |(number, recorder): (usize, R)| {
        let own = number * rungs..(number + 1) * rungs;
        TemperingOutcome {
            recorders: vec![recorder],
            steps,
            acceptance: acceptance[own.clone()].to_vec(),
            swap_rates: swaps[own.start..own.end - 1].iter().enumerate().map(swap_rate).collect(),
            round_trips: round_trips[number],
            energy_calls,
            table: None,
            last: rows[own]
                .iter()
                .map(|&row| states[row as usize * sites..][..sites].to_vec())
                .collect(),
        }
    };
    Ok(recorders.into_iter().enumerate().map(outcome).collect())
}

/// How often a rung tried to exchange its state with the next in so many steps after burn-in: in every other step.
fn attempts(burn_in: u64, steps: u64, rung: usize) -> u64 {
    let offset = (burn_in + rung as u64) % 2;
    (steps + 1 - offset) / 2
}

#[cfg(test)]
mod unit {
    use super::attempts;

    #[test]
    fn attempts_are_counted() {
        for burn_in in 0..4 {
            for steps in 0..7 {
                for rung in 0..3 {
                    let made = (burn_in..burn_in + steps).filter(|step| step % 2 == rung % 2);
                    assert_eq!(attempts(burn_in, steps, rung as usize), made.count() as u64);
                }
            }
        }
    }
}
