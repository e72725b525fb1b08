//! Carry weighted walkers along the path: AIS and SMC.

use leaps::exact;
use leaps::mcmc::lanes::Scan;
use leaps::observe::WeightedSamples;
use leaps::sampler::{Amount, Moves, Resampling, Scheme, Settings, Times, sample};
use leaps::target::Target;
use leaps::{Error, Result};

use super::Samples;
use crate::config::{Config, Move, Problem, ResamplingName, ScanName};
use crate::progress::Progress;
use crate::results::{WalkerResult, attach_exact};

/// Walkers of the pilot run that chooses the times of an adaptive schedule.
const PILOT_WALKERS: usize = 512;

/// Run AIS, or SMC if `resample`, and measure the walkers.
pub fn run_walkers(
    config: &Config,
    problem: &Problem,
    resample: bool,
    watch: &Progress,
) -> Result<(WalkerResult, Samples)> {
    let settings = settings(config, resample)?;
    let (target, path) = (&problem.target, &problem.path);
    let start = watch.seconds();
    let (ensemble, grid) = sample(target, path, &settings, watch)?;
    let seconds = watch.seconds() - start;

    let measured = WeightedSamples::new(
        target,
        path.ends(),
        &ensemble.states,
        &ensemble.weights,
        &ensemble.families,
    )?;
    let mut observables = measured.observables();
    let mut log_z = ensemble.log_z();
    if let Some(exact) = exact::known(target, path.ends()) {
        log_z = log_z.with_exact(exact.log_z);
        attach_exact(&mut observables, &exact, problem);
    }
    let ess = ensemble.ess();
    let result = WalkerResult {
        seed: config.seed,
        scheme: if resample { "smc" } else { "ais" },
        kernel: config.kernel.kernel.to_string(),
        walkers: settings.walkers,
        intervals: grid.intervals(),
        resamplings: ensemble.segments.resamplings(),
        families: ensemble.effective_families(),
        warnings: ensemble.warnings(),
        ess: ess.mean,
        ess_error: ess.error,
        log_z,
        elbo: ensemble.elbo(),
        correlation: observables.correlation.clone(),
        observables,
        path: ensemble.trace,
        network_passes_per_walker: 0.0,
        energy_calls_per_walker: ensemble.energy_calls,
        seconds,
        effective_samples_per_second: ess.mean * settings.walkers as f64 / seconds,
    };
    let samples = Samples {
        states: ensemble.states,
        log_weights: ensemble.weights.log().to_vec(),
        energies: ensemble.energies.chunks_exact(target.terms()).map(|e| e.iter().sum()).collect(),
    };
    Ok((result, samples))
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
            amount: match walkers.updates {
                0 => Amount::Steps(walkers.sweeps as u64),
                updates => Amount::Updates(updates as u64),
            },
            scan: scan(config.kernel.scan),
        },
        resampling: match resample {
            true => Resampling {
                threshold: config.resample.resample,
                scheme: match config.resample.resampling {
                    ResamplingName::Multinomial => Scheme::Multinomial,
                    ResamplingName::Stratified => Scheme::Stratified,
                    ResamplingName::Systematic => Scheme::Systematic,
                    ResamplingName::Residual => Scheme::Residual,
                },
            },
            false => Resampling::NEVER,
        },
        points: walkers.points,
        seed: config.seed,
    })
}

/// The library's word for an order of sites.
pub fn scan(name: ScanName) -> Scan {
    match name {
        ScanName::Systematic => Scan::Systematic,
        ScanName::Coloured => Scan::Coloured,
    }
}
