//! Interactions of lattice models as files and flags have them.
//!
//! ```toml
//! [[target.interactions]]
//! offsets = [[0, 0], [0, 1]]
//! table = [[0, 1], [0.5, -1]]
//!
//! [[target.interactions]]
//! offsets = [[0, 0], [0, 1], [1, 0]]
//! strength = 0.3
//! ```

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::parse;

/// One interaction: a cluster of sites, and its energies.
#[derive(Clone, Debug, PartialEq)]
pub struct InteractionSpec {
    /// The places of the cluster's sites, a coordinate for each axis. None are a single site.
    pub offsets: Vec<Vec<i64>>,
    /// In place of offsets: the pairs of nearest (1), second or third neighbours of the target's lattice.
    pub neighbours: Option<usize>,
    /// The energies of all combinations of values, that of the first place varying slowest.
    pub table: Option<Vec<f64>>,
    /// In place of a table: `-strength` times the product of the spins.
    pub strength: Option<f64>,
    /// The energy term that it is a part of; `bonds`, or `sites` for single sites, if nothing is said.
    pub term: Option<String>,
}

/// All interactions of a lattice model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct Interactions(pub Vec<InteractionSpec>);

/// The number that every value stands for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct Spins(pub Vec<f64>);

type Parsed<T> = std::result::Result<T, String>;

const INTERACTIONS: &str =
    "a list of interactions, such as [{offsets = [[0, 0], [0, 1]], strength = 1}]";
const OFFSETS: &str = "interactions with offsets such as [[0, 0], [0, 1]], whole numbers";
const TABLE: &str = "interactions with a table of numbers, nested or in one list";
const SPINS: &str = "numbers with commas between them, one for each value";

impl InteractionSpec {
    /// Spins whose product, times `-strength`, is the energy.
    pub fn strength(offsets: &[Vec<i64>], strength: f64) -> Self {
        let (offsets, strength) = (offsets.to_vec(), Some(strength));
        InteractionSpec { offsets, strength, table: None, term: None, neighbours: None }
    }

    /// Any energies; the value at the first place varies slowest.
    pub fn table(offsets: &[Vec<i64>], energies: &[f64]) -> Self {
        let (offsets, table) = (offsets.to_vec(), Some(energies.to_vec()));
        InteractionSpec { offsets, table, strength: None, term: None, neighbours: None }
    }

    /// The same between all nearest (1), second or third neighbours of the lattice, along the offsets to them.
    pub fn between_neighbours(self, order: usize) -> Self {
        InteractionSpec { offsets: Vec::new(), neighbours: Some(order), ..self }
    }

    fn parse(entry: &Table) -> Parsed<Self> {
        let known = ["offsets", "neighbours", "table", "strength", "term"];
        if let Some(key) = entry.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(format!("interactions of {}, not {key}", known.join(", ")));
        }
        let offsets = match entry.get("offsets") {
            None => Vec::new(),
            Some(Value::Array(places)) => {
                places.iter().map(place).collect::<Option<_>>().ok_or(OFFSETS)?
            }
            Some(_) => return Err(OFFSETS.to_owned()),
        };
        let order =
            |given: &Value| given.as_integer().and_then(|order| usize::try_from(order).ok());
        let neighbours = entry
            .get("neighbours")
            .map(|given| order(given).ok_or("interactions with neighbours = 1, 2 or 3"));
        let neighbours = neighbours.transpose()?;
        let mut energies = Vec::new();
        let table = match entry.get("table") {
            None => None,
            Some(table @ Value::Array(_)) if flatten(table, &mut energies) => Some(energies),
            Some(_) => return Err(TABLE.to_owned()),
        };
        let strength = entry
            .get("strength")
            .map(|given| parse::of_value(given).ok_or("interactions with a number as strength"));
        let strength = strength.transpose()?;
        if table.is_some() == strength.is_some() {
            return Err("interactions with either a table or a strength".to_owned());
        }
        let word =
            |given: &Value| given.as_str().filter(|word| !word.is_empty()).map(str::to_owned);
        let term =
            entry.get("term").map(|given| word(given).ok_or("interactions with a word as term"));
        Ok(InteractionSpec { offsets, neighbours, table, strength, term: term.transpose()? })
    }

    fn print(self) -> Value {
        let mut entry = Table::new();
        let places = if self.neighbours.is_some() { 2 } else { self.offsets.len().max(1) };
        if let Some(order) = self.neighbours {
            entry.insert("neighbours".to_owned(), Value::Integer(order as i64));
        }
        if !self.offsets.is_empty() {
            let numbers =
                |place: Vec<i64>| Value::Array(place.into_iter().map(Value::Integer).collect());
            let offsets = self.offsets.into_iter().map(numbers).collect();
            entry.insert("offsets".to_owned(), Value::Array(offsets));
        }
        if let Some(energies) = self.table {
            entry.insert("table".to_owned(), nested(&energies, places));
        }
        if let Some(strength) = self.strength {
            entry.insert("strength".to_owned(), Value::Float(strength));
        }
        if let Some(term) = self.term {
            entry.insert("term".to_owned(), Value::String(term));
        }
        Value::Table(entry)
    }
}

/// A place: its coordinates, or a plain number on a chain.
fn place(value: &Value) -> Option<Vec<i64>> {
    let whole = |value: &Value| match value {
        Value::Integer(step) => Some(*step),
        Value::Float(step) if step.fract() == 0.0 && step.abs() < 1e9 => Some(*step as i64),
        _ => None,
    };
    match value {
        Value::Array(steps) => steps.iter().map(whole).collect(),
        one => whole(one).map(|step| vec![step]),
    }
}

