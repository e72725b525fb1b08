//! Lanes in NEON: four registers of bytes, eight of 16-bit numbers.

use std::arch::aarch64::*;

use super::{LANES, Lanes, Words};
use crate::device::level::Neon;
use crate::device::philox::{self, Key};

type Bytes = [uint8x16_t; 4];
type Halves = [uint16x8_t; 8];

impl Lanes for Neon {
    type Bytes = Bytes;
    type Halves = Halves;

    #[inline(always)]
    unsafe fn philox(address: [u32; 4], key: Key, out: &mut Words) {
        // SAFETY: the caller has the instructions of the level, and arrays have the lengths that are read or written.
        unsafe {
            let [m0, m1] = philox::MULTIPLIER;
            let iota = vld1q_u32([0, 1, 2, 3].as_ptr());
            // Four independent groups of 4 lanes hide the latency of the multiplications.
            for quarter in 0..4 {
                let mut c = [[vdupq_n_u32(0); 4]; 4];
                for (g, c) in c.iter_mut().enumerate() {
                    let first = address[2].wrapping_add((16 * quarter + 4 * g) as u32);
                    *c = [
                        vdupq_n_u32(address[0]),
                        vdupq_n_u32(address[1]),
                        vaddq_u32(vdupq_n_u32(first), iota),
                        vdupq_n_u32(address[3]),
                    ];
                }
                let mut key = key;
                for _ in 0..philox::ROUNDS {
                    let (k0, k1) = (vdupq_n_u32(key[0]), vdupq_n_u32(key[1]));
                    for c in &mut c {
                        let (high0, low0) = wide_product(c[0], m0);
                        let (high1, low1) = wide_product(c[2], m1);
                        *c = [
                            veorq_u32(high1, veorq_u32(c[1], k0)),
                            low1,
                            veorq_u32(high0, veorq_u32(c[3], k1)),
                            low0,
                        ];
                    }
                    key = philox::bump(key);
                }
                for (g, c) in c.iter().enumerate() {
                    for (words, c) in out.iter_mut().zip(c) {
                        let four = &mut words[16 * quarter + 4 * g..][..4];
                        vst1q_u32(four.as_mut_ptr(), *c);
                    }
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn load(from: &[u8; LANES]) -> Bytes {
        // SAFETY: the caller has the instructions of the level, and arrays have the lengths that are read or written.
        unsafe {
            let part = |i: usize| vld1q_u8(from.as_ptr().add(16 * i));
            [part(0), part(1), part(2), part(3)]
        }
    }

    #[inline(always)]
    unsafe fn store(bytes: Bytes, to: &mut [u8; LANES]) {
        // SAFETY: the caller has the instructions of the level, and arrays have the lengths that are read or written.
        unsafe {
            for (part, to) in bytes.into_iter().zip(to.chunks_exact_mut(16)) {
                vst1q_u8(to.as_mut_ptr(), part);
            }
        }
    }

    #[inline(always)]
    unsafe fn zero() -> Bytes {
        // SAFETY: the caller has the instructions of the level.
        unsafe { [vdupq_n_u8(0); 4] }
    }

    #[inline(always)]
    unsafe fn add(mut a: Bytes, b: Bytes) -> Bytes {
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            for i in 0..4 {
                a[i] = vaddq_u8(a[i], b[i]);
            }
            a
        }
    }

    #[inline(always)]
    unsafe fn xor(mut a: Bytes, b: Bytes) -> Bytes {
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            for i in 0..4 {
                a[i] = veorq_u8(a[i], b[i]);
            }
            a
        }
    }

    #[inline(always)]
    unsafe fn select(which: Bytes, mut a: Bytes, b: Bytes) -> Bytes {
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            for i in 0..4 {
                a[i] = vbslq_u8(vtstq_u8(which[i], which[i]), b[i], a[i]);
            }
            a
        }
    }

    #[inline(always)]
    unsafe fn at_least(mut a: Bytes, b: Bytes) -> Bytes {
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            for i in 0..4 {
                a[i] = vshrq_n_u8::<7>(vcgeq_u8(a[i], b[i]));
            }
            a
        }
    }

