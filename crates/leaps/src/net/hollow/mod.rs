//! Hollow convolutions over the half-spaces around a site, for lattices.
//!
//! A lattice of $D$ dimensions has $2D$ directions. Along each of them, with the same weights in a rotated frame, a stack of
//! convolutions reads only the site's own plane and the planes behind it,
//!
//! $$h^1 = W^1 * x + b^1, \qquad
//! h^{l+1} = h^l + W^{l+1} * \sigma\big((1 + a^l(t))\,h^l + s^l(t)\big) + b^{l+1},$$
//!
//! and every site then takes the value of the site before it, so that its context holds the planes strictly behind it and nothing of its own.
//! The half-spaces $H_i = (h_1(i), \dots, h_{2D}(i))$ together cover the neighbourhood of site $i$ but for the site itself; they are mixed site by site:
//!
//! $$u = M_1\,(\sigma(H_i), \phi_i) + c_1,\quad v = \sigma\big((1 + a(t))\,u + s(t)\big),\quad o(i) = M_3\,\sigma(v + M_2 v + c_2) + c_3 .$$
//!
//! Here $\phi_i$ is what all other sites [add up to](global_features), the global view that convolutions lack.
//!
//! A layer of `rows` planes reaches `rows - 1` planes back, a stack of `depth` of them, shifted by one, `(rows - 1) depth + 1`. On a torus that must
//! stay below the length of every axis, or the stack would look all the way round at the site itself. Reaching
//! round an axis sideways does no harm.
//!
//! After the blind-spot networks of Laine et al. (2019), where denoisers must not see the pixel they predict.

mod activate;
mod conv;
pub(super) mod cuda;
mod entering;
pub(super) mod geometry;
mod global_features;
pub(super) mod local;
mod stack;
mod strips;
mod table_features;
#[cfg(test)]
mod tests;
mod tiles;
mod winograd;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::glass::bonds::Bonds;
use super::head::Head;
use super::layout::{Tensor, take, take_mut, total};
use super::network::{Group, Network};
use crate::device::vector::{Real, Vector};
use crate::target::{Boundary, Lattice};
use crate::{Error, Result};
use entering::Entering;
use geometry::Geometry;
pub(crate) use global_features::Counted;
use global_features::GlobalFeatures;
use stack::Stack;

/// Settings of a hollow convolution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HollowSpec {
    /// Channels of the convolutions.
    pub channels: usize,
    /// Layers of the stack; without a number the most that the lattice allows, at most 6.
    pub depth: Option<usize>,
    /// Planes a layer looks at, the site's own included, from 1 to 3; without a number 3, or what the lattice allows.
    pub rows: Option<usize>,
    /// Channels of the layers that mix the half-spaces; without a number twice `channels`.
    pub head: Option<usize>,
    /// Whether sites also have global features, what all others add up to: how often each value occurs, and how many bonds join equal ones. Networks saved
    /// before there was this setting do not.
    #[serde(default)]
    pub global_features: bool,
    /// Whether global features count the bonds of every strength on their own, and the order of alternating signs, where a target has bonds beyond those to
    /// nearest neighbours along the axes, and the energies of every table where it is a model of tables. Networks saved before there was this setting do not.
    #[serde(default, skip_serializing_if = "is_false")]
    pub bond_features: bool,
}

impl Default for HollowSpec {
    fn default() -> Self {
        HollowSpec {
            channels: 24,
            depth: None,
            rows: None,
            head: None,
            global_features: true,
            bond_features: true,
        }
    }
}

/// What is false is not written into files.
fn is_false(setting: &bool) -> bool {
    !setting
}

/// Layers that are enough for most lattices.
const USUAL_DEPTH: usize = 6;

/// Planes that a stack of values sees beyond its own: the shift by one.
const SHIFT: usize = 1;

/// Numbers that a network is built from, all of them given.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sizes {
    channels: usize,
    depth: usize,
    rows: usize,
    head: usize,
    global_features: bool,
}

impl HollowSpec {
    /// The least length of every axis of a torus on which a network is hollow whose sizes are all given, as those of a trained one are.
    pub(crate) fn least_side(&self) -> Option<usize> {
        Some(self.rows?.saturating_sub(1) * self.depth? + SHIFT + 1)
    }

