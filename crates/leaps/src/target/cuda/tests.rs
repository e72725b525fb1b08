//! Energies and sweeps on a GPU beside those of the CPU.

use super::*;
use crate::device::cuda::testing::compiles;
use crate::device::{Draw, Stream};
use crate::mcmc::{HeatBath, Kernel, Metropolis};
use crate::target::{
    Boundary, Bravais, Density, Disorder, Interaction, Lattice, initial_state, on_shells,
};

fn lattice(shape: &[usize], boundary: Boundary) -> Lattice {
    Lattice::new(shape, boundary).unwrap()
}

/// Targets that go every way through the kernels: tables with one and several classes, none, large states, many values.
fn targets() -> Vec<(&'static str, Pairwise)> {
    let torus = |shape: &[usize]| lattice(shape, Boundary::Periodic);
    let glass = Pairwise::edwards_anderson(torus(&[6, 6]), Disorder::Gaussian, 2).unwrap();
    let mut stream = Stream::new(1, Purpose::Disorder, 0, 0);
    let edges: Vec<(u32, u32, f64)> = (0..60)
        .map(|_| {
            let i = stream.below(19) as u32;
            (i, (i + 1 + stream.below(18) as u32) % 19, stream.normal())
        })
        .collect();
    vec![
        ("torus", Pairwise::ising(torus(&[8, 8]), 1.0, 0.3).unwrap()),
        ("free ends", Pairwise::ising(lattice(&[5, 7], Boundary::Free), -1.0, 0.0).unwrap()),
        ("glass", glass.with_uniform_field(-0.2).unwrap()),
        ("3 values", Pairwise::potts(torus(&[6, 6]), 3, 1.0, 0.2).unwrap()),
        ("5 values", Pairwise::potts(torus(&[5, 5]), 5, 1.0, 0.0).unwrap()),
        ("20 values", Pairwise::potts(torus(&[3, 4]), 20, 2.0, 0.5).unwrap()),
        ("graph", Pairwise::from_edges(Interaction::Ising, 20, 2, &edges).unwrap()),
        ("beyond shared memory", Pairwise::ising(torus(&[90, 91]), 1.0, 0.1).unwrap()),
        ("J1-J2", on_shells(&[8, 8], None, &[1.0, -0.6]).with_uniform_field(0.1).unwrap()),
        ("J1-J2-J3", on_shells(&[6, 6], None, &[1.0, -0.6, 0.3])),
        ("triangular", on_shells(&[5, 6], Some(Bravais::Triangular), &[-1.0, 0.2, 0.1])),
        ("fcc", on_shells(&[4, 4, 4], Some(Bravais::Fcc), &[-1.0])),
    ]
}

