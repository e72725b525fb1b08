//! Vectors in AVX2 with FMA: two registers.

use std::arch::x86_64::*;

#[cfg(test)]
use super::WIDTH;
use super::{EXP2, Floats, Job, Vector};
use crate::device::level::Avx2;

impl Floats for Avx2 {
    type V = Ymm;
}

/// Two AVX registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ymm(__m256, __m256);

macro_rules! both {
    ($self:ident, $other:ident, $op:ident) => {
        // SAFETY: the caller has the instructions of the level.
        unsafe { Ymm($op($self.0, $other.0), $op($self.1, $other.1)) }
    };
}

#[inline(always)]
unsafe fn exp2(z: __m256) -> __m256 {
    // SAFETY: the caller has the instructions of the level.
    unsafe {
        let limit = _mm256_set1_ps(126.0);
        let z = _mm256_max_ps(_mm256_sub_ps(_mm256_setzero_ps(), limit), z);
        let z = _mm256_min_ps(z, limit);
        let whole = _mm256_round_ps::<0>(z);
        let f = _mm256_sub_ps(z, whole);
        let mut p = _mm256_set1_ps(EXP2[4]);
        p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(EXP2[3]));
        p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(EXP2[2]));
        p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(EXP2[1]));
        p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(EXP2[0]));
        p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(1.0));
        let exponent = _mm256_slli_epi32::<23>(_mm256_cvtps_epi32(whole));
        _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), exponent))
    }
}

impl Vector for Ymm {
    type Scalar = f32;
    const REGISTERS: usize = 8;

    #[inline(never)]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn call(job: impl Job<Self>) {
        // SAFETY: the caller has the instructions of the level.
        unsafe { job.run() }
    }

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: the caller has the instructions of the level.
        unsafe { Ymm(_mm256_set1_ps(value), _mm256_set1_ps(value)) }
    }
    #[cfg(test)]
    #[inline(always)]
    unsafe fn load(from: &[f32]) -> Self {
        let from = from[..WIDTH].as_ptr();
        // SAFETY: the caller has the instructions of the level, and the slice has 16 numbers, as was checked.
        unsafe { Ymm(_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8))) }
    }
    #[cfg(test)]
    #[inline(always)]
    unsafe fn store(self, to: &mut [f32]) {
        let to = to[..WIDTH].as_mut_ptr();
        // SAFETY: the caller has the instructions of the level, and the slice has 16 numbers, as was checked.
        unsafe {
            _mm256_storeu_ps(to, self.0);
            _mm256_storeu_ps(to.add(8), self.1);
        }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        both!(self, other, _mm256_add_ps)
    }
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        both!(self, other, _mm256_sub_ps)
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        both!(self, other, _mm256_mul_ps)
    }
    #[cfg(test)]
    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        both!(self, other, _mm256_div_ps)
    }
    #[inline(always)]
    unsafe fn fma(self, factor: Self, term: Self) -> Self {
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            Ymm(
                _mm256_fmadd_ps(self.0, factor.0, term.0),
                _mm256_fmadd_ps(self.1, factor.1, term.1),
            )
        }
    }
    #[cfg(test)]
    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        both!(self, other, _mm256_min_ps)
    }
    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        both!(self, other, _mm256_max_ps)
    }
    #[inline(always)]
    unsafe fn exp2(self) -> Self {
        // SAFETY: the caller has the instructions of the level.
        unsafe { Ymm(exp2(self.0), exp2(self.1)) }
    }
    #[inline(always)]
    unsafe fn reciprocal(self) -> Self {
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            let one = _mm256_set1_ps(1.0);
            Ymm(_mm256_div_ps(one, self.0), _mm256_div_ps(one, self.1))
        }
    }
    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            let eight = _mm256_add_ps(self.0, self.1);
            let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
        }
    }
}
