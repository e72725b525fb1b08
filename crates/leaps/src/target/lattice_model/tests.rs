//! Energies of lattice models against sums written out by hand, and against the models that they turn into.

use proptest::prelude::*;

use super::*;
use crate::device::NoProgress;
use crate::exact::{Method, enumerate, solve};
use crate::target::{Bond, Interaction, Target, potential};

fn lattice(shape: &[usize], boundary: Boundary) -> Lattice {
    Lattice::new(shape, boundary).unwrap()
}

/// Two tables of three values without any symmetry, a three-site one and site energies, in three terms.
fn lopsided(boundary: Boundary) -> LatticeModel {
    let number = |k: usize| ((k * 7919 + 13) % 101) as f64 / 37.0 - 1.2;
    let table = |n: usize, from: usize| (from..from + n).map(number).collect::<Vec<_>>();
    let tables = vec![
        ClusterTable::new("bonds", &[vec![0, 0], vec![0, 1]], table(9, 0)),
        ClusterTable::new("bonds", &[vec![1, 0], vec![0, 0]], table(9, 20)),
        ClusterTable::new("three", &[vec![0, 0], vec![1, -1], vec![0, 2]], table(27, 40)),
        ClusterTable::new("sites", &[vec![0, 0]], table(3, 80)),
    ];
    let fields: Vec<f64> = (0..12 * 3).map(|k| number(k + 200)).collect();
    let model = LatticeModel::new(lattice(&[3, 4], boundary), 3, tables).unwrap();
    model.with_site_energies("sites", &fields).unwrap()
}

/// The energy of a term of `lopsided`, from its definition.
fn by_hand(model: &LatticeModel, term: usize, x: &[u8]) -> f64 {
    let periodic = model.lattice().unwrap().boundary() == Boundary::Periodic;
    let at = |row: i64, column: i64| -> Option<u8> {
        match periodic {
            true => Some(x[(row.rem_euclid(3) * 4 + column.rem_euclid(4)) as usize]),
            false => ((0..3).contains(&row) && (0..4).contains(&column))
                .then(|| x[(row * 4 + column) as usize]),
        }
    };
    let mut energy = 0.0;
    for table in model.tables.iter().filter(|table| table.term == model.terms[term]) {
        for row in 0..3 {
            for column in 0..4 {
                let values: Option<Vec<u8>> =
                    table.offsets.iter().map(|r| at(row + r[0], column + r[1])).collect();
                let index = |values: Vec<u8>| values.iter().fold(0, |i, &v| i * 3 + v as usize);
                energy += values.map_or(0.0, |values| table.energies[index(values)]);
            }
        }
    }
    if term == 2 {
        let number = |k: usize| ((k * 7919 + 13) % 101) as f64 / 37.0 - 1.2;
        energy += x.iter().enumerate().map(|(i, &v)| number(i * 3 + v as usize + 200)).sum::<f64>();
    }
    energy
}

proptest! {
    #[test]
    fn energies_and_changes_are_those_of_the_definition(
        free in any::<bool>(),
        mut x in proptest::collection::vec(0u8..3, 12),
        site in 0usize..12,
        lambda in proptest::collection::vec(-1.5f64..1.5, 3),
    ) {
        let model = lopsided(if free { Boundary::Free } else { Boundary::Periodic });
        prop_assert!(model.pairwise().is_none());
        for term in 0..3 {
            prop_assert!((model.energy(term, &x) - by_hand(&model, term, &x)).abs() < 1e-12);
        }
        let before = potential(&model, &lambda, &x);
        let old = x[site];
        let (mut row, mut all) = ([0.0; 3], [0.0; 36]);
        model.site_changes(&lambda, &mut x, site, &mut row);
        model.changes(&lambda, &mut x, &mut all);
        for value in 0..3 {
            let single = model.change(&lambda, &mut x, site, value);
            let mut terms: Vec<f64> = (0..3).map(|term| model.energy(term, &x)).collect();
            x[site] = value;
            let change = potential(&model, &lambda, &x) - before;
            model.add_changes(&x, site, [old, value], &mut terms);
            for (term, followed) in terms.iter().enumerate() {
                prop_assert!((model.energy(term, &x) - followed).abs() < 1e-12);
            }
            let (mut after, mut anew) = (all, all);
            model.changes_after(&lambda, &mut x, site, &mut after);
            model.changes(&lambda, &mut x, &mut anew);
            prop_assert_eq!(after, anew);
            x[site] = old;
            for other in [single, row[value as usize], all[site * 3 + value as usize]] {
                prop_assert!((change - other).abs() < 1e-12);
            }
            prop_assert!(value != old || row[value as usize] == 0.0);
        }
    }

    #[test]
    fn models_of_two_values_and_pairs_are_pairwise(
        free in any::<bool>(),
        tables in proptest::collection::vec(-2f64..2.0, 10),
        x in proptest::collection::vec(0u8..2, 12),
    ) {
        let boundary = if free { Boundary::Free } else { Boundary::Periodic };
        let pairs = vec![
            ClusterTable::new("bonds", &[vec![0, 0], vec![0, 1]], tables[..4].to_vec()),
            ClusterTable::new("diagonal", &[vec![0, 0], vec![1, 2]], tables[4..8].to_vec()),
            ClusterTable::new("bonds", &[vec![0, 0]], tables[8..].to_vec()),
        ];
        let model = LatticeModel::new(lattice(&[3, 4], boundary), 2, pairs).unwrap();
        let pairwise = model.pairwise().unwrap();
        prop_assert_eq!(pairwise.term_names(), model.term_names());
        for term in 0..2 {
            prop_assert!((pairwise.energy(term, &x) - model.energy(term, &x)).abs() < 1e-11);
        }
        prop_assert!(pairwise.uniform_torus().is_none());
    }
}

