//! CPU forward and backward passes of the messages along all orders.
//!
//! Orders advance in step: what they pass on is then one product with `U` for all of them.

use super::{Group, HollowGraph, Vector};
use crate::net::layout::layout;
use crate::net::product::add_sums;

layout! {
    /// Packed parameters of the messages.
    struct Parameters(graph: &HollowGraph) {
        value: graph.inputs * graph.channels,
        bias: graph.sites * graph.channels,
        bond: graph.bonds * graph.channels,
        pass_on: graph.pass_on.len(),
        time: graph.time.parameters(),
    }
}

layout! {
    /// Scratch space. Messages are `[step][order][channel]`.
    pub(super) struct Messages(graph: &HollowGraph) {
        /// What was collected, `a`.
        collected: graph.sites * graph.width(),
        /// The sites' own, `h`, and what they pass on, `g`, with its gradient.
        own: graph.sites * graph.width(),
        passed: graph.sites * graph.width(),
        d_passed: graph.sites * graph.width(),
        /// The gradient of `h` at one step, of `a` at one step of one order.
        d_own: graph.width(),
        d_collected: graph.channels,
        /// What was collected, after the activation, and its gradient: `[site][order][channel]`.
        context: graph.sites * graph.width(),
        d_context: graph.sites * graph.width(),
        /// Scale and shift, their gradient, saved activations of the embedding.
        time: graph.time.outputs,
        d_time: graph.time.outputs,
        embedding: graph.time.scratch(),
        /// Gradients of `E` and `U`, lane by lane.
        d_value: graph.inputs * graph.channels,
        d_pass: graph.pass_on.len(),
    }
}

/// Channels that are summed together: their sums stay in registers.
const BLOCK: usize = 8;

impl HollowGraph {
    /// Let every site collect its messages and pass on its own.
    #[inline(always)]
    pub(super) unsafe fn collect<V: Vector>(
        &self,
        packed: &[V::Scalar],
        group: &Group<'_, V>,
        scratch: &mut [V],
    ) {
        let (c, width, inputs) = (self.channels, self.width(), self.inputs);
        let p = Parameters::cut(self, packed);
        let s = Messages::cut_mut(self, scratch);
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            self.time.forward(p.time, group.features, s.embedding, s.time);
            let (scale, shift) = s.time.split_at(c);
            for step in 0..self.sites {
                let (before, now) = s.passed.split_at_mut(step * width);
                for (k, order) in self.orders.iter().enumerate() {
                    let (site, at) = (order.sites[step] as usize, step * width + k * c);
                    let collected = &mut s.collected[at..][..c];
                    let (bias, messages) = (&p.bias[site * c..][..c], order.messages(step));
                    let mut first = 0;
                    while first + BLOCK <= c {
                        let mut sums = [V::zero(); BLOCK];
                        for i in 0..BLOCK {
                            sums[i] = V::splat(bias[first + i]);
                        }
                        for message in messages {
                            let bond = &p.bond[message.bond as usize * c + first..][..BLOCK];
                            let from = message.from as usize * width + k * c + first;
                            let from = &before[from..][..BLOCK];
                            for i in 0..BLOCK {
                                sums[i] = V::splat(bond[i]).fma(from[i], sums[i]);
                            }
                        }
                        collected[first..first + BLOCK].copy_from_slice(&sums);
                        first += BLOCK;
                    }
                    for i in first..c {
                        let mut sum = V::splat(bias[i]);
                        for message in messages {
                            let bond = V::splat(p.bond[message.bond as usize * c + i]);
                            let from = before[message.from as usize * width + k * c + i];
                            sum = bond.fma(from, sum);
                        }
                        collected[i] = sum;
                    }
                    let x = &group.x[site * inputs..][..inputs];
                    let context = &mut s.context[site * width + k * c..][..c];
                    for i in 0..c {
                        context[i] = collected[i].silu();
                        let slope = V::constant(1.0).add(scale[i]);
                        let z = with_value(p.value, i, c, x, collected[i]);
                        s.own[at + i] = z.fma(slope, shift[i]).silu();
                    }
                }
                let own = &s.own[step * width..][..width];
                self.pass_on.forward(p.pass_on, &[], own, &mut now[..width]);
            }
        }
    }

    /// Add the gradient of the parameters, given that of the contexts of sites.
    #[inline(always)]
    pub(super) unsafe fn collect_back<V: Vector>(
        &self,
        packed: &[V::Scalar],
        group: &Group<'_, V>,
        scratch: &mut [V],
        grad: &mut [V::Scalar],
    ) {
        let (c, width, inputs) = (self.channels, self.width(), self.inputs);
        let (p, g) = (Parameters::cut(self, packed), Parameters::cut_mut(self, grad));
        let s = Messages::cut_mut(self, scratch);
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            let (scale, shift) = s.time.split_at(c);
            s.d_time.fill(V::zero());
            let (d_scale, d_shift) = s.d_time.split_at_mut(c);
            s.d_passed.fill(V::zero());
            s.d_value.fill(V::zero());
            for step in (0..self.sites).rev() {
                let (before, now) = s.d_passed.split_at_mut(step * width);
                self.pass_on.transposed(p.pass_on, &now[..width], s.d_own);
                for (k, order) in self.orders.iter().enumerate() {
                    let (site, at) = (order.sites[step] as usize, step * width + k * c);
                    let x = &group.x[site * inputs..][..inputs];
                    let d_context = &s.d_context[site * width + k * c..][..c];
                    for i in 0..c {
                        let collected = s.collected[at + i];
                        let slope = V::constant(1.0).add(scale[i]);
                        let z = with_value(p.value, i, c, x, collected);
                        let d_active = s.d_own[k * c + i].mul(z.fma(slope, shift[i]).silu_slope());
                        d_scale[i] = d_active.fma(z, d_scale[i]);
                        d_shift[i] = d_shift[i].add(d_active);
                        let d_z = d_active.mul(slope);
                        for (value, &x) in x.iter().enumerate() {
                            let d = &mut s.d_value[value * c + i];
                            *d = d_z.fma(x, *d);
                        }
                        let d = d_context[i].fma(collected.silu_slope(), d_z);
                        s.d_collected[i] = d;
                        g.bias[site * c + i] += d.sum();
                    }
                    for message in order.messages(step) {
                        let bond = message.bond as usize * c;
                        let from = message.from as usize * width + k * c;
                        for i in 0..c {
                            let d = s.d_collected[i];
                            g.bond[bond + i] += d.mul(s.passed[from + i]).sum();
                            let d_from = &mut before[from + i];
                            *d_from = V::splat(p.bond[bond + i]).fma(d, *d_from);
                        }
                    }
                }
            }
            add_sums(s.d_value, g.value);
            self.pass_on.gradient(s.own, s.d_passed, true, s.d_pass);
            add_sums(s.d_pass, g.pass_on);
            self.time.backward(p.time, group.features, s.embedding, s.d_time, g.time);
        }
    }
}

/// Channel `i` of `collected + E x`.
#[inline(always)]
unsafe fn with_value<V: Vector>(
    value: &[V::Scalar],
    i: usize,
    channels: usize,
    x: &[V],
    collected: V,
) -> V {
    let mut z = collected;
    for (t, &x) in x.iter().enumerate() {
        // SAFETY: the caller has the instructions of the vector.
        z = unsafe { V::splat(value[t * channels + i]).fma(x, z) };
    }
    z
}
