//! Lanes in AVX-512: two registers of 16-bit numbers, one of bytes.

use std::arch::x86_64::*;

use super::{LANES, Lanes, Words};
use crate::device::level::Avx512;
use crate::device::philox::{self, Key};

impl Lanes for Avx512 {
    type Bytes = __m512i;
    type Halves = [__m512i; 2];

    #[inline(always)]
    unsafe fn philox(address: [u32; 4], key: Key, out: &mut Words) {
        // SAFETY: the caller has the instructions of the level, and arrays have the lengths that are read or written.
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
                        let low0 = _mm512_mask_mov_epi32(even0, odd, _mm512_slli_epi64::<32>(odd0));
                        let low1 = _mm512_mask_mov_epi32(even1, odd, _mm512_slli_epi64::<32>(odd1));
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
    unsafe fn load(from: &[u8; LANES]) -> __m512i {
        // SAFETY: the caller has the instructions of the level, and arrays have the lengths that are read or written.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }

    #[inline(always)]
    unsafe fn store(bytes: __m512i, to: &mut [u8; LANES]) {
        // SAFETY: the caller has the instructions of the level, and arrays have the lengths that are read or written.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), bytes) }
    }

    #[inline(always)]
    unsafe fn zero() -> __m512i {
        // SAFETY: the caller has the instructions of the level.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    unsafe fn add(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the caller has the instructions of the level.
        unsafe { _mm512_add_epi8(a, b) }
    }

    #[inline(always)]
    unsafe fn xor(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the caller has the instructions of the level.
        unsafe { _mm512_xor_si512(a, b) }
    }

    #[inline(always)]
    unsafe fn select(which: __m512i, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the caller has the instructions of the level.
        unsafe { _mm512_mask_mov_epi8(a, _mm512_test_epi8_mask(which, which), b) }
    }

    #[inline(always)]
    unsafe fn at_least(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the caller has the instructions of the level.
        unsafe { _mm512_maskz_set1_epi8(_mm512_cmpge_epu8_mask(a, b), 1) }
    }

    #[inline(always)]
    unsafe fn widen(bytes: __m512i) -> [__m512i; 2] {
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            [
                _mm512_cvtepu8_epi16(_mm512_castsi512_si256(bytes)),
                _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64::<1>(bytes)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn scale_add(a: [__m512i; 2], factor: u16, b: [__m512i; 2]) -> [__m512i; 2] {
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            let factor = _mm512_set1_epi16(factor as i16);
            [
                _mm512_add_epi16(_mm512_mullo_epi16(a[0], factor), b[0]),
                _mm512_add_epi16(_mm512_mullo_epi16(a[1], factor), b[1]),
            ]
        }
    }

    #[inline(always)]
    unsafe fn add_where(
        sum: [__m512i; 2],
        bytes: __m512i,
        site_value: u8,
        value: u16,
    ) -> [__m512i; 2] {
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            let here = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(site_value as i8));
            let value = _mm512_set1_epi16(value as i16);
            [
                _mm512_mask_add_epi16(sum[0], here as u32, sum[0], value),
                _mm512_mask_add_epi16(sum[1], (here >> 32) as u32, sum[1], value),
            ]
        }
    }

    #[inline(always)]
    unsafe fn look_up(table: &[u8], bytes: __m512i) -> __m512i {
        // SAFETY: the caller has the instructions of the level, and parts of 16 entries are read.
        unsafe {
            let fifteen = _mm512_set1_epi8(15);
            let at = _mm512_and_si512(bytes, fifteen);
            let page = _mm512_and_si512(_mm512_srli_epi16::<4>(bytes), fifteen);
            let mut found = _mm512_setzero_si512();
            for (number, part) in table.as_chunks::<16>().0.iter().enumerate() {
                let part = _mm512_broadcast_i32x4(_mm_loadu_si128(part.as_ptr().cast()));
                if number == 0 {
                    found = _mm512_shuffle_epi8(part, at);
                    continue;
                }
                let here = _mm512_cmpeq_epi8_mask(page, _mm512_set1_epi8(number as i8));
                found = _mm512_mask_shuffle_epi8(found, here, part, at);
            }
            found
        }
    }

    #[inline(always)]
    unsafe fn store_halves(halves: [__m512i; 2], to: &mut [u16; LANES]) {
        // SAFETY: the caller has the instructions of the level, and arrays have the lengths that are read or written.
        unsafe {
            _mm512_storeu_si512(to.as_mut_ptr().cast(), halves[0]);
            _mm512_storeu_si512(to.as_mut_ptr().add(32).cast(), halves[1]);
        }
    }

    #[inline(always)]
    unsafe fn half(words: &[u32; LANES], upper: bool) -> [__m512i; 2] {
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            let [a, b, c, d] = quarters(words);
            if upper {
                let s = |v| _mm512_srli_epi32::<16>(v);
                [join(s(a), s(b)), join(s(c), s(d))]
            } else {
                [join(a, b), join(c, d)]
            }
        }
    }

