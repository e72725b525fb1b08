//! Surroundings as few small numbers, for any clusters of sites.
//!
//! The energies of a site's values are a sum over its clusters, each a vector that the other sites choose. The differences of these
//! vectors are whole multiples of a few of them: for an Ising spin with two couplings, of two; for a clock of six hours with four
//! neighbours, of two as well, since $\cos\phi$ and $\sin\phi$ of its hours are; for Baxter and Wu's triangles of one. So the surroundings
//! are a point with whole coordinates, found by adding bytes, and its energies are linear in them.

use super::effects::{Effect, Effects, Kind};
use super::plan::too_large;
use crate::Result;

/// Most coordinates of a kind of sites.
const MOST_COORDINATES: usize = 64;
/// Most values of a digit: it is added up in bytes.
const MOST_ENTRIES: usize = 256;
/// Largest multiple of a vector that is looked for in the cluster that it comes from, and in others: larger ones need more surroundings than a
/// coordinate of their own.
const MOST_MULTIPLE: [f64; 2] = [16.0, 4.0];
/// Most vectors, and multiples of them in all, that are looked for in a sum; of one vector at most 2.
const MOST_IN_A_SUM: i32 = 4;
/// What counts as rounding, as a part of a vector's length.
const ROUNDING: f64 = 1e-12;

/// What one cluster adds to a digit.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// Where the list of its other sites starts among the site's.
    pub(super) from: usize,
    pub(super) others: usize,
    /// By the combination of their values, padded to a multiple of 16.
    pub(super) adds: Vec<u8>,
    /// Whether the combination itself is what it adds.
    pub(super) plain: bool,
}

/// Some of the coordinates as one byte.
#[derive(Clone, Debug)]
pub(super) struct Digit {
    /// Number of its values.
    pub(super) entries: usize,
    pub(super) parts: Vec<Part>,
    /// What it adds to the energy of term `k` for a value of the site, at `[(k * q + value) * entries + digit]`.
    pub(super) local: Vec<f64>,
    /// The same of the site's part in the energy.
    pub(super) share: Vec<f64>,
}

/// The surroundings of a kind of sites.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    pub(super) digits: Vec<Digit>,
}

/// A vector that others are multiples of: local energies, and after them the site's part of those.
type Vector = Vec<f64>;

/// The vectors of a combination, less those of the first combination if asked for.
fn vector(effect: &Effect, combination: usize, less_first: bool) -> Vector {
    let (own, first) = (&effect.energies[combination], &effect.energies[0]);
    let local: Vec<f64> =
        own.iter().zip(first).map(|(e, f)| if less_first { e - f } else { *e }).collect();
    local.iter().copied().chain(local.iter().map(|e| e * effect.share)).collect()
}

fn length(vector: &[f64]) -> f64 {
    vector.iter().map(|e| e * e).sum::<f64>().sqrt()
}

/// Whether `vector` is the sum of `multiples` of `basis`.
fn adds_up(vector: &[f64], basis: &[Vector], multiples: &[i32]) -> bool {
    let mut rest = vector.to_vec();
    for (vector, &multiple) in basis.iter().zip(multiples) {
        if multiple != 0 {
            rest.iter_mut().zip(vector).for_each(|(r, v)| *r -= f64::from(multiple) * v);
        }
    }
    length(&rest) <= ROUNDING * length(vector)
}

