//! Chains as users ask for them: a move by its name, a kernel or an exchange between temperatures, and how long.

use std::fmt;
use std::str::FromStr;

#[cfg(feature = "clap")]
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::{Deserialize, Serialize};

use super::KernelName;
use super::lanes::Scan;
use crate::parse::{at_least, list_or_range};
#[cfg(feature = "clap")]
use crate::parse::{count, numbers};
use crate::{Error, Result};

/// How the states move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Move {
    /// A kernel that moves one state.
    Kernel(KernelName),
    /// States at several temperatures that change places.
    ParallelTempering,
    /// The same with two states at each temperature, which exchange clusters.
    Houdayer,
    /// States at several temperatures that keep their places.
    Ladder,
}

const EXCHANGES: [(&str, &str, Move); 3] = [
    (
        "parallel-tempering",
        "several temperatures that exchange states, each moved by --tempering-kernel",
        Move::ParallelTempering,
    ),
    (
        "houdayer",
        "the same with two states a temperature that exchange clusters (glasses)",
        Move::Houdayer,
    ),
    (
        "ladder",
        "several temperatures apart, each moved by --tempering-kernel (log Z)",
        Move::Ladder,
    ),
];

fn names() -> Vec<&'static str> {
    let kernels = KernelName::ALL.iter().map(|kernel| kernel.as_str());
    kernels.chain(EXCHANGES.iter().map(|(name, _, _)| *name)).collect()
}

impl FromStr for Move {
    type Err = String;

    fn from_str(word: &str) -> std::result::Result<Self, String> {
        if let Some((_, _, exchange)) = EXCHANGES.iter().find(|(name, _, _)| *name == word) {
            return Ok(*exchange);
        }
        word.parse().map(Move::Kernel).map_err(|_| format!("one of {}", names().join(", ")))
    }
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Move::Kernel(kernel) => kernel.fmt(f),
            other => f.write_str(
                EXCHANGES.iter().find(|(_, _, exchange)| exchange == other).map_or("", |e| e.0),
            ),
        }
    }
}

impl TryFrom<String> for Move {
    type Error = String;

    fn try_from(word: String) -> std::result::Result<Self, String> {
        word.parse()
    }
}

impl From<Move> for String {
    fn from(moves: Move) -> String {
        moves.to_string()
    }
}

#[cfg(feature = "clap")]
fn kernel_values() -> Vec<PossibleValue> {
    let value = |kernel: KernelName| PossibleValue::new(kernel.as_str()).help(kernel.description());
    KernelName::ALL.into_iter().map(value).collect()
}

/// Parse a kernel on the command line.
#[cfg(feature = "clap")]
fn kernel_parser() -> impl TypedValueParser<Value = KernelName> {
    PossibleValuesParser::new(kernel_values()).try_map(|word| word.parse::<KernelName>())
}

/// Parse a move on the command line.
#[cfg(feature = "clap")]
fn move_parser() -> impl TypedValueParser<Value = Move> {
    let exchange = |(name, help, _): &(&'static str, &'static str, Move)| {
        PossibleValue::new(*name).help(*help)
    };
    let values = kernel_values().into_iter().chain(EXCHANGES.iter().map(exchange));
    PossibleValuesParser::new(values.collect::<Vec<_>>()).try_map(|word| word.parse::<Move>())
}

/// The kernels and what they do, for the end of a help text.
pub fn kernels_help(exchanges: bool) -> String {
    let kernels = KernelName::ALL.iter().map(|kernel| (kernel.as_str(), kernel.description()));
    let exchanges = EXCHANGES.iter().filter(|_| exchanges).map(|e| (e.0, e.1));
    let lines: Vec<String> =
        kernels.chain(exchanges).map(|(name, help)| format!("  {name:<18}  {help}")).collect();
    format!("Kernels:\n{}", lines.join("\n"))
}

