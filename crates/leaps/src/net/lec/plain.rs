//! The network as its formulas are written, one site at a time, for comparison.

use super::*;
use crate::device::vector::{Array, WIDTH};
use crate::device::{Draw, Purpose, SimdLevel, Stream};
use crate::net::layout::{take, total};
use crate::net::network::{Group, Network};
use crate::net::time_features::FEATURES;
use crate::net::{Net, NetSpec};
use crate::target::Pairwise;

fn silu(z: f64) -> f64 {
    z / (1.0 + (-z).exp())
}

/// `out = weight input + bias`.
fn dense(weight: &[f64], bias: &[f64], input: &[f64]) -> Vec<f64> {
    let row =
        |(row, bias): (&[f64], &f64)| bias + row.iter().zip(input).map(|(w, x)| w * x).sum::<f64>();
    weight.chunks_exact(input.len()).zip(bias).map(row).collect()
}

/// The value at an offset from a site, if it is inside.
fn neighbour(
    lattice: &Lattice,
    x: &[u8],
    site: usize,
    offset: [isize; 2],
    wraps: bool,
) -> Option<u8> {
    let mut place = 0;
    for axis in 0..2 {
        let side = lattice.shape()[axis] as isize;
        let to = lattice.coordinate(site, axis) as isize + offset[axis];
        if !wraps && !(0..side).contains(&to) {
            return None;
        }
        place = place * side as usize + to.rem_euclid(side) as usize;
    }
    Some(x[place])
}

/// Offsets of a square kernel without its centre.
fn offsets(width: usize) -> Vec<[isize; 2]> {
    let reach = (width / 2) as isize;
    let all = (-reach..=reach).flat_map(|i| (-reach..=reach).map(move |j| [i, j]));
    all.filter(|offset| *offset != [0, 0]).collect()
}

/// The outputs of one configuration, straight from the formulas of the [module](super).
fn plain(spec: &LecSpec, lattice: &Lattice, q: usize, p: &[f64], x: &[u8], t: f64) -> Vec<f64> {
    let (c, units, mut p) = (spec.channels, spec.time_units, p);
    let (inputs, planes) = if q == 2 { (1, 1) } else { (q, c) };
    let embedding: Vec<f64> = if q == 2 {
        vec![-1.0, 1.0]
    } else {
        let rows = take(&mut p, q * c).chunks_exact(c).map(|row| {
            let length = row.iter().map(|e| e * e).sum::<f64>().sqrt();
            let factor = if spec.imported && length > 1.0 { 1.0 / (length + 1e-7) } else { 1.0 };
            row.iter().map(|e| e * factor).collect::<Vec<f64>>()
        });
        rows.flatten().collect()
    };
    let value = |site_value: Option<u8>, plane: usize| {
        site_value.map_or(0.0, |site_value| embedding[site_value as usize * planes + plane])
    };
    let taps = offsets(spec.kernels[0]);
    let first = take(&mut p, c * planes * taps.len());
    let mut u = vec![vec![0.0; c]; lattice.sites()];
    for (site, u) in u.iter_mut().enumerate() {
        for (k, weight) in first.iter().enumerate() {
            let (channel, plane) = (k / taps.len() / planes, k / taps.len() % planes);
            let site_value = neighbour(lattice, x, site, taps[k % taps.len()], !spec.imported);
            u[channel] += weight * value(site_value, plane);
        }
    }
    let depth = spec.kernels.len() - 1;
    let mut last = 1.0;
    for (l, &width) in spec.kernels[1..].iter().enumerate() {
        let taps = offsets(width);
        let n = taps.len();
        let (a, inner, outer) = (take(&mut p, c * n * c), take(&mut p, c * n), take(&mut p, c * n));
        let scales = usize::from(!spec.imported && (l == 0 || l + 1 == depth));
        let mut time = vec![t];
        for (depth, outputs) in [units, units, n + scales].into_iter().enumerate() {
            let (weight, bias) = (take(&mut p, outputs * time.len()), take(&mut p, outputs));
            time = dense(weight, bias, &time);
            if depth < 2 {
                time.iter_mut().for_each(|z| *z = silu(*z));
            }
        }
        let factor = |imported: f64| match (spec.imported, scales) {
            (true, _) => imported,
            (false, 1) => 1.0 + time[n],
            (false, _) => 1.0,
        };
        if l == 0 {
            let scale = factor(1.0 + t);
            u.iter_mut().flatten().for_each(|u| *u *= scale);
        }
        if l + 1 == depth {
            last = factor(if q == 2 { 1.0 + t } else { 1.0 });
        }
        let wraps = lattice.boundary() == Boundary::Periodic;
        for (site, u) in u.iter_mut().enumerate() {
            let h: Vec<f64> = u.iter().map(|&u| silu(u)).collect();
            for channel in 0..c {
                u[channel] = 0.0;
                for tap in 0..n {
                    let at = channel * n + tap;
                    let z = dense(&a[at * c..][..c], &inner[at..=at], &h)[0];
                    let kernel = silu(z) + outer[at] + time[tap];
                    let site_value = neighbour(lattice, x, site, taps[tap], wraps);
                    u[channel] += kernel * value(site_value, channel.min(planes - 1));
                }
            }
        }
    }
    let out = u.iter().flat_map(|u| dense(p, &vec![0.0; inputs], u));
    out.map(|out| out * last).collect()
}

