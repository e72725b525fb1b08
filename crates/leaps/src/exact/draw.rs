//! Independent exact samples: from a table of all states, or by walking a transfer matrix back.
//!
//! The pass along a strip leaves, for every configuration of the last `width` sites, the summed weight of
//! all pasts. Backwards, the value of a site that was summed over is drawn given those that came after it:
//! its probability is the weight of the past with that value times the bond that it had to the newest site.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::band::{Domain, Entry, Linear, Log};
use super::enumerate;
use super::plan::Plan;
use super::strip::{Fixed, Pass, Strip};
use super::transfer::{self, affordable, is_linear};
use super::{Method, check_weights, tables};
use crate::device::{Draw, Progress, Purpose, Stream};
use crate::target::Target;
use crate::{Error, Result};

/// Samples between two looks at the progress.
const CHECKED: usize = 256;

/// `samples` independent states of $\rho(x) = e^{-U(x)}/Z$ with $U = \sum_k \lambda_k E_k$,
/// `[sample * sites + site]`, and how they were found.
///
/// By enumeration up to $2^{20}$ states, else by transfer matrix, else by enumeration up to $2^{25}$ states.
/// Sample `k` depends on the seed and on `k` alone.
///
/// # Errors
/// [`Error::NotApplicable`] with a reason for each method; [`Error::Invalid`] for wrong weights,
/// [`Error::NonFinite`] for energies that are not numbers, [`Error::Interrupted`] through `progress`.
///
/// # Example
/// ```
/// use leaps::device::NoProgress;
/// use leaps::exact;
/// use leaps::target::{Boundary, Lattice, Pairwise};
///
/// let lattice = Lattice::new(&[6, 8], Boundary::Free)?;
/// let ising = Pairwise::ising(lattice, 1.0, 0.1)?;
/// let (states, _) = exact::draw(&ising, &[0.5, 0.5], 100, 1, &NoProgress)?;
/// assert_eq!(states.len(), 100 * 48);
/// # Ok::<(), leaps::Error>(())
/// ```
pub fn draw(
    target: &dyn Target,
    lambda: &[f64],
    samples: usize,
    seed: u64,
    progress: &dyn Progress,
) -> Result<(Vec<u8>, Method)> {
    check_weights(target, lambda)?;
    if u32::try_from(samples).is_err() {
        let condition = "at most 2^32 - 1";
        return Err(Error::invalid("samples", samples, condition, "draw with several seeds"));
    }
    let few = enumerate::states(target).is_some_and(|states| states <= enumerate::MAX_TABLE);
    let max_bytes = transfer::room();
    let drawing = Drawing { target, lambda, samples, seed, max_bytes, progress };
    let enumeration = || Ok((drawing.by_table()?, Method::Enumeration));
    let strip = || Ok((drawing.by_strip()?, Method::TransferMatrix));
    if few {
        return enumeration();
    }
    match strip() {
        Err(no_strip @ Error::NotApplicable { .. }) => match enumeration() {
            Err(no_table @ Error::NotApplicable { .. }) => {
                let reasons = format!("{no_strip}; {no_table}");
                Err(Error::not_applicable("drawing exact samples", reasons))
            }
            result => result,
        },
        result => result,
    }
}

/// Whether samples can be drawn with so much effort: 1 is well under a second, 20 some seconds.
pub fn quick_to_draw(target: &dyn Target, effort: f64) -> bool {
    if enumerate::states(target).is_some_and(|states| states <= enumerate::MAX_TABLE) {
        return true;
    }
    let quick = |plan: transfer::Estimate| plan.work <= effort * super::LITTLE_WORK;
    transfer::estimate(target).is_ok_and(quick)
}

/// A strip that is walked along, and back.
pub(super) trait Walk: Sync {
    /// Some ordered sites are done.
    type Pass: Clone + Default + Send;
    /// The fixed sites at some values.
    type Fixed: Sync;

    /// The order of its sites.
    fn plan(&self) -> &Plan;
    /// The weight of all states with the fixed sites in a configuration, as a logarithm.
    fn weigh(&self, code: u64, pass: &mut Self::Pass, progress: &dyn Progress) -> Result<f64>;
    /// The fixed sites in a configuration, and their values.
    fn fix(&self, code: u64) -> (Self::Fixed, Vec<usize>);
    /// Before the first site.
    fn begin(&self, pass: &mut Self::Pass);
    /// Sum over one more site.
    fn forth(&self, fixed: &Self::Fixed, pass: &mut Self::Pass);
    /// What is kept of every configuration of a band for the way back.
    fn keep(&self, pass: &Self::Pass) -> Vec<f64>;
    /// Weights of the configurations of the last band, the largest of them 1.
    fn ends(&self, pass: &Self::Pass) -> Vec<f64>;
    /// Weights of the values of the site that left when ordered site `step.site` came with its value, given all others.
    fn back(&self, fixed: &Self::Fixed, band: &[f64], step: &Back, weights: &mut [f64]);
}

