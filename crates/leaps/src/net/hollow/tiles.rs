//! Transformed tiles of rows of channels.
//!
//! Transformed tiles are kept as `[point][tile][channel]`, so that every point is one product of matrices.

use super::geometry::Direction;
use super::winograd;
use crate::device::vector::{Job, Vector};

/// The points of a tile: along the direction, and in all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) along: usize,
    pub(super) points: usize,
}

/// Points of the largest tile, 4 along each of 3 axes.
pub(super) const MOST: usize = 64;

/// Vectors between the points of `tiles` tiles. The odd one keeps points from falling into the same lines of the cache.
pub(super) const fn stride(tiles: usize, channels: usize) -> usize {
    tiles * channels + 1
}

impl Shape {
    /// Outputs of a tile, 2 along every axis.
    #[inline(always)]
    pub(super) const fn places(self) -> usize {
        match self.points / self.along {
            1 => 2,
            4 => 4,
            _ => 8,
        }
    }
}

/// Run a job whose tiles have a shape known to the compiler, where they are common and registers are wide: all
/// loops over points are then unrolled, and a tile of 4 by 4 stays in registers.
macro_rules! by_shape {
    () => {
        #[inline(always)]
        unsafe fn run(self) {
            // SAFETY: the caller has the instructions of the vector.
            unsafe {
                match self.shape {
                    Shape { along: 4, points: 16 } if V::REGISTERS >= 8 => {
                        self.with(Shape { along: 4, points: 16 })
                    }
                    Shape { along: 4, points: 64 } if V::REGISTERS >= 8 => {
                        self.with(Shape { along: 4, points: 64 })
                    }
                    shape => self.with(shape),
                }
            }
        }
    };
}

/// Transform the inputs of some tiles.
pub(super) struct Read<'a, V> {
    pub(super) shape: Shape,
    /// Rows of the input that they read: `[tile * points + point]`.
    pub(super) inputs: &'a [u32],
    pub(super) channels: usize,
    pub(super) input: &'a [V],
    pub(super) read: &'a mut [V],
}

impl<V: Vector> Job<V> for Read<'_, V> {
    by_shape!();
}

impl<V: Vector> Read<'_, V> {
    #[inline(always)]
    unsafe fn with(self, Shape { along, points }: Shape) {
        let stride = stride(self.inputs.len() / points, self.channels);
        assert!(points <= MOST && self.read.len() >= points * stride);
        // SAFETY: the caller has the instructions of the vector.
        let mut tile = unsafe { [V::zero(); MOST] };
        for (t, sites) in self.inputs.chunks_exact(points).enumerate() {
            let mut rows = [self.input.as_ptr(); MOST];
            for p in 0..points {
                let row = &self.input[sites[p] as usize * self.channels..][..self.channels];
                rows[p] = row.as_ptr();
            }
            for c in 0..self.channels {
                // SAFETY: the caller has the instructions of the vector. Rows are slices of `channels` numbers, and `t * channels + c`
                // is below `stride`: all places are within the asserted `points * stride`.
                unsafe {
                    for p in 0..points {
                        tile[p] = *rows[p].add(c);
                    }
                    winograd::read(&mut tile[..points], along);
                    let to = self.read.as_mut_ptr().add(t * self.channels + c);
                    for p in 0..points {
                        *to.add(p * stride) = tile[p];
                    }
                }
            }
        }
    }
}

/// The biases of channels: one for all lanes of a vector, or one for each.
pub(super) trait Bias<V> {
    fn channels(&self) -> usize;
    unsafe fn of(&self, channel: usize) -> V;
}

/// The same in all lanes.
pub(super) struct Same<'a, S>(pub(super) &'a [S]);

impl<V: Vector> Bias<V> for Same<'_, V::Scalar> {
    #[inline(always)]
    fn channels(&self) -> usize {
        self.0.len()
    }
    #[inline(always)]
    unsafe fn of(&self, channel: usize) -> V {
        // SAFETY: the caller has the instructions of the vector.
        unsafe { V::splat(self.0[channel]) }
    }
}

/// One for each lane.
pub(super) struct Each<'a, V>(pub(super) &'a [V]);

impl<V: Vector> Bias<V> for Each<'_, V> {
    #[inline(always)]
    fn channels(&self) -> usize {
        self.0.len()
    }
    #[inline(always)]
    unsafe fn of(&self, channel: usize) -> V {
        self.0[channel]
    }
}

/// Sum the products of some tiles into the outputs of their sites.
pub(super) struct Write<'a, V, B> {
    pub(super) shape: Shape,
    /// Rows of the output that they write: `[tile * places + place]`.
    pub(super) outputs: &'a [u32],
    pub(super) products: &'a [V],
    pub(super) bias: B,
    pub(super) base: &'a [V],
    pub(super) out: &'a mut [V],
}

