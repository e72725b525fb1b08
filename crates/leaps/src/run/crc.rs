//! Compute the checksum of zip archives.

/// `TABLES[k][b]` is the checksum's change by byte `b` followed by `k` zero bytes.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut value = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { value >> 1 ^ 0xEDB8_8320 } else { value >> 1 };
            bit += 1;
        }
        tables[0][byte] = value;
        byte += 1;
    }
    let mut k = 1;
    while k < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[k - 1][byte];
            tables[k][byte] = before >> 8 ^ tables[0][(before & 0xFF) as usize];
            byte += 1;
        }
        k += 1;
    }
    tables
}

/// CRC-32 of zip and Ethernet, fed piece by piece.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crc32(u32);

impl Crc32 {
    /// Of nothing yet.
    pub(crate) fn new() -> Self {
        Crc32(!0)
    }

    /// Of what came before and `bytes`; eight bytes a step.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        let mut state = self.0;
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            let mixed = u64::from_le_bytes(*word) ^ u64::from(state);
            let table = |k: usize| TABLES[7 - k][(mixed >> (8 * k) & 0xFF) as usize];
            state = (0..8).fold(0, |sum, k| sum ^ table(k));
        }
        for &byte in rest {
            state = state >> 8 ^ TABLES[0][((state ^ u32::from(byte)) & 0xFF) as usize];
        }
        self.0 = state;
    }

    /// The checksum.
    pub(crate) fn value(self) -> u32 {
        !self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers_however_the_bytes_are_cut() {
        // The check value of the CRC catalogue, and a longer text.
        for (text, expected) in [
            (&b"123456789"[..], 0xCBF4_3926),
            (&b"The quick brown fox jumps over the lazy dog"[..], 0x414F_A339),
            (&b""[..], 0),
        ] {
            for cut in 0..=text.len() {
                let mut crc = Crc32::new();
                crc.update(&text[..cut]);
                crc.update(&text[cut..]);
                assert_eq!(crc.value(), expected);
            }
        }
    }
}