    /// Fill in what was left open, and refuse what would not be hollow. A site sees so many planes beyond those of the stack.
    fn sizes(&self, lattice: &Lattice, beyond: usize) -> Result<Sizes> {
        let head = self.head.unwrap_or(2 * self.channels);
        for (key, value) in
            [("channels", self.channels), ("head", head), ("depth", self.depth.unwrap_or(1))]
        {
            if value == 0 {
                let advice = "leave it out for the usual value";
                return Err(Error::invalid(format!("network.{key}"), 0, "at least 1", advice));
            }
        }
        // A torus of side L has L - 1 other planes.
        let shortest = match lattice.boundary() {
            Boundary::Periodic => lattice.shape().iter().min().copied(),
            Boundary::Free => None,
        };
        let planes = match shortest.map(|side| side.checked_sub(1 + beyond)) {
            Some(Some(planes)) => planes,
            Some(None) => {
                let words = format!("it has a periodic side of less than {}", 1 + beyond);
                return Err(Error::not_applicable("a network on this lattice", words));
            }
            None => usize::MAX,
        };
        let rows = self.rows.unwrap_or(planes.min(2) + 1);
        if !(1..=3).contains(&rows) || rows - 1 > planes {
            return Err(Error::invalid(
                "network.rows",
                rows,
                format!("from 1 to {} on this lattice", planes.min(2) + 1),
                "leave it out for the largest",
            ));
        }
        let deepest = planes.checked_div(rows - 1).unwrap_or(usize::MAX);
        let depth = self.depth.unwrap_or(deepest.min(USUAL_DEPTH));
        if depth > deepest {
            let side = shortest.unwrap_or(0);
            return Err(Error::invalid(
                "network.depth",
                depth,
                format!(
                    "at most {deepest}: its reach of {} * depth + {beyond} planes must stay below the lattice's shortest side, {side}",
                    rows - 1
                ),
                format!("use network.depth = {deepest} or leave it out"),
            ));
        }
        Ok(Sizes {
            channels: self.channels,
            depth,
            rows,
            head,
            global_features: self.global_features,
        })
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Hollow {
    geometry: Geometry,
    stack: Stack,
    head: Head,
    /// Whether global features are those of the target's bonds or tables.
    bond_features: bool,
}

impl Hollow {
    /// The network for a lattice, with the bonds at every site if there are others than those to nearest neighbours, or with tables.
    pub(crate) fn new(
        spec: &HollowSpec,
        lattice: &Lattice,
        counted: Counted<'_>,
        inputs: usize,
        outputs: usize,
    ) -> Result<Self> {
        if lattice.shape().len() > 3 {
            return Err(Error::not_applicable(
                "the hollow convolution",
                format!("the lattice has {} dimensions, more than 3", lattice.shape().len()),
            ));
        }
        let counted = if spec.bond_features { counted } else { Counted::Bonds(&[]) };
        Ok(Self::build(&spec.sizes(lattice, SHIFT)?, lattice, counted, inputs, outputs))
    }

    /// The network that is shown the bonds of a lattice, which see `beyond` its planes, with an output for every direction.
    pub(super) fn of_bonds(
        spec: &HollowSpec,
        lattice: &Lattice,
        beyond: usize,
    ) -> Result<(Self, Arc<Bonds>)> {
        Ok(Self::build_of_bonds(&spec.sizes(lattice, beyond)?, lattice))
    }

    /// An ordinary convolution: without the shift by one plane, a site sees its own.
    #[cfg(test)]
    pub(super) fn without_shift(mut self) -> Self {
        for direction in &mut self.geometry.directions {
            direction.before = (0..self.geometry.sites as u32).collect();
        }
        self
    }

    /// Whether global features are of tables, which GPUs do not count.
    pub(super) fn counts_tables(&self) -> bool {
        match &self.stack.entering {
            Entering::Values { global_features: Some(features), .. } => !features.tables.is_empty(),
            _ => false,
        }
    }

    /// The same network, conditioned on so many numbers beside the time.
    pub(crate) fn conditioned_on(mut self, conditions: usize) -> Self {
        self.stack.time = self.stack.time.conditioned_on(conditions);
        self.head = self.head.conditioned_on(conditions);
        self
    }

    /// Its settings, all of them given.
    pub(crate) fn spec(&self) -> HollowSpec {
        HollowSpec {
            channels: self.stack.channels(),
            depth: Some(self.stack.depth()),
            rows: Some(self.geometry.behind + 1),
            head: Some(self.head.width()),
            global_features: self.stack.global_features() > 0,
            bond_features: self.bond_features,
        }
    }

    /// The network as it is, hollow or not.
    fn build(
        sizes: &Sizes,
        lattice: &Lattice,
        counted: Counted<'_>,
        inputs: usize,
        outputs: usize,
    ) -> Self {
        let geometry = Geometry::new(lattice, sizes.rows - 1);
        let features = sizes.global_features.then(|| GlobalFeatures::new(lattice, counted, inputs));
        let bond_features = features.is_some() && !matches!(counted, Counted::Bonds([]));
        let entering = Entering::Values { inputs, global_features: features };
        Hollow { bond_features, ..Self::assemble(sizes, geometry, entering, outputs) }
    }

    /// The network of bonds as it is, hollow or not.
    fn build_of_bonds(sizes: &Sizes, lattice: &Lattice) -> (Self, Arc<Bonds>) {
        let geometry = Geometry::new(lattice, sizes.rows - 1);
        let (bonds, outputs) = (Arc::new(Bonds::new(&geometry)), geometry.directions.len());
        let entering = Entering::Bonds(Arc::clone(&bonds));
        (Self::assemble(sizes, geometry, entering, outputs), bonds)
    }

    fn assemble(sizes: &Sizes, geometry: Geometry, entering: Entering, outputs: usize) -> Self {
        let stack = Stack::new(&geometry, entering, sizes);
        Hollow {
            bond_features: false,
            head: Head::new(stack.context_width(&geometry), sizes.head, outputs),
            stack,
            geometry,
        }
    }
}

impl Network for Hollow {
    fn tensors(&self) -> Vec<Tensor> {
        let mut all = self.stack.tensors(&self.geometry);
        all.extend(self.head.tensors());
        all
    }

    fn packed(&self) -> usize {
        self.stack.packed() + self.head.packed()
    }

    fn pack<S: Real>(&self, mut parameters: &[S], mut out: &mut [S]) {
        let out_stack = take_mut(&mut out, self.stack.packed());
        let stack = take(&mut parameters, total(&self.stack.tensors(&self.geometry)));
        self.stack.pack(stack, out_stack);
        self.head.pack(parameters, out);
    }

    fn unpack<S: Real>(&self, mut packed: &[S], mut out: &mut [S]) {
        let stack = take(&mut packed, self.stack.packed());
        let out_stack = take_mut(&mut out, total(&self.stack.tensors(&self.geometry)));
        self.stack.unpack(stack, out_stack);
        self.head.unpack(packed, out);
    }

    fn scratch(&self) -> usize {
        self.stack.scratch(&self.geometry) + self.head.scratch(self.geometry.sites)
    }

    fn forward_scratch(&self) -> usize {
        if !self.stack.can_forward(&self.geometry) {
            return self.scratch();
        }
        self.stack.forward_scratch(&self.geometry) + self.head.forward_scratch()
    }

    #[inline(always)]
    unsafe fn forward<V: Vector>(
        &self,
        packed: &[V::Scalar],
        group: &Group<'_, V>,
        scratch: &mut [V],
        out: &mut [V],
    ) {
        if !self.stack.can_forward(&self.geometry) {
            // SAFETY: the caller has the instructions of the vector.
            return unsafe { self.forward_train(packed, group, scratch, out) };
        }
        let (stack, head) = packed.split_at(self.stack.packed());
        let (planes, rest) = scratch.split_at_mut(self.stack.forward_scratch(&self.geometry));
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            let context = self.stack.forward(stack, &self.geometry, group, planes);
            self.head.forward(head, group, context, rest, out);
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
        let (stack, head) = packed.split_at(self.stack.packed());
        let (planes, rest) = scratch.split_at_mut(self.stack.scratch(&self.geometry));
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            self.stack.forward_train(stack, &self.geometry, group, planes);
            let (context, _) = self.stack.context(&self.geometry, planes);
            self.head.forward_train(head, group, context, rest, out);
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
        let (stack, head) = packed.split_at(self.stack.packed());
        let (g_stack, g_head) = grad.split_at_mut(self.stack.packed());
        let (planes, rest) = scratch.split_at_mut(self.stack.scratch(&self.geometry));
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            let (context, d_context) = self.stack.context(&self.geometry, planes);
            self.head.backward(head, group, context, rest, d_out, d_context, g_head);
            self.stack.backward(stack, &self.geometry, group, planes, g_stack);
        }
    }
}
