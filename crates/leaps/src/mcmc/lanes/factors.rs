//! Chances from products of factors, one for each digit of the surroundings: where a table over all surroundings would be too large.

use super::counts::Digit;
use super::plan::{Class, Plan};
use crate::device::lanes::LANES;

/// Numbers of a value of a digit: as many as a byte has values, so that no index is out of bounds.
const ROW: usize = 256;
/// Largest change of a potential that products of factors, and their inverses, can hold.
const LARGEST: f64 = 600.0;
/// $2^{32}$, in units of which chances are rounded.
const WORDS: f64 = 4_294_967_296.0;

/// The factors of a plan at one temperature.
#[derive(Clone, Debug, Default)]
pub(super) struct Factors {
    /// What a digit adds to the potential of a value, less that of value 0: `[(value * 256) + digit]` for every digit of every class.
    potentials: Vec<f64>,
    /// Exponentials of these without their signs.
    factors: Vec<f64>,
    /// Whether all products of a class' factors are finite.
    tame: Vec<bool>,
}

/// Numbers that the factors of a class take.
pub(super) fn factors_len(digits: &[Digit], q: usize) -> usize {
    digits.len() * q * ROW
}

impl Factors {
    /// Recompute in place.
    pub(super) fn set(&mut self, plan: &Plan, lambda: &[f64]) {
        self.potentials.resize(plan.factors, 0.0);
        self.factors.resize(plan.factors, 1.0);
        self.tame.clear();
        for class in &plan.classes {
            let mut sum = 0.0;
            if let (Some(start), Some(counts)) = (class.factors, &class.counts) {
                let rows = plan.q * ROW;
                let potentials = self.potentials[start..].chunks_exact_mut(rows);
                let factors = self.factors[start..].chunks_exact_mut(rows);
                for ((digit, own), factors) in counts.digits.iter().zip(potentials).zip(factors) {
                    sum += set_digit(digit, plan.q, lambda, own, factors);
                }
            }
            self.tame.push(sum < LARGEST);
        }
    }

    /// Those of a class.
    pub(super) fn of<'a>(&'a self, plan: &'a Plan, number: u32) -> Option<Own<'a>> {
        let class = &plan.classes[number as usize];
        let (start, counts) = (class.factors?, class.counts.as_ref()?);
        let range = start..start + factors_len(&counts.digits, plan.q);
        Some(Own {
            q: plan.q,
            potentials: &self.potentials[range.clone()],
            factors: &self.factors[range],
            tame: self.tame[number as usize],
        })
    }
}

/// The potentials and factors of a digit; returns the largest change of the potential, without its sign.
fn set_digit(
    digit: &Digit,
    q: usize,
    lambda: &[f64],
    potentials: &mut [f64],
    factors: &mut [f64],
) -> f64 {
    let n = digit.entries;
    let mut largest: f64 = 0.0;
    for index in 0..n {
        let potential = |value: usize| -> f64 {
            let rows = digit.local.chunks_exact(q * n).zip(lambda);
            rows.map(|(local, weight)| weight * local[value * n + index]).sum()
        };
        let least = potential(0);
        for value in 1..q {
            let change = potential(value) - least;
            potentials[value * ROW + index] = change;
            factors[value * ROW + index] = (-change).exp();
            // What is not a number is not tame either.
            largest = if change.abs() <= largest { largest } else { change.abs() };
        }
    }
    largest
}

/// The factors of a class.
#[derive(Clone, Copy)]
pub(super) struct Own<'a> {
    q: usize,
    potentials: &'a [f64],
    factors: &'a [f64],
    tame: bool,
}

/// The digits of one site's surroundings in every lane.
pub(super) type Places = [[u8; LANES]];

