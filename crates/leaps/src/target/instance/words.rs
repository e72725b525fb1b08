//! Instances in words.

use super::{Instance, PlacedBonds, Variables};
use crate::target::{Bond, Boundary, Bravais, Lattice};

impl Instance {
    /// The instance in words: variables, pairs, clusters, fields, constant.
    pub fn describe(&self) -> String {
        let (kind, energy) = match self.variables {
            Variables::Spins => ("spins".to_owned(), "sum w s s'"),
            Variables::Bits => ("bits".to_owned(), "sum w x x'"),
            Variables::Potts(q) => (format!("values of {q}"), "sum w [x = x']"),
        };
        let mut text = format!("{} {kind}, {} pairs, ", self.sites, self.pairs.len());
        let sizes = || self.clusters.iter().map(|(own, _)| own.len());
        let most = sizes().max();
        if let (Some(least), Some(most)) = (sizes().min(), most) {
            let of = if least == most { most.to_string() } else { format!("{least} to {most}") };
            text += &format!("{} terms of {of}, ", self.clusters.len());
        }
        text += &format!("E = {energy}");
        if most.is_some() {
            text += match self.variables {
                Variables::Spins => " + sum w s s' s''...",
                Variables::Bits => " + sum w x x' x''...",
                Variables::Potts(_) => " + sum w [x = x' = x''...]",
            };
        }
        if !self.fields.is_empty() {
            text += match self.variables {
                Variables::Spins => " + sum h s",
                Variables::Bits => " + sum h x",
                Variables::Potts(_) => " + sum h [x = 0]",
            };
        }
        if self.constant != 0.0 {
            text += &format!(
                " {} {}",
                if self.constant < 0.0 { '-' } else { '+' },
                self.constant.abs()
            );
        }
        text
    }

    /// The lattice that its model is placed on, in words.
    pub fn describe_lattice(&self) -> Option<String> {
        let spins = match self.variables {
            Variables::Bits => self.spins().ok()?.with_even_fields(),
            _ => self.clone(),
        };
        let (lattice, bonds) = spins.recognised()?;
        let sides: Vec<String> = lattice.shape().iter().map(usize::to_string).collect();
        let boundary = match lattice.boundary() {
            Boundary::Periodic => "periodic",
            Boundary::Free => "free",
        };
        let field = match spins.fields.windows(2).all(|pair| pair[0] == pair[1]) {
            true => ": exact answers and networks of uniform lattices",
            false => ", fields that differ",
        };
        let bonds_in_words = match &bonds {
            PlacedBonds::Nearest(all) if all.windows(2).all(|pair| pair[0] == pair[1]) => {
                format!("nearest neighbours, J = {} on every bond{field}", all[0])
            }
            PlacedBonds::Nearest(_) => "nearest neighbours, couplings that differ".to_owned(),
            PlacedBonds::Offsets(bonds) => format!("{} at every site{field}", in_words(bonds)),
            PlacedBonds::Others => "bonds that differ from site to site".to_owned(),
        };
        let name = name(&lattice, &bonds);
        Some(format!("{name} {} {boundary}, {bonds_in_words}", sides.join("x")))
    }
}

/// What a lattice is called: a Bravais lattice whose nearest neighbours are the only bonds, else by its axes.
fn name(lattice: &Lattice, bonds: &PlacedBonds) -> &'static str {
    let axes = lattice.shape().len();
    if let PlacedBonds::Offsets(bonds) = bonds {
        for kind in [Bravais::Triangular, Bravais::Fcc, Bravais::Bcc] {
            let shell = Bravais::shell(Some(kind), axes, 1);
            let alike = bonds.iter().all(|bond| bond.strength == bonds[0].strength);
            let own = || bonds.iter().all(|bond| shell.contains(&bond.offset));
            if kind.dimensions() == axes && bonds.len() == shell.len() && alike && own() {
                return kind.name();
            }
        }
    }
    match axes {
        1 => "chain",
        2 => "square",
        3 => "cubic",
        _ => "hypercubic",
    }
}

/// Bonds by offset, those of one strength together.
fn in_words(bonds: &[Bond]) -> String {
    let mut groups: Vec<(f64, Vec<String>)> = Vec::new();
    for bond in bonds {
        let steps: Vec<String> = bond.offset.iter().map(i64::to_string).collect();
        let shown = format!("({})", steps.join(","));
        match groups.iter_mut().find(|group| group.0 == bond.strength) {
            Some(group) => group.1.push(shown),
            None => groups.push((bond.strength, vec![shown])),
        }
    }
    let group = |(strength, offsets): (f64, Vec<String>)| {
        format!("J = {strength} at offsets {}", offsets.join(" "))
    };
    groups.into_iter().map(group).collect::<Vec<_>>().join(", ")
}
