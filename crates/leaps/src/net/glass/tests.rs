//! Tests of the network for spin glasses: its gradients, what it must not depend on, and that no gauge changes it.

use super::*;
use crate::device::vector::{Array, WIDTH};
use crate::device::{Draw, Purpose, SimdLevel, Stream};
use crate::net::hollow::geometry::{Frame, Geometry};
use crate::net::testing::{self, Harness};
use crate::net::{HollowSpec, Net, NetSpec, NetworkKind, NetworkOptions};
use crate::rates::Parametrisation;
use crate::target::{Boundary, Disorder, Pairwise};

fn lattice(shape: &[usize], boundary: Boundary) -> Lattice {
    Lattice::new(shape, boundary).unwrap()
}

fn spec(channels: usize, depth: usize, rows: usize, head: usize) -> GlassSpec {
    GlassSpec { channels, depth: Some(depth), rows: Some(rows), head: Some(head) }
}

#[test]
fn gradients_are_finite_differences_and_outputs_are_hollow() {
    use Boundary::{Free, Periodic};
    for (shape, boundary, spec) in [
        (&[9][..], Periodic, spec(5, 3, 3, 4)),
        (&[6], Free, spec(3, 2, 3, 5)),
        (&[3, 4], Periodic, spec(3, 2, 1, 4)),
        (&[4, 5], Periodic, spec(4, 1, 2, 3)),
        (&[7, 8], Periodic, spec(3, 2, 3, 5)),
        (&[5, 2], Free, spec(4, 3, 3, 4)),
        (&[3, 3, 4], Periodic, spec(2, 2, 1, 3)),
        (&[5, 5, 5], Periodic, spec(2, 1, 3, 3)),
        (&[3, 2, 4], Free, spec(2, 2, 3, 2)),
    ] {
        let lattice = lattice(shape, boundary);
        let network = Glass::new(&spec, &lattice).unwrap();
        assert_eq!(network.spec(), spec);
        testing::check_network(&network, lattice.sites(), 1, 1);
        testing::check_conditioned(&network.conditioned_on(2), lattice.sites(), 1, 1, 2);
    }
}

/// Whether a network's outputs depend on the site's own value.
fn leaks(network: &Glass) -> bool {
    let harness = Harness::new(network, network.bonds.sites, 1, 1, 3);
    harness.first_leak(&harness.parameters(3)).is_some()
}

#[test]
fn ordinary_convolutions_leak() {
    let network = Glass::new(&spec(5, 2, 3, 6), &lattice(&[7, 8], Boundary::Periodic)).unwrap();
    assert!(!leaks(&network));
    assert!(leaks(&Glass { hollow: network.hollow.without_shift(), ..network }));
}

#[test]
fn the_reach_is_the_largest_that_does_not_leak() {
    for (shape, depth, rows) in
        [(&[4][..], 1, 3), (&[6, 7], 2, 3), (&[7, 3], 1, 2), (&[5, 4, 5], 2, 2)]
    {
        let (lattice, spec) = (lattice(shape, Boundary::Periodic), spec(3, depth, rows, 3));
        let error = Glass::new(&spec, &lattice).unwrap_err().to_string();
        assert!(error.starts_with("network."), "{error}");
        // What a stack of values may do.
        let (hollow, bonds) = Hollow::of_bonds(&spec.hollow(), &lattice, BEYOND - 1).unwrap();
        assert!(leaks(&Glass { hollow, bonds }), "{shape:?}");
    }
    for (shape, rows, depth) in [(&[3][..], 1, 6), (&[4, 4], 2, 1), (&[5, 9], 3, 1), (&[16], 3, 6)]
    {
        let network = Glass::new(&GlassSpec::default(), &lattice(shape, Boundary::Periodic));
        let spec = network.unwrap().spec();
        assert_eq!((spec.rows, spec.depth), (Some(rows), Some(depth)), "{shape:?}");
        assert!(spec.least_side().unwrap() <= *shape.iter().min().unwrap());
    }
    let free = Glass::new(&spec(2, 7, 3, 2), &lattice(&[4, 3], Boundary::Free)).unwrap();
    assert!(!leaks(&free));
}

