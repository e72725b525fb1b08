//! One network for all instances of a spin glass: hollow convolutions that are shown the bonds instead of the spins.
//!
//! The energy $E = -\sum_{\langle ij\rangle} J_{ij} x_i x_j$ is the same after $x_i \to s_i x_i$, $J_{ij} \to s_i J_{ij} s_j$ with any signs $s_i$. The network
//! is made such that its fluxes are the same, too. What it sees of an instance and a configuration are [gauge-invariant numbers](bonds): the stack of a
//! [hollow convolution](super::hollow) along each direction reads how well bonds are satisfied, the head products of what pulls at its site. It has an output
//! $o_d$ for every direction, and what counts for the flux at site $i$ is
//!
//! $$o(i) = \sum_d o_d(i)\, v_d(i), \qquad v_d(i) = J_{ij} x_j,$$
//!
//! with the neighbour $j$ in direction $d$: it changes its sign with the gauge of $i$, as the spin does by which it is multiplied, and does not depend on $x_i$.
//!
//! The bonds of a site behind lead one plane further back, so that a stack reaches $(rows - 1)\, depth + 2$ planes; on a torus that must stay below the length
//! of every axis.

pub(super) mod bond_features;
pub(super) mod bonds;
pub(super) mod cuda;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::hollow::{Hollow, HollowSpec};
use super::layout::{Tensor, layout};
use super::network::{Group, Network};
use crate::device::vector::{Real, Vector};
use crate::target::{Lattice, Target};
use crate::{Error, Result};
use bonds::Bonds;

/// Settings of the network for spin glasses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GlassSpec {
    /// Channels of the convolutions.
    pub channels: usize,
    /// Layers of the stack; without a number the most that the lattice allows, at most 6.
    pub depth: Option<usize>,
    /// Planes a layer looks at, the site's own included, from 1 to 3; without a number 3, or what the lattice allows.
    pub rows: Option<usize>,
    /// Channels of the layers that mix the half-spaces; without a number twice `channels`.
    pub head: Option<usize>,
}

impl Default for GlassSpec {
    fn default() -> Self {
        GlassSpec { channels: 32, depth: None, rows: None, head: None }
    }
}

/// Planes that a stack sees beyond its own: the shift takes one, the bonds behind lead to another.
const BEYOND: usize = 2;

impl GlassSpec {
    /// The shortest periodic side on which a network of these sizes is still blind to the site itself; nothing where sizes are left open.
    pub(crate) fn least_side(&self) -> Option<usize> {
        Some(self.rows?.saturating_sub(1) * self.depth? + BEYOND + 1)
    }

    /// The convolution with these settings.
    fn hollow(&self) -> HollowSpec {
        let GlassSpec { channels, depth, rows, head } = *self;
        HollowSpec { channels, depth, rows, head, global_features: true, bond_features: false }
    }
}

