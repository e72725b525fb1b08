//! Compute on 16 configurations at once: one floating-point number of each to a lane.
//!
//! Networks are written once over [`Vector`] and compiled for AVX-512, for AVX2 with FMA and for plain code;
//! tests instantiate them in double precision. Lanes never mix except in [`Vector::sum`], so what a
//! configuration gets does not depend on its neighbours in the vector.

use super::lanes::{Avx2, Avx512, Portable};

/// Configurations per vector.
pub(crate) const WIDTH: usize = 16;

/// A floating-point number that networks can be computed in.
pub(crate) trait Real:
    Copy + Default + Send + Sync + std::fmt::Debug + std::ops::AddAssign + 'static
{
    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
}

impl Real for f32 {
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value as f32
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
}

impl Real for f64 {
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
}

/// Work that is worth a function of its own: see [`Vector::call`].
pub(crate) trait Job<V> {
    /// Do it; implementations are `#[inline(always)]`.
    unsafe fn run(self);
}

/// Sixteen numbers in registers.
///
/// # Safety
/// The methods may only be called where the vector's instructions exist; memory arguments are checked
/// slices.
pub(crate) trait Vector: Copy + Send + Sync + 'static {
    type Scalar: Real;
    /// Vectors that fit in the processor's registers.
    const REGISTERS: usize;
    unsafe fn splat(value: Self::Scalar) -> Self;
    /// The first 16 numbers of `from`.
    #[cfg(test)]
    unsafe fn load(from: &[Self::Scalar]) -> Self;
    /// Into the first 16 numbers of `to`.
    #[cfg(test)]
    unsafe fn store(self, to: &mut [Self::Scalar]);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    #[cfg(test)]
    unsafe fn div(self, other: Self) -> Self;
    /// `self * factor + term`.
    unsafe fn fma(self, factor: Self, term: Self) -> Self;
    #[cfg(test)]
    unsafe fn min(self, other: Self) -> Self;
    unsafe fn max(self, other: Self) -> Self;
    /// `2^self`, to 2e-7 in single precision, for arguments from -126 to 126; beyond, the value there.
    unsafe fn exp2(self) -> Self;
    /// `1 / self`, to 1e-7 in single precision.
    unsafe fn reciprocal(self) -> Self;
    /// The sum of the lanes, in a fixed order.
    unsafe fn sum(self) -> Self::Scalar;
    /// Run a job in a function of its own, compiled for the vector's instructions.
    ///
    /// Everything else is inlined into one function per level, and a large loop would be compiled again wherever it
    /// is used.
    unsafe fn call(job: impl Job<Self>);

    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { Self::splat(Self::Scalar::default()) }
    }

    #[inline(always)]
    unsafe fn constant(value: f64) -> Self {
        unsafe { Self::splat(Self::Scalar::from_f64(value)) }
    }

    /// `e^self`.
    #[inline(always)]
    unsafe fn exp(self) -> Self {
        unsafe { self.mul(Self::constant(std::f64::consts::LOG2_E)).exp2() }
    }

    /// `1 / (1 + e^-self)`.
    #[inline(always)]
    unsafe fn sigmoid(self) -> Self {
        unsafe {
            let z = self.mul(Self::constant(-std::f64::consts::LOG2_E));
            Self::constant(1.0).add(z.exp2()).reciprocal()
        }
    }

    /// `self * sigmoid(self)`.
    #[inline(always)]
    unsafe fn silu(self) -> Self {
        unsafe { self.mul(self.sigmoid()) }
    }

    /// The derivative of [`silu`](Self::silu): `s (1 + self (1 - s))` with `s = sigmoid(self)`.
    #[inline(always)]
    unsafe fn silu_slope(self) -> Self {
        unsafe {
            let s = self.sigmoid();
            let one = Self::constant(1.0);
            s.mul(self.fma(one.sub(s), one))
        }
    }
}

/// See vectors of a level in aligned arrays.
#[inline(always)]
pub(crate) fn cast<L: Floats>(arrays: &[Array<f32>]) -> &[L::V] {
    const { assert!(size_of::<L::V>() == size_of::<Array<f32>>()) };
    const { assert!(align_of::<L::V>() <= align_of::<Array<f32>>()) };
    // SAFETY: a vector is 16 numbers without padding, any bits are valid, and the alignment suffices.
    unsafe { std::slice::from_raw_parts(arrays.as_ptr().cast(), arrays.len()) }
}

