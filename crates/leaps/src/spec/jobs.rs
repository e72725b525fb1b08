//! The settings of one job, by keys without their sections: what a call of a function names.

use toml::{Table, Value};

use super::RunSpec;
use super::keys::{keys, keys_of};
use crate::mcmc::{ChainSpec, KernelSpec};
use crate::observe::MeasureSpec;
use crate::parse::nearest;
use crate::sampler::{ResampleSpec, SchemeSpec, UpdateSpec, WalkerSpec};
use crate::{Error, Result};

/// The jobs that have settings, by the names of the program's verbs.
pub const JOBS: [&str; 8] =
    ["exact", "ais", "smc", "mcmc", "sample", "free-energy", "minimize", "train"];

/// The keys that a job reads, each with its section; no key is there twice.
///
/// ```
/// assert!(leaps::spec::keys_of_job("ais").contains(&("sample", "walkers")));
/// assert!(!leaps::spec::keys_of_job("ais").contains(&("sample", "chains")));
/// ```
pub fn keys_of_job(job: &str) -> Vec<(&'static str, &'static str)> {
    let of_section = |section: &'static str| -> Vec<_> {
        keys_of(section).into_iter().map(|key| (section, key)).collect()
    };
    let walkers = [keys::<WalkerSpec>(), keys::<MeasureSpec>()].concat();
    let sample: Vec<&'static str> = match job {
        "ais" => [walkers, [keys::<KernelSpec>(), keys::<UpdateSpec>()].concat()].concat(),
        "smc" => {
            let more = [keys::<KernelSpec>(), keys::<UpdateSpec>(), keys::<ResampleSpec>()];
            [walkers, more.concat()].concat()
        }
        "mcmc" => {
            let more = [keys::<MeasureSpec>(), &["at_beta"]];
            [keys::<KernelSpec>(), keys::<ChainSpec>(), &more.concat()].concat()
        }
        "sample" => [walkers, [keys::<SchemeSpec>(), keys::<ResampleSpec>()].concat()].concat(),
        "free-energy" => {
            let all = keys_of("sample").into_iter();
            all.filter(|key| !["at_beta", "two_sided", "updates", "structure_factor"].contains(key))
                .collect()
        }
        _ => Vec::new(),
    };
    let mut all: Vec<_> = sample.into_iter().map(|key| ("sample", key)).collect();
    match job {
        "ais" | "smc" => all.extend(of_section("path")),
        "sample" => all.extend(of_section("target")),
        "train" => ["path", "network", "train"].iter().for_each(|s| all.extend(of_section(s))),
        _ => {}
    }
    all
}

impl RunSpec {
    /// These settings with those of a job over them, which names `seed` and keys of its own without their sections.
    ///
    /// # Errors
    /// Those of [`from_table`](Self::from_table); keys of other jobs, by their names.
    pub fn with_job(&self, job: &str, entry: &Table) -> Result<Self> {
        let known = keys_of_job(job);
        let mut table = Table::new();
        for (key, value) in entry {
            if key == "seed" {
                table.insert(key.clone(), value.clone());
                continue;
            }
            let Some((section, _)) = known.iter().find(|(_, own)| own == key) else {
                return Err(unknown(job, key));
            };
            let values = table.entry(*section).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(values) = values {
                values.insert(key.clone(), value.clone());
            }
        }
        self.with(&table)
    }
}

/// The refusal of a key that a job does not read, with the one that was probably meant, or whose it is.
fn unknown(job: &str, key: &str) -> Error {
    let own: Vec<&str> = keys_of_job(job).into_iter().map(|(_, key)| key).collect();
    let has = |job: &&str| keys_of_job(job).iter().any(|(_, own)| *own == key);
    let owners: Vec<&str> = JOBS.into_iter().filter(has).collect();
    let advice = match nearest(key, own.iter().copied()) {
        _ if !owners.is_empty() => format!("it belongs to {}", owners.join(", ")),
        Some(near) => format!("did you mean {near}?"),
        None if own.is_empty() => format!("{job} has no settings of this kind"),
        None => format!("{job} has {}", own.join(", ")),
    };
    Error::UnknownKey { key: key.to_owned(), advice }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn no_job_has_a_key_twice() {
        for job in JOBS {
            let mut keys: Vec<_> = keys_of_job(job).into_iter().map(|(_, key)| key).collect();
            let all = keys.len();
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), all, "{job}");
        }
    }

    #[test]
    fn keys_find_their_sections() {
        let text = "seed = 4\nwalkers = 30\nschedule = 'geometric'\nkernel = 'metropolis'";
        let spec = RunSpec::default().with_job("ais", &table(text)).unwrap();
        assert_eq!((spec.seed, spec.walkers.walkers), (4, 30));
        assert_eq!(spec.path.schedule, crate::path::ScheduleName::Geometric);
        assert_eq!(spec.kernel.kernel.to_string(), "metropolis");
        let spec = RunSpec::default().with_job("train", &table("steps = 7\nchannels = 8")).unwrap();
        assert_eq!((spec.train.steps, spec.network.channels), (7, Some(8)));
        let spec = RunSpec::default().with_job("mcmc", &table("steps = 9")).unwrap();
        assert_eq!(spec.chains.steps, 9);
    }

    #[test]
    fn strangers_are_refused_with_advice() {
        for (job, text, words) in [
            ("ais", "walkrs = 3", "did you mean walkers?"),
            ("ais", "chains = 3", "chains: unknown key; it belongs to mcmc, free-energy"),
            ("exact", "walkers = 3", "it belongs to ais"),
            ("mcmc", "zzzzzz = 3", "mcmc has kernel"),
            ("ais", "walkers = 'x'", "sample.walkers = \"x\": must be a whole number"),
        ] {
            let error = RunSpec::default().with_job(job, &table(text)).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
