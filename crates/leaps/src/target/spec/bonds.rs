//! The bonds of a uniform model: neighbours by their order on a lattice, or a list of offsets.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::{Kind, Size, TargetSpec};
use crate::parse;
use crate::target::{Bond, Bravais, Couplings, Interaction, Pairwise};
use crate::{Error, Result, finite};

/// Bonds of one strength: a word for them, the strength, their offsets.
type Group = (&'static str, f64, Vec<Vec<i64>>);

/// All bonds of a site, by offset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct Bonds(pub Vec<Bond>);

const BONDS: &str =
    "a list such as [{ offset = [1, 0], strength = 1.0 }], or words such as 1,0:1 0,1:0.5";

impl FromStr for Bonds {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let bond = |word: &str| {
            let (offset, strength) = word.split_once(':')?;
            let offset: Option<Vec<i64>> = offset.split(',').map(|n| n.parse().ok()).collect();
            Some(Bond { offset: offset?, strength: strength.parse().ok()? })
        };
        let all: Option<Vec<Bond>> = text.split_whitespace().map(bond).collect();
        all.map(Bonds).ok_or_else(|| BONDS.to_owned())
    }
}

impl TryFrom<Value> for Bonds {
    type Error = String;

    fn try_from(value: Value) -> std::result::Result<Self, String> {
        let bond = |value: &Value| {
            let table = value.as_table().filter(|table| table.len() == 2)?;
            let steps = table.get("offset")?.as_array()?.iter().map(Value::as_integer);
            let strength = parse::of_value(table.get("strength")?)?;
            Some(Bond { offset: steps.collect::<Option<_>>()?, strength })
        };
        match &value {
            Value::String(text) => return text.parse(),
            Value::Array(all) => all.iter().map(bond).collect::<Option<_>>().map(Bonds),
            _ => None,
        }
        .ok_or_else(|| BONDS.to_owned())
    }
}

impl From<Bonds> for Value {
    fn from(Bonds(bonds): Bonds) -> Value {
        let table = |bond: Bond| {
            let offset = bond.offset.into_iter().map(Value::Integer).collect();
            Value::Table(Table::from_iter([
                ("offset".to_owned(), Value::Array(offset)),
                ("strength".to_owned(), Value::Float(bond.strength)),
            ]))
        };
        Value::Array(bonds.into_iter().map(table).collect())
    }
}

impl fmt::Display for Bonds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> =
            self.0.iter().map(|b| format!("{}:{}", steps(b), b.strength)).collect();
        f.write_str(&words.join(" "))
    }
}