/// See vectors of a level in aligned arrays, to write to.
#[inline(always)]
pub(crate) fn cast_mut<L: Floats>(arrays: &mut [Array<f32>]) -> &mut [L::V] {
    const { assert!(size_of::<L::V>() == size_of::<Array<f32>>()) };
    const { assert!(align_of::<L::V>() <= align_of::<Array<f32>>()) };
    // SAFETY: as in `cast`.
    unsafe { std::slice::from_raw_parts_mut(arrays.as_mut_ptr().cast(), arrays.len()) }
}

/// Coefficients of `(2^f - 1)/f` for f in [-1/2, 1/2]: Chebyshev interpolation, 2e-7 of `2^f`.
const EXP2: [f32; 5] =
    [std::f32::consts::LN_2, 0.240_223_5, 0.055_503_81, 0.009_666_368, 0.001_338_130_3];

/// A level's vector of single-precision numbers; implemented by the same markers as
/// [`Lanes`](super::lanes::Lanes), so that `dispatch!` serves both.
pub(crate) trait Floats: Copy {
    type V: Vector<Scalar = f32>;
}

impl Floats for Portable {
    type V = Array<f32>;
}
#[cfg(target_arch = "x86_64")]
impl Floats for Avx2 {
    type V = x86::Ymm;
}
#[cfg(target_arch = "x86_64")]
impl Floats for Avx512 {
    type V = x86::Zmm;
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

#[cfg(target_arch = "x86_64")]
mod x86 {
    #[cfg(test)]
    use super::WIDTH;
    use super::{EXP2, Job, Vector};
    use std::arch::x86_64::*;

    /// One AVX-512 register.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Zmm(__m512);

    impl Vector for Zmm {
        type Scalar = f32;
        const REGISTERS: usize = 32;

        #[inline(never)]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
        unsafe fn call(job: impl Job<Self>) {
            unsafe { job.run() }
        }

        #[inline(always)]
        unsafe fn splat(value: f32) -> Self {
            unsafe { Zmm(_mm512_set1_ps(value)) }
        }
        #[cfg(test)]
        #[inline(always)]
        unsafe fn load(from: &[f32]) -> Self {
            unsafe { Zmm(_mm512_loadu_ps(from[..WIDTH].as_ptr())) }
        }
        #[cfg(test)]
        #[inline(always)]
        unsafe fn store(self, to: &mut [f32]) {
            unsafe { _mm512_storeu_ps(to[..WIDTH].as_mut_ptr(), self.0) }
        }
        #[inline(always)]
        unsafe fn add(self, other: Self) -> Self {
            unsafe { Zmm(_mm512_add_ps(self.0, other.0)) }
        }
        #[inline(always)]
        unsafe fn sub(self, other: Self) -> Self {
            unsafe { Zmm(_mm512_sub_ps(self.0, other.0)) }
        }
        #[inline(always)]
        unsafe fn mul(self, other: Self) -> Self {
            unsafe { Zmm(_mm512_mul_ps(self.0, other.0)) }
        }
        #[cfg(test)]
        #[inline(always)]
        unsafe fn div(self, other: Self) -> Self {
            unsafe { Zmm(_mm512_div_ps(self.0, other.0)) }
        }
        #[inline(always)]
        unsafe fn fma(self, factor: Self, term: Self) -> Self {
            unsafe { Zmm(_mm512_fmadd_ps(self.0, factor.0, term.0)) }
        }
        #[cfg(test)]
        #[inline(always)]
        unsafe fn min(self, other: Self) -> Self {
            unsafe { Zmm(_mm512_min_ps(self.0, other.0)) }
        }
        #[inline(always)]
        unsafe fn max(self, other: Self) -> Self {
            unsafe { Zmm(_mm512_max_ps(self.0, other.0)) }
        }
        #[inline(always)]
        unsafe fn exp2(self) -> Self {
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
            unsafe {
                let r = _mm512_rcp14_ps(self.0);
                // One Newton step: r (2 - x r).
                Zmm(_mm512_mul_ps(r, _mm512_fnmadd_ps(self.0, r, _mm512_set1_ps(2.0))))
            }
        }
        #[inline(always)]
        unsafe fn sum(self) -> f32 {
            unsafe { _mm512_reduce_add_ps(self.0) }
        }
    }

