//! Lanes in AVX2: Philox and look-ups of bytes written out, the rest left to the compiler.

use std::arch::x86_64::*;

use super::plain::array_lanes;
use super::{LANES, Lanes, Words};
use crate::device::level::Avx2;
use crate::device::philox::{self, Key};

impl Lanes for Avx2 {
    array_lanes!();

    #[inline(always)]
    unsafe fn look_up(table: &[u8], mut bytes: [u8; LANES]) -> [u8; LANES] {
        // SAFETY: the caller has the instructions of the level, and arrays have the lengths that are read or written.
        unsafe {
            let fifteen = _mm256_set1_epi8(15);
            for half in bytes.as_chunks_mut::<32>().0 {
                let own = _mm256_loadu_si256(half.as_ptr().cast());
                let page = _mm256_and_si256(_mm256_srli_epi16::<4>(own), fifteen);
                let at = _mm256_and_si256(own, fifteen);
                let mut found = _mm256_setzero_si256();
                for (number, part) in table.as_chunks::<16>().0.iter().enumerate() {
                    let part = _mm256_broadcastsi128_si256(_mm_loadu_si128(part.as_ptr().cast()));
                    let here = _mm256_cmpeq_epi8(page, _mm256_set1_epi8(number as i8));
                    let other = _mm256_and_si256(_mm256_shuffle_epi8(part, at), here);
                    found = _mm256_or_si256(found, other);
                }
                _mm256_storeu_si256(half.as_mut_ptr().cast(), found);
            }
            bytes
        }
    }

    #[inline(always)]
    unsafe fn philox(address: [u32; 4], key: Key, out: &mut Words) {
        // SAFETY: the caller has the instructions of the level, and arrays have the lengths that are read or written.
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
                    let high0 = _mm256_blend_epi32::<0xAA>(_mm256_srli_epi64::<32>(even0), odd0);
                    let high1 = _mm256_blend_epi32::<0xAA>(_mm256_srli_epi64::<32>(even1), odd1);
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
}
