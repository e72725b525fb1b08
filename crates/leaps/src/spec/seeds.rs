//! Seeds of the entries of comparisons and experiments, each made of the seed of the whole.
//!
//! Runs with one seed share their random numbers, so that their errors are correlated where their settings are alike: AIS at
//! neighbouring temperatures errs in the same direction. Entries are therefore independent of each other.

use super::RunSpec;
use crate::file::checksum;

/// Hexadecimal digits of a seed: whole numbers that every reader of JSON keeps exactly.
const DIGITS: usize = 13;

impl RunSpec {
    /// The seed of the entry called `name` on this target of `sites` sites: the first 13 digits of the BLAKE3 checksum of three lines, the seed,
    /// the target in words, and the name.
    pub fn seed_of(&self, name: &str, sites: usize) -> u64 {
        let mut target = self.target.clone();
        // A file is the same target wherever it lies.
        target.path = target.path.as_deref().and_then(|path| path.file_name()).map(Into::into);
        let words = format!("{}\n{}\n{name}", self.seed, target.describe(sites));
        let digits = checksum(words.as_bytes());
        u64::from_str_radix(&digits[..DIGITS], 16).unwrap_or_else(|_| unreachable!("{digits}"))
    }
}
