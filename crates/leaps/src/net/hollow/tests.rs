//! Tests of the hollow convolution: its gradients, its values, and what it must not depend on.

mod bonds;
pub(super) mod tables;

use super::*;
use crate::device::level::dispatch;
use crate::device::vector::{Array, Floats, WIDTH, cast, cast_mut};
use crate::device::{Draw, Purpose, SimdLevel, Stream};
use crate::net::testing::{self, Harness};
use crate::net::time_features::{FEATURES, features};
use crate::net::{Net, NetSpec, layout};
use crate::target::{Bond, Interaction, Pairwise};
use bonds::{bonded, shells};

fn lattice(shape: &[usize], boundary: Boundary) -> Lattice {
    Lattice::new(shape, boundary).unwrap()
}

#[test]
fn gradients_are_finite_differences_and_outputs_are_hollow() {
    use Boundary::{Free, Periodic};
    for (shape, boundary, q, channels, depth, rows, head) in [
        (&[9][..], Periodic, 2, 5, 3, 3, 4),
        (&[6], Periodic, 5, 8, 2, 3, 7),
        (&[7], Free, 3, 2, 4, 3, 3),
        (&[2], Periodic, 2, 3, 3, 1, 3),
        (&[4, 4], Periodic, 2, 7, 1, 3, 5),
        (&[5, 5], Periodic, 3, 3, 1, 3, 9),
        (&[6, 6], Periodic, 2, 6, 2, 3, 8),
        (&[6, 9], Periodic, 2, 4, 2, 3, 5),
        (&[3, 4], Periodic, 5, 3, 1, 2, 2),
        (&[2, 5], Periodic, 2, 3, 2, 1, 4),
        (&[5, 3], Free, 2, 4, 3, 3, 4),
        (&[4, 4, 4], Periodic, 2, 2, 1, 3, 3),
        (&[3, 4, 3], Periodic, 3, 3, 1, 2, 3),
        (&[3, 2, 4], Free, 2, 2, 2, 3, 2),
    ] {
        let lattice = lattice(shape, boundary);
        let channels_of = if q == 2 { 1 } else { q };
        let spec = HollowSpec {
            channels,
            depth: Some(depth),
            rows: Some(rows),
            head: Some(head),
            global_features: true,
            bond_features: true,
        };
        let network =
            Hollow::new(&spec, &lattice, Counted::Bonds(&[]), channels_of, channels_of).unwrap();
        testing::check_network(&network, lattice.sites(), channels_of, channels_of);
        testing::check_conditioned(
            &network.conditioned_on(2),
            lattice.sites(),
            channels_of,
            channels_of,
            2,
        );
    }
}

/// Values of 16 configurations, their times, and parameters that wake every part of a network.
struct Case {
    network: Hollow,
    sites: usize,
    channels: usize,
    x: Vec<Array<f64>>,
    t: [f64; WIDTH],
    parameters: Vec<f64>,
}

impl Case {
    fn new(network: Hollow, sites: usize, q: usize, seed: u64) -> Self {
        let channels = if q == 2 { 1 } else { q };
        let mut stream = Stream::new(seed, Purpose::Statistic, 2, 0);
        let mut x = vec![Array([0.0; WIDTH]); sites * channels];
        for site in 0..sites {
            for lane in 0..WIDTH {
                let site_value = stream.below(q);
                for c in 0..channels {
                    x[site * channels + c].0[lane] = if q == 2 {
                        2.0 * site_value as f64 - 1.0
                    } else {
                        f64::from(site_value == c)
                    };
                }
            }
        }
        let t = std::array::from_fn(|_| stream.uniform());
        let harness = Harness::new(&network, sites, channels, channels, seed);
        // Numbers that single precision holds.
        let parameters =
            harness.parameters(seed).iter().map(|&p| f64::from(p as f32)).collect::<Vec<_>>();
        Case { network, sites, channels, x, t, parameters }
    }

    fn features<S: Real>(&self) -> [Array<S>; FEATURES] {
        let mut rows = [Array([S::default(); WIDTH]); FEATURES];
        for (lane, &t) in self.t.iter().enumerate() {
            for (row, feature) in rows.iter_mut().zip(features(t)) {
                row.0[lane] = S::from_f64(feature);
            }
        }
        rows
    }

