//! Arithmetic on 64 walkers at once, one to a SIMD lane.
//!
//! AVX-512 is written out, because values left in arrays travel through memory and stall there (measured: half the time of a
//! sweep), and NEON, because compilers do not find its look-ups (counted: a third of the instructions). The other levels are plain loops
//! over arrays, compiled once per level. All levels give the same bits.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod plain;

use super::philox::Key;

/// Walkers per tile.
pub(crate) const LANES: usize = 64;

/// Four random words for each lane, word first.
pub(crate) type Words = [[u32; LANES]; 4];

/// What a tile asks of the CPU. Every method works on all lanes at once.
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
    /// `sum + value` where the value is `site_value`, else `sum`.
    unsafe fn add_where(
        sum: Self::Halves,
        bytes: Self::Bytes,
        site_value: u8,
        value: u16,
    ) -> Self::Halves;
    /// `table[byte]`; `table.len()` is a multiple of 16, at most 256, and every byte is below it.
    unsafe fn look_up(table: &[u8], bytes: Self::Bytes) -> Self::Bytes;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::SimdLevel;
    use crate::device::level::{Portable, dispatch};

    #[inline(always)]
    unsafe fn block<L: Lanes>(address: [u32; 4], key: Key, out: &mut Words) {
        // SAFETY: the caller has the instructions of the level.
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
        // SAFETY: the caller has the instructions of the level.
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

    #[inline(always)]
    unsafe fn pick<L: Lanes>(table: &[u8], bytes: &[u8; LANES], found: &mut [u8; LANES]) {
        // SAFETY: the caller has the instructions of the level.
        unsafe { L::store(L::look_up(table, L::load(bytes)), found) }
    }

    #[test]
    fn all_levels_look_up_the_same_bytes() {
        for entries in [16usize, 32, 48, 128, 240, 256] {
            let table: Vec<u8> = (0..entries).map(|i| (i * 37 + 11) as u8).collect();
            let bytes: [u8; LANES] = std::array::from_fn(|l| ((l * 89 + 5) % entries) as u8);
            for level in SimdLevel::available() {
                let (t, b, mut found) = (&table[..], &bytes, [0; LANES]);
                let out = &mut found;
                dispatch!(level, pick, (t: &[u8], b: &[u8; LANES], out: &mut [u8; LANES]));
                assert_eq!(found, bytes.map(|byte| table[byte as usize]), "{level:?} {entries}");
            }
        }
    }

    #[test]
    fn all_levels_give_the_same_bits() {
        let address = [5, 6, u32::MAX - 20, 7];
        let key = [0xDEAD_BEEF, 0x1234_5678];
        let mut expected = [[0; LANES]; 4];
        // SAFETY: the caller has the instructions of the level.
        unsafe { Portable::philox(address, key, &mut expected) };
        for level in SimdLevel::available() {
            let mut words = [[0; LANES]; 4];
            let out = &mut words;
            dispatch!(level, block, (address: [u32; 4], key: Key, out: &mut Words));
            assert_eq!(words, expected, "{level:?}");
            for entries in [32usize, 64, 96, 160, 256, 288, 4096] {
                let table: Vec<u16> =
                    (0..entries).map(|i| (i as u16).wrapping_mul(40_503)).collect();
                let bytes = std::array::from_fn(|l| (l % ((entries - 1) / 5).min(50)) as u8);
                let mut words = expected[0];
                for lane in [3, 12] {
                    words[lane] = u32::from(table[bytes[lane] as usize * 5]) << 16; // a tie
                }
                let (mut want, mut got) = (([9; LANES], [9; LANES]), ([8; LANES], [8; LANES]));
                let t = &table[..];
                let ties =
                    // SAFETY: the caller has the instructions of the level.
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
