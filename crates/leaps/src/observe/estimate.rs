//! Attach a jackknife error to any smooth function of weighted averages.
//!
//! There is one jackknife for everything: walkers with weights, walkers that share an ancestor after
//! resampling, and blocks of a Markov chain differ only in what a *family* is, the unit that is left
//! out. With weights $w_i$, rows $r_i$ and the sums $W_f = \sum_{i \in f} w_i$, $S_f = \sum_{i\in f} w_i r_i$,
//!
//! $$\hat\theta = g(S/W),\quad \theta_f = g\!\left(\frac{S - S_f}{W - W_f}\right),\quad
//! \mathrm{error}^2 = \frac{F-1}{F} \sum_f (\theta_f - \bar\theta)^2$$
//!
//! over the $F$ families that hold weight. To first order $\theta_f - \hat\theta = -W_f\,\nabla g \cdot (S_f/W_f - S/W) / (W - W_f)$:
//! for families that are the descendants of one walker at the start this is the genealogical variance
//! estimator of Chan and Lai (2013) and Lee and Whiteley (2018), with large families counted more, not less.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use super::Families;

/// More families than this are joined before one is left out: the error of the error is then 0.3 %,
/// and memory stays bounded.
const MAX_FAMILIES: usize = 1 << 16;

/// A number and its standard error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The estimate; NaN (`null` in JSON) if it is undefined, such as the Binder ratio of states that are all
    /// without order.
    #[serde(deserialize_with = "null_is_nan")]
    pub mean: f64,
    /// Its standard error, never NaN; infinite (`null` in JSON) if the data cannot tell, such as one
    /// walker or one family with all the weight.
    #[serde(deserialize_with = "null_is_infinite")]
    pub error: f64,
    /// The exact value, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<f64>,
}

fn null_is_nan<'de, D: Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(d)?.unwrap_or(f64::NAN))
}

pub(super) fn null_is_infinite<'de, D: Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(d)?.unwrap_or(f64::INFINITY))
}

impl Estimate {
    /// `mean` with standard error `error`; an error that is NaN counts as infinite.
    pub fn new(mean: f64, error: f64) -> Self {
        let error = if error.is_nan() || !mean.is_finite() { f64::INFINITY } else { error };
        Estimate { mean, error, exact: None }
    }

    /// The same with the exact value beside it.
    pub fn with_exact(self, exact: f64) -> Self {
        Estimate { exact: Some(exact), ..self }
    }

    /// `(mean - exact) / error`, if the exact value is known. 0 where both differences are 0.
    pub fn z(&self) -> Option<f64> {
        let difference = self.mean - self.exact?;
        Some(if difference == 0.0 { 0.0 } else { difference / self.error })
    }
}

impl fmt::Display for Estimate {
    /// The value with its standard error in the last digits, as physicists write it: 209.829(4).
    ///
    /// The error has one digit, or two if the first is 1. Next to nothing is written with powers of ten: 1.2e-9(1.3e-9).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&with_error(self.mean, self.error))
    }
}

fn with_error(mean: f64, error: f64) -> String {
    if !mean.is_finite() || !error.is_finite() || error < 0.0 {
        return format!("{}(?)", (mean * 1e6).round() / 1e6);
    }
    if error < 1e-300 {
        return format!("{}(0)", (mean * 1e10).round() / 1e10);
    }
    let mut digits = -(error.log10().floor() as i32);
    let leading = error * 10f64.powi(digits);
    if leading < 1.95 {
        digits += 1;
    }
    let scaled = (error * 10f64.powi(digits)).round();
    if error < 1e-6 && mean != 0.0 && mean.abs() < 1e-4 {
        let places = digits + mean.abs().log10().floor() as i32;
        let own = digits + error.log10().floor() as i32;
        return format!(
            "{mean:.places$e}({error:.own$e})",
            places = places.max(0) as usize,
            own = own.max(0) as usize
        );
    }
    if digits > 0 {
        return format!("{mean:.places$}({scaled})", places = digits.min(300) as usize);
    }
    let unit = 10f64.powi(-digits);
    format!("{}({})", (mean / unit).round() * unit, scaled * unit)
}

