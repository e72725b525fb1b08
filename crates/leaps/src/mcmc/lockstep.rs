//! Sweeps of many walkers or chains in lockstep, for targets that prefer batches: every site of all of them is one call of the target.
//!
//! Walkers draw what they draw one by one ([`HeatBath`](super::HeatBath), [`Metropolis`](super::Metropolis)), and so end in the same states.

use super::chains::glance;
use super::gibbs::drawn;
use super::lanes::Rule;
use super::moves::{accept, other_value};
use super::{ChainOutcome, ChainSettings};
use crate::device::{Draw, Progress, Purpose, Stream};
use crate::observe::Recorder;
use crate::target::{Density, Target, initial_state, show_state};
use crate::{Error, Result};

/// Sweep over the sites of all `states`, `[walker * sites + site]`, every walker with its own `draws`. Returns the mean acceptance probability of
/// every walker.
pub(crate) fn sweep<D: Draw>(
    rule: Rule,
    model: &Density<'_>,
    states: &mut [u8],
    draws: &mut [D],
) -> Result<Vec<f64>> {
    let (sites, q) = (model.sites(), model.q());
    let mut changes = vec![0.0; draws.len() * q];
    let mut acceptance = vec![0.0; draws.len()];
    for site in 0..sites {
        model.target.changes_many(model.lambda, states, site, &mut changes)?;
        let rows = states.chunks_exact_mut(sites).zip(changes.chunks_exact_mut(q));
        for (((x, changes), draw), sum) in rows.zip(&mut *draws).zip(&mut acceptance) {
            let old = x[site];
            x[site] = match rule {
                Rule::HeatBath => {
                    *sum += 1.0;
                    drawn(old, changes, draw)
                }
                Rule::Metropolis => {
                    let value = other_value(old, q, draw);
                    let (accepted, probability) = accept(-changes[value as usize], draw);
                    *sum += probability;
                    if accepted { value } else { old }
                }
            };
        }
    }
    acceptance.iter_mut().for_each(|sum| *sum /= sites as f64);
    Ok(acceptance)
}

/// A heat-bath sweep over the sites of all `states` where every walker has weights of its own for the energy terms, `[walker * terms + term]`.
pub(crate) fn sweep_apart<D: Draw>(
    target: &dyn Target,
    weights: &[f64],
    states: &mut [u8],
    draws: &mut [D],
) -> Result<()> {
    let (sites, q, terms) = (target.sites(), target.q(), target.terms());
    let mut of_term = vec![0.0; draws.len() * q];
    let mut changes = vec![0.0; draws.len() * q];
    for site in 0..sites {
        changes.fill(0.0);
        for term in 0..terms {
            let mut alone = vec![0.0; terms];
            alone[term] = 1.0;
            target.changes_many(&alone, states, site, &mut of_term)?;
            let rows = changes.chunks_exact_mut(q).zip(of_term.chunks_exact(q));
            for ((sums, own), weights) in rows.zip(weights.chunks_exact(terms)) {
                let weighted = own.iter().map(|change| weights[term] * change);
                sums.iter_mut().zip(weighted).for_each(|(sum, change)| *sum += change);
            }
        }
        let rows = states.chunks_exact_mut(sites).zip(changes.chunks_exact_mut(q));
        for ((x, changes), draw) in rows.zip(&mut *draws) {
            x[site] = drawn(x[site], changes, draw);
        }
    }
    Ok(())
}

/// How all chains move: by this rule, at so many energies a step.
pub(crate) type Moves = (Rule, f64);

