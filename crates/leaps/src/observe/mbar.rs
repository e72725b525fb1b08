//! Free energies from all temperatures of a ladder together: the multistate Bennett acceptance ratio (MBAR). log Z of parallel tempering, and its error, come
//! from here.
//!
//! Shirts and Chodera 2008; with energies gathered in bins it is the multiple-histogram method of Ferrenberg and Swendsen 1989. With $N$ states at each of
//! the inverse temperatures $\beta_k$ and $f_k = -\log Z(\beta_k)$, the shares
//!
//! $$p_k(H) = \frac{e^{f_k - \beta_k H}}{\sum_j e^{f_j - \beta_j H}}$$
//!
//! of every rung in all states must sum to $N$. These are the equations of the minimum of a convex function, which Newton's method finds. $f_0$ is known:
//! the first rung is at infinite temperature. At any $\beta$ the states then have the weights $e^{-\beta H} / (N \sum_j e^{f_j - \beta_j H})$, whose sum is $Z(\beta)$.
//!
//! Errors are those of a jackknife over groups, the ladders, which are independent of each other as rungs are not. Without a group the equations change by its
//! shares $g$, and their solution by $\frac{G}{G-1} \Sigma^{-1} g$ with the matrix $\Sigma$ of second derivatives: one step of Newton's method.

use super::ladder::{COLUMNS, LadderTable};
use super::{Jackknife, Layout};
use crate::{Error, Result};

/// Steps of Newton's method; ten are usual.
const STEPS: usize = 200;
/// Gradients below this part of a rung's states are none.
const CONVERGED: f64 = 1e-10;

/// All states of a ladder with what makes weights of them.
#[derive(Clone, Debug)]
pub struct Mbar {
    betas: Vec<f64>,
    /// $f_k$.
    free: Vec<f64>,
    /// States of a rung, all groups together.
    per_rung: f64,
    /// Of every bin its mean energy, its sums, and $\log \sum_j e^{f_j - \beta_j H}$.
    bins: Vec<Bin>,
    groups: Vec<Group>,
}

#[derive(Clone, Debug)]
struct Bin {
    energy: f64,
    sums: [f64; COLUMNS],
    log_mixture: f64,
}

#[derive(Clone, Debug)]
struct Group {
    /// Sums of the bins that it has been in.
    sums: Vec<(usize, [f64; COLUMNS])>,
    /// By how much [`Bin::log_mixture`] changes if it is left out.
    shifts: Vec<f64>,
}

impl Mbar {
    /// Solve the equations for groups of states at `betas`, the first of which is 0, where log Z is `log_z0`.
    ///
    /// Every group has as many states on every rung. Their number must be two at least.
    pub fn new(betas: &[f64], groups: &[LadderTable], log_z0: f64) -> Result<Self> {
        let equal =
            groups.iter().flat_map(|group| &group.rungs).all(|r| r[0] == groups[0].rungs[0][0]);
        let fits = groups.iter().all(|group| group.rungs.len() == betas.len());
        if groups.len() < 2 || betas.len() < 2 || betas[0] != 0.0 || !equal || !fits {
            return Err(Error::invalid(
                "ladder",
                format!("{} groups of {} rungs", groups.len(), betas.len()),
                "two or more ladders from infinite temperature, with as many states on every rung",
                "run at least two chains",
            ));
        }
        let mut together = std::collections::BTreeMap::<i64, [f64; COLUMNS]>::new();
        for (&bin, sums) in groups.iter().flat_map(|group| &group.bins) {
            add(together.entry(bin).or_insert([0.0; COLUMNS]), sums);
        }
        let number: std::collections::BTreeMap<i64, usize> =
            together.keys().enumerate().map(|(i, &bin)| (bin, i)).collect();
        let bins = together.into_values();
        let bins = bins.map(|sums| Bin { energy: sums[1] / sums[0], sums, log_mixture: 0.0 });
        let own = |group: &LadderTable| Group {
            sums: group.bins.iter().map(|(bin, sums)| (number[bin], *sums)).collect(),
            shifts: Vec::new(),
        };
        let per_rung = groups.iter().map(|group| group.rungs[0][0]).sum();
        let free = guess(betas, groups, log_z0);
        let mut mbar = Mbar {
            betas: betas.to_vec(),
            free,
            per_rung,
            bins: bins.collect(),
            groups: groups.iter().map(own).collect(),
        };
        mbar.solve()?;
        mbar.leave_out()?;
        Ok(mbar)
    }

    /// Number of rungs.
    fn rungs(&self) -> usize {
        self.betas.len()
    }