/// Sums of rows over families, ready to estimate functions of their weighted means.
#[derive(Clone, Debug)]
pub struct Jackknife {
    width: usize,
    /// Subtracted from every row before summing, so that a constant column has sums of exactly 0.
    origin: Vec<f64>,
    /// `W_f`.
    weights: Vec<f64>,
    /// `S_f`, `[family * width + column]`.
    sums: Vec<f64>,
    weight: f64,
    sum: Vec<f64>,
    /// The heaviest family, whose complement is summed afresh: `W - W_f` would lose its digits.
    heaviest: usize,
    rest_weight: f64,
    rest_sum: Vec<f64>,
    inflation: f64,
}

impl Jackknife {
    /// Sum the rows `rows[i * width..][..width]` with weights `weights[i] >= 0` over families.
    ///
    /// Rows of weight 0 are not looked at, so they may be infinite. More than 65,536 families are joined
    /// into as many. Panics if the lengths disagree.
    pub fn new(width: usize, rows: &[f64], weights: &[f64], families: &Families) -> Self {
        assert_eq!(rows.len(), width * weights.len(), "one row per weight");
        assert_eq!(families.len(), weights.len(), "one family per weight");
        let row = |i: usize| &rows[i * width..][..width];
        let origin = match weights.iter().position(|&w| w > 0.0) {
            Some(first) => row(first).to_vec(),
            None => vec![0.0; width],
        };
        let families = families.joined(MAX_FAMILIES);
        let mut family_weights = vec![0.0; families.count()];
        let mut sums = vec![0.0; families.count() * width];
        for (i, &weight) in weights.iter().enumerate() {
            if weight > 0.0 {
                let family = families.of(i);
                family_weights[family] += weight;
                let sum = &mut sums[family * width..][..width];
                for ((sum, value), origin) in sum.iter_mut().zip(row(i)).zip(&origin) {
                    *sum += weight * (value - origin);
                }
            }
        }
        Self::from_sums(origin, family_weights, sums)
    }

    /// Take sums that are already made: `weights[f]` is $W_f$ and `sums[f * width..]` is
    /// $\sum_{i \in f} w_i (r_i - \mathrm{origin})$ with `width = origin.len()`.
    pub fn from_sums(origin: Vec<f64>, weights: Vec<f64>, sums: Vec<f64>) -> Self {
        let width = origin.len();
        assert_eq!(sums.len(), width * weights.len(), "one row of sums per family");
        let heaviest = (0..weights.len()).max_by(|&a, &b| weights[a].total_cmp(&weights[b]));
        let heaviest = heaviest.unwrap_or(0);
        let (mut rest_weight, mut rest_sum) = (0.0, vec![0.0; width]);
        for (family, &weight) in weights.iter().enumerate().filter(|&(f, _)| f != heaviest) {
            rest_weight += weight;
            for (rest, value) in rest_sum.iter_mut().zip(&sums[family * width..]) {
                *rest += value;
            }
        }
        let weight = rest_weight + weights.get(heaviest).copied().unwrap_or(0.0);
        let sum = (0..width)
            .map(|c| rest_sum[c] + sums.get(heaviest * width + c).copied().unwrap_or(0.0))
            .collect();
        let inflation = 1.0;
        Jackknife {
            width,
            origin,
            weights,
            sums,
            weight,
            sum,
            heaviest,
            rest_weight,
            rest_sum,
            inflation,
        }
    }

    /// Take means of all columns, and those `left_out[f * width..]` without every family `f`, that were computed elsewhere. There are two families at least.
    pub(super) fn from_left_out(means: Vec<f64>, left_out: &[f64]) -> Self {
        let width = means.len();
        let families = left_out.len() / width;
        let (weight, rest_weight) = (families as f64, families as f64 - 1.0);
        // Sums about the means vanish, and without a family they are what its absence changes.
        let sums: Vec<f64> = left_out
            .chunks_exact(width)
            .flat_map(|row| {
                row.iter().zip(&means).map(|(value, mean)| -rest_weight * (value - mean))
            })
            .collect();
        let rest_sum = sums[..width].iter().map(|sum| -sum).collect();
        Jackknife {
            width,
            sum: vec![0.0; width],
            origin: means,
            weights: vec![1.0; families],
            sums,
            weight,
            heaviest: 0,
            rest_weight,
            rest_sum,
            inflation: 1.0,
        }
    }

    /// The same with every error multiplied by `factor`.
    pub(crate) fn inflated(self, factor: f64) -> Self {
        Jackknife { inflation: self.inflation * factor, ..self }
    }

