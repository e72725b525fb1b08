//! Energies that are functions of many states at once, as array languages and accelerators have them.

use std::sync::{Mutex, PoisonError};

use super::{Lattice, Target, TargetIdentity, initial_state, show_state};
use crate::{Error, Result};

/// Energies of states `[state * sites + site]`, one number for each.
pub type BatchEnergies = Box<dyn Fn(&[u8], &mut [f64]) -> Result<()> + Send + Sync>;

/// Changes of the energies of states when a site becomes any value: `out[state * q + value]`. What is written for the value in place is not read.
pub type BatchChanges = Box<dyn Fn(&[u8], usize, &mut [f64]) -> Result<()> + Send + Sync>;

/// States, and sites at the most, that changes are checked at.
const CHECKED: u32 = 16;

/// Most values of the states of one call.
const MOST_VALUES: usize = 1 << 25;

/// A target whose energy is a function of many states at once, with one energy term.
///
/// Sweeps in lockstep ask for the changes at one site after the other. Without a function for changes they need one energy for every value other than the
/// one in place: that of the state in place is known from the call before, since the states differ at that call's site alone.
///
/// ```
/// use leaps::prelude::*;
/// use leaps::target::BatchEnergy;
///
/// // As many ones as possible, and no two of them beside each other.
/// let energy = BatchEnergy::new("hard rods", 8, 2, |states, out| {
///     for (x, out) in states.chunks_exact(8).zip(out) {
///         let pairs = x.windows(2).filter(|w| w[0] + w[1] == 2).count();
///         *out = 3.0 * pairs as f64 - x.iter().map(|&x| f64::from(x)).sum::<f64>();
///     }
///     Ok(())
/// });
/// let run = Annealing::ais(Problem::new(energy, 1.0)?).walkers(500).run()?;
/// assert!(run.log_z.z().unwrap().abs() < 5.0); // beside the exact value
/// # Ok::<(), leaps::Error>(())
/// ```
pub struct BatchEnergy {
    name: String,
    version: Option<String>,
    sites: usize,
    q: usize,
    lattice: Option<Lattice>,
    energies: BatchEnergies,
    changes: Option<BatchChanges>,
    last: Mutex<Last>,
}

/// The states of the last call for changes at a site, and their energies with every value there, `[state * q + value]`.
#[derive(Default)]
struct Last {
    states: Vec<u8>,
    site: usize,
    energies: Vec<f64>,
}

impl Last {
    /// The energies of states that differ from the last ones at the last site at most.
    fn known(&self, states: &[u8], sites: usize, q: usize) -> Option<Vec<f64>> {
        if states.is_empty() || states.len() != self.states.len() {
            return None;
        }
        let site = self.site;
        let rows = states.chunks_exact(sites).zip(self.states.chunks_exact(sites));
        let energies = self.energies.chunks_exact(q);
        rows.zip(energies)
            .map(|((x, last), energies)| {
                let same = x[..site] == last[..site] && x[site + 1..] == last[site + 1..];
                same.then(|| energies[x[site] as usize])
            })
            .collect()
    }
}

impl BatchEnergy {
    /// A target of `sites` sites with `q` values each, called `name` in results and models.
    pub fn new(
        name: impl Into<String>,
        sites: usize,
        q: usize,
        energies: impl Fn(&[u8], &mut [f64]) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        BatchEnergy {
            name: name.into(),
            version: None,
            sites,
            q,
            lattice: None,
            energies: Box::new(energies),
            changes: None,
            last: Mutex::default(),
        }
    }

    /// With a function for the changes at a site, where that costs less than `q - 1` energies.
    pub fn with_changes(
        self,
        changes: impl Fn(&[u8], usize, &mut [f64]) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        BatchEnergy { changes: Some(Box::new(changes)), ..self }
    }

    /// With sites on a lattice, whose correlations are measured. Panics if it has another number of sites.
    pub fn on_lattice(self, lattice: Lattice) -> Self {
        assert_eq!(lattice.sites(), self.sites, "one site of the lattice for each of the target");
        BatchEnergy { lattice: Some(lattice), ..self }
    }