/// The multiples of `basis` that add up to `vector`, if they are found; `own` are the vectors that come from the same cluster.
fn multiples(vector: &[f64], basis: &[Vector], own: &[bool]) -> Option<Vec<i32>> {
    for (at, (step, own)) in basis.iter().zip(own).enumerate() {
        let product: f64 = step.iter().zip(vector).map(|(a, b)| a * b).sum();
        let multiple = (product / length(step).powi(2)).round();
        let most = MOST_MULTIPLE[usize::from(!own)];
        if multiple != 0.0 && multiple.abs() <= most {
            let mut all = vec![0; basis.len()];
            all[at] = multiple as i32;
            if adds_up(vector, basis, &all) {
                return Some(all);
            }
        }
    }
    if !(2..=MOST_IN_A_SUM as usize).contains(&basis.len()) {
        return None;
    }
    let size = |all: &[i32]| all.iter().map(|multiple| multiple.abs()).sum::<i32>();
    let sums = (0..5i32.pow(basis.len() as u32)).map(|number| {
        (0..basis.len() as u32).map(|at| number / 5i32.pow(at) % 5 - 2).collect::<Vec<i32>>()
    });
    sums.filter(|all| size(all) <= MOST_IN_A_SUM)
        .filter(|all| adds_up(vector, basis, all))
        .min_by_key(|all| size(all))
}

/// Coordinates of the combinations of some effects, `[effect][combination][coordinate]`, and the vectors that they are multiples of.
struct Coordinates {
    basis: Vec<Vector>,
    of: Vec<Vec<Vec<i32>>>,
}

impl Coordinates {
    fn find(effects: &[&Effect]) -> Result<Self> {
        let mut vectors = Vec::new();
        let mut of = Vec::new();
        for (number, effect) in effects.iter().enumerate() {
            let size = effect.energies.iter().map(|row| length(row)).fold(0.0, f64::max);
            of.push(vec![Vec::new(); effect.energies.len()]);
            for combination in 1..effect.energies.len() {
                let vector = vector(effect, combination, true);
                if length(&vector) > ROUNDING * size {
                    vectors.push((length(&vector), number, combination, vector));
                }
            }
        }
        // What is short may divide what is long. Lengths that differ by rounding stay in order.
        let quantum = vectors.iter().map(|v| v.0).fold(0.0, f64::max) * ROUNDING;
        vectors.sort_by_key(|v| (v.0 / quantum.max(f64::MIN_POSITIVE)).round() as u64);
        let (mut basis, mut owners): (Vec<Vector>, Vec<usize>) = (Vec::new(), Vec::new());
        for (_, number, combination, vector) in vectors {
            let same: Vec<bool> = owners.iter().map(|&owner| owner == number).collect();
            let found = multiples(&vector, &basis, &same).unwrap_or_else(|| {
                basis.push(vector);
                owners.push(number);
                let mut own = vec![0; basis.len()];
                own[basis.len() - 1] = 1;
                own
            });
            of[number][combination] = found;
            if basis.len() > MOST_COORDINATES {
                return Err(too_large());
            }
        }
        of.iter_mut().flatten().for_each(|row| row.resize(basis.len(), 0));
        Ok(Coordinates { basis, of })
    }

    /// The least and the largest number that an effect has for a coordinate.
    fn range(&self, effect: usize, coordinate: usize) -> (i32, i32) {
        let all = self.of[effect].iter().map(|row| row[coordinate]);
        (all.clone().min().unwrap_or(0), all.max().unwrap_or(0))
    }
}

