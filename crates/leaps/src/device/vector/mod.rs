//! Arithmetic on 16 configurations at once: one floating-point number of each to a lane.
//!
//! Networks are written once over [`Vector`] and compiled for every [`SimdLevel`](super::SimdLevel); tests instantiate them in double
//! precision. Lanes never mix except in [`Vector::sum`], so what a configuration gets does not depend on its neighbours in the
//! vector.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod plain;

pub(crate) use plain::Array;

/// Configurations per vector.
pub(crate) const WIDTH: usize = 16;

/// A floating-point number that networks can be computed in.
pub(crate) trait Real:
    Copy + Default + Send + Sync + std::fmt::Debug + std::ops::AddAssign + 'static
{
    /// Added to a number of up to 2^22 and subtracted again, it rounds the number to a whole one.
    const ROUNDING: f64;
    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
}

impl Real for f32 {
    const ROUNDING: f64 = 1.5 * (1u64 << 23) as f64;
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
    const ROUNDING: f64 = 1.5 * (1u64 << 52) as f64;
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
    /// Vectors that fit in the CPU's registers.
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
        // SAFETY: the caller has the instructions of the vector.
        unsafe { Self::splat(Self::Scalar::default()) }
    }

    #[inline(always)]
    unsafe fn constant(value: f64) -> Self {
        // SAFETY: the caller has the instructions of the vector.
        unsafe { Self::splat(Self::Scalar::from_f64(value)) }
    }

    /// `e^self`.
    #[inline(always)]
    unsafe fn exp(self) -> Self {
        // SAFETY: the caller has the instructions of the vector.
        unsafe { self.mul(Self::constant(std::f64::consts::LOG2_E)).exp2() }
    }

    /// `1 / (1 + e^-self)`.
    #[inline(always)]
    unsafe fn sigmoid(self) -> Self {
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            let z = self.mul(Self::constant(-std::f64::consts::LOG2_E));
            Self::constant(1.0).add(z.exp2()).reciprocal()
        }
    }

    /// `self * sigmoid(self)`.
    #[inline(always)]
    unsafe fn silu(self) -> Self {
        // SAFETY: the caller has the instructions of the vector.
        unsafe { self.mul(self.sigmoid()) }
    }

    /// The derivative of [`silu`](Self::silu): `s (1 + self (1 - s))` with `s = sigmoid(self)`.
    #[inline(always)]
    unsafe fn silu_slope(self) -> Self {
        // SAFETY: the caller has the instructions of the vector.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::SimdLevel;
    use crate::device::level::dispatch;

    #[inline(always)]
    unsafe fn functions<L: Floats>(x: &[f32], out: &mut [f32]) {
        // SAFETY: the caller has the instructions of the vector.
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
        for level in SimdLevel::available() {
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

    /// NEON has the operations of AVX2 in the same order: what a network computes is the same on both. (AVX-512 estimates
    /// reciprocals and plain code does not fuse, so theirs are other bits.)
    #[test]
    fn avx2_and_neon_give_the_same_bits() {
        let fused = [SimdLevel::Avx2, SimdLevel::Neon];
        for level in SimdLevel::available().into_iter().filter(|level| fused.contains(level)) {
            let mut hasher = blake3::Hasher::new();
            for start in [-130.0, -12.0, -1.0, 0.0, 3.0, 40.0, 127.0] {
                let input: Vec<f32> = (0..16).map(|i| start + i as f32 * 0.37).collect();
                let mut output = vec![0.0; 81];
                let (x, out) = (&input[..], &mut output[..]);
                dispatch!(level, functions, (x: &[f32], out: &mut [f32]));
                output.iter().for_each(|y| _ = hasher.update(&y.to_bits().to_le_bytes()));
            }
            let bits = hasher.finalize().to_hex();
            assert_eq!(&bits[..16], "e484560976204718", "{level:?}");
        }
    }
}
