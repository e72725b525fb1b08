//! Every key of a configuration, from the definitions of the flags.

use clap::{Args, Command};
use strsim::levenshtein;

use leaps::mcmc::{ChainSpec, KernelSpec};
use leaps::net::NetworkOptions;
use leaps::path::PathSpec;
use leaps::sampler::{ResampleSpec, SchemeSpec, UpdateSpec, WalkerSpec};
use leaps::target::TargetSpec;
use leaps::train::{StartSpec, TrainSpec};

use crate::cli::Globals;

/// One key of a configuration.
#[derive(Clone, Debug)]
pub struct Key {
    /// Section and name, such as `sample.walkers`.
    pub path: String,
    /// What clap calls it.
    id: String,
    /// What it means, in one line.
    pub help: String,
    /// The flag that sets it, without its dashes; an argument without one has a place of its own.
    pub flag: Option<String>,
}

fn command<T: Args>() -> Command {
    T::augment_args(Command::new("group").no_binary_name(true).disable_help_flag(true))
}

/// The names of a group's flags, as keys.
pub fn keys<T: Args>() -> Vec<String> {
    let mut names: Vec<String> =
        command::<T>().get_arguments().map(|arg| name(arg.get_id().as_str())).collect();
    if std::any::type_name::<T>() == std::any::type_name::<PathSpec>() {
        names.push("terms".to_owned()); // a table, for which there is no flag
    }
    names
}

/// The key of an argument: its id, or what follows the dot of one that is called by section and key because
/// another argument of the same verb has the plain name.
fn name(id: &str) -> String {
    id.rsplit('.').next().unwrap_or(id).to_owned()
}

fn section<T: Args>(section: &str) -> Vec<Key> {
    command::<T>()
        .get_arguments()
        .map(|arg| {
            let help = arg.get_help().map(|text| text.to_string()).unwrap_or_default();
            let dot = if section.is_empty() { "" } else { "." };
            Key {
                path: format!("{section}{dot}{}", name(arg.get_id().as_str())),
                id: arg.get_id().to_string(),
                help,
                flag: arg.get_long().map(str::to_owned),
            }
        })
        .collect()
}

/// Every key, in the order in which a configuration is printed.
pub fn all() -> Vec<Key> {
    let mut all = section::<Globals>("");
    all.retain(|key| key.path == "seed");
    all.extend(section::<TargetSpec>("target"));
    all.extend(section::<PathSpec>("path"));
    all.extend(section::<NetworkOptions>("network"));
    all.extend(section::<TrainSpec>("train"));
    all.extend(section::<StartSpec>("train"));
    all.extend(section::<SchemeSpec>("sample"));
    all.extend(section::<WalkerSpec>("sample"));
    all.extend(section::<ResampleSpec>("sample"));
    all.extend(section::<KernelSpec>("sample"));
    all.extend(section::<UpdateSpec>("sample"));
    all.extend(section::<ChainSpec>("sample"));
    all
}

/// The sections of a configuration, in the order in which they are printed.
pub const SECTIONS: [&str; 5] = ["target", "path", "network", "train", "sample"];

fn find(key: &str) -> Option<Key> {
    all().into_iter().find(|known| known.path == key)
}

/// The flag that sets a key, with its dashes.
pub fn flag(key: &str) -> Option<String> {
    find(key)?.flag.map(|flag| format!("--{flag}"))
}

/// What clap calls the argument that sets a key.
pub fn id(key: &str) -> Option<String> {
    find(key).map(|known| known.id)
}

/// Whether a key exists. `path.terms` has a key for each energy term of whatever target.
pub fn is_known(key: &str) -> bool {
    let term = key.strip_prefix("path.terms.").is_some_and(|term| !term.contains('.'));
    term || all().iter().any(|known| known.path == key)
}

/// The key that was probably meant.
pub fn nearest(key: &str) -> Option<String> {
    let wanted = key.replace('-', "_");
    let last = |path: &str| path.rsplit('.').next().unwrap_or(path).to_owned();
    let all = all();
    if let Some(same) = all.iter().find(|k| last(&k.path) == last(&wanted)) {
        return Some(same.path.clone());
    }
    let close =
        |known: &str| levenshtein(known, &wanted).min(levenshtein(&last(known), &last(&wanted)));
    let best = all.into_iter().min_by_key(|known| close(&known.path))?;
    (close(&best.path) <= 1 + last(&wanted).len() / 4).then_some(best.path)
}

/// What a value must be, from serde's complaint about it.
pub fn condition(message: &str) -> String {
    let Some((_, expected)) = message.split_once("expected ") else {
        return message.trim().to_owned();
    };
    match expected.trim() {
        "usize" | "u64" => "a whole number from 0".to_owned(),
        "f64" => "a number".to_owned(),
        "a string" => "a word in quotes".to_owned(),
        "a sequence" => "a list in square brackets".to_owned(),
        other => other.replace('`', ""),
    }
}
