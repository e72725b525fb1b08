//! A small function of time: two hidden layers of silu units.

use crate::device::vector::Vector;
use crate::net::dense;
use crate::net::layout::{Init, Tensor, layout};

layout! {
    /// Parameters.
    struct Parameters(time: &TimeMlp) {
        first: time.units,
        first_bias: time.units,
        second: time.units * time.units,
        second_bias: time.units,
        out: time.outputs * time.units,
        out_bias: time.outputs,
    }
}

layout! {
    /// Hidden units before and after their activation.
    struct Hidden(time: &TimeMlp) {
        first: time.units,
        first_active: time.units,
        second: time.units,
        second_active: time.units,
    }
}

layout! {
    /// Gradients of the hidden units.
    struct Slopes(time: &TimeMlp) {
        first: time.units,
        second: time.units,
    }
}

/// `t -> units -> units -> outputs`.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeMlp {
    pub(super) units: usize,
    pub(super) outputs: usize,
}

impl TimeMlp {
    pub(super) fn tensors(&self, prefix: &str, scale: f64) -> Vec<Tensor> {
        let (n, outputs) = (self.units, self.outputs);
        let width = (n as f64).sqrt();
        [
            Tensor::new("0.weight", &[n, 1], Init::Normal(1.0)),
            Tensor::new("0.bias", &[n], Init::Normal(0.5)),
            Tensor::new("1.weight", &[n, n], Init::Normal(1.4 / width)),
            Tensor::new("1.bias", &[n], Init::Zero),
            Tensor::new("2.weight", &[outputs, n], Init::Normal(scale / width)),
            Tensor::new("2.bias", &[outputs], Init::Zero),
        ]
        .map(|tensor| tensor.within(prefix))
        .into()
    }

    /// Parameters before those of the last layer.
    pub(super) fn hidden_parameters(&self) -> usize {
        let Parameters { first, first_bias, second, second_bias, .. } = Parameters::lengths(self);
        first + first_bias + second + second_bias
    }

    pub(super) fn parameters(&self) -> usize {
        Parameters::len(self)
    }

    /// Vectors of scratch.
    pub(super) fn scratch(&self) -> usize {
        Hidden::len(self)
    }

    /// Vectors that the backward pass needs beside them.
    pub(super) fn spare(&self) -> usize {
        Slopes::len(self)
    }

    /// Write the outputs.
    #[inline(always)]
    pub(super) unsafe fn forward<V: Vector>(
        &self,
        p: &[V::Scalar],
        t: V,
        scratch: &mut [V],
        out: &mut [V],
    ) {
        let (p, own) = (Parameters::cut(self, p), Hidden::cut_mut(self, scratch));
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            dense::forward(p.first, p.first_bias, &[t], own.first);
            for (active, unit) in own.first_active.iter_mut().zip(own.first.iter()) {
                *active = unit.silu();
            }
            dense::forward(p.second, p.second_bias, own.first_active, own.second);
            for (active, unit) in own.second_active.iter_mut().zip(own.second.iter()) {
                *active = unit.silu();
            }
            dense::forward(p.out, p.out_bias, own.second_active, &mut out[..self.outputs]);
        }
    }

    /// Add the gradient; `scratch` as the forward pass left it.
    #[inline(always)]
    pub(super) unsafe fn backward<V: Vector>(
        &self,
        p: &[V::Scalar],
        t: V,
        scratch: &[V],
        spare: &mut [V],
        d_out: &[V],
        grad: &mut [V::Scalar],
    ) {
        let (p, own) = (Parameters::cut(self, p), Hidden::cut(self, scratch));
        let (g, d) = (Parameters::cut_mut(self, grad), Slopes::cut_mut(self, spare));
        let d_out = &d_out[..self.outputs];
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            dense::backward(p.out, own.second_active, d_out, g.out, g.out_bias, d.second);
            for (d, unit) in d.second.iter_mut().zip(own.second) {
                *d = d.mul(unit.silu_slope());
            }
            let (weight, bias) = (g.second, g.second_bias);
            dense::backward(p.second, own.first_active, d.second, weight, bias, d.first);
            for (d, unit) in d.first.iter_mut().zip(own.first) {
                *d = d.mul(unit.silu_slope());
            }
            dense::backward(p.first, &[t], d.first, g.first, g.first_bias, &mut []);
        }
    }
}
