//! Convolutions of a half-space: every site reads its own plane and the planes behind it.
//!
//! For each tile the inputs are transformed ([`winograd`]), multiplied by a matrix per point, and transformed back. The
//! backward pass applies the transposes in reverse order; the gradient of the transformed weights becomes that of the
//! taps in [`Convolution::unpack`].

use super::geometry::{Direction, Geometry};
use super::tiles::{Read, Same, Shape, Unread, Unwrite, Write, stride};
use super::winograd;
use crate::device::vector::{Real, Vector};
use crate::net::product::{Matrix, add_sums};

/// Tiles multiplied at a time: their transforms stay close to the core.
pub(super) const CHUNK: usize = 8;

/// A convolution from one number of channels to another.
#[derive(Clone, Debug)]
pub(super) struct Convolution {
    pub(super) matrix: Matrix,
    pub(super) shape: Shape,
    tiles: usize,
    /// `[point * taps + tap]`: how much of a tap a point's weight holds.
    filter: Vec<f64>,
}

impl Convolution {
    pub(super) fn new(geometry: &Geometry, inputs: usize, outputs: usize) -> Self {
        let rows = geometry.behind + 1;
        let mut filter = winograd::filter(rows).iter().map(|row| row.to_vec()).collect::<Vec<_>>();
        for _ in 1..geometry.dimensions() {
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
            shape: Shape { along: rows + 1, points: geometry.points() },
            tiles: geometry.tiles,
            filter: filter.concat(),
        }
    }

    /// Points of a tile.
    pub(super) fn points(&self) -> usize {
        self.shape.points
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

    /// Vectors for the transformed inputs of all tiles.
    pub(super) fn read_len(&self) -> usize {
        self.points() * stride(self.tiles, self.matrix.inputs)
    }

    /// Vectors for the products of all tiles.
    pub(super) fn write_len(&self) -> usize {
        self.points() * stride(self.tiles, self.matrix.outputs)
    }

    /// Vectors for the transformed inputs, or the products, of the tiles multiplied at a time.
    pub(super) fn chunk_len(&self) -> usize {
        self.points() * stride(CHUNK, self.matrix.inputs.max(self.matrix.outputs))
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
        let inputs = direction.inputs.chunks(CHUNK * self.points());
        for (inputs, outputs) in inputs.zip(direction.outputs.chunks(CHUNK * self.shape.places())) {
            let buffers = (&mut *read, &mut *products);
            // SAFETY: the caller has the instructions of the vector.
            unsafe { self.tiles((weights, bias), (inputs, outputs), input, base, out, buffers) }
        }
    }

    /// A few tiles of [`forward`](Self::forward): those that read the rows `from` of the input and write the rows
    /// `to` of the output.
    #[inline(always)]
    pub(super) unsafe fn tiles<V: Vector>(
        &self,
        (weights, bias): (&[V::Scalar], &[V::Scalar]),
        (from, to): (&[u32], &[u32]),
        input: &[V],
        base: &[V],
        out: &mut [V],
        (read, products): (&mut [V], &mut [V]),
    ) {
        let Matrix { inputs, outputs } = self.matrix;
        let (shape, tiles) = (self.shape, from.len() / self.points());
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            V::call(Read { shape, inputs: from, channels: inputs, input, read });
            for p in 0..self.points() {
                self.matrix.forward(
                    &weights[p * self.matrix.len()..][..self.matrix.len()],
                    &[],
                    &read[p * stride(tiles, inputs)..][..tiles * inputs],
                    &mut products[p * stride(tiles, outputs)..][..tiles * outputs],
                );
            }
            V::call(Write { shape, outputs: to, products, bias: Same(bias), base, out });
        }
    }

    /// Add this direction's part of the weights' gradient to `sums` (`fresh` ones start at 0), and write the
    /// gradient of the input to `d_input` unless that is empty. The row of `d_out` for no site is 0.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // slices of one scratch, which the caller cuts
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
        let (shape, tiles) = (self.shape, self.tiles);
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            let from = &direction.inputs;
            V::call(Read { shape, inputs: from, channels: inputs, input, read });
            V::call(Unwrite { shape, direction, tiles, channels: outputs, d_out, products });
            for p in 0..self.points() {
                let range = p * self.matrix.len()..(p + 1) * self.matrix.len();
                let x = &mut read[p * stride(tiles, inputs)..][..tiles * inputs];
                let d_y = &products[p * stride(tiles, outputs)..][..tiles * outputs];
                self.matrix.gradient(x, d_y, fresh, &mut sums[range.clone()]);
                if !d_input.is_empty() {
                    self.matrix.transposed(&weights[range], d_y, x);
                }
            }
            if !d_input.is_empty() {
                d_input.fill(V::zero());
                V::call(Unread { shape, direction, tiles, channels: inputs, read, d_input });
            }
        }
    }

    /// Add the sums over lanes to the weights' gradient.
    #[inline(always)]
    pub(super) unsafe fn add_gradient<V: Vector>(&self, sums: &[V], grad: &mut [V::Scalar]) {
        // SAFETY: the caller has the instructions of the vector.
        unsafe { add_sums(&sums[..self.packed()], grad) }
    }
}
