//! Structure factors at every wave vector of a periodic lattice, and correlations at every offset, by Fourier transforms.
//!
//! With the amplitudes $A(k) = \sum_i v_i e^{ikr_i}$ of what is at the sites, $S(k) = \lvert A(k)\rvert^2/N$ and $G(r) = \frac1N \sum_k S(k) e^{ikr}$ is
//! the mean product of all pairs at the offset $r$: no direction is averaged over. Neither is connected. Values that stand for no vectors
//! count as in [`Layout`](super::Layout): $v_i$ is 1 in the value's own component, less $1/q$ in all.

use std::f64::consts::TAU;
use std::sync::Arc;

use rustfft::num_complex::Complex64;
use rustfft::{Fft, FftPlannerScalar};
use serde::{Deserialize, Serialize};

use super::Estimate;
use crate::target::Lattice;

/// The two-point function at one offset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OffsetCorrelation {
    /// The offset in the array of sites, one of $r$ and $-r$.
    pub offset: Vec<i64>,
    /// $G(r)$; not connected.
    #[serde(flatten)]
    pub value: Estimate,
}

/// The wave vectors of a periodic lattice, one of $k$ and $-k$ each, and the transforms to them.
#[derive(Clone)]
pub(super) struct Momenta {
    sides: Vec<usize>,
    /// For every one that is kept, its steps along the axes, from just above minus half a side to half of it.
    steps: Vec<Vec<i64>>,
    /// Their places in the array of all.
    places: Vec<u32>,
    /// The place of $-k$ for every $k$.
    opposite: Vec<u32>,
    plans: Vec<Arc<dyn Fft<f64>>>,
}

impl Momenta {
    pub fn new(lattice: &Lattice) -> Self {
        let sides = lattice.shape().to_vec();
        let mut planner = FftPlannerScalar::new();
        let plans = sides.iter().map(|&side| planner.plan_fft_forward(side)).collect();
        let steps_of = |place: usize, sign: i64| -> Vec<i64> {
            let along = |(axis, &side): (usize, &usize)| {
                let side = side as i64;
                let step = (sign * lattice.coordinate(place, axis) as i64).rem_euclid(side);
                if 2 * step > side { step - side } else { step }
            };
            sides.iter().enumerate().map(along).collect()
        };
        let opposite = (0..lattice.sites()).map(|place| {
            let back: Vec<i64> =
                (0..sides.len()).map(|axis| -2 * lattice.coordinate(place, axis) as i64).collect();
            lattice.at(place, &back).unwrap_or(place) as u32
        });
        let opposite = opposite.collect();
        let (mut steps, mut places) = (Vec::new(), Vec::new());
        for place in 0..lattice.sites() {
            let own = steps_of(place, 1);
            if own >= steps_of(place, -1) {
                steps.push(own);
                places.push(place as u32);
            }
        }
        Momenta { sides, steps, places, opposite, plans }
    }

    /// The steps along the axes of all wave vectors, 0 first, and so of all offsets.
    pub fn steps(&self) -> &[Vec<i64>] {
        &self.steps
    }

    /// Write the structure factors of `x` and then its correlations, of vectors if values stand for some.
    pub fn write(&self, x: &[u8], q: usize, vectors: Option<&[[f64; 2]]>, out: &mut [f64]) {
        let mut squares = vec![0.0; x.len()];
        let mut field = vec![Complex64::default(); x.len()];
        // Two real fields share a transform: |F|^2 + |G|^2 = (|Z(k)|^2 + |Z(-k)|^2) / 2.
        let mut add = |of: &dyn Fn(u8) -> (f64, f64)| {
            for (field, &value) in field.iter_mut().zip(x) {
                let (re, im) = of(value);
                *field = Complex64::new(re, im);
            }
            self.transform(&mut field);
            for ((square, own), &back) in squares.iter_mut().zip(&field).zip(&self.opposite) {
                *square += 0.5 * (own.norm_sqr() + field[back as usize].norm_sqr());
            }
        };
        let mut scale = 1.0 / x.len() as f64;
        match vectors {
            Some(vectors) => add(&|value| vectors[value as usize].into()),
            None if q == 2 => add(&|value| (2.0 * f64::from(value) - 1.0, 0.0)),
            None => {
                let excess = |s: usize, value: u8| match s < q {
                    true => f64::from(u8::from(value as usize == s)) - 1.0 / q as f64,
                    false => 0.0,
                };
                for s in (0..q).step_by(2) {
                    add(&|value| (excess(s, value), excess(s + 1, value)));
                }
                scale *= q as f64 / (q as f64 - 1.0);
            }
        }
        let (structure, correlation) = out.split_at_mut(self.steps.len());
        for (field, square) in field.iter_mut().zip(&mut squares) {
            *square *= scale;
            *field = Complex64::new(*square, 0.0);
        }
        // S(k) = S(-k): there and back are the same.
        self.transform(&mut field);
        if vectors.is_none() {
            // A site beside itself, without the rounding, which would look like an error.
            field[0] = Complex64::new(x.len() as f64, 0.0);
        }
        for ((structure, correlation), &place) in
            structure.iter_mut().zip(correlation).zip(&self.places)
        {
            *structure = squares[place as usize];
            *correlation = field[place as usize].re / x.len() as f64;
        }
    }