/// The couplings of `target` along the axes of its lattice, which the network is shown.
pub(super) fn couplings(target: &dyn Target) -> Result<(&Lattice, Arc<[f32]>)> {
    let refused = || {
        Error::not_applicable(
            "the network glass",
            "the target is no spin glass: it must be Ising spins without a field on a chain, a square or a cubic lattice with bonds to nearest neighbours alone, and no periodic side of 2",
        )
    };
    let lattice = target.lattice().filter(|lattice| lattice.shape().len() <= 3);
    let couplings = target.pairwise().and_then(|pairs| pairs.axis_couplings());
    match (lattice, couplings) {
        (Some(lattice), Some(couplings)) => Ok((lattice, couplings.into())),
        _ => Err(refused()),
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Glass {
    pub(super) hollow: Hollow,
    bonds: Arc<Bonds>,
}

layout! {
    /// Scratch space beside that of the convolution.
    struct Outputs(glass: &Glass) {
        /// The outputs of every site, one for each direction, and their gradient.
        o: glass.bonds.sites * glass.bonds.directions(),
        d_o: glass.bonds.sites * glass.bonds.directions(),
    }
}

impl Glass {
    /// The network for a lattice.
    pub(crate) fn new(spec: &GlassSpec, lattice: &Lattice) -> Result<Self> {
        let (hollow, bonds) = Hollow::of_bonds(&spec.hollow(), lattice, BEYOND)?;
        Ok(Glass { hollow, bonds })
    }

    /// The same network, conditioned on so many numbers beside the time.
    pub(crate) fn conditioned_on(self, conditions: usize) -> Self {
        Glass { hollow: self.hollow.conditioned_on(conditions), ..self }
    }

    /// Its settings, all of them given.
    pub(crate) fn spec(&self) -> GlassSpec {
        let HollowSpec { channels, depth, rows, head, .. } = self.hollow.spec();
        GlassSpec { channels, depth, rows, head }
    }

    /// Write the sums of outputs and pulls.
    #[inline(always)]
    unsafe fn contract<V: Vector>(&self, group: &Group<'_, V>, o: &[V], out: &mut [V]) {
        let rows = o.chunks_exact(self.bonds.directions());
        for (site, (o, out)) in rows.zip(out).enumerate() {
            // SAFETY: the caller has the instructions of the vector.
            unsafe {
                *out = V::zero();
                for (k, o) in o.iter().enumerate() {
                    *out = o.fma(self.bonds.pull(group, site, k), *out);
                }
            }
        }
    }
}

impl Network for Glass {
    fn tensors(&self) -> Vec<Tensor> {
        self.hollow.tensors()
    }

    fn packed(&self) -> usize {
        self.hollow.packed()
    }

    fn pack<S: Real>(&self, parameters: &[S], out: &mut [S]) {
        self.hollow.pack(parameters, out);
    }

    fn unpack<S: Real>(&self, packed: &[S], out: &mut [S]) {
        self.hollow.unpack(packed, out);
    }

    fn couplings(&self) -> usize {
        self.bonds.numbers()
    }

    fn scratch(&self) -> usize {
        self.hollow.scratch() + Outputs::len(self)
    }

    fn forward_scratch(&self) -> usize {
        self.hollow.forward_scratch() + Outputs::lengths(self).o
    }

    #[inline(always)]
    unsafe fn forward<V: Vector>(
        &self,
        packed: &[V::Scalar],
        group: &Group<'_, V>,
        scratch: &mut [V],
        out: &mut [V],
    ) {
        let (inner, o) = scratch.split_at_mut(self.hollow.forward_scratch());
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            self.hollow.forward(packed, group, inner, o);
            self.contract(group, o, out);
        }
    }

    #[inline(always)]
    unsafe fn forward_train<V: Vector>(
        &self,
        packed: &[V::Scalar],
        group: &Group<'_, V>,
        scratch: &mut [V],
        out: &mut [V],
    ) {
        let (inner, rest) = scratch.split_at_mut(self.hollow.scratch());
        let Outputs { o, .. } = Outputs::cut_mut(self, rest);
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            self.hollow.forward_train(packed, group, inner, o);
            self.contract(group, o, out);
        }
    }

    #[inline(always)]
    unsafe fn backward<V: Vector>(
        &self,
        packed: &[V::Scalar],
        group: &Group<'_, V>,
        scratch: &mut [V],
        d_out: &[V],
        grad: &mut [V::Scalar],
    ) {
        let (inner, rest) = scratch.split_at_mut(self.hollow.scratch());
        let Outputs { d_o, .. } = Outputs::cut_mut(self, rest);
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            let rows = d_o.chunks_exact_mut(self.bonds.directions());
            for (site, (d_o, d_out)) in rows.zip(d_out).enumerate() {
                for (k, d_o) in d_o.iter_mut().enumerate() {
                    *d_o = d_out.mul(self.bonds.pull(group, site, k));
                }
            }
            self.hollow.backward(packed, group, inner, d_o, grad);
        }
    }
}