/// Tables of pairs are the bonds that `ising --j2` has, in whatever direction they are written, and so have its features in networks.
#[test]
fn tables_of_pairs_have_the_offsets_of_their_bonds() {
    let shape = || lattice(&[4, 5], Boundary::Periodic);
    let bond = |offset: [i64; 2], strength: f64| Bond { offset: offset.to_vec(), strength };
    let bonds = [([1, 0], 1.0), ([0, 1], 1.0), ([1, 1], -0.6), ([1, -1], -0.6)];
    let listed = bonds.map(|(offset, strength)| bond(offset, strength));
    let product = |from: [i64; 2], to: [i64; 2], strength: f64| {
        ClusterTable::product("bonds", &[from.to_vec(), to.to_vec()], strength, &ISING)
    };
    let tables = bonds.map(|([a, b], strength)| match a == b {
        true => product([a, b], [0, 0], strength),
        false => product([0, 0], [a, b], strength),
    });
    let model = LatticeModel::new(shape(), 2, tables.to_vec()).unwrap();
    let known = Pairwise::from_bonds(Interaction::Ising, shape(), 2, &listed).unwrap();
    let own = model.pairwise().unwrap();
    assert_eq!(own.offsets(), known.offsets());
    let lambda = [0.8];
    let log_z =
        |target: &dyn Target| enumerate::moments(target, &lambda, &NoProgress).unwrap().log_z;
    assert!((log_z(&model) - log_z(&known)).abs() < 1e-10);
    // Two tables of one pair are one bond; nearest neighbours of one strength are the plain lattice.
    let half = [product([0, 0], [1, 0], 0.25), product([2, 1], [1, 1], 0.75)];
    let right = [product([0, 0], [0, 1], 1.0)];
    let offsets = |tables: &[&[ClusterTable]]| {
        let model = LatticeModel::new(shape(), 2, tables.concat()).unwrap();
        model.pairwise().unwrap().offsets().to_vec()
    };
    assert_eq!(offsets(&[&half]), [bond([1, 0], 1.0)]);
    assert_eq!(offsets(&[&half, &right]), []);
    // Potts's strength is what equal values gain.
    let (far, third) = ([vec![0, 0], vec![0, 2]], 0.3);
    let table = (0..9).map(|pair| if pair % 4 == 0 { -third } else { 0.1 }).collect();
    let potts = LatticeModel::new(shape(), 3, vec![ClusterTable::new("bonds", &far, table)]);
    let potts = potts.unwrap();
    let [found] = potts.pairwise().unwrap().offsets() else { panic!("one bond") };
    assert!(found.offset == [0, 2] && (found.strength - third - 0.1).abs() < 1e-15);
}

