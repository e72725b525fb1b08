//! Configurations as commented TOML.

use leaps::spec::{RunSpec, SECTIONS};
use toml::{Table, Value};

use super::Layers;
use super::schema::{self, Key};

/// The whole configuration as commented TOML; parsing it gives the same configuration.
pub fn to_toml(config: &RunSpec) -> String {
    to_toml_from(config, &Layers::default())
}

/// The same, saying where values that are not defaults came from.
pub fn to_toml_from(config: &RunSpec, layers: &Layers) -> String {
    let mut text = String::from(
        "# A configuration of leaps. 'leaps check FILE' explains it; every key below may be changed,\n\
         # removed (it then has its default) or overridden with --set KEY=VALUE.\n\n",
    );
    let values = config.table();
    let all = schema::all();
    for section in std::iter::once("").chain(SECTIONS) {
        let keys: Vec<&Key> = all.iter().filter(|key| split(&key.path).0 == section).collect();
        let lines: Vec<(String, String)> = keys
            .iter()
            .filter_map(|key| {
                let name = split(&key.path).1;
                match lookup(&values, &key.path) {
                    Some(value) => {
                        let origin = layers.origin(&key.path).map(|from| format!(" (from {from})"));
                        let help = comment(&key.help) + &origin.unwrap_or_default();
                        Some((format!("{name} = {}", show(value)), help))
                    }
                    // Left open: the default, which the comment says, depends on where it is used.
                    None if is_open(config, section, name) => {
                        Some((format!("# {name} ="), key.help.replace('\n', " ")))
                    }
                    None => None,
                }
            })
            .collect();
        if !section.is_empty() {
            text += &format!("\n[{section}]\n");
        }
        let width = lines.iter().map(|(line, _)| line.len()).max().unwrap_or(0).min(44);
        for (line, comment) in lines {
            text += &format!("{line:width$}  # {comment}\n");
        }
        if section == "path" {
            text += "\n[path.terms]\n# Schedules of single energy terms, such as: field = \"trigonometric\"\n";
            for (term, schedule) in &config.path.terms {
                text += &format!(
                    "{} = {}\n",
                    quote(term),
                    show(
                        &Value::try_from(schedule).unwrap_or_else(|error| unreachable!("{error}"))
                    )
                );
            }
        }
    }
    text
}

/// Whether a key without a value would mean something.
fn is_open(config: &RunSpec, section: &str, name: &str) -> bool {
    match section {
        "network" => config.network.kind.is_some_and(|kind| kind.keys().contains(&name)),
        "train" | "sample" => true,
        _ => false,
    }
}

fn split(path: &str) -> (&str, &str) {
    path.split_once('.').unwrap_or(("", path))
}

fn lookup<'a>(values: &'a Table, path: &str) -> Option<&'a Value> {
    match split(path) {
        ("", name) => values.get(name),
        (section, name) => values.get(section)?.get(name),
    }
}

/// Flags state their defaults in brackets; next to the value itself that is noise.
fn comment(help: &str) -> String {
    let help = help.split(" [default").next().unwrap_or(help);
    help.trim_end_matches(", see below").replace('\n', " ")
}

fn quote(key: &str) -> String {
    let bare =
        !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if bare { key.to_owned() } else { Value::String(key.to_owned()).to_string() }
}

fn show(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}
