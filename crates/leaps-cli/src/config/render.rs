//! Print a configuration with comments, and say a target in words and as a formula.

use std::path::Path;

use toml::{Table, Value};

use super::schema::{self, Key};
use super::value::Field;
use super::{Config, Kind, Layers, TargetSpec};

/// The whole configuration as commented TOML; parsing it gives the same configuration.
pub fn to_toml(config: &Config) -> String {
    to_toml_from(config, &Layers::default())
}

/// The same, saying where values that are not defaults came from.
pub fn to_toml_from(config: &Config, layers: &Layers) -> String {
    let mut text = String::from(
        "# A configuration of leaps. 'leaps check FILE' explains it; every key below may be changed,\n\
         # removed (it then has its default) or overridden with --set KEY=VALUE.\n\n",
    );
    let values = table(config);
    let all = schema::all();
    for section in std::iter::once("").chain(schema::SECTIONS) {
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
                text += &format!("{} = {}\n", quote(term), show(&to_value(schedule)));
            }
        }
    }
    text
}

/// Whether a key without a value would mean something.
fn is_open(config: &Config, section: &str, name: &str) -> bool {
    match section {
        "network" => config.network.kind.is_some_and(|kind| kind.keys().contains(&name)),
        "train" | "sample" => true,
        _ => false,
    }
}

/// All values, by section.
fn table(config: &Config) -> Table {
    let mut sample = Table::new();
    for group in [
        to_value(&config.flow),
        to_value(&config.walkers),
        to_value(&config.resample),
        to_value(&config.kernel),
        to_value(&config.updates),
        to_value(&config.chains),
    ] {
        sample.extend(group.as_table().cloned().unwrap_or_default());
    }
    Table::from_iter([
        ("seed".to_owned(), to_value(&config.seed)),
        ("target".to_owned(), to_value(&config.target)),
        ("path".to_owned(), to_value(&config.path)),
        ("network".to_owned(), to_value(&config.network)),
        ("train".to_owned(), to_value(&config.train)),
        ("sample".to_owned(), Value::Table(sample)),
    ])
}

fn to_value(value: &impl serde::Serialize) -> Value {
    Value::try_from(value).unwrap_or_else(|error| unreachable!("specifications are TOML: {error}"))
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

/// The target in a few words, for headings.
pub fn describe(spec: &TargetSpec, sites: usize) -> String {
    let shape = || match (&spec.size, spec.dimensions) {
        (Some(size), Some(d)) if size.0.len() == 1 => vec![size.0[0].to_string(); d].join("x"),
        (Some(size), _) => size.to_string(),
        (None, _) => String::new(),
    };
    let boundary = match spec.boundary {
        Some(super::target::BoundaryName::Free) => "free",
        _ => "periodic",
    };
    let seed = spec.disorder_seed.unwrap_or(1);
    let what = match spec.kind {
        Some(Kind::Ising) => format!("Ising {} {boundary}", shape()),
        Some(Kind::Potts) => {
            format!("Potts q={} {} {boundary}", spec.q.unwrap_or(3), shape())
        }
        Some(Kind::SpinGlass) => {
            let law = to_value(&spec.couplings);
            let law = law.as_str().unwrap_or("pm1").to_owned();
            match spec.dimensions {
                Some(_) => {
                    format!("spin glass {} {boundary}, {law} couplings (seed {seed})", shape())
                }
                None => format!(
                    "Sherrington-Kirkpatrick glass of {sites} spins, {law} couplings (seed {seed})"
                ),
            }
        }
        Some(Kind::Rbm) => format!(
            "restricted Boltzmann machine {}+{} (seed {seed})",
            spec.visible.unwrap_or(0),
            spec.hidden.unwrap_or(0)
        ),
        Some(Kind::File) | None => {
            let name = spec.path.as_deref().and_then(Path::file_name).unwrap_or_default();
            format!("{} ({sites} sites)", name.to_string_lossy())
        }
    };
    let mut text = format!("{what}, beta {}", spec.beta.unwrap_or(1.0));
    if let Some(coupling) = spec.coupling.filter(|j| *j != 1.0) {
        text += &format!(", J {coupling}");
    }
    match &spec.field {
        Some(Field::Uniform(0.0)) | None => {}
        Some(Field::Uniform(h)) => text += &format!(", h {h}"),
        Some(_) => text += ", h per site",
    }
    text
}

/// The energy and the distribution as formulas with their numbers.
pub fn formula(spec: &TargetSpec) -> String {
    let coupling = spec.coupling.unwrap_or(1.0);
    let field = |what: &str| match &spec.field {
        Some(Field::Uniform(h)) if *h == 0.0 => String::new(),
        Some(Field::Uniform(h)) => {
            format!(" {} {} sum_i {what}", if *h < 0.0 { '-' } else { '+' }, h.abs())
        }
        Some(_) => format!(" + sum_i h_i {what}"),
        None => String::new(),
    };
    let energy = match spec.kind {
        Some(Kind::Ising) => format!("{} sum_<ij> s_i s_j{}", -coupling, field("s_i")),
        Some(Kind::Potts) => format!("{} sum_<ij> [x_i = x_j]{}", -coupling, field("[x_i = 0]")),
        Some(Kind::SpinGlass) if spec.dimensions.is_none() => {
            format!("-N^(-1/2) sum_(i<j) J_ij s_i s_j{}", field("s_i"))
        }
        Some(Kind::SpinGlass) => format!("-sum_<ij> J_ij s_i s_j{}", field("s_i")),
        Some(Kind::Rbm) => "-sum_ij v_i W_ij h_j - sum_i a_i v_i - sum_j b_j h_j".to_owned(),
        Some(Kind::File) | None => {
            "-sum_ij J_ij s_i s_j + sum_i h_i s_i (Potts: [x_i = x_j] and [x_i = 0])".to_owned()
        }
    };
    format!("E = {energy},  rho ~ exp(-{} E)", spec.beta.unwrap_or(1.0))
}