    #[inline(always)]
    unsafe fn widen(bytes: Bytes) -> Halves {
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            let mut halves = [vdupq_n_u16(0); 8];
            for i in 0..4 {
                halves[2 * i] = vmovl_u8(vget_low_u8(bytes[i]));
                halves[2 * i + 1] = vmovl_high_u8(bytes[i]);
            }
            halves
        }
    }

    #[inline(always)]
    unsafe fn scale_add(a: Halves, factor: u16, mut b: Halves) -> Halves {
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            let factor = vdupq_n_u16(factor);
            for i in 0..8 {
                b[i] = vmlaq_u16(b[i], a[i], factor);
            }
            b
        }
    }

    #[inline(always)]
    unsafe fn add_where(mut sum: Halves, bytes: Bytes, site_value: u8, value: u16) -> Halves {
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            let (site_value, value) = (vdupq_n_u8(site_value), vdupq_n_u16(value));
            for i in 0..4 {
                // Every byte twice: all 16 bits are set, or none.
                let here = vceqq_u8(bytes[i], site_value);
                let low = vreinterpretq_u16_u8(vzip1q_u8(here, here));
                let high = vreinterpretq_u16_u8(vzip2q_u8(here, here));
                sum[2 * i] = vaddq_u16(sum[2 * i], vandq_u16(low, value));
                sum[2 * i + 1] = vaddq_u16(sum[2 * i + 1], vandq_u16(high, value));
            }
            sum
        }
    }

    #[inline(always)]
    unsafe fn look_up(table: &[u8], mut bytes: Bytes) -> Bytes {
        // SAFETY: the caller has the instructions of the level, and parts of 16 entries are read.
        unsafe {
            let mut found = [vdupq_n_u8(0); 4];
            for part in table.as_chunks::<16>().0 {
                let part = vld1q_u8(part.as_ptr());
                for i in 0..4 {
                    // An entry of another part leaves what was found.
                    found[i] = vqtbx1q_u8(found[i], part, bytes[i]);
                    bytes[i] = vsubq_u8(bytes[i], vdupq_n_u8(16));
                }
            }
            found
        }
    }

    #[inline(always)]
    unsafe fn store_halves(halves: Halves, to: &mut [u16; LANES]) {
        // SAFETY: the caller has the instructions of the level, and arrays have the lengths that are read or written.
        unsafe {
            for (part, to) in halves.into_iter().zip(to.chunks_exact_mut(8)) {
                vst1q_u16(to.as_mut_ptr(), part);
            }
        }
    }

    #[inline(always)]
    unsafe fn half(words: &[u32; LANES], upper: bool) -> Halves {
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            let mut halves = [vdupq_n_u16(0); 8];
            for i in 0..8 {
                let (a, b) = eight(words, i);
                let (a, b) = (vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b));
                halves[i] = if upper { vuzp2q_u16(a, b) } else { vuzp1q_u16(a, b) };
            }
            halves
        }
    }

    #[inline(always)]
    unsafe fn propose(words: &[u32; LANES], others: u32) -> (Bytes, Halves) {
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            let (mut choice, mut digits) = ([vdupq_n_u8(0); 4], [vdupq_n_u16(0); 8]);
            for i in 0..4 {
                let (a, digits_a) = proposal(eight(words, 2 * i), others);
                let (b, digits_b) = proposal(eight(words, 2 * i + 1), others);
                choice[i] = narrow(a, b);
                (digits[2 * i], digits[2 * i + 1]) = (digits_a, digits_b);
            }
            (choice, digits)
        }
    }

    #[inline(always)]
    unsafe fn below(table: &[u16], index: Halves, digits: Halves) -> (Bytes, u64) {
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            let threshold = thresholds(table, index);
            let (mut less, mut equal) = ([vdupq_n_u8(0); 4], [vdupq_n_u8(0); 4]);
            for i in 0..4 {
                let [d, e] = [digits[2 * i], digits[2 * i + 1]];
                let [t, u] = [threshold[2 * i], threshold[2 * i + 1]];
                less[i] = vshrq_n_u8::<7>(narrow(vcltq_u16(d, t), vcltq_u16(e, u)));
                equal[i] = narrow(vceqq_u16(d, t), vceqq_u16(e, u));
            }
            (less, set(equal))
        }
    }
}

/// Upper and lower words of `a * factor`.
#[inline(always)]
unsafe fn wide_product(a: uint32x4_t, factor: u32) -> (uint32x4_t, uint32x4_t) {
    // SAFETY: the caller has the instructions of the level.
    unsafe {
        let front = vreinterpretq_u32_u64(vmull_u32(vget_low_u32(a), vdup_n_u32(factor)));
        let back = vreinterpretq_u32_u64(vmull_high_u32(a, vdupq_n_u32(factor)));
        (vuzp2q_u32(front, back), vuzp1q_u32(front, back))
    }
}

/// Words `8 i..8 i + 8`.
#[inline(always)]
unsafe fn eight(words: &[u32; LANES], i: usize) -> (uint32x4_t, uint32x4_t) {
    // SAFETY: the caller has the instructions of the level, and arrays have the lengths that are read or written.
    unsafe {
        let eight = words[8 * i..][..8].as_ptr();
        (vld1q_u32(eight), vld1q_u32(eight.add(4)))
    }
}

