//! JSON files that know when they have been altered: their last entry is a checksum of all bytes before it.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::file::{self, DATA, TEXT, checksum};
use crate::{Error, Result};

const KEY: &str = "  \"checksum\": \"";
const END: &str = "\"\n}\n";

/// The text of a structure with at least one entry.
pub(crate) fn seal(contents: &impl Serialize) -> String {
    // Structures of ours have text keys and no failing serialisers.
    let mut text = serde_json::to_string_pretty(contents).unwrap_or_else(|_| unreachable!());
    text.truncate(text.len() - "\n}".len());
    text.push_str(",\n");
    let sum = checksum(text.as_bytes());
    text + KEY + &sum + END
}

/// Write the keys of an entry in alphabetical order: models and checkpoints have always had some of theirs so, and keep their bytes.
pub(crate) fn sorted<T: Serialize, S: Serializer>(
    entry: &T,
    to: S,
) -> std::result::Result<S::Ok, S::Error> {
    serde_json::to_value(entry).map_err(S::Error::custom)?.serialize(to)
}

/// Read a sealed file: its checksum and schema version first, then its contents.
pub(crate) fn open<T: DeserializeOwned>(path: &Path, schema: u32) -> Result<T> {
    parse(path, &file::read(path, TEXT)?, schema)
}

/// The contents of a sealed file's bytes, checked like [`open`]; `path` is for errors.
pub(crate) fn parse<T: DeserializeOwned>(path: &Path, bytes: &[u8], schema: u32) -> Result<T> {
    let corrupt = |what: &str, reason: String| {
        Err(Error::Corrupt { path: path.into(), what: what.into(), reason })
    };
    let tail = KEY.len() + 64 + END.len();
    let Some(at) = bytes.len().checked_sub(tail) else {
        return corrupt("checksum", format!("the file has only {} bytes", bytes.len()));
    };
    let (head, seal) = bytes.split_at(at);
    if seal != (KEY.to_owned() + &checksum(head) + END).as_bytes() {
        return corrupt("checksum", "does not fit: the file is truncated or altered".into());
    }
    let mut value: Value = match serde_json::from_slice(bytes) {
        Ok(value) => value,
        Err(error) => return corrupt("JSON", error.to_string()),
    };
    if let Some(entries) = value.as_object_mut() {
        entries.remove("checksum");
    }
    let mut found = value.get("schema").cloned().unwrap_or_default();
    if found == schema - 1 && super::upgrade::from(schema - 1, &mut value) {
        found = schema.into();
    }
    if found != schema {
        return corrupt(
            "schema",
            format!(
                "is {found}, this version of leaps reads {schema}, and what it can of the one before; use the version that wrote it"
            ),
        );
    }
    serde_json::from_value(value).or_else(|error| corrupt("contents", error.to_string()))
}

/// The bytes of a file whose checksum is known.
pub(crate) fn read_checked(path: &Path, expected: &str) -> Result<Vec<u8>> {
    let bytes = file::read(path, DATA)?;
    check(path, &bytes, expected)?;
    Ok(bytes)
}

/// Refuse bytes that do not have this checksum; `path` is for errors.
pub(crate) fn check(path: &Path, bytes: &[u8], expected: &str) -> Result<()> {
    if checksum(bytes) == expected {
        return Ok(());
    }
    Err(Error::Corrupt {
        path: path.into(),
        what: "checksum".into(),
        reason: format!("does not fit: its {} bytes are truncated or altered", bytes.len()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_flipped_bit_and_every_truncation_is_noticed() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a.json");
        let contents = BTreeMap::from([("schema", 3), ("b", 5)]);
        let text = seal(&contents);
        let bytes = text.as_bytes();
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(open::<BTreeMap<String, u32>>(&path, 3).unwrap()["b"], 5);
        assert!(serde_json::from_str::<Value>(&text).unwrap().is_object());
        let refused = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let error = open::<BTreeMap<String, u32>>(&path, 3).unwrap_err();
            matches!(error, Error::Corrupt { path: named, .. } if named == path)
        };
        for bit in 0..8 * bytes.len() {
            let mut altered = bytes.to_vec();
            altered[bit / 8] ^= 1 << (bit % 8);
            assert!(refused(&altered), "bit {bit}");
        }
        assert!((0..bytes.len()).all(|length| refused(&bytes[..length])));
        assert!(refused(seal(&BTreeMap::from([("schema", 4)])).as_bytes()));
        assert!(refused(seal(&BTreeMap::from([("b", 4)])).as_bytes()));
    }
}