/// The moves that mix the walkers or make the chains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "clap", command(next_help_heading = "Sampling"))]
pub struct KernelSpec {
    /// Markov chain kernel
    #[cfg_attr(feature = "clap", arg(long, default_value_t = KernelSpec::default().kernel, value_name = "NAME", value_parser = move_parser()))]
    #[cfg_attr(feature = "clap", arg(hide_possible_values = true))]
    pub kernel: Move,
    /// Order of sites in sweeps of heat-bath and metropolis: systematic or coloured
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t, value_name = "ORDER"))]
    #[cfg_attr(feature = "clap", arg(hide_possible_values = true))]
    pub scan: Scan,
}

impl Default for KernelSpec {
    fn default() -> Self {
        KernelSpec { kernel: Move::Kernel(KernelName::HeatBath), scan: Scan::Systematic }
    }
}

/// Numbers that are one value on the command line.
type Numbers = Vec<f64>;

/// Independent Markov chains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "clap", command(next_help_heading = "Sampling"))]
pub struct ChainSpec {
    /// Number of independent chains
    #[cfg_attr(feature = "clap", arg(long, default_value_t = ChainSpec::default().chains, value_name = "N", value_parser = count))]
    pub chains: usize,
    /// Steps of each chain after burn-in
    #[cfg_attr(feature = "clap", arg(long, default_value_t = ChainSpec::default().steps, value_name = "N", value_parser = count))]
    pub steps: usize,
    /// Steps dropped at the start of each chain; step sizes adapt during the first half
    #[cfg_attr(feature = "clap", arg(long, default_value_t = ChainSpec::default().burn_in, value_name = "N", value_parser = count))]
    pub burn_in: usize,
    /// Measure every N steps
    #[cfg_attr(feature = "clap", arg(long, default_value_t = ChainSpec::default().thin, value_name = "N", value_parser = count))]
    pub thin: usize,
    /// Kernel within each temperature of parallel-tempering, houdayer and ladder
    #[cfg_attr(feature = "clap", arg(long, default_value_t = ChainSpec::default().tempering_kernel, value_name = "NAME", value_parser = kernel_parser()))]
    #[cfg_attr(feature = "clap", arg(hide_possible_values = true))]
    pub tempering_kernel: KernelName,
    /// Temperatures of the ladder, unless betas lists them
    #[cfg_attr(feature = "clap", arg(long, default_value_t = ChainSpec::default().temperatures, value_name = "N", value_parser = count))]
    pub temperatures: usize,
    /// Inverse temperatures of the ladder, rising to the target's: B,... or FROM:TO:POINTS
    #[cfg_attr(feature = "clap", arg(long, value_name = "B,...", value_parser = numbers))]
    #[cfg_attr(feature = "clap", arg(default_value = "", hide_default_value = true))]
    #[serde(deserialize_with = "list_or_range")]
    pub betas: Numbers,
}

impl Default for ChainSpec {
    fn default() -> Self {
        ChainSpec {
            chains: 64,
            steps: 10_000,
            burn_in: 1000,
            thin: 1,
            tempering_kernel: KernelName::HeatBath,
            temperatures: 8,
            betas: Vec::new(),
        }
    }
}

impl ChainSpec {
    /// Refuse values outside their ranges.
    pub fn check(&self, beta: f64) -> Result<()> {
        at_least("sample.chains", self.chains, 1, 1 << 31, "64 run about as fast as one")?;
        at_least(
            "sample.steps",
            self.steps,
            2,
            1 << 40,
            "a few hundred autocorrelation times are wanted",
        )?;
        at_least("sample.burn_in", self.burn_in, 0, 1 << 40, "a tenth of the steps is usual")?;
        at_least("sample.thin", self.thin, 1, self.steps, "1 measures every step")?;
        at_least("sample.temperatures", self.temperatures, 2, 10_000, "a ladder has two ends")?;
        let rising = self.betas.windows(2).all(|pair| pair[0].abs() < pair[1].abs());
        let ends = self.betas.last().is_none_or(|last| *last == beta && self.betas.len() >= 2);
        if !rising || !ends || self.betas.iter().any(|b| !b.is_finite()) {
            let list: Vec<String> = self.betas.iter().map(f64::to_string).collect();
            return Err(Error::invalid(
                "sample.betas",
                list.join(","),
                format!("two or more rising numbers that end at the target's beta {beta}"),
                "leave it out to spread `sample.temperatures` evenly",
            ));
        }
        Ok(())
    }
}
