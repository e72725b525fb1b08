//! Sweeps of 64 walkers: the same bits at every SIMD level, the right law for every code of surroundings.

use leaps::device::{NoProgress, SimdLevel};
use leaps::exact::enumerate;
use leaps::mcmc::ChainSettings;
use leaps::mcmc::lanes::{Plan, Rule, Scan, Tables, Tile, Updates, run_lane_chains};
use leaps::observe::Recorder;
use leaps::target::{Boundary, Density, Disorder, Lattice, Pairwise, Target};

fn lattice(shape: &[usize], boundary: Boundary) -> Lattice {
    Lattice::new(shape, boundary).unwrap()
}

/// Equal and unequal couplings, fields, two and more values, up to eight neighbours.
fn models() -> Vec<(&'static str, Pairwise, f64)> {
    let torus = |shape: &[usize]| lattice(shape, Boundary::Periodic);
    let glass = |shape: &[usize]| {
        let glass = Pairwise::edwards_anderson(torus(shape), Disorder::Gaussian, 4).unwrap();
        glass.with_uniform_field(0.3).unwrap()
    };
    let potts_glass: Vec<(u32, u32, f64)> =
        vec![(0, 1, 0.7), (1, 2, -0.4), (2, 3, 1.1), (3, 0, 0.2), (0, 2, -0.9)];
    vec![
        ("ising", Pairwise::ising(torus(&[3, 3]), 1.0, 0.25).unwrap(), 0.44),
        ("free", Pairwise::ising(lattice(&[3, 3], Boundary::Free), -1.0, 0.2).unwrap(), 0.5),
        ("glass", glass(&[3, 3]), 0.8),
        ("four dimensions", glass(&[2, 2, 2]), 0.4),
        ("potts", Pairwise::potts(torus(&[2, 3]), 3, 1.0, 0.3).unwrap(), 0.8),
        ("five values", Pairwise::potts(torus(&[3]), 5, 0.7, -0.5).unwrap(), 1.0),
        (
            "potts glass",
            Pairwise::from_edges(leaps::target::Interaction::Potts, 4, 4, &potts_glass)
                .unwrap()
                .with_fields(&[0.1, 0.0, -0.3, 0.2])
                .unwrap(),
            1.0,
        ),
        ("machine", Pairwise::random_boltzmann_machine(5, 4, 1.0, 7).unwrap(), 1.0),
    ]
}

/// Couplings of two signs between ten spins, all of them neighbours, in a field for every site.
fn signed() -> (&'static str, Pairwise, f64) {
    let edges: Vec<(u32, u32, f64)> = (0..10u32)
        .flat_map(|i| {
            (i + 1..10).map(move |j| (i, j, if (3 * i + j) % 4 < 2 { 0.4 } else { -0.4 }))
        })
        .collect();
    let fields: Vec<f64> = (0..10).map(|i| 0.1 * f64::from(i) - 0.3).collect();
    let model = Pairwise::from_edges(leaps::target::Interaction::Ising, 10, 2, &edges).unwrap();
    ("signs", model.with_fields(&fields).unwrap(), 0.7)
}

/// The model of two signs has the same chances by the number of neighbours that pull as by their values: the same walkers, and the same energies.
#[test]
fn signs_alone_give_the_same_bits_as_all_values() {
    let (_, model, beta) = signed();
    let lambda = vec![beta; model.terms()];
    for rule in [Rule::HeatBath, Rule::Metropolis] {
        let run = |plan: Plan| {
            let tables = Tables::new(&plan, &lambda);
            let (mut tile, level) = (Tile::new(10, 9, 128), SimdLevel::detect());
            tile.update(&plan, &tables, level, Updates { from: 0, count: 4000 });
            let mut energies = vec![0.0; 128];
            tile.energies(&plan, level, &mut energies);
            let states: Vec<Vec<u8>> = (0..64)
                .map(|lane| {
                    let mut x = vec![0; 10];
                    tile.get(lane, &mut x);
                    let own = energies[lane];
                    assert!((model.energy(0, &x) - own).abs() < 1e-12, "{own}");
                    x
                })
                .collect();
            (states, plan.table_bytes())
        };
        let (by_value, large) = run(Plan::new(&model, rule, Scan::Systematic).unwrap());
        let (by_sign, small) = run(Plan::signed(&model, rule, Scan::Systematic).unwrap());
        assert!(small < large, "{small} {large}");
        assert_eq!(by_value, by_sign);
    }
    let many = leaps::target::Graph::random(60, 0.9, leaps::target::EdgeWeights::Pm1, 1).unwrap();
    let many = Pairwise::max_cut(&many).unwrap();
    assert!(Plan::new(&many, Rule::HeatBath, Scan::Systematic).is_err());
    assert!(Plan::signed(&many, Rule::HeatBath, Scan::Systematic).is_ok());
}

