//! Philox 4x32-10: a counter and a key become four random words.
//!
//! Salmon, Moraes, Dror, Shaw, *Parallel random numbers: as easy as 1, 2, 3*, SC 2011. There is no
//! state to carry: word `n` of any stream is a function of its address alone, so results cannot
//! depend on threads, batches or the order of evaluation.

/// The two words that a seed becomes.
pub type Key = [u32; 2];

pub(crate) const MULTIPLIER: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: Key = [0x9E37_79B9, 0xBB67_AE85];
/// Rounds of the block function; the authors' crush-resistant recommendation.
pub(crate) const ROUNDS: usize = 10;

#[inline(always)]
fn wide_product(a: u32, b: u32) -> (u32, u32) {
    let product = u64::from(a) * u64::from(b);
    ((product >> 32) as u32, product as u32)
}

/// One round with key `key`.
#[inline(always)]
pub(crate) fn round(c: [u32; 4], key: Key) -> [u32; 4] {
    let (high0, low0) = wide_product(MULTIPLIER[0], c[0]);
    let (high1, low1) = wide_product(MULTIPLIER[1], c[2]);
    [high1 ^ c[1] ^ key[0], low1, high0 ^ c[3] ^ key[1], low0]
}

/// The next round's key.
#[inline(always)]
pub(crate) fn bump(key: Key) -> Key {
    [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])]
}

/// Four random words at address `counter` of the stream `key`.
#[inline]
pub fn philox4x32(counter: [u32; 4], key: Key) -> [u32; 4] {
    let (mut c, mut key) = (counter, key);
    for _ in 0..ROUNDS {
        c = round(c, key);
        key = bump(key);
    }
    c
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers published with the authors' Random123 library.
    #[test]
    fn known_answers() {
        assert_eq!(
            philox4x32([0; 4], [0; 2]),
            [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]
        );
        assert_eq!(
            philox4x32([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            philox4x32(
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0]
            ),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }
}
