//! Carry weighted walkers along the path: AIS and SMC.

use leaps::device::Placement;
use leaps::sampler::{Amount, Moves, Resampling, Settings, Times, sample_on};
use leaps::{Error, Result};

use super::Samples;
use super::measured::{Journey, measured};
use super::snapshots::{can_be_drawn, snapshots};
use crate::config::{Config, Move, Problem};
use crate::progress::TerminalProgress;
use crate::results::WalkerResult;

/// Walkers of the pilot run that chooses the times of an adaptive schedule.
const PILOT_WALKERS: usize = 512;

/// Whether a GPU can run AIS and SMC as configured.
pub fn gpu_has(config: &Config, problem: &Problem) -> Result<()> {
    settings(config, false)?.moves.check_gpu(&problem.target)
}

/// Run AIS, or SMC if `resample`, on `placement` and measure the walkers.
pub fn run_walkers(
    config: &Config,
    problem: &Problem,
    resample: bool,
    placement: &Placement,
    progress: &TerminalProgress,
) -> Result<(WalkerResult, Samples)> {
    let (target, path) = (&problem.target, &problem.path);
    let (betas, stops): (Vec<f64>, Vec<f64>) =
        config.walkers.stops(path, problem.beta)?.into_iter().unzip();
    let settings = Settings { stops, ..settings(config, resample)? };
    let start = progress.seconds();
    let (ensemble, grid) = sample_on(placement, target, path, &settings, progress)?;
    let seconds = progress.seconds() - start;

    let snapshots = match can_be_drawn(target) {
        true => {
            // It goes the same way on the CPU.
            let cpu = &Placement::Cpu;
            let mut one = settings.moves.population(cpu, target, path, 1, config.seed)?;
            snapshots(target, &grid, &mut *one, progress)?
        }
        false => None,
    };
    let journey = Journey {
        seed: config.seed,
        scheme: if resample { "smc" } else { "ais" },
        kernel: config.kernel.kernel.to_string(),
        model: None,
        intervals: grid.intervals(),
        betas,
        passes: 0.0,
        seconds,
        snapshots,
    };
    measured(problem, journey, ensemble)
}

fn settings(config: &Config, resample: bool) -> Result<Settings> {
    let Move::Kernel(kernel) = config.kernel.kernel else {
        return Err(Error::invalid(
            "sample.kernel",
            config.kernel.kernel,
            "a kernel that moves one state",
            "use heat-bath here, or the verb mcmc",
        ));
    };
    let walkers = &config.walkers;
    Ok(Settings {
        walkers: walkers.walkers,
        times: match config.path.adaptive() {
            Some(conditional_ess) => {
                Times::Adaptive { conditional_ess, pilot_walkers: PILOT_WALKERS }
            }
            None => Times::Uniform(walkers.intervals),
        },
        moves: Moves {
            kernel,
            amount: match config.updates.updates {
                0 => Amount::Steps(walkers.sweeps.unwrap_or(1) as u64),
                updates => Amount::Updates(updates as u64),
            },
            scan: config.kernel.scan.into(),
        },
        resampling: match resample {
            true => config.resample.resampling(0.5),
            false => Resampling::NEVER,
        },
        points: walkers.trace_points,
        stops: Vec::new(),
        seed: config.seed,
    })
}