    /// With a version, which models of it are bound to.
    pub fn version(self, version: impl Into<String>) -> Self {
        BatchEnergy { version: Some(version.into()), ..self }
    }

    /// Refuse changes that are not those of the energies, by some states and sites: weights would be wrong without a sign of it.
    ///
    /// # Errors
    /// The first change that differs, and those of the functions.
    pub fn check(&self) -> Result<()> {
        let Some(changes) = &self.changes else { return Ok(()) };
        let (sites, q) = (self.sites, self.q);
        let states: Vec<u8> = (0..CHECKED).flat_map(|w| initial_state(self, 0, w)).collect();
        let mut known = vec![0.0; CHECKED as usize];
        self.evaluate(&states, &mut known)?;
        let mut out = vec![0.0; known.len() * q];
        for turn in 0..sites.min(CHECKED as usize) {
            let site = turn * sites / sites.min(CHECKED as usize);
            changes(&states, site, &mut out)?;
            let all = self.all_values(&states, site, &known)?;
            for (k, (found, energies)) in out.chunks_exact(q).zip(all.chunks_exact(q)).enumerate() {
                let old = states[k * sites + site] as usize;
                for value in (0..q).filter(|&value| value != old) {
                    let change = energies[value] - known[k];
                    let scale = 1.0 + energies[value].abs().max(known[k].abs());
                    // Also where one of them is no number.
                    if (found[value] - change).abs() <= 1e-5 * scale || change.is_nan() {
                        continue;
                    }
                    let what = format!("{} where site {site} becomes {value}", found[value]);
                    let condition = format!("the change of the energy, {change}");
                    let state = show_state(&states[k * sites..][..sites]);
                    let advice = format!("the state is {state}; or leave it out");
                    return Err(Error::invalid("delta", what, condition, advice));
                }
            }
        }
        Ok(())
    }

    /// Energies of any number of states, in calls of a bounded size.
    fn evaluate(&self, states: &[u8], out: &mut [f64]) -> Result<()> {
        let rows = (MOST_VALUES / self.sites.max(1)).max(1);
        let calls = states.chunks(rows * self.sites).zip(out.chunks_mut(rows));
        calls.into_iter().try_for_each(|(states, out)| (self.energies)(states, out))
    }

    /// Energies at every value of `site`, those in place known.
    fn all_values(&self, states: &[u8], site: usize, known: &[f64]) -> Result<Vec<f64>> {
        let (sites, q) = (self.sites, self.q);
        let count = known.len();
        let mut others = states.repeat(q - 1);
        let value = |old: u8, turn: usize| ((old as usize + 1 + turn) % q) as u8;
        for (turn, part) in others.chunks_exact_mut(states.len().max(1)).enumerate() {
            part.chunks_exact_mut(sites).for_each(|x| x[site] = value(x[site], turn));
        }
        let mut found = vec![0.0; count * (q - 1)];
        self.evaluate(&others, &mut found)?;
        let mut all = vec![0.0; count * q];
        for (k, row) in all.chunks_exact_mut(q).enumerate() {
            let old = states[k * sites + site];
            row[old as usize] = known[k];
            for turn in 0..q - 1 {
                row[value(old, turn) as usize] = found[turn * count + k];
            }
        }
        Ok(all)
    }

    /// Changes when one site of one state becomes any value, for every site. Fails with the function.
    fn try_changes(&self, weight: f64, x: &[u8], out: &mut [f64]) -> Result<()> {
        let (sites, q) = (self.sites, self.q);
        let mut states = x.repeat(1 + sites * (q - 1));
        for (k, y) in states.chunks_exact_mut(sites).skip(1).enumerate() {
            let (site, turn) = (k / (q - 1), k % (q - 1));
            y[site] = ((x[site] as usize + 1 + turn) % q) as u8;
        }
        let mut energies = vec![0.0; 1 + sites * (q - 1)];
        self.evaluate(&states, &mut energies)?;
        let before = weight * energies[0];
        for (k, after) in energies[1..].iter().enumerate() {
            let (site, turn) = (k / (q - 1), k % (q - 1));
            let value = (x[site] as usize + 1 + turn) % q;
            out[site * q + x[site] as usize] = 0.0;
            out[site * q + value] = weight * after - before;
        }
        Ok(())
    }
}

