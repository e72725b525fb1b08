//! After every jump the outputs are those of a full pass, to the bit.

use crate::device::{Draw, Purpose, SimdLevel, Stream};
use crate::net::{GlassSpec, HollowSpec, Net, NetSpec};
use crate::target::{Bond, Boundary, Disorder, Interaction, Lattice, Pairwise, Target};

/// Compare all outputs of a walker after each of several jumps, at two times, with those of a full pass.
fn check(net: &Net, q: usize, jumps: usize) {
    let packed = net.pack(&net.initial(7));
    let condition = vec![0.3; net.conditions()];
    for level in SimdLevel::available() {
        let net = net.clone().at_level(level);
        let mut alone = net.alone(net.hollow().unwrap(), &packed);
        alone.set_condition(0, &condition);
        let mut full = net.forward_worker();
        full.set_condition(3, &condition);
        let mut stream = Stream::new(11, Purpose::Statistic, 3, 0);
        for t in [0.2, 0.7] {
            let mut state: Vec<u8> = (0..net.sites()).map(|_| stream.below(q) as u8).collect();
            alone.set(0, &state, t);
            for jump in 0..=jumps {
                net.follow(&packed, &mut alone);
                full.set(3, &state, t);
                net.forward(&packed, &mut full);
                for index in 0..net.sites() * net.outputs() {
                    let (want, got) = (full.output(3, index), alone.output(0, index));
                    assert_eq!(
                        want.to_bits(),
                        got.to_bits(),
                        "{:?} {level:?} t {t} jump {jump} output {index}: {want} {got}",
                        net.spec()
                    );
                }
                // Every other time two values change at once.
                for _ in 0..1 + jump % 2 {
                    let site = stream.below(state.len());
                    state[site] = (state[site] + 1 + stream.below(q - 1) as u8) % q as u8;
                    alone.set_value(0, site, state[site]);
                }
            }
        }
    }
}

#[test]
fn passes_after_jumps_are_full_passes_on_spin_glasses() {
    use Boundary::{Free, Periodic};
    for (seed, disorder) in [(1, Disorder::Pm1), (2, Disorder::Gaussian)] {
        for (shape, boundary, channels, depth, rows, head) in [
            (&[6, 7][..], Periodic, 7, Some(1), Some(3), 9),
            (&[16, 16], Periodic, 17, None, None, 20),
            (&[9, 14], Free, 8, Some(3), Some(3), 6),
            (&[17], Periodic, 5, None, None, 6),
            (&[3, 4, 5], Periodic, 5, Some(1), Some(1), 8),
            (&[7, 6, 5], Free, 4, Some(2), Some(3), 7),
            (&[3, 3], Periodic, 17, None, None, 33),
            (&[2, 2, 3], Free, 3, Some(3), Some(2), 1),
        ] {
            let lattice = Lattice::new(shape, boundary).unwrap();
            let target = Pairwise::edwards_anderson(lattice, disorder, seed).unwrap();
            let spec = NetSpec::Glass(GlassSpec { channels, depth, rows, head: Some(head) });
            check(&Net::new(&spec, &target).unwrap(), 2, 12);
        }
    }
}

fn spec(
    channels: usize,
    depth: Option<usize>,
    rows: Option<usize>,
    head: Option<usize>,
) -> NetSpec {
    NetSpec::Hollow(HollowSpec { channels, depth, rows, head, ..HollowSpec::default() })
}

#[test]
fn passes_after_jumps_are_full_passes_on_every_lattice() {
    use Boundary::{Free, Periodic};
    for (shape, boundary, q, channels, depth, rows, head) in [
        (&[9][..], Periodic, 2, 5, Some(3), Some(3), Some(4)),
        (&[40], Periodic, 3, 17, None, None, None),
        (&[7], Free, 3, 2, Some(4), Some(3), Some(3)),
        (&[2], Periodic, 2, 3, Some(3), Some(1), Some(3)),
        (&[4, 4], Periodic, 2, 7, None, None, Some(5)),
        (&[5, 5], Periodic, 3, 3, None, None, Some(9)),
        (&[15, 15], Periodic, 2, 24, None, None, None),
        (&[16, 16], Periodic, 2, 33, None, None, Some(20)),
        (&[13, 22], Periodic, 5, 6, Some(3), Some(2), Some(17)),
        (&[21, 14], Free, 2, 16, Some(4), None, Some(7)),
        (&[4, 5, 6], Periodic, 2, 4, None, None, Some(3)),
        (&[7, 5, 9], Free, 3, 3, Some(2), Some(3), Some(2)),
        (&[9, 9, 9], Periodic, 2, 18, Some(3), None, Some(5)),
        (&[2], Free, 2, 3, Some(2), Some(3), Some(2)),
        (&[2, 5], Free, 20, 3, Some(2), Some(3), Some(5)),
        (&[2, 3], Periodic, 40, 3, None, None, Some(3)),
        (&[3, 3, 3], Periodic, 2, 16, None, None, Some(16)),
    ] {
        let lattice = Lattice::new(shape, boundary).unwrap();
        let target = match q {
            2 => Pairwise::ising(lattice, 1.0, 0.1).unwrap(),
            q => Pairwise::potts(lattice, q, 1.0, 0.1).unwrap(),
        };
        let spec = spec(channels, depth, rows, head);
        check(&Net::new(&spec, &target).unwrap(), q, 12);
        check(&Net::conditioned_on(&spec, &target, 2).unwrap(), q, 3);
    }
}

