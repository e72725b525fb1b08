//! Convolutions with kernels computed from the state.
//!
//! The work is `A h` for every site, channel and tap. It is done in blocks of 8 taps times 3 sites, which fit the
//! registers; the block's activations are used at once and never stored.

use std::f64::consts::LN_2;

use super::packing::Packed;
use super::stencil::{BLOCK, Stencil};
use crate::device::vector::Vector;

/// Sites that are computed together.
pub(super) const SITES: usize = 3;

/// What a layer reads beside its parameters.
#[derive(Clone, Copy)]
pub(super) struct Input<'a, V> {
    pub(super) stencil: &'a Stencil,
    pub(super) channels: usize,
    /// `[site * channels + channel]`: the activations of the layer before.
    pub(super) h: &'a [V],
    /// `[plane * (sites + 1) + site]`.
    pub(super) planes: &'a [V],
    /// The packed function of time, by tap.
    pub(super) theta: &'a [V],
}

impl<'a, V: Vector> Input<'a, V> {
    /// The plane that channel `c` multiplies.
    #[inline(always)]
    pub(super) fn plane<const EMBEDDED: bool>(&self, sites: usize, c: usize) -> &'a [V] {
        let plane = if EMBEDDED { c } else { 0 };
        &self.planes[plane * (sites + 1)..][..sites + 1]
    }

    /// The activations of `N` sites from `site` on.
    #[inline(always)]
    pub(super) fn rows<const N: usize>(&self, site: usize) -> [&'a [V]; N] {
        let mut rows: [&[V]; N] = [&[]; N];
        for (r, row) in rows.iter_mut().enumerate() {
            *row = &self.h[(site + r) * self.channels..][..self.channels];
        }
        rows
    }
}

/// `z = A h + b` for 8 taps and `N` sites.
#[inline(always)]
pub(super) unsafe fn arguments<V: Vector, const N: usize>(
    a: &[[V::Scalar; BLOCK]],
    inner: &[V::Scalar; BLOCK],
    rows: [&[V]; N],
) -> [[V; BLOCK]; N] {
    // SAFETY: the caller has the instructions of the vector.
    unsafe {
        let mut z = [[V::zero(); BLOCK]; N];
        for j in 0..BLOCK {
            for r in 0..N {
                z[r][j] = V::splat(inner[j]);
            }
        }
        if many::<V>() {
            add_products::<V, N, 0, BLOCK>(a, rows, &mut z);
        } else {
            add_products::<V, N, 0, { BLOCK / 2 }>(a, rows, &mut z);
            add_products::<V, N, { BLOCK / 2 }, BLOCK>(a, rows, &mut z);
        }
        z
    }
}

/// Whether 8 taps times 3 sites fit the registers.
#[inline(always)]
pub(super) const fn many<V: Vector>() -> bool {
    V::REGISTERS > BLOCK * SITES
}

/// Add `A h` for the taps from `FROM` to `TO`.
#[inline(always)]
unsafe fn add_products<V: Vector, const N: usize, const FROM: usize, const TO: usize>(
    a: &[[V::Scalar; BLOCK]],
    rows: [&[V]; N],
    z: &mut [[V; BLOCK]; N],
) {
    // SAFETY: the caller has the instructions of the vector.
    unsafe {
        let mut lines = rows;
        for r in 0..N {
            lines[r] = &rows[r][..a.len()];
        }
        for (b, a) in a.iter().enumerate() {
            for j in FROM..TO {
                let weight = V::splat(a[j]);
                for r in 0..N {
                    z[r][j] = weight.fma(lines[r][b], z[r][j]);
                }
            }
        }
    }
}

/// `1 / (1 + 2^z)`.
#[inline(always)]
pub(super) unsafe fn sigmoid<V: Vector>(z: V) -> V {
    // SAFETY: the caller has the instructions of the vector.
    unsafe { V::constant(1.0).add(z.exp2()).reciprocal() }
}

/// Write the outputs of all sites.
#[inline(always)]
pub(super) unsafe fn forward<V: Vector, const EMBEDDED: bool>(
    p: &Packed<'_, V::Scalar>,
    input: Input<'_, V>,
    sites: usize,
    out: &mut [V],
) {
    let whole = if many::<V>() { sites / SITES * SITES } else { 0 };
    // SAFETY: the caller has the instructions of the vector.
    unsafe {
        for site in (0..whole).step_by(SITES) {
            some_sites::<V, SITES, EMBEDDED>(p, input, sites, site, out);
        }
        for site in whole..sites {
            some_sites::<V, 1, EMBEDDED>(p, input, sites, site, out);
        }
    }
}

#[inline(always)]
unsafe fn some_sites<V: Vector, const N: usize, const EMBEDDED: bool>(
    p: &Packed<'_, V::Scalar>,
    input: Input<'_, V>,
    sites: usize,
    site: usize,
    out: &mut [V],
) {
    let (c, blocks) = (input.channels, input.stencil.blocks());
    let rows = input.rows::<N>(site);
    // SAFETY: the caller has the instructions of the vector; what is read unchecked has its own reason below.
    unsafe {
        let mut near: [&[[u32; BLOCK]]; N] = [&[]; N];
        let mut shared = [V::zero(); N];
        for r in 0..N {
            let of = input.stencil.of(site + r);
            near[r] = of.as_chunks().0;
            if !EMBEDDED {
                // The function of time does the same to every channel.
                let plane = input.plane::<EMBEDDED>(sites, 0);
                for (&near, &theta) in of.iter().zip(input.theta) {
                    shared[r] = theta.fma(plane[near as usize], shared[r]);
                }
            }
        }
        for channel in 0..c {
            let plane = input.plane::<EMBEDDED>(sites, channel);
            let mut sum = shared;
            for block in 0..blocks {
                let at = channel * blocks + block;
                let z = arguments::<V, N>(&p.a[at * c..][..c], &p.inner[at], rows);
                for r in 0..N {
                    let near = &near[r][block];
                    for j in 0..BLOCK {
                        let mut constant = V::splat(p.outer[at][j]);
                        if EMBEDDED {
                            constant = constant.add(input.theta[block * BLOCK + j]);
                        }
                        let kernel = z[r][j].fma(sigmoid(z[r][j]), constant);
                        // SAFETY: a stencil's sites are at most `sites`, the length of a plane less 1.
                        sum[r] = kernel.fma(*plane.get_unchecked(near[j] as usize), sum[r]);
                    }
                }
            }
            for r in 0..N {
                out[(site + r) * c + channel] = sum[r].mul(V::constant(-LN_2));
            }
        }
    }
}
