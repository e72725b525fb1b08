//! Plans by coordinates of the surroundings: their chances, their energies, and products of factors against tables.

use super::effects::Effects;
use super::plan::Class;
use super::{Plan, Rule, Scan, Tables, Tile, Updates};
use crate::device::lanes::LANES;
use crate::device::{Draw, Purpose, SimdLevel, Stream};
use crate::target::{
    Bond, Boundary, Bravais, ClusterTable, Interaction, Lattice, LatticeModel, Pairwise, Target,
    on_shells,
};

const RULES: [Rule; 2] = [Rule::HeatBath, Rule::Metropolis];

fn torus(shape: &[usize]) -> Lattice {
    Lattice::new(shape, Boundary::Periodic).unwrap()
}

/// Fields for some sites, so that classes differ.
fn fields(sites: usize) -> Vec<f64> {
    (0..sites).map(|site| [0.3, -0.2, 0.1][site % 3]).collect()
}

/// Models of tables and clusters, and the number of surroundings of a site in the middle.
fn clusters() -> Vec<(LatticeModel, usize)> {
    let free = Lattice::new(&[3, 3], Boundary::Free).unwrap();
    let right = vec![0.1, -0.9, 0.4, 0.7, -0.3, -0.6, 0.2, 0.8, -1.1];
    let corner = [vec![0, 0], vec![0, 1], vec![1, 0]];
    let spins = [-1.0, 0.25, 1.5];
    let lopsided = vec![
        ClusterTable::new("right", &[vec![0, 0], vec![0, 1]], right),
        ClusterTable::product("three", &corner, -0.5, &spins),
    ];
    let square = [vec![0, 0], vec![0, 1], vec![1, 0], vec![1, 1]];
    let plaquette = vec![
        ClusterTable::product("bonds", &square[..2], 0.7, &[-1.0, 1.0]),
        ClusterTable::product("plaquettes", &square, -0.4, &[-1.0, 1.0]),
    ];
    let with = |model: LatticeModel, spins: &[f64]| model.with_fields(&fields(9), spins).unwrap();
    let three = [-1.0, 0.0, 1.0];
    let six: Vec<f64> =
        (0..6).map(|t| (f64::from(t) * std::f64::consts::FRAC_PI_3).cos()).collect();
    vec![
        (with(LatticeModel::blume_capel(torus(&[3, 3]), 1.0, 0.4).unwrap(), &three), 9),
        (with(LatticeModel::clock(torus(&[3, 3]), 6, 0.9).unwrap(), &six), 81),
        (with(LatticeModel::clock(torus(&[3, 3]), 4, 0.9).unwrap(), &[1.0, 0.0, -1.0, 0.0]), 25),
        (LatticeModel::baxter_wu(torus(&[3, 3]), 0.6).unwrap(), 7),
        (LatticeModel::ashkin_teller(torus(&[3, 3]), 0.8, 0.3).unwrap(), 125),
        (LatticeModel::new(torus(&[3, 3]), 2, plaquette).unwrap(), 15),
        (LatticeModel::new(free, 3, lopsided).unwrap(), 0),
    ]
}

/// Pairs with several couplings, and the number of surroundings.
fn pairs() -> Vec<(Pairwise, usize)> {
    let shells = |q: usize, couplings: &[f64]| {
        let bonds: Vec<Bond> = couplings
            .iter()
            .enumerate()
            .map(|(k, &strength)| Bond { offset: vec![k as i64 + 1], strength })
            .collect();
        Pairwise::from_bonds(Interaction::Potts, torus(&[8]), q, &bonds).unwrap()
    };
    vec![
        (on_shells(&[6, 6], Some(Bravais::Triangular), &[1.0, -0.6, 0.35]), 343),
        (
            on_shells(&[4, 4, 4], Some(Bravais::Fcc), &[-1.0, 0.4])
                .with_uniform_field(0.3)
                .unwrap(),
            91,
        ),
        // A coupling counts twice what half of it does.
        (on_shells(&[6, 6], None, &[1.0, -0.5]), 13),
        (shells(3, &[0.8, -0.3, 0.5]).with_uniform_field(-0.2).unwrap(), 625),
        (shells(4, &[0.8, -0.3]), 729),
    ]
}