    #[inline(always)]
    unsafe fn propose(words: &[u32; LANES], others: u32) -> (__m512i, [__m512i; 2]) {
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            let others = _mm512_set1_epi32(others as i32);
            let lower = _mm512_set1_epi32(0xFFFF);
            // Not `map`: a closure is not compiled for these instructions unless it is inlined.
            let mut upper = quarters(words);
            for word in &mut upper {
                let low = _mm512_mullo_epi32(_mm512_and_si512(*word, lower), others);
                let high = _mm512_mullo_epi32(_mm512_srli_epi32::<16>(*word), others);
                *word = _mm512_add_epi32(high, _mm512_srli_epi32::<16>(low));
            }
            let byte = |v| _mm512_cvtepi32_epi8(_mm512_srli_epi32::<16>(v));
            let low = _mm256_set_m128i(byte(upper[1]), byte(upper[0]));
            let high = _mm256_set_m128i(byte(upper[3]), byte(upper[2]));
            let choice = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
            (choice, [join(upper[0], upper[1]), join(upper[2], upper[3])])
        }
    }

    #[inline(always)]
    unsafe fn below(table: &[u16], index: [__m512i; 2], digits: [__m512i; 2]) -> (__m512i, u64) {
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            let low = thresholds(table, index[0]);
            let high = thresholds(table, index[1]);
            let less = u64::from(_mm512_cmplt_epu16_mask(digits[0], low))
                | u64::from(_mm512_cmplt_epu16_mask(digits[1], high)) << 32;
            let equal = u64::from(_mm512_cmpeq_epu16_mask(digits[0], low))
                | u64::from(_mm512_cmpeq_epu16_mask(digits[1], high)) << 32;
            (_mm512_maskz_set1_epi8(less, 1), equal)
        }
    }
}

#[inline(always)]
unsafe fn quarters(words: &[u32; LANES]) -> [__m512i; 4] {
    // SAFETY: the caller has the instructions of the level, and arrays have the lengths that are read or written.
    unsafe {
        let part = |i: usize| _mm512_loadu_si512(words.as_ptr().add(16 * i).cast());
        [part(0), part(1), part(2), part(3)]
    }
}

/// The lower 16 bits of two times 16 words.
#[inline(always)]
unsafe fn join(a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: the caller has the instructions of the level.
    unsafe {
        let low = _mm512_castsi256_si512(_mm512_cvtepi32_epi16(a));
        _mm512_inserti64x4::<1>(low, _mm512_cvtepi32_epi16(b))
    }
}

/// `table[index]` for 32 indices: permutations of registers up to 256 entries, then gathers.
#[inline(always)]
unsafe fn thresholds(table: &[u16], index: __m512i) -> __m512i {
    // SAFETY: the caller has the instructions of the level. It loads whole blocks of 32 entries, and indices below
    // `table.len() - 1` keep gathers of two entries inside.
    unsafe {
        let entries = table.as_ptr();
        let part = |i: usize| _mm512_loadu_si512(entries.add(32 * i).cast());
        match table.len() / 32 {
            1 => _mm512_permutexvar_epi16(index, part(0)),
            2 => _mm512_permutex2var_epi16(part(0), index, part(1)),
            parts @ 3..=8 => {
                let mut found = _mm512_permutex2var_epi16(part(0), index, part(1));
                let page = _mm512_srli_epi16::<6>(index);
                for i in 1..parts.div_ceil(2) {
                    let second = part((2 * i + 1).min(parts - 1));
                    let other = _mm512_permutex2var_epi16(part(2 * i), index, second);
                    let here = _mm512_cmpeq_epi16_mask(page, _mm512_set1_epi16(i as i16));
                    found = _mm512_mask_mov_epi16(found, here, other);
                }
                found
            }
            _ => {
                let low = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(index));
                let high = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64::<1>(index));
                let low = _mm512_i32gather_epi32::<2>(low, entries.cast());
                let high = _mm512_i32gather_epi32::<2>(high, entries.cast());
                let low = _mm512_castsi256_si512(_mm512_cvtepi32_epi16(low));
                _mm512_inserti64x4::<1>(low, _mm512_cvtepi32_epi16(high))
            }
        }
    }
}
