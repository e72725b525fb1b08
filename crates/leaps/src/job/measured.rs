//! Measurement of an ensemble of walkers: a result, and samples for a file.

use super::Samples;
use super::snapshots::sample;
use crate::observe::{
    Bins, Estimate, Families, Histogram, Layout, Measure, MeasureSpec, WeightedSamples,
};
use crate::problem::Problem;
use crate::results::{
    BetaResult, HistogramResult, Histograms, Lowest, Snapshots, TwoSidedResult, WalkerResult,
    attach_exact, exact_entropy_per_site, free_energy_per_site, log_z_merit,
};
use crate::sampler::{Ensemble, Reached, WalkerWarning};
use crate::{Result, exact};

/// How walkers came to be where they are.
pub struct Journey {
    pub seed: u64,
    pub scheme: &'static str,
    pub kernel: String,
    pub model: Option<String>,
    pub intervals: usize,
    pub substeps: Option<usize>,
    /// The inverse temperatures of the stops on the way.
    pub betas: Vec<f64>,
    pub seconds: f64,
    pub snapshots: Option<Snapshots>,
    /// Whether walkers were to go back.
    pub both_ways: bool,
    pub two_sided: Option<TwoSidedResult>,
    /// Whether somebody asked for a stop.
    pub stopped: bool,
    pub measure: MeasureSpec,
}

/// What measures states of a target whose energy terms weigh `lambda`.
///
/// # Errors
/// What was asked for and the target has not.
pub fn measure<'a>(
    problem: &'a Problem,
    lambda: &'a [f64],
    spec: &MeasureSpec,
) -> Result<Measure<'a>> {
    let measure = Measure::new(&*problem.target, lambda);
    if spec.structure_factor { measure.everywhere() } else { Ok(measure) }
}

/// Measure the walkers.
pub fn measured(
    problem: &Problem,
    journey: Journey,
    ensemble: Ensemble,
) -> Result<(WalkerResult, Samples)> {
    let target = &*problem.target;
    // Walkers that were stopped on the way are weighted for the place where they are.
    let (lambda, beta) = match &ensemble.reached {
        None => (problem.path.ends(), problem.beta),
        Some(reached) => (&reached.lambda[..], reached.beta.unwrap_or(f64::NAN)),
    };
    let measure = measure(problem, lambda, &journey.measure)?;
    let (weights, families) = (&ensemble.weights, &ensemble.families);
    let samples = WeightedSamples::measured(&measure, &ensemble.states, weights, families)?;
    let mut observables = samples.observables();
    let mut log_z = ensemble.log_z();
    let sites = target.sites() as f64;
    let entropy = ensemble.entropy(lambda);
    let mut entropy = Estimate::new(entropy.mean / sites, entropy.error / sites);
    if let Some(exact) = exact::known(target, lambda) {
        log_z = log_z.with_exact(exact.log_z);
        if let Some(exact) = exact_entropy_per_site(&exact, lambda, sites) {
            entropy = entropy.with_exact(exact);
        }
        attach_exact(&mut observables, &exact, target, lambda);
    }
    let (ess, walkers) = (ensemble.ess(), ensemble.weights.len());
    let (stops, many) = (journey.betas.iter().zip(&ensemble.stops), journey.betas.len());
    let at_beta = stops.map(|(&beta, stop)| BetaResult::new(target, beta, stop, many)).collect();
    let energies: Vec<f64> =
        ensemble.energies.chunks_exact(target.terms()).map(|e| e.iter().sum()).collect();
    let stopped = left_out(problem, &journey, &ensemble).into_iter();
    let end = Lowest::among(&energies, &ensemble.states, target);
    let lowest = match &ensemble.lowest {
        Some((energy, x)) if end.as_ref().is_none_or(|end| *energy < end.energy) => {
            Some(Lowest::new(*energy, x, target.q()))
        }
        _ => end,
    };
    let result = WalkerResult {
        interrupted: journey.stopped || ensemble.reached.is_some(),
        reached: ensemble.reached.clone(),
        seed: journey.seed,
        scheme: journey.scheme.to_owned(),
        kernel: journey.kernel,
        model: journey.model,
        walkers,
        intervals: journey.intervals,
        substeps: journey.substeps,
        resamplings: ensemble.segments.resamplings(),
        families: ensemble.effective_families(),
        warnings: stopped.chain(warnings(journey.scheme, &ensemble, &samples)).collect(),
        ess: ess.mean,
        ess_error: ess.error,
        log_z,
        log_z_merit: log_z_merit(log_z, journey.seconds),
        free_energy_per_site: free_energy_per_site(log_z, beta, sites),
        entropy_per_site: entropy,
        two_sided: journey.two_sided,
        lowest,
        elbo: ensemble.elbo(),
        correlation: observables.correlation.clone(),
        structure_factor: observables.structure_factor.clone(),
        structure_factor_map: observables.structure_factor_map.clone(),
        correlation_map: observables.correlation_map.clone(),
        mode_masses: observables.mode_masses.clone(),
        observables,
        histograms: histograms(&samples, &ensemble)?,
        snapshots: journey.snapshots.map(|own| Snapshots {
            sample: sample(&ensemble.states, target.sites(), &ensemble.weights),
            ..own
        }),
        network_passes_per_walker: ensemble.cost.network_passes,
        energy_calls_per_walker: ensemble.cost.energy_calls,
        seconds: journey.seconds,
        effective_samples_per_second: ensemble.effective_families() / journey.seconds,
        at_beta,
        path: ensemble.trace,
    };
    let samples =
        Samples { states: ensemble.states, log_weights: ensemble.weights.log().to_vec(), energies };
    Ok((result, samples))
}

