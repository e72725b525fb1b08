//! Structure factors at the wave vectors of commensurate order, such as staggered order, stripes and three sublattices.
//!
//! Order that repeats every two or three sites along axes has its peak at a wave vector with components 0 and $\pi$, or 0 and $\pm 2\pi/3$. There the
//! wave is the same all over a sublattice, so that nothing but the number of sites of every sublattice in every value has to be counted: bytes of whole
//! lines are compared and added at once.

use std::f64::consts::TAU;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::Estimate;
use super::modes;
use crate::target::Lattice;

/// Up to so many values the sites in each are counted line by line, else site by site.
const FEW: usize = 4;

/// The longest side whose wave vectors are written as fractions.
const LONGEST: i64 = 1 << 16;

/// A wave vector whose wave repeats every so many sites along the axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaveVector {
    /// The period, 2 or 3.
    pub period: usize,
    /// The component along every axis, in units of $2\pi$ over the period.
    pub steps: Vec<i8>,
}

/// The structure factor at one wave vector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StructureFactor {
    /// The components along the axes of the array of sites, in radians.
    pub k: Vec<f64>,
    /// $S(k)$, see [`Layout`](super::Layout); not connected: at $k = 0$ it is $N \langle m^2 \rangle$.
    #[serde(flatten)]
    pub value: Estimate,
}

impl WaveVector {
    /// The components in radians.
    pub fn radians(&self) -> Vec<f64> {
        self.steps.iter().map(|&step| f64::from(step) / self.period as f64 * TAU).collect()
    }
}

impl fmt::Display for StructureFactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.k.iter().map(|&k| component(k)).collect();
        write!(f, "structure_factor({})", all.join(" "))
    }
}

/// A component as a fraction of pi, such as -2pi/3.
fn component(k: f64) -> String {
    let halves = 2.0 * k / TAU;
    let whole =
        |d: &i64| (halves * *d as f64 - (halves * *d as f64).round()).abs() < 1e-9 * *d as f64;
    let Some(below) = (1..=LONGEST).find(whole) else { return format!("{k}") };
    let above = (halves * below as f64).round() as i64;
    let above = match above {
        0 => return "0".to_owned(),
        1 => "pi".to_owned(),
        -1 => "-pi".to_owned(),
        more => format!("{more}pi"),
    };
    if below == 1 { above } else { format!("{above}/{below}") }
}

/// The wave vectors of a periodic lattice but $k = 0$, one of $k$ and $-k$ each: those of two sublattices first, then those of three.
fn vectors(lattice: &Lattice, period: usize) -> Vec<WaveVector> {
    let mut all = vec![Vec::new()];
    for side in lattice.shape() {
        let steps: &[i8] = match (side.is_multiple_of(period), period) {
            (false, _) => &[0],
            (true, 2) => &[0, 1],
            (true, _) => &[0, 1, -1],
        };
        let longer = all.iter().flat_map(|start: &Vec<i8>| {
            steps.iter().map(move |&step| start.iter().copied().chain([step]).collect())
        });
        all = longer.collect();
    }
    all.retain(|steps| steps.iter().find(|step| **step != 0).is_some_and(|first| *first > 0));
    all.into_iter().map(|steps| WaveVector { period, steps }).collect()
}

/// The sublattices of one period, and the waves on them.
#[derive(Clone, Debug)]
struct Sublattices {
    /// Sublattices that follow one another along a line of the last axis.
    along: usize,
    /// The lines of every class, by their number.
    lines: Vec<Vec<u32>>,
    /// The waves on all sublattices, `[wave][class of lines * along + place]`.
    waves: Vec<(f64, f64)>,
}

/// Structure factors of a periodic lattice.
#[derive(Clone, Debug)]
pub(super) struct Waves {
    vectors: Vec<WaveVector>,
    periods: Vec<Sublattices>,
    side: usize,
    q: usize,
}

/// A sum of waves.
type Amplitude = (f64, f64);

impl Waves {
    /// Those of a lattice; none for very many values.
    pub(super) fn new(lattice: &Lattice, q: usize) -> Self {
        let (mut all, mut periods) = (Vec::new(), Vec::new());
        let side = lattice.shape().last().copied().unwrap_or(1);
        for period in [2, 3].into_iter().filter(|_| modes::count(q) > 0) {
            let own = vectors(lattice, period);
            if !own.is_empty() {
                periods.push(Sublattices::new(lattice, period, &own));
                all.extend(own);
            }
        }
        Waves { vectors: all, periods, side, q }
    }

    pub(super) fn vectors(&self) -> &[WaveVector] {
        &self.vectors
    }

