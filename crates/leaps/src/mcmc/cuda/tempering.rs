//! Ladders of temperatures on a GPU, whose states are moved and exchanged there.

use std::ops::Range;
use std::sync::Arc;

use cudarc::driver::CudaSlice;
use rayon::prelude::*;

use super::batches::{Batches, FIXED, KEY, Mover, Wanted, in_batches};
use super::check_gpu;
use super::ladders::{CudaLadders, Layout};
use super::places::CudaPlaces;
use crate::device::Progress;
use crate::device::cuda::Gpu;
use crate::mcmc::chains::check_finite;
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
        Found { states: &self.states, rows: Some(&self.ladders.coldest) }
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
    tempering.check(target)?;
    if tempering.houdayer {
        return Err(Error::not_applicable("a GPU", "Houdayer moves run on the device cpu alone"));
    }
    check_gpu("tempering_kernel", kernel, target)?;
    let (seed, chains, rungs) = (settings.seed, settings.chains, ladder.len());
    let coldest = ladder.last().map_or(&[][..], Vec::as_slice);
    let local = AnyKernel::new(kernel, target, coldest)?;
    let on_cpu = Tempering::new(target, ladder.clone(), &local, false)?;
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
    let rung = sites + 8 * terms + CudaPlaces::bytes(terms) + CudaLadders::BYTES;
    let (mut mover, mut batches) =
        gpu.with_room(KEY, chains, (FIXED, rungs * rung + row), || {
            let places = CudaPlaces::new(&on_gpu, rule, count, ladder)?;
            let measure = CudaMeasure::new(&on_gpu, pairs, recorders[0].measures(), chains)?;
            let wanted = Wanted::by(&recorders[0], &measure, 0);
            let batches = Batches::new(gpu, measure, chains, wanted, settings)?;
            let layout = Layout { ladders: chains, rungs, tile: 1, period: rungs };
            let mover = Ladders {
                ladders: CudaLadders::new(gpu, pairs, layout, ladder, &places.rows)?,
                places,
                states: on_gpu.initial_states(count, seed)?,
                energies: gpu.zeros(count * terms)?,
                settings: *settings,
                rungs,
                target: on_gpu.clone(),
            };
            Ok((mover, batches))
        })?;
    let steps =
        in_batches(settings, &mut mover, &mut batches, (&mut recorders, &mut []), progress)?;

    let rows = gpu.download(&mover.places.rows.slice(..count))?;
    let states = gpu.download(&mover.states.slice(..count * sites))?;
    let acceptance = mover.places.acceptance(steps)?;
    let exchanges = mover.ladders.outcomes(settings.burn_in, steps)?;
    let energy_calls = on_cpu.energy_calls(target.q()) * steps as f64;
    let outcome = |(number, (recorder, (swap_rates, round_trips)))| {
        let own = number * rungs..(number + 1) * rungs;
        TemperingOutcome {
            recorders: vec![recorder],
            steps,
            acceptance: acceptance[Range::clone(&own)].to_vec(),
            swap_rates,
            round_trips,
            energy_calls,
            table: None,
            last: rows[own]
                .iter()
                .map(|&row| states[row as usize * sites..][..sites].to_vec())
                .collect(),
        }
    };
    Ok(recorders.into_iter().zip(exchanges).enumerate().map(outcome).collect())
}