/// What a stop has left out.
fn left_out(problem: &Problem, journey: &Journey, ensemble: &Ensemble) -> Option<WalkerWarning> {
    match &ensemble.reached {
        Some(Reached { beta, t, .. }) => {
            Some(WalkerWarning::Stopped { t: *t, beta: *beta, end: problem.beta })
        }
        None if journey.both_ways && journey.two_sided.is_none() => Some(WalkerWarning::NoWayBack),
        None => None,
    }
}

fn warnings(
    scheme: &'static str,
    ensemble: &Ensemble,
    samples: &WeightedSamples,
) -> Vec<WalkerWarning> {
    let mut all = ensemble.warnings();
    all.extend(WalkerWarning::of_modes(samples));
    let biased = match scheme {
        "euler" => "log Z and observables",
        "trapezoid" => "observables more than log Z",
        _ => return all,
    };
    all.push(WalkerWarning::FixedSteps { scheme: scheme.into(), biased: biased.into() });
    all
}

fn histograms(samples: &WeightedSamples, ensemble: &Ensemble) -> Result<Histograms> {
    let mean = ensemble.weights.log_mean();
    let logs = ensemble.weights.log().iter().map(|log| log - mean);
    let logs: Vec<f64> = logs.filter(|log| log.is_finite()).collect();
    let (equal, own) = (vec![1.0; logs.len()], Families::separate(logs.len()));
    let weighted = |values: Vec<f64>| -> Result<HistogramResult> {
        let (weights, families) = (ensemble.weights.relative(), &ensemble.families);
        Ok(HistogramResult::new(&Histogram::new(bins(&values)?, &values, weights, families)))
    };
    Ok(Histograms {
        log_weight: HistogramResult::new(&Histogram::new(bins(&logs)?, &logs, &equal, &own)),
        energy_per_site: weighted(energies(samples))?,
        magnetization: weighted(samples.column(Layout::M))?,
    })
}

/// The energies per site of measured states.
pub fn energies(samples: &WeightedSamples) -> Vec<f64> {
    let sites = samples.layout().sites as f64;
    samples.column(Layout::ENERGY).into_iter().map(|energy| energy / sites).collect()
}

/// Most bins of a histogram.
const MOST_BINS: usize = 40;
/// Values that are further apart than this part of their range are different.
const SAME: f64 = 1e-9;

/// Bins for these values. Values of discrete states often lie on a ladder: then every bin holds the same
/// number of rungs, so that no bin is fuller than its neighbours for that reason alone.
pub fn bins(values: &[f64]) -> Result<Bins> {
    let mut rungs = values.to_vec();
    rungs.sort_by(f64::total_cmp);
    let (low, high) = match (rungs.first(), rungs.last()) {
        (Some(&low), Some(&high)) => (low, high),
        _ => (0.0, 0.0),
    };
    let range = high - low;
    if range <= SAME * low.abs().max(1e-3) {
        let room = 0.5 * low.abs().max(1e-3);
        return Bins::new(low - room, low + room, 1);
    }
    rungs.dedup_by(|a, b| *a - *b < SAME * range);
    let step = rungs.windows(2).map(|pair| pair[1] - pair[0]).fold(range, f64::min);
    let on_ladder = |value: &f64| {
        let place = (value - low) / step;
        (place - place.round()).abs() < 1e-3
    };
    let levels = (range / step).round() as usize + 1;
    if levels > 16 * MOST_BINS || !rungs.iter().all(on_ladder) {
        return Bins::new(low, high, MOST_BINS);
    }
    let together = levels.div_ceil(MOST_BINS);
    let count = levels.div_ceil(together);
    let low = low - 0.5 * step;
    Bins::new(low, low + (count * together) as f64 * step, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rungs_of_a_ladder_share_bins_evenly() {
        let values: Vec<f64> = (0..97).map(|k| -2.0 + 4.0 * f64::from(k) / 64.0).collect();
        let bins = bins(&values).unwrap();
        let mut counts = vec![0; bins.count()];
        values.iter().for_each(|&value| counts[bins.of(value)] += 1);
        assert_eq!(counts.len(), 33);
        assert!(counts[..32].iter().all(|&count| count == 3), "{counts:?}");
    }

    #[test]
    fn any_values_have_bins() {
        let wild: Vec<f64> = (0..500).map(|k| f64::from(k * k % 331).sqrt()).collect();
        assert_eq!(bins(&wild).unwrap().count(), MOST_BINS);
        for values in
            [&[][..], &[0.0], &[3.0, 3.0], &[-1.0, 1.0], &[1e-12, 2e-12], &[5.0, 5.0 + 1e-14]]
        {
            let bins = bins(values).unwrap();
            assert!(values.iter().all(|&v| bins.low() <= v && v <= bins.high()), "{values:?}");
        }
    }
}
