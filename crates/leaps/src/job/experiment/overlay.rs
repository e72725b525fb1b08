//! Tables of an experiment laid over others: `[quick]` over the file, entries of `[[targets]]` over what they share.

use toml::{Table, Value};

/// The paper's numbers are not those of smaller settings.
pub(super) fn forget_paper(table: &mut Table) {
    let mut each = |list: &str, forget: &dyn Fn(&mut Table)| {
        let list = table.get_mut(list).and_then(Value::as_array_mut);
        list.into_iter().flatten().filter_map(Value::as_table_mut).for_each(forget);
    };
    each("runs", &|run| _ = run.remove("paper"));
    each("targets", &forget_paper);
}

/// Take `[[targets]]` out of a file: the name of each, and the file with the entry laid over it as `[quick]` is.
pub(super) fn each_target(table: &mut Table) -> std::result::Result<Vec<(String, Table)>, String> {
    let entries = match table.remove("targets") {
        None => return Ok(Vec::new()),
        Some(Value::Array(entries)) if !entries.is_empty() => entries,
        Some(_) => return Err("targets: must be a list, [[targets]], with an entry".to_owned()),
    };
    let mut all: Vec<(String, Table)> = Vec::new();
    for entry in entries {
        let Value::Table(mut entry) = entry else {
            return Err("targets: entries must be tables".to_owned());
        };
        let Some(Value::String(name)) = entry.remove("name") else {
            return Err("targets: an entry has no name".to_owned());
        };
        let mut own = table.clone();
        merge(&mut own, entry);
        all.push((name, own));
    }
    Ok(all)
}

/// Lay a table over another. Entries of lists find theirs by `name`; `drop = true` removes one.
pub(super) fn merge(base: &mut Table, over: Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(base)), Value::Table(over)) => merge(base, over),
            (Some(Value::Array(base)), Value::Array(over)) if named(base) && named(&over) => {
                for entry in over {
                    merge_entry(base, entry);
                }
            }
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

fn named(list: &[Value]) -> bool {
    !list.is_empty() && list.iter().all(|entry| entry.get("name").is_some())
}

fn merge_entry(list: &mut Vec<Value>, entry: Value) {
    let at = list.iter().position(|old| old.get("name") == entry.get("name"));
    match (at, entry) {
        (Some(at), Value::Table(entry)) if entry.get("drop") == Some(&Value::Boolean(true)) => {
            list.remove(at);
        }
        (Some(at), Value::Table(entry)) => {
            if let Value::Table(old) = &mut list[at] {
                merge(old, entry);
            }
        }
        (_, entry) => list.push(entry),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlays_find_entries_by_name() {
        let mut base: Table = toml::from_str(
            "a = 1\n[t]\nx = [1, 2]\ny = 3\n[[runs]]\nname = 'one'\nn = 1\n[[runs]]\nname = 'two'\n",
        )
        .unwrap();
        let over =
            "t.x = [5]\n[[runs]]\nname = 'one'\nm = 7\n[[runs]]\nname = 'two'\ndrop = true\n";
        merge(&mut base, toml::from_str(over).unwrap());
        let wanted = "a = 1\n[t]\nx = [5]\ny = 3\n[[runs]]\nname = 'one'\nn = 1\nm = 7\n";
        assert_eq!(base, toml::from_str::<Table>(wanted).unwrap());
    }
}