    /// Outputs and the gradient of their weighted sum.
    fn run<S: Real>(&self, pass: impl Fn(Pass<'_, S>)) -> (Vec<f64>, Vec<f64>) {
        let convert = |array: &Array<f64>| Array(array.0.map(S::from_f64));
        let x: Vec<Array<S>> = self.x.iter().map(convert).collect();
        let parameters: Vec<S> = self.parameters.iter().map(|&p| S::from_f64(p)).collect();
        let mut packed = vec![S::default(); self.network.packed()];
        self.network.pack(&parameters, &mut packed);
        let mut out = vec![Array([S::default(); WIDTH]); x.len()];
        let d_out: Vec<Array<S>> = (0..x.len())
            .map(|i| Array(std::array::from_fn(|l| S::from_f64(((i + 3 * l) as f64).sin()))))
            .collect();
        let mut grad = vec![S::default(); packed.len()];
        let mut scratch = vec![Array([S::default(); WIDTH]); self.network.scratch()];
        pass(Pass {
            network: &self.network,
            packed: &packed,
            x: &x,
            features: &self.features(),
            scratch: &mut scratch,
            out: &mut out,
            d_out: &d_out,
            grad: &mut grad,
        });
        let mut gradient = vec![S::default(); parameters.len()];
        self.network.unpack(&grad, &mut gradient);
        (
            out.iter().flat_map(|o| o.0.map(S::to_f64)).collect(),
            gradient.iter().map(|g| g.to_f64()).collect(),
        )
    }
}

/// What a forward and a backward pass work on.
struct Pass<'a, S> {
    network: &'a Hollow,
    packed: &'a [S],
    x: &'a [Array<S>],
    features: &'a [Array<S>; FEATURES],
    scratch: &'a mut [Array<S>],
    out: &'a mut [Array<S>],
    d_out: &'a [Array<S>],
    grad: &'a mut [S],
}

#[inline(always)]
unsafe fn at_level<L: Floats>(p: &mut Pass<'_, f32>) {
    // SAFETY: the caller has the instructions of the level.
    unsafe {
        let features: &[L::V; FEATURES] = cast::<L>(p.features).try_into().unwrap();
        let group = Group { x: cast::<L>(p.x), t: features[0], features, couplings: &[] };
        let scratch = cast_mut::<L>(p.scratch);
        p.network.forward_train(p.packed, &group, scratch, cast_mut::<L>(p.out));
        p.network.backward(p.packed, &group, scratch, cast::<L>(p.d_out), p.grad);
    }
}

fn in_double_precision(p: Pass<'_, f64>) {
    let group = Group { x: p.x, t: p.features[0], features: p.features, couplings: &[] };
    // SAFETY: plain arrays need no special instructions.
    unsafe {
        p.network.forward_train(p.packed, &group, p.scratch, p.out);
        p.network.backward(p.packed, &group, p.scratch, p.d_out, p.grad);
    }
}

fn silu(z: f64) -> f64 {
    z / (1.0 + (-z).exp())
}

