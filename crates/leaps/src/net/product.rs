//! Products of rows of channels with a matrix, in blocks that stay in registers.
//!
//! Rows hold 16 configurations a channel, so a weight is broadcast and nothing is shuffled. With 32 registers a block
//! of 6 outputs by 4 rows has 24 sums: they hide the latency of the multiplications, and 10 loads feed 24 of them.

use crate::device::vector::{Job, Vector};

/// A matrix `w[k * outputs + o]` from `inputs` to `outputs` channels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Matrix {
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
}

impl Matrix {
    pub(crate) const fn len(&self) -> usize {
        self.inputs * self.outputs
    }

    /// `y[r * outputs + o] = bias[o] + sum_k w[k * outputs + o] x[r * inputs + k]`; no bias where it is empty.
    #[inline(always)]
    pub(crate) unsafe fn forward<V: Vector>(
        &self,
        w: &[V::Scalar],
        bias: &[V::Scalar],
        x: &[V],
        y: &mut [V],
    ) {
        let Matrix { inputs, outputs } = *self;
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            V::call(Multiply::<V, false> { w, start: Start::Bias(bias), inputs, outputs, x, y })
        }
    }

    /// `y[r * outputs + o] += sum_k w[k * outputs + o] x[r * inputs + k]`, as if the sums of [`forward`](Self::forward) over more inputs were taken up there.
    #[inline(always)]
    pub(crate) unsafe fn go_on<V: Vector>(&self, w: &[V::Scalar], x: &[V], y: &mut [V]) {
        let Matrix { inputs, outputs } = *self;
        // SAFETY: the caller has the instructions of the vector.
        unsafe { V::call(Multiply::<V, false> { w, start: Start::Sums, inputs, outputs, x, y }) }
    }

    /// `d_x[r * inputs + k] = sum_o w[k * outputs + o] d_y[r * outputs + o]`.
    #[inline(always)]
    pub(crate) unsafe fn transposed<V: Vector>(&self, w: &[V::Scalar], d_y: &[V], d_x: &mut [V]) {
        let (inputs, outputs) = (self.outputs, self.inputs);
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            V::call(Multiply::<V, true> {
                w,
                start: Start::Bias(&[]),
                inputs,
                outputs,
                x: d_y,
                y: d_x,
            })
        }
    }

    /// `sums[k * outputs + o] += sum_r x[r * inputs + k] d_y[r * outputs + o]`, lane by lane; `fresh` sums start at 0.
    #[inline(always)]
    pub(crate) unsafe fn gradient<V: Vector>(
        &self,
        x: &[V],
        d_y: &[V],
        fresh: bool,
        sums: &mut [V],
    ) {
        // SAFETY: the caller has the instructions of the vector.
        unsafe { V::call(Gradient { matrix: *self, x, d_y, fresh, sums }) }
    }
}

/// Where the sums of a product start.
#[derive(Clone, Copy)]
enum Start<'a, S> {
    /// At the bias of every output; at 0 where there is none.
    Bias(&'a [S]),
    /// At what the outputs hold.
    Sums,
}

/// Rows times a matrix, kept as `[input][output]`, or as `[output][input]` when `TRANSPOSED`.
struct Multiply<'a, V: Vector, const TRANSPOSED: bool> {
    w: &'a [V::Scalar],
    start: Start<'a, V::Scalar>,
    inputs: usize,
    outputs: usize,
    x: &'a [V],
    y: &'a mut [V],
}

impl<V: Vector, const TRANSPOSED: bool> Job<V> for Multiply<'_, V, TRANSPOSED> {
    #[inline(always)]
    unsafe fn run(mut self) {
        let rows = self.x.len() / self.inputs;
        assert!(self.w.len() == self.inputs * self.outputs);
        if let Start::Bias(bias) = self.start {
            assert!(bias.is_empty() || bias.len() == self.outputs);
        }
        assert!(self.x.len() == rows * self.inputs && self.y.len() == rows * self.outputs);
        let mut row = 0;
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            if V::REGISTERS >= 32 {
                while row + 4 <= rows {
                    self.rows::<4>(row);
                    row += 4;
                }
            }
            while row < rows {
                self.rows::<1>(row);
                row += 1;
            }
        }
    }
}