/// Sixteen random configurations, their times, and random parameters.
struct Case {
    spec: LecSpec,
    target: Pairwise,
    parameters: Vec<f64>,
    states: Vec<Vec<u8>>,
    times: Vec<f64>,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (shape, q, kernels, channels, imported) in [
        ([5, 7], 2, &[3, 5, 3][..], 5, true),
        ([5, 7], 2, &[3, 5, 3], 5, false),
        ([6, 5], 2, &[5, 3], 11, false),
        ([5, 5], 3, &[3, 3, 5], 4, true),
        ([4, 5], 3, &[3, 3], 7, false),
        ([5, 3], 5, &[3, 3], 9, true),
    ] {
        let lattice = Lattice::new(&shape, Boundary::Periodic).unwrap();
        let target = match q {
            2 => Pairwise::ising(lattice, 1.0, 0.0).unwrap(),
            _ => Pairwise::potts(lattice, q, 1.0, 0.0).unwrap(),
        };
        let spec = LecSpec { kernels: kernels.to_vec(), channels, time_units: 3, imported };
        let network = Lec::new(&spec, &target).unwrap();
        let mut stream = Stream::new(7, Purpose::Parameters, cases.len() as u32, 0);
        // Rounded to single precision, so that both precisions see the same numbers.
        let parameters = (0..total(&network.tensors()))
            .map(|_| f64::from((0.4 * stream.normal()) as f32))
            .collect();
        let states = (0..WIDTH)
            .map(|_| (0..target.sites()).map(|_| stream.below(q) as u8).collect())
            .collect();
        let times = (0..WIDTH).map(|k| k as f64 / 16.0).collect();
        cases.push(Case { spec, target, parameters, states, times });
    }
    cases
}

impl Case {
    /// The outputs of a lane in double precision, from the formulas.
    fn outputs(&self, lane: usize) -> Vec<f64> {
        let lattice = self.target.lattice().unwrap();
        let (x, t) = (&self.states[lane], self.times[lane]);
        plain(&self.spec, lattice, self.target.q(), &self.parameters, x, t)
    }

    /// The gradient of `sum d_out(index, lane) out` in double precision, from the passes.
    fn gradient(&self) -> Vec<f64> {
        let network = Lec::new(&self.spec, &self.target).unwrap();
        let (q, inputs) = (self.target.q(), network.inputs);
        let x: Vec<Array<f64>> = (0..self.target.sites() * inputs)
            .map(|i| {
                Array(std::array::from_fn(|lane| {
                    let site_value = self.states[lane][i / inputs] as usize;
                    if q == 2 {
                        2.0 * site_value as f64 - 1.0
                    } else {
                        f64::from(site_value == i % inputs)
                    }
                }))
            })
            .collect();
        let features = [Array([0.0; WIDTH]); FEATURES];
        let t = Array(std::array::from_fn(|lane| self.times[lane]));
        let group = Group { x: &x, t, features: &features, couplings: &[] };
        let mut packed = vec![0.0; network.packed()];
        network.pack(&self.parameters, &mut packed);
        let mut scratch = vec![Array([f64::NAN; WIDTH]); network.scratch()];
        let mut out = x.clone();
        let d_out: Vec<Array<f64>> = (0..x.len())
            .map(|i| Array(std::array::from_fn(|lane| f64::from(d_out(i, lane)))))
            .collect();
        let (mut grad, mut unpacked) = (vec![0.0; packed.len()], vec![0.0; self.parameters.len()]);
        // SAFETY: plain arrays need no special instructions.
        unsafe {
            network.forward_train(&packed, &group, &mut scratch, &mut out);
            network.backward(&packed, &group, &mut scratch, &d_out, &mut grad);
        }
        network.unpack(&grad, &mut unpacked);
        unpacked
    }
}

fn d_out(index: usize, lane: usize) -> f32 {
    ((index * 7 + lane * 3) % 11) as f32 / 5.0 - 1.0
}

#[test]
fn all_levels_compute_the_formulas_and_their_gradient() {
    for case in cases() {
        let net = Net::new(&NetSpec::Lec(case.spec.clone()), &case.target).unwrap();
        let parameters: Vec<f32> = case.parameters.iter().map(|&p| p as f32).collect();
        let (packed, want) = (net.pack(&parameters), case.gradient());
        let largest = want.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
        for level in SimdLevel::available() {
            let net = net.clone().at_level(level);
            let mut worker = net.worker();
            for lane in 0..WIDTH {
                worker.set(lane, &case.states[lane], case.times[lane]);
            }
            net.forward(&packed, &mut worker);
            for lane in 0..WIDTH {
                let outputs = case.outputs(lane);
                let scale = outputs.iter().fold(1e-3, |m: f64, o| m.max(o.abs()));
                for (index, want) in outputs.iter().enumerate() {
                    let error = (f64::from(worker.output(lane, index)) - want).abs();
                    assert!(error < 1e-5 * scale, "{level:?} {:?}: {error}", case.spec);
                    worker.set_slope(lane, index, d_out(index, lane));
                }
            }
            let (mut grad, mut unpacked) = (vec![0.0; packed.len()], vec![0.0; parameters.len()]);
            net.backward(&packed, &mut worker, &mut grad);
            net.unpack(&grad, &mut unpacked);
            for (got, want) in unpacked.iter().zip(&want) {
                let error = (f64::from(*got) - want).abs();
                assert!(error < 2e-5 * largest, "{level:?} {:?}: {error}", case.spec);
            }
        }
    }
}
