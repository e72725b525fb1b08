//! Settings of a search for the lowest energy.

use serde::{Deserialize, Serialize};

#[cfg(feature = "clap")]
use crate::parse::{count, number};
use crate::{Error, Result};

/// How to look for the lowest energy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum MinimizeMethod {
    /// A network if there is one, an exact method if one is quick, else annealing.
    #[default]
    Auto,
    /// Enumeration or elimination: the ground state, proven.
    Exact,
    /// Walkers that are cooled.
    Annealing,
    /// Temperatures that exchange states.
    Tempering,
    /// The same with two states a temperature that exchange clusters.
    Houdayer,
    /// Walkers that follow a trained network.
    Network,
}

impl std::str::FromStr for MinimizeMethod {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self> {
        let all = [
            MinimizeMethod::Auto,
            MinimizeMethod::Exact,
            MinimizeMethod::Annealing,
            MinimizeMethod::Tempering,
            MinimizeMethod::Houdayer,
            MinimizeMethod::Network,
        ];
        let found = all.into_iter().find(|method| method.to_string() == word);
        found.ok_or_else(|| {
            let names: Vec<String> = all.iter().map(ToString::to_string).collect();
            Error::invalid("method", word, format!("one of {}", names.join(", ")), "auto is usual")
        })
    }
}

impl std::fmt::Display for MinimizeMethod {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            MinimizeMethod::Auto => "auto",
            MinimizeMethod::Exact => "exact",
            MinimizeMethod::Annealing => "annealing",
            MinimizeMethod::Tempering => "tempering",
            MinimizeMethod::Houdayer => "houdayer",
            MinimizeMethod::Network => "network",
        })
    }
}

/// How to look, and how often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = "Search"))]
#[serde(default, deny_unknown_fields)]
pub struct MinimizeSpec {
    /// How: auto, exact, annealing, tempering, houdayer or network
    #[cfg_attr(feature = "clap", arg(long, value_enum, value_name = "NAME", default_value_t))]
    #[cfg_attr(feature = "clap", arg(hide_possible_values = true))]
    pub method: MinimizeMethod,
    /// Independent restarts, each with a seed of its own [default: 10 if nothing else says when to end]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = count))]
    pub restarts: Option<usize>,
    /// Restart until an energy of the whole system at most this is found
    #[cfg_attr(feature = "clap", arg(long, value_name = "E", value_parser = number))]
    pub target_energy: Option<f64>,
    /// Walkers of a restart, or ladders of temperatures
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = count, default_value_t = MinimizeSpec::default().walkers))]
    pub walkers: usize,
    /// Sweeps of each walker, or of each temperature of a ladder, in a restart
    // A network's walkers take a tenth as many intervals.
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = count, default_value_t = MinimizeSpec::default().sweeps))]
    pub sweeps: usize,
    /// Temperatures of each ladder (tempering, houdayer)
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = count, default_value_t = MinimizeSpec::default().temperatures))]
    pub temperatures: usize,
}

impl Default for MinimizeSpec {
    fn default() -> Self {
        MinimizeSpec {
            method: MinimizeMethod::Auto,
            restarts: None,
            target_energy: None,
            walkers: 128,
            sweeps: 1000,
            temperatures: 16,
        }
    }
}