fn by_clusters(model: &LatticeModel, rule: Rule, most: [usize; 2]) -> Plan {
    let effects = Effects::of_clusters(model).unwrap();
    Plan::counted(effects, (rule, Scan::Systematic), Vec::new, most).unwrap()
}

fn by_pairs(model: &Pairwise, rule: Rule, most: [usize; 2]) -> Plan {
    let effects = Effects::of_pairs(model).unwrap();
    Plan::counted(effects, (rule, Scan::Systematic), Vec::new, most).unwrap()
}

const ALL: [usize; 2] = [1 << 20; 2];
const NONE: [usize; 2] = [0; 2];

/// Every model with plans by tables and by factors for a rule.
fn plans(rule: Rule) -> Vec<(Box<dyn Target>, Plan, Plan, usize)> {
    let mut all: Vec<(Box<dyn Target>, Plan, Plan, usize)> = Vec::new();
    for (model, entries) in clusters() {
        let both = [ALL, NONE].map(|most| by_clusters(&model, rule, most));
        let [table, factors] = both;
        all.push((Box::new(model), table, factors, entries));
    }
    for (model, entries) in pairs() {
        let both = [ALL, NONE].map(|most| by_pairs(&model, rule, most));
        let [table, factors] = both;
        all.push((Box::new(model), table, factors, entries));
    }
    all
}

fn weights(target: &dyn Target) -> Vec<f64> {
    (0..target.terms()).map(|term| [0.7, 1.1, 0.4][term % 3]).collect()
}

fn random_tile(sites: usize, q: usize) -> Tile {
    let mut tile = Tile::new(sites, 3, 0);
    let mut stream = Stream::new(3, Purpose::Statistic, 0, 0);
    for lane in 0..LANES {
        let x: Vec<u8> = (0..sites).map(|_| stream.below(q) as u8).collect();
        tile.set(lane, &x);
    }
    tile
}

/// The threshold of a table as a chance.
fn chance(tables: &Tables, at: usize) -> f64 {
    f64::from(u32::from(tables.high[at]) << 16 | u32::from(tables.low[at])) / 4_294_967_296.0
}

/// The transition of every site from random states, by the thresholds that sweeps look up, is that of the target's energies.
#[test]
fn thresholds_are_the_targets_chances() {
    for rule in RULES {
        for (target, plan, _, entries) in plans(rule) {
            let (n, q) = (target.sites(), target.q());
            let (target, lambda) = (&*target, weights(&*target));
            let tables = Tables::new(&plan, &lambda);
            let tile = random_tile(n, q);
            assert!(entries == 0 || plan.classes[0].entries == entries, "{}", target.name());
            for site in 0..n {
                let index = tile.index(&plan, site);
                let class: &Class = &plan.classes[plan.class_of[site] as usize];
                let len = class.table_len(q, rule);
                for lane in 0..LANES {
                    let mut x = vec![0; n];
                    tile.get(lane, &mut x);
                    let mut u = vec![0.0; q];
                    target.site_changes(&lambda, &mut x, site, &mut u);
                    let index = index[lane] as usize;
                    for value in 0..q {
                        let wanted = match rule {
                            Rule::HeatBath if value == 0 => continue,
                            Rule::HeatBath => {
                                let weights: Vec<f64> = u.iter().map(|u| (-u).exp()).collect();
                                let total: f64 = weights.iter().sum();
                                weights[value..].iter().sum::<f64>() / total
                            }
                            Rule::Metropolis => (-u[value]).exp().min(1.0),
                        };
                        let at = match rule {
                            Rule::HeatBath => (value - 1) * len + index,
                            Rule::Metropolis if q == 2 && value == x[site] as usize => continue,
                            Rule::Metropolis if q == 2 => index * 2 + x[site] as usize,
                            Rule::Metropolis => (index * q + x[site] as usize) * q + value,
                        };
                        let found = chance(&tables, class.offset + at);
                        assert!(
                            (found - wanted).abs() < 4e-10,
                            "{}: {found} {wanted}",
                            target.name()
                        );
                    }
                }
            }
        }
    }
}