impl Target for BatchEnergy {
    fn sites(&self) -> usize {
        self.sites
    }

    fn q(&self) -> usize {
        self.q
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn identity(&self) -> TargetIdentity {
        TargetIdentity::Custom { name: self.name.clone(), version: self.version.clone() }
    }

    fn term_name(&self, _: usize) -> String {
        "energy".to_owned()
    }

    /// NaN if the function fails.
    fn energy(&self, _: usize, x: &[u8]) -> f64 {
        let mut out = [f64::NAN];
        match (self.energies)(x, &mut out) {
            Ok(()) => out[0],
            Err(_) => f64::NAN,
        }
    }

    fn change(&self, lambda: &[f64], x: &mut [u8], site: usize, value: u8) -> f64 {
        let old = x[site];
        let mut both = x.repeat(2);
        both[self.sites + site] = value;
        let mut energies = [f64::NAN; 2];
        match lambda[0] {
            _ if value == old => 0.0,
            0.0 => 0.0,
            weight => match (self.energies)(&both, &mut energies) {
                Ok(()) => weight * energies[1] - weight * energies[0],
                Err(_) => f64::NAN,
            },
        }
    }

    fn changes(&self, lambda: &[f64], x: &mut [u8], out: &mut [f64]) {
        out.fill(0.0);
        if lambda[0] != 0.0 && self.try_changes(lambda[0], x, out).is_err() {
            out.fill(f64::NAN);
        }
    }

    fn prefers_batches(&self) -> bool {
        true
    }

    fn energies(&self, states: &[u8], out: &mut [f64]) -> Result<()> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match last.known(states, self.sites, self.q) {
            Some(known) => out.copy_from_slice(&known),
            None => {
                drop(last);
                self.evaluate(states, out)?;
            }
        }
        Ok(())
    }

