//! Clusters under exchanges of values: every model of pairs that is neither Ising's nor an attractive Potts model.

use super::*;
use leaps::target::{ClusterTable, LatticeModel};

fn chain(sites: usize, boundary: Boundary) -> Lattice {
    lattice(&[sites], boundary)
}

fn pairs(q: usize, energy: impl Fn(usize, usize) -> f64) -> LatticeModel {
    let energies = (0..q * q).map(|pair| energy(pair / q, pair % q)).collect();
    let table = ClusterTable::new("bonds", &[vec![0], vec![1]], energies);
    LatticeModel::new(chain(4, Boundary::Free), q, vec![table]).unwrap()
}

/// Models of every kind, in fields that differ from site to site unless their names say otherwise, and whether a step alone reaches all states.
fn models() -> Vec<(&'static str, Box<dyn Target>)> {
    let (free, periodic) = (Boundary::Free, Boundary::Periodic);
    let uneven = |model: LatticeModel, spins: &[f64]| {
        let fields: Vec<f64> = (0..model.sites()).map(|i| 0.5 - 0.4 * i as f64).collect();
        model.with_fields(&fields, spins).unwrap()
    };
    let spins = [-1.0, 0.0, 1.0];
    let capel = |coupling: f64| LatticeModel::blume_capel(chain(4, free), coupling, 0.4).unwrap();
    let edges = [(0, 1, 0.9), (1, 2, -0.7), (2, 0, -1.4), (2, 3, -0.4)];
    let potts = |q, edges: &[_]| Pairwise::from_edges(Interaction::Potts, 4, q, edges).unwrap();
    // V(s, t) is not V(t, s), but stays if 0 and 2 are exchanged.
    let lopsided = |s: usize, t: usize| {
        let one = |s, t| ((7 * s + 4 * t) % 5) as f64 * 0.4;
        one(s, t) + one(2 - s, 2 - t)
    };
    let clock = |sites, q| LatticeModel::clock(chain(sites, periodic), q, 0.9).unwrap();
    let teller = LatticeModel::ashkin_teller(chain(3, periodic), 0.8, -0.5).unwrap();
    let products = [(vec![0, 1], -1.2), (vec![1, 2], 0.6), (vec![2, 0], -0.3)];
    vec![
        ("Blume-Capel", Box::new(uneven(capel(1.0), &spins))),
        ("Blume-Capel, repelling, no field", Box::new(capel(-1.0))),
        ("clock 5", Box::new(uneven(clock(3, 5), &[1.0, 0.3, -0.8, -0.8, 0.3]))),
        ("clock 4, two bonds", Box::new(uneven(clock(2, 4), &[1.0, 0.0, -1.0, 0.0]))),
        ("clock 7, no field", Box::new(clock(2, 7))),
        ("Ashkin-Teller", Box::new(uneven(teller, &[-1.0, 0.1, 0.2, 1.0]))),
        ("lopsided", Box::new(uneven(pairs(3, lopsided), &[0.4, -0.3, 0.8]))),
        ("spin-one gas", Box::new(pairs(3, |s, t| -0.8 * (s * t) as f64))),
        ("products", {
            Box::new(LatticeModel::on_graph(Interaction::Potts, 3, 4, &products).unwrap())
        }),
        ("Potts, repelling", {
            Box::new(potts(3, &edges).with_fields(&[0.6, -0.3, 0.2, 0.9]).unwrap())
        }),
        ("Potts, repelling, no field", Box::new(potts(3, &edges))),
    ]
}

#[test]
fn clusters_under_exchanges_are_invariant() {
    for (name, target) in models() {
        // Every term has a weight of its own.
        let lambda: Vec<f64> = (0..target.terms()).map(|term| 0.8 - 0.3 * term as f64).collect();
        let model = Density::new(&*target, &lambda);
        let wolff = Wolff::new(&*target, &lambda).unwrap();
        check(&format!("wolff on {name}"), &model, &wolff);
        assert!(mixes(&model, &wolff, 1), "wolff on {name}");
        let all = SwendsenWang::new(&*target, &lambda).unwrap();
        check(&format!("swendsen-wang on {name}"), &model, &all);
        assert!(mixes(&model, &all, 1), "swendsen-wang on {name}");
        // A path changes the weights below a kernel.
        let lambda: Vec<f64> = lambda.iter().map(|weight| 0.4 - weight).collect();
        let other = Density::new(&*target, &lambda);
        check(&format!("wolff on {name}, later"), &other, &moved(&model, &wolff, 1));
        check(&format!("swendsen-wang on {name}, later"), &other, &moved(&model, &all, 1));
    }
}

#[test]
fn clusters_move_together() {
    // Two strongly bound spins of Blume and Capel's turn round at once, which no single site does.
    let model = LatticeModel::blume_capel(chain(2, Boundary::Free), 1.0, 0.0).unwrap();
    let density = Density::new(&model, &[12.0]);
    let (up, down) = (encode(&[2, 2], 3), encode(&[0, 0], 3));
    for (name, all) in [(KernelName::Wolff, 1.0), (KernelName::SwendsenWang, 0.5)] {
        let kernel = AnyKernel::new(name, &model, &[12.0]).unwrap();
        let p = matrix(&density, &kernel)[up * 9 + down];
        assert!((p - all).abs() < 1e-4, "{name}: {p}");
    }
}

#[test]
fn what_has_no_clusters_is_refused_by_name() {
    let lattice = || lattice(&[3, 3], Boundary::Periodic);
    let refusal = |target: &dyn Target| {
        let lambda = vec![1.0; target.terms()];
        let wolff = Wolff::new(target, &lambda).unwrap_err().to_string();
        let all = SwendsenWang::new(target, &lambda).unwrap_err().to_string();
        assert_eq!(wolff.replace("wolff", "swendsen-wang"), all);
        all
    };
    let three = refusal(&LatticeModel::baxter_wu(lattice(), 1.0).unwrap());
    assert!(three.contains("triangles") && three.contains("3 sites"), "{three}");
    let none = refusal(&pairs(3, |s, t| (s * s * t) as f64 * 0.3));
    assert!(none.contains("no exchange of values"), "{none}");
    let own = refusal(&Triples);
    assert!(own.contains("says nothing of its pairs"), "{own}");
}