    /// The weighted mean of every column.
    pub fn means(&self) -> Vec<f64> {
        let mean = |(origin, sum): (&f64, &f64)| origin + sum / self.weight;
        self.origin.iter().zip(&self.sum).map(mean).collect()
    }

    /// Number of families that hold weight.
    pub fn families(&self) -> usize {
        self.weights.iter().filter(|&&w| w > 0.0).count()
    }

    /// `g(means)` with its error; `g` sees the means of all columns. Costs one call of `g` per family.
    pub fn estimate(&self, g: impl Fn(&[f64]) -> f64) -> Estimate {
        let mut point = self.means();
        let centre = g(&point);
        self.spread(centre, |family, rest| {
            for column in 0..self.width {
                point[column] = self.origin[column] + self.sum_without(family, column) / rest;
            }
            g(&point) - centre
        })
    }

    /// The mean of one column with its error: [`estimate`](Self::estimate) of that column, faster.
    pub fn mean(&self, column: usize) -> Estimate {
        let shift = self.sum[column] / self.weight;
        self.spread(self.origin[column] + shift, |family, rest| {
            self.sum_without(family, column) / rest - shift
        })
    }

    /// Call `each` with the part of every family in what the means of `values.len()` columns from `first` on differ from `values`:
    /// $(S_f - W_f v)/W$. The parts sum to the difference.
    pub(super) fn each_departure(
        &self,
        first: usize,
        values: &[f64],
        mut each: impl FnMut(&[f64]),
    ) {
        let mut part = vec![0.0; values.len()];
        for (family, &weight) in self.weights.iter().enumerate().filter(|&(_, &w)| w > 0.0) {
            let sums = &self.sums[family * self.width + first..];
            let origin = &self.origin[first..];
            for (((part, value), sum), origin) in part.iter_mut().zip(values).zip(sums).zip(origin)
            {
                *part = (sum + weight * (origin - value)) / self.weight;
            }
            each(&part);
        }
    }

    fn sum_without(&self, family: usize, column: usize) -> f64 {
        if family == self.heaviest {
            self.rest_sum[column]
        } else {
            self.sum[column] - self.sums[family * self.width + column]
        }
    }

    /// The error from the deviations `deviation(family, W - W_f)` of the leave-one-out values.
    fn spread(&self, centre: f64, mut deviation: impl FnMut(usize, f64) -> f64) -> Estimate {
        let (mut n, mut first, mut second) = (0.0, 0.0, 0.0);
        for (family, &weight) in self.weights.iter().enumerate().filter(|&(_, &w)| w > 0.0) {
            let rest =
                if family == self.heaviest { self.rest_weight } else { self.weight - weight };
            let deviation = deviation(family, rest);
            n += 1.0;
            first += deviation;
            second += deviation * deviation;
        }
        if n < 2.0 {
            return Estimate::new(centre, f64::INFINITY);
        }
        let variance = (n - 1.0) / n * (second - first * first / n).max(0.0);
        // max() swallows a NaN, which says that some leave-one-out value is undefined.
        let error = if second.is_nan() { f64::INFINITY } else { variance.sqrt() * self.inflation };
        Estimate::new(centre, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_in_the_last_digits() {
        for (mean, error, text) in [
            (209.8293, 0.0041, "209.829(4)"),
            (209.8293, 0.0014, "209.8293(14)"),
            (-1.45574, 0.00031, "-1.4557(3)"),
            (-1.45574, 0.00096, "-1.4557(10)"),
            (0.5, 0.2, "0.5(2)"),
            (12.34, 3.0, "12(3)"),
            (1234.0, 56.0, "1230(60)"),
            (1234.0, 12.0, "1234(12)"),
            (1.0, 0.0, "1(0)"),
            (0.00012, 0.0000008, "0.0001200(8)"),
            (0.00002, 0.000008, "0.000020(8)"),
            (1.23e-9, 1.3e-9, "1.2e-9(1.3e-9)"),
            (-2.34567e-5, 3.1e-8, "-2.346e-5(3e-8)"),
            (4e-12, 9.7e-9, "4e-12(1e-8)"),
            (f64::NAN, 0.1, "NaN(?)"),
            (1.0, f64::INFINITY, "1(?)"),
        ] {
            assert_eq!(with_error(mean, error), text, "{mean} +- {error}");
        }
    }
}
