//! Model cards: what is known about a model in a few numbers, `card.toml`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::observe::Estimate;
use crate::{Error, Result};

/// The file of the numbers.
pub const CARD: &str = "card.toml";

/// What is known about a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// Its name.
    pub name: String,
    /// The target in a few words.
    pub target: String,
    /// The network in a few words.
    pub network: String,
    /// Numbers of the network and of its free energy.
    pub parameters: usize,
    /// How it was trained.
    pub training: TrainingCard,
    /// What a large sample says.
    pub sampling: SamplingCard,
    /// How long a small sample takes.
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
    /// The seed of training.
    pub seed: Option<u64>,
    /// Gradient steps.
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
    /// Number of walkers.
    pub walkers: usize,
    /// Intervals of the path.
    pub intervals: usize,
    /// The seed.
    pub seed: u64,
    /// What it ran on.
    pub device: String,
    /// Effective sample size as a fraction.
    pub ess: Estimate,
    /// Log of the normalisation.
    pub log_z: Estimate,
    /// Energy per site.
    pub energy_per_site: Estimate,
}

/// How long a small sample takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpeedCard {
    /// Number of walkers.
    pub walkers: usize,
    /// Threads.
    pub threads: usize,
    /// The machine.
    pub machine: String,
    /// Seconds.
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
        toml::from_str(text).map_err(corrupt)
    }

    /// The text of `card.toml`.
    pub fn text(&self) -> String {
        toml::to_string(self).unwrap_or_else(|error| unreachable!("cards are TOML: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let text = card.text();
        assert_eq!(Card::parse(&text, Path::new("a")).unwrap(), card, "{text}");
        let error = Card::parse("name = 3", Path::new("a")).unwrap_err();
        assert!(error.to_string().contains("card.toml"), "{error}");
    }
}