#[test]
fn blume_capel_without_vacancies_is_ising() {
    for boundary in [Boundary::Periodic, Boundary::Free] {
        let shape = lattice(&[2, 3], boundary);
        let spins = [-1.0, 0.0, 1.0];
        // D = -40: an empty site costs 40, and is never seen.
        let model = LatticeModel::blume_capel(shape.clone(), 0.8, -40.0).unwrap();
        let model = model.with_fields(&[0.3], &spins).unwrap();
        assert!(model.pairwise().is_none() && !model.symmetric());
        let ising = Pairwise::ising(shape, 0.8, 0.3).unwrap();
        let own = solve(&model, &[0.7; 3], None, &NoProgress).unwrap();
        let known = solve(&ising, &[0.7; 2], None, &NoProgress).unwrap();
        assert!((own.log_z - 0.7 * 40.0 * 6.0 - known.log_z).abs() < 1e-9);
        assert!((own.energy + 240.0 - known.energy).abs() < 1e-8);
    }
    let free = LatticeModel::blume_capel(lattice(&[3, 3], Boundary::Free), 1.0, 0.4).unwrap();
    assert!(free.symmetric() && !free.equivalent());
}

#[test]
fn clocks_are_ising_and_potts() {
    let shape = || lattice(&[3, 4], Boundary::Periodic);
    let two = LatticeModel::clock(shape(), 2, 0.9).unwrap();
    let torus = two.pairwise().unwrap().uniform_torus();
    assert!(
        torus
            .is_some_and(|(rows, columns, j)| (rows, columns) == (3, 4) && (j - 0.9).abs() < 1e-14)
    );
    assert!(two.symmetric());
    let ising = Pairwise::ising(shape(), 0.9, 0.0).unwrap();
    let log_z =
        |target: &dyn Target| enumerate::moments(target, &[0.5], &NoProgress).unwrap().log_z;
    assert!((log_z(&two) - log_z(&ising)).abs() < 1e-11);
    // cos(2 pi/3) = -1/2: a coupling of 3/2, and J/2 less for each of the 24 bonds.
    let three = LatticeModel::clock(shape(), 3, 0.9).unwrap();
    assert!(three.symmetric() && three.equivalent());
    let potts = Pairwise::potts(shape(), 3, 1.35, 0.0).unwrap();
    assert!((log_z(&three) - (log_z(&potts) - 0.5 * 24.0 * 0.45)).abs() < 1e-11);
    let pairwise = three.pairwise().unwrap();
    assert_eq!(pairwise.interaction(), Interaction::Potts);
    assert!(pairwise.energy_terms()[0].fields.is_empty());
    // Four hours are two Ising spins of half the coupling; they are no Potts model.
    let small = lattice(&[2, 3], Boundary::Free);
    let four = LatticeModel::clock(small.clone(), 4, 0.9).unwrap();
    assert!(four.pairwise().is_none());
    let half = Pairwise::ising(small, 0.45, 0.0).unwrap();
    assert!((log_z(&four) - 2.0 * log_z(&half)).abs() < 1e-11);
}

#[test]
fn lattice_gases_are_ising_models_in_a_field() {
    for boundary in [Boundary::Periodic, Boundary::Free] {
        let shape = lattice(&[3, 4], boundary);
        let (j, mu) = (1.3, -2.1);
        let gas = LatticeModel::lattice_gas(shape.clone(), j, mu).unwrap();
        // n = (1 + s)/2: J/4 for every bond, and J/4 for each bond at a site and mu/2 as fields.
        let bonds = shape.bonds();
        let mut fields = vec![-mu / 2.0; 12];
        for &(a, b) in &bonds {
            fields[a as usize] -= j / 4.0;
            fields[b as usize] -= j / 4.0;
        }
        let constant = -j / 4.0 * bonds.len() as f64 - mu / 2.0 * 12.0;
        let ising = Pairwise::ising(shape, j / 4.0, 0.0).unwrap().with_fields(&fields).unwrap();
        let own = solve(&gas, &[0.8; 2], Some(Method::Enumeration), &NoProgress).unwrap();
        let known = solve(&ising, &[0.8; 2], Some(Method::Enumeration), &NoProgress).unwrap();
        assert!((own.log_z - (known.log_z - 0.8 * constant)).abs() < 1e-11);
        assert!((own.energy - (known.energy + constant)).abs() < 1e-11);
        assert!((own.order.unwrap().m - known.order.unwrap().m).abs() < 1e-11);
        let strip = solve(&gas, &[0.8; 2], Some(Method::TransferMatrix), &NoProgress).unwrap();
        assert!((own.log_z - strip.log_z).abs() < 1e-11);
    }
}

