//! Attention over all other sites, for any target.
//!
//! Site s is described by $u_s = \sum_c x_{sc} e_c + p_s$, its value and its place. With keys $k_s = A u_s$, values
//! $v_s = B u_s$ and queries $q_i(t)$ that know the place and the time but not the value, each head gives
//!
//! $$a_i = \sum_{s \ne i} \frac{e^{k_s \cdot q_i/\sqrt D}}{\sum_{r \ne i} e^{k_r \cdot q_i/\sqrt D}}\, v_s ,$$
//!
//! and the outputs are a small network of the heads' $a_i$, side by side, with time as a scale and a shift. This is the paper's LEA
//! layer with a hidden layer in place of its linear read-out. The own site is left out of both sums, so no rounding lets its value in.

mod attention;
mod cuda;

use serde::{Deserialize, Serialize};

use super::dense::TimeEmbedding;
use super::layout::{Init, Tensor, layout};
use super::network::{Group, Network};
use crate::device::vector::Vector;
use attention::Attention;

/// Settings of a LEA network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LeaSpec {
    /// Attention heads.
    pub heads: usize,
    /// Numbers per key, query and value of a head, D.
    pub width: usize,
    /// Numbers that describe a site, and hidden units of the read-out.
    pub embedding: usize,
}

impl Default for LeaSpec {
    fn default() -> Self {
        LeaSpec { heads: 4, width: 8, embedding: 32 }
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Lea {
    sites: usize,
    inputs: usize,
    outputs: usize,
    embedding: usize,
    attention: Attention,
    time: TimeEmbedding,
}

layout! {
    /// The parameters.
    struct Parameters(lea: &Lea) {
        values: lea.inputs * lea.embedding,
        places: lea.sites * lea.embedding,
        key: lea.attention.size() * lea.embedding,
        value: lea.attention.size() * lea.embedding,
        query: lea.attention.size() * lea.embedding,
        hidden: lea.embedding * lea.attention.size(),
        hidden_bias: lea.embedding,
        out: lea.outputs * lea.embedding,
        out_bias: lea.outputs,
        time: lea.time.parameters(),
    }
}

layout! {
    /// Scratch space.
    struct Scratch(lea: &Lea) {
        time: lea.time.scratch(),
        /// Scales and shifts of queries, then of hidden units; and their gradients.
        scale: lea.time.outputs,
        d_scale: lea.time.outputs,
        /// `[site * embedding]`.
        u: lea.sites * lea.embedding,
        d_u: lea.sites * lea.embedding,
        /// `[site * size]`.
        key: lea.sites * lea.attention.size(),
        value: lea.sites * lea.attention.size(),
        query: lea.sites * lea.attention.size(),
        a: lea.sites * lea.attention.size(),
        d_key: lea.sites * lea.attention.size(),
        d_value: lea.sites * lea.attention.size(),
        d_query: lea.sites * lea.attention.size(),
        d_a: lea.sites * lea.attention.size(),
        /// Attention weights of one site and head.
        p: 2 * lea.sites,
        /// Hidden units of one site: before scale and shift, after the activation, gradient.
        hidden: 3 * lea.embedding,
    }
}

impl Lea {
    pub(crate) fn new(spec: &LeaSpec, sites: usize, inputs: usize, outputs: usize) -> Self {
        let attention = Attention { sites, heads: spec.heads, width: spec.width };
        let time = TimeEmbedding::new(2 * (attention.size() + spec.embedding));
        Lea { sites, inputs, outputs, embedding: spec.embedding, attention, time }
    }

    /// The same network, conditioned on so many numbers beside the time.
    pub(crate) fn conditioned_on(mut self, conditions: usize) -> Self {
        self.time = self.time.conditioned_on(conditions);
        self
    }
}

/// `out[o] = sum_i weight[o * inputs + i] input[i]`.
#[inline(always)]
unsafe fn multiply<V: Vector>(weight: &[V::Scalar], input: &[V], out: &mut [V]) {
    // SAFETY: the caller has the instructions of the vector.
    unsafe {
        for (row, out) in weight.chunks_exact(input.len()).zip(out) {
            let mut sum = V::zero();
            for (&weight, &input) in row.iter().zip(input) {
                sum = V::splat(weight).fma(input, sum);
            }
            *out = sum;
        }
    }
}

/// Add the gradient of [`multiply`] over all sites: of the weights, and of the inputs.
#[inline(always)]
unsafe fn multiply_back<V: Vector>(
    weight: &[V::Scalar],
    width: usize,
    input: &[V],
    d_out: &[V],
    d_weight: &mut [V::Scalar],
    d_input: &mut [V],
) {
    let outputs = weight.len() / width;
    // SAFETY: the caller has the instructions of the vector.
    unsafe {
        for o in 0..outputs {
            for i in 0..width {
                let mut sum = V::zero();
                for (d_out, input) in d_out.chunks_exact(outputs).zip(input.chunks_exact(width)) {
                    sum = d_out[o].fma(input[i], sum);
                }
                d_weight[o * width + i] += sum.sum();
            }
        }
        for (d_out, d_input) in d_out.chunks_exact(outputs).zip(d_input.chunks_exact_mut(width)) {
            for (&d_out, row) in d_out.iter().zip(weight.chunks_exact(width)) {
                for (d_input, &weight) in d_input.iter_mut().zip(row) {
                    *d_input = V::splat(weight).fma(d_out, *d_input);
                }
            }
        }
    }
}

impl Network for Lea {
    fn tensors(&self) -> Vec<Tensor> {
        let (n, e, a) = (self.sites, self.embedding, self.attention.size());
        let fan = |n: usize| Init::Normal(1.0 / (n as f64).sqrt());
        let mut all = vec![
            Tensor::new("values", &[self.inputs, e], Init::Normal(1.0)),
            Tensor::new("places", &[n, e], Init::Normal(1.0)),
            Tensor::new("key", &[a, e], fan(e)),
            Tensor::new("value", &[a, e], fan(e)),
            Tensor::new("query", &[a, e], fan(e)),
            Tensor::new("hidden.weight", &[e, a], fan(a)),
            Tensor::new("hidden.bias", &[e], Init::Zero),
            Tensor::new("out.weight", &[self.outputs, e], Init::Normal(0.1 / (e as f64).sqrt())),
            Tensor::new("out.bias", &[self.outputs], Init::Zero),
        ];
        all.extend(self.time.tensors("time", 0.3));
        all
    }

    fn scratch(&self) -> usize {
        Scratch::len(self)
    }

    #[inline(always)]
    unsafe fn forward_train<V: Vector>(
        &self,
        packed: &[V::Scalar],
        group: &Group<'_, V>,
        scratch: &mut [V],
        out: &mut [V],
    ) {
        let (n, e, a) = (self.sites, self.embedding, self.attention.size());
        let w = Parameters::cut(self, packed);
        let parts = Scratch::cut_mut(self, scratch);
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            self.time.forward(w.time, group.features, parts.time, parts.scale);
            for site in 0..n {
                let u = &mut parts.u[site * e..][..e];
                for (k, u) in u.iter_mut().enumerate() {
                    let mut sum = V::splat(w.places[site * e + k]);
                    for c in 0..self.inputs {
                        let x = group.x[site * self.inputs + c];
                        sum = V::splat(w.values[c * e + k]).fma(x, sum);
                    }
                    *u = sum;
                }
                multiply(w.key, u, &mut parts.key[site * a..][..a]);
                multiply(w.value, u, &mut parts.value[site * a..][..a]);
                for k in 0..a {
                    let mut sum = V::zero();
                    for (&weight, &place) in
                        w.query[k * e..][..e].iter().zip(&w.places[site * e..][..e])
                    {
                        sum = V::splat(weight).fma(V::splat(place), sum);
                    }
                    let slope = V::constant(1.0).add(parts.scale[k]);
                    parts.query[site * a + k] = sum.fma(slope, parts.scale[a + k]);
                }
            }
            self.attention.forward(parts.key, parts.value, parts.query, parts.p, parts.a);
            let (scale, shift) = parts.scale[2 * a..].split_at(e);
            for site in 0..n {
                let (before, after) = parts.hidden.split_at_mut(e);
                multiply(w.hidden, &parts.a[site * a..][..a], before);
                for k in 0..e {
                    let z = before[k].add(V::splat(w.hidden_bias[k]));
                    after[k] = z.fma(V::constant(1.0).add(scale[k]), shift[k]).silu();
                }
                let out = &mut out[site * self.outputs..][..self.outputs];
                multiply(w.out, &after[..e], out);
                for (out, &bias) in out.iter_mut().zip(w.out_bias) {
                    *out = out.add(V::splat(bias));
                }
            }
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
        let (n, e, a) = (self.sites, self.embedding, self.attention.size());
        let (w, g) = (Parameters::cut(self, packed), Parameters::cut_mut(self, grad));
        let parts = Scratch::cut_mut(self, scratch);
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            for d in parts.d_scale.iter_mut() {
                *d = V::zero();
            }
            for d in parts.d_u.iter_mut() {
                *d = V::zero();
            }
            for d in parts.d_a.iter_mut() {
                *d = V::zero();
            }
            // The read-out, site by site, its hidden units computed again.
            let (scale, shift) = parts.scale[2 * a..].split_at(e);
            let (d_query_scale, d_hidden_scale) = parts.d_scale.split_at_mut(2 * a);
            for site in 0..n {
                let (before, rest) = parts.hidden.split_at_mut(e);
                let (after, d_hidden) = rest.split_at_mut(e);
                let input = &parts.a[site * a..][..a];
                multiply(w.hidden, input, before);
                for k in 0..e {
                    before[k] = before[k].add(V::splat(w.hidden_bias[k]));
                    let z = before[k].fma(V::constant(1.0).add(scale[k]), shift[k]);
                    after[k] = z.silu();
                    d_hidden[k] = V::zero();
                }
                let d_out = &d_out[site * self.outputs..][..self.outputs];
                for (bias, d_out) in g.out_bias.iter_mut().zip(d_out) {
                    *bias += d_out.sum();
                }
                multiply_back(w.out, e, after, d_out, g.out, d_hidden);
                for k in 0..e {
                    let slope = V::constant(1.0).add(scale[k]);
                    let d_z = d_hidden[k].mul(before[k].fma(slope, shift[k]).silu_slope());
                    d_hidden_scale[k] = d_z.fma(before[k], d_hidden_scale[k]);
                    d_hidden_scale[e + k] = d_hidden_scale[e + k].add(d_z);
                    d_hidden[k] = d_z.mul(slope);
                    g.hidden_bias[k] += d_hidden[k].sum();
                }
                let d_a = &mut parts.d_a[site * a..][..a];
                multiply_back(w.hidden, a, input, d_hidden, g.hidden, d_a);
            }
            self.attention.backward(
                (parts.key, parts.value, parts.query),
                parts.p,
                parts.d_a,
                (parts.d_key, parts.d_value, parts.d_query),
            );
            multiply_back(w.key, e, parts.u, parts.d_key, g.key, parts.d_u);
            multiply_back(w.value, e, parts.u, parts.d_value, g.value, parts.d_u);
            for site in 0..n {
                let places = &w.places[site * e..][..e];
                for k in 0..a {
                    let row = &w.query[k * e..][..e];
                    let mut base = V::zero();
                    for (&weight, &place) in row.iter().zip(places) {
                        base = V::splat(weight).fma(V::splat(place), base);
                    }
                    let d = parts.d_query[site * a + k];
                    d_query_scale[k] = d.fma(base, d_query_scale[k]);
                    d_query_scale[a + k] = d_query_scale[a + k].add(d);
                    let d = d.mul(V::constant(1.0).add(parts.scale[k]));
                    for i in 0..e {
                        g.query[k * e + i] += d.mul(V::splat(places[i])).sum();
                        g.places[site * e + i] += d.mul(V::splat(row[i])).sum();
                    }
                }
                for k in 0..e {
                    let d = parts.d_u[site * e + k];
                    g.places[site * e + k] += d.sum();
                    for c in 0..self.inputs {
                        g.values[c * e + k] += d.mul(group.x[site * self.inputs + c]).sum();
                    }
                }
            }
            self.time.backward(w.time, group.features, parts.time, parts.d_scale, g.time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::testing;

    #[test]
    fn gradients_are_finite_differences_and_outputs_are_hollow() {
        for (sites, inputs, outputs, heads) in
            [(5, 1, 1, 2), (4, 3, 3, 1), (6, 5, 5, 3), (3, 1, 1, 1)]
        {
            let spec = LeaSpec { heads, width: 3, embedding: 4 };
            let lea = Lea::new(&spec, sites, inputs, outputs);
            testing::check_network(&lea, sites, inputs, outputs);
            testing::check_conditioned(&lea.conditioned_on(1), sites, inputs, outputs, 1);
        }
    }
}
