//! Convolve a half-space: every site reads its own plane and the planes behind it.
//!
//! For each tile the inputs are transformed ([`winograd`](super::winograd)), multiplied by a matrix per point, and transformed back. The
//! backward pass applies the transposes in reverse order; the gradient of the transformed weights becomes that of the
//! taps in [`Convolution::unpack`].

use super::geometry::{Direction, Geometry};
use super::product::{Matrix, add_sums};
use super::winograd;
use crate::device::vector::{Real, Vector};

/// Tiles multiplied at a time: their transforms stay close to the core.
const CHUNK: usize = 8;

/// A convolution from one number of channels to another.
#[derive(Clone, Debug)]
pub(super) struct Convolution {
    pub(super) matrix: Matrix,
    /// Planes looked at, the site's own included.
    rows: usize,
    across: usize,
    tiles: usize,
    /// `[point * taps + tap]`: how much of a tap a point's weight holds.
    filter: Vec<f64>,
}

/// Call `$body::<V, N, P>($args)` with the points along the first axis and in all.
macro_rules! with_points {
    ($conv:expr, $body:ident, $args:tt) => {
        match ($conv.rows, $conv.across) {
            (1, 1) => with_points!(@ $conv, $body, 2, 2, $args),
            (2, 1) => with_points!(@ $conv, $body, 3, 3, $args),
            (3, 1) => with_points!(@ $conv, $body, 4, 4, $args),
            (1, 4) => with_points!(@ $conv, $body, 2, 8, $args),
            (2, 4) => with_points!(@ $conv, $body, 3, 12, $args),
            (3, 4) => with_points!(@ $conv, $body, 4, 16, $args),
            (1, 16) => with_points!(@ $conv, $body, 2, 32, $args),
            (2, 16) => with_points!(@ $conv, $body, 3, 48, $args),
            _ => with_points!(@ $conv, $body, 4, 64, $args),
        }
    };
    (@ $conv:expr, $body:ident, $n:literal, $p:literal, ($($arg:expr),*)) => {
        $conv.$body::<V, $n, $p>($($arg),*)
    };
}

impl Convolution {
    pub(super) fn new(geometry: &Geometry, inputs: usize, outputs: usize) -> Self {
        let rows = geometry.behind + 1;
        let mut filter = winograd::filter(rows).iter().map(|row| row.to_vec()).collect::<Vec<_>>();
        for _ in 1..geometry.dimensions {
            let line = winograd::filter(3);
            filter = filter
                .iter()
                .flat_map(|plane| {
                    line.iter().map(|line| {
                        plane.iter().flat_map(|a| line.iter().map(move |b| a * b)).collect()
                    })
                })
                .collect();
        }
        Convolution {
            matrix: Matrix { inputs, outputs },
            rows,
            across: geometry.points() / (geometry.behind + 2),
            tiles: geometry.tiles,
            filter: filter.concat(),
        }
    }

    /// Points of a tile.
    pub(super) fn points(&self) -> usize {
        (self.rows + 1) * self.across
    }

    fn taps(&self) -> usize {
        self.filter.len() / self.points()
    }

    /// Weights as they are kept.
    pub(super) fn weights(&self) -> usize {
        self.taps() * self.matrix.len()
    }

    /// Weights as the passes see them: `[point][input][output]`.
    pub(super) fn packed(&self) -> usize {
        self.points() * self.matrix.len()
    }

    /// Transform weights `[output][input][tap]`.
    pub(super) fn pack<S: Real>(&self, weights: &[S], out: &mut [S]) {
        let Matrix { inputs, outputs } = self.matrix;
        for (o, weights) in weights.chunks_exact(inputs * self.taps()).enumerate() {
            for (k, weights) in weights.chunks_exact(self.taps()).enumerate() {
                for (p, filter) in self.filter.chunks_exact(self.taps()).enumerate() {
                    let sum: f64 = filter.iter().zip(weights).map(|(f, w)| f * w.to_f64()).sum();
                    out[(p * inputs + k) * outputs + o] = S::from_f64(sum);
                }
            }
        }
    }