    fn changes_many(
        &self,
        lambda: &[f64],
        states: &mut [u8],
        site: usize,
        out: &mut [f64],
    ) -> Result<()> {
        let (sites, q, weight) = (self.sites, self.q, lambda[0]);
        if let Some(changes) = &self.changes {
            changes(states, site, out)?;
            let rows = out.chunks_exact_mut(q).zip(states.chunks_exact(sites));
            for (row, x) in rows {
                row.iter_mut().for_each(|change| *change *= weight);
                row[x[site] as usize] = 0.0;
            }
            return Ok(());
        }
        let mut known = vec![0.0; states.len() / sites];
        self.energies(states, &mut known)?;
        let all = self.all_values(states, site, &known)?;
        let rows = out.chunks_exact_mut(q).zip(all.chunks_exact(q));
        for ((row, energies), x) in rows.zip(states.chunks_exact(sites)) {
            let (old, before) = (x[site] as usize, weight * energies[x[site] as usize]);
            let changes = energies.iter().map(|after| weight * after - before);
            row.iter_mut().zip(changes).for_each(|(out, change)| *out = change);
            row[old] = 0.0;
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.states.clear();
        last.states.extend_from_slice(states);
        (last.site, last.energies) = (site, all);
        Ok(())
    }

    fn lattice(&self) -> Option<&Lattice> {
        self.lattice.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A clock model of three values in a field, and how many states were evaluated.
    fn chain(sites: usize) -> (BatchEnergy, Arc<AtomicUsize>) {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        let target = BatchEnergy::new("chain", sites, 3, move |states, out| {
            counted.fetch_add(out.len(), Ordering::Relaxed);
            for (x, out) in states.chunks_exact(sites).zip(out) {
                *out = plain(x);
            }
            Ok(())
        });
        (target, count)
    }

    fn plain(x: &[u8]) -> f64 {
        let pairs = x.windows(2).map(|w| (f64::from(w[0]) - 1.3 * f64::from(w[1])).cos());
        pairs.sum::<f64>() + 0.3 * f64::from(x[0])
    }

    struct Plain(usize);

    impl Target for Plain {
        fn sites(&self) -> usize {
            self.0
        }
        fn q(&self) -> usize {
            3
        }
        fn energy(&self, _: usize, x: &[u8]) -> f64 {
            plain(x)
        }
    }

    #[test]
    fn batches_say_what_single_states_say_with_one_energy_for_each_other_value() {
        let (target, count) = chain(5);
        let mut states: Vec<u8> = (0..35).map(|i| (i * i % 7 % 3) as u8).collect();
        let (mut many, mut one) = (vec![0.0; 7 * 3], vec![0.0; 7 * 3]);
        for sweep in 0..2 {
            for site in 0..5 {
                let before = count.load(Ordering::Relaxed);
                target.changes_many(&[0.7], &mut states, site, &mut many).unwrap();
                let first = sweep == 0 && site == 0;
                let evaluated = count.load(Ordering::Relaxed) - before;
                assert_eq!(evaluated, if first { 21 } else { 14 }, "sweep {sweep} site {site}");
                Plain(5).changes_many(&[0.7], &mut states, site, &mut one).unwrap();
                assert_eq!(many, one);
                states.chunks_exact_mut(5).enumerate().for_each(|(k, x)| {
                    x[site] = ((x[site] as usize + k + sweep) % 3) as u8;
                });
            }
        }
        let before = count.load(Ordering::Relaxed);
        let mut energies = vec![0.0; 7];
        target.energies(&states, &mut energies).unwrap();
        assert_eq!(count.load(Ordering::Relaxed), before, "they are known");
        let expected: Vec<f64> = states.chunks_exact(5).map(plain).collect();
        assert_eq!(energies, expected);
        states[7] = (states[7] + 1) % 3;
        target.energies(&states, &mut energies).unwrap();
        assert_eq!(energies[1], plain(&states[5..10]), "other states are not");
        let mut x = states[..5].to_vec();
        let (mut all, mut same) = (vec![0.0; 15], vec![0.0; 15]);
        target.changes(&[0.7], &mut x, &mut all);
        Plain(5).changes(&[0.7], &mut x, &mut same);
        assert_eq!(all, same);
        let changed = target.change(&[0.7], &mut x, 2, 2);
        assert_eq!(changed, Plain(5).change(&[0.7], &mut x, 2, 2));
    }

    #[test]
    fn changes_that_are_not_those_of_the_energies_are_refused() {
        let with = |factor: f64| {
            chain(5).0.with_changes(move |states, site, out| {
                Plain(5).changes_many(&[factor], &mut states.to_vec(), site, out)
            })
        };
        with(1.0).check().unwrap();
        for wrong in [0.0, -1.0, 1.01, f64::NAN] {
            let error = with(wrong).check().unwrap_err().to_string();
            assert!(
                error.contains("delta") && error.contains("the change of the energy"),
                "{error}"
            );
        }
    }

    #[test]
    fn failures_come_out() {
        let fails = BatchEnergy::new("none", 3, 2, |_, _| Err(Error::Interrupted));
        assert!(fails.energies(&[0, 1, 0], &mut [0.0]).is_err());
        assert!(fails.changes_many(&[1.0], &mut [0, 1, 0], 0, &mut [0.0; 2]).is_err());
        assert!(fails.energy(0, &[0, 1, 0]).is_nan());
        assert!(fails.change(&[1.0], &mut [0, 1, 0], 0, 1).is_nan());
        let mut out = [0.0; 6];
        fails.changes(&[1.0], &mut [0, 1, 0], &mut out);
        assert!(out.iter().all(|change| change.is_nan()));
    }
}
