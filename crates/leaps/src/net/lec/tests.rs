//! Check gradients, hollowness and refusals.

use super::*;
use crate::net::testing::check_network;
use crate::target::Pairwise;

fn lattice(shape: &[usize], boundary: Boundary) -> Lattice {
    Lattice::new(shape, boundary).unwrap()
}

fn target(lattice: Lattice, q: usize) -> Pairwise {
    match q {
        2 => Pairwise::ising(lattice, 1.0, 0.0).unwrap(),
        _ => Pairwise::potts(lattice, q, 1.0, 0.0).unwrap(),
    }
}

#[test]
fn gradients_are_finite_differences_and_outputs_are_hollow() {
    use Boundary::{Free, Periodic};
    for (shape, boundary, q, kernels, channels, imported) in [
        (&[3, 4][..], Periodic, 2, &[3, 3][..], 2, false),
        (&[3, 4], Periodic, 2, &[3, 3], 3, true),
        (&[5, 5], Periodic, 2, &[3, 5, 3], 4, false),
        (&[5, 6], Periodic, 2, &[5, 3, 5], 1, true),
        (&[4, 3], Periodic, 3, &[3, 3], 4, true),
        (&[3, 4], Periodic, 3, &[3, 3, 3], 3, false),
        (&[5, 3], Periodic, 5, &[3, 3], 2, true),
        (&[7], Periodic, 2, &[3, 7, 5], 5, false),
        (&[4], Free, 3, &[3, 5], 9, false),
        (&[3, 3, 3], Periodic, 2, &[3, 3], 2, false),
    ] {
        let spec = LecSpec { kernels: kernels.to_vec(), channels, imported, time_units: 3 };
        let target = target(lattice(shape, boundary), q);
        let network = Lec::new(&spec, &target).unwrap();
        println!("{shape:?} q={q} {spec:?}");
        check_network(&network, target.sites(), network.inputs, network.inputs);
    }
}

#[test]
fn impossible_kernels_are_refused() {
    let small = target(lattice(&[4, 6], Boundary::Periodic), 2);
    for (kernels, says) in [
        (vec![3, 5], "at most 4 wide"),
        (vec![3], "at least two"),
        (vec![3, 4], "odd"),
        (vec![1, 3], "odd"),
    ] {
        let spec = LecSpec { kernels, ..Default::default() };
        let message = Lec::new(&spec, &small).unwrap_err().to_string();
        assert!(message.contains("network.kernels") && message.contains(says), "{message}");
    }
    let spec = LecSpec { kernels: vec![3, 3], ..Default::default() };
    assert!(Lec::new(&LecSpec { channels: 0, ..spec.clone() }, &small).is_err());
    assert!(Lec::new(&LecSpec { time_units: 0, ..spec.clone() }, &small).is_err());
    let edges = [(0, 1, 1.0)];
    let graph = Pairwise::from_edges(crate::target::Interaction::Ising, 2, 2, &edges).unwrap();
    assert!(matches!(Lec::new(&spec, &graph), Err(Error::NotApplicable { .. })));
}
