//! Compute on 64 walkers at once, one to a SIMD lane, with the widest instructions the processor has.
//!
//! A [`Level`] is chosen at run time. The two operations that compilers do not vectorise well, Philox
//! and table look-ups, are written per level; the rest is plain loops over arrays of [`LANES`], compiled
//! once per level. All levels give the same bits.

use super::philox::{self, Key};

/// Walkers per tile.
pub(crate) const LANES: usize = 64;

/// Instructions that a tile may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Whatever the build targets.
    Portable,
    /// AVX2.
    Avx2,
    /// AVX-512 with byte, word and doubleword instructions.
    Avx512,
}

impl Level {
    /// The widest level of this processor.
    pub fn detect() -> Level {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
            {
                return Level::Avx512;
            }
            if is_x86_feature_detected!("avx2") {
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

/// The operations written per level.
///
/// # Safety
/// The methods may only be called where the level's instructions exist.
pub(crate) trait Lanes: Copy {
    /// The Philox blocks at `address` of walkers `address[2]..address[2] + LANES`.
    unsafe fn philox(address: [u32; 4], key: Key, out: &mut Words);

    /// `out[l] = words[l] < table[index[l]]`. Every index is below `table.len()`, which is a multiple of
    /// 16.
    unsafe fn below(
        table: &[u32],
        index: &[u16; LANES],
        words: &[u32; LANES],
        out: &mut [u8; LANES],
    );
}

/// Plain code.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl Lanes for Portable {
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

    #[inline(always)]
    unsafe fn below(
        table: &[u32],
        index: &[u16; LANES],
        words: &[u32; LANES],
        out: &mut [u8; LANES],
    ) {
        for lane in 0..LANES {
            out[lane] = u8::from(words[lane] < table[index[lane] as usize]);
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Key, LANES, Lanes, Words, philox};
    use std::arch::x86_64::*;

    /// AVX-512.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx512;

    impl Lanes for Avx512 {
        #[inline(always)]
        unsafe fn philox(address: [u32; 4], key: Key, out: &mut Words) {
            unsafe {
                let iota = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
                let m0 = _mm512_set1_epi64(i64::from(philox::MULTIPLIER[0]));
                let m1 = _mm512_set1_epi64(i64::from(philox::MULTIPLIER[1]));
                let odd = 0xAAAA;
                // Two independent groups of 16 lanes hide the latency of the multiplications.
                for half in 0..2 {
                    let first = address[2].wrapping_add(32 * half);
                    let mut c = [[_mm512_setzero_si512(); 4]; 2];
                    for (g, c) in c.iter_mut().enumerate() {
                        let base = first.wrapping_add(16 * g as u32);
                        *c = [
                            _mm512_set1_epi32(address[0] as i32),
                            _mm512_set1_epi32(address[1] as i32),
                            _mm512_add_epi32(_mm512_set1_epi32(base as i32), iota),
                            _mm512_set1_epi32(address[3] as i32),
                        ];
                    }
                    let mut key = key;
                    for _ in 0..philox::ROUNDS {
                        let k0 = _mm512_set1_epi32(key[0] as i32);
                        let k1 = _mm512_set1_epi32(key[1] as i32);
                        for c in &mut c {
                            // Products of the even and of the odd lanes; each is (high, low).
                            let even0 = _mm512_mul_epu32(c[0], m0);
                            let odd0 = _mm512_mul_epu32(_mm512_srli_epi64::<32>(c[0]), m0);
                            let even1 = _mm512_mul_epu32(c[2], m1);
                            let odd1 = _mm512_mul_epu32(_mm512_srli_epi64::<32>(c[2]), m1);
                            let high0 =
                                _mm512_mask_mov_epi32(_mm512_srli_epi64::<32>(even0), odd, odd0);
                            let high1 =
                                _mm512_mask_mov_epi32(_mm512_srli_epi64::<32>(even1), odd, odd1);
                            let low0 =
                                _mm512_mask_mov_epi32(even0, odd, _mm512_slli_epi64::<32>(odd0));
                            let low1 =
                                _mm512_mask_mov_epi32(even1, odd, _mm512_slli_epi64::<32>(odd1));
                            *c = [
                                _mm512_ternarylogic_epi32::<0x96>(high1, c[1], k0),
                                low1,
                                _mm512_ternarylogic_epi32::<0x96>(high0, c[3], k1),
                                low0,
                            ];
                        }
                        key = philox::bump(key);
                    }
                    for (g, c) in c.iter().enumerate() {
                        for (words, c) in out.iter_mut().zip(c) {
                            let at = words.as_mut_ptr().add(32 * half as usize + 16 * g);
                            _mm512_storeu_si512(at.cast(), *c);
                        }
                    }
                }
            }
        }

        #[inline(always)]
        unsafe fn below(
            table: &[u32],
            index: &[u16; LANES],
            words: &[u32; LANES],
            out: &mut [u8; LANES],
        ) {
            unsafe {
                let entries = table.as_ptr();
                let low = _mm512_loadu_si512(entries.cast());
                let high =
                    if table.len() > 16 { _mm512_loadu_si512(entries.add(16).cast()) } else { low };
                for g in 0..LANES / 16 {
                    let index = _mm512_cvtepu16_epi32(_mm256_loadu_si256(
                        index.as_ptr().add(16 * g).cast(),
                    ));
                    let threshold = match table.len() {
                        16 => _mm512_permutexvar_epi32(index, low),
                        32 => _mm512_permutex2var_epi32(low, index, high),
                        _ => _mm512_i32gather_epi32::<4>(index, entries.cast()),
                    };
                    let word = _mm512_loadu_si512(words.as_ptr().add(16 * g).cast());
                    let mask = _mm512_cmplt_epu32_mask(word, threshold);
                    _mm_storeu_si128(
                        out.as_mut_ptr().add(16 * g).cast(),
                        _mm_maskz_set1_epi8(mask, 1),
                    );
                }
            }
        }
    }

    /// AVX2.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx2;

    impl Lanes for Avx2 {
        #[inline(always)]
        unsafe fn philox(address: [u32; 4], key: Key, out: &mut Words) {
            unsafe {
                let iota = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
                let m0 = _mm256_set1_epi64x(i64::from(philox::MULTIPLIER[0]));
                let m1 = _mm256_set1_epi64x(i64::from(philox::MULTIPLIER[1]));
                for g in 0..LANES / 8 {
                    let base = address[2].wrapping_add(8 * g as u32);
                    let mut c = [
                        _mm256_set1_epi32(address[0] as i32),
                        _mm256_set1_epi32(address[1] as i32),
                        _mm256_add_epi32(_mm256_set1_epi32(base as i32), iota),
                        _mm256_set1_epi32(address[3] as i32),
                    ];
                    let mut key = key;
                    for _ in 0..philox::ROUNDS {
                        let k0 = _mm256_set1_epi32(key[0] as i32);
                        let k1 = _mm256_set1_epi32(key[1] as i32);
                        let even0 = _mm256_mul_epu32(c[0], m0);
                        let odd0 = _mm256_mul_epu32(_mm256_srli_epi64::<32>(c[0]), m0);
                        let even1 = _mm256_mul_epu32(c[2], m1);
                        let odd1 = _mm256_mul_epu32(_mm256_srli_epi64::<32>(c[2]), m1);
                        let high0 =
                            _mm256_blend_epi32::<0xAA>(_mm256_srli_epi64::<32>(even0), odd0);
                        let high1 =
                            _mm256_blend_epi32::<0xAA>(_mm256_srli_epi64::<32>(even1), odd1);
                        let low0 = _mm256_blend_epi32::<0xAA>(even0, _mm256_slli_epi64::<32>(odd0));
                        let low1 = _mm256_blend_epi32::<0xAA>(even1, _mm256_slli_epi64::<32>(odd1));
                        c = [
                            _mm256_xor_si256(_mm256_xor_si256(high1, c[1]), k0),
                            low1,
                            _mm256_xor_si256(_mm256_xor_si256(high0, c[3]), k1),
                            low0,
                        ];
                        key = philox::bump(key);
                    }
                    for (words, c) in out.iter_mut().zip(c) {
                        _mm256_storeu_si256(words.as_mut_ptr().add(8 * g).cast(), c);
                    }
                }
            }
        }

        #[inline(always)]
        unsafe fn below(
            table: &[u32],
            index: &[u16; LANES],
            words: &[u32; LANES],
            out: &mut [u8; LANES],
        ) {
            unsafe {
                let flip = _mm256_set1_epi32(i32::MIN); // unsigned comparison through signed
                let one = _mm256_set1_epi32(1);
                for g in 0..LANES / 8 {
                    let index =
                        _mm256_cvtepu16_epi32(_mm_loadu_si128(index.as_ptr().add(8 * g).cast()));
                    let threshold = _mm256_i32gather_epi32::<4>(table.as_ptr().cast(), index);
                    let word = _mm256_loadu_si256(words.as_ptr().add(8 * g).cast());
                    let less = _mm256_cmpgt_epi32(
                        _mm256_xor_si256(threshold, flip),
                        _mm256_xor_si256(word, flip),
                    );
                    let bits = _mm256_and_si256(less, one);
                    let packed = _mm256_packus_epi16(_mm256_packus_epi32(bits, bits), bits);
                    let low = _mm256_extract_epi32::<0>(packed) as u32;
                    let high = _mm256_extract_epi32::<4>(packed) as u32;
                    let both = u64::from(low) | u64::from(high) << 32;
                    out[8 * g..8 * g + 8].copy_from_slice(&both.to_le_bytes());
                }
            }
        }
    }
}

/// Call `$body::<L>($args)` with the [`Lanes`] of `$level`, compiled for its instructions.
macro_rules! dispatch {
    ($level:expr, $body:ident, ($($arg:ident : $ty:ty),* $(,)?)) => {{
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
        fn avx512($($arg: $ty),*) {
            unsafe { $body::<$crate::device::lanes::Avx512>($($arg),*) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        fn avx2($($arg: $ty),*) {
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
        table: &[u32],
        index: &[u16; LANES],
        words: &[u32; LANES],
        out: &mut [u8; LANES],
    ) {
        unsafe { L::below(table, index, words, out) }
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
            for entries in [16usize, 32, 48, 1024] {
                let table: Vec<u32> = (0..entries)
                    .map(|i| (i as u32).wrapping_mul(0x9E37_79B9) ^ u32::from(i == 3))
                    .collect();
                let index: [u16; LANES] = std::array::from_fn(|l| (l * 37 % entries) as u16);
                let mut words = expected[0];
                words[3] = table[index[3] as usize]; // equal is not below
                words[4] = table[index[4] as usize].wrapping_sub(1);
                let (mut want, mut got) = ([9; LANES], [9; LANES]);
                unsafe { Portable::below(&table, &index, &words, &mut want) };
                let (t, i, w, out) = (&table[..], &index, &words, &mut got);
                dispatch!(level, look_up, (t: &[u32], i: &[u16; LANES], w: &[u32; LANES], out: &mut [u8; LANES]));
                assert_eq!(got, want, "{level:?} {entries}");
            }
        }
    }
}
