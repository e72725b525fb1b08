//! Model cards: what is known about a model in a few numbers, `card.toml`, and the `README.md` made of them.

use leaps_report::text::{fixed, sigmas, span, with_error};
use std::path::Path;

use anyhow::Result;
use leaps::Error;
use leaps::observe::Estimate;
use serde::{Deserialize, Serialize};

/// The file of the numbers.
pub const CARD: &str = "card.toml";

/// What is known about a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    pub name: String,
    /// The target in a few words.
    pub target: String,
    /// The network in a few words.
    pub network: String,
    /// Numbers of the network and of its free energy.
    pub parameters: usize,
    pub training: TrainingCard,
    pub sampling: SamplingCard,
    pub speed: SpeedCard,
}

/// How a model was trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingCard {
    /// The command line, without places of the machine.
    pub command: Option<String>,
    /// The file of settings, where the command names one.
    pub settings: Option<String>,
    pub seed: Option<u64>,
    pub steps: u64,
    /// What it ran on.
    pub machine: Option<String>,
    /// Seconds of training, all sessions together.
    pub seconds: Option<f64>,
    /// The model that training started from.
    pub from: Option<String>,
    /// Where a network comes from that was not trained here.
    pub source: Option<String>,
}

/// What a large sample says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SamplingCard {
    pub walkers: usize,
    pub intervals: usize,
    pub seed: u64,
    pub device: String,
    pub ess: Estimate,
    pub log_z: Estimate,
    pub energy_per_site: Estimate,
}

/// How long a small sample takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpeedCard {
    pub walkers: usize,
    pub threads: usize,
    pub machine: String,
    pub seconds: f64,
}

impl Card {
    /// Read a card; `folder` is for errors.
    pub fn parse(text: &str, folder: &Path) -> Result<Self> {
        let corrupt = |error: toml::de::Error| Error::Corrupt {
            path: folder.join(CARD),
            what: "card".to_owned(),
            reason: error.message().to_owned(),
        };
        Ok(toml::from_str(text).map_err(corrupt)?)
    }

    /// The text of `card.toml`.
    pub fn text(&self) -> Result<String> {
        Ok(toml::to_string(self)?)
    }

    /// The command whose time is told.
    fn speed_command(&self) -> String {
        format!("leaps sample --model {} --walkers {} --json", self.name, self.speed.walkers)
    }

    /// The text of `README.md`.
    pub fn readme(&self) -> String {
        let Card { name, target, network, parameters, training, sampling, speed } = self;
        let mut rows = vec![
            ("target", target.clone()),
            ("network", format!("{network}; {parameters} parameters")),
        ];
        rows.extend(training.command.as_ref().map(|words| ("training", format!("`{words}`"))));
        rows.extend(training.settings.as_ref().map(|file| ("settings", format!("`{file}`"))));
        rows.extend(training.source.as_ref().map(|source| ("source", source.clone())));
        rows.extend(training.from.as_ref().map(|from| ("started from", from.clone())));
        let mut how = format!("{} steps", training.steps);
        how += &training.seed.map_or(String::new(), |seed| format!(", seed {seed}"));
        how += &training.seconds.map_or(String::new(), |seconds| format!(", {}", span(seconds)));
        how += &training.machine.as_ref().map_or(String::new(), |on| format!(" on {on}"));
        rows.push(("trained for", how));
        let plain = |e: &Estimate| with_error(e.mean, e.error);
        let beside = |e: &Estimate| {
            let exact = e.exact.map(|x| {
                let off = sigmas(e.mean, e.error, x);
                format!("; exact {}, {off} sigmas", fixed(x, 8))
            });
            plain(e) + &exact.unwrap_or_default()
        };
        rows.push(("effective sample size", plain(&sampling.ess)));
        rows.push(("log Z", beside(&sampling.log_z)));
        rows.push(("energy per site", beside(&sampling.energy_per_site)));
        let seconds = format!("{:.2} s", speed.seconds);
        let command = self.speed_command();
        rows.push((
            "time of a sample",
            format!("{seconds}: `{command}` on {} cores, {}", speed.threads, speed.machine),
        ));
        let lines: String =
            rows.iter().map(|(key, value)| format!("| {key} | {value} |\n")).collect();
        format!(
            "# {name}\n\n```sh\nleaps sample --model {name}\n```\n\n| | |\n|---|---|\n{lines}\nEstimates are those of {} walkers by `events` \
             with {} intervals, seed {}, on {}; errors are standard errors in the last digits. This page is made of `{CARD}` by `leaps models --add`.\n",
            sampling.walkers, sampling.intervals, sampling.seed, sampling.device,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::shipped::SHIPPED;
    use super::*;

    /// The folder of a shipped model in the repository.
    fn folder(name: &str) -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../leaps/models").join(name)
    }

    #[test]
    fn pages_say_what_cards_say_and_models_are_what_they_say() {
        for shipped in SHIPPED {
            let card = shipped.card().unwrap();
            assert_eq!(card.name, shipped.name);
            let page = std::fs::read_to_string(folder(&card.name).join("README.md")).unwrap();
            assert_eq!(page, card.readme(), "make it again: leaps models --add");
            let model = shipped.model().unwrap();
            assert_eq!(model.training.steps, card.training.steps);
            assert_eq!(model.training.seed, card.training.seed);
            let log_z = card.sampling.log_z;
            assert!(log_z.z().is_none_or(|z| z.abs() < 5.0), "{log_z:?}");
        }
    }

    #[test]
    fn cards_are_read_as_they_are_written() {
        let estimate = Estimate::new(1.5, 0.25).with_exact(1.25);
        let card = Card {
            name: "a".to_owned(),
            target: "Ising".to_owned(),
            network: "mlp".to_owned(),
            parameters: 3,
            training: TrainingCard {
                command: None,
                settings: None,
                seed: Some(1),
                steps: 2,
                machine: Some("a machine".to_owned()),
                seconds: Some(1.0),
                from: None,
                source: None,
            },
            sampling: SamplingCard {
                walkers: 10,
                intervals: 5,
                seed: 1,
                device: "cpu".to_owned(),
                ess: Estimate::new(0.5, f64::INFINITY),
                log_z: estimate,
                energy_per_site: estimate,
            },
            speed: SpeedCard { walkers: 20, threads: 2, machine: "x".to_owned(), seconds: 0.5 },
        };
        let text = card.text().unwrap();
        assert_eq!(Card::parse(&text, Path::new("a")).unwrap(), card, "{text}");
        assert!(
            card.readme().contains("| log Z | 1.5(3); exact 1.25000000, +1.0 sigmas |"),
            "{}",
            card.readme()
        );
        let error = Card::parse("name = 3", Path::new("a")).unwrap_err();
        assert!(error.to_string().contains("card.toml"), "{error}");
    }
}
