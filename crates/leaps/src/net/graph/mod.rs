//! Hollow networks on any graph: messages that only ever travel forward in an order of the sites.
//!
//! Put the sites in an order. Site $i$ collects messages from its neighbours $j \prec i$, adds its own value, and passes the result on:
//!
//! $$a_i = \beta_i + \sum_{j \sim i,\; j \prec i} w_{ij} \odot g_j,\qquad
//! h_i = \sigma\big((1 + \alpha(t)) \odot (a_i + E x_i) + \gamma(t)\big),\qquad g_i = U h_i .$$
//!
//! What a site has collected, $a_i$, knows the values of sites before it and not its own, whatever the loops of the graph. The same order
//! backwards brings the sites after it, and further orders bring sites that no rising path reaches. The $a_i$ of all orders are then
//! mixed as in the hollow convolution ([`head`](super::head)).
//!
//! $E$, $U$, $\alpha$ and $\gamma$ are shared by all sites and orders; $w_{ij}$ belongs to a pair of neighbours and $\beta_i$ to a site,
//! since the sites of a glass differ. Orders are breadth-first from different sites, so that paths rise for long. Without a list of bonds
//! every two sites are neighbours.

mod cuda;
mod orders;
mod passes;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::dense::TimeEmbedding;
use super::head::Head;
use super::layout::{Init, Tensor, take, take_mut};
use super::network::{Group, Network};
use super::product::Matrix;
use crate::device::vector::{Real, Vector};
use crate::target::Target;
use crate::{Error, Result};
use orders::{Graph, Order};
use passes::Messages;

/// Settings of a hollow network on a graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HollowGraphSpec {
    /// Channels of the messages.
    pub channels: usize,
    /// Orders of the sites, each followed forwards and backwards.
    pub orders: usize,
    /// Channels of the layers that mix what was collected; without a number twice `channels`.
    pub head: Option<usize>,
}

impl Default for HollowGraphSpec {
    fn default() -> Self {
        HollowGraphSpec { channels: 16, orders: 2, head: None }
    }
}

impl HollowGraphSpec {
    fn head_width(&self) -> usize {
        self.head.unwrap_or(2 * self.channels)
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct HollowGraph {
    sites: usize,
    inputs: usize,
    channels: usize,
    /// Directed bonds.
    bonds: usize,
    orders: Vec<Order>,
    pass_on: Matrix,
    time: TimeEmbedding,
    head: Head,
}

impl HollowGraph {
    /// The network for a target.
    pub(crate) fn new(
        spec: &HollowGraphSpec,
        target: &dyn Target,
        inputs: usize,
        outputs: usize,
    ) -> Result<Self> {
        let head = spec.head_width();
        for (key, value) in [("channels", spec.channels), ("orders", spec.orders), ("head", head)] {
            if value == 0 {
                let advice = "leave it out for the usual value";
                return Err(Error::invalid(format!("network.{key}"), 0, "at least 1", advice));
            }
        }
        Ok(Self::build(spec, &Graph::new(target), inputs, outputs))
    }

    fn build(spec: &HollowGraphSpec, graph: &Graph, inputs: usize, outputs: usize) -> Self {
        let (channels, orders) = (spec.channels, graph.orders(spec.orders));
        HollowGraph {
            sites: graph.sites(),
            inputs,
            channels,
            bonds: graph.bonds(),
            pass_on: Matrix { inputs: channels, outputs: channels },
            time: TimeEmbedding::new(2 * channels),
            head: Head::new(orders.len() * channels, spec.head_width(), outputs),
            orders,
        }
    }

    /// The same network, conditioned on so many numbers beside the time.
    pub(crate) fn conditioned_on(mut self, conditions: usize) -> Self {
        self.time = self.time.conditioned_on(conditions);
        self.head = self.head.conditioned_on(conditions);
        self
    }

    /// Vectors of all orders at one step.
    fn width(&self) -> usize {
        self.orders.len() * self.channels
    }
}

impl Network for HollowGraph {
    fn tensors(&self) -> Vec<Tensor> {
        let c = self.channels;
        let degree = (self.bonds as f64 / self.sites as f64).max(1.0);
        let mut all = vec![
            Tensor::new("value", &[self.inputs, c], Init::Normal(1.0)),
            Tensor::new("bias", &[self.sites, c], Init::Normal(0.1)),
            Tensor::new("bond", &[self.bonds, c], Init::Normal(1.0 / degree.sqrt())),
            Tensor::new("pass", &[c, c], Init::Normal(1.0 / (c as f64).sqrt())),
        ];
        all.extend(self.time.tensors("time", 0.3));
        all.extend(self.head.tensors());
        all
    }

    fn pack<S: Real>(&self, mut parameters: &[S], mut out: &mut [S]) {
        let own = parameters.len() - self.head.packed();
        take_mut(&mut out, own).copy_from_slice(take(&mut parameters, own));
        self.head.pack(parameters, out);
    }

    fn unpack<S: Real>(&self, mut packed: &[S], mut out: &mut [S]) {
        let own = packed.len() - self.head.packed();
        for (out, &value) in take_mut(&mut out, own).iter_mut().zip(take(&mut packed, own)) {
            *out += value;
        }
        self.head.unpack(packed, out);
    }

    fn scratch(&self) -> usize {
        Messages::len(self) + self.head.scratch(self.sites)
    }

    #[inline(always)]
    unsafe fn forward_train<V: Vector>(
        &self,
        packed: &[V::Scalar],
        group: &Group<'_, V>,
        scratch: &mut [V],
        out: &mut [V],
    ) {
        let (own, head) = packed.split_at(packed.len() - self.head.packed());
        let (messages, rest) = scratch.split_at_mut(Messages::len(self));
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            self.collect(own, group, messages);
            let context = Messages::cut_mut(self, messages).context;
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
        let (own, head) = packed.split_at(packed.len() - self.head.packed());
        let (g_own, g_head) = grad.split_at_mut(own.len());
        let (messages, rest) = scratch.split_at_mut(Messages::len(self));
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            let Messages { context, d_context, .. } = Messages::cut_mut(self, messages);
            self.head.backward(head, group, context, rest, d_out, d_context, g_head);
            self.collect_back(own, group, messages, g_own);
        }
    }
}
