//! The gradient of a state-dependent convolution.
//!
//! For a block of 8 taps of one channel, and a tile of sites: compute the arguments `z` again, turn the gradient of the outputs
//! into that of `z`, push it to the layer's input (`A^T dz`), and add it to the gradient of `A` (`dz h^T`). With `out = -ln 2 sum_taps
//! (z s + c) x` and `s = 1 / (1 + 2^z)`, `dz = -ln 2 d_out x (s + z s ln 2 (s - 1))`.

use std::f64::consts::LN_2;

use super::layer::{Input, SITES, arguments, many, sigmoid};
use super::packing::Packed;
use super::stencil::BLOCK;
use crate::device::vector::Vector;
use crate::net::layout::take_mut;

/// Sites of a tile: its inputs, their gradients and the gradient of `A` fit the first-level cache.
pub(super) const TILE: usize = 10 * SITES;

/// Where a layer's gradients go.
pub(super) struct Output<'a, V: Vector> {
    /// `[site * channels + channel]`, of the layer's input.
    pub(super) h: &'a mut [V],
    /// Like the planes; only for embeddings.
    pub(super) planes: &'a mut [V],
    /// By tap.
    pub(super) theta: &'a mut [V],
    pub(super) a: &'a mut [[V::Scalar; BLOCK]],
    pub(super) inner: &'a mut [[V::Scalar; BLOCK]],
    pub(super) outer: &'a mut [[V::Scalar; BLOCK]],
}

/// Vectors of spare space for [`backward`].
pub(super) fn spare(channels: usize) -> usize {
    (channels + TILE) * BLOCK
}

/// One block of taps of one channel.
struct Block<'a, V: Vector> {
    channel: usize,
    block: usize,
    a: &'a [[V::Scalar; BLOCK]],
    inner: &'a [V::Scalar; BLOCK],
    outer: &'a [V::Scalar; BLOCK],
    plane: &'a [V],
    d_plane: &'a mut [V],
    d_inner: [V; BLOCK],
    d_outer: [V; BLOCK],
}

/// Write the gradient of the input and add the others. `d_out` is the gradient of the outputs times `-ln 2`.
#[inline(always)]
pub(super) unsafe fn backward<V: Vector, const EMBEDDED: bool>(
    p: &Packed<'_, V::Scalar>,
    input: Input<'_, V>,
    sites: usize,
    d_out: &[V],
    to: Output<'_, V>,
    mut spare: &mut [V],
) {
    let (c, blocks) = (input.channels, input.stencil.blocks());
    let sums = take_mut(&mut spare, c * BLOCK).as_chunks_mut::<BLOCK>().0;
    let d_z = take_mut(&mut spare, TILE * BLOCK).as_chunks_mut::<BLOCK>().0;
    let Output { h: d_h, planes: d_planes, theta: d_theta, a: d_a, inner, outer } = to;
    // SAFETY: the caller has the instructions of the vector.
    unsafe {
        for value in d_h[..sites * c].iter_mut().chain(d_theta.iter_mut()) {
            *value = V::zero();
        }
        for channel in 0..c {
            for block in 0..blocks {
                let at = channel * blocks + block;
                let d_plane = if EMBEDDED {
                    &mut d_planes[channel * (sites + 1)..][..sites + 1]
                } else {
                    &mut []
                };
                let mut b = Block {
                    channel,
                    block,
                    a: &p.a[at * c..][..c],
                    inner: &p.inner[at],
                    outer: &p.outer[at],
                    plane: input.plane::<EMBEDDED>(sites, channel),
                    d_plane,
                    d_inner: [V::zero(); BLOCK],
                    d_outer: [V::zero(); BLOCK],
                };
                for sum in sums.iter_mut() {
                    *sum = [V::zero(); BLOCK];
                }
                for start in (0..sites).step_by(TILE) {
                    let end = sites.min(start + TILE);
                    let threes = if many::<V>() { (end - start) / SITES } else { 0 };
                    let whole = start + threes * SITES;
                    for site in (start..whole).step_by(SITES) {
                        let d_z = &mut d_z[site - start..];
                        arguments_backward::<V, SITES, EMBEDDED>(
                            &mut b, input, site, d_out, d_h, d_z,
                        );
                    }
                    for site in whole..end {
                        let d_z = &mut d_z[site - start..];
                        arguments_backward::<V, 1, EMBEDDED>(&mut b, input, site, d_out, d_h, d_z);
                    }
                    let h = &input.h[start * c..end * c];
                    outer_products(&d_z[..end - start], h, sums);
                }
                for (d_a, sum) in d_a[at * c..][..c].iter_mut().zip(sums.iter()) {
                    for j in 0..BLOCK {
                        d_a[j] += sum[j].sum();
                    }
                }
                for j in 0..BLOCK {
                    inner[at][j] += b.d_inner[j].sum();
                    outer[at][j] += b.d_outer[j].sum();
                    let d_theta = &mut d_theta[block * BLOCK + j];
                    *d_theta = d_theta.add(b.d_outer[j]);
                }
            }
        }
    }
}

