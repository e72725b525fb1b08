//! Vectors as plain arrays, in single and in double precision.

use super::{EXP2, Floats, Job, Vector, WIDTH};
use crate::device::level::Portable;

impl Floats for Portable {
    type V = Array<f32>;
}

/// Plain arrays, aligned like a register.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Array<S>(pub(crate) [S; WIDTH]);

macro_rules! each_lane {
    ($lane:ident => $value:expr) => {{
        let mut out = [Default::default(); WIDTH];
        for $lane in 0..WIDTH {
            out[$lane] = $value;
        }
        Array(out)
    }};
}

macro_rules! array_vector {
    ($scalar:ty, $exp2:expr) => {
        impl Vector for Array<$scalar> {
            type Scalar = $scalar;
            const REGISTERS: usize = 4;

            #[inline(never)]
            unsafe fn call(job: impl Job<Self>) {
                // SAFETY: plain arrays need no special instructions.
                unsafe { job.run() }
            }

            #[inline(always)]
            unsafe fn splat(value: $scalar) -> Self {
                Array([value; WIDTH])
            }
            #[cfg(test)]
            #[inline(always)]
            unsafe fn load(from: &[$scalar]) -> Self {
                let mut out = [0.0; WIDTH];
                out.copy_from_slice(&from[..WIDTH]);
                Array(out)
            }
            #[cfg(test)]
            #[inline(always)]
            unsafe fn store(self, to: &mut [$scalar]) {
                to[..WIDTH].copy_from_slice(&self.0);
            }
            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                each_lane!(l => self.0[l] + other.0[l])
            }
            #[inline(always)]
            unsafe fn sub(self, other: Self) -> Self {
                each_lane!(l => self.0[l] - other.0[l])
            }
            #[inline(always)]
            unsafe fn mul(self, other: Self) -> Self {
                each_lane!(l => self.0[l] * other.0[l])
            }
            #[cfg(test)]
            #[inline(always)]
            unsafe fn div(self, other: Self) -> Self {
                each_lane!(l => self.0[l] / other.0[l])
            }
            #[inline(always)]
            unsafe fn fma(self, factor: Self, term: Self) -> Self {
                each_lane!(l => self.0[l] * factor.0[l] + term.0[l])
            }
            #[cfg(test)]
            #[inline(always)]
            unsafe fn min(self, other: Self) -> Self {
                each_lane!(l => self.0[l].min(other.0[l]))
            }
            #[inline(always)]
            unsafe fn max(self, other: Self) -> Self {
                each_lane!(l => self.0[l].max(other.0[l]))
            }
            #[inline(always)]
            unsafe fn exp2(self) -> Self {
                each_lane!(l => $exp2(self.0[l]))
            }
            #[inline(always)]
            unsafe fn reciprocal(self) -> Self {
                each_lane!(l => 1.0 / self.0[l])
            }
            #[inline(always)]
            unsafe fn sum(self) -> $scalar {
                let mut half = self.0;
                let mut width = WIDTH / 2;
                while width > 0 {
                    for l in 0..width {
                        half[l] += half[l + width];
                    }
                    width /= 2;
                }
                half[0]
            }
        }
    };
}

/// `2^z` by rounding, a polynomial and the exponent's bits.
#[inline(always)]
fn exp2_f32(z: f32) -> f32 {
    let z = z.clamp(-126.0, 126.0);
    // Adding 1.5 2^23 rounds to an integer that stands in the lower bits.
    let shifted = z + 12_582_912.0;
    let whole = shifted - 12_582_912.0;
    let f = z - whole;
    let p = (((EXP2[4] * f + EXP2[3]) * f + EXP2[2]) * f + EXP2[1]) * f + EXP2[0];
    f32::from_bits((p * f + 1.0).to_bits().wrapping_add(shifted.to_bits() << 23))
}

array_vector!(f32, exp2_f32);
array_vector!(f64, f64::exp2);
