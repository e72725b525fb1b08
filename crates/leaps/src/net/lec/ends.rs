//! Activations that a layer reads, and outputs read off the last one; each beside its gradient.

use crate::device::vector::Vector;

/// `sum_c weight[c] u[c]`.
#[inline(always)]
unsafe fn dot<V: Vector>(weight: &[V::Scalar], u: &[V]) -> V {
    // SAFETY: the caller has the instructions of the vector.
    unsafe {
        let mut sum = V::zero();
        for (&weight, &u) in weight.iter().zip(u) {
            sum = V::splat(weight).fma(u, sum);
        }
        sum
    }
}

/// `h = silu(scale u)`.
#[inline(always)]
pub(super) unsafe fn activate<V: Vector>(u: &[V], scale: V, h: &mut [V]) {
    // SAFETY: the caller has the instructions of the vector.
    unsafe {
        for (h, u) in h.iter_mut().zip(u) {
            *h = u.mul(scale).silu();
        }
    }
}

/// Write the gradient of `u`, and give back that of `scale`.
#[inline(always)]
pub(super) unsafe fn activate_backward<V: Vector>(u: &[V], scale: V, d_h: &[V], d: &mut [V]) -> V {
    // SAFETY: the caller has the instructions of the vector.
    unsafe {
        let mut d_scale = V::zero();
        for ((d, &d_h), &u) in d.iter_mut().zip(d_h).zip(u) {
            let slope = d_h.mul(u.mul(scale).silu_slope());
            d_scale = slope.fma(u, d_scale);
            *d = slope.mul(scale);
        }
        d_scale
    }
}

/// Write `out[site * outputs + s]`, weighted sums of a site's channels.
#[inline(always)]
pub(super) unsafe fn read_out<V: Vector>(
    weight: &[V::Scalar],
    channels: usize,
    u: &[V],
    scale: V,
    out: &mut [V],
) {
    let q = weight.len() / channels;
    // SAFETY: the caller has the instructions of the vector.
    unsafe {
        for (out, u) in out.chunks_exact_mut(q).zip(u.chunks_exact(channels)) {
            for (out, weight) in out.iter_mut().zip(weight.chunks_exact(channels)) {
                *out = dot(weight, u).mul(scale);
            }
        }
    }
}

/// Write the gradient of the last layer, add that of the weights, and give back that of the scale.
#[inline(always)]
pub(super) unsafe fn read_out_backward<V: Vector>(
    weight: &[V::Scalar],
    channels: usize,
    u: &[V],
    d_out: &[V],
    scale: V,
    grad: &mut [V::Scalar],
    d: &mut [V],
) -> V {
    let q = weight.len() / channels;
    // SAFETY: the caller has the instructions of the vector.
    unsafe {
        let mut d_scale = V::zero();
        for ((d, u), d_out) in
            d.chunks_exact_mut(channels).zip(u.chunks_exact(channels)).zip(d_out.chunks_exact(q))
        {
            for d in d.iter_mut() {
                *d = V::zero();
            }
            for (weight, &d_out) in weight.chunks_exact(channels).zip(d_out) {
                d_scale = dot(weight, u).fma(d_out, d_scale);
                for (d, &weight) in d.iter_mut().zip(weight) {
                    *d = V::splat(weight).fma(d_out.mul(scale), *d);
                }
            }
        }
        for s in 0..q {
            for c in 0..channels {
                let mut sum = V::zero();
                for (u, d_out) in u.chunks_exact(channels).zip(d_out.chunks_exact(q)) {
                    sum = u[c].fma(d_out[s], sum);
                }
                grad[s * channels + c] += sum.mul(scale).sum();
            }
        }
        d_scale
    }
}
