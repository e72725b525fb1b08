//! Vectors in AVX-512: one register.

use std::arch::x86_64::*;

#[cfg(test)]
use super::WIDTH;
use super::{EXP2, Floats, Job, Vector};
use crate::device::level::Avx512;

impl Floats for Avx512 {
    type V = Zmm;
}

/// One AVX-512 register.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Zmm(__m512);

impl Vector for Zmm {
    type Scalar = f32;
    const REGISTERS: usize = 32;

    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn call(job: impl Job<Self>) {
        // SAFETY: the caller has the instructions of the level.
        unsafe { job.run() }
    }

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: the caller has the instructions of the level.
        unsafe { Zmm(_mm512_set1_ps(value)) }
    }
    #[cfg(test)]
    #[inline(always)]
    unsafe fn load(from: &[f32]) -> Self {
        // SAFETY: the caller has the instructions of the level, and the slice has 16 numbers, as was checked.
        unsafe { Zmm(_mm512_loadu_ps(from[..WIDTH].as_ptr())) }
    }
    #[cfg(test)]
    #[inline(always)]
    unsafe fn store(self, to: &mut [f32]) {
        // SAFETY: the caller has the instructions of the level, and the slice has 16 numbers, as was checked.
        unsafe { _mm512_storeu_ps(to[..WIDTH].as_mut_ptr(), self.0) }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: the caller has the instructions of the level.
        unsafe { Zmm(_mm512_add_ps(self.0, other.0)) }
    }
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        // SAFETY: the caller has the instructions of the level.
        unsafe { Zmm(_mm512_sub_ps(self.0, other.0)) }
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        // SAFETY: the caller has the instructions of the level.
        unsafe { Zmm(_mm512_mul_ps(self.0, other.0)) }
    }
    #[cfg(test)]
    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        // SAFETY: the caller has the instructions of the level.
        unsafe { Zmm(_mm512_div_ps(self.0, other.0)) }
    }
    #[inline(always)]
    unsafe fn fma(self, factor: Self, term: Self) -> Self {
        // SAFETY: the caller has the instructions of the level.
        unsafe { Zmm(_mm512_fmadd_ps(self.0, factor.0, term.0)) }
    }
    #[cfg(test)]
    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        // SAFETY: the caller has the instructions of the level.
        unsafe { Zmm(_mm512_min_ps(self.0, other.0)) }
    }
    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        // SAFETY: the caller has the instructions of the level.
        unsafe { Zmm(_mm512_max_ps(self.0, other.0)) }
    }
    #[inline(always)]
    unsafe fn exp2(self) -> Self {
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            let limit = _mm512_set1_ps(126.0);
            let z = _mm512_max_ps(_mm512_sub_ps(_mm512_setzero_ps(), limit), self.0);
            let z = _mm512_min_ps(z, limit);
            let whole = _mm512_roundscale_ps::<0>(z);
            let f = _mm512_sub_ps(z, whole);
            let mut p = _mm512_set1_ps(EXP2[4]);
            p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(EXP2[3]));
            p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(EXP2[2]));
            p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(EXP2[1]));
            p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(EXP2[0]));
            p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0));
            Zmm(_mm512_scalef_ps(p, whole))
        }
    }
    #[inline(always)]
    unsafe fn reciprocal(self) -> Self {
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            let r = _mm512_rcp14_ps(self.0);
            // One Newton step: r (2 - x r).
            Zmm(_mm512_mul_ps(r, _mm512_fnmadd_ps(self.0, r, _mm512_set1_ps(2.0))))
        }
    }
    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        // SAFETY: the caller has the instructions of the level.
        unsafe { _mm512_reduce_add_ps(self.0) }
    }
}
