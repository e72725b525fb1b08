//! Choose moves by name: a kernel, or an exchange between temperatures.

use std::fmt;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use leaps::mcmc::KernelName;
use serde::{Deserialize, Serialize};

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
}

const EXCHANGES: [(&str, &str, Move); 2] = [
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
];

fn names() -> Vec<&'static str> {
    let kernels = KernelName::ALL.iter().map(|kernel| kernel.as_str());
    kernels.chain(EXCHANGES.iter().map(|(name, _, _)| *name)).collect()
}

impl FromStr for Move {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
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

    fn try_from(word: String) -> Result<Self, String> {
        word.parse()
    }
}

impl From<Move> for String {
    fn from(moves: Move) -> String {
        moves.to_string()
    }
}

fn kernel_values() -> Vec<PossibleValue> {
    let value = |kernel: KernelName| PossibleValue::new(kernel.as_str()).help(kernel.description());
    KernelName::ALL.into_iter().map(value).collect()
}

/// Parse a kernel on the command line.
pub fn kernel_parser() -> impl TypedValueParser<Value = KernelName> {
    PossibleValuesParser::new(kernel_values()).try_map(|word| word.parse::<KernelName>())
}

/// Parse a move on the command line.
pub fn move_parser() -> impl TypedValueParser<Value = Move> {
    let exchange = |(name, help, _): &(&'static str, &'static str, Move)| {
        PossibleValue::new(*name).help(*help)
    };
    let values = kernel_values().into_iter().chain(EXCHANGES.iter().map(exchange));
    PossibleValuesParser::new(values.collect::<Vec<_>>()).try_map(|word| word.parse::<Move>())
}

/// The kernels and what they do, for the end of a help text.
pub fn kernels_help(exchanges: bool) -> String {
    let kernels = KernelName::ALL.iter().map(|kernel| (kernel.as_str(), kernel.description()));
    let exchanges = EXCHANGES.iter().take(if exchanges { 2 } else { 0 }).map(|e| (e.0, e.1));
    let lines: Vec<String> =
        kernels.chain(exchanges).map(|(name, help)| format!("  {name:<18}  {help}")).collect();
    format!("Kernels:\n{}", lines.join("\n"))
}
