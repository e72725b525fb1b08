//! A small function of time: two hidden layers of silu units.

use crate::device::vector::Vector;
use crate::net::dense;
use crate::net::layout::{Init, Tensor, take, take_mut};

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
        self.units * (self.units + 3)
    }

    pub(super) fn parameters(&self) -> usize {
        self.hidden_parameters() + self.outputs * (self.units + 1)
    }

    /// Vectors of scratch: both hidden layers before and after their activation.
    pub(super) fn scratch(&self) -> usize {
        4 * self.units
    }

    /// Write the outputs.
    #[inline(always)]
    pub(super) unsafe fn forward<V: Vector>(
        &self,
        mut p: &[V::Scalar],
        t: V,
        mut scratch: &mut [V],
        out: &mut [V],
    ) {
        let n = self.units;
        let mut input: &[V] = &[t];
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            for _ in 0..2 {
                let weight = take(&mut p, n * input.len());
                let bias = take(&mut p, n);
                let before = take_mut(&mut scratch, n);
                let after = take_mut(&mut scratch, n);
                dense::forward(weight, bias, input, before);
                for (after, before) in after.iter_mut().zip(before.iter()) {
                    *after = before.silu();
                }
                input = after;
            }
            let weight = take(&mut p, self.outputs * n);
            dense::forward(weight, p, input, &mut out[..self.outputs]);
        }
    }

    /// Add the gradient; `scratch` as the forward pass left it, `spare` of two hidden layers.
    #[inline(always)]
    pub(super) unsafe fn backward<V: Vector>(
        &self,
        mut p: &[V::Scalar],
        t: V,
        scratch: &[V],
        spare: &mut [V],
        d_out: &[V],
        mut grad: &mut [V::Scalar],
    ) {
        let n = self.units;
        let (before1, rest) = scratch.split_at(n);
        let (after1, rest) = rest.split_at(n);
        let (before2, after2) = rest.split_at(n);
        let (d1, d2) = spare.split_at_mut(n);
        let d2 = &mut d2[..n];
        let (g1, gb1) = (take_mut(&mut grad, n), take_mut(&mut grad, n));
        let (g2, gb2) = (take_mut(&mut grad, n * n), take_mut(&mut grad, n));
        let (g3, gb3) = grad.split_at_mut(self.outputs * n);
        let w1 = take(&mut p, n);
        take(&mut p, n);
        let w2 = take(&mut p, n * n);
        take(&mut p, n);
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            dense::backward(p, &after2[..n], &d_out[..self.outputs], g3, gb3, d2);
            for (d, before) in d2.iter_mut().zip(before2) {
                *d = d.mul(before.silu_slope());
            }
            dense::backward(w2, after1, d2, g2, gb2, d1);
            for (d, before) in d1.iter_mut().zip(before1) {
                *d = d.mul(before.silu_slope());
            }
            dense::backward(w1, &[t], d1, g1, gb1, &mut []);
        }
    }
}
