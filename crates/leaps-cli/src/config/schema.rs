//! Every key of a configuration, from the definitions of the flags.

use clap::{Args, Command};

use leaps::mcmc::{ChainSpec, KernelSpec};
use leaps::net::NetworkOptions;
use leaps::observe::MeasureSpec;
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
    all.extend(section::<MeasureSpec>("sample"));
    all
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_is_a_key() {
        for key in all() {
            assert!(leaps::spec::is_known(&key.path), "{}", key.path);
        }
        let known: usize =
            leaps::spec::SECTIONS.iter().map(|s| leaps::spec::keys_of(s).len()).sum();
        // The seed is in no section; path.terms has no flag.
        assert_eq!(all().len() - 1, known - 1);
    }
}
