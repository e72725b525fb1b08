//! Independent chains on a GPU, moved by tables where targets allow, else site by site.

use std::ops::Range;
use std::sync::Arc;

use cudarc::driver::CudaSlice;
use rayon::prelude::*;

use super::batches::{Batches, FIXED, KEY, Mover, Wanted, in_batches};
use super::places::CudaPlaces;
use super::{check_gpu, check_measured};
use crate::Result;
use crate::device::Progress;
use crate::device::cuda::Gpu;
use crate::mcmc::chains::check_finite;
use crate::mcmc::lanes::chains::acceptance;
use crate::mcmc::lanes::cuda::CudaPlan;
use crate::mcmc::lanes::{Plan, Rule, Scan, Tables, Updates};
use crate::mcmc::{AnyKernel, ChainOutcome, ChainSettings, Kernel, KernelName};
use crate::observe::RemoteRecorder;
use crate::observe::cuda::{CudaMeasure, Found};
use crate::target::cuda::CudaTarget;
use crate::target::{Density, Target, initial_state, pairwise_for_gpu};

/// How chains move.
enum Means {
    /// By tables; on the CPU 64 at a time.
    Tables(Box<CudaPlan>),
    /// Site by site; on the CPU one by one.
    Sites(Box<CudaPlaces>),
}

/// Chains on a GPU.
struct Chains {
    means: Means,
    states: CudaSlice<u8>,
    settings: ChainSettings,
    sites: u64,
}

impl Mover for Chains {
    fn advance(&mut self, steps: Range<u64>) -> Result<()> {
        let ChainSettings { seed, burn_in, chains, .. } = self.settings;
        let count = steps.end - steps.start;
        match &mut self.means {
            Means::Tables(plan) => {
                let updates = Updates { from: steps.start * self.sites, count: count * self.sites };
                plan.walk(&mut self.states, chains, seed, updates)
            }
            Means::Sites(places) => {
                let counted = steps.start >= burn_in;
                places.sweep(&mut self.states, seed, (steps.start, count), counted)
            }
        }
    }

    fn found(&self) -> Found<'_> {
        Found { states: &self.states, rows: None }
    }
}

/// As [`run_lane_chains`](crate::mcmc::lanes::run_lane_chains) where tables serve the target, else as [`run_chains`](crate::mcmc::run_chains) with
/// the kernel of that name: the same chains, on a GPU.
pub(crate) fn run_cuda_chains<R: RemoteRecorder>(
    gpu: &Arc<Gpu>,
    model: &Density<'_>,
    (kernel, scan): (KernelName, Scan),
    settings: &ChainSettings,
    make: impl Fn(usize) -> R + Sync,
    progress: &dyn Progress,
) -> Result<Vec<ChainOutcome<R>>> {
    settings.check()?;
    check_gpu("kernel", kernel, model.target)?;
    check_measured(model.target)?;
    let (seed, chains) = (settings.seed, settings.chains);
    let pairs = pairwise_for_gpu(model.target)?;
    let rule = kernel.rule().unwrap_or(Rule::HeatBath);
    let plan = Plan::new(pairs, rule, scan).ok();
    let total = settings.burn_in + settings.steps;
    progress.total(total.saturating_mul(chains as u64));
    check_finite(model, &initial_state(model.target, seed, 0), 0.0, (seed, 0, 0))?;
    let mut recorders: Vec<R> = (0..chains).into_par_iter().map(&make).collect();

    let target = Arc::new(CudaTarget::new(gpu, model.target)?);
    let row = CudaMeasure::bytes(&recorders[0], pairs, gpu);
    let each = pairs.sites() + CudaPlaces::bytes(pairs.terms()) + row;
    let (mut mover, mut batches) = gpu.with_room(KEY, chains, (FIXED, each), || {
        let means = match &plan {
            Some(plan) => {
                let tables = Tables::new(plan, model.lambda);
                Means::Tables(Box::new(CudaPlan::staying(gpu, plan, &[tables])?))
            }
            None => Means::Sites(Box::new(CudaPlaces::new(
                &target,
                rule,
                chains,
                &[model.lambda.to_vec()],
            )?)),
        };
        let states = target.initial_states(chains, seed)?;
        let measure = CudaMeasure::new(&target, pairs, recorders[0].measures(), chains)?;
        let wanted = Wanted::by(&recorders[0], &measure, 0);
        let batches = Batches::new(gpu, measure, chains, wanted, settings)?;
        let sites = pairs.sites() as u64;
        Ok((Chains { means, states, settings: *settings, sites }, batches))
    })?;
    let steps =
        in_batches(settings, &mut mover, &mut batches, (&mut recorders, &mut []), progress)?;

    let sites = pairs.sites();
    let last = gpu.download(&mover.states.slice(..chains * sites))?;
    let (rates, energy_calls) = match (&mover.means, &plan) {
        (Means::Tables(_), Some(plan)) => {
            let rate = |chain: usize| {
                acceptance(model, plan, &last[chain * sites..][..sites], seed, chain as u32)
            };
            let calls = (steps * sites as u64) as f64 * plan.calls_per_update();
            ((0..chains).into_par_iter().map(rate).collect(), calls)
        }
        (Means::Tables(_), None) => unreachable!("tables come from a plan"),
        (Means::Sites(places), _) => {
            let kernel = AnyKernel::new(kernel, model.target, model.lambda)?;
            (places.acceptance(steps)?, kernel.energy_calls(model.q()) * steps as f64)
        }
    };
    let outcome = |((recorder, acceptance), last): ((R, f64), &[u8])| ChainOutcome {
        recorder,
        steps,
        acceptance,
        energy_calls,
        last: last.to_vec(),
    };
    Ok(recorders.into_iter().zip(rates).zip(last.chunks_exact(sites)).map(outcome).collect())
}
