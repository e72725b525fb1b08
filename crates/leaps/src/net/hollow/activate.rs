//! Activations between layers, and from the last one to the sites.

use crate::device::vector::Vector;

/// `active = silu((1 + scale) h + shift)`, and 0 where there is no site.
#[inline(always)]
pub(super) unsafe fn activate<V: Vector>(channels: usize, time: &[V], h: &[V], active: &mut [V]) {
    let (sites, none) = active.split_at_mut(h.len() - channels);
    // SAFETY: the caller has the instructions of the vector.
    unsafe {
        none.fill(V::zero());
        activate_rows(channels, time, h, sites);
    }
}

/// `active = silu((1 + scale) h + shift)` for as many rows as `active` has.
#[inline(always)]
pub(super) unsafe fn activate_rows<V: Vector>(
    channels: usize,
    time: &[V],
    h: &[V],
    active: &mut [V],
) {
    let (scale, shift) = time.split_at(channels);
    // SAFETY: the caller has the instructions of the vector.
    unsafe {
        let rows = active.chunks_exact_mut(channels);
        for (active, h) in rows.zip(h.chunks_exact(channels)) {
            for c in 0..channels {
                let slope = V::constant(1.0).add(scale[c]);
                active[c] = h[c].fma(slope, shift[c]).silu();
            }
        }
    }
}

/// The backward pass of [`activate`]: add to the gradients of scales, shifts and `h`.
#[inline(always)]
pub(super) unsafe fn deactivate<V: Vector>(
    channels: usize,
    time: &[V],
    h: &[V],
    d_active: &[V],
    d_time: &mut [V],
    d_h: &mut [V],
) {
    let (scale, shift) = time.split_at(channels);
    let (d_scale, d_shift) = d_time.split_at_mut(channels);
    let sites = h.len() - channels;
    let rows = d_h[..sites].chunks_exact_mut(channels);
    // SAFETY: the caller has the instructions of the vector.
    unsafe {
        for ((d_h, h), d_active) in
            rows.zip(h.chunks_exact(channels)).zip(d_active.chunks_exact(channels))
        {
            for c in 0..channels {
                let slope = V::constant(1.0).add(scale[c]);
                let d_z = d_active[c].mul(h[c].fma(slope, shift[c]).silu_slope());
                d_scale[c] = d_z.fma(h[c], d_scale[c]);
                d_shift[c] = d_shift[c].add(d_z);
                d_h[c] = d_z.fma(slope, d_h[c]);
            }
        }
    }
}

/// Write the activated channels of rows to what the sites `after` them see along direction `k`, of `width` channels in all.
#[inline(always)]
pub(super) unsafe fn look_forward<V: Vector>(
    channels: usize,
    k: usize,
    width: usize,
    after: &[u32],
    h: &[V],
    context: &mut [V],
) {
    let none = context.len() / width;
    for (h, &after) in h.chunks_exact(channels).zip(after) {
        if after as usize == none {
            continue;
        }
        let row = &mut context[after as usize * width + k * channels..][..channels];
        for c in 0..channels {
            // SAFETY: the caller has the instructions of the vector.
            row[c] = unsafe { h[c].silu() };
        }
    }
}

/// Let every site see the activated channels of the site before it along direction `k`.
#[inline(always)]
pub(super) unsafe fn look_back<V: Vector>(
    channels: usize,
    k: usize,
    before: &[u32],
    h: &[V],
    context: &mut [V],
) {
    let (width, none) = (context.len() / before.len(), before.len() as u32);
    for (row, &before) in context.chunks_exact_mut(width).zip(before) {
        let row = &mut row[k * channels..][..channels];
        if before == none {
            // SAFETY: the caller has the instructions of the vector.
            unsafe { row.fill(V::zero()) };
            continue;
        }
        let h = &h[before as usize * channels..][..channels];
        for c in 0..channels {
            // SAFETY: the caller has the instructions of the vector.
            row[c] = unsafe { h[c].silu() };
        }
    }
}

/// The backward pass of [`look_back`]: write the gradient of `h`.
#[inline(always)]
pub(super) unsafe fn look_ahead<V: Vector>(
    channels: usize,
    k: usize,
    after: &[u32],
    h: &[V],
    d_context: &[V],
    d_h: &mut [V],
) {
    let (width, none) = (d_context.len() / after.len(), after.len() as u32);
    let (sites, no_site) = d_h.split_at_mut(h.len() - channels);
    // SAFETY: the caller has the instructions of the vector.
    unsafe { no_site.fill(V::zero()) };
    let rows = sites.chunks_exact_mut(channels).zip(h.chunks_exact(channels));
    for ((d_h, h), &after) in rows.zip(after) {
        if after == none {
            // SAFETY: the caller has the instructions of the vector.
            unsafe { d_h.fill(V::zero()) };
            continue;
        }
        let d = &d_context[after as usize * width + k * channels..][..channels];
        for c in 0..channels {
            // SAFETY: the caller has the instructions of the vector.
            d_h[c] = unsafe { d[c].mul(h[c].silu_slope()) };
        }
    }
}