impl<V: Vector, B: Bias<V>> Job<V> for Write<'_, V, B> {
    by_shape!();
}

impl<V: Vector, B: Bias<V>> Write<'_, V, B> {
    #[inline(always)]
    unsafe fn with(self, shape: Shape) {
        let (channels, points, places) = (self.bias.channels(), shape.points, shape.places());
        let stride = stride(self.outputs.len() / places, channels);
        assert!(points <= MOST && self.products.len() >= points * stride);
        assert!(self.base.is_empty() || self.base.len() == self.out.len());
        // SAFETY: the caller has the instructions of the vector.
        let mut tile = unsafe { [V::zero(); MOST] };
        for (t, sites) in self.outputs.chunks_exact(places).enumerate() {
            for c in 0..channels {
                // SAFETY: the caller has the instructions of the vector. `t * channels + c` is below `stride`: all places are within
                // the asserted `points * stride`.
                unsafe {
                    let from = self.products.as_ptr().add(t * channels + c);
                    for p in 0..points {
                        tile[p] = *from.add(p * stride);
                    }
                    winograd::write(&mut tile[..points], shape.along);
                    let bias = self.bias.of(c);
                    for y in 0..places {
                        let at = sites[y] as usize * channels + c;
                        let mut sum = tile[winograd::place(y, points / shape.along)].add(bias);
                        if !self.base.is_empty() {
                            sum = sum.add(self.base[at]);
                        }
                        self.out[at] = sum;
                    }
                }
            }
        }
    }
}

/// The transpose of [`Write`]: gradients of the products.
pub(super) struct Unwrite<'a, V> {
    pub(super) shape: Shape,
    pub(super) direction: &'a Direction,
    pub(super) tiles: usize,
    pub(super) channels: usize,
    pub(super) d_out: &'a [V],
    pub(super) products: &'a mut [V],
}

impl<V: Vector> Job<V> for Unwrite<'_, V> {
    by_shape!();
}

impl<V: Vector> Unwrite<'_, V> {
    #[inline(always)]
    unsafe fn with(self, shape: Shape) {
        let (points, places) = (shape.points, shape.places());
        let stride = stride(self.tiles, self.channels);
        assert!(points <= MOST && self.products.len() >= points * stride);
        // SAFETY: the caller has the instructions of the vector.
        let mut tile = unsafe { [V::zero(); MOST] };
        for t in 0..self.tiles {
            let sites = &self.direction.outputs[t * places..][..places];
            for c in 0..self.channels {
                // SAFETY: the caller has the instructions of the vector. `t * channels + c` is below `stride`: all places are within
                // the asserted `points * stride`.
                unsafe {
                    for y in 0..places {
                        tile[winograd::place(y, points / shape.along)] =
                            self.d_out[sites[y] as usize * self.channels + c];
                    }
                    winograd::unwrite(&mut tile[..points], shape.along);
                    let to = self.products.as_mut_ptr().add(t * self.channels + c);
                    for p in 0..points {
                        *to.add(p * stride) = tile[p];
                    }
                }
            }
        }
    }
}

/// The transpose of [`Read`]: add to the gradients of the inputs.
pub(super) struct Unread<'a, V> {
    pub(super) shape: Shape,
    pub(super) direction: &'a Direction,
    pub(super) tiles: usize,
    pub(super) channels: usize,
    pub(super) read: &'a [V],
    pub(super) d_input: &'a mut [V],
}

impl<V: Vector> Job<V> for Unread<'_, V> {
    by_shape!();
}

impl<V: Vector> Unread<'_, V> {
    #[inline(always)]
    unsafe fn with(self, Shape { along, points }: Shape) {
        let stride = stride(self.tiles, self.channels);
        assert!(points <= MOST && self.read.len() >= points * stride);
        // SAFETY: the caller has the instructions of the vector.
        let mut tile = unsafe { [V::zero(); MOST] };
        for t in 0..self.tiles {
            let sites = &self.direction.inputs[t * points..][..points];
            for c in 0..self.channels {
                // SAFETY: the caller has the instructions of the vector. `t * channels + c` is below `stride`: all places are within
                // the asserted `points * stride`.
                unsafe {
                    let from = self.read.as_ptr().add(t * self.channels + c);
                    for p in 0..points {
                        tile[p] = *from.add(p * stride);
                    }
                    winograd::unread(&mut tile[..points], along);
                    for p in 0..points {
                        let d = &mut self.d_input[sites[p] as usize * self.channels + c];
                        *d = d.add(tile[p]);
                    }
                }
            }
        }
    }
}