/// Write `dz` of `N` sites and add `A^T dz` to the gradient of their inputs.
#[inline(always)]
unsafe fn arguments_backward<V: Vector, const N: usize, const EMBEDDED: bool>(
    b: &mut Block<'_, V>,
    input: Input<'_, V>,
    site: usize,
    d_out: &[V],
    d_h: &mut [V],
    d_z: &mut [[V; BLOCK]],
) {
    let c = b.a.len();
    // SAFETY: the caller has the instructions of the vector; what is read unchecked has its own reason below.
    unsafe {
        let z = arguments::<V, N>(b.a, b.inner, input.rows(site));
        let mut d = [[V::zero(); BLOCK]; N];
        for r in 0..N {
            let d_out = d_out[(site + r) * c + b.channel];
            let near = &input.stencil.of(site + r).as_chunks::<BLOCK>().0[b.block];
            for j in 0..BLOCK {
                let near = near[j] as usize;
                let (z, s) = (z[r][j], sigmoid(z[r][j]));
                // SAFETY: a stencil's sites are at most `sites`, the length of a plane less 1.
                let x = *b.plane.get_unchecked(near);
                let (zs, rest) = (z.mul(s), s.fma(V::constant(LN_2), V::constant(-LN_2)));
                let slope = zs.fma(rest, s);
                let d_kernel = d_out.mul(x);
                b.d_outer[j] = b.d_outer[j].add(d_kernel);
                d[r][j] = d_kernel.mul(slope);
                b.d_inner[j] = b.d_inner[j].add(d[r][j]);
                if EMBEDDED {
                    let constant = V::splat(b.outer[j]).add(input.theta[b.block * BLOCK + j]);
                    let to = b.d_plane.get_unchecked_mut(near);
                    *to = zs.add(constant).fma(d_out, *to);
                }
            }
            d_z[r] = d[r];
        }
        let d_h = &mut d_h[site * c..][..N * c];
        for (i, a) in b.a.iter().enumerate() {
            let mut sum = [V::zero(); N];
            for r in 0..N {
                sum[r] = d_h[r * c + i];
            }
            for j in 0..BLOCK {
                let weight = V::splat(a[j]);
                for r in 0..N {
                    sum[r] = weight.fma(d[r][j], sum[r]);
                }
            }
            for r in 0..N {
                d_h[r * c + i] = sum[r];
            }
        }
    }
}

/// Add `dz h^T`, summed over the sites of a tile, three channels at a time.
#[inline(always)]
unsafe fn outer_products<V: Vector>(d_z: &[[V; BLOCK]], h: &[V], sums: &mut [[V; BLOCK]]) {
    let c = sums.len();
    let (threes, rest) = sums.as_chunks_mut::<3>();
    // SAFETY: the caller has the instructions of the vector.
    unsafe {
        for (i, sums) in threes.iter_mut().enumerate() {
            outer_product(d_z, h, c, 3 * i, sums);
        }
        match rest {
            [one] => outer_product(d_z, h, c, c - 1, std::array::from_mut(one)),
            [one, two] => {
                let mut both = [*one, *two];
                outer_product(d_z, h, c, c - 2, &mut both);
                [*one, *two] = both;
            }
            _ => {}
        }
    }
}

#[inline(always)]
unsafe fn outer_product<V: Vector, const N: usize>(
    d_z: &[[V; BLOCK]],
    h: &[V],
    channels: usize,
    first: usize,
    sums: &mut [[V; BLOCK]; N],
) {
    // SAFETY: the caller has the instructions of the vector.
    unsafe {
        let mut total = *sums;
        for (d_z, row) in d_z.iter().zip(h.chunks_exact(channels)) {
            let row = &row[first..][..N];
            for n in 0..N {
                for j in 0..BLOCK {
                    total[n][j] = row[n].fma(d_z[j], total[n][j]);
                }
            }
        }
        *sums = total;
    }
}
