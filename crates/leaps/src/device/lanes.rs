//! Compute on 64 walkers at once, one to a SIMD lane, with the widest instructions the processor has.
//!
//! A [`Level`] is chosen at run time. AVX-512 is written out, because values left in arrays travel through
//! memory and stall there (measured: half the time of a sweep); the other levels are plain loops over arrays,
//! compiled once per level. All levels give the same bits.

use super::philox::{self, Key};

/// Walkers per tile.
pub(crate) const LANES: usize = 64;

/// Instructions that a tile may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Whatever the build targets.
    Portable,
    /// AVX2 with fused multiplication and addition.
    Avx2,
    /// AVX-512 with byte and word instructions.
    Avx512,
}

impl Level {
    /// The widest level of this processor.
    pub fn detect() -> Level {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
            {
                return Level::Avx512;
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                return Level::Avx2;
            }
        }
        Level::Portable
    }

    /// Every level this processor can run, narrowest first.
    pub fn available() -> Vec<Level> {
        let best = Level::detect();
        [Level::Portable, Level::Avx2, Level::Avx512]
            .into_iter()
            .filter(|&level| {
                level <= best && (cfg!(target_arch = "x86_64") || level == Level::Portable)
            })
            .collect()
    }
}

/// Four random words for each lane, word first.
pub(crate) type Words = [[u32; LANES]; 4];

/// What a tile asks of the processor. Every method works on all lanes at once.
///
/// # Safety
/// The methods may only be called where the level's instructions exist.
pub(crate) trait Lanes: Copy {
    /// A byte per lane.
    type Bytes: Copy;
    /// Sixteen bits per lane.
    type Halves: Copy;

