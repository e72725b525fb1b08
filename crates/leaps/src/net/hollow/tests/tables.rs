//! Tests of the energies of tables among global features.

use super::*;
use crate::net::hollow::global_features::FUNCTIONS;
use crate::target::{ClusterTable, LatticeModel, Target};

/// Models of tables: named ones, such as are not symmetric, of three and four sites, with energies that have no common measure, on free edges.
pub(in crate::net::hollow) fn models() -> Vec<LatticeModel> {
    use Boundary::{Free, Periodic};
    let pair = [vec![0, 0], vec![0, 1]];
    let odd = vec![0.1, -0.9, 0.4, 0.7, -0.3, -0.6, 0.2, 0.8, -1.1];
    let three = ClusterTable::product(
        "three",
        &[vec![0, 0], vec![0, 1], vec![1, 0]],
        -0.31,
        &[-1.0, 0.25, 1.5],
    );
    let plaquette = [vec![0, 0], vec![0, 1], vec![1, 0], vec![1, 1]];
    let plaquette = ClusterTable::product("bonds", &plaquette, 1.0, &[-1.0, 1.0]);
    let far = ClusterTable::product("far", &[vec![0, 0], vec![2, 1]], 0.3f64.sqrt(), &[-1.0, 1.0]);
    vec![
        LatticeModel::blume_capel(lattice(&[4, 5], Periodic), 1.0, 0.3).unwrap(),
        LatticeModel::clock(lattice(&[4, 4], Periodic), 6, 0.7).unwrap(),
        LatticeModel::baxter_wu(lattice(&[3, 6], Periodic), 1.0).unwrap(),
        LatticeModel::ashkin_teller(lattice(&[4, 3], Free), 1.0, 0.4).unwrap(),
        LatticeModel::blume_capel(lattice(&[3, 2, 4], Free), -1.0, 0.0).unwrap(),
        LatticeModel::clock(lattice(&[7], Periodic), 5, 1.0).unwrap(),
        LatticeModel::new(
            lattice(&[4, 5], Free),
            3,
            vec![ClusterTable::new("bonds", &pair, odd), three],
        )
        .unwrap(),
        LatticeModel::new(lattice(&[5, 4], Periodic), 2, vec![plaquette, far]).unwrap(),
    ]
}

fn inputs(model: &LatticeModel) -> usize {
    if model.q() == 2 { 1 } else { model.q() }
}

#[test]
fn networks_with_energies_of_tables_are_hollow_and_their_gradients_finite_differences() {
    for model in models() {
        assert!(model.pairwise().is_none());
        let (lattice, io, sites) = (model.lattice().unwrap(), inputs(&model), model.sites());
        let spec = HollowSpec { channels: 3, head: Some(5), ..HollowSpec::default() };
        let network = Hollow::new(&spec, lattice, Counted::Tables(&model), io, io).unwrap();
        assert!(network.spec().bond_features && network.counts_tables());
        testing::check_network(&network, sites, io, io);
        let plain = HollowSpec { bond_features: false, ..spec };
        let plain = Hollow::new(&plain, lattice, Counted::Tables(&model), io, io).unwrap();
        assert!(!plain.spec().bond_features && !plain.counts_tables());
        let own = Hollow::new(&plain.spec(), lattice, Counted::Bonds(&[]), io, io).unwrap();
        assert_eq!(plain.stack.entering, own.stack.entering);
    }
}

/// Energies of the clusters that do not touch a site, by another sum, are what the first function of a class is.
#[test]
fn gains_are_the_energies_of_all_other_clusters() {
    for model in models() {
        let (lattice, io, n, q) =
            (model.lattice().unwrap(), inputs(&model), model.sites(), model.q());
        let f = GlobalFeatures::new(lattice, Counted::Tables(&model), io);
        let mut stream = Stream::new(5, Purpose::Statistic, 0, 0);
        let state: Vec<usize> = (0..n).map(|_| stream.below(q)).collect();
        let one = |i: usize, s: usize| match io {
            1 => 2.0 * state[i] as f64 - 1.0,
            _ => f64::from(state[i] == s),
        };
        let mut x: Vec<Array<f64>> =
            (0..n * io).map(|k| Array([one(k / io, k % io); WIDTH])).collect();
        x.resize((n + 1) * io, Array([0.0; WIDTH]));
        let mut context = vec![Array([f64::NAN; WIDTH]); n * f.width()];
        // SAFETY: plain arrays need no special instructions.
        unsafe { f.write(&x, &mut context) };
        // Tables that are alike are one class.
        let mut classes: Vec<(&ClusterTable, Vec<Vec<usize>>)> = Vec::new();
        for table in model.tables().iter().filter(|table| table.offsets.len() > 1) {
            match classes.iter_mut().find(|(own, _)| own.energies == table.energies) {
                Some((_, all)) => all.extend(model.placed(table)),
                None => classes.push((table, model.placed(table).collect())),
            }
        }
        assert_eq!(f.tables.len(), classes.len());
        assert!(f.classes.is_empty() && f.orders.is_empty());
        for (k, (table, all)) in classes.iter().enumerate() {
            let mean = table.energies.iter().sum::<f64>() / table.energies.len() as f64;
            let far = table.energies.iter().map(|e| (e - mean).abs()).fold(0.0, f64::max);
            let highest = table.energies.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            for site in 0..n {
                let others = all.iter().filter(|members| !members.contains(&site));
                let gain: f64 = others
                    .map(|members| {
                        highest - table.energies[members.iter().fold(0, |at, &i| at * q + state[i])]
                    })
                    .sum();
                let count = all.len() as f64;
                let expected = (gain - count * (highest - mean)) / (far * count);
                let found = context[site * f.width() + FUNCTIONS * (io + k)].0[3];
                // Rounding is to 2^-22 of the sum, half of that for every cluster.
                let far = (found - expected).abs();
                assert!(far < 1e-5, "{} {k} {site}: {found} {expected}", model.name());
            }
        }
    }
}

#[test]
fn models_say_what_they_count_and_gpus_are_refused() {
    for model in models() {
        let spec = HollowSpec { channels: 3, ..HollowSpec::default() };
        let net = Net::new(&NetSpec::Hollow(spec.clone()), &model).unwrap();
        assert!(matches!(net.spec(), NetSpec::Hollow(own) if own.bond_features));
        let json = serde_json::to_value(net.spec()).unwrap();
        assert_eq!(json["bond_features"], true);
        let error = net.gpu_has().unwrap_err().to_string();
        assert!(error.contains("energies of tables"), "{error}");
        let plain = HollowSpec { bond_features: false, ..spec };
        let plain = Net::new(&NetSpec::Hollow(plain), &model).unwrap();
        assert!(plain.gpu_has().is_ok() && plain.spec() != net.spec());
    }
    // Tables that are Potts's are counted as Potts models are, which GPUs do.
    let hours = LatticeModel::clock(lattice(&[4, 4], Boundary::Periodic), 3, 1.0).unwrap();
    let net = Net::new(&NetSpec::Hollow(HollowSpec::default()), &hours).unwrap();
    assert!(matches!(net.spec(), NetSpec::Hollow(own) if !own.bond_features));
    assert!(net.gpu_has().is_ok());
}