/// The formulas of the module word by word, one configuration at a time.
fn reference(
    case: &Case,
    (lattice, bonds): (&Lattice, &[Bond]),
    sizes: &Sizes,
    lane: usize,
) -> Vec<f64> {
    let (c, d, n) = (sizes.channels, lattice.shape().len(), case.sites);
    let mut rest = &case.parameters[..];
    let feature = features(case.t[lane]);
    let matrix = |w: &[f64], b: &[f64], x: &[f64]| -> Vec<f64> {
        let rows = w.chunks(x.len()).zip(b);
        rows.map(|(row, b)| b + row.iter().zip(x).map(|(w, x)| w * x).sum::<f64>()).collect()
    };
    let time = |rest: &mut &[f64], outputs: usize| -> Vec<f64> {
        let hidden = 32;
        let (w1, b1) = (take(rest, hidden * FEATURES), take(rest, hidden));
        let (w2, b2) = (take(rest, outputs * hidden), take(rest, outputs));
        let inner: Vec<f64> = matrix(w1, b1, &feature).into_iter().map(silu).collect();
        matrix(w2, b2, &inner)
    };
    let taps = sizes.rows * 3usize.pow(d as u32 - 1);
    let mut h: Vec<Vec<f64>> = vec![Vec::new(); 2 * d];
    for layer in 0..sizes.depth {
        let inputs = if layer == 0 { case.channels } else { c };
        let (w, b) = (take(&mut rest, c * inputs * taps), take(&mut rest, c));
        let time = if layer == 0 { Vec::new() } else { time(&mut rest, 2 * c) };
        for (k, h) in h.iter_mut().enumerate() {
            let frame = geometry::Frame::new(lattice, k / 2, k % 2 == 1);
            let input: Vec<f64> = if layer == 0 {
                case.x.iter().map(|x| x.0[lane]).collect()
            } else {
                let z =
                    h.iter().enumerate().map(|(i, h)| h * (1.0 + time[i % c]) + time[c + i % c]);
                z.map(silu).collect()
            };
            let mut out = if layer == 0 { vec![0.0; n * c] } else { h.clone() };
            let sides: Vec<usize> = (0..d).map(|j| frame.side(j)).collect();
            for position in geometry::odometer(&sides) {
                let at = |tap: &[isize]| {
                    let p: Vec<isize> = (0..d).map(|j| position[j] as isize + tap[j]).collect();
                    frame.site(&p)
                };
                let site = at(&vec![0; d]).unwrap();
                for o in 0..c {
                    out[site * c + o] += b[o];
                    for tap in 0..taps {
                        let (mut offset, mut index) = (vec![0; d], tap);
                        for j in (1..d).rev() {
                            offset[j] = (index % 3) as isize - 1;
                            index /= 3;
                        }
                        offset[0] = index as isize - (sizes.rows as isize - 1);
                        let Some(from) = at(&offset) else { continue };
                        for i in 0..inputs {
                            let weight = w[(o * inputs + i) * taps + tap];
                            out[site * c + o] += weight * input[from * inputs + i];
                        }
                    }
                }
            }
            *h = out;
        }
    }
    let features = |site| match sizes.global_features {
        true => global_features(case, lattice, bonds, (lane, site)),
        false => Vec::new(),
    };
    let (width, context) = (sizes.head, 2 * d * c + features(0).len());
    let (m1, c1) = (take(&mut rest, width * context), take(&mut rest, width));
    let (m2, c2) = (take(&mut rest, width * width), take(&mut rest, width));
    let (m3, c3) = (take(&mut rest, case.channels * width), take(&mut rest, case.channels));
    let time = time(&mut rest, 2 * width);
    assert!(rest.is_empty());
    let mut out = Vec::new();
    for site in 0..n {
        let mut context = Vec::new();
        for (k, h) in h.iter().enumerate() {
            let (axis, backwards) = (k / 2, k % 2 == 1);
            let step = lattice.shape()[axis] - 1;
            let before = match lattice.boundary() {
                Boundary::Periodic => lattice.ahead(site, axis, if backwards { 1 } else { step }),
                Boundary::Free if backwards => lattice.ahead(site, axis, 1),
                Boundary::Free => (0..n).find(|&j| lattice.ahead(j, axis, 1) == Some(site)),
            };
            context.extend((0..c).map(|c_| before.map_or(0.0, |j| silu(h[j * c + c_]))));
        }
        context.extend(features(site));
        let u = matrix(m1, c1, &context);
        let v: Vec<f64> =
            (0..width).map(|i| silu(u[i] * (1.0 + time[i]) + time[width + i])).collect();
        let w = matrix(m2, c2, &v);
        let r: Vec<f64> = w.iter().zip(&v).map(|(w, v)| silu(w + v)).collect();
        out.extend(matrix(m3, c3, &r));
    }
    out
}

