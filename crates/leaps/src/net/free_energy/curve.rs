//! `F(t)` by a multilayer perceptron, and `dF/dt` with it.
//!
//! Beside every unit `a = silu(z)` runs its derivative with respect to time, `a' = silu'(z) z'`. The backward pass of
//! `dF/dt` carries the gradients of both: `dz = da silu'(z) + da' silu''(z) z'` and `dz' = da' silu'(z)`.

use crate::device::vector::Vector;
use crate::net::dense;
use crate::net::layout::{Init, Tensor, layout, take, take_mut};

layout! {
    /// Scratch space: the hidden layers, and gradients of the units of two of them and of their derivatives.
    struct Space(curve: &Curve) {
        saved: curve.hidden.iter().map(|&n| Units::len(n)).sum(),
        d_a: curve.widest(),
        d_slope: curve.widest(),
        lower_a: curve.widest(),
        lower_slope: curve.widest(),
    }
}

layout! {
    /// The units of a layer before and after their activation, with their derivatives.
    struct Units(n: usize) {
        z: n,
        z_slope: n,
        a: n,
        a_slope: n,
    }
}

/// `t -> hidden units -> F`.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    hidden: Vec<usize>,
}

impl Curve {
    pub(super) fn new(hidden: &[usize]) -> Self {
        Curve { hidden: hidden.to_vec() }
    }

    pub(super) fn tensors(&self) -> Vec<Tensor> {
        let mut all = Vec::new();
        let mut inputs = 1;
        for (l, &n) in self.hidden.iter().chain(&[1]).enumerate() {
            let last = l == self.hidden.len();
            let scale = Init::Normal(if l == 0 { 1.0 } else { 1.4 / (inputs as f64).sqrt() });
            // Biases spread the units over the times.
            let bias = if l == 0 { Init::Normal(0.5) } else { Init::Zero };
            let name = format!("free_energy.{l}");
            all.push(Tensor::new("weight", &[n, inputs], scale).within(&name));
            // A constant of F would never be seen: only its derivative is.
            if !last {
                all.push(Tensor::new("bias", &[n], bias).within(&name));
            }
            inputs = n;
        }
        all
    }

    fn widest(&self) -> usize {
        self.hidden.iter().copied().max().unwrap_or(1)
    }

    /// Vectors of scratch.
    pub(super) fn scratch(&self) -> usize {
        Space::len(self)
    }

    /// `F` up to a constant, and `dF/dt`.
    #[inline(always)]
    pub(super) unsafe fn forward<V: Vector>(
        &self,
        mut p: &[V::Scalar],
        t: V,
        scratch: &mut [V],
    ) -> (V, V) {
        let Space { mut saved, .. } = Space::cut_mut(self, scratch);
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            let one = [V::constant(1.0)];
            let (mut a, mut slope): (&[V], &[V]) = (&[t], &one);
            for &n in &self.hidden {
                let (weight, bias) = (take(&mut p, n * a.len()), take(&mut p, n));
                let own = Units::cut_mut(n, take_mut(&mut saved, Units::len(n)));
                dense::forward(weight, bias, a, own.z);
                product(weight, slope, own.z_slope);
                for i in 0..n {
                    own.a[i] = own.z[i].silu();
                    own.a_slope[i] = own.z_slope[i].mul(own.z[i].silu_slope());
                }
                (a, slope) = (own.a, own.a_slope);
            }
            let mut out = [V::zero(); 2];
            product(p, a, &mut out[..1]);
            product(p, slope, &mut out[1..]);
            (out[0], out[1])
        }
    }

    /// Add the gradient of `d dF/dt`; `scratch` as the forward pass left it.
    #[inline(always)]
    pub(super) unsafe fn backward<V: Vector>(
        &self,
        p: &[V::Scalar],
        t: V,
        scratch: &mut [V],
        d: V,
        grad: &mut [V::Scalar],
    ) {
        let Space { saved, mut d_a, mut d_slope, mut lower_a, mut lower_slope } =
            Space::cut_mut(self, scratch);
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            let one = [V::constant(1.0)];
            let (mut end, mut saved_end) = (p.len(), saved.len());
            let top = self.hidden[self.hidden.len() - 1];
            let slope = Units::cut(top, &saved[saved_end - Units::len(top)..]).a_slope;
            for i in 0..top {
                d_a[i] = V::zero();
                d_slope[i] = V::splat(p[end - top + i]).mul(d);
                grad[end - top + i] += slope[i].mul(d).sum();
            }
            end -= top;
            for (l, &n) in self.hidden.iter().enumerate().rev() {
                let inputs = if l == 0 { 1 } else { self.hidden[l - 1] };
                saved_end -= Units::len(n);
                let Units { z, z_slope, .. } = Units::cut(n, &saved[saved_end..]);
                for i in 0..n {
                    let second = silu_curvature(z[i]).mul(z_slope[i]);
                    let first = z[i].silu_slope();
                    d_a[i] = d_slope[i].fma(second, d_a[i].mul(first));
                    d_slope[i] = d_slope[i].mul(first);
                }
                let (input, input_slope): (&[V], &[V]) = if l == 0 {
                    (&[t], &one)
                } else {
                    let below = &saved[saved_end - Units::len(inputs)..];
                    let Units { a, a_slope, .. } = Units::cut(inputs, below);
                    (a, a_slope)
                };
                let start = end - n * (inputs + 1);
                let weight = &p[start..][..n * inputs];
                let (g_weight, g_bias) = grad[start..end].split_at_mut(n * inputs);
                end = start;
                for (d_lower, d_lower_slope) in
                    lower_a[..inputs].iter_mut().zip(&mut lower_slope[..inputs])
                {
                    (*d_lower, *d_lower_slope) = (V::zero(), V::zero());
                }
                for o in 0..n {
                    g_bias[o] += d_a[o].sum();
                    let row = &weight[o * inputs..][..inputs];
                    let g_row = &mut g_weight[o * inputs..][..inputs];
                    for i in 0..inputs {
                        let g = d_a[o].mul(input[i]);
                        g_row[i] += d_slope[o].fma(input_slope[i], g).sum();
                        lower_a[i] = V::splat(row[i]).fma(d_a[o], lower_a[i]);
                        lower_slope[i] = V::splat(row[i]).fma(d_slope[o], lower_slope[i]);
                    }
                }
                std::mem::swap(&mut d_a, &mut lower_a);
                std::mem::swap(&mut d_slope, &mut lower_slope);
            }
        }
    }
}

/// `out = weight input`.
#[inline(always)]
unsafe fn product<V: Vector>(weight: &[V::Scalar], input: &[V], out: &mut [V]) {
    // SAFETY: the caller has the instructions of the vector.
    unsafe {
        for (out, row) in out.iter_mut().zip(weight.chunks_exact(input.len())) {
            let mut sum = V::zero();
            for (&weight, &input) in row.iter().zip(input) {
                sum = V::splat(weight).fma(input, sum);
            }
            *out = sum;
        }
    }
}

/// The second derivative of silu: `s (1 - s) (2 + z (1 - 2 s))`.
#[inline(always)]
unsafe fn silu_curvature<V: Vector>(z: V) -> V {
    // SAFETY: the caller has the instructions of the vector.
    unsafe {
        let (s, one) = (z.sigmoid(), V::constant(1.0));
        let bracket = z.fma(one.sub(s).sub(s), V::constant(2.0));
        s.mul(one.sub(s)).mul(bracket)
    }
}
