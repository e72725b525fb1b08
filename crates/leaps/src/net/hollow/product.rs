//! Multiply rows of channels by a matrix, in blocks that stay in registers.
//!
//! Rows hold 16 configurations a channel, so a weight is broadcast and nothing is shuffled. A block of 6 outputs by 4
//! rows has 24 sums: they hide the latency of the multiplications, and 10 loads feed 24 of them.

use crate::device::vector::Vector;

/// A matrix `w[k * outputs + o]` from `inputs` to `outputs` channels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Matrix {
    pub(super) inputs: usize,
    pub(super) outputs: usize,
}

/// Where a product finds its weights: that from channel `k` to channel `o` at `k * along + o * across`.
#[derive(Clone, Copy)]
struct Steps {
    along: usize,
    across: usize,
}

impl Matrix {
    pub(super) const fn len(&self) -> usize {
        self.inputs * self.outputs
    }

    /// `y[r * outputs + o] = bias[o] + sum_k w[k * outputs + o] x[r * inputs + k]`; no bias where it is empty.
    #[inline(always)]
    pub(super) unsafe fn forward<V: Vector>(
        &self,
        w: &[V::Scalar],
        bias: &[V::Scalar],
        x: &[V],
        y: &mut [V],
    ) {
        let steps = Steps { along: self.outputs, across: 1 };
        unsafe { multiply(w, bias, steps, self.inputs, self.outputs, x, y) }
    }

    /// `d_x[r * inputs + k] = sum_o w[k * outputs + o] d_y[r * outputs + o]`.
    #[inline(always)]
    pub(super) unsafe fn transposed<V: Vector>(&self, w: &[V::Scalar], d_y: &[V], d_x: &mut [V]) {
        let steps = Steps { along: 1, across: self.outputs };
        unsafe { multiply(w, &[], steps, self.outputs, self.inputs, d_y, d_x) }
    }

    /// `sums[k * outputs + o] += sum_r x[r * inputs + k] d_y[r * outputs + o]`, lane by lane; `fresh` sums start at 0.
    #[inline(always)]
    pub(super) unsafe fn gradient<V: Vector>(
        &self,
        x: &[V],
        d_y: &[V],
        fresh: bool,
        sums: &mut [V],
    ) {
        let rows = x.len() / self.inputs;
        assert!(x.len() == rows * self.inputs && d_y.len() == rows * self.outputs);
        assert!(sums.len() == self.len());
        let mut k = 0;
        unsafe {
            if V::REGISTERS >= 32 {
                while k + 4 <= self.inputs {
                    self.gradient_rows::<V, 4>(k, rows, x, d_y, fresh, sums);
                    k += 4;
                }
            }
            while k < self.inputs {
                self.gradient_rows::<V, 1>(k, rows, x, d_y, fresh, sums);
                k += 1;
            }
        }
    }

    #[inline(always)]
    unsafe fn gradient_rows<V: Vector, const K: usize>(
        &self,
        k: usize,
        rows: usize,
        x: &[V],
        d_y: &[V],
        fresh: bool,
        sums: &mut [V],
    ) {
        let mut o = 0;
        unsafe {
            while o + 6 <= self.outputs {
                self.gradient_block::<V, K, 6>(k, o, rows, x, d_y, fresh, sums);
                o += 6;
            }
            while o + 2 <= self.outputs {
                self.gradient_block::<V, K, 2>(k, o, rows, x, d_y, fresh, sums);
                o += 2;
            }
            if o < self.outputs {
                self.gradient_block::<V, K, 1>(k, o, rows, x, d_y, fresh, sums);
            }
        }
    }

