//! Embeddings of values: the channels that convolutions read.

use super::Lec;
use crate::device::vector::{Real, Vector};

/// Keeps the authors' division by the length of an embedding finite.
const TINY: f64 = 1e-7;

impl Lec {
    /// The factor that shortens an embedding to length 1, and its length, if it is longer.
    #[inline(always)]
    fn shortened<S: Real>(&self, row: &[S]) -> Option<(f64, f64)> {
        let mut square = 0.0;
        for &value in row {
            square += value.to_f64() * value.to_f64();
        }
        let length = square.sqrt();
        if self.imported && length > 1.0 { Some((1.0 / (length + TINY), length)) } else { None }
    }

    /// Write `planes[plane * (sites + 1) + site]`; the place behind the last site holds 0.
    #[inline(always)]
    pub(super) unsafe fn embed<V: Vector>(
        &self,
        embedding: &[V::Scalar],
        x: &[V],
        planes: &mut [V],
    ) {
        let (d, q, c) = (self.sites, self.inputs, self.channels);
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            if q == 1 {
                planes[..d].copy_from_slice(x);
                planes[d] = V::zero();
                return;
            }
            for value in planes.iter_mut() {
                *value = V::zero();
            }
            for site_value in 0..q {
                let row = &embedding[site_value * c..][..c];
                let factor = match self.shortened(row) {
                    Some((factor, _)) => V::constant(factor),
                    None => V::constant(1.0),
                };
                for channel in 0..c {
                    let value = V::splat(row[channel]).mul(factor);
                    let plane = &mut planes[channel * (d + 1)..][..d];
                    for (site, out) in plane.iter_mut().enumerate() {
                        *out = x[site * q + site_value].fma(value, *out);
                    }
                }
            }
        }
    }

    /// Add the gradient of the embeddings, given that of their planes; `spare` of one vector per channel.
    #[inline(always)]
    pub(super) unsafe fn embed_backward<V: Vector>(
        &self,
        embedding: &[V::Scalar],
        x: &[V],
        d_planes: &[V],
        spare: &mut [V],
        grad: &mut [V::Scalar],
    ) {
        let (d, q, c) = (self.sites, self.inputs, self.channels);
        let d_row = &mut spare[..c];
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            for site_value in 0..q {
                let row = &embedding[site_value * c..][..c];
                let mut along = V::zero();
                for channel in 0..c {
                    let plane = &d_planes[channel * (d + 1)..][..d];
                    let mut sum = V::zero();
                    for (site, &d_plane) in plane.iter().enumerate() {
                        sum = x[site * q + site_value].fma(d_plane, sum);
                    }
                    d_row[channel] = sum;
                    along = V::splat(row[channel]).fma(sum, along);
                }
                // e' = f e with f = 1 / (|e| + tiny): de' = f de - f^2 / |e| (e . de) e.
                let (factor, radial) = match self.shortened(row) {
                    Some((f, length)) => (V::constant(f), along.mul(V::constant(-f * f / length))),
                    None => (V::constant(1.0), V::zero()),
                };
                for channel in 0..c {
                    let d = V::splat(row[channel]).fma(radial, d_row[channel].mul(factor));
                    grad[site_value * c + channel] += d.sum();
                }
            }
        }
    }
}
