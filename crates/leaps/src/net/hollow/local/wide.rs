//! Products of rows with matrices whose outputs lie in the lanes of vectors.
//!
//! The numbers of a row are broadcast, the weights are not, so that the sums of an output are those of [`Matrix::forward`](crate::net::product::Matrix::forward), in
//! the same order.

use crate::device::vector::{Array, Job, Vector, WIDTH};

/// Rows of numbers in lanes, the last vector of each filled up with zeros.
#[derive(Clone, Debug)]
pub(super) struct Wide {
    pub(super) vectors: Vec<Array<f32>>,
}

impl Wide {
    /// Rows of `length` numbers.
    pub(super) fn new(rows: &[f32], length: usize) -> Self {
        let vectors = rows.chunks_exact(length).flat_map(|row| {
            row.chunks(WIDTH).map(|some| {
                Array(std::array::from_fn(|lane| some.get(lane).copied().unwrap_or(0.0)))
            })
        });
        Wide { vectors: vectors.collect() }
    }
}

/// The numbers in vectors.
pub(super) fn scalars<V: Vector>(vectors: &[V]) -> &[V::Scalar] {
    const { assert!(size_of::<V>() == WIDTH * size_of::<V::Scalar>()) };
    // SAFETY: a vector is 16 numbers without padding.
    unsafe { std::slice::from_raw_parts(vectors.as_ptr().cast(), vectors.len() * WIDTH) }
}

/// The numbers in vectors, to write to.
pub(super) fn scalars_mut<V: Vector>(vectors: &mut [V]) -> &mut [V::Scalar] {
    const { assert!(size_of::<V>() == WIDTH * size_of::<V::Scalar>()) };
    // SAFETY: as in `scalars`, and any bits are valid.
    unsafe { std::slice::from_raw_parts_mut(vectors.as_mut_ptr().cast(), vectors.len() * WIDTH) }
}

/// Rows times a matrix `[input][output]` whose outputs lie in lanes.
pub(super) struct Product<'a, V: Vector> {
    pub(super) w: &'a [V],
    pub(super) inputs: usize,
    /// Vectors of outputs.
    pub(super) outputs: usize,
    /// Rows of inputs, each in the lanes of as many vectors as it fills.
    pub(super) x: &'a [V],
    pub(super) rows: usize,
    pub(super) y: &'a mut [V],
    /// Whether `y` holds sums to go on with, or they start at 0.
    pub(super) goes_on: bool,
}

impl<V: Vector> Job<V> for Product<'_, V> {
    #[inline(always)]
    unsafe fn run(mut self) {
        let stride = self.inputs.div_ceil(WIDTH);
        assert!(self.w.len() == self.inputs * self.outputs);
        assert!(self.x.len() == self.rows * stride && self.y.len() == self.rows * self.outputs);
        let mut row = 0;
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            if V::REGISTERS >= 32 {
                while row + 8 <= self.rows {
                    self.rows::<8>(row);
                    row += 8;
                }
            }
            while row + 2 <= self.rows {
                self.rows::<2>(row);
                row += 2;
            }
            if row < self.rows {
                self.rows::<1>(row);
            }
        }
    }
}

impl<V: Vector> Product<'_, V> {
    /// All outputs of `R` rows.
    #[inline(always)]
    unsafe fn rows<const R: usize>(&mut self, row: usize) {
        let mut o = 0;
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            while o + 2 <= self.outputs {
                self.block::<2, R>(row, o);
                o += 2;
            }
            if o < self.outputs {
                self.block::<1, R>(row, o);
            }
        }
    }

    /// `O` vectors of outputs of `R` rows.
    #[inline(always)]
    unsafe fn block<const O: usize, const R: usize>(&mut self, row: usize, o: usize) {
        let (inputs, outputs) = (self.inputs, self.outputs);
        let stride = inputs.div_ceil(WIDTH) * WIDTH;
        debug_assert!(o + O <= outputs && (row + R) * stride <= scalars(self.x).len());
        // SAFETY: the caller has the instructions of the vector. `o + O <= outputs` and `row + R <= rows`: with the lengths
        // that `run` asserts, weights and inputs are read inside their slices.
        unsafe {
            let mut sums = [[V::zero(); R]; O];
            if self.goes_on {
                for r in 0..R {
                    let y = &self.y[(row + r) * outputs + o..][..O];
                    for j in 0..O {
                        sums[j][r] = y[j];
                    }
                }
            }
            let mut w = self.w.as_ptr().add(o);
            let mut x = scalars(self.x).as_ptr().add(row * stride);
            for _ in 0..inputs {
                let mut weights = [V::zero(); O];
                for j in 0..O {
                    weights[j] = *w.add(j);
                }
                for r in 0..R {
                    let value = V::splat(*x.add(r * stride));
                    for j in 0..O {
                        sums[j][r] = weights[j].fma(value, sums[j][r]);
                    }
                }
                w = w.wrapping_add(outputs);
                x = x.wrapping_add(1);
            }
            for r in 0..R {
                let y = &mut self.y[(row + r) * outputs + o..][..O];
                for j in 0..O {
                    y[j] = sums[j][r];
                }
            }
        }
    }
}
