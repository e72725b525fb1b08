//! Lattice models from their descriptions, and what they are in words.

use super::{Field, Interactions, Kind, TargetSpec};
use crate::target::lattice_model::{ISING, KEY};
use crate::target::{Bravais, ClusterTable, LatticeModel};
use crate::{Error, Result, finite};

impl Kind {
    /// Whether these are models of tables over clusters.
    pub fn is_lattice_model(self) -> bool {
        match self {
            Kind::BlumeCapel
            | Kind::Clock
            | Kind::BaxterWu
            | Kind::LatticeGas
            | Kind::AshkinTeller
            | Kind::LatticeModel => true,
            Kind::Ising
            | Kind::Potts
            | Kind::SpinGlass
            | Kind::Rbm
            | Kind::File
            | Kind::Maxcut
            | Kind::IndependentSet => false,
        }
    }

    /// The number of values of a site, where it is a setting: as given, or the default.
    pub(super) fn filled_q(self, spec: &TargetSpec) -> Option<usize> {
        match self {
            Kind::Potts => Some(spec.q.unwrap_or(3)),
            Kind::Clock => Some(spec.q.unwrap_or(4)),
            Kind::LatticeModel => {
                let spins = spec.spins.as_ref().map(|spins| spins.0.len());
                Some(spec.q.or(spins).unwrap_or(2))
            }
            _ => None,
        }
    }
}

impl TargetSpec {
    /// Refuse what makes no lattice model, as far as can be seen without building it.
    pub(super) fn check_model(&self, kind: Kind) -> Result<()> {
        if kind == Kind::BaxterWu {
            let advice = "triangular lattices have two axes";
            if let Some(axes) = self.dimensions.filter(|axes| *axes != 2) {
                return Err(Error::invalid("target.dimensions", axes, "2 for baxter-wu", advice));
            }
            if let Some(size) = self.size.as_ref().filter(|size| size.0.len() > 2) {
                let condition = "two lengths for baxter-wu";
                return Err(Error::invalid("target.size", size, condition, advice));
            }
        }
        if kind == Kind::LatticeModel && self.interactions.is_none() {
            let condition = "a list of interactions";
            let advice =
                "write [[target.interactions]] entries with offsets and a table or strength";
            return Err(Error::invalid(KEY, "(missing)", condition, advice));
        }
        if let (Some(spins), Some(q)) = (&self.spins, self.q)
            && spins.0.len() != q
        {
            let condition = format!("{q} numbers, one for each value");
            let shown = format!("{:?}", spins.0);
            return Err(Error::invalid("target.spins", shown, condition, "leave q out"));
        }
        for (key, value) in [
            ("target.crystal_field", self.crystal_field),
            ("target.chemical_potential", self.chemical_potential),
            ("target.four_spin", self.four_spin),
        ] {
            finite(key, value.unwrap_or(0.0))?;
        }
        Ok(())
    }

    /// The spins of a lattice model's values, if it has any.
    fn model_spins(&self) -> Option<Vec<f64>> {
        match (&self.spins, self.q.unwrap_or(2)) {
            (Some(spins), _) => Some(spins.0.clone()),
            (None, 2) => Some(ISING.to_vec()),
            (None, _) => None,
        }
    }

    /// The model of a [`filled`](Self::filled) description of one.
    pub(super) fn lattice_model(&self) -> Result<LatticeModel> {
        let lattice = self.full_lattice()?;
        let coupling = finite("target.coupling", self.coupling.unwrap_or(1.0))?;
        let couplings = self.couplings_by_offset();
        let q = self.q.unwrap_or(2);
        if !(2..=255).contains(&q) {
            return Err(Error::invalid("target.q", q, "from 2 to 255", "a site needs a choice"));
        }
        let (model, spins) = match self.kind {
            Some(Kind::BlumeCapel) => {
                let d = self.crystal_field.unwrap_or(0.0);
                (LatticeModel::blume_capel(lattice, couplings, d)?, Some(vec![-1.0, 0.0, 1.0]))
            }
            Some(Kind::Clock) => {
                let hour = |x: usize| (std::f64::consts::TAU * x as f64 / q as f64).cos();
                let spins = (0..q).map(hour).collect();
                (LatticeModel::clock(lattice, q, couplings)?, Some(spins))
            }
            Some(Kind::BaxterWu) => {
                (LatticeModel::baxter_wu(lattice, coupling)?, Some(ISING.to_vec()))
            }
            Some(Kind::LatticeGas) => {
                let mu = self.chemical_potential.unwrap_or(0.0);
                (LatticeModel::lattice_gas(lattice, couplings, mu)?, None)
            }
            Some(Kind::AshkinTeller) => {
                let four = self.four_spin_by_offset();
                let model = LatticeModel::ashkin_teller(lattice, couplings, four)?;
                (model, Some(vec![-2.0, 0.0, 0.0, 2.0]))
            }
            _ => {
                let spins = self.model_spins();
                let axes = lattice.shape().len();
                let tables = self.tables(axes, spins.as_deref())?;
                let mut model = LatticeModel::new(lattice, q, tables)?;
                if let Some(spins) = spins.as_ref().filter(|_| self.spins.is_some()) {
                    let vectors = spins.iter().map(|&spin| [spin, 0.0]).collect();
                    model = model.with_vectors(vectors);
                }
                (model, spins)
            }
        };
        let fields = self.field.as_ref().map(Field::values).transpose()?;
        match (fields.as_deref(), spins) {
            (None | Some([0.0]), _) => Ok(model),
            (Some(fields), Some(spins)) => model.with_fields(fields, &spins),
            (Some(_), None) => Err(Error::invalid(
                "target.field",
                "(given)",
                "left out where values have no spins",
                "give target.spins, a number for each value",
            )),
        }
    }