/// A step back.
pub(super) struct Back {
    /// The ordered site whose value is known.
    pub site: usize,
    /// Its value.
    pub value: usize,
    /// The configuration of the band before it but for the oldest site.
    pub rest: usize,
}

impl<D: Domain> Walk for Strip<'_, D> {
    type Pass = Pass;
    type Fixed = Fixed;

    fn plan(&self) -> &Plan {
        self.plan
    }

    fn weigh(&self, code: u64, pass: &mut Pass, progress: &dyn Progress) -> Result<f64> {
        self.sum_given(code, pass, progress).map(|total| total.weight)
    }

    fn fix(&self, code: u64) -> (Fixed, Vec<usize>) {
        let fixed = self.fixed(code);
        let values = fixed.values.clone();
        (fixed, values)
    }

    fn begin(&self, pass: &mut Pass) {
        pass.restart::<D>();
    }

    fn forth(&self, fixed: &Fixed, pass: &mut Pass) {
        self.advance(fixed, pass);
    }

    fn keep(&self, pass: &Pass) -> Vec<f64> {
        relative::<D>(&pass.band)
    }

    fn ends(&self, pass: &Pass) -> Vec<f64> {
        relative::<D>(&pass.band)
    }

    fn back(&self, _: &Fixed, band: &[f64], step: &Back, weights: &mut [f64]) {
        // All else about the site that left is the same for each of its values.
        let bond = (-self.oldest[step.site].u).exp();
        let stride = band.len() / weights.len();
        for (oldest, weight) in weights.iter_mut().enumerate() {
            let factor = if oldest == step.value { bond } else { 1.0 };
            *weight = band[oldest * stride + step.rest] * factor;
        }
    }
}

/// What is to be drawn.
struct Drawing<'a> {
    target: &'a dyn Target,
    lambda: &'a [f64],
    samples: usize,
    seed: u64,
    max_bytes: f64,
    progress: &'a dyn Progress,
}

/// A sample on its way back.
struct Sample {
    number: usize,
    stream: Stream,
    x: Vec<u8>,
    /// The configuration of the last `width` sites that are not drawn yet.
    index: usize,
}

