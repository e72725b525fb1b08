//! Tests of starts from other networks.

use serde_json::Value;

use super::*;
use crate::net::{HollowSpec, LecSpec, MlpSpec};
use crate::rates::Parametrisation;
use crate::store::{ModelParts, Summary};
use crate::target::{Boundary, Lattice, Pairwise, Target};

fn ising(side: usize) -> Pairwise {
    let lattice = Lattice::new(&[side, side], Boundary::Periodic).unwrap();
    Pairwise::ising(lattice, 1.0, 0.1).unwrap()
}

fn build(spec: &NetSpec, side: usize) -> (Net, FreeEnergy) {
    let target = ising(side);
    let free = FreeEnergy::new(&FreeEnergySpec::Rate, target.sites()).unwrap();
    (Net::new(spec, &target).unwrap(), free)
}

/// A model that some training has moved: no number is one that a fresh start would have.
fn model(net: &Net, free: &FreeEnergy) -> (Model, Vec<f32>) {
    let n = net.parameters() + free.parameters();
    let average: Vec<f32> = (0..n).map(|k| 0.3 * (1.7 * k as f32).sin()).collect();
    let model = Model::new(ModelParts {
        net,
        free,
        parametrisation: Parametrisation::Barker,
        target: Value::Null,
        path: crate::path::PathSpec::default(),
        training: Summary::default(),
        average: &average,
        raw: None,
    });
    (model.unwrap(), average)
}

fn hollow(depth: usize) -> NetSpec {
    NetSpec::Hollow(HollowSpec {
        channels: 5,
        depth: Some(depth),
        rows: Some(2),
        head: Some(7),
        global_features: true,
        bond_features: true,
    })
}

fn outputs(net: &Net, parameters: &[f32], state: &[u8]) -> Vec<f32> {
    let packed = net.pack(&parameters[..net.parameters()]);
    let mut worker = net.worker();
    for lane in 0..16 {
        worker.set(lane, state, lane as f64 / 15.0);
    }
    net.forward(&packed, &mut worker);
    (0..16)
        .flat_map(|l| (0..state.len()).map(move |i| (l, i)))
        .map(|(l, i)| worker.output(l, i))
        .collect()
}

#[test]
fn parameters_of_convolutions_go_to_larger_lattices() {
    let lec = NetSpec::Lec(LecSpec { kernels: vec![3, 5], channels: 4, ..LecSpec::default() });
    let NetSpec::Hollow(hollow) = hollow(2) else { unreachable!() };
    // Without global features, which are shares of the other sites: of 24 here, of 99 there.
    let local = NetSpec::Hollow(HollowSpec { global_features: false, ..hollow });
    for spec in [local, lec] {
        let (net, free) = build(&spec, 5);
        let (model, average) = model(&net, &free);
        let (larger, extensive) = build(&spec, 10);
        let warm = model.warm_start(&larger, &extensive, 3).unwrap();
        assert_eq!(warm.parameters, average);
        assert!(warm.free_energy && warm.new_layers == 0);
        // A state that repeats every five sites looks the same from every site; F grows with the sites.
        let small: Vec<u8> = (0..25).map(|k| u8::from(k * k % 7 < 3)).collect();
        let large: Vec<u8> = (0..100).map(|k| small[k / 10 % 5 * 5 + k % 5]).collect();
        let (a, b) = (outputs(&net, &average, &small), outputs(&larger, &warm.parameters, &large));
        for (at, value) in b.iter().enumerate() {
            let (lane, site) = (at / 100, at % 100);
            let same = a[25 * lane + site / 10 % 5 * 5 + site % 5];
            assert!((value - same).abs() < 1e-5 * (1.0 + same.abs()), "{spec:?}: {value} {same}");
        }
        let rate = |free: &FreeEnergy| free.rates(&average[net.parameters()..], &[0.3])[0];
        assert!((rate(&extensive) - 4.0 * rate(&free)).abs() < 1e-5 * rate(&extensive).abs());
    }
}

#[test]
fn more_layers_change_nothing_and_can_learn() {
    let ((net, free), (deeper, _)) = (build(&hollow(2), 6), build(&hollow(4), 6));
    let (model, average) = model(&net, &free);
    let warm = model.warm_start(&deeper, &free, 3).unwrap();
    assert_eq!(warm.new_layers, 2);
    let state: Vec<u8> = (0..36).map(|k| u8::from(k * k % 7 < 3)).collect();
    let (a, b) = (outputs(&net, &average, &state), outputs(&deeper, &warm.parameters, &state));
    assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-5 * (1.0 + a.abs())));
    // Neither is any new layer stuck: its weights have a gradient.
    let packed = deeper.pack(&warm.parameters[..deeper.parameters()]);
    let mut worker = deeper.worker();
    worker.set(0, &state, 0.4);
    deeper.forward(&packed, &mut worker);
    (0..36).for_each(|i| worker.set_slope(0, i, 1.0));
    let mut gradient = vec![0.0; packed.len()];
    deeper.backward(&packed, &mut worker, &mut gradient);
    let mut plain = vec![0.0; deeper.parameters()];
    deeper.unpack(&gradient, &mut plain);
    let mut rest = &plain[..];
    for tensor in deeper.tensors() {
        let (own, others) = rest.split_at(tensor.len());
        rest = others;
        if ["layer2.weight", "layer3.weight"].contains(&tensor.name.as_str()) {
            assert!(own.iter().any(|g| g.abs() > 1e-6), "{}", tensor.name);
        }
    }
}

#[test]
fn what_does_not_fit_is_named_with_its_shapes() {
    let mlp = NetSpec::Mlp(MlpSpec { hidden: 4 });
    let wider = NetSpec::Hollow(HollowSpec {
        channels: 6,
        depth: Some(2),
        rows: Some(2),
        head: Some(7),
        global_features: true,
        bond_features: true,
    });
    for (old, new, side, name, shapes) in [
        (&mlp, &mlp, 6, "net.weight", (Some(vec![4, 25, 24]), Some(vec![4, 36, 35]))),
        (
            &hollow(2),
            &wider,
            5,
            "net.layer0.weight",
            (Some(vec![5, 1, 2, 3]), Some(vec![6, 1, 2, 3])),
        ),
        (&hollow(3), &hollow(2), 5, "net.layer2.bias", (Some(vec![5]), None)),
        (&mlp, &hollow(2), 5, "net.layer0.weight", (None, Some(vec![5, 1, 2, 3]))),
    ] {
        let (net, free) = build(old, 5);
        let (other, other_free) = build(new, side);
        let error = model(&net, &free).0.warm_start(&other, &other_free, 1).unwrap_err();
        let text = error.to_string();
        let Error::Misfit { tensor, found, needed, .. } = error else { panic!("{text}") };
        assert_eq!((tensor.as_str(), (found, needed)), (name, shapes), "{text}");
    }
}

#[test]
fn another_kind_of_free_energy_starts_afresh() {
    let (net, free) = build(&hollow(2), 5);
    let curve = FreeEnergy::new(&FreeEnergySpec::Mlp { hidden: vec![3] }, 25).unwrap();
    let (model, average) = model(&net, &curve);
    let warm = model.warm_start(&net, &free, 9).unwrap();
    assert!(!warm.free_energy);
    assert_eq!(warm.parameters[..net.parameters()], average[..net.parameters()]);
    assert_eq!(warm.parameters[net.parameters()..], free.initial(9));
}