    /// Two AVX registers.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Ymm(__m256, __m256);

    macro_rules! both {
        ($self:ident, $other:ident, $op:ident) => {
            unsafe { Ymm($op($self.0, $other.0), $op($self.1, $other.1)) }
        };
    }

    #[inline(always)]
    unsafe fn exp2(z: __m256) -> __m256 {
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
            unsafe { job.run() }
        }

        #[inline(always)]
        unsafe fn splat(value: f32) -> Self {
            unsafe { Ymm(_mm256_set1_ps(value), _mm256_set1_ps(value)) }
        }
        #[cfg(test)]
        #[inline(always)]
        unsafe fn load(from: &[f32]) -> Self {
            let from = from[..WIDTH].as_ptr();
            unsafe { Ymm(_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8))) }
        }
        #[cfg(test)]
        #[inline(always)]
        unsafe fn store(self, to: &mut [f32]) {
            let to = to[..WIDTH].as_mut_ptr();
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
            unsafe { Ymm(exp2(self.0), exp2(self.1)) }
        }
        #[inline(always)]
        unsafe fn reciprocal(self) -> Self {
            unsafe {
                let one = _mm256_set1_ps(1.0);
                Ymm(_mm256_div_ps(one, self.0), _mm256_div_ps(one, self.1))
            }
        }
        #[inline(always)]
        unsafe fn sum(self) -> f32 {
            unsafe {
                let eight = _mm256_add_ps(self.0, self.1);
                let four =
                    _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
                let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
                _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Level;
    use crate::device::lanes::dispatch;

    #[inline(always)]
    unsafe fn functions<L: Floats>(x: &[f32], out: &mut [f32]) {
        unsafe {
            let v = <L::V as Vector>::load(x);
            v.sigmoid().store(out);
            v.silu().store(&mut out[16..]);
            v.silu_slope().store(&mut out[32..]);
            v.exp().store(&mut out[48..]);
            let quotient = v.div(v.mul(v).add(<L::V as Vector>::constant(1.0)));
            quotient.min(v).max(<L::V as Vector>::zero()).store(&mut out[64..]);
            out[80] = v.sum();
        }
    }

    #[test]
    fn every_level_agrees_with_double_precision() {
        for level in Level::available() {
            for start in [-80.0, -12.0, -1.0, 0.0, 3.0, 40.0] {
                let input: Vec<f32> = (0..16).map(|i| start + i as f32 * 0.37).collect();
                let mut output = vec![0.0; 81];
                let (x, out) = (&input[..], &mut output[..]);
                dispatch!(level, functions, (x: &[f32], out: &mut [f32]));
                for (i, &x) in input.iter().enumerate() {
                    let x = f64::from(x);
                    let s = 1.0 / (1.0 + (-x).exp());
                    let close = |got: f32, want: f64, relative: f64| {
                        let error = (f64::from(got) - want).abs();
                        assert!(
                            error <= relative * want.abs() + 1e-37,
                            "{level:?} {x}: {got} {want}"
                        );
                    };
                    // The argument's rounding alone costs |x| 2^-24.
                    let allowed = 4e-7 + 2e-7 * x.abs();
                    close(output[i], s, allowed);
                    close(output[16 + i], x * s, allowed);
                    let slope = s * (1.0 + x * (1.0 - s));
                    assert!((f64::from(output[32 + i]) - slope).abs() < 2e-6 * (1.0 + x.abs()));
                    close(output[48 + i], x.exp(), allowed);
                    close(output[64 + i], (x / (x * x + 1.0)).min(x).max(0.0), 1e-6);
                }
                let sum: f64 = input.iter().map(|&x| f64::from(x)).sum();
                assert!((f64::from(output[80]) - sum).abs() < 1e-3);
            }
        }
    }
}