    /// $p_k$ of an energy, and the logarithm of the mixture.
    fn shares(&self, energy: f64, shares: &mut [f64]) -> f64 {
        let mut most = f64::NEG_INFINITY;
        for ((share, f), beta) in shares.iter_mut().zip(&self.free).zip(&self.betas) {
            *share = f - beta * energy;
            most = most.max(*share);
        }
        let mut sum = 0.0;
        for share in shares.iter_mut() {
            *share = (*share - most).exp();
            sum += *share;
        }
        shares.iter_mut().for_each(|share| *share /= sum);
        most + sum.ln()
    }

    /// The convex function, its gradient and its second derivatives by $f_1, f_2, \dots$
    fn derivatives(&self) -> (f64, Vec<f64>, Vec<f64>) {
        let (rungs, n) = (self.rungs(), self.rungs() - 1);
        let mut value = -self.per_rung * self.free.iter().sum::<f64>();
        let (mut gradient, mut second) = (vec![-self.per_rung; n], vec![0.0; n * n]);
        let mut shares = vec![0.0; rungs];
        for bin in &self.bins {
            let count = bin.sums[0];
            value += count * self.shares(bin.energy, &mut shares);
            for (row, &share) in shares[1..].iter().enumerate() {
                gradient[row] += count * share;
                second[row * n + row] += count * share;
                for (column, &other) in shares[1..=row + 1].iter().enumerate() {
                    second[row * n + column] -= count * share * other;
                }
            }
        }
        (value, gradient, second)
    }

    fn solve(&mut self) -> Result<()> {
        for _ in 0..STEPS {
            let (value, gradient, mut second) = self.derivatives();
            let largest = gradient.iter().fold(0.0, |most: f64, g| most.max(g.abs()));
            if largest <= CONVERGED * self.per_rung {
                return self.mix();
            }
            factorise(&mut second, gradient.len())?;
            let step = solved(&second, &gradient);
            let start = self.free.clone();
            let mut size = 1.0;
            loop {
                for (k, (f, step)) in self.free[1..].iter_mut().zip(&step).enumerate() {
                    *f = start[k + 1] - size * step;
                }
                // Near the minimum rounding hides what a step gains.
                let new = self.derivatives().0;
                if new <= value + 1e-12 * value.abs() {
                    break;
                }
                size *= 0.5;
                if size < 1e-6 {
                    self.free = start;
                    return self.mix();
                }
            }
        }
        self.mix()
    }

    fn mix(&mut self) -> Result<()> {
        let mut shares = vec![0.0; self.rungs()];
        let mixtures: Vec<f64> =
            self.bins.iter().map(|bin| self.shares(bin.energy, &mut shares)).collect();
        self.bins.iter_mut().zip(mixtures).for_each(|(bin, mixture)| bin.log_mixture = mixture);
        Ok(())
    }

    /// What leaving out every group does to the mixture.
    fn leave_out(&mut self) -> Result<()> {
        let (_, _, mut second) = self.derivatives();
        let (rungs, count) = (self.rungs(), self.groups.len() as f64);
        factorise(&mut second, rungs - 1)?;
        let mut shares = vec![0.0; self.bins.len() * rungs];
        for (bin, shares) in self.bins.iter().zip(shares.chunks_exact_mut(rungs)) {
            self.shares(bin.energy, shares);
        }
        let own = self.per_rung / count;
        for group in &mut self.groups {
            let mut gradient = vec![-own; rungs - 1];
            for (bin, sums) in &group.sums {
                let shares = &shares[bin * rungs + 1..][..rungs - 1];
                gradient.iter_mut().zip(shares).for_each(|(g, share)| *g += sums[0] * share);
            }
            let step = solved(&second, &gradient);
            let factors: Vec<f64> =
                step.iter().map(|step| (step * count / (count - 1.0)).exp_m1()).collect();
            let shift = |shares: &[f64]| {
                let change: f64 =
                    shares[1..].iter().zip(&factors).map(|(p, factor)| p * factor).sum();
                change.ln_1p()
            };
            group.shifts = shares.chunks_exact(rungs).map(shift).collect();
        }
        Ok(())
    }

    /// How much the states of every rung and of the next have in common: 1/2 if the two are the same distribution and there are no others, 0 if nothing connects them.
    ///
    /// Below 0.03 the difference of their free energies rests on too few states.
    pub fn overlaps(&self) -> Vec<f64> {
        let rungs = self.rungs();
        let (mut sums, mut shares) = (vec![0.0; rungs - 1], vec![0.0; rungs]);
        for bin in &self.bins {
            self.shares(bin.energy, &mut shares);
            for (sum, pair) in sums.iter_mut().zip(shares.windows(2)) {
                *sum += bin.sums[0] * pair[0] * pair[1];
            }
        }
        sums.into_iter().map(|sum| sum / self.per_rung).collect()
    }