/// What the others add up to, site by site and bond by bond.
fn global_features(
    case: &Case,
    lattice: &Lattice,
    bonds: &[Bond],
    (lane, site): (usize, usize),
) -> Vec<f64> {
    let (n, io) = (lattice.sites(), case.channels);
    let q = if io == 1 { 2.0 } else { io as f64 };
    let site_value =
        |i: usize| -> Vec<f64> { (0..io).map(|s| case.x[i * io + s].0[lane]).collect() };
    let others = (0..n).filter(|&i| i != site);
    // 0 for independent values, 1 for equal ones.
    let excess = |count: f64, all: usize| match io {
        1 => count / all as f64,
        _ => (q * count / all as f64 - 1.0) / (q - 1.0),
    };
    let mut numbers: Vec<f64> =
        (0..io).map(|s| excess(others.clone().map(|i| site_value(i)[s]).sum(), n)).collect();
    let nearest = shells(None, lattice.shape().len(), &[1.0]);
    let counted = if bonds.is_empty() { &nearest } else { bonds };
    let mut strengths: Vec<f64> = Vec::new();
    for bond in counted {
        if !strengths.contains(&bond.strength) {
            strengths.push(bond.strength);
        }
    }
    for strength in strengths {
        let offsets = counted.iter().filter(|bond| bond.strength == strength);
        let pairs: Vec<(usize, usize)> = offsets
            .flat_map(|b| (0..n).filter_map(move |i| Some((i, lattice.at(i, &b.offset)?))))
            .collect();
        let apart = pairs.iter().filter(|(i, j)| *i != site && *j != site);
        let equal = apart.map(|&(i, j)| {
            site_value(i).iter().zip(site_value(j)).map(|(a, b)| a * b).sum::<f64>()
        });
        numbers.push(excess(equal.sum(), pairs.len()));
    }
    let even = |axis: &usize| {
        lattice.boundary() == Boundary::Free || lattice.shape()[*axis].is_multiple_of(2)
    };
    let axes: Vec<usize> = (0..lattice.shape().len()).filter(even).collect();
    let choices = if bonds.is_empty() { 1 } else { 1 << axes.len() };
    for chosen in 1..choices {
        let sign = |i: usize| -> f64 {
            let chosen = axes.iter().enumerate().filter(|(k, _)| chosen & (1 << k) != 0);
            chosen.map(|(_, &axis)| [1.0, -1.0][lattice.coordinate(i, axis) % 2]).product()
        };
        for s in 0..io {
            let order: f64 = others.clone().map(|i| sign(i) * site_value(i)[s]).sum();
            let most = if io == 1 { n as f64 } else { n as f64 / 2.0 };
            numbers.push(sign(site) * order / most);
        }
    }
    let functions = |z: f64| {
        let y = (n as f64).sqrt() * z;
        [z, 2.0 * z * z - 1.0, 4.0 * z.powi(3) - 3.0 * z, y / (1.0 + y.abs())]
    };
    numbers.into_iter().flat_map(functions).collect()
}

#[test]
fn values_are_those_of_the_formulas_at_every_level() {
    use Boundary::{Free, Periodic};
    for (shape, boundary, q, sizes) in [
        (
            &[7][..],
            Periodic,
            3,
            Sizes { channels: 5, depth: 2, rows: 3, head: 9, global_features: true },
        ),
        (&[6], Free, 2, Sizes { channels: 13, depth: 3, rows: 3, head: 4, global_features: true }),
        (
            &[9, 8],
            Periodic,
            2,
            Sizes { channels: 24, depth: 3, rows: 3, head: 48, global_features: false },
        ),
        (
            &[5, 7],
            Periodic,
            5,
            Sizes { channels: 11, depth: 1, rows: 3, head: 10, global_features: true },
        ),
        (
            &[3, 5],
            Periodic,
            2,
            Sizes { channels: 6, depth: 1, rows: 2, head: 7, global_features: true },
        ),
        (
            &[2, 4],
            Periodic,
            2,
            Sizes { channels: 6, depth: 3, rows: 1, head: 7, global_features: true },
        ),
        (
            &[3, 5],
            Free,
            3,
            Sizes { channels: 10, depth: 3, rows: 3, head: 7, global_features: false },
        ),
        (
            &[4, 5, 4],
            Periodic,
            2,
            Sizes { channels: 7, depth: 1, rows: 3, head: 8, global_features: true },
        ),
        (
            &[3, 4, 2],
            Free,
            3,
            Sizes { channels: 4, depth: 2, rows: 2, head: 5, global_features: true },
        ),
    ] {
        check_values(&lattice(shape, boundary), &[], q, &sizes);
    }
    for (lattice, q, bonds) in bonded() {
        let sizes = Sizes { channels: 5, depth: 1, rows: 2, head: 6, global_features: true };
        check_values(&lattice, &bonds, q, &sizes);
    }
}

