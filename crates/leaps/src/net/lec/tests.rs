//! Tests of gradients, hollowness and refusals.

use std::f64::consts::LN_2;

use super::passes::{Space, Time};
use super::*;
use crate::device::vector::Vector;
use crate::net::network::Group;
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

impl Lec {
    /// For comparisons: the outputs of the first convolution (`l = 0`) or of a layer, as the forward pass left them.
    pub(crate) unsafe fn hidden<V: Vector>(
        &self,
        group: &Group<'_, V>,
        scratch: &[V],
        l: usize,
    ) -> Vec<V> {
        let Space { u, time, .. } = Space::cut(self, scratch);
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            let scale = if l == 0 { self.scales(group.t, time).0 } else { V::constant(1.0) };
            u[l * self.cells()..][..self.cells()].iter().map(|u| u.mul(scale)).collect()
        }
    }

    /// The function of time of layer `l`, by tap.
    pub(crate) unsafe fn theta<V: Vector>(&self, scratch: &[V], l: usize) -> Vec<V> {
        let (start, layer) =
            (self.layers[..l].iter().map(Time::len).sum::<usize>(), &self.layers[l]);
        let own = Time::cut(layer, &Space::cut(self, scratch).time[start..]);
        let theta = &own.theta[..layer.stencil.taps()];
        // SAFETY: the caller has the instructions of the vector.
        unsafe { theta.iter().map(|theta| theta.mul(V::constant(-LN_2))).collect() }
    }
}