impl Drawing<'_> {
    fn stream(&self, sample: usize) -> Stream {
        Stream::new(self.seed, Purpose::Exact, sample as u32, 0)
    }

    fn by_table(&self) -> Result<Vec<u8>> {
        let (sites, q) = (self.target.sites(), self.target.q());
        let law = enumerate::law_of(self.target, self.lambda, enumerate::MAX_STATES)?;
        let sums = cumulative(&law);
        let mut states = vec![0; self.samples * sites];
        states.par_chunks_exact_mut(sites).enumerate().try_for_each(|(sample, x)| {
            if sample % CHECKED == 0 {
                self.progress.check()?;
            }
            let mut rest = choose(&sums, &mut self.stream(sample));
            for site_value in x {
                *site_value = (rest % q) as u8;
                rest /= q;
            }
            Ok::<(), Error>(())
        })?;
        Ok(states)
    }

    fn by_strip(&self) -> Result<Vec<u8>> {
        if let Some((model, plan, cost)) = transfer::affordable_tables(self.target)? {
            return self.draw_on(&tables::Strip::new(model, &plan, self.lambda), cost.bytes);
        }
        let (model, plan, cost) = affordable(self.target)?;
        let couplings = model.total_couplings(self.lambda);
        if is_linear(model, &plan, &couplings) {
            self.draw_on(&Strip::<Linear>::new(model, &plan, self.lambda, &couplings), cost.bytes)
        } else {
            self.draw_on(&Strip::<Log>::new(model, &plan, self.lambda, &couplings), cost.bytes)
        }
    }

    fn draw_on<W: Walk>(&self, strip: &W, bytes: f64) -> Result<Vec<u8>> {
        let (plan, sites, progress) = (strip.plan(), self.target.sites(), self.progress);
        let conditions = plan.conditions() as usize;
        let steps = plan.order.len() as u64;
        progress
            .total(steps.saturating_mul(conditions as u64 + conditions.min(self.samples) as u64));
        // Which configuration of the fixed sites each sample has.
        let weigh = |pass: &mut W::Pass, code: usize| strip.weigh(code as u64, pass, progress);
        let weights: Result<Vec<f64>> = match conditions {
            1 => Ok(vec![0.0]),
            _ if rayon::current_num_threads() as f64 * bytes <= self.max_bytes => {
                (0..conditions).into_par_iter().map_init(W::Pass::default, weigh).collect()
            }
            _ => {
                let mut pass = W::Pass::default();
                (0..conditions).map(|code| weigh(&mut pass, code)).collect()
            }
        };
        let weights = weights?;
        let top = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if !top.is_finite() {
            let (what, state) = ("log Z".to_owned(), "summed over".to_owned());
            return Err(Error::NonFinite {
                what,
                value: top,
                seed: self.seed,
                walker: 0,
                step: 0,
                state,
            });
        }
        let weights: Vec<f64> = weights.iter().map(|weight| (weight - top).exp()).collect();
        let sums = cumulative(&weights);
        let mut groups: BTreeMap<usize, Vec<Sample>> = BTreeMap::new();
        for number in 0..self.samples {
            if number % CHECKED == 0 {
                progress.check()?;
            }
            let mut stream = self.stream(number);
            let code = choose(&sums, &mut stream);
            let sample = Sample { number, stream, x: vec![0; sites], index: 0 };
            groups.entry(code).or_default().push(sample);
        }
        let finish = |(code, mut samples): (usize, Vec<Sample>)| -> Result<Vec<Sample>> {
            let (fixed, values) = strip.fix(code as u64);
            self.walk_back(strip, &fixed, &mut samples)?;
            for Sample { stream, x, .. } in &mut samples {
                for (&site, &site_value) in plan.fixed.iter().zip(&values) {
                    x[site] = site_value as u8;
                }
                if plan.symmetric {
                    // The first fixed site was held at value 0; all values are alike.
                    let turn = stream.below(plan.q);
                    x.iter_mut().for_each(|v| *v = ((*v as usize + turn) % plan.q) as u8);
                }
            }
            Ok(samples)
        };
        let bands = steps as f64 * plan.states() * size_of::<f64>() as f64;
        let side_by_side = rayon::current_num_threads() as f64 * bands <= self.max_bytes;
        let drawn: Result<Vec<Vec<Sample>>> = match side_by_side {
            true => groups.into_par_iter().map(finish).collect(),
            false => groups.into_iter().map(finish).collect(),
        };
        let mut states = vec![0; self.samples * sites];
        for Sample { number, x, .. } in drawn?.into_iter().flatten() {
            states[number * sites..][..sites].copy_from_slice(&x);
        }
        Ok(states)
    }

    /// Draw the ordered sites of samples whose fixed sites are given, from the last to the first.
    fn walk_back<W: Walk>(
        &self,
        strip: &W,
        fixed: &W::Fixed,
        samples: &mut [Sample],
    ) -> Result<()> {
        let steps = strip.plan().order.len();
        // Bands are held for a stretch of sites at a time, and made again from the one before it.
        let band = strip.plan().states() * size_of::<f64>() as f64;
        let all = steps as f64 * band <= self.max_bytes;
        let stretch = if all { steps } else { (steps as f64).sqrt().ceil() as usize };
        let mut pass = W::Pass::default();
        strip.begin(&mut pass);
        let mut starts = Vec::new();
        let mut bands: Vec<Vec<f64>> = Vec::new();
        for done in 0..steps {
            self.progress.check()?;
            if done % stretch == 0 {
                starts.push((done, pass.clone()));
                bands.clear();
            }
            bands.push(strip.keep(&pass));
            strip.forth(fixed, &mut pass);
            self.progress.advance(1);
        }
        let sums = cumulative(&strip.ends(&pass));
        samples.par_iter_mut().for_each(|sample| sample.index = choose(&sums, &mut sample.stream));
        drop(sums);
        while let Some((first, mut pass)) = starts.pop() {
            if bands.is_empty() {
                for _ in 0..stretch {
                    self.progress.check()?;
                    bands.push(strip.keep(&pass));
                    strip.forth(fixed, &mut pass);
                }
            }
            samples.par_iter_mut().try_for_each(|sample| {
                if sample.number % CHECKED == 0 {
                    self.progress.check()?;
                }
                let mut weights = vec![0.0; strip.plan().q];
                for (offset, band) in bands.iter().enumerate().rev() {
                    let site = first + offset;
                    let (value, rest) =
                        (sample.index % weights.len(), sample.index / weights.len());
                    sample.x[strip.plan().order[site]] = value as u8;
                    sample.index = rest;
                    if site >= strip.plan().width {
                        strip.back(fixed, band, &Back { site, value, rest }, &mut weights);
                        let oldest = one_of(&weights, &mut sample.stream);
                        sample.index = oldest * (band.len() / weights.len()) + rest;
                    }
                }
                Ok::<(), Error>(())
            })?;
            bands.clear();
        }
        Ok(())
    }
}