/// Outputs and gradients of a network are those of the formulas, at every level.
fn check_values(lattice: &Lattice, bonds: &[Bond], q: usize, sizes: &Sizes) {
    let (io, shape) = (if q == 2 { 1 } else { q }, lattice.shape());
    let network = Hollow::build(sizes, lattice, Counted::Bonds(bonds), io, io);
    let case = Case::new(network, lattice.sites(), q, 7);
    let (want, gradient) = case.run(in_double_precision);
    let largest = want.iter().fold(0.0f64, |m, o| m.max(o.abs()));
    for lane in [0, 11] {
        for (i, value) in reference(&case, (lattice, bonds), sizes, lane).iter().enumerate() {
            let error = (want[i * WIDTH + lane] - value).abs();
            assert!(error < 1e-12 * largest, "{shape:?} {i}: {value} {error}");
        }
    }
    let steepest = gradient.iter().fold(0.0f64, |m, o| m.max(o.abs()));
    for level in SimdLevel::available() {
        let (got, slopes) = case.run(|mut pass: Pass<'_, f32>| {
            let p = &mut pass;
            dispatch!(level, at_level, (p: &mut Pass<'_, f32>));
        });
        let worst = got.iter().zip(&want).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
        assert!(worst < 1e-5 * largest, "{level:?} {shape:?}: off by {worst} of {largest}");
        let worst = slopes.iter().zip(&gradient).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
        assert!(worst < 1e-5 * steepest, "{level:?} {shape:?}: slope {worst} of {steepest}");
    }
}

#[test]
fn passes_that_keep_nothing_write_the_same_bits() {
    use Boundary::{Free, Periodic};
    for (shape, boundary, depth, rows) in [
        (&[23][..], Periodic, 6, 3),
        (&[2], Periodic, 5, 1),
        (&[9], Periodic, 7, 2),
        (&[3], Free, 5, 3),
        (&[8, 8], Periodic, 3, 3),
        (&[15, 15], Periodic, 6, 3),
        (&[14, 21], Periodic, 6, 3),
        (&[37, 10], Periodic, 4, 3),
        (&[9, 13], Free, 6, 3),
        (&[7, 7, 8], Periodic, 2, 3),
        (&[4, 3, 5], Free, 3, 2),
    ] {
        let lattice = lattice(shape, boundary);
        let target = Pairwise::potts(lattice, 3, 1.0, 0.1).unwrap();
        let sites = shape.iter().product::<usize>();
        let spec =
            HollowSpec { channels: 7, depth: Some(depth), rows: Some(rows), ..Default::default() };
        for level in SimdLevel::available() {
            let net = Net::new(&NetSpec::Hollow(spec.clone()), &target).unwrap().at_level(level);
            let packed = net.pack(&net.initial(2));
            let outputs = [net.worker(), net.forward_worker()].map(|mut worker| {
                let mut stream = Stream::new(3, Purpose::Statistic, 0, 0);
                // Twice: nothing of the first pass may be left for the second.
                for _ in 0..2 {
                    for lane in 0..WIDTH {
                        let state: Vec<u8> = (0..sites).map(|_| stream.below(3) as u8).collect();
                        worker.set(lane, &state, stream.uniform());
                    }
                    net.forward(&packed, &mut worker);
                }
                worker.out.iter().flat_map(|o| o.0.map(f32::to_bits)).collect::<Vec<u32>>()
            });
            assert!(outputs[0] == outputs[1], "{shape:?} {boundary:?} {level:?}");
        }
    }
}

/// Whether a network's outputs depend on the site's own value.
fn leaks(network: &Hollow, sites: usize) -> bool {
    let harness = Harness::new(network, sites, 1, 1, 3);
    harness.first_leak(&harness.parameters(3)).is_some()
}

#[test]
fn ordinary_convolutions_leak() {
    let lattice = lattice(&[6, 7], Boundary::Periodic);
    let sizes = Sizes { channels: 5, depth: 2, rows: 3, head: 6, global_features: true };
    let network = Hollow::build(&sizes, &lattice, Counted::Bonds(&[]), 1, 1);
    assert!(!leaks(&network, 42));
    assert!(leaks(&network.without_shift(), 42));
}

#[test]
fn the_reach_is_the_largest_that_does_not_leak() {
    for (shape, rows, deepest) in [
        (&[4][..], 3, 1),
        (&[9], 3, 3),
        (&[3], 2, 1),
        (&[5], 2, 3),
        (&[5, 8], 3, 1),
        (&[8, 6], 3, 2),
        (&[7, 7], 3, 2),
        (&[6, 4], 2, 2),
        (&[4, 5, 4], 3, 1),
    ] {
        let lattice = lattice(shape, Boundary::Periodic);
        let spec = |depth| HollowSpec {
            channels: 3,
            depth,
            rows: Some(rows),
            head: None,
            global_features: true,
            bond_features: true,
        };
        let default = spec(None).sizes(&lattice, SHIFT).unwrap();
        assert_eq!(default.depth, deepest, "{shape:?}");
        assert!(
            !leaks(&Hollow::build(&default, &lattice, Counted::Bonds(&[]), 1, 1), lattice.sites()),
            "{shape:?}"
        );
        let deeper = Sizes { depth: deepest + 1, ..default };
        assert!(
            leaks(&Hollow::build(&deeper, &lattice, Counted::Bonds(&[]), 1, 1), lattice.sites()),
            "{shape:?}"
        );
        let error = spec(Some(deepest + 1)).sizes(&lattice, SHIFT).unwrap_err().to_string();
        assert!(error.contains("network.depth"), "{error}");
        assert!(error.contains(&format!("use network.depth = {deepest}")), "{error}");
    }
    // Free boundaries have no way round.
    let free = lattice(&[4, 5], Boundary::Free);
    let deep = Sizes { channels: 2, depth: 7, rows: 3, head: 2, global_features: true };
    assert!(!leaks(&Hollow::build(&deep, &free, Counted::Bonds(&[]), 1, 1), 20));
}

#[test]
fn small_lattices_get_fewer_rows_and_wrong_settings_an_answer() {
    let rows = |shape: &[usize]| {
        let sizes =
            HollowSpec::default().sizes(&lattice(shape, Boundary::Periodic), SHIFT).unwrap();
        (sizes.rows, sizes.depth)
    };
    assert_eq!(rows(&[2]), (1, 6));
    assert_eq!(rows(&[3, 9]), (2, 1));
    assert_eq!(rows(&[4, 4]), (3, 1));
    assert_eq!(rows(&[15, 15]), (3, 6));
    assert_eq!(rows(&[40, 40]), (3, 6));
    let three = lattice(&[3, 3], Boundary::Periodic);
    for (spec, key) in [
        (HollowSpec { channels: 0, ..Default::default() }, "network.channels = 0"),
        (HollowSpec { depth: Some(0), ..Default::default() }, "network.depth = 0"),
        (HollowSpec { depth: Some(2), ..Default::default() }, "network.depth = 2"),
        (HollowSpec { head: Some(0), ..Default::default() }, "network.head = 0"),
        (HollowSpec { rows: Some(3), ..Default::default() }, "network.rows = 3"),
        (HollowSpec { rows: Some(0), ..Default::default() }, "network.rows = 0"),
    ] {
        let error = Hollow::new(&spec, &three, Counted::Bonds(&[]), 1, 1).unwrap_err().to_string();
        assert!(error.starts_with(key), "{error}");
    }
    let four = lattice(&[4, 4, 4, 4], Boundary::Periodic);
    assert!(Hollow::new(&HollowSpec::default(), &four, Counted::Bonds(&[]), 1, 1).is_err());
}

#[test]
fn an_untrained_network_says_little() {
    let lattice = lattice(&[15, 15], Boundary::Periodic);
    for q in [2, 3] {
        let io = if q == 2 { 1 } else { q };
        let network =
            Hollow::new(&HollowSpec::default(), &lattice, Counted::Bonds(&[]), io, io).unwrap();
        let mut case = Case::new(network, 225, q, 1);
        let start = layout::initialise(&case.network.tensors(), 4);
        case.parameters = start.iter().map(|&p| f64::from(p)).collect();
        let (out, _) = case.run(in_double_precision);
        let square = out.iter().map(|o| o * o).sum::<f64>() / out.len() as f64;
        assert!(square.sqrt() < 0.1 && square > 1e-8, "{square}");
    }
}

#[test]
fn the_network_is_built_from_a_file() {
    let model = Pairwise::ising(lattice(&[5, 5], Boundary::Periodic), 1.0, 0.0).unwrap();
    let spec: NetSpec = serde_json::from_str(r#"{"kind": "hollow", "channels": 9}"#).unwrap();
    let net = Net::new(&spec, &model).unwrap();
    assert!(net.parameters() > 0);
    // Files that do not speak of global_features are older than they.
    assert!(matches!(net.spec(), NetSpec::Hollow(own) if !own.global_features));
    let json = r#"{"kind": "hollow", "channels": 9, "global_features": true}"#;
    let with = Net::new(&serde_json::from_str(json).unwrap(), &model).unwrap();
    assert_eq!(with.parameters() - net.parameters(), 18 * 8);
    assert!(serde_json::from_str::<NetSpec>(r#"{"kind": "hollow", "chanels": 9}"#).is_err());
    let graph =
        Pairwise::from_edges(Interaction::Ising, 3, 2, &[(0, 1, 1.0), (1, 2, 1.0)]).unwrap();
    let error = Net::new(&spec, &graph).unwrap_err().to_string();
    assert!(error.contains("no lattice"), "{error}");
}
