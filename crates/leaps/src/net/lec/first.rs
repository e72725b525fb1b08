//! The first convolution of the input, with a kernel that has no centre.

use super::Lec;
use super::stencil::BLOCK;
use crate::device::vector::Vector;

impl Lec {
    /// Write `out[site * channels + channel]`.
    #[inline(always)]
    pub(super) unsafe fn first_forward<V: Vector>(
        &self,
        weight: &[V::Scalar],
        planes: &[V],
        out: &mut [V],
    ) {
        let (d, c, taps) = (self.sites, self.channels, self.first.taps());
        let weight = weight.as_chunks::<BLOCK>().0;
        let n = self.planes() * taps;
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            for (site, out) in out.chunks_exact_mut(c).take(d).enumerate() {
                let near = &self.first.of(site)[..taps];
                for (block, weight) in weight.chunks_exact(n).enumerate() {
                    let mut sum = [V::zero(); BLOCK];
                    for (plane, weight) in weight.chunks_exact(taps).enumerate() {
                        let plane = &planes[plane * (d + 1)..][..d + 1];
                        for (weight, &near) in weight.iter().zip(near) {
                            let x = plane[near as usize];
                            for j in 0..BLOCK {
                                sum[j] = V::splat(weight[j]).fma(x, sum[j]);
                            }
                        }
                    }
                    for j in 0..BLOCK {
                        if let Some(out) = out.get_mut(block * BLOCK + j) {
                            *out = sum[j];
                        }
                    }
                }
            }
        }
    }

    /// Add the gradient of the weights, and that of the planes if they are embeddings.
    #[inline(always)]
    pub(super) unsafe fn first_backward<V: Vector>(
        &self,
        weight: &[V::Scalar],
        planes: &[V],
        d_out: &[V],
        grad: &mut [V::Scalar],
        d_planes: &mut [V],
    ) {
        let (d, c, taps) = (self.sites, self.channels, self.first.taps());
        let weight = weight.as_chunks::<BLOCK>().0;
        let grad = grad.as_chunks_mut::<BLOCK>().0;
        let n = self.planes() * taps;
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            for block in 0..c.div_ceil(BLOCK) {
                for p in 0..self.planes() {
                    let plane = &planes[p * (d + 1)..][..d + 1];
                    for tap in 0..taps {
                        let at = block * n + p * taps + tap;
                        let mut sum = [V::zero(); BLOCK];
                        for (site, d_row) in d_out.chunks_exact(c).take(d).enumerate() {
                            let near = self.first.of(site)[tap] as usize;
                            let (x, mut d_x) = (plane[near], V::zero());
                            for j in 0..BLOCK {
                                if let Some(&d) = d_row.get(block * BLOCK + j) {
                                    sum[j] = d.fma(x, sum[j]);
                                    d_x = V::splat(weight[at][j]).fma(d, d_x);
                                }
                            }
                            if self.inputs > 1 {
                                let to = &mut d_planes[p * (d + 1) + near];
                                *to = to.add(d_x);
                            }
                        }
                        for j in 0..BLOCK {
                            grad[at][j] += sum[j].sum();
                        }
                    }
                }
            }
        }
    }
}