/// Glasses of two and three dimensions, and networks that fit them.
fn cases() -> Vec<(Pairwise, GlassSpec)> {
    use Boundary::{Free, Periodic};
    let mut cases = Vec::new();
    for (seed, disorder) in [(1, Disorder::Pm1), (2, Disorder::Gaussian)] {
        for (shape, boundary, spec) in [
            (&[6, 7][..], Periodic, spec(7, 1, 3, 9)),
            (&[5, 4], Free, spec(8, 3, 3, 6)),
            (&[3, 4, 5], Periodic, spec(5, 1, 1, 8)),
            (&[4, 3, 3], Free, spec(4, 2, 3, 7)),
        ] {
            let lattice = lattice(shape, boundary);
            cases.push((Pairwise::edwards_anderson(lattice, disorder, seed).unwrap(), spec));
        }
    }
    cases
}

/// A network with random parameters.
fn net(target: &Pairwise, spec: &GlassSpec) -> (Net, Vec<f32>) {
    let net = Net::new(&NetSpec::Glass(spec.clone()), target).unwrap();
    let packed = net.pack(&net.initial(3).iter().map(|p| 2.0 * p).collect::<Vec<f32>>());
    (net, packed)
}

fn signs(n: usize, stream: &mut Stream) -> Vec<f32> {
    (0..n).map(|_| [-1.0, 1.0][stream.below(2)]).collect()
}

#[test]
fn no_gauge_changes_a_flux() {
    for (target, spec) in cases() {
        let (net, packed) = net(&target, &spec);
        let (lattice, sites) = (target.lattice().unwrap(), net.sites());
        let axes = lattice.shape().len();
        let mut stream = Stream::new(7, Purpose::Statistic, 0, 0);
        for level in SimdLevel::available() {
            let net = net.clone().at_level(level);
            let (mut plain, mut turned) = (net.worker(), net.worker());
            let mut gauges = Vec::new();
            for lane in 0..WIDTH {
                let x: Vec<u8> = (0..sites).map(|_| stream.below(2) as u8).collect();
                let (gauge, t) = (signs(sites, &mut stream), stream.uniform());
                let y: Vec<u8> =
                    x.iter().zip(&gauge).map(|(&x, &s)| if s < 0.0 { 1 - x } else { x }).collect();
                // Lanes have instances of their own; the last keeps that of the target.
                let own = match lane + 1 == WIDTH {
                    true => net.instance().to_vec(),
                    false => net.instance().iter().map(|j| j + stream.normal() as f32).collect(),
                };
                let other: Vec<f32> = (0..own.len())
                    .map(|c| match lattice.ahead(c / axes, c % axes, 1) {
                        Some(next) => gauge[c / axes] * own[c] * gauge[next],
                        // There is no bond.
                        None => f32::NAN,
                    })
                    .collect();
                if lane + 1 < WIDTH {
                    plain.set_couplings(lane, &own);
                }
                turned.set_couplings(lane, &other);
                plain.set(lane, &x, t);
                turned.set(lane, &y, t);
                gauges.push(gauge);
            }
            net.forward(&packed, &mut plain);
            net.forward(&packed, &mut turned);
            for (lane, gauge) in gauges.iter().enumerate() {
                for site in 0..sites {
                    let (a, b) = (plain.output(lane, site), turned.output(lane, site));
                    assert!(a.is_finite() && a * gauge[site] == b, "{spec:?} {level:?}: {a} {b}");
                }
            }
            let seen: Vec<f32> = plain.out.iter().flat_map(|o| o.0).collect();
            assert!(seen.iter().any(|o| o.abs() > 1e-3), "outputs say nothing");
        }
    }
}