    /// Write the structure factors of `x`, of vectors if values stand for some.
    pub(super) fn write(&self, x: &[u8], vectors: Option<&[[f64; 2]]>, out: &mut [f64]) {
        let mut rest = out;
        for own in &self.periods {
            let (now, later) = rest.split_at_mut(own.waves.len() / own.count());
            let counts = own.counts(x, self.side, self.q);
            for (value, waves) in now.iter_mut().zip(own.waves.chunks_exact(own.count())) {
                let amplitudes = counts.chunks_exact(own.count()).map(|counts| {
                    counts.iter().zip(waves).fold((0.0, 0.0), |sum: Amplitude, (&n, wave)| {
                        let n = f64::from(n);
                        (sum.0 + n * wave.0, sum.1 + n * wave.1)
                    })
                });
                let square = match vectors {
                    None => of_values(amplitudes, self.q),
                    Some(vectors) => of_vectors(amplitudes, vectors),
                };
                *value = square / x.len() as f64;
            }
            rest = later;
        }
    }
}

/// $\frac{q}{q-1} \sum_s |A_s|^2$ from the amplitudes of the values from 1 on: all together have none.
fn of_values(amplitudes: impl Iterator<Item = Amplitude>, q: usize) -> f64 {
    let (mut all, mut square) = ((0.0, 0.0), 0.0);
    for (re, im) in amplitudes {
        all = (all.0 + re, all.1 + im);
        square += re * re + im * im;
    }
    let q = q as f64;
    q / (q - 1.0) * (square + all.0 * all.0 + all.1 * all.1)
}

/// $|\sum_s v_s A_s|^2$.
fn of_vectors(amplitudes: impl Iterator<Item = Amplitude>, vectors: &[[f64; 2]]) -> f64 {
    let mut sums = [(0.0, 0.0); 2];
    for ((re, im), vector) in amplitudes.zip(&vectors[1..]) {
        for (sum, (part, first)) in sums.iter_mut().zip(vector.iter().zip(vectors[0])) {
            sum.0 += (part - first) * re;
            sum.1 += (part - first) * im;
        }
    }
    sums.iter().map(|(re, im)| re * re + im * im).sum()
}

impl Sublattices {
    fn new(lattice: &Lattice, period: usize, vectors: &[WaveVector]) -> Self {
        let sides = lattice.shape();
        let axes = sides.len();
        // Sides on which no wave fits have one class.
        let classes = |axis: usize| if sides[axis].is_multiple_of(period) { period } else { 1 };
        let along = classes(axes - 1);
        let count: usize = (0..axes - 1).map(classes).product();
        let side = sides[axes - 1];
        let mut lines = vec![Vec::new(); count];
        for line in 0..lattice.sites() / side {
            let place = |axis: usize| lattice.coordinate(line * side, axis) % classes(axis);
            let class = (0..axes - 1).fold(0, |class, axis| class * classes(axis) + place(axis));
            lines[class].push(line as u32);
        }
        let wave = |vector: &WaveVector, mut sublattice: usize| {
            let mut turns = 0;
            for axis in (0..axes).rev() {
                turns += i64::from(vector.steps[axis]) * (sublattice % classes(axis)) as i64;
                sublattice /= classes(axis);
            }
            match (period, turns.rem_euclid(period as i64)) {
                (_, 0) => (1.0, 0.0),
                (2, _) => (-1.0, 0.0),
                (_, 1) => (-0.5, 0.75f64.sqrt()),
                _ => (-0.5, -(0.75f64.sqrt())),
            }
        };
        let waves = vectors.iter().flat_map(|vector| {
            let wave = &wave;
            (0..count * along).map(move |sublattice| wave(vector, sublattice))
        });
        Sublattices { along, lines, waves: waves.collect() }
    }

    /// Sublattices.
    fn count(&self) -> usize {
        self.lines.len() * self.along
    }

