//! Results of the schema before, with the names of today.

use serde_json::Value;

use super::SCHEMA;

/// What was called otherwise in results of schema 1.
const RENAMED: [(&str, &str); 6] = [
    ("engine", "device"),
    ("engines", "devices"),
    ("every", "thin"),
    ("processor", "cpu"),
    ("token", "value"),
    ("totals", "global_features"),
];

/// Give what was printed with schema 1 the names of today; everything else stays as it is.
///
/// What results have said since then is as unknown as where it is `null`.
pub fn upgrade(results: &mut Value) {
    if results.get("schema").is_some_and(|schema| *schema == SCHEMA - 1) {
        rename(results);
        results["schema"] = SCHEMA.into();
    }
}

/// The same for a part of an experiment, which has no schema: it was the `engine` that computed it.
pub fn upgrade_part(part: &mut Value) {
    if part.get("engine").is_some() {
        rename(part);
    }
}

fn rename(value: &mut Value) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(rename),
        Value::Object(entries) => {
            let moved = |(old, new): (&str, &str)| (old.to_owned(), new.to_owned());
            let mut renamed: Vec<(String, String)> = RENAMED.into_iter().map(moved).collect();
            // The number of values of a target; lists of edges have states, too.
            if entries.contains_key("kind") {
                renamed.push(moved(("states", "q")));
            }
            for (old, new) in renamed {
                if let Some(value) = entries.remove(&old) {
                    entries.entry(new).or_insert(value);
                }
            }
            entries.values_mut().for_each(rename);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{AnyResult, Record, SamplerResult};
    use serde::Deserialize;
    use serde_json::json;
    use std::{fs, path::Path};

    /// Every result in docs/results that was found with schema 1, alone and as it was printed then.
    #[test]
    fn results_of_the_schema_before_are_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
        let scratch = tempfile::tempdir().unwrap();
        let printed = scratch.path().join("results.json");
        let (mut files, mut walkers, mut chains) = (0, 0, 0);
        for file in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if file.extension().is_none_or(|end| end != "json") {
                continue;
            }
            let mut all: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
            if all["schema"] != 1 {
                continue;
            }
            files += 1;
            for run in all["runs"].as_array().unwrap() {
                let Some(result) = run["result"].as_object() else { continue };
                let mut record = json!({
                    "schema": 1, "version": "0.1.0", "command": ["leaps"], "engine": "cpu",
                    "target": {"kind": "potts", "size": 15, "states": 3, "beta": 1.0, "sites": 225},
                });
                record.as_object_mut().unwrap().extend(result.clone());
                fs::write(&printed, record.to_string()).unwrap();
                let read = Record::<AnyResult>::read(&printed).unwrap();
                assert_eq!((read.origin.schema, &*read.origin.device), (SCHEMA, "cpu"));
                assert_eq!(read.origin.target["q"], 3);
                let AnyResult::Sampler(found) = &read.result else { panic!("{}", file.display()) };
                match &**found {
                    SamplerResult::Walkers(_) => walkers += 1,
                    SamplerResult::Chains(found) => {
                        chains += 1;
                        assert_eq!(Some(found.thin as u64), result["every"].as_u64());
                    }
                }
                assert_eq!(Some(found.seed()), result["seed"].as_u64());
                assert!(read.rows().iter().any(|row| row.quantity == "energy_per_site"));
            }
            upgrade(&mut all);
            assert!(all.get("engines").is_none() && all["runs"][0]["device"].is_string());
        }
        assert!(files > 10 && walkers > 50 && chains > 50, "{files} {walkers} {chains}");
    }

    #[test]
    fn results_of_today_and_other_things_stay_as_they_are() {
        for mut value in [
            json!({"schema": 2, "every": 1, "target": {"kind": "file", "states": 2}}),
            json!({"schema": 3, "engine": "cpu"}),
            json!({"engine": 1}),
            json!([1, {"schema": 1}]),
        ] {
            let before = value.clone();
            upgrade(&mut value);
            assert_eq!(value, before);
        }
        let mut part = json!({"engine": "the CPU", "settings": {"run": {"every": 5}}});
        upgrade_part(&mut part);
        assert_eq!(part, json!({"device": "the CPU", "settings": {"run": {"thin": 5}}}));
        let comparison = json!({"schema": 1, "samplers": [{"every": 2}]});
        let mut read = comparison;
        upgrade(&mut read);
        assert_eq!(read["samplers"][0], Value::deserialize(json!({"thin": 2})).unwrap());
    }
}