impl Own<'_> {
    /// The potential of a value in one lane, less that of value 0.
    fn potential(&self, places: &Places, lane: usize, value: usize) -> f64 {
        let digits = self.potentials.chunks_exact(self.q * ROW).zip(places);
        digits.map(|(all, own)| all[value * ROW + own[lane] as usize]).sum()
    }

    /// Weights of all values, `[value][lane]`.
    #[inline(always)]
    fn weigh(&self, places: &Places, weights: &mut [[f64; LANES]]) {
        if !self.tame {
            return self.weigh_apart(places, weights);
        }
        weights[0] = [1.0; LANES];
        for (digit, (own, all)) in
            places.iter().zip(self.factors.chunks_exact(self.q * ROW)).enumerate()
        {
            let values = all.as_chunks::<ROW>().0.iter().zip(weights.iter_mut());
            for (row, weights) in values.skip(1) {
                if digit == 0 {
                    for lane in 0..LANES {
                        weights[lane] = row[own[lane] as usize];
                    }
                } else {
                    for lane in 0..LANES {
                        weights[lane] *= row[own[lane] as usize];
                    }
                }
            }
        }
    }

    /// The same for potentials of any size.
    #[cold]
    fn weigh_apart(&self, places: &Places, weights: &mut [[f64; LANES]]) {
        for lane in 0..LANES {
            let potential = |value: usize| self.potential(places, lane, value);
            let least = (1..self.q).map(potential).fold(0.0, f64::min);
            for (value, weights) in weights.iter_mut().enumerate() {
                let own = if value == 0 { 0.0 } else { potential(value) };
                weights[lane] = (least - own).exp();
            }
        }
    }

    /// A heat bath of every lane with these 16 digits, `further` giving 16 more.
    #[inline(always)]
    pub(super) fn draw(
        &self,
        places: &Places,
        digits: &[u16; LANES],
        weights: &mut [[f64; LANES]],
        further: impl Fn(usize) -> u16,
    ) -> [u8; LANES] {
        self.weigh(places, weights);
        // Value t is the number of sums over values from 1, 2, ... on that the digits do not reach.
        for value in (1..self.q).rev() {
            let (lower, upper) = weights.split_at_mut(value);
            for lane in 0..LANES {
                lower[value - 1][lane] += upper[0][lane];
            }
        }
        let mut scale = [0.0; LANES];
        for lane in 0..LANES {
            scale[lane] = WORDS / weights[0][lane];
        }
        let mut new = [0; LANES];
        for weights in &weights[1..self.q] {
            let mut chances = *weights;
            for lane in 0..LANES {
                chances[lane] *= scale[lane];
            }
            add_below(&chances, digits, &further, &mut new);
        }
        new
    }

    /// Which lanes accept to go from the values `old` to `new`.
    #[inline(always)]
    pub(super) fn accept(
        &self,
        places: &Places,
        (old, new): (&[u8; LANES], &[u8; LANES]),
        digits: &[u16; LANES],
        further: impl Fn(usize) -> u16,
    ) -> [u8; LANES] {
        let mut chances = [WORDS; LANES];
        if self.tame {
            let (mut here, mut there) = ([1.0; LANES], [1.0; LANES]);
            for (own, all) in places.iter().zip(self.factors.chunks_exact(self.q * ROW)) {
                for lane in 0..LANES {
                    let at = |value: &[u8; LANES]| value[lane] as usize * ROW + own[lane] as usize;
                    here[lane] *= all[at(old)];
                    there[lane] *= all[at(new)];
                }
            }
            for lane in 0..LANES {
                let ratio = there[lane] / here[lane];
                chances[lane] *= if ratio < 1.0 { ratio } else { 1.0 };
            }
        } else {
            for (lane, chance) in chances.iter_mut().enumerate() {
                let at = |value: u8| self.potential(places, lane, value as usize);
                *chance *= (at(old[lane]) - at(new[lane])).exp().min(1.0);
            }
        }
        let mut accepted = [0; LANES];
        add_below(&chances, digits, &further, &mut accepted);
        accepted
    }
}

/// Add 1 where the digits, with 16 more behind them, are below chances in units of $2^{-32}$.
#[inline(always)]
fn add_below(
    chances: &[f64; LANES],
    digits: &[u16; LANES],
    further: &impl Fn(usize) -> u16,
    sum: &mut [u8; LANES],
) {
    /// Numbers from here on to twice as many are whole, and their last bits count from it.
    const WHOLE: f64 = (1u64 << 52) as f64;
    let (mut low, mut equal) = ([0; LANES], [0; LANES]);
    for lane in 0..LANES {
        let word = (chances[lane] + WHOLE).to_bits() & ((1 << 33) - 1);
        let word = word.min(u64::from(u32::MAX)) as u32;
        let high = (word >> 16) as u16;
        low[lane] = word as u16;
        sum[lane] += u8::from(digits[lane] < high);
        equal[lane] = u8::from(digits[lane] == high);
    }
    if equal.iter().fold(0, |any, own| any | own) != 0 {
        for lane in (0..LANES).filter(|&lane| equal[lane] != 0) {
            sum[lane] += u8::from(further(lane) < low[lane]);
        }
    }
}

impl Class {
    /// The numbers of term `k` in `from`, which is [`Digit::local`] or [`Digit::share`], for a value in one lane, where there are factors.
    #[inline]
    pub(super) fn sum_of_digits(
        digits: &[Digit],
        places: &Places,
        from: impl Fn(&Digit) -> &[f64],
        (row, lane): (usize, usize),
    ) -> f64 {
        let numbers = digits.iter().zip(places);
        numbers.map(|(digit, own)| from(digit)[row * digit.entries + own[lane] as usize]).sum()
    }
}