#[test]
fn ashkin_teller_without_four_spins_is_two_ising_models() {
    let shape = lattice(&[2, 3], Boundary::Free);
    let model = LatticeModel::ashkin_teller(shape.clone(), 0.7, 0.0).unwrap();
    assert!(model.symmetric());
    let model = model.with_fields(&[0.2], &[-2.0, 0.0, 0.0, 2.0]).unwrap();
    assert!(!model.symmetric());
    let ising = Pairwise::ising(shape.clone(), 0.7, 0.2).unwrap();
    let moments = |target: &dyn Target| enumerate::moments(target, &[0.6; 2], &NoProgress).unwrap();
    let (own, known) = (moments(&model), moments(&ising));
    assert!((own.log_z - 2.0 * known.log_z).abs() < 1e-11);
    assert!((own.energy - 2.0 * known.energy).abs() < 1e-11);
    // With K = J it is the Potts model of four values: 4J for equal ones, and J less for each of the 7 bonds.
    let equal = LatticeModel::ashkin_teller(shape.clone(), 0.7, 0.7).unwrap();
    let potts = Pairwise::potts(shape, 4, 2.8, 0.0).unwrap();
    let log_z =
        |target: &dyn Target| enumerate::moments(target, &[0.6], &NoProgress).unwrap().log_z;
    assert!((log_z(&equal) - (log_z(&potts) - 0.6 * 0.7 * 7.0)).abs() < 1e-11);
    assert!(equal.pairwise().is_some());
}

#[test]
fn baxter_wu_has_four_ground_states() {
    let model = LatticeModel::baxter_wu(lattice(&[3, 3], Boundary::Periodic), 1.0).unwrap();
    assert!(model.pairwise().is_none());
    let spin =
        |x: &[u8], row: usize, column: usize| 2.0 * f64::from(x[row % 3 * 3 + column % 3]) - 1.0;
    let (mut lowest, mut z) = (0, 0.0);
    for code in 0..512u32 {
        let x: Vec<u8> = (0..9).map(|site| (code >> site & 1) as u8).collect();
        let mut energy = 0.0;
        for (row, column) in (0..9).map(|site| (site / 3, site % 3)) {
            let diagonal = spin(&x, row + 1, column) * spin(&x, row, column + 1);
            energy -= diagonal * (spin(&x, row, column) + spin(&x, row + 1, column + 1));
        }
        assert_eq!(model.energy(0, &x), energy);
        lowest += usize::from(energy == -18.0);
        z += f64::exp(-0.3 * energy);
    }
    assert_eq!((lowest, model.energy_bound()), (4, -18.0));
    let own = solve(&model, &[0.3], None, &NoProgress).unwrap();
    assert!((own.log_z - z.ln()).abs() < 1e-12);
    // On a free edge, triangles that stick out are left out.
    let free = LatticeModel::baxter_wu(lattice(&[3, 4], Boundary::Free), 1.0).unwrap();
    assert_eq!((free.clusters(), free.energy(0, &[1; 12])), (12, -12.0));
}

#[test]
fn what_makes_no_model_is_refused() {
    let shape = || lattice(&[2, 3], Boundary::Periodic);
    let pair = [vec![0, 0], vec![0, 1]];
    let refused =
        |tables: Vec<ClusterTable>| LatticeModel::new(shape(), 2, tables).unwrap_err().to_string();
    assert!(refused(Vec::new()).contains("a list of interactions"));
    let long = ClusterTable::new("a", &pair, vec![0.0; 5]);
    assert!(refused(vec![long]).contains("4 energies"));
    let wild = ClusterTable::new("a", &pair, vec![0.0, f64::NAN, 0.0, 0.0]);
    assert!(refused(vec![wild]).contains("finite"));
    let chain = ClusterTable::new("a", &[vec![0], vec![1]], vec![0.0; 4]);
    assert!(refused(vec![chain]).contains("2 coordinates"));
    let round = ClusterTable::new("a", &[vec![0, 0], vec![-2, 3]], vec![0.0; 4]);
    assert!(refused(vec![round]).contains("different sites"));
    let many: Vec<Vec<i64>> = (0..300).map(|k| vec![0, k]).collect();
    assert!(refused(vec![ClusterTable::new("a", &many, vec![0.0])]).contains("at most"));
}