    /// Transform a field along all axes.
    fn transform(&self, field: &mut [Complex64]) {
        let mut stride = field.len();
        for (plan, &side) in self.plans.iter().zip(&self.sides) {
            let plane = stride;
            stride /= side;
            let mut line = vec![Complex64::default(); side];
            for plane in field.chunks_exact_mut(plane) {
                for first in 0..stride {
                    for (place, own) in line.iter_mut().enumerate() {
                        *own = plane[first + place * stride];
                    }
                    plan.process(&mut line);
                    for (place, own) in line.iter().enumerate() {
                        plane[first + place * stride] = *own;
                    }
                }
            }
        }
    }
}

/// A wave vector in radians, from its steps along the axes.
pub(super) fn radians(steps: &[i64], sides: &[usize]) -> Vec<f64> {
    steps.iter().zip(sides).map(|(&step, &side)| TAU * step as f64 / side as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Draw, Purpose, Stream};
    use crate::target::Boundary;

    /// Every wave vector and every offset against plain sums over sites and pairs.
    #[test]
    fn transforms_are_sums_over_sites_and_pairs() {
        let mut stream = Stream::new(5, Purpose::Initial, 0, 0);
        for (shape, q) in [(&[6][..], 2), (&[4, 3], 2), (&[3, 5], 3), (&[2, 4, 3], 4), (&[2, 7], 5)]
        {
            let lattice = Lattice::new(shape, Boundary::Periodic).unwrap();
            let sites = lattice.sites();
            let x: Vec<u8> = (0..sites).map(|_| stream.below(q) as u8).collect();
            let spins: Vec<[f64; 2]> =
                (0..q).map(|_| [stream.uniform(), stream.normal()]).collect();
            let momenta = Momenta::new(&lattice);
            let count = momenta.steps().len();
            let mut found = vec![f64::NAN; 2 * count];
            for vectors in [None, Some(&spins[..])] {
                momenta.write(&x, q, vectors, &mut found);
                let product = |i: usize, j: usize| -> f64 {
                    let (a, b) = (x[i] as usize, x[j] as usize);
                    match vectors {
                        Some(v) => v[a][0] * v[b][0] + v[a][1] * v[b][1],
                        None => {
                            let equal = f64::from(u8::from(a == b));
                            (q as f64 * equal - 1.0) / (q as f64 - 1.0)
                        }
                    }
                };
                // All of k and -k, once.
                let pairs: usize = momenta
                    .steps()
                    .iter()
                    .map(|steps| {
                        let own = |(step, side): (&i64, &usize)| 2 * step % *side as i64 == 0;
                        if steps.iter().zip(shape).all(own) { 1 } else { 2 }
                    })
                    .sum();
                assert_eq!(pairs, sites, "{shape:?}");
                for (number, steps) in momenta.steps().iter().enumerate() {
                    let k = radians(steps, shape);
                    let mut structure = 0.0;
                    for i in 0..sites {
                        for j in 0..sites {
                            let apart = |axis: usize| {
                                lattice.coordinate(i, axis) as f64
                                    - lattice.coordinate(j, axis) as f64
                            };
                            let angle: f64 = (0..shape.len()).map(|a| k[a] * apart(a)).sum();
                            structure += product(i, j) * angle.cos() / sites as f64;
                        }
                    }
                    let pair = |i: usize| product(i, lattice.at(i, steps).unwrap());
                    let correlation = (0..sites).map(pair).sum::<f64>() / sites as f64;
                    let own = [found[number], found[count + number]];
                    for (own, plain) in own.into_iter().zip([structure, correlation]) {
                        assert!((own - plain).abs() < 1e-9, "{shape:?} {steps:?} {own} {plain}");
                    }
                }
            }
        }
    }
}