    /// Effective number of states at `beta` as a fraction of all, as if all were independent.
    pub fn effective_share(&self, beta: f64) -> f64 {
        let (weights, _) = self.weights(beta);
        let (mut first, mut second) = (0.0, 0.0);
        for (bin, weight) in self.bins.iter().zip(weights) {
            first += bin.sums[0] * weight;
            second += bin.sums[0] * weight * weight;
        }
        first * first / (second * self.per_rung * self.rungs() as f64)
    }

    /// Weights of the bins' states at `beta` relative to the largest, and its logarithm.
    fn weights(&self, beta: f64) -> (Vec<f64>, f64) {
        let logs: Vec<f64> =
            self.bins.iter().map(|bin| -beta * bin.energy - bin.log_mixture).collect();
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (logs.into_iter().map(|log| (log - most).exp()).collect(), most)
    }

    /// The column of log Z in the rows of [`at`](Self::at).
    pub const LOG_Z: usize = Layout::FIXED;

    /// The means of the first columns of a [`Layout`] at `beta`, where all weights of energy terms are `beta`, followed by log Z.
    pub fn at(&self, beta: f64) -> Jackknife {
        let (mut weights, most) = self.weights(beta);
        let mut total = [0.0; COLUMNS];
        for (bin, &weight) in self.bins.iter().zip(&weights) {
            add_times(&mut total, &bin.sums, weight);
        }
        let full = row(&total, beta, most - self.per_rung.ln());
        let rest = self.per_rung * (1.0 - 1.0 / self.groups.len() as f64);
        let mut left_out = Vec::with_capacity(self.groups.len() * full.len());
        let all = weights.clone();
        for group in &self.groups {
            let mut sums = [0.0; COLUMNS];
            for (i, bin) in self.bins.iter().enumerate() {
                weights[i] = all[i] * (-group.shifts[i]).exp();
                add_times(&mut sums, &bin.sums, weights[i]);
            }
            for (bin, own) in &group.sums {
                add_times(&mut sums, own, -weights[*bin]);
            }
            left_out.extend(row(&sums, beta, most - rest.ln()));
        }
        Jackknife::from_left_out(full.to_vec(), &left_out)
    }
}

/// Means of the observables from weighted sums.
fn row(sums: &[f64; COLUMNS], beta: f64, log_scale: f64) -> [f64; Mbar::LOG_Z + 1] {
    let [weight, h, h_squared, m, abs, squared, fourth] = *sums;
    let mut row = [0.0; Mbar::LOG_Z + 1];
    row[Layout::ENERGY] = h / weight;
    row[Layout::ENERGY_SQUARED] = h_squared / weight;
    row[Layout::POTENTIAL] = beta * h / weight;
    row[Layout::POTENTIAL_SQUARED] = beta * beta * h_squared / weight;
    row[Layout::M] = m / weight;
    row[Layout::ABS_M] = abs / weight;
    row[Layout::M_SQUARED] = squared / weight;
    row[Layout::M_FOURTH] = fourth / weight;
    row[Mbar::LOG_Z] = weight.ln() + log_scale;
    row
}

fn add(sums: &mut [f64; COLUMNS], other: &[f64; COLUMNS]) {
    add_times(sums, other, 1.0);
}

fn add_times(sums: &mut [f64; COLUMNS], other: &[f64; COLUMNS], factor: f64) {
    sums.iter_mut().zip(other).for_each(|(sum, value)| *sum += factor * value);
}

/// Free energies by the trapezoidal rule.
fn guess(betas: &[f64], groups: &[LadderTable], log_z0: f64) -> Vec<f64> {
    let energy = |rung: usize| {
        let sum = |column: usize| groups.iter().map(|group| group.rungs[rung][column]).sum::<f64>();
        sum(1) / sum(0)
    };
    let mut free = vec![-log_z0];
    for k in 1..betas.len() {
        let step = 0.5 * (betas[k] - betas[k - 1]) * (energy(k - 1) + energy(k));
        free.push(free[k - 1] + step);
    }
    free
}

