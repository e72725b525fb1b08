//! Small dense layers and time embeddings.

use super::layout::{Init, Tensor, layout};
use super::time_features::{FEATURES, features_with};
use crate::device::vector::Vector;

/// `out[o] = bias[o] + sum_i weight[o * inputs + i] input[i]`.
#[inline(always)]
pub(crate) unsafe fn forward<V: Vector>(
    weight: &[V::Scalar],
    bias: &[V::Scalar],
    input: &[V],
    out: &mut [V],
) {
    // SAFETY: the caller has the instructions of the vector.
    unsafe {
        for (o, (out, &bias)) in out.iter_mut().zip(bias).enumerate() {
            let row = &weight[o * input.len()..][..input.len()];
            let mut sum = V::splat(bias);
            for (&weight, &input) in row.iter().zip(input) {
                sum = V::splat(weight).fma(input, sum);
            }
            *out = sum;
        }
    }
}

/// Add the gradients of [`forward`] to `d_weight` and `d_bias`, and write that of the input.
#[inline(always)]
pub(crate) unsafe fn backward<V: Vector>(
    weight: &[V::Scalar],
    input: &[V],
    d_out: &[V],
    d_weight: &mut [V::Scalar],
    d_bias: &mut [V::Scalar],
    d_input: &mut [V],
) {
    // SAFETY: the caller has the instructions of the vector.
    unsafe {
        for d in d_input.iter_mut() {
            *d = V::zero();
        }
        for (o, &d_out) in d_out.iter().enumerate() {
            d_bias[o] += d_out.sum();
            let range = o * input.len()..(o + 1) * input.len();
            let (row, d_row) = (&weight[range.clone()], &mut d_weight[range]);
            for (i, &input) in input.iter().enumerate() {
                d_row[i] += d_out.mul(input).sum();
                if let Some(d) = d_input.get_mut(i) {
                    *d = V::splat(row[i]).fma(d_out, *d);
                }
            }
        }
    }
}

/// Hidden units of a [`TimeEmbedding`].
pub(crate) const TIME_UNITS: usize = 32;

/// A small function of time, and of what a network is conditioned on beside it: features, a hidden layer of 32 silu units, `outputs` numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TimeEmbedding {
    pub(crate) outputs: usize,
    /// Of the time and of what else it is a function of.
    pub(crate) features: usize,
}

layout! {
    struct Parameters(time: &TimeEmbedding) {
        hidden: TIME_UNITS * time.features,
        hidden_bias: TIME_UNITS,
        out: time.outputs * TIME_UNITS,
        out_bias: time.outputs,
    }
}

layout! {
    struct Scratch(_time: &TimeEmbedding) {
        /// The hidden layer before and after its activation, and its gradient.
        before: TIME_UNITS,
        after: TIME_UNITS,
        d_hidden: TIME_UNITS,
    }
}

impl TimeEmbedding {
    /// A function of time alone.
    pub(crate) const fn new(outputs: usize) -> Self {
        TimeEmbedding { outputs, features: FEATURES }
    }

    /// The same as a function of so many more numbers.
    pub(crate) const fn conditioned_on(self, conditions: usize) -> Self {
        TimeEmbedding { features: features_with(conditions), ..self }
    }

    pub(crate) fn tensors(&self, prefix: &str, scale: f64) -> Vec<Tensor> {
        let hidden = Init::Normal(1.0 / (self.features as f64).sqrt());
        let out = Init::Normal(scale / (TIME_UNITS as f64).sqrt());
        vec![
            Tensor::new("hidden.weight", &[TIME_UNITS, self.features], hidden).within(prefix),
            Tensor::new("hidden.bias", &[TIME_UNITS], Init::Zero).within(prefix),
            Tensor::new("out.weight", &[self.outputs, TIME_UNITS], out).within(prefix),
            Tensor::new("out.bias", &[self.outputs], Init::Zero).within(prefix),
        ]
    }

    /// Number of parameters.
    #[inline(always)]
    pub(crate) fn parameters(&self) -> usize {
        Parameters::len(self)
    }

    /// Vectors of scratch space.
    #[inline(always)]
    pub(crate) fn scratch(&self) -> usize {
        Scratch::len(self)
    }

    /// Write the outputs.
    #[inline(always)]
    pub(crate) unsafe fn forward<V: Vector>(
        &self,
        p: &[V::Scalar],
        features: &[V],
        scratch: &mut [V],
        out: &mut [V],
    ) {
        let (p, s) = (Parameters::cut(self, p), Scratch::cut_mut(self, scratch));
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            forward(p.hidden, p.hidden_bias, features, s.before);
            for (after, before) in s.after.iter_mut().zip(s.before.iter()) {
                *after = before.silu();
            }
            forward(p.out, p.out_bias, s.after, &mut out[..self.outputs]);
        }
    }

    /// Add the gradient; `scratch` as the forward pass left it.
    #[inline(always)]
    pub(crate) unsafe fn backward<V: Vector>(
        &self,
        p: &[V::Scalar],
        features: &[V],
        scratch: &mut [V],
        d_out: &[V],
        grad: &mut [V::Scalar],
    ) {
        let (p, g) = (Parameters::cut(self, p), Parameters::cut_mut(self, grad));
        let s = Scratch::cut_mut(self, scratch);
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            backward(p.out, s.after, &d_out[..self.outputs], g.out, g.out_bias, s.d_hidden);
            for (d, before) in s.d_hidden.iter_mut().zip(s.before.iter()) {
                *d = d.mul(before.silu_slope());
            }
            backward(p.hidden, features, s.d_hidden, g.hidden, g.hidden_bias, &mut []);
        }
    }
}