impl Counts {
    pub(super) fn new(all: &Effects, kind: &Kind) -> Result<Self> {
        let mut numbers: Vec<u32> = kind.clusters.clone();
        numbers.sort_unstable();
        numbers.dedup();
        let effects: Vec<&Effect> = numbers.iter().map(|&n| &all.effects[n as usize]).collect();
        let coordinates = Coordinates::find(&effects)?;
        let own: Vec<usize> =
            kind.clusters.iter().map(|n| numbers.binary_search(n).unwrap_or(0)).collect();

        // What the sum is where all coordinates are at their least.
        let mut base: Vector = [&kind.fields[..], &kind.fields[..]].concat();
        for &effect in &own {
            let first = vector(effects[effect], 0, false);
            base.iter_mut().zip(&first).for_each(|(base, first)| *base += first);
        }
        let mut sizes = Vec::new();
        for (at, step) in coordinates.basis.iter().enumerate() {
            let ranges = own.iter().map(|&effect| coordinates.range(effect, at));
            let (least, most) =
                ranges.fold((0, 0), |sum, range| (sum.0 + range.0, sum.1 + range.1));
            base.iter_mut().zip(step).for_each(|(base, step)| *base += f64::from(least) * step);
            sizes.push((most - least) as usize + 1);
        }
        let mut digits = Vec::new();
        let mut start = 0;
        while start < sizes.len() || digits.is_empty() {
            let mut end = start;
            let mut entries = 1;
            while end < sizes.len() && entries * sizes[end] <= MOST_ENTRIES {
                entries *= sizes[end];
                end += 1;
            }
            if end == start && start < sizes.len() {
                return Err(too_large());
            }
            let (steps, sizes) = (&coordinates.basis[start..end], &sizes[start..end]);
            let first = if start == 0 { Some(&base) } else { None };
            let (local, share) = energies(steps, sizes, entries, first, kind.fields.len());
            let parts = parts(&coordinates, (start, sizes), &own, &effects);
            digits.push(Digit { entries, parts, local, share });
            start = end;
        }
        Ok(Counts { digits })
    }

    /// Number of surroundings.
    pub(super) fn entries(&self) -> Option<usize> {
        self.digits.iter().try_fold(1usize, |all, digit| all.checked_mul(digit.entries))
    }

    /// The sum over digits of [`Digit::local`], or of [`Digit::share`], for all surroundings: `[(k * entries + index) * q + value]`.
    pub(super) fn whole(&self, entries: usize, q: usize, share: bool) -> Vec<f64> {
        let rows = self.digits[0].local.len() / self.digits[0].entries;
        let mut whole = vec![0.0; rows * entries];
        for index in 0..entries {
            let mut rest = index;
            for digit in &self.digits {
                let own = rest % digit.entries;
                rest /= digit.entries;
                let from = if share { &digit.share } else { &digit.local };
                for (row, numbers) in from.chunks_exact(digit.entries).enumerate() {
                    whole[(row / q * entries + index) * q + row % q] += numbers[own];
                }
            }
        }
        whole
    }
}

/// What the coordinates of a digit add to all energies, and to the site's parts of them.
fn energies(
    steps: &[Vector],
    sizes: &[usize],
    entries: usize,
    base: Option<&Vector>,
    rows: usize,
) -> (Vec<f64>, Vec<f64>) {
    let mut both = vec![0.0; 2 * rows * entries];
    for (row, numbers) in both.chunks_exact_mut(entries).enumerate() {
        for (index, number) in numbers.iter_mut().enumerate() {
            *number = base.map_or(0.0, |base| base[row]);
            let mut rest = index;
            for (step, size) in steps.iter().zip(sizes) {
                *number += (rest % size) as f64 * step[row];
                rest /= size;
            }
        }
    }
    let share = both.split_off(rows * entries);
    (both, share)
}

/// What the clusters add to the digit of the coordinates from `start` on, which have these sizes.
fn parts(
    coordinates: &Coordinates,
    (start, sizes): (usize, &[usize]),
    own: &[usize],
    effects: &[&Effect],
) -> Vec<Part> {
    let (mut parts, mut from) = (Vec::new(), 0);
    for &effect in own {
        let others = effects[effect].others;
        let mut adds: Vec<u8> = coordinates.of[effect]
            .iter()
            .map(|row| {
                let (mut stride, mut sum) = (1, 0);
                for (at, size) in (start..).zip(sizes) {
                    sum += (row[at] - coordinates.range(effect, at).0) as usize * stride;
                    stride *= size;
                }
                sum as u8
            })
            .collect();
        let plain = adds.iter().enumerate().all(|(at, &add)| at == add as usize);
        if adds.iter().any(|add| *add != 0) {
            adds.resize(adds.len().next_multiple_of(16), 0);
            parts.push(Part { from, others, adds, plain });
        }
        from += others;
    }
    parts
}