/// The Cholesky factor of a symmetric matrix of `n` rows whose lower half is given, in its place.
fn factorise(matrix: &mut [f64], n: usize) -> Result<()> {
    for row in 0..n {
        for column in 0..=row {
            let dot: f64 = (0..column).map(|k| matrix[row * n + k] * matrix[column * n + k]).sum();
            let rest = matrix[row * n + column] - dot;
            if row > column {
                matrix[row * n + column] = rest / matrix[column * n + column];
            } else if rest > 1e-14 * matrix[row * n + row].abs() && rest.is_finite() {
                matrix[row * n + row] = rest.sqrt();
            } else {
                let reason =
                    "neighbouring temperatures have no energies in common; use more of them";
                return Err(Error::not_applicable("log Z from a ladder of temperatures", reason));
            }
        }
    }
    Ok(())
}

/// The solution of the equations whose matrix has this Cholesky factor.
fn solved(factor: &[f64], right: &[f64]) -> Vec<f64> {
    let n = right.len();
    let mut x = right.to_vec();
    for row in 0..n {
        let dot: f64 = (0..row).map(|k| factor[row * n + k] * x[k]).sum();
        x[row] = (x[row] - dot) / factor[row * n + row];
    }
    for row in (0..n).rev() {
        let dot: f64 = (row + 1..n).map(|k| factor[k * n + row] * x[k]).sum();
        x[row] = (x[row] - dot) / factor[row * n + row];
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Draw, Purpose, Stream};
    use crate::observe::Order;

    /// Independent draws from the 12 levels of some energies at every rung, for many seeds.
    fn tables(betas: &[f64], groups: usize, states: usize, seed: u64) -> Vec<LadderTable> {
        let draw = |group: usize| {
            let mut table = LadderTable::new(betas.len(), 1e-3);
            let mut stream = Stream::new(seed, Purpose::Statistic, group as u32, 0);
            for _ in 0..states {
                for (rung, beta) in betas.iter().enumerate() {
                    let weights = levels().map(|(h, g)| g * (-beta * h).exp());
                    let level = stream.pick(&weights);
                    let m = level as f64 / 12.0;
                    let order = Order { m, abs: m, squared: m * m, fourth: m.powi(4) };
                    table.record(rung, levels()[level].0, order, || vec![level as u8]);
                }
            }
            table
        };
        (0..groups).map(draw).collect()
    }

    /// Energies that are not symmetric, with their numbers of states.
    fn levels() -> [(f64, f64); 12] {
        std::array::from_fn(|i| {
            (0.7 * i as f64 - 5.3 + 0.05 * (i * i) as f64, 1.0 + (i * i) as f64)
        })
    }

    fn exact(beta: f64) -> (f64, f64, f64) {
        let weights = levels().map(|(h, g)| g * (-beta * h).exp());
        let z: f64 = weights.iter().sum();
        let mean = |f: &dyn Fn(usize) -> f64| {
            weights.iter().enumerate().map(|(i, w)| w * f(i)).sum::<f64>() / z
        };
        (z.ln(), mean(&|i| levels()[i].0), mean(&|i| i as f64 / 12.0))
    }

    #[test]
    fn estimates_agree_with_the_sum_and_errors_cover() {
        let betas = [0.0, 0.3, 0.6, 1.1];
        let log_z0 = exact(0.0).0;
        let mut squares = [0.0; 6];
        let seeds = 200;
        for seed in 0..seeds {
            let mbar = Mbar::new(&betas, &tables(&betas, 24, 40, seed), log_z0).unwrap();
            let mut z = Vec::new();
            // On a rung and between two.
            for beta in [1.1, 0.45] {
                let at = mbar.at(beta);
                let (log_z, energy, m) = exact(beta);
                for (column, value) in
                    [(Mbar::LOG_Z, log_z), (Layout::ENERGY, energy), (Layout::M, m)]
                {
                    z.extend(at.mean(column).with_exact(value).z());
                }
            }
            squares.iter_mut().zip(z).for_each(|(sum, z): (&mut f64, f64)| *sum += z * z);
        }
        for sum in squares {
            let rms = (sum / seeds as f64).sqrt();
            assert!((0.85..1.2).contains(&rms), "rms z {rms}");
        }
    }

    #[test]
    fn rungs_that_share_nothing_are_refused_or_seen() {
        let betas = [0.0, 0.1];
        let mbar = Mbar::new(&betas, &tables(&betas, 4, 100, 1), exact(0.0).0).unwrap();
        assert!(mbar.overlaps()[0] > 0.4, "{:?}", mbar.overlaps());
        let betas = [0.0, 12.0];
        match Mbar::new(&betas, &tables(&betas, 4, 100, 1), exact(0.0).0) {
            Ok(mbar) => assert!(mbar.overlaps()[0] < 0.03, "{:?}", mbar.overlaps()),
            Err(error) => assert!(error.to_string().contains("in common"), "{error}"),
        }
    }
}
