//! Winograd's F(2, r): a convolution along a line with fewer products and some additions.
//!
//! Two outputs of a filter with r taps need 2r products; Winograd (1980) needs r + 1:
//!
//! $$y = A^\mathsf{T}\,\big[(G g) \odot (B^\mathsf{T} d)\big]$$
//!
//! with, for r = 3,
//!
//! $$B^\mathsf{T} = \begin{pmatrix}1&0&-1&0\\\\0&1&1&0\\\\0&-1&1&0\\\\0&1&0&-1\end{pmatrix},\quad
//! G = \begin{pmatrix}1&0&0\\\\\tfrac12&\tfrac12&\tfrac12\\\\\tfrac12&-\tfrac12&\tfrac12\\\\0&0&1\end{pmatrix},\quad
//! A^\mathsf{T} = \begin{pmatrix}1&1&1&0\\\\0&1&-1&-1\end{pmatrix}.$$
//!
//! Over several axes the transforms are applied one axis after the other. The last input enters only the last product, which the first
//! output does not read, and the first input enters only the first product, which the second output does not read.
//! An output therefore never touches a plane outside its own taps, not even through rounding: hollow stays hollow to the bit. (The wider
//! F(4, 3) has not this property.)

use crate::device::vector::Vector;

/// `G` for 1, 2 and 3 taps: `[point][tap]`.
pub(super) fn filter(taps: usize) -> &'static [&'static [f64]] {
    match taps {
        1 => &[&[1.0], &[1.0]],
        2 => &[&[1.0, 0.0], &[1.0, 1.0], &[0.0, 1.0]],
        _ => &[&[1.0, 0.0, 0.0], &[0.5, 0.5, 0.5], &[0.5, -0.5, 0.5], &[0.0, 0.0, 1.0]],
    }
}

/// Change every line of `n` points along the axis with this stride.
macro_rules! lines {
    ($tile:ident, $n:ident, $stride:ident, |$($point:ident: $index:literal),*| $body:expr) => {
        for outer in 0..$tile.len() / ($n * $stride) {
            for inner in 0..$stride {
                let at = outer * $n * $stride + inner;
                $(let $point = $tile[at + $index * $stride];)*
                for (i, value) in $body.into_iter().enumerate() {
                    $tile[at + i * $stride] = value;
                }
            }
        }
    };
}

/// `B^T` along one axis of `n` points.
#[inline(always)]
unsafe fn read_axis<V: Vector>(tile: &mut [V], n: usize, stride: usize) {
    // SAFETY: the caller has the instructions of the vector.
    unsafe {
        match n {
            4 => lines!(tile, n, stride, |a: 0, b: 1, c: 2, d: 3| {
                [a.sub(c), b.add(c), c.sub(b), b.sub(d)]
            }),
            3 => lines!(tile, n, stride, |a: 0, b: 1, c: 2| [a.sub(b), b, b.sub(c)]),
            _ => {}
        }
    }
}

/// `B` along one axis: the transpose of [`read_axis`].
#[inline(always)]
unsafe fn unread_axis<V: Vector>(tile: &mut [V], n: usize, stride: usize) {
    // SAFETY: the caller has the instructions of the vector.
    unsafe {
        match n {
            4 => lines!(tile, n, stride, |a: 0, b: 1, c: 2, d: 3| {
                [a, b.sub(c).add(d), b.add(c).sub(a), V::zero().sub(d)]
            }),
            3 => lines!(tile, n, stride, |a: 0, b: 1, c: 2| {
                [a, b.add(c).sub(a), V::zero().sub(c)]
            }),
            _ => {}
        }
    }
}

/// `A^T` along one axis; the outputs take the places of the first two points.
#[inline(always)]
unsafe fn write_axis<V: Vector>(tile: &mut [V], n: usize, stride: usize) {
    // SAFETY: the caller has the instructions of the vector.
    unsafe {
        match n {
            4 => lines!(tile, n, stride, |a: 0, b: 1, c: 2, d: 3| {
                [a.add(b).add(c), b.sub(c).sub(d)]
            }),
            3 => lines!(tile, n, stride, |a: 0, b: 1, c: 2| [a.add(b), b.sub(c)]),
            _ => {}
        }
    }
}

/// `A` along one axis: the transpose of [`write_axis`].
#[inline(always)]
unsafe fn unwrite_axis<V: Vector>(tile: &mut [V], n: usize, stride: usize) {
    // SAFETY: the caller has the instructions of the vector.
    unsafe {
        match n {
            4 => lines!(tile, n, stride, |a: 0, b: 1| {
                [a, a.add(b), a.sub(b), V::zero().sub(b)]
            }),
            3 => lines!(tile, n, stride, |a: 0, b: 1| [a, a.add(b), V::zero().sub(b)]),
            _ => {}
        }
    }
}

/// Apply a transform along every axis of a tile: `n` points along the first, 4 along the others.
macro_rules! every_axis {
    ($name:ident, $axis:ident, $doc:literal) => {
        #[doc = $doc]
        #[inline(always)]
        pub(super) unsafe fn $name<V: Vector>(tile: &mut [V], n: usize) {
            let mut stride = tile.len() / n;
            // SAFETY: the caller has the instructions of the vector.
            unsafe {
                $axis(tile, n, stride);
                while stride > 1 {
                    stride /= 4;
                    $axis(tile, 4, stride);
                }
            }
        }
    };
}
every_axis!(read, read_axis, "Transform a tile's inputs.");
every_axis!(unread, unread_axis, "The transpose of [`read`].");
every_axis!(write, write_axis, "Sum a tile's products into its outputs, found at [`place`].");
every_axis!(unwrite, unwrite_axis, "The transpose of [`write()`].");

/// Where output `index` of a tile stands among its points.
#[inline(always)]
pub(super) const fn place(index: usize, across: usize) -> usize {
    // Two bits to an axis instead of one; `across` is the number of points of a plane.
    let (mut place, mut stride, mut rest) = (0, 1, index);
    while stride < across {
        place += (rest & 1) * stride;
        rest >>= 1;
        stride *= 4;
    }
    place + rest * across
}