    /// The tables of a general lattice model.
    fn tables(&self, axes: usize, spins: Option<&[f64]>) -> Result<Vec<ClusterTable>> {
        let Interactions(all) = self.interactions.clone().unwrap_or(Interactions(Vec::new()));
        let clusters = |own: super::InteractionSpec| {
            let here = vec![0; axes];
            Ok(match (own.neighbours, own.offsets.is_empty()) {
                (None, false) => vec![own],
                (None, true) => vec![super::InteractionSpec { offsets: vec![here], ..own }],
                (Some(order), true) if (1..=3).contains(&order) => {
                    let ends = Bravais::shell(self.lattice, axes, order).into_iter();
                    let pair = |end| vec![here.clone(), end];
                    ends.map(|end| super::InteractionSpec { offsets: pair(end), ..own.clone() })
                        .collect()
                }
                (Some(order), offsets) => {
                    let shown = format!("neighbours {order}");
                    let condition = match offsets {
                        true => "1, 2 or 3: nearest, second or third",
                        false => "left out where offsets are given",
                    };
                    let advice = "write offsets for others";
                    return Err(Error::invalid(KEY, shown, condition, advice));
                }
            })
        };
        let table = |own: super::InteractionSpec| {
            let offsets = own.offsets;
            let usual = if offsets.len() == 1 { "sites" } else { "bonds" };
            let term = own.term.unwrap_or_else(|| usual.to_owned());
            if term == "field" {
                let advice = "it is the term of target.field; take another word";
                return Err(Error::invalid(KEY, "term field", "terms of other names", advice));
            }
            match (own.table, own.strength, spins) {
                (Some(energies), ..) => Ok(ClusterTable::new(term, &offsets, energies)),
                (None, Some(strength), Some(spins)) => {
                    finite(KEY, strength)?;
                    Ok(ClusterTable::product(term, &offsets, strength, spins))
                }
                (None, strength, _) => Err(Error::invalid(
                    KEY,
                    format!("strength {}", strength.unwrap_or(0.0)),
                    "a table where values have no spins",
                    "give target.spins, a number for each value",
                )),
            }
        };
        // Terms of clusters come first: the first one's weight is the inverse temperature of susceptibilities.
        let all = all.into_iter().map(clusters).collect::<Result<Vec<_>>>()?;
        let mut tables = all.into_iter().flatten().map(table).collect::<Result<Vec<_>>>()?;
        tables.sort_by_key(|table| table.offsets.len() == 1);
        Ok(tables)
    }

    /// A lattice model in a few words.
    pub(super) fn model_in_words(&self, shape: &str, boundary: &str) -> Option<String> {
        let other = |word: &str, number: Option<f64>| {
            let number = number.filter(|number| *number != 0.0);
            number.map_or_else(String::new, |number| format!(", {word} {number}"))
        };
        Some(match self.kind? {
            Kind::BlumeCapel => {
                format!("Blume-Capel {shape} {boundary}{}", other("D", self.crystal_field))
            }
            Kind::Clock => format!("clock q={} {shape} {boundary}", self.q.unwrap_or(4)),
            Kind::BaxterWu => format!("Baxter-Wu {shape} {boundary}"),
            Kind::LatticeGas => {
                format!("lattice gas {shape} {boundary}{}", other("mu", self.chemical_potential))
            }
            Kind::AshkinTeller => {
                format!("Ashkin-Teller {shape} {boundary}{}", other("K", self.four_spin))
            }
            Kind::LatticeModel => {
                let all = self.interactions.as_ref().map_or(0, |all| all.0.len());
                let plural = if all == 1 { "" } else { "s" };
                let q = self.q.unwrap_or(2);
                format!("lattice model q={q} {shape} {boundary}, {all} interaction{plural}")
            }
            _ => return None,
        })
    }

