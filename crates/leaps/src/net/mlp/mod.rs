//! A hidden layer over all other sites, for any target of moderate size.
//!
//! $$h_k(i) = \sigma\Big((1 + a_k(t))\,\big(b_{ki} + \sum_{j \ne i} \sum_c W^k_{ijc}\, x_{jc}\big) + s_k(t)\Big), \qquad
//! o_\tau(i) = \sum_k \omega^k_\tau\, h_k(i)$$
//!
//! The paper's locally equivariant multilayer perceptron (section "Design of Locally Equivariant Networks") with a
//! bias, and with time as a scale and a shift of each hidden unit. The diagonal `j = i` is not stored: the sum leaves it out, so that no
//! rounding can let it in.

mod cuda;

use serde::{Deserialize, Serialize};

use super::dense::TimeEmbedding;
use super::layout::{Init, Tensor, layout, total};
use super::network::{Group, Network};
use crate::device::vector::Vector;

/// Settings of an MLP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MlpSpec {
    /// Hidden units per site, `k`.
    pub hidden: usize,
}

impl Default for MlpSpec {
    fn default() -> Self {
        MlpSpec { hidden: 16 }
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Mlp {
    hidden: usize,
    sites: usize,
    inputs: usize,
    outputs: usize,
    time: TimeEmbedding,
}

impl Mlp {
    pub(crate) fn new(spec: &MlpSpec, sites: usize, inputs: usize, outputs: usize) -> Self {
        let hidden = spec.hidden;
        Mlp { hidden, sites, inputs, outputs, time: TimeEmbedding::new(2 * hidden) }
    }

    /// The same network, conditioned on so many numbers beside the time.
    pub(crate) fn conditioned_on(mut self, conditions: usize) -> Self {
        self.time = self.time.conditioned_on(conditions);
        self
    }

    /// Inputs that a site reads: all but its own.
    fn fan(&self) -> usize {
        (self.sites - 1) * self.inputs
    }
}

layout! {
    /// The parameters.
    struct Parameters(mlp: &Mlp) {
        weight: mlp.hidden * mlp.sites * mlp.fan(),
        bias: mlp.hidden * mlp.sites,
        out: mlp.outputs * mlp.hidden,
        time: mlp.time.parameters(),
    }
}

layout! {
    /// Scratch space.
    struct Scratch(mlp: &Mlp) {
        embedding: mlp.time.scratch(),
        /// Scales, then shifts, and their gradients.
        time: mlp.time.outputs,
        d_time: mlp.time.outputs,
        /// Sums before the time's scale and shift.
        sums: mlp.hidden * mlp.sites,
    }
}

impl Network for Mlp {
    fn tensors(&self) -> Vec<Tensor> {
        let (k, d) = (self.hidden, self.sites);
        let weight = Init::Normal(1.0 / (self.fan().max(1) as f64).sqrt());
        let out = Init::Normal(0.1 / (k as f64).sqrt());
        let mut all = vec![
            Tensor::new("weight", &[k, d, self.fan()], weight),
            Tensor::new("bias", &[k, d], Init::Zero),
            Tensor::new("out", &[self.outputs, k], out),
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
        let (k, d, fan) = (self.hidden, self.sites, self.fan());
        let p = Parameters::cut(self, packed);
        let s = Scratch::cut_mut(self, scratch);
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            self.time.forward(p.time, group.features, s.embedding, s.time);
            let (scale, shift) = s.time.split_at(k);
            for out in out.iter_mut() {
                *out = V::zero();
            }
            for unit in 0..k {
                let slope = V::constant(1.0).add(scale[unit]);
                for i in 0..d {
                    let row = &p.weight[(unit * d + i) * fan..][..fan];
                    let (before, after) = row.split_at(i * self.inputs);
                    let mut sum = V::splat(p.bias[unit * d + i]);
                    for (&weight, &x) in before.iter().zip(group.x) {
                        sum = V::splat(weight).fma(x, sum);
                    }
                    for (&weight, &x) in after.iter().zip(&group.x[(i + 1) * self.inputs..]) {
                        sum = V::splat(weight).fma(x, sum);
                    }
                    s.sums[unit * d + i] = sum;
                    let h = sum.fma(slope, shift[unit]).silu();
                    for value in 0..self.outputs {
                        let o = &mut out[i * self.outputs + value];
                        *o = V::splat(p.out[value * k + unit]).fma(h, *o);
                    }
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
        let (k, d, fan) = (self.hidden, self.sites, self.fan());
        let (p, g) = (Parameters::cut(self, packed), Parameters::cut_mut(self, grad));
        let s = Scratch::cut_mut(self, scratch);
        let (scale, shift) = s.time.split_at(k);
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            for unit in 0..k {
                let slope = V::constant(1.0).add(scale[unit]);
                let (mut d_slope, mut d_shift) = (V::zero(), V::zero());
                for value in 0..self.outputs {
                    let mut sum = V::zero();
                    for i in 0..d {
                        let h = s.sums[unit * d + i].fma(slope, shift[unit]).silu();
                        sum = h.fma(d_out[i * self.outputs + value], sum);
                    }
                    g.out[value * k + unit] += sum.sum();
                }
                for i in 0..d {
                    let sum = s.sums[unit * d + i];
                    let mut d_h = V::zero();
                    for value in 0..self.outputs {
                        let weight = V::splat(p.out[value * k + unit]);
                        d_h = weight.fma(d_out[i * self.outputs + value], d_h);
                    }
                    let d_z = d_h.mul(sum.fma(slope, shift[unit]).silu_slope());
                    d_slope = d_z.fma(sum, d_slope);
                    d_shift = d_shift.add(d_z);
                    let d_sum = d_z.mul(slope);
                    g.bias[unit * d + i] += d_sum.sum();
                    let row = &mut g.weight[(unit * d + i) * fan..][..fan];
                    let (before, after) = row.split_at_mut(i * self.inputs);
                    for (g, &x) in before.iter_mut().zip(group.x) {
                        *g += d_sum.mul(x).sum();
                    }
                    for (g, &x) in after.iter_mut().zip(&group.x[(i + 1) * self.inputs..]) {
                        *g += d_sum.mul(x).sum();
                    }
                }
                s.d_time[unit] = d_slope;
                s.d_time[k + unit] = d_shift;
            }
            self.time.backward(p.time, group.features, s.embedding, s.d_time, g.time);
        }
        debug_assert_eq!(total(&self.tensors()), packed.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::testing;

    #[test]
    fn gradients_are_finite_differences_and_outputs_are_hollow() {
        for (sites, inputs, outputs, hidden) in
            [(5, 1, 1, 3), (4, 3, 3, 2), (3, 5, 5, 4), (1, 1, 1, 2)]
        {
            let mlp = Mlp::new(&MlpSpec { hidden }, sites, inputs, outputs);
            testing::check_network(&mlp, sites, inputs, outputs);
            testing::check_conditioned(&mlp.conditioned_on(2), sites, inputs, outputs, 2);
        }
    }
}