/// Collect the numbers of nested lists; `false` if there is anything else.
fn flatten(value: &Value, into: &mut Vec<f64>) -> bool {
    match value {
        Value::Array(items) => items.iter().all(|item| flatten(item, into)),
        one => parse::of_value(one).map(|number| into.push(number)).is_some(),
    }
}

/// The energies of so many places as nested lists, where they are a power of the number of values.
pub(super) fn nested(energies: &[f64], places: usize) -> Value {
    let q = (energies.len() as f64).powf(1.0 / places as f64).round() as usize;
    let numbers = |row: &[f64]| row.iter().map(|&energy| Value::Float(energy)).collect();
    let full = u32::try_from(places).ok().and_then(|n| q.checked_pow(n));
    if places < 2 || full != Some(energies.len()) {
        return Value::Array(numbers(energies));
    }
    let rows = energies.chunks_exact(energies.len() / q);
    Value::Array(rows.map(|row| nested(row, places - 1)).collect())
}

impl TryFrom<Value> for Interactions {
    type Error = String;

    fn try_from(value: Value) -> Parsed<Self> {
        match &value {
            Value::String(text) => text.parse(),
            Value::Array(entries) => {
                let entry = |entry: &Value| {
                    entry.as_table().ok_or(INTERACTIONS.to_owned()).and_then(InteractionSpec::parse)
                };
                entries.iter().map(entry).collect::<Parsed<_>>().map(Interactions)
            }
            _ => Err(INTERACTIONS.to_owned()),
        }
    }
}

impl From<Interactions> for Value {
    fn from(interactions: Interactions) -> Value {
        Value::Array(interactions.0.into_iter().map(InteractionSpec::print).collect())
    }
}

impl FromStr for Interactions {
    type Err = String;

    fn from_str(text: &str) -> Parsed<Self> {
        let table: Table = toml::from_str(&format!("value = {text}")).map_err(|_| INTERACTIONS)?;
        match table.get("value") {
            Some(value @ Value::Array(_)) if table.len() == 1 => Self::try_from(value.clone()),
            _ => Err(INTERACTIONS.to_owned()),
        }
    }
}

impl TryFrom<Value> for Spins {
    type Error = String;

    fn try_from(value: Value) -> Parsed<Self> {
        match &value {
            Value::String(text) => text.parse(),
            Value::Array(values) => parse::list(values).map(Spins).ok_or_else(|| SPINS.to_owned()),
            _ => Err(SPINS.to_owned()),
        }
    }
}

impl From<Spins> for Value {
    fn from(spins: Spins) -> Value {
        Value::Array(spins.0.into_iter().map(Value::Float).collect())
    }
}

impl FromStr for Spins {
    type Err = String;

    fn from_str(text: &str) -> Parsed<Self> {
        let values: std::result::Result<Vec<f64>, _> =
            text.split(',').map(|word| word.trim().parse()).collect();
        values.map(Spins).map_err(|_| SPINS.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interactions_survive_a_round_trip() {
        let text = "[{offsets = [[0, 0], [0, 1]], table = [[0, 1], [0.5, -1]]}, \
                    {offsets = [[0, 0], [0, 1], [1, 0]], strength = 0.3, term = 'three'}, \
                    {table = [0.25, 0]}, {neighbours = 2, table = [[0, 1], [2, 3]], term = 'far'}]";
        let all: Interactions = text.parse().unwrap();
        assert_eq!(all.0[0].table.as_deref(), Some(&[0.0, 1.0, 0.5, -1.0][..]));
        assert_eq!((all.0[1].offsets.len(), all.0[1].strength), (3, Some(0.3)));
        assert!(all.0[2].offsets.is_empty());
        assert_eq!((all.0[3].neighbours, all.0[3].offsets.len()), (Some(2), 0));
        let printed = Value::from(all.clone());
        assert_eq!(Interactions::try_from(printed.clone()).unwrap(), all);
        assert_eq!(printed.to_string().parse::<Interactions>().unwrap(), all);
        assert!(printed.to_string().contains("[[0.0, 1.0], [0.5, -1.0]]"), "{printed}");
        let json = serde_json::to_value(&all).unwrap();
        assert_eq!(serde_json::from_value::<Interactions>(json).unwrap(), all);
        let chain: Interactions = "[{offsets = [0, 1], strength = 1}]".parse().unwrap();
        assert_eq!(chain.0[0].offsets, [vec![0], vec![1]]);
    }

    #[test]
    fn other_things_are_refused() {
        for text in [
            "3",
            "[3]",
            "[{offsets = [[0, 0]]}]",
            "[{offsets = [[0.5]], strength = 1}]",
            "[{strength = 1, table = [1]}]",
            "[{strength = 1, colour = 2}]",
            "[{table = ['x']}]",
            "[{neighbours = 'x', strength = 1}]",
            "[{neighbours = -1, strength = 1}]",
            "[]\nother = 1",
        ] {
            assert!(text.parse::<Interactions>().is_err(), "{text}");
        }
        assert!("1,x".parse::<Spins>().is_err());
        assert_eq!("-1, 0,1".parse::<Spins>().unwrap().0, [-1.0, 0.0, 1.0]);
    }
}