#[test]
fn passes_after_jumps_are_full_passes_for_bonds_of_several_classes() {
    for (interaction, q) in [(Interaction::Ising, 2), (Interaction::Potts, 3)] {
        for boundary in [Boundary::Periodic, Boundary::Free] {
            let lattice = Lattice::new(&[10, 12], boundary).unwrap();
            let bonds =
                [([1, 0], 1.0), ([0, 1], 1.0), ([1, 1], -0.6), ([1, -1], -0.6), ([2, 0], 0.2)]
                    .map(|(offset, strength)| Bond { offset: offset.to_vec(), strength });
            let target = Pairwise::from_bonds(interaction, lattice, q, &bonds).unwrap();
            check(&Net::new(&spec(9, None, None, None), &target).unwrap(), q, 20);
        }
    }
}

#[test]
fn passes_after_jumps_are_full_passes_for_models_of_tables() {
    for model in crate::net::hollow::tests::tables::models() {
        check(&Net::new(&spec(5, None, None, Some(7)), &model).unwrap(), model.q(), 20);
    }
}

#[test]
fn passes_after_jumps_are_full_passes_without_global_features() {
    let lattice = Lattice::new(&[8, 11], Boundary::Periodic).unwrap();
    let target = Pairwise::ising(lattice, 1.0, 0.1).unwrap();
    let spec = HollowSpec { channels: 6, global_features: false, ..HollowSpec::default() };
    let net = Net::new(&NetSpec::Hollow(spec), &target).unwrap();
    check(&net, 2, 12);
}

#[test]
fn walkers_go_alone_where_a_jump_changes_little() {
    for (side, channels, intervals, alone) in [
        (8, 16, 100.0, false),
        (16, 8, 100.0, false),
        (10, 48, 50.0, true),
        (32, 24, 100.0, true),
        (32, 24, 1000.0, false),
        (64, 24, 100.0, true),
    ] {
        let lattice = Lattice::new(&[side, side], Boundary::Periodic).unwrap();
        let target = Pairwise::ising(lattice, 1.0, 0.0).unwrap();
        let net = Net::new(&spec(channels, None, None, None), &target).unwrap();
        let jumps = 0.4 * (side * side) as f64 / intervals;
        let places = |jumps| net.places(jumps);
        assert_eq!(places(jumps) == 1, alone, "{side} {channels} {intervals}");
        assert!(places(0.0) > 1, "{side} {channels}: everything changes with every pass");
    }
}

#[test]
fn nothing_is_left_of_what_came_before() {
    let lattice = Lattice::new(&[11, 8], Boundary::Periodic).unwrap();
    let small = GlassSpec { channels: 5, depth: Some(2), rows: Some(3), head: Some(7) };
    let glass = Pairwise::edwards_anderson(lattice.clone(), Disorder::Gaussian, 3).unwrap();
    let ising = Pairwise::ising(lattice, 1.0, 0.1).unwrap();
    for (target, spec) in [(ising, spec(5, Some(3), None, Some(7))), (glass, NetSpec::Glass(small))]
    {
        let net = Net::conditioned_on(&spec, &target, 1).unwrap();
        let packed = net.pack(&net.initial(7));
        let mut alone = net.alone(net.hollow().unwrap(), &packed);
        let mut full = net.forward_worker();
        let mut stream = Stream::new(11, Purpose::Statistic, 3, 0);
        let mut state: Vec<u8> = (0..net.sites()).map(|_| stream.below(2) as u8).collect();
        let mut t = 0.1;
        alone.set(0, &state, t);
        full.set(0, &state, t);
        for step in 0..300 {
            let site = stream.below(state.len());
            let other = 1 - state[site];
            match stream.below(12) {
                0 => {
                    t = stream.uniform();
                    alone.set(0, &state, t);
                    full.set(0, &state, t);
                }
                1 => {
                    let condition = [stream.normal()];
                    let couplings = vec![0.0; net.couplings()];
                    let couplings: Vec<f32> =
                        couplings.iter().map(|_: &f32| stream.normal() as f32).collect();
                    alone.set_condition(0, &condition);
                    full.set_condition(0, &condition);
                    alone.set_couplings(0, &couplings);
                    full.set_couplings(0, &couplings);
                    state.iter_mut().for_each(|value| *value = stream.below(2) as u8);
                    alone.set(0, &state, t);
                    full.set(0, &state, t);
                }
                // There and back, with and without starting anew, and no change at all.
                2 => [other, state[site]].iter().for_each(|&v| alone.set_value(0, site, v)),
                3 => {
                    alone.set_value(0, site, other);
                    alone.set(0, &state, t);
                }
                4 => alone.set_value(0, site, state[site]),
                _ => {
                    state[site] = other;
                    alone.set_value(0, site, other);
                    full.set_value(0, site, other);
                }
            }
            if stream.below(3) == 0 {
                continue;
            }
            net.follow(&packed, &mut alone);
            net.forward(&packed, &mut full);
            for index in 0..net.sites() {
                let (want, got) = (full.output(0, index), alone.output(0, index));
                assert_eq!(want.to_bits(), got.to_bits(), "{spec:?} step {step} output {index}");
            }
        }
    }
}