    #[inline(always)]
    unsafe fn gradient_block<V: Vector, const K: usize, const O: usize>(
        &self,
        k: usize,
        o: usize,
        rows: usize,
        x: &[V],
        d_y: &[V],
        fresh: bool,
        sums: &mut [V],
    ) {
        debug_assert!(k + K <= self.inputs && o + O <= self.outputs);
        unsafe {
            let mut block = [[V::zero(); O]; K];
            let (mut x, mut d_y) = (x.as_ptr().add(k), d_y.as_ptr().add(o));
            for _ in 0..rows {
                for i in 0..K {
                    let x = *x.add(i);
                    for j in 0..O {
                        block[i][j] = x.fma(*d_y.add(j), block[i][j]);
                    }
                }
                x = x.wrapping_add(self.inputs);
                d_y = d_y.wrapping_add(self.outputs);
            }
            for i in 0..K {
                let sums = &mut sums[(k + i) * self.outputs + o..][..O];
                for j in 0..O {
                    sums[j] = if fresh { block[i][j] } else { sums[j].add(block[i][j]) };
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn multiply<V: Vector>(
    w: &[V::Scalar],
    bias: &[V::Scalar],
    steps: Steps,
    inputs: usize,
    outputs: usize,
    x: &[V],
    y: &mut [V],
) {
    let rows = x.len() / inputs;
    assert!(w.len() == inputs * outputs && (bias.is_empty() || bias.len() == outputs));
    assert!(x.len() == rows * inputs && y.len() == rows * outputs);
    let mut row = 0;
    unsafe {
        if V::REGISTERS >= 32 {
            while row + 4 <= rows {
                let (x, y) = (x.as_ptr().add(row * inputs), &mut y[row * outputs..]);
                multiply_rows::<V, 4>(w, bias, steps, inputs, outputs, x, y);
                row += 4;
            }
        }
        while row < rows {
            let (x, y) = (x.as_ptr().add(row * inputs), &mut y[row * outputs..]);
            multiply_rows::<V, 1>(w, bias, steps, inputs, outputs, x, y);
            row += 1;
        }
    }
}

#[inline(always)]
unsafe fn multiply_rows<V: Vector, const R: usize>(
    w: &[V::Scalar],
    bias: &[V::Scalar],
    steps: Steps,
    inputs: usize,
    outputs: usize,
    x: *const V,
    y: &mut [V],
) {
    let mut o = 0;
    unsafe {
        while o + 6 <= outputs {
            multiply_block::<V, 6, R>(w, bias, steps, inputs, outputs, o, x, y);
            o += 6;
        }
        while o + 2 <= outputs {
            multiply_block::<V, 2, R>(w, bias, steps, inputs, outputs, o, x, y);
            o += 2;
        }
        if o < outputs {
            multiply_block::<V, 1, R>(w, bias, steps, inputs, outputs, o, x, y);
        }
    }
}

#[inline(always)]
unsafe fn multiply_block<V: Vector, const O: usize, const R: usize>(
    w: &[V::Scalar],
    bias: &[V::Scalar],
    steps: Steps,
    inputs: usize,
    outputs: usize,
    o: usize,
    x: *const V,
    y: &mut [V],
) {
    debug_assert!(o + O <= outputs && y.len() >= R * outputs);
    unsafe {
        let mut sums = [[V::zero(); R]; O];
        if !bias.is_empty() {
            for j in 0..O {
                sums[j] = [V::splat(bias[o + j]); R];
            }
        }
        let (mut w, mut x) = (w.as_ptr().add(o * steps.across), x);
        for _ in 0..inputs {
            let mut values = [V::zero(); R];
            for r in 0..R {
                values[r] = *x.add(r * inputs);
            }
            for j in 0..O {
                let weight = V::splat(*w.add(j * steps.across));
                for r in 0..R {
                    sums[j][r] = weight.fma(values[r], sums[j][r]);
                }
            }
            w = w.wrapping_add(steps.along);
            x = x.wrapping_add(1);
        }
        for r in 0..R {
            let y = &mut y[r * outputs + o..][..O];
            for j in 0..O {
                y[j] = sums[j][r];
            }
        }
    }
}

/// Add the sum over lanes of every vector.
#[inline(always)]
pub(super) unsafe fn add_sums<V: Vector>(vectors: &[V], out: &mut [V::Scalar]) {
    for (out, vector) in out.iter_mut().zip(vectors) {
        *out += unsafe { vector.sum() };
    }
}

/// `out[c] += sum over rows and lanes of rows[r * channels + c]`.
#[inline(always)]
pub(super) unsafe fn add_columns<V: Vector>(rows: &[V], out: &mut [V::Scalar]) {
    let channels = out.len();
    for (c, out) in out.iter_mut().enumerate() {
        unsafe {
            let mut sum = V::zero();
            for row in rows.chunks_exact(channels) {
                sum = sum.add(row[c]);
            }
            *out += sum.sum();
        }
    }
}