#[test]
fn every_level_gives_the_same_bits() {
    for (name, model, beta) in models() {
        for rule in [Rule::HeatBath, Rule::Metropolis] {
            for scan in [Scan::Systematic, Scan::Coloured] {
                let plan = Plan::new(&model, rule, scan).unwrap();
                let tables = Tables::new(&plan, &vec![beta; model.terms()]);
                let updates = 400 * model.sites() as u64;
                let runs: Vec<Vec<u8>> = SimdLevel::available()
                    .into_iter()
                    .map(|level| {
                        let mut tile = Tile::new(model.sites(), 9, 128);
                        tile.update(&plan, &tables, level, Updates { from: 0, count: updates });
                        let mut energies = vec![0.0; 64 * model.terms()];
                        tile.energies(&plan, level, &mut energies);
                        let mut all = Vec::new();
                        for lane in 0..64 {
                            let mut x = vec![0; model.sites()];
                            tile.get(lane, &mut x);
                            for term in 0..model.terms() {
                                let energy = energies[term * 64 + lane];
                                assert!((energy - model.energy(term, &x)).abs() < 1e-12, "{name}");
                            }
                            all.extend(x);
                        }
                        all
                    })
                    .collect();
                assert!(runs.windows(2).all(|pair| pair[0] == pair[1]), "{name} {rule:?}");
            }
        }
    }
}

struct Counts {
    counts: Vec<f64>,
    q: usize,
}

impl Recorder for Counts {
    fn record(&mut self, x: &[u8]) {
        let code = x.iter().rev().fold(0, |code, &t| code * self.q + t as usize);
        self.counts[code] += 1.0;
    }
}

#[test]
fn chains_follow_the_enumerated_law() {
    for (name, model, beta) in models() {
        for rule in [Rule::HeatBath, Rule::Metropolis] {
            let lambda = vec![beta; model.terms()];
            let law = enumerate::law(&model, &lambda).unwrap();
            let plan = Plan::new(&model, rule, Scan::Coloured).unwrap();
            // 40 sweeps between kept states of such small systems leave no correlation to speak of.
            let settings =
                ChainSettings { chains: 128, burn_in: 200, steps: 40_000, thin: 40, seed: 6 };
            let make = |_| Counts { counts: vec![0.0; law.len()], q: model.q() };
            let outcomes = run_lane_chains(
                &Density::new(&model, &lambda),
                &plan,
                &settings,
                make,
                &NoProgress,
            )
            .unwrap();
            let mut counts = vec![0.0; law.len()];
            for outcome in outcomes {
                assert!(outcome.acceptance > 0.0 && outcome.acceptance <= 1.0);
                for (sum, count) in counts.iter_mut().zip(outcome.recorder.counts) {
                    *sum += count;
                }
            }
            // Rare states are pooled so that the statistic is close to its limit law.
            let n: f64 = counts.iter().sum();
            assert_eq!(n, 128_000.0);
            let (mut g, mut cells) = (0.0, -1.0);
            let (mut rare_law, mut rare_count) = (0.0, 0.0);
            for (p, count) in law.iter().zip(&counts) {
                if n * p < 20.0 {
                    rare_law += p;
                    rare_count += count;
                } else {
                    g += 2.0 * count * (count / (n * p)).ln();
                    cells += 1.0;
                }
            }
            if rare_law > 0.0 {
                g += 2.0 * rare_count * (rare_count / (n * rare_law)).max(1e-300).ln();
                cells += 1.0;
            }
            // p = 1e-6 (Wilson-Hilferty). A field of the wrong sign adds thousands.
            let limit = cells
                * (1.0 - 2.0 / (9.0 * cells) + 4.75 * (2.0f64 / (9.0 * cells)).sqrt()).powi(3);
            assert!(g < limit, "{name} {rule:?}: {g} with {cells} degrees of freedom");
        }
    }
}

#[test]
fn crowded_surroundings_are_refused_not_mangled() {
    let complete = Pairwise::sherrington_kirkpatrick(40, Disorder::Gaussian, 1).unwrap();
    assert!(Plan::new(&complete, Rule::HeatBath, Scan::Systematic).is_err());
    let many = Pairwise::potts(lattice(&[4, 4], Boundary::Periodic), 200, 1.0, 0.0).unwrap();
    assert!(Plan::new(&many, Rule::Metropolis, Scan::Systematic).is_err());
}

#[test]
fn extreme_temperatures_freeze_and_melt() {
    let model = Pairwise::ising(lattice(&[4, 4], Boundary::Periodic), 1.0, -1.0).unwrap();
    for rule in [Rule::HeatBath, Rule::Metropolis] {
        let plan = Plan::new(&model, rule, Scan::Systematic).unwrap();
        let cold = Tables::new(&plan, &[1e6, 1e6]);
        let mut tile = Tile::new(16, 1, 0);
        tile.update(&plan, &cold, SimdLevel::detect(), Updates { from: 0, count: 16 * 50 });
        // All down is a local minimum at this field; from it, nothing moves at beta = 10^6.
        assert!((0..64).all(|lane| (0..16).all(|site| tile.value(lane, site) == 0)));
        let hot = Tables::new(&plan, &[0.0, 0.0]);
        tile.update(&plan, &hot, SimdLevel::detect(), Updates { from: 16 * 50, count: 16 * 51 });
        let ups: u32 =
            (0..64).map(|lane| (0..16).map(|s| u32::from(tile.value(lane, s))).sum::<u32>()).sum();
        let z = (f64::from(ups) - 512.0) / 16.0;
        assert!(rule == Rule::Metropolis || z.abs() < 5.0, "{ups}");
    }
}
