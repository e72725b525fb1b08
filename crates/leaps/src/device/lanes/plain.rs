//! Lanes as loops over arrays, left to the compiler.

use super::{LANES, Lanes, Words};
use crate::device::level::Portable;
use crate::device::philox::{self, Key};

/// Everything but Philox and look-ups of bytes as loops over arrays.
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
            site_value: u8,
            value: u16,
        ) -> [u16; LANES] {
            for lane in 0..LANES {
                sum[lane] += if bytes[lane] == site_value { value } else { 0 };
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
#[cfg(target_arch = "x86_64")]
pub(super) use array_lanes;

impl Lanes for Portable {
    array_lanes!();

    #[inline(always)]
    unsafe fn look_up(table: &[u8], mut bytes: [u8; LANES]) -> [u8; LANES] {
        for byte in &mut bytes {
            *byte = table[*byte as usize];
        }
        bytes
    }

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
