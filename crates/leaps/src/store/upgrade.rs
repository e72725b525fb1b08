//! Files of the schema before, with the names of today.

use serde_json::Value;

/// What was called otherwise in models and checkpoints of schema 1: where, the old name, and the new one.
const RENAMED: [(&str, &str, &str); 2] =
    [("network", "totals", "global_features"), ("target", "states", "q")];

/// Give the entries of a file of schema `from` the names they have now; false where such files cannot be read any more.
pub(super) fn from(from: u32, file: &mut Value) -> bool {
    if from != 1 {
        return false;
    }
    for (section, old, new) in RENAMED {
        for place in [format!("/{section}"), format!("/run/{section}")] {
            let Some(Value::Object(entries)) = file.pointer_mut(&place) else { continue };
            if let Some(value) = entries.remove(old) {
                entries.insert(new.to_owned(), value);
            }
        }
    }
    file["schema"] = (from + 1).into();
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn old_names_become_new_ones() {
        let mut file = json!({
            "schema": 1,
            "network": {"kind": "hollow", "totals": true},
            "run": {"target": {"kind": "potts", "states": 5}, "network": {"kind": "mlp"}},
        });
        assert!(from(1, &mut file));
        let expected = json!({
            "schema": 2,
            "network": {"kind": "hollow", "global_features": true},
            "run": {"target": {"kind": "potts", "q": 5}, "network": {"kind": "mlp"}},
        });
        assert_eq!(file, expected);
        assert!(!from(3, &mut file));
    }
}