    /// The energy of a lattice model as a formula; `field` writes that of the fields.
    pub(super) fn model_formula(&self, field: impl Fn(&str) -> String) -> Option<String> {
        let signed = |number: f64, what: &str| match number {
            0.0 => String::new(),
            number if number < 0.0 => format!(" - {} {what}", -number),
            number => format!(" + {number} {what}"),
        };
        let q = self.q.unwrap_or(2);
        Some(match self.kind? {
            Kind::BlumeCapel => {
                let pairs = self.pairs_as_formula(|j| format!("s_i s_{j}"));
                let crystal = signed(self.crystal_field.unwrap_or(0.0), "sum_i s_i^2");
                format!("{pairs}{crystal}{}, s = x - 1", field("s_i"))
            }
            Kind::Clock => {
                let pairs = self.pairs_as_formula(|j| format!("cos(2 pi (x_i - x_{j})/{q})"));
                pairs + &field(&format!("cos(2 pi x_i/{q})"))
            }
            Kind::BaxterWu => {
                let j = -self.coupling.unwrap_or(1.0);
                let offsets = "(offsets (0,0) (0,1) (1,0) and (0,1) (1,0) (1,1))";
                format!("{j} sum_triangles s_i s_j s_k {offsets}{}", field("s_i"))
            }
            Kind::LatticeGas => {
                let pairs = self.pairs_as_formula(|j| format!("x_i x_{j}"));
                pairs + &signed(-self.chemical_potential.unwrap_or(0.0), "sum_i x_i")
            }
            Kind::AshkinTeller => {
                let pairs = self.pairs_as_formula(|j| format!("(s_i s_{j} + t_i t_{j})"));
                let over = if self.bonds.is_some() { "sum_bonds" } else { "sum_<ij>" };
                let four = format!("{over} s_i s_j t_i t_j");
                let four = signed(-self.four_spin.unwrap_or(0.0), &four);
                format!("{pairs}{four}{}, x = (1 + s) + (1 + t)/2", field("(s_i + t_i)"))
            }
            Kind::LatticeModel => {
                let all = self.interactions.as_ref().map_or(&[][..], |all| &all.0);
                let axes = self.dimensions.unwrap_or(2);
                let words = |own| interaction_in_words(own, self.lattice, axes);
                let parts: Vec<String> = all.iter().map(words).collect();
                let sum = parts.join(" + ").replace("+ -", "- ");
                let spins = match all.iter().any(|own| own.strength.is_some()) {
                    true => self.model_spins().map(|spins| format!(", s = {spins:?}[x]")),
                    false => None,
                };
                format!("{sum}{}{}", field("s_i"), spins.unwrap_or_default())
            }
            _ => return None,
        })
    }
}

/// Energies of a table that are shown in full.
const SHOWN: usize = 16;

fn interaction_in_words(
    own: &super::InteractionSpec,
    lattice: Option<Bravais>,
    axes: usize,
) -> String {
    if let Some(order) = own.neighbours {
        let pair = super::InteractionSpec { offsets: vec![vec![0], vec![1]], ..own.clone() };
        let pair = super::InteractionSpec { neighbours: None, ..pair };
        let words = interaction_in_words(&pair, lattice, axes);
        let sum = format!("sum_{}ij{}", "<".repeat(order), ">".repeat(order));
        let shown: Vec<String> =
            Bravais::shell(lattice, axes, order).iter().map(|r| super::bonds::listed(r)).collect();
        let words = words.replacen("sum_i", &sum, 1).replace("_(i+(1))", "_j");
        return format!("{words} (offsets {})", shown.join(" "));
    }
    let at = |letter: char, offset: &Vec<i64>| match offset.iter().all(|step| *step == 0) {
        true => format!("{letter}_i"),
        false => {
            let steps: Vec<String> = offset.iter().map(i64::to_string).collect();
            format!("{letter}_(i+({}))", steps.join(","))
        }
    };
    let here = [Vec::new()];
    let offsets = if own.offsets.is_empty() { &here[..] } else { &own.offsets };
    let places = |letter: char| offsets.iter().map(|offset| at(letter, offset)).collect::<Vec<_>>();
    match (&own.table, own.strength) {
        (Some(energies), _) => {
            let shown = match energies.len() <= SHOWN {
                true => super::interactions::nested(energies, offsets.len()).to_string(),
                false => {
                    let lowest = energies.iter().copied().fold(f64::INFINITY, f64::min);
                    let highest = energies.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    format!("<{} energies from {lowest} to {highest}>", energies.len())
                }
            };
            format!("sum_i {shown}[{}]", places('x').join(", "))
        }
        (None, strength) => {
            format!("{} sum_i {}", -strength.unwrap_or(0.0), places('s').join(" "))
        }
    }
}