    /// The Philox blocks at `address` of walkers `address[2]..address[2] + LANES`.
    unsafe fn philox(address: [u32; 4], key: Key, out: &mut Words);
    unsafe fn load(from: &[u8; LANES]) -> Self::Bytes;
    unsafe fn store(bytes: Self::Bytes, to: &mut [u8; LANES]);
    unsafe fn zero() -> Self::Bytes;
    unsafe fn add(a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    unsafe fn xor(a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    /// `b` where `which` is 1, `a` where it is 0.
    unsafe fn select(which: Self::Bytes, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    /// 1 where `a >= b`, else 0.
    unsafe fn at_least(a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    unsafe fn widen(bytes: Self::Bytes) -> Self::Halves;
    /// `a * factor + b`.
    unsafe fn scale_add(a: Self::Halves, factor: u16, b: Self::Halves) -> Self::Halves;
    /// `sum + value` where the token is `token`, else `sum`.
    unsafe fn add_where(
        sum: Self::Halves,
        bytes: Self::Bytes,
        token: u8,
        value: u16,
    ) -> Self::Halves;
    unsafe fn store_halves(halves: Self::Halves, to: &mut [u16; LANES]);
    /// The lower (`upper = false`) or upper 16 bits of every word.
    unsafe fn half(words: &[u32; LANES], upper: bool) -> Self::Halves;
    /// `words * others = choice 2^32 + digits 2^16 + rest`, for `others` below 256.
    unsafe fn propose(words: &[u32; LANES], others: u32) -> (Self::Bytes, Self::Halves);
    /// 1 where `digits < table[index]`, and the set of lanes where the two are equal.
    ///
    /// `table.len()` is a multiple of 32 and every index is below `table.len() - 1`.
    unsafe fn below(table: &[u16], index: Self::Halves, digits: Self::Halves)
    -> (Self::Bytes, u64);
}

/// Everything but Philox as loops over arrays.
macro_rules! array_lanes {
    () => {
        type Bytes = [u8; LANES];
        type Halves = [u16; LANES];

        #[inline(always)]
        unsafe fn load(from: &[u8; LANES]) -> [u8; LANES] {
            *from
        }

        #[inline(always)]
        unsafe fn store(bytes: [u8; LANES], to: &mut [u8; LANES]) {
            *to = bytes;
        }

        #[inline(always)]
        unsafe fn zero() -> [u8; LANES] {
            [0; LANES]
        }

        #[inline(always)]
        unsafe fn add(mut a: [u8; LANES], b: [u8; LANES]) -> [u8; LANES] {
            for lane in 0..LANES {
                a[lane] = a[lane].wrapping_add(b[lane]);
            }
            a
        }

        #[inline(always)]
        unsafe fn xor(mut a: [u8; LANES], b: [u8; LANES]) -> [u8; LANES] {
            for lane in 0..LANES {
                a[lane] ^= b[lane];
            }
            a
        }

        #[inline(always)]
        unsafe fn select(which: [u8; LANES], mut a: [u8; LANES], b: [u8; LANES]) -> [u8; LANES] {
            for lane in 0..LANES {
                a[lane] = if which[lane] == 1 { b[lane] } else { a[lane] };
            }
            a
        }

        #[inline(always)]
        unsafe fn at_least(mut a: [u8; LANES], b: [u8; LANES]) -> [u8; LANES] {
            for lane in 0..LANES {
                a[lane] = u8::from(a[lane] >= b[lane]);
            }
            a
        }

        #[inline(always)]
        unsafe fn widen(bytes: [u8; LANES]) -> [u16; LANES] {
            let mut halves = [0; LANES];
            for lane in 0..LANES {
                halves[lane] = u16::from(bytes[lane]);
            }
            halves
        }

        #[inline(always)]
        unsafe fn scale_add(mut a: [u16; LANES], factor: u16, b: [u16; LANES]) -> [u16; LANES] {
            for lane in 0..LANES {
                a[lane] = a[lane].wrapping_mul(factor).wrapping_add(b[lane]);
            }
            a
        }

        #[inline(always)]
        unsafe fn add_where(
            mut sum: [u16; LANES],
            bytes: [u8; LANES],
            token: u8,
            value: u16,
        ) -> [u16; LANES] {
            for lane in 0..LANES {
                sum[lane] += if bytes[lane] == token { value } else { 0 };
            }
            sum
        }

        #[inline(always)]
        unsafe fn store_halves(halves: [u16; LANES], to: &mut [u16; LANES]) {
            *to = halves;
        }

        #[inline(always)]
        unsafe fn half(words: &[u32; LANES], upper: bool) -> [u16; LANES] {
            let shift = if upper { 16 } else { 0 };
            let mut halves = [0; LANES];
            for lane in 0..LANES {
                halves[lane] = (words[lane] >> shift) as u16;
            }
            halves
        }

        #[inline(always)]
        unsafe fn propose(words: &[u32; LANES], others: u32) -> ([u8; LANES], [u16; LANES]) {
            let (mut choice, mut digits) = ([0; LANES], [0; LANES]);
            for lane in 0..LANES {
                let upper =
                    (words[lane] >> 16) * others + (((words[lane] & 0xFFFF) * others) >> 16);
                choice[lane] = (upper >> 16) as u8;
                digits[lane] = upper as u16;
            }
            (choice, digits)
        }

        #[inline(always)]
        unsafe fn below(
            table: &[u16],
            index: [u16; LANES],
            digits: [u16; LANES],
        ) -> ([u8; LANES], u64) {
            let (mut less, mut equal) = ([0; LANES], 0);
            for lane in 0..LANES {
                let threshold = table[index[lane] as usize];
                less[lane] = u8::from(digits[lane] < threshold);
                equal |= u64::from(digits[lane] == threshold) << lane;
            }
            (less, equal)
        }
    };
}

/// Plain code.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl Lanes for Portable {
    array_lanes!();

    #[inline(always)]
    unsafe fn philox(address: [u32; 4], key: Key, out: &mut Words) {
        for lane in 0..LANES {
            let walker = address[2].wrapping_add(lane as u32);
            let block = philox::philox4x32([address[0], address[1], walker, address[3]], key);
            for (words, word) in out.iter_mut().zip(block) {
                words[lane] = word;
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[path = "lanes_x86.rs"]
mod x86;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512};

/// Call `$body::<L>($args)` with the [`Lanes`] of `$level`, compiled for its instructions.
macro_rules! dispatch {
    ($level:expr, $body:ident, ($($arg:ident : $ty:ty),* $(,)?)$( -> $out:ty)?) => {{
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
        fn avx512($($arg: $ty),*)$( -> $out)? {
            unsafe { $body::<$crate::device::lanes::Avx512>($($arg),*) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        fn avx2($($arg: $ty),*)$( -> $out)? {
            unsafe { $body::<$crate::device::lanes::Avx2>($($arg),*) }
        }
        match $level {
            // SAFETY: a level beyond Portable comes from `Level::detect` on this processor.
            #[cfg(target_arch = "x86_64")]
            $crate::device::Level::Avx512 => unsafe { avx512($($arg),*) },
            #[cfg(target_arch = "x86_64")]
            $crate::device::Level::Avx2 => unsafe { avx2($($arg),*) },
            // SAFETY: plain code runs everywhere.
            _ => unsafe { $body::<$crate::device::lanes::Portable>($($arg),*) },
        }
    }};
}
pub(crate) use dispatch;

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(always)]
    unsafe fn block<L: Lanes>(address: [u32; 4], key: Key, out: &mut Words) {
        unsafe { L::philox(address, key, out) }
    }

    #[inline(always)]
    unsafe fn look_up<L: Lanes>(
        table: &[u16],
        bytes: &[u8; LANES],
        words: &[u32; LANES],
        less: &mut [u8; LANES],
        index: &mut [u16; LANES],
    ) -> u64 {
        unsafe {
            let bytes = L::load(bytes);
            let sum = L::scale_add(L::widen(bytes), 3, L::widen(L::add(bytes, bytes)));
            let sum = L::add_where(sum, bytes, 2, 3);
            let (choice, digits) = L::propose(words, 200);
            let pick = L::at_least(choice, bytes);
            let (below, equal) = L::below(table, sum, digits);
            let (upper, ties) = L::below(table, sum, L::half(words, true));
            let both = L::add(L::select(pick, below, choice), L::xor(upper, L::zero()));
            L::store(both, less);
            L::store_halves(sum, index);
            equal ^ ties.rotate_left(7)
        }
    }

    #[test]
    fn all_levels_give_the_same_bits() {
        let address = [5, 6, u32::MAX - 20, 7];
        let key = [0xDEAD_BEEF, 0x1234_5678];
        let mut expected = [[0; LANES]; 4];
        unsafe { Portable::philox(address, key, &mut expected) };
        for level in Level::available() {
            let mut words = [[0; LANES]; 4];
            let out = &mut words;
            dispatch!(level, block, (address: [u32; 4], key: Key, out: &mut Words));
            assert_eq!(words, expected, "{level:?}");
            for entries in [32usize, 64, 96, 160, 256, 288, 4096] {
                let table: Vec<u16> =
                    (0..entries).map(|i| (i as u16).wrapping_mul(40_503)).collect();
                let bytes = std::array::from_fn(|l| (l % ((entries - 1) / 5).min(50)) as u8);
                let mut words = expected[0];
                words[3] = u32::from(table[bytes[3] as usize * 5]) << 16; // a tie
                let (mut want, mut got) = (([9; LANES], [9; LANES]), ([8; LANES], [8; LANES]));
                let t = &table[..];
                let ties =
                    unsafe { look_up::<Portable>(t, &bytes, &words, &mut want.0, &mut want.1) };
                assert_ne!(ties, 0);
                let (b, w, less, index) = (&bytes, &words, &mut got.0, &mut got.1);
                let equal = dispatch!(level, look_up, (
                    t: &[u16],
                    b: &[u8; LANES],
                    w: &[u32; LANES],
                    less: &mut [u8; LANES],
                    index: &mut [u16; LANES],
                ) -> u64);
                assert_eq!((got, equal), (want, ties), "{level:?} {entries}");
            }
        }
    }
}