/// Products of factors move walkers as tables do, at every level, and both keep energies in step.
#[test]
fn factors_move_walkers_as_tables_do() {
    for rule in RULES {
        for (target, table, factors, _) in plans(rule) {
            let (target, lambda) = (&*target, weights(&*target));
            let (n, terms) = (target.sites(), target.terms());
            let mut runs: Vec<Vec<u8>> = Vec::new();
            for plan in [&table, &factors] {
                let tables = Tables::new(plan, &lambda);
                for level in SimdLevel::available() {
                    let mut tile = random_tile(n, target.q());
                    let mut energies = vec![0.0; terms * LANES];
                    tile.energies(plan, level, &mut energies);
                    let updates = Updates { from: 0, count: 300 * n as u64 };
                    tile.update_with_energies(plan, &tables, level, updates, &mut energies);
                    let mut fresh = vec![0.0; terms * LANES];
                    tile.energies(plan, level, &mut fresh);
                    let mut all = Vec::new();
                    for lane in 0..LANES {
                        let mut x = vec![0; n];
                        tile.get(lane, &mut x);
                        for term in 0..terms {
                            let wanted = target.energy(term, &x);
                            for found in [fresh[term * LANES + lane], energies[term * LANES + lane]]
                            {
                                assert!(
                                    (found - wanted).abs() < 1e-9,
                                    "{}: {found} {wanted}",
                                    target.name()
                                );
                            }
                        }
                        all.extend(x);
                    }
                    runs.push(all);
                }
            }
            assert!(runs.windows(2).all(|pair| pair[0] == pair[1]), "{} {rule:?}", target.name());
        }
    }
}

/// Where products of factors are beyond what numbers hold, potentials are added up instead.
#[test]
fn factors_freeze_as_tables_do() {
    for rule in RULES {
        for (target, table, factors, _) in plans(rule) {
            let n = target.sites();
            let cold = vec![5e4; target.terms()];
            let runs = [&table, &factors].map(|plan| {
                let mut tile = random_tile(n, target.q());
                let tables = Tables::new(plan, &cold);
                let updates = Updates { from: 0, count: 20 * n as u64 };
                tile.update(plan, &tables, SimdLevel::detect(), updates);
                let states: Vec<Vec<u8>> = (0..LANES)
                    .map(|lane| {
                        let mut x = vec![0; n];
                        tile.get(lane, &mut x);
                        x
                    })
                    .collect();
                states
            });
            // Ties of energies, which rounding decides at such weights, are no part of what is compared.
            let energy = |x: &Vec<u8>| -> f64 {
                (0..target.terms()).map(|term| target.energy(term, x)).sum()
            };
            let mean = |states: &[Vec<u8>]| states.iter().map(energy).sum::<f64>() / 64.0;
            let (a, b) = (mean(&runs[0]), mean(&runs[1]));
            assert!((a - b).abs() < 0.05 * a.abs().max(1.0), "{}: {a} {b}", target.name());
            assert!(runs[1].iter().flatten().all(|&value| (value as usize) < target.q()));
        }
    }
}

/// The plan that users get is the one that serves the target best, and the walkers are those of [`Plan::new`] where both exist.
#[test]
fn large_tables_are_counted() {
    for rule in RULES {
        let model = on_shells(&[6, 6], Some(Bravais::Triangular), &[1.0, -0.6]);
        let lambda = weights(&model);
        let plans =
            [Plan::new(&model, rule, Scan::Coloured), Plan::of(&model, rule, Scan::Coloured)];
        let [large, small] = plans.map(Result::unwrap);
        assert!(small.thresholds < large.thresholds / 10, "{rule:?}");
        let states = [&large, &small].map(|plan| {
            let mut tile = random_tile(36, 2);
            let tables = Tables::new(plan, &lambda);
            tile.update(plan, &tables, SimdLevel::detect(), Updates { from: 5, count: 20_000 });
            (0..36).map(|site| tile.value(7, site)).collect::<Vec<u8>>()
        });
        assert_eq!(states[0], states[1]);
    }
    let three = on_shells(&[6, 6], Some(Bravais::Triangular), &[1.0, -0.6, 0.35]);
    assert!(Plan::new(&three, Rule::HeatBath, Scan::Systematic).is_err());
    let plan = Plan::of(&three, Rule::HeatBath, Scan::Coloured).unwrap();
    assert_eq!((plan.classes.len(), plan.factors), (1, 0));
    let mut order = plan.order.clone();
    order.sort_unstable();
    assert!(order.into_iter().eq(0..36));
}