/// Weights of a band, the largest of them 1.
pub(super) fn relative<D: Domain>(band: &[Entry]) -> Vec<f64> {
    let log = |entry: &Entry| D::to_log(entry.weight);
    let top = band.iter().map(log).fold(f64::NEG_INFINITY, f64::max);
    band.iter().map(|entry| (log(entry) - top).exp()).collect()
}

/// One of a few values with these weights.
fn one_of(weights: &[f64], stream: &mut Stream) -> usize {
    let mut left = stream.uniform() * weights.iter().sum::<f64>();
    let mut chosen = 0;
    while chosen + 1 < weights.len() && left >= weights[chosen] {
        left -= weights[chosen];
        chosen += 1;
    }
    chosen
}

/// Running sums of weights.
fn cumulative(weights: &[f64]) -> Vec<f64> {
    let mut sum = 0.0;
    let mut add = |weight: &f64| {
        sum += weight;
        sum
    };
    weights.iter().map(&mut add).collect()
}

/// An index with probability proportional to its weight; one of weight 0 is never chosen.
fn choose(sums: &[f64], stream: &mut Stream) -> usize {
    let total = sums.last().copied().unwrap_or(0.0);
    let at = stream.uniform() * total;
    let found = sums.partition_point(|&sum| sum <= at);
    // Rounding may lead to the end of the list.
    if found < sums.len() { found } else { sums.partition_point(|&sum| sum < total) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::NoProgress;
    use crate::observe::Order;
    use crate::target::{Boundary, ClusterTable, Lattice, LatticeModel, Pairwise};

    fn drawing<'a>(target: &'a dyn Target, lambda: &'a [f64], samples: usize) -> Drawing<'a> {
        Drawing { target, lambda, samples, seed: 3, max_bytes: 4e9, progress: &NoProgress }
    }

    #[test]
    fn bands_that_are_made_again_give_the_same_samples() {
        for boundary in [Boundary::Free, Boundary::Periodic] {
            let lattice = Lattice::new(&[4, 7], boundary).unwrap();
            let model = Pairwise::potts(lattice, 3, 1.0, 0.2).unwrap();
            let whole = drawing(&model, &[0.8], 50);
            let parts = Drawing { max_bytes: 0.0, ..drawing(&model, &[0.8], 50) };
            assert_eq!(whole.by_strip().unwrap(), parts.by_strip().unwrap());
        }
    }

    #[test]
    fn both_ways_have_the_law_of_the_target() {
        let lattice = |boundary| Lattice::new(&[2, 3], boundary).unwrap();
        let fields: Vec<f64> = (0..9).map(|i| 0.3 * f64::from(i).cos()).collect();
        let nine = Lattice::new(&[3, 3], Boundary::Periodic).unwrap();
        let glass = Pairwise::edwards_anderson(nine.clone(), crate::target::Disorder::Gaussian, 5);
        for model in [
            Pairwise::potts(lattice(Boundary::Free), 3, 0.9, 0.4).unwrap(),
            Pairwise::potts(lattice(Boundary::Periodic), 3, -0.7, 0.0).unwrap(),
            Pairwise::ising(nine, 1.0, 0.0).unwrap().with_fields(&fields).unwrap(),
            glass.unwrap(),
        ] {
            let lambda = vec![0.6; model.terms()];
            has_its_law(&model, &lambda);
        }
    }

    #[test]
    fn tables_and_clusters_have_the_law_of_the_target() {
        let number = |k: usize| ((k * 7919 + 13) % 101) as f64 / 37.0 - 1.2;
        let table = |n: usize, from: usize| (from..from + n).map(number).collect::<Vec<_>>();
        for boundary in [Boundary::Free, Boundary::Periodic] {
            for (shape, q) in [([2, 4], 2), ([3, 3], 2), ([2, 3], 3)] {
                let lattice = Lattice::new(&shape, boundary).unwrap();
                let three = [vec![0, 0], vec![1, 0], vec![1, -1]];
                let tables = vec![
                    ClusterTable::new("bonds", &[vec![0, 0], vec![0, 1]], table(q * q, 0)),
                    ClusterTable::new("three", &three, table(q * q * q, 9)),
                ];
                // A field at every site, and no two sites or values are alike.
                let fields: Vec<f64> = (0..lattice.sites() * q).map(|k| number(k + 80)).collect();
                let model = LatticeModel::new(lattice, q, tables).unwrap();
                let model = model.with_site_energies("sites", &fields).unwrap();
                assert!(model.pairwise().is_none());
                has_its_law(&model, &[0.5, 0.3, 0.4]);
            }
            // Values that turn into each other: the first of the fixed sites stays at 0.
            let lattice = Lattice::new(&[2, 3], boundary).unwrap();
            has_its_law(&LatticeModel::clock(lattice, 4, 0.8).unwrap(), &[1.2]);
        }
    }

    /// Compare samples of both ways with all states: chi-square of 4,000 samples; below one in a million by chance.
    fn has_its_law(model: &dyn Target, lambda: &[f64]) {
        let law = enumerate::law_of(model, lambda, enumerate::MAX_STATES).unwrap();
        let many = 4000;
        let ways = drawing(model, lambda, many);
        for states in [ways.by_table().unwrap(), ways.by_strip().unwrap()] {
            let mut counts = vec![0.0; law.len()];
            for x in states.chunks_exact(model.sites()) {
                let digits = x.iter().rev();
                counts[digits.fold(0, |n, &value| n * model.q() + value as usize)] += 1.0;
            }
            // States that are hardly expected count as one.
            let expected = |p: &f64| many as f64 * p;
            let (mut chi, mut cells, mut rest) = (0.0, 0.0, (0.0, 0.0));
            for (count, mean) in counts.iter().zip(law.iter().map(expected)) {
                if mean < 5.0 {
                    rest = (rest.0 + count, rest.1 + mean);
                } else {
                    chi += (count - mean) * (count - mean) / mean;
                    cells += 1.0;
                }
            }
            if rest.1 > 0.0 {
                chi += (rest.0 - rest.1) * (rest.0 - rest.1) / rest.1;
                cells += 1.0;
            }
            let freedom: f64 = cells - 1.0;
            let z = (chi - freedom) / (2.0 * freedom).sqrt();
            assert!(freedom > 10.0 && z.abs() < 6.0, "chi-square {chi} of {cells} cells");
        }
    }

    #[test]
    fn large_samples_have_the_moments_of_the_transfer_matrix() {
        let lattice = Lattice::new(&[8, 8], Boundary::Periodic).unwrap();
        let model = Pairwise::ising(lattice, 1.0, 0.05).unwrap();
        let lambda = vec![0.42; model.terms()];
        let exact = transfer::solve(&model, &lambda, &NoProgress).unwrap();
        let (states, method) = draw(&model, &lambda, 4000, 9, &NoProgress).unwrap();
        assert_eq!(method, Method::TransferMatrix);
        let energy = |x: &[u8]| (0..model.terms()).map(|term| model.energy(term, x)).sum::<f64>();
        let energies: Vec<f64> = states.chunks_exact(64).map(energy).collect();
        let mean = energies.iter().sum::<f64>() / 4000.0;
        let spread = energies.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / 4000.0;
        assert!((mean - exact.energy).abs() < 5.0 * (spread / 4000.0).sqrt(), "{mean}");
        assert!((spread * 0.42f64.powi(2) / exact.potential_variance - 1.0).abs() < 0.15);
        // A positive field turns spins down.
        let m = states.chunks_exact(64).map(|x| Order::of(x, 2).m).sum::<f64>() / 4000.0;
        assert!(m < -0.1, "{m}");
    }

    #[test]
    fn what_cannot_be_summed_over_is_refused() {
        let lattice = Lattice::new(&[40, 40], Boundary::Periodic).unwrap();
        let model = Pairwise::ising(lattice, 1.0, 0.1).unwrap();
        let error = draw(&model, &[0.4, 0.4], 1, 1, &NoProgress).unwrap_err().to_string();
        assert!(error.contains("transfer matrix") && error.contains("states"), "{error}");
    }
}
