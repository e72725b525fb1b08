//! Vectors in NEON: four registers.
//!
//! Operations and their order are those of AVX2, so that the two give the same bits.

use std::arch::aarch64::*;

#[cfg(test)]
use super::WIDTH;
use super::{EXP2, Floats, Job, Vector};
use crate::device::level::Neon;

impl Floats for Neon {
    type V = Quad;
}

/// Four NEON registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quad(float32x4_t, float32x4_t, float32x4_t, float32x4_t);

macro_rules! four {
    ($op:ident, $($of:ident),+) => {
        Quad($op($($of.0),+), $op($($of.1),+), $op($($of.2),+), $op($($of.3),+))
    };
}

#[inline(always)]
unsafe fn exp2(z: float32x4_t) -> float32x4_t {
    // SAFETY: the caller has the instructions of the level.
    unsafe {
        let z = vminq_f32(vmaxq_f32(z, vdupq_n_f32(-126.0)), vdupq_n_f32(126.0));
        let whole = vrndnq_f32(z);
        let f = vsubq_f32(z, whole);
        let mut p = vdupq_n_f32(EXP2[4]);
        p = vfmaq_f32(vdupq_n_f32(EXP2[3]), p, f);
        p = vfmaq_f32(vdupq_n_f32(EXP2[2]), p, f);
        p = vfmaq_f32(vdupq_n_f32(EXP2[1]), p, f);
        p = vfmaq_f32(vdupq_n_f32(EXP2[0]), p, f);
        p = vfmaq_f32(vdupq_n_f32(1.0), p, f);
        let exponent = vshlq_n_s32::<23>(vcvtq_s32_f32(whole));
        vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(p), exponent))
    }
}

/// A quotient, as on AVX2: estimates with Newton steps would have other bits, and activations are few.
#[inline(always)]
unsafe fn reciprocal(x: float32x4_t) -> float32x4_t {
    // SAFETY: the caller has the instructions of the level.
    unsafe { vdivq_f32(vdupq_n_f32(1.0), x) }
}

/// `term + a * b`, with the arguments in the order of [`Vector::fma`].
#[inline(always)]
unsafe fn fma(a: float32x4_t, b: float32x4_t, term: float32x4_t) -> float32x4_t {
    // SAFETY: the caller has the instructions of the level.
    unsafe { vfmaq_f32(term, a, b) }
}

impl Vector for Quad {
    type Scalar = f32;
    const REGISTERS: usize = 8;

    #[inline(never)]
    #[target_feature(enable = "neon")]
    unsafe fn call(job: impl Job<Self>) {
        // SAFETY: the caller has the instructions of the level.
        unsafe { job.run() }
    }

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            let four = vdupq_n_f32(value);
            Quad(four, four, four, four)
        }
    }
    #[cfg(test)]
    #[inline(always)]
    unsafe fn load(from: &[f32]) -> Self {
        // SAFETY: the caller has the instructions of the level, and the slice has 16 numbers, as was checked.
        unsafe {
            let from = from[..WIDTH].as_ptr();
            let four = |at: usize| vld1q_f32(from.add(at));
            Quad(four(0), four(4), four(8), four(12))
        }
    }
    #[cfg(test)]
    #[inline(always)]
    unsafe fn store(self, to: &mut [f32]) {
        // SAFETY: the caller has the instructions of the level, and the slice has 16 numbers, as was checked.
        unsafe {
            let to = to[..WIDTH].as_mut_ptr();
            let four = |at: usize, numbers| vst1q_f32(to.add(at), numbers);
            four(0, self.0);
            four(4, self.1);
            four(8, self.2);
            four(12, self.3);
        }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: the caller has the instructions of the level.
        unsafe { four!(vaddq_f32, self, other) }
    }
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        // SAFETY: the caller has the instructions of the level.
        unsafe { four!(vsubq_f32, self, other) }
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        // SAFETY: the caller has the instructions of the level.
        unsafe { four!(vmulq_f32, self, other) }
    }
    #[cfg(test)]
    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        // SAFETY: the caller has the instructions of the level.
        unsafe { four!(vdivq_f32, self, other) }
    }
    #[inline(always)]
    unsafe fn fma(self, factor: Self, term: Self) -> Self {
        // SAFETY: the caller has the instructions of the level.
        unsafe { four!(fma, self, factor, term) }
    }
    #[cfg(test)]
    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        // SAFETY: the caller has the instructions of the level.
        unsafe { four!(vminq_f32, self, other) }
    }
    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        // SAFETY: the caller has the instructions of the level.
        unsafe { four!(vmaxq_f32, self, other) }
    }
    #[inline(always)]
    unsafe fn exp2(self) -> Self {
        // SAFETY: the caller has the instructions of the level.
        unsafe { four!(exp2, self) }
    }
    #[inline(always)]
    unsafe fn reciprocal(self) -> Self {
        // SAFETY: the caller has the instructions of the level.
        unsafe { four!(reciprocal, self) }
    }
    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            let four = vaddq_f32(vaddq_f32(self.0, self.2), vaddq_f32(self.1, self.3));
            vpadds_f32(vadd_f32(vget_low_f32(four), vget_high_f32(four)))
        }
    }
}