#[test]
fn outputs_do_not_depend_on_the_own_value_to_the_bit() {
    for (target, spec) in cases() {
        let (net, packed) = net(&target, &spec);
        let sites = net.sites();
        for level in SimdLevel::available() {
            let net = net.clone().at_level(level);
            let mut worker = net.forward_worker();
            let mut stream = Stream::new(9, Purpose::Statistic, 0, 0);
            let x: Vec<u8> = (0..sites).map(|_| stream.below(2) as u8).collect();
            let pass = |worker: &mut crate::net::Worker, flipped: &[usize]| {
                for lane in 0..WIDTH {
                    let mut x = x.clone();
                    if let Some(&site) = flipped.get(lane) {
                        x[site] = 1 - x[site];
                    }
                    worker.set(lane, &x, 0.8);
                }
                net.forward(&packed, worker);
                worker.out.clone()
            };
            let before = pass(&mut worker, &[]);
            let all: Vec<usize> = (0..sites).collect();
            for flipped in all.chunks(WIDTH) {
                let after = pass(&mut worker, flipped);
                for (lane, &site) in flipped.iter().enumerate() {
                    let (a, b) = (before[site].0[lane], after[site].0[lane]);
                    assert_eq!(a.to_bits(), b.to_bits(), "{spec:?} {level:?} {site}: {a} {b}");
                }
                let change = |site: usize| before[site].0[0] != after[site].0[0];
                assert!((0..sites).any(change), "outputs see no values");
            }
        }
    }
}

#[test]
fn all_levels_agree() {
    for (target, spec) in cases() {
        let (net, packed) = net(&target, &spec);
        let run = |level: SimdLevel| {
            let net = net.clone().at_level(level);
            let (mut worker, mut grad) = (net.worker(), vec![0.0; packed.len()]);
            let mut stream = Stream::new(3, Purpose::Statistic, 0, 0);
            for lane in 0..WIDTH {
                let x: Vec<u8> = (0..net.sites()).map(|_| stream.below(2) as u8).collect();
                worker.set(lane, &x, stream.uniform());
                for index in 0..worker.out.len() {
                    worker.set_slope(lane, index, stream.normal() as f32);
                }
            }
            net.forward(&packed, &mut worker);
            net.backward(&packed, &mut worker, &mut grad);
            [worker.out.iter().flat_map(|o| o.0).collect::<Vec<f32>>(), grad]
        };
        let plain = run(SimdLevel::Portable);
        for level in SimdLevel::available() {
            for (a, b) in plain.iter().zip(&run(level)) {
                let largest = a.iter().fold(0.0f32, |m, a| m.max(a.abs()));
                let worst = a.iter().zip(b).fold(0.0f32, |m, (a, b)| m.max((a - b).abs()));
                assert!(worst < 2e-5 * largest, "{spec:?} {level:?}: {worst} of {largest}");
            }
        }
    }
}

/// What the head reads beside the context, word by word.
fn invariants(lattice: &Lattice, x: &[f64], j: &[f64], site: usize) -> Vec<f64> {
    let (axes, sites) = (lattice.shape().len(), lattice.sites());
    let (mut v, mut sizes) = (Vec::new(), Vec::new());
    for axis in 0..axes {
        let before = (0..sites).find(|&other| lattice.ahead(other, axis, 1) == Some(site));
        let both = [
            before.map(|other| (j[other * axes + axis], x[other])),
            lattice.ahead(site, axis, 1).map(|other| (j[site * axes + axis], x[other])),
        ];
        v.extend(both.map(|bond| bond.map_or(0.0, |(j, x)| j * x)));
        sizes.extend(both.map(|bond| bond.map_or(0.0, |(j, _)| j.abs())));
    }
    let (n, m) = (v.len() as f64, v.iter().sum::<f64>());
    let mut out: Vec<f64> = (0..v.len())
        .flat_map(|a| (a + 1..v.len()).map(move |b| (a, b)))
        .map(|(a, b)| v[a] * v[b])
        .collect();
    out.extend(v.iter().map(|v| m * v));
    out.extend([m * m / n, m.powi(4) / n.powi(3)]);
    out.extend(sizes);
    let (mut energy, mut plaquettes) = (0.0, Vec::new());
    for a in 0..sites {
        for axis in 0..axes {
            let Some(b) = lattice.ahead(a, axis, 1) else { continue };
            if a != site && b != site {
                energy -= j[a * axes + axis] * x[a] * x[b] / sites as f64;
            }
            for other in axis + 1..axes {
                let Some(c) = lattice.ahead(a, other, 1) else { continue };
                let around = j[a * axes + axis] * j[b * axes + other];
                plaquettes.push(around * j[c * axes + axis] * j[a * axes + other]);
            }
        }
    }
    let frustration = plaquettes.iter().sum::<f64>() / plaquettes.len().max(1) as f64;
    let centre = energy + 0.55 * axes as f64;
    out.extend([energy, (3.0 * centre).tanh(), energy * energy, frustration]);
    out
}