    /// The sites in every value from 1 on, `[value - 1][sublattice]`.
    fn counts(&self, x: &[u8], side: usize, q: usize) -> Vec<u32> {
        let (count, along) = (self.count(), self.along);
        let mut counts = vec![0; (q - 1) * count];
        if q > FEW {
            let mut all = vec![0; q * count];
            for (class, lines) in self.lines.iter().enumerate() {
                for &line in lines {
                    for places in x[line as usize * side..][..side].chunks_exact(along) {
                        for (place, &value) in places.iter().enumerate() {
                            all[value as usize * count + class * along + place] += 1;
                        }
                    }
                }
            }
            counts.copy_from_slice(&all[count..]);
            return counts;
        }
        // Lines of a class are added up place by place, which compilers do for many places at once.
        let mut columns = vec![0; side];
        for (value, counts) in (1..).zip(counts.chunks_exact_mut(count)) {
            for (lines, counts) in self.lines.iter().zip(counts.chunks_exact_mut(along)) {
                columns.fill(0);
                for &line in lines {
                    for (sum, &own) in columns.iter_mut().zip(&x[line as usize * side..][..side]) {
                        *sum += u32::from(own == value);
                    }
                }
                for columns in columns.chunks_exact(along) {
                    counts.iter_mut().zip(columns).for_each(|(count, own)| *count += own);
                }
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Draw, Purpose, Stream};
    use crate::target::Boundary;

    fn lattice(shape: &[usize]) -> Lattice {
        Lattice::new(shape, Boundary::Periodic).unwrap()
    }

    #[test]
    fn wave_vectors_are_those_that_fit() {
        let count = |shape: &[usize]| {
            let lattice = lattice(shape);
            [2, 3].map(|period| vectors(&lattice, period).len())
        };
        assert_eq!(count(&[8, 8]), [3, 0]);
        assert_eq!(count(&[3, 3]), [0, 4]);
        assert_eq!(count(&[6, 6]), [3, 4]);
        assert_eq!(count(&[6, 4]), [3, 1]);
        assert_eq!(count(&[5, 7]), [0, 0]);
        assert_eq!(count(&[4, 4, 4]), [7, 0]);
        assert_eq!(count(&[9, 9, 9]), [0, 13]);
        let [stripes, .., staggered] = &vectors(&lattice(&[4, 4]), 2)[..] else { unreachable!() };
        assert_eq!(stripes.radians(), [0.0, TAU / 2.0]);
        let value = Estimate::new(1.0, 0.1);
        let named =
            |vector: &WaveVector| StructureFactor { k: vector.radians(), value }.to_string();
        assert_eq!(named(staggered), "structure_factor(pi pi)");
        let thirds: Vec<String> = vectors(&lattice(&[3, 3]), 3).iter().map(named).collect();
        assert_eq!(thirds[1], "structure_factor(2pi/3 0)");
        assert_eq!(thirds[3], "structure_factor(2pi/3 -2pi/3)");
    }

    /// Against the plain sum over sites, for few and many values and for vectors.
    #[test]
    fn sublattices_give_the_sums_over_sites() {
        let mut stream = Stream::new(1, Purpose::Statistic, 0, 0);
        for (shape, q) in [
            (&[6, 12][..], 2),
            (&[6], 3),
            (&[4, 5], 3),
            (&[3, 4, 6], 2),
            (&[2, 6, 3], 7),
            (&[2, 2, 3, 4], 5),
            (&[40, 6], 4),
        ] {
            let lattice = lattice(shape);
            let sites = lattice.sites();
            let x: Vec<u8> = (0..sites).map(|_| stream.below(q) as u8).collect();
            let spins: Vec<[f64; 2]> =
                (0..q).map(|_| [stream.uniform(), stream.normal()]).collect();
            let waves = Waves::new(&lattice, q);
            assert!(!waves.vectors().is_empty());
            let mut found = vec![f64::NAN; waves.vectors().len()];
            for vectors in [None, Some(&spins[..])] {
                waves.write(&x, vectors, &mut found);
                for (value, vector) in found.iter().zip(waves.vectors()) {
                    let k = vector.radians();
                    let angle = |site: usize| -> f64 {
                        let along = |axis: usize| k[axis] * lattice.coordinate(site, axis) as f64;
                        (0..shape.len()).map(along).sum()
                    };
                    let square = |weight: &dyn Fn(usize) -> f64| {
                        let re: f64 = (0..sites).map(|i| weight(i) * angle(i).cos()).sum();
                        let im: f64 = (0..sites).map(|i| weight(i) * angle(i).sin()).sum();
                        (re * re + im * im) / sites as f64
                    };
                    let plain = match vectors {
                        None => {
                            let own = |s| square(&|i| f64::from(u8::from(x[i] as usize == s)));
                            let sum: f64 = (0..q).map(own).sum();
                            q as f64 / (q as f64 - 1.0) * sum
                        }
                        Some(v) => (0..2).map(|d| square(&|i| v[x[i] as usize][d])).sum(),
                    };
                    assert!((value - plain).abs() < 1e-9, "{shape:?} {vector:?} {value} {plain}");
                }
            }
        }
        assert!(Waves::new(&lattice(&[6, 6]), 200).vectors().is_empty());
    }
}