fn steps(bond: &Bond) -> String {
    bond.offset.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

impl TargetSpec {
    /// Refuse settings of lattice and bonds that contradict each other.
    pub(super) fn check_bonds(&self) -> Result<()> {
        for (key, value) in [("target.j2", self.j2), ("target.j3", self.j3)] {
            finite(key, value.unwrap_or(0.0))?;
        }
        if self.bonds.is_some() {
            let given = [("coupling", self.coupling), ("j2", self.j2), ("j3", self.j3)];
            if let Some((key, value)) = given.iter().find_map(|(k, v)| Some((k, (*v)?))) {
                return Err(Error::invalid(
                    format!("target.{key}"),
                    value,
                    "left out where target.bonds has all bonds",
                    "write its bonds into the list",
                ));
            }
        }
        let Some(lattice) = self.lattice else { return Ok(()) };
        let axes = lattice.dimensions();
        let lengths = self.size.as_ref().map_or(1, |Size(sides)| sides.len());
        let given = self.dimensions.unwrap_or(if lengths > 1 { lengths } else { axes });
        if given != axes {
            return Err(Error::invalid(
                "target.lattice",
                lattice.name(),
                format!(
                    "one of {given} dimensions, to agree with target.size or target.dimensions"
                ),
                format!("{} has {axes}", lattice.name()),
            ));
        }
        Ok(())
    }

    /// The bonds of a [`filled`](Self::filled) description in groups of one strength, with a word for each; `None` for the hypercubic lattice with
    /// nearest neighbours alone.
    pub(super) fn bond_groups(&self) -> Option<Vec<Group>> {
        let lattice = self.lattice.filter(|lattice| !lattice.is_hypercubic());
        if let Some(Bonds(bonds)) = &self.bonds {
            return Some(bonds.iter().map(|b| ("", b.strength, vec![b.offset.clone()])).collect());
        }
        if lattice.is_none() && self.j2.is_none() && self.j3.is_none() {
            return None;
        }
        let axes = self.dimensions.unwrap_or(2);
        let strengths = [Some(self.coupling.unwrap_or(1.0)), self.j2, self.j3];
        let names = ["<ij>", "<<ij>>", "<<<ij>>>"];
        let group = |(k, (name, strength)): (usize, (&'static str, Option<f64>))| {
            Some((name, strength?, Bravais::shell(lattice, axes, k + 1)))
        };
        Some(names.into_iter().zip(strengths).enumerate().filter_map(group).collect())
    }

    /// Whether some bond favours different values.
    pub fn has_opposed_bonds(&self) -> bool {
        let single = [self.coupling, self.j2, self.j3];
        let listed = self.bonds.iter().flat_map(|bonds| &bonds.0).map(|bond| bond.strength);
        single.into_iter().flatten().chain(listed).any(|strength| strength < 0.0)
    }

    /// Whether there are bonds other than those to nearest neighbours along the axes.
    pub(crate) fn has_further_bonds(&self) -> bool {
        self.bond_groups().is_some()
    }

    /// Whether the order of the model may repeat every two sites along an axis, as that of antiferromagnets and stripes does, and every three, as that of
    /// three sublattices.
    pub(crate) fn periods(&self) -> (bool, bool) {
        let opposed = self.has_opposed_bonds();
        match self.kind {
            Some(Kind::BaxterWu) => (false, true),
            // What tables favour is not looked for.
            Some(Kind::LatticeModel) => {
                let all = self.interactions.iter().flat_map(|all| &all.0);
                (true, all.into_iter().any(|own| own.offsets.len() > 2))
            }
            Some(Kind::AshkinTeller) => (opposed || self.four_spin.is_some_and(|k| k < 0.0), false),
            _ => (opposed, opposed && self.lattice == Some(Bravais::Triangular)),
        }
    }

    /// Sites that the longest bond leads along an axis, or the widest cluster.
    pub(crate) fn reach(&self) -> usize {
        let groups = self.bond_groups().unwrap_or_default();
        let steps = groups.iter().flat_map(|group| group.2.iter().flatten());
        let bonds = steps.map(|step| step.unsigned_abs() as usize).max().unwrap_or(1);
        let clusters = self.interactions.iter().flat_map(|all| &all.0).map(|own| {
            let axes = own.offsets.first().map_or(0, Vec::len);
            let along = |axis: usize| own.offsets.iter().filter_map(move |place| place.get(axis));
            let span = |axis: usize| {
                along(axis).max().zip(along(axis).min()).map_or(0, |(max, min)| max.abs_diff(*min))
            };
            (0..axes).map(span).max().unwrap_or(0) as usize
        });
        clusters.fold(bonds, usize::max)
    }

    /// The model without a field.
    pub(super) fn uniform_model(&self, interaction: Interaction) -> Result<Pairwise> {
        let lattice = self.full_lattice()?;
        let q = match interaction {
            Interaction::Ising => 2,
            Interaction::Potts => self.q.unwrap_or(3),
        };
        let Some(groups) = self.bond_groups() else {
            return Pairwise::uniform(interaction, lattice, q, self.coupling.unwrap_or(1.0));
        };
        Pairwise::from_bonds(interaction, lattice, q, &bonds_of(groups))
    }

    /// The lattice in a word, for before its size.
    pub(super) fn lattice_in_words(&self) -> &'static str {
        match self.lattice {
            Some(Bravais::Triangular) => "triangular ",
            Some(Bravais::Fcc) => "fcc ",
            Some(Bravais::Bcc) => "bcc ",
            _ => "",
        }
    }

    /// Strengths beyond the first, for headings.
    pub(super) fn bonds_in_words(&self) -> String {
        let further = [("J2", self.j2), ("J3", self.j3)];
        let mut text: String = further
            .into_iter()
            .filter_map(|(name, strength)| Some(format!(", {name} {}", strength?)))
            .collect();
        if let Some(bonds) = &self.bonds {
            text += &format!(", bonds {bonds}");
        }
        text
    }

    /// The couplings by offset, for models of tables.
    pub(super) fn couplings_by_offset(&self) -> Couplings {
        match self.bond_groups() {
            None => Couplings::Nearest(self.coupling.unwrap_or(1.0)),
            Some(groups) => Couplings::Listed(bonds_of(groups)),
        }
    }

    /// The four-spin couplings: those of nearest neighbours, or of all listed bonds.
    pub(super) fn four_spin_by_offset(&self) -> Couplings {
        let k = self.four_spin.unwrap_or(0.0);
        let Some(mut groups) = self.bond_groups() else { return Couplings::Nearest(k) };
        if self.bonds.is_none() {
            groups.truncate(1);
        }
        groups.iter_mut().for_each(|group| group.1 = k);
        Couplings::Listed(bonds_of(groups))
    }

    /// The pair energy as a formula, with the offsets where they are not those of the hypercubic lattice; `of` is what strengths multiply, with the
    /// second site in words.
    pub(super) fn pairs_as_formula(&self, of: impl Fn(&str) -> String) -> String {
        let Some(groups) = self.bond_groups() else {
            return format!("{} sum_<ij> {}", -self.coupling.unwrap_or(1.0), of("j"));
        };
        let mut text = String::new();
        for (k, (name, strength, offsets)) in groups.iter().enumerate() {
            let shown: Vec<String> = offsets.iter().map(|offset| listed(offset)).collect();
            let sign = match (k, *strength > 0.0) {
                (0, true) => "-",
                (0, false) => "",
                (_, true) => " - ",
                (_, false) => " + ",
            };
            let sum = match *name {
                "" => format!("sum_i {}", of(&format!("(i+{})", shown[0]))),
                name => format!("sum_{name} {} (offsets {})", of("j"), shown.join(" ")),
            };
            text += &format!("{sign}{} {sum}", strength.abs());
        }
        text
    }
}

/// The bonds of all groups.
fn bonds_of(groups: Vec<Group>) -> Vec<Bond> {
    let of = |(_, strength, offsets): Group| {
        offsets.into_iter().map(move |offset| Bond { offset, strength })
    };
    groups.into_iter().flat_map(of).collect()
}

/// An offset in words.
pub(super) fn listed(offset: &[i64]) -> String {
    format!("({})", offset.iter().map(i64::to_string).collect::<Vec<_>>().join(","))
}