#[test]
fn the_head_reads_the_invariants() {
    use Boundary::{Free, Periodic};
    for (shape, boundary) in [
        (&[5][..], Periodic),
        (&[4, 3], Periodic),
        (&[3, 5], Free),
        (&[3, 4, 3], Periodic),
        (&[2, 3, 4], Free),
    ] {
        let lattice = lattice(shape, boundary);
        let bonds = Bonds::new(&Geometry::new(&lattice, 0));
        let mut stream = Stream::new(5, Purpose::Statistic, 0, 0);
        let mut fill = |n: usize, draw: &dyn Fn(&mut Stream) -> f64| -> Vec<Array<f64>> {
            (0..n).map(|_| Array(std::array::from_fn(|_| draw(&mut stream)))).collect()
        };
        let x = fill(lattice.sites(), &|stream| [-1.0, 1.0][stream.below(2)]);
        let couplings = fill(bonds.numbers(), &|stream| stream.normal());
        let group = Group { x: &x, t: x[0], features: &[], couplings: &couplings };
        // Three columns before belong to someone else.
        let width = 3 + bonds.width();
        let mut context = vec![Array([f64::NAN; WIDTH]); lattice.sites() * width];
        // SAFETY: plain arrays need no special instructions.
        unsafe { bonds.write(&group, &mut context) };
        for lane in [0, 13] {
            let of = |all: &[Array<f64>]| all.iter().map(|a| a.0[lane]).collect::<Vec<f64>>();
            for (site, row) in context.chunks_exact(width).enumerate() {
                let want = invariants(&lattice, &of(&x), &of(&couplings), site);
                assert!(row[..3].iter().all(|other| other.0[lane].is_nan()));
                assert_eq!(want.len(), bonds.width());
                for (k, (got, want)) in row[3..].iter().zip(want).enumerate() {
                    let error = (got.0[lane] - want).abs();
                    assert!(error < 1e-5, "{shape:?} {site} {k}: {} {want}", got.0[lane]);
                }
            }
        }
    }
}

#[test]
fn a_stack_reads_the_bonds_behind_and_beside_in_its_frame() {
    for shape in [&[5][..], &[3, 4], &[3, 4, 5]] {
        let lattice = lattice(shape, Boundary::Periodic);
        let bonds = Bonds::new(&Geometry::new(&lattice, 0));
        let (sites, axes) = (lattice.sites(), shape.len());
        // Couplings by which bonds are told apart; all spins are up.
        let couplings: Vec<Array<f64>> =
            (0..bonds.numbers()).map(|c| Array([-1.0 - c as f64; WIDTH])).collect();
        let x = vec![Array([1.0; WIDTH]); sites];
        let group = Group { x: &x, t: x[0], features: &[], couplings: &couplings };
        let between = |a: usize, b: usize| {
            let bond = |from: usize, to: usize| {
                let axis = (0..axes).find(|&axis| lattice.ahead(from, axis, 1) == Some(to))?;
                Some(couplings[from * axes + axis].0[0])
            };
            bond(a, b).or_else(|| bond(b, a)).unwrap()
        };
        let mut rows = vec![Array([f64::NAN; WIDTH]); (sites + 1) * bonds.inputs()];
        for k in 0..2 * axes {
            // SAFETY: plain arrays need no special instructions.
            unsafe { bonds.enter(k, &group, &mut rows) };
            let frame = Frame::along(&lattice, k);
            let sides: Vec<usize> =
                frame.axes().iter().map(|&(axis, _)| lattice.shape()[axis]).collect();
            for index in 0..sites {
                let mut position = vec![0isize; axes];
                let mut rest = index;
                for (place, side) in position.iter_mut().zip(&sides) {
                    *place = (rest % side) as isize;
                    rest /= side;
                }
                let site = frame.site(&position).unwrap();
                let mut offsets = vec![(0, -1)];
                offsets.extend((1..axes).flat_map(|axis| [(axis, -1), (axis, 1)]));
                for (n, &(axis, step)) in offsets.iter().enumerate() {
                    let mut there = position.clone();
                    there[axis] += step;
                    let want = between(site, frame.site(&there).unwrap());
                    let row = &rows[site * bonds.inputs()..][..bonds.inputs()];
                    assert_eq!(row[n].0[3], want, "{shape:?} {k} {position:?}");
                    assert_eq!(row[offsets.len() + n].0[3], -want);
                }
            }
            assert!(rows[sites * bonds.inputs()..].iter().all(|none| none.0 == [0.0; WIDTH]));
        }
    }
}

