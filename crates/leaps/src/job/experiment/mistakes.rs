//! Mistakes in the file of an experiment: names that stand twice, values of another type, numbers that are not finite.

use serde::Deserialize;
use toml::{Table, Value};

use super::spec::{FigureEntry, NetworkEntry, RunEntry};

/// The lists of a file, and what an entry of each is called.
const LISTS: [(&str, &str); 4] =
    [("networks", "network"), ("runs", "run"), ("figures", "figure"), ("targets", "target")];

/// The entries of a list, if the file has it.
fn entries<'t>(table: &'t Table, list: &str) -> &'t [Value] {
    table.get(list).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Refuse lists with two entries of one name, of which the second would be laid over the first; also those of `[quick]` and `[[targets]]`.
pub fn check_names(table: &Table) -> std::result::Result<(), String> {
    for (list, word) in LISTS {
        let names: Vec<&str> =
            entries(table, list).iter().filter_map(|entry| entry.get("name")?.as_str()).collect();
        if let Some(name) = (1..names.len()).find(|&n| names[..n].contains(&names[n])) {
            let name = names[name];
            return Err(format!("{word} '{name}': name: must differ from those of others"));
        }
    }
    let overlays = table.get("quick").into_iter().chain(entries(table, "targets"));
    overlays.filter_map(Value::as_table).try_for_each(check_names)
}

/// An error of a file's values with the key of the wrong one, and with the entry of a list that has it.
pub fn explain(table: &Table, error: &toml::de::Error) -> String {
    // Only the words of an error know its keys.
    let with_key = |error: &toml::de::Error| match error.to_string().split_once("\nin `") {
        Some((_, keys)) => {
            format!("{}: {}", keys.trim_end().trim_end_matches('`'), error.message())
        }
        None => error.message().to_owned(),
    };
    for (list, word) in LISTS {
        for (number, entry) in (1..).zip(entries(table, list)) {
            let wrong = match list {
                "networks" => NetworkEntry::deserialize(entry.clone()).err(),
                "runs" => RunEntry::deserialize(entry.clone()).err(),
                "figures" => FigureEntry::deserialize(entry.clone()).err(),
                _ => None,
            };
            let name = entry.get("name").and_then(Value::as_str);
            let name = name.map_or(number.to_string(), |name| format!("'{name}'"));
            if let Some(error) = wrong {
                return format!("{word} {name}: {}", with_key(&error));
            }
        }
    }
    with_key(error)
}

/// The first key whose value is no finite number: it would be taken for one that was left out.
pub fn not_finite(value: &Value, key: &str) -> Option<String> {
    let below = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
    match value {
        Value::Float(number) if !number.is_finite() => Some(format!("{key} = {number}")),
        Value::Array(list) => list.iter().find_map(|one| not_finite(one, key)),
        Value::Table(table) => table.iter().find_map(|(name, one)| not_finite(one, &below(name))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_once_in_a_list() {
        let check = |text: &str| check_names(&toml::from_str(text).unwrap());
        let one = "{ name = 'a' }";
        assert_eq!(
            check(&format!("networks = [{one}]\nruns = [{one}]\nquick.runs = [{one}]")),
            Ok(())
        );
        for (key, word) in [
            ("networks", "network 'a'"),
            ("runs", "run 'a'"),
            ("figures", "figure 'a'"),
            ("targets", "target 'a'"),
            ("quick.networks", "network 'a'"),
            ("quick.targets", "target 'a'"),
        ] {
            let error = check(&format!("{key} = [{one}, {{ name = 'b' }}, {one}]")).unwrap_err();
            assert!(error.starts_with(word), "{key}: {error}");
        }
        let error = check(&format!("[[targets]]\nname = 't'\nruns = [{one}, {one}]")).unwrap_err();
        assert!(error.starts_with("run 'a'"), "{error}");
    }
}