#[test]
#[cfg_attr(not(has_nvrtc), ignore = "needs NVRTC: set LEAPS_NVRTC to its folder")]
fn kernels_compile_for_all_kinds_of_targets() {
    for (name, target) in targets() {
        let classes = Classes::new(&target);
        let (defines, ..) = plan(&target, &classes, 227 << 10);
        let by_tables = ["torus", "free ends", "beyond shared memory", "J1-J2", "fcc"];
        assert_eq!(!classes.members.is_empty(), by_tables.contains(&name), "{name}");
        assert_eq!(classes.groups > 1, name == "J1-J2", "{name}");
        compiles(PAIRWISE, &defines);
        let (mut defines, ..) = plan(&target, &Classes::default(), 227 << 10);
        defines.push(("INSTANCES", 1));
        compiles(PAIRWISE, &defines);
    }
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
fn initial_states_and_energies_are_the_cpus() {
    let gpu = Gpu::open(0).unwrap();
    for (name, target) in targets() {
        let on_gpu = CudaTarget::new(&gpu, &target).unwrap();
        let walkers = 101;
        let states = on_gpu.initial_states(walkers, 7).unwrap();
        let mut energies = gpu.zeros(walkers * target.terms()).unwrap();
        on_gpu.energies(&states, walkers, &mut energies).unwrap();
        let (states, energies) = (gpu.download(&states).unwrap(), gpu.download(&energies).unwrap());
        for walker in 0..walkers {
            let x = initial_state(&target, 7, walker as u32);
            assert_eq!(&states[walker * x.len()..][..x.len()], &x, "{name}, walker {walker}");
            for term in 0..target.terms() {
                let (got, want) =
                    (energies[walker * target.terms() + term], target.energy(term, &x));
                // Sums of small integers are exact in any order.
                let whole = term == 0
                    && !["glass", "graph", "J1-J2", "J1-J2-J3", "triangular"].contains(&name);
                let bound = if whole { 0.0 } else { 1e-12 * (1.0 + want.abs()) };
                assert!((got - want).abs() <= bound, "{name}: {got} {want}");
            }
        }
    }
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
fn sweeps_draw_what_the_cpu_draws() {
    let gpu = Gpu::open(0).unwrap();
    for (name, target) in targets() {
        let on_gpu = CudaTarget::new(&gpu, &target).unwrap();
        let (walkers, sweeps) = if target.sites() > 1000 { (70, 3) } else { (1000, 20) };
        let terms = target.terms();
        // Every walker at its own temperature, some of them negative.
        let each: Vec<f64> = (0..walkers * terms)
            .map(|i| 1.1 * (i / terms) as f64 / walkers as f64 - 0.1 + 0.01 * (i % terms) as f64)
            .collect();
        let same = vec![0.4; terms];
        for kind in [Sweep::HeatBath, Sweep::Metropolis] {
            for (own, lambda) in [(true, &each), (false, &same)] {
                // Every third walker is left out, the others go backwards.
                let rows: Vec<u32> = (0..walkers as u32).rev().filter(|row| row % 3 != 1).collect();
                let mut states = on_gpu.initial_states(walkers, 5).unwrap();
                let numbers = gpu.upload(lambda).unwrap();
                let first = numbers.slice(..terms);
                let weights = if own { Weights::Each(&numbers) } else { Weights::Same(&first) };
                let list = gpu.upload(&rows).unwrap();
                for (step, sweeps) in [(1 << 33, sweeps - 1), ((1 << 33) + sweeps - 1, 1)] {
                    let (address, times) = ((11, Purpose::Reference), (step, sweeps));
                    on_gpu
                        .sweep(kind, &mut states, (&list, rows.len()), weights, address, times)
                        .unwrap();
                }
                let states = gpu.download(&states).unwrap();
                let mut place = vec![None; walkers];
                for (i, &row) in rows.iter().enumerate() {
                    place[row as usize] = Some(i);
                }
                let mut differ = 0;
                for walker in 0..walkers {
                    let mut x = initial_state(&target, 5, walker as u32);
                    if let Some(i) = place[walker] {
                        let lambda = if own { &lambda[i * terms..][..terms] } else { &lambda[..] };
                        let model = Density::new(&target, lambda);
                        for sweep in 0..sweeps {
                            let mut stream = Stream::new(
                                11,
                                Purpose::Reference,
                                walker as u32,
                                (1 << 33) + sweep,
                            );
                            match kind {
                                Sweep::HeatBath => HeatBath::new(&target).unwrap().step(
                                    &model,
                                    &mut x,
                                    &mut stream,
                                ),
                                Sweep::Metropolis => Metropolis::new(&target).unwrap().step(
                                    &model,
                                    &mut x,
                                    &mut stream,
                                ),
                            };
                        }
                    }
                    let got = &states[walker * x.len()..][..x.len()];
                    differ += usize::from(got != x);
                    assert!(place[walker].is_some() || got == x, "{name}: a walker left out moved");
                }
                println!("{name} {kind:?}: {differ} of {walkers} walkers differ");
                assert!(differ * 100 <= walkers, "{name} {kind:?}: {differ}");
            }
        }
    }
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
fn walkers_of_instances_go_by_their_own_couplings() {
    let gpu = Gpu::open(0).unwrap();
    for disorder in [Disorder::Pm1, Disorder::Gaussian] {
        let lattice = lattice(&[5, 6], Boundary::Free);
        let glass = |seed| Pairwise::edwards_anderson(lattice.clone(), disorder, seed).unwrap();
        let (instances, rows) = (30, 4);
        let several = Several { instances, rows };
        let mut on_gpu = CudaTarget::several(&gpu, &glass(0), several).unwrap();
        for instance in 0..instances {
            on_gpu.set_instance(instance, &glass(instance as u64)).unwrap();
        }
        let walkers = instances * rows;
        let mut states = on_gpu.initial_states(walkers, 5).unwrap();
        let list: Vec<u32> = (0..walkers as u32).rev().filter(|row| row % 3 != 1).collect();
        let lambda: Vec<f64> = (0..list.len()).map(|i| 0.01 * i as f64).collect();
        let (chosen, weights) = (gpu.upload(&list).unwrap(), gpu.upload(&lambda).unwrap());
        let (address, times) = ((11, Purpose::Reference), (7, 5));
        on_gpu
            .sweep(
                Sweep::HeatBath,
                &mut states,
                (&chosen, list.len()),
                Weights::Each(&weights),
                address,
                times,
            )
            .unwrap();
        let mut energies = gpu.zeros(walkers).unwrap();
        on_gpu.energies(&states, walkers, &mut energies).unwrap();
        let states = gpu.download(&states).unwrap();
        let energies = gpu.download(&energies).unwrap();
        for row in 0..walkers {
            let target = glass((row / rows) as u64);
            let mut x = initial_state(&target, 5, row as u32);
            if let Some(i) = list.iter().position(|&own| own as usize == row) {
                let model = Density::new(&target, &lambda[i..=i]);
                for step in 7..12 {
                    let mut stream = Stream::new(11, Purpose::Reference, row as u32, step);
                    HeatBath::new(&target).unwrap().step(&model, &mut x, &mut stream);
                }
            }
            assert_eq!(&states[row * 30..][..30], &x, "row {row}");
            let want = target.energy(0, &x);
            assert!((energies[row] - want).abs() < 1e-12 * (1.0 + want.abs()), "row {row}");
        }
    }
}

/// Heat-bath updates per second on a 15x15 torus; run it in release mode.
#[test]
#[ignore = "a measurement"]
fn speed_of_sweeps() {
    let gpu = Gpu::open(0).unwrap();
    let torus = lattice(&[15, 15], Boundary::Periodic);
    for (name, target) in [
        ("ising", Pairwise::ising(torus.clone(), 1.0, 0.0).unwrap()),
        ("glass", Pairwise::edwards_anderson(torus.clone(), Disorder::Gaussian, 2).unwrap()),
        ("potts 3", Pairwise::potts(torus, 3, 1.0, 0.0).unwrap()),
    ] {
        let on_gpu = CudaTarget::new(&gpu, &target).unwrap();
        let walkers = 1 << 18;
        let mut states = on_gpu.initial_states(walkers, 5).unwrap();
        let rows = gpu.upload(&(0..walkers as u32).collect::<Vec<u32>>()).unwrap();
        let lambda = gpu.upload(&[0.4407]).unwrap();
        let lambda = lambda.slice(..);
        for kind in [Sweep::HeatBath, Sweep::Metropolis] {
            for sweeps in [1, 10] {
                let mut seconds = 0.0;
                for turn in 0..10 {
                    gpu.wait().unwrap();
                    let start = std::time::Instant::now();
                    let weights = Weights::Same(&lambda);
                    let address = (1, Purpose::Move);
                    on_gpu
                        .sweep(
                            kind,
                            &mut states,
                            (&rows, walkers),
                            weights,
                            address,
                            (10 * turn, sweeps),
                        )
                        .unwrap();
                    gpu.wait().unwrap();
                    if turn > 0 {
                        seconds += start.elapsed().as_secs_f64();
                    }
                }
                let updates = 9.0 * (walkers * target.sites()) as f64 * sweeps as f64;
                println!(
                    "{name} {kind:?}, {sweeps} sweeps a launch: {:.1} G updates/s",
                    1e-9 * updates / seconds
                );
            }
        }
    }
}