/// Choice and digits of [`Lanes::propose`] for eight lanes.
#[inline(always)]
unsafe fn proposal((a, b): (uint32x4_t, uint32x4_t), others: u32) -> (uint16x8_t, uint16x8_t) {
    // SAFETY: the caller has the instructions of the level.
    unsafe {
        let upper = |words: uint32x4_t| {
            let front = vshrn_n_u64::<16>(vmull_u32(vget_low_u32(words), vdup_n_u32(others)));
            let both = vshrn_high_n_u64::<16>(front, vmull_high_u32(words, vdupq_n_u32(others)));
            vreinterpretq_u16_u32(both)
        };
        let (a, b) = (upper(a), upper(b));
        (vuzp2q_u16(a, b), vuzp1q_u16(a, b))
    }
}

/// The lower bytes of sixteen numbers.
#[inline(always)]
unsafe fn narrow(a: uint16x8_t, b: uint16x8_t) -> uint8x16_t {
    // SAFETY: the caller has the instructions of the level.
    unsafe { vuzp1q_u8(vreinterpretq_u8_u16(a), vreinterpretq_u8_u16(b)) }
}

/// The lanes whose byte is 255; the bytes of the others are 0.
#[inline(always)]
unsafe fn set(bytes: Bytes) -> u64 {
    // SAFETY: the caller has the instructions of the level.
    unsafe {
        let bits = vreinterpretq_u8_u64(vdupq_n_u64(0x8040_2010_0804_0201));
        let bytes = bytes.map(|part| vandq_u8(part, bits));
        // Every byte becomes the sum of eight: the bits of eight lanes.
        let sums = vpaddq_u8(vpaddq_u8(bytes[0], bytes[1]), vpaddq_u8(bytes[2], bytes[3]));
        vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(sums, sums)))
    }
}

/// `table[index]`: bytes of registers up to 256 entries, then one lane after the other.
#[inline(always)]
unsafe fn thresholds(table: &[u16], index: Halves) -> Halves {
    // SAFETY: the caller has the instructions of the level, and arrays have the lengths that are read or written.
    unsafe {
        let mut found = [vdupq_n_u16(0); 8];
        if table.len() > 256 {
            let (mut at, mut all) = ([0; LANES], [0; LANES]);
            for i in 0..8 {
                vst1q_u16(at[8 * i..][..8].as_mut_ptr(), index[i]);
            }
            for (threshold, &entry) in all.iter_mut().zip(&at) {
                *threshold = table[entry as usize];
            }
            for i in 0..8 {
                found[i] = vld1q_u16(all[8 * i..][..8].as_ptr());
            }
            return found;
        }
        // Lower and upper bytes of the thresholds apart: one look-up each for 16 lanes.
        let (mut low, mut high) = ([vdupq_n_u8(0); 4], [vdupq_n_u8(0); 4]);
        let mut at = [vdupq_n_u8(0); 4];
        for i in 0..4 {
            at[i] = narrow(index[2 * i], index[2 * i + 1]);
        }
        let mut pages = table.chunks_exact(64);
        for page in &mut pages {
            let [a, b, c, d] = [0, 16, 32, 48].map(|from| apart(&page[from..]));
            let lower = uint8x16x4_t(a.0, b.0, c.0, d.0);
            let upper = uint8x16x4_t(a.1, b.1, c.1, d.1);
            for i in 0..4 {
                // An entry of another page leaves what was found.
                low[i] = vqtbx4q_u8(low[i], lower, at[i]);
                high[i] = vqtbx4q_u8(high[i], upper, at[i]);
                at[i] = vsubq_u8(at[i], vdupq_n_u8(64));
            }
        }
        if let rest @ [_, ..] = pages.remainder() {
            let (a, b) = (apart(rest), apart(&rest[16..]));
            let (lower, upper) = (uint8x16x2_t(a.0, b.0), uint8x16x2_t(a.1, b.1));
            for i in 0..4 {
                low[i] = vqtbx2q_u8(low[i], lower, at[i]);
                high[i] = vqtbx2q_u8(high[i], upper, at[i]);
            }
        }
        for i in 0..4 {
            found[2 * i] = vreinterpretq_u16_u8(vzip1q_u8(low[i], high[i]));
            found[2 * i + 1] = vreinterpretq_u16_u8(vzip2q_u8(low[i], high[i]));
        }
        found
    }
}

/// Lower and upper bytes of the first 16 entries.
#[inline(always)]
unsafe fn apart(entries: &[u16]) -> uint8x16x2_t {
    // SAFETY: the caller has the instructions of the level, and arrays have the lengths that are read or written.
    unsafe {
        // SAFETY: 16 entries are read, in the byte order of every ARM that Rust's NEON is for: the lower byte first.
        vld2q_u8(entries[..16].as_ptr().cast())
    }
}