#[test]
fn other_targets_are_refused() {
    let torus = |shape: &[usize]| lattice(shape, Boundary::Periodic);
    let glass =
        |shape: &[usize]| Pairwise::edwards_anderson(torus(shape), Disorder::Pm1, 1).unwrap();
    let build = |target: &Pairwise| Net::new(&NetSpec::Glass(GlassSpec::default()), target);
    assert!(build(&glass(&[4, 4])).is_ok());
    for target in [
        glass(&[4, 4]).with_uniform_field(0.1).unwrap(),
        glass(&[2, 4]),
        glass(&[3, 3, 3, 3]),
        Pairwise::potts(torus(&[4, 4]), 3, 1.0, 0.0).unwrap(),
        Pairwise::sherrington_kirkpatrick(16, Disorder::Pm1, 1).unwrap(),
    ] {
        let error = build(&target).unwrap_err().to_string();
        assert!(error.contains("the network glass"), "{error}");
    }
    let error = Glass::new(&spec(4, 2, 3, 4), &torus(&[5, 6])).unwrap_err().to_string();
    assert!(error.contains("use network.depth = 1"), "{error}");
}

#[test]
fn settings_go_through_files() {
    let text = r#"{"kind": "glass", "channels": 9, "depth": 2, "rows": 2, "head": 5}"#;
    let parsed: NetSpec = serde_json::from_str(text).unwrap();
    assert_eq!(parsed, NetSpec::Glass(spec(9, 2, 2, 5)));
    assert_eq!(
        serde_json::from_str::<NetSpec>(&serde_json::to_string(&parsed).unwrap()).unwrap(),
        parsed
    );
    assert!(serde_json::from_str::<NetSpec>(r#"{"kind": "glass", "orders": 2}"#).is_err());
    let options = NetworkOptions::of(&parsed, Parametrisation::Barker);
    assert_eq!(options.kind, Some(NetworkKind::Glass));
    assert_eq!(options.resolve(None, false).unwrap(), parsed);
    let strange = NetworkOptions { orders: Some(2), ..options };
    assert!(strange.resolve(None, false).is_err());
    // The sizes that were chosen belong to the network.
    let target =
        Pairwise::edwards_anderson(lattice(&[8, 8], Boundary::Periodic), Disorder::Pm1, 1).unwrap();
    let net = Net::new(&NetSpec::Glass(GlassSpec::default()), &target).unwrap();
    assert_eq!(*net.spec(), NetSpec::Glass(spec(32, 2, 3, 64)));
    assert_eq!((net.couplings(), net.instance().len(), net.outputs()), (128, 128, 1));
    let hollow = Net::new(&NetSpec::Hollow(HollowSpec::default()), &target).unwrap();
    assert_eq!((hollow.couplings(), hollow.instance().len()), (0, 0));
}