/// Run `settings.chains` chains of sweeps in lockstep, with the outcomes of [`run_chains`](super::run_chains) with the kernel of the rule.
///
/// # Errors
/// Those of [`run_chains`](super::run_chains), and those of the target.
pub(crate) fn run_lockstep_chains<R: Recorder>(
    model: &Density<'_>,
    (rule, calls): Moves,
    settings: &ChainSettings,
    make: impl Fn(usize) -> R,
    progress: &dyn Progress,
) -> Result<Vec<ChainOutcome<R>>> {
    settings.check()?;
    let (target, seed, count) = (model.target, settings.seed, settings.chains);
    let (sites, terms) = (target.sites(), target.terms());
    let total = settings.burn_in + settings.steps;
    progress.total(total.saturating_mul(count as u64));
    let numbers = 0..count;
    let first = |number: usize| initial_state(target, seed, number as u32);
    let mut states: Vec<u8> = numbers.clone().flat_map(first).collect();
    let mut recorders: Vec<R> = numbers.clone().map(make).collect();
    let mut acceptance = vec![0.0; count];
    let mut energies = vec![0.0; count * terms];
    let stride = glance(sites);
    let mut measure = |states: &[u8], step: u64| -> Result<Vec<f64>> {
        target.energies(states, &mut energies)?;
        for (walker, (x, row)) in
            states.chunks_exact(sites).zip(energies.chunks_exact(terms)).enumerate()
        {
            let weighted = model.lambda.iter().zip(row).filter(|(weight, _)| **weight != 0.0);
            let value: f64 = weighted.map(|(weight, energy)| weight * energy).sum();
            if !value.is_finite() {
                let (what, state) = ("potential".into(), show_state(x));
                return Err(Error::NonFinite { what, value, seed, walker, step, state });
            }
        }
        Ok(energies.clone())
    };
    measure(&states, 0)?;
    let mut done = 0;
    while done < total {
        if progress.stopped() {
            if done < settings.burn_in + settings.thin {
                return Err(Error::Interrupted);
            }
            break;
        }
        let step = done;
        let stream = |number: usize| Stream::new(seed, Purpose::Move, number as u32, step);
        let mut draws: Vec<Stream> = numbers.clone().map(stream).collect();
        let made = sweep(rule, model, &mut states, &mut draws)?;
        done += 1;
        let after = done.saturating_sub(settings.burn_in);
        if after > 0 {
            acceptance.iter_mut().zip(made).for_each(|(sum, own)| *sum += own);
        }
        let kept = after > 0 && after.is_multiple_of(settings.thin);
        if kept || done.is_multiple_of(stride) || done == total {
            let energies = measure(&states, step)?;
            let rows = states.chunks_exact(sites).zip(energies.chunks_exact(terms));
            for (recorder, (x, row)) in recorders.iter_mut().zip(rows).filter(|_| kept) {
                recorder.record_with(x, row);
            }
        }
        progress.advance(count as u64);
    }
    let steps = done.saturating_sub(settings.burn_in);
    let outcome = |((recorder, acceptance), x): ((R, f64), &[u8])| ChainOutcome {
        recorder,
        steps,
        acceptance: acceptance / steps.max(1) as f64,
        energy_calls: calls * steps as f64,
        last: x.to_vec(),
    };
    let chains = recorders.into_iter().zip(acceptance).zip(states.chunks_exact(sites));
    Ok(chains.map(outcome).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::NoProgress;
    use crate::mcmc::{HeatBath, Kernel, Metropolis, run_chains};
    use crate::target::{Boundary, Lattice, Pairwise};

    /// The states of a chain, one after the other.
    struct States(Vec<u8>);

    impl Recorder for States {
        fn record(&mut self, x: &[u8]) {
            self.0.extend_from_slice(x);
        }
    }

    fn compare<K: Kernel + Sync>(target: &dyn Target, rule: Rule, kernel: &K) {
        let lambda = vec![0.4; target.terms()];
        let model = Density::new(target, &lambda);
        let settings = ChainSettings { chains: 5, burn_in: 3, steps: 8, thin: 2, seed: 7 };
        let moves = (rule, kernel.energy_calls(target.q()));
        let make = |_| States(Vec::new());
        let together = run_lockstep_chains(&model, moves, &settings, make, &NoProgress).unwrap();
        let apart = run_chains(&model, kernel, &settings, make, &NoProgress).unwrap();
        for (a, b) in together.iter().zip(&apart) {
            assert_eq!((&a.recorder.0, &a.last, a.steps), (&b.recorder.0, &b.last, b.steps));
            assert!((a.acceptance - b.acceptance).abs() < 1e-12);
            assert_eq!(a.energy_calls, b.energy_calls);
        }
    }

    #[test]
    fn chains_in_lockstep_are_chains() {
        let lattice = || Lattice::new(&[3, 4], Boundary::Periodic).unwrap();
        for target in [
            Pairwise::ising(lattice(), 1.0, 0.2).unwrap(),
            Pairwise::potts(lattice(), 3, 1.0, 0.2).unwrap(),
        ] {
            compare(&target, Rule::HeatBath, &HeatBath::new(&target).unwrap());
            compare(&target, Rule::Metropolis, &Metropolis::new(&target).unwrap());
        }
    }

    #[test]
    fn a_stop_leaves_chains_of_equal_length() {
        struct After(u64, std::sync::atomic::AtomicU64);
        impl Progress for After {
            fn advance(&self, done: u64) {
                self.1.fetch_add(done, std::sync::atomic::Ordering::Relaxed);
            }
            fn stopped(&self) -> bool {
                self.1.load(std::sync::atomic::Ordering::Relaxed) >= self.0
            }
        }
        let lattice = Lattice::new(&[3, 3], Boundary::Periodic).unwrap();
        let target = Pairwise::ising(lattice, 1.0, 0.0).unwrap();
        let model = Density::new(&target, &[0.4]);
        let settings = ChainSettings { chains: 2, burn_in: 2, steps: 10, thin: 1, seed: 1 };
        let run = |steps: u64| {
            let stop = After(2 * steps, Default::default());
            let make = |_| States(Vec::new());
            run_lockstep_chains(&model, (Rule::HeatBath, 9.0), &settings, make, &stop)
        };
        assert!(matches!(run(2), Err(Error::Interrupted)));
        let stopped = run(6).unwrap();
        assert!(stopped.iter().all(|chain| chain.steps == 4 && chain.recorder.0.len() == 4 * 9));
    }
}