    /// Add the gradient of the taps: the transpose of [`pack`](Self::pack).
    pub(super) fn unpack<S: Real>(&self, packed: &[S], out: &mut [S]) {
        let Matrix { inputs, outputs } = self.matrix;
        for (o, out) in out.chunks_exact_mut(inputs * self.taps()).enumerate() {
            for (k, out) in out.chunks_exact_mut(self.taps()).enumerate() {
                for (tap, out) in out.iter_mut().enumerate() {
                    let mut sum = 0.0;
                    for p in 0..self.points() {
                        let weight = packed[(p * inputs + k) * outputs + o].to_f64();
                        sum += self.filter[p * self.taps() + tap] * weight;
                    }
                    *out += S::from_f64(sum);
                }
            }
        }
    }

    /// Vectors that one point's rows of `channels` take in a buffer for `tiles` tiles. The odd one keeps points from
    /// falling into the same lines of the cache.
    const fn stride(tiles: usize, channels: usize) -> usize {
        tiles * channels + 1
    }

    /// Vectors for the transformed inputs of all tiles.
    pub(super) fn read_len(&self) -> usize {
        self.points() * Self::stride(self.tiles, self.matrix.inputs)
    }

    /// Vectors for the products of all tiles.
    pub(super) fn write_len(&self) -> usize {
        self.points() * Self::stride(self.tiles, self.matrix.outputs)
    }

    /// `out[site] = base[site] + bias + sum over taps`, where an empty base is 0. `input`, `base` and `out` have a row
    /// for no site; that of the input is 0.
    #[inline(always)]
    pub(super) unsafe fn forward<V: Vector>(
        &self,
        (weights, bias): (&[V::Scalar], &[V::Scalar]),
        direction: &Direction,
        input: &[V],
        base: &[V],
        out: &mut [V],
        (read, products): (&mut [V], &mut [V]),
    ) {
        let Matrix { inputs, outputs } = self.matrix;
        let mut first = 0;
        while first < self.tiles {
            let tiles = CHUNK.min(self.tiles - first);
            let (from, to) = (Self::stride(tiles, inputs), Self::stride(tiles, outputs));
            unsafe {
                with_points!(self, read, (direction, first, tiles, input, read));
                for p in 0..self.points() {
                    self.matrix.forward(
                        &weights[p * self.matrix.len()..][..self.matrix.len()],
                        &[],
                        &read[p * from..][..tiles * inputs],
                        &mut products[p * to..][..tiles * outputs],
                    );
                }
                with_points!(self, write, (direction, first, tiles, products, bias, base, out));
            }
            first += tiles;
        }
    }

    /// Add this direction's part of the weights' gradient to `sums` (`fresh` ones start at 0), and write the
    /// gradient of the input to `d_input` unless that is empty. The row of `d_out` for no site is 0.
    #[inline(always)]
    pub(super) unsafe fn backward<V: Vector>(
        &self,
        weights: &[V::Scalar],
        direction: &Direction,
        input: &[V],
        d_out: &[V],
        d_input: &mut [V],
        (fresh, sums): (bool, &mut [V]),
        (read, products): (&mut [V], &mut [V]),
    ) {
        let Matrix { inputs, outputs } = self.matrix;
        let (from, to) = (Self::stride(self.tiles, inputs), Self::stride(self.tiles, outputs));
        unsafe {
            with_points!(self, read, (direction, 0, self.tiles, input, read));
            with_points!(self, unwrite, (direction, d_out, products));
            for p in 0..self.points() {
                let range = p * self.matrix.len()..(p + 1) * self.matrix.len();
                let x = &mut read[p * from..][..self.tiles * inputs];
                let d_y = &products[p * to..][..self.tiles * outputs];
                self.matrix.gradient(x, d_y, fresh, &mut sums[range.clone()]);
                if !d_input.is_empty() {
                    self.matrix.transposed(&weights[range], d_y, x);
                }
            }
            if !d_input.is_empty() {
                for d in d_input.iter_mut() {
                    *d = V::zero();
                }
                with_points!(self, unread, (direction, read, d_input));
            }
        }
    }

    /// Add the sums over lanes to the weights' gradient.
    #[inline(always)]
    pub(super) unsafe fn add_gradient<V: Vector>(&self, sums: &[V], grad: &mut [V::Scalar]) {
        unsafe { add_sums(&sums[..self.packed()], grad) }
    }

