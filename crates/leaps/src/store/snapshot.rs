//! `snapshot.json` of a run directory: a state for whoever looks on, the first walker of the last validation.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::atomic;
use crate::file::{if_any, read_text};
use crate::target::Target;
use crate::{Error, Result};

const FILE: &str = "snapshot.json";

/// Larger lattices are not kept.
const MOST_SITES: usize = 64 * 64;

/// A state of a lattice at a validation, not reweighted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Gradient steps that the network had made.
    pub step: u64,
    /// Sides of the lattice.
    pub shape: Vec<usize>,
    /// Values of a site.
    pub q: usize,
    /// The state, a digit for every site, the last side running fastest.
    pub x: String,
}

impl Snapshot {
    /// The first of some states; none where there is no lattice, or one that is too large, or more values than digits.
    pub fn of(target: &dyn Target, states: &[u8], step: u64) -> Option<Self> {
        let (sites, q) = (target.sites(), target.q());
        let lattice = target.lattice().filter(|_| sites <= MOST_SITES && q <= 10)?;
        let digit = |&value: &u8| char::from(b'0' + value);
        let x = states.get(..sites)?.iter().map(digit).collect();
        Some(Snapshot { step, shape: lattice.shape().to_vec(), q, x })
    }

    /// Write it to a run directory.
    pub(crate) fn write(&self, run: &Path) -> Result<()> {
        let text = serde_json::to_string(self).unwrap_or_default() + "\n";
        atomic::write(run.join(FILE), text.as_bytes())
    }

    /// Read that of a run directory, if it has one: there is none before the first validation.
    ///
    /// # Errors
    /// A file that cannot be read, or that holds no state of its lattice.
    pub fn read(run: &Path) -> Result<Option<Self>> {
        let path = run.join(FILE);
        let Some(text) = if_any(read_text(&path))? else { return Ok(None) };
        let corrupt = |reason: String| Error::Corrupt {
            path: path.clone(),
            what: "the state".to_owned(),
            reason,
        };
        let own: Self = serde_json::from_str(&text).map_err(|error| corrupt(error.to_string()))?;
        let sites = own.shape.iter().try_fold(1_usize, |sites, &side| sites.checked_mul(side));
        let digits = own.x.bytes().all(|b| b.is_ascii_digit() && usize::from(b - b'0') < own.q);
        if sites != Some(own.x.len()) || !digits {
            return Err(corrupt("does not fit its lattice".to_owned()));
        }
        Ok(Some(own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Ising;

    #[test]
    fn a_state_comes_back_and_a_damaged_one_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let run = scratch.path();
        assert_eq!(Snapshot::read(run).unwrap(), None);
        let problem = Ising::square(3).beta(0.3).unwrap();
        let states = [0, 1, 1, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1];
        let snapshot = Snapshot::of(&*problem.target, &states, 7).unwrap();
        assert_eq!((snapshot.x.as_str(), &snapshot.shape[..]), ("011001010", &[3, 3][..]));
        snapshot.write(run).unwrap();
        assert_eq!(Snapshot::read(run).unwrap(), Some(snapshot));
        for bad in ["011", "0110010102", "01100101a", "011001012"] {
            let text = format!(r#"{{"step":7,"shape":[3,3],"q":2,"x":"{bad}"}}"#);
            std::fs::write(run.join(FILE), text).unwrap();
            let error = Snapshot::read(run).unwrap_err().to_string();
            assert!(error.contains("snapshot.json"), "{error}");
        }
        assert!(Snapshot::of(&*problem.target, &states[..5], 7).is_none());
        let large = Ising::square(65).beta(0.3).unwrap();
        assert!(Snapshot::of(&*large.target, &[0; 65 * 65], 7).is_none());
    }
}