impl<V: Vector, const TRANSPOSED: bool> Multiply<'_, V, TRANSPOSED> {
    /// All outputs of `R` rows.
    #[inline(always)]
    unsafe fn rows<const R: usize>(&mut self, row: usize) {
        let mut o = 0;
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            if V::REGISTERS >= 8 {
                while o + 6 <= self.outputs {
                    self.block::<6, R>(row, o);
                    o += 6;
                }
            }
            while o + 2 <= self.outputs {
                self.block::<2, R>(row, o);
                o += 2;
            }
            if o < self.outputs {
                self.block::<1, R>(row, o);
            }
        }
    }

    /// `O` outputs of `R` rows.
    #[inline(always)]
    unsafe fn block<const O: usize, const R: usize>(&mut self, row: usize, o: usize) {
        let (inputs, outputs) = (self.inputs, self.outputs);
        let (along, across) = if TRANSPOSED { (1, inputs) } else { (outputs, 1) };
        debug_assert!(o + O <= outputs && (row + R) * inputs <= self.x.len());
        // SAFETY: the caller has the instructions of the vector. `o + O <= outputs` and `row + R <= rows`: with the lengths
        // that `run` asserts, weights and inputs are read inside their slices.
        unsafe {
            let mut sums = [[V::zero(); R]; O];
            match self.start {
                Start::Bias([]) => {}
                Start::Bias(bias) => {
                    for j in 0..O {
                        sums[j] = [V::splat(bias[o + j]); R];
                    }
                }
                Start::Sums => {
                    for r in 0..R {
                        let y = &self.y[(row + r) * outputs + o..][..O];
                        for j in 0..O {
                            sums[j][r] = y[j];
                        }
                    }
                }
            }
            let mut w = self.w.as_ptr().add(o * across);
            let mut x = self.x.as_ptr().add(row * inputs);
            for _ in 0..inputs {
                let mut values = [V::zero(); R];
                for r in 0..R {
                    values[r] = *x.add(r * inputs);
                }
                for j in 0..O {
                    let weight = V::splat(*w.add(j * across));
                    for r in 0..R {
                        sums[j][r] = weight.fma(values[r], sums[j][r]);
                    }
                }
                w = w.wrapping_add(along);
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

/// The gradient of a matrix, lane by lane.
struct Gradient<'a, V> {
    matrix: Matrix,
    x: &'a [V],
    d_y: &'a [V],
    fresh: bool,
    sums: &'a mut [V],
}

impl<V: Vector> Job<V> for Gradient<'_, V> {
    #[inline(always)]
    unsafe fn run(mut self) {
        let Matrix { inputs, outputs } = self.matrix;
        let rows = self.x.len() / inputs;
        assert!(self.x.len() == rows * inputs && self.d_y.len() == rows * outputs);
        assert!(self.sums.len() == self.matrix.len());
        let mut k = 0;
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            if V::REGISTERS >= 32 {
                while k + 4 <= inputs {
                    self.rows::<4>(rows, k);
                    k += 4;
                }
            }
            while k < inputs {
                self.rows::<1>(rows, k);
                k += 1;
            }
        }
    }
}

impl<V: Vector> Gradient<'_, V> {
    /// The weights from `K` inputs.
    #[inline(always)]
    unsafe fn rows<const K: usize>(&mut self, rows: usize, k: usize) {
        let outputs = self.matrix.outputs;
        let mut o = 0;
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            if V::REGISTERS >= 8 {
                while o + 6 <= outputs {
                    self.block::<K, 6>(rows, k, o);
                    o += 6;
                }
            }
            while o + 2 <= outputs {
                self.block::<K, 2>(rows, k, o);
                o += 2;
            }
            if o < outputs {
                self.block::<K, 1>(rows, k, o);
            }
        }
    }

    /// The weights from `K` inputs to `O` outputs.
    #[inline(always)]
    unsafe fn block<const K: usize, const O: usize>(&mut self, rows: usize, k: usize, o: usize) {
        let Matrix { inputs, outputs } = self.matrix;
        debug_assert!(k + K <= inputs && o + O <= outputs);
        // SAFETY: the caller has the instructions of the vector. `k + K <= inputs` and `o + O <= outputs`: with the lengths
        // that `run` asserts, both slices are read inside.
        unsafe {
            let mut block = [[V::zero(); O]; K];
            let mut x = self.x.as_ptr().add(k);
            let mut d_y = self.d_y.as_ptr().add(o);
            for _ in 0..rows {
                for i in 0..K {
                    let x = *x.add(i);
                    for j in 0..O {
                        block[i][j] = x.fma(*d_y.add(j), block[i][j]);
                    }
                }
                x = x.wrapping_add(inputs);
                d_y = d_y.wrapping_add(outputs);
            }
            for i in 0..K {
                let sums = &mut self.sums[(k + i) * outputs + o..][..O];
                for j in 0..O {
                    sums[j] = if self.fresh { block[i][j] } else { sums[j].add(block[i][j]) };
                }
            }
        }
    }
}

/// Add the sum over lanes of every vector.
#[inline(always)]
pub(crate) unsafe fn add_sums<V: Vector>(vectors: &[V], out: &mut [V::Scalar]) {
    for (out, vector) in out.iter_mut().zip(vectors) {
        // SAFETY: the caller has the instructions of the vector.
        *out += unsafe { vector.sum() };
    }
}

/// `out[c] += sum over rows and lanes of rows[r * channels + c]`.
#[inline(always)]
pub(crate) unsafe fn add_columns<V: Vector>(rows: &[V], out: &mut [V::Scalar]) {
    let channels = out.len();
    for (c, out) in out.iter_mut().enumerate() {
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            let mut sum = V::zero();
            for row in rows.chunks_exact(channels) {
                sum = sum.add(row[c]);
            }
            *out += sum.sum();
        }
    }
}