    #[inline(always)]
    unsafe fn read<V: Vector, const N: usize, const P: usize>(
        &self,
        direction: &Direction,
        first: usize,
        tiles: usize,
        input: &[V],
        read: &mut [V],
    ) {
        let channels = self.matrix.inputs;
        let stride = Self::stride(tiles, channels);
        assert!(read.len() >= P * stride);
        for t in 0..tiles {
            let sites = &direction.inputs[(first + t) * P..][..P];
            let mut rows = [input.as_ptr(); P];
            for p in 0..P {
                rows[p] = input[sites[p] as usize * channels..][..channels].as_ptr();
            }
            for k in 0..channels {
                unsafe {
                    let mut tile = [V::zero(); P];
                    for p in 0..P {
                        tile[p] = *rows[p].add(k);
                    }
                    winograd::read::<V, N, P>(&mut tile);
                    let to = read.as_mut_ptr().add(t * channels + k);
                    for p in 0..P {
                        *to.add(p * stride) = tile[p];
                    }
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn write<V: Vector, const N: usize, const P: usize>(
        &self,
        direction: &Direction,
        first: usize,
        tiles: usize,
        products: &[V],
        bias: &[V::Scalar],
        base: &[V],
        out: &mut [V],
    ) {
        let channels = self.matrix.outputs;
        let stride = Self::stride(tiles, channels);
        let places = self.places::<N>();
        assert!(products.len() >= P * stride && bias.len() == channels);
        assert!(base.is_empty() || base.len() == out.len());
        for t in 0..tiles {
            let sites = &direction.outputs[(first + t) * places..][..places];
            for k in 0..channels {
                unsafe {
                    let from = products.as_ptr().add(t * channels + k);
                    let mut tile = [V::zero(); P];
                    for p in 0..P {
                        tile[p] = *from.add(p * stride);
                    }
                    winograd::write::<V, N, P>(&mut tile);
                    let bias = V::splat(bias[k]);
                    for y in 0..places {
                        let at = sites[y] as usize * channels + k;
                        let mut sum = tile[winograd::place(y, P / N)].add(bias);
                        if !base.is_empty() {
                            sum = sum.add(base[at]);
                        }
                        out[at] = sum;
                    }
                }
            }
        }
    }

    /// Outputs of a tile: 2 for every axis.
    #[inline(always)]
    fn places<const N: usize>(&self) -> usize {
        match self.across {
            1 => 2,
            4 => 4,
            _ => 8,
        }
    }

    #[inline(always)]
    unsafe fn unwrite<V: Vector, const N: usize, const P: usize>(
        &self,
        direction: &Direction,
        d_out: &[V],
        products: &mut [V],
    ) {
        let channels = self.matrix.outputs;
        let stride = Self::stride(self.tiles, channels);
        let places = self.places::<N>();
        assert!(products.len() >= P * stride);
        for t in 0..self.tiles {
            let sites = &direction.outputs[t * places..][..places];
            for k in 0..channels {
                unsafe {
                    let mut tile = [V::zero(); P];
                    for y in 0..places {
                        tile[winograd::place(y, P / N)] = d_out[sites[y] as usize * channels + k];
                    }
                    winograd::unwrite::<V, N, P>(&mut tile);
                    let to = products.as_mut_ptr().add(t * channels + k);
                    for p in 0..P {
                        *to.add(p * stride) = tile[p];
                    }
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn unread<V: Vector, const N: usize, const P: usize>(
        &self,
        direction: &Direction,
        read: &[V],
        d_input: &mut [V],
    ) {
        let channels = self.matrix.inputs;
        let stride = Self::stride(self.tiles, channels);
        assert!(read.len() >= P * stride);
        for t in 0..self.tiles {
            let sites = &direction.inputs[t * P..][..P];
            for k in 0..channels {
                unsafe {
                    let from = read.as_ptr().add(t * channels + k);
                    let mut tile = [V::zero(); P];
                    for p in 0..P {
                        tile[p] = *from.add(p * stride);
                    }
                    winograd::unread::<V, N, P>(&mut tile);
                    for p in 0..P {
                        let d = &mut d_input[sites[p] as usize * channels + k];
                        *d = d.add(tile[p]);
                    }
                }
            }
        }
    }
}
