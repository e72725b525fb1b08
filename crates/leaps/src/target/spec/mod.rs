//! Descriptions of targets, once for the command line, for configurations and for models.

mod bonds;
mod build;
mod files;
mod interactions;
mod models;
mod values;
mod words;

use std::path::PathBuf;

use serde::{Deserialize, Serialize, Serializer};

use super::{Boundary, Bravais, Disorder, Format, Lattice};
#[cfg(feature = "clap")]
use crate::parse::{count, number, seed, text_path};
use crate::{Error, Result, finite};

pub use bonds::Bonds;
pub use files::{Described, printed, undescribed, unprinted};
pub use interactions::{InteractionSpec, Interactions, Spins};
pub use values::{Field, Size};

/// The families of targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Kind {
    /// Spins -1 and +1 on a lattice
    Ising,
    /// Sites in one of several equivalent states, on a lattice
    Potts,
    /// Ising spins with random couplings
    SpinGlass,
    /// A restricted Boltzmann machine with random weights
    Rbm,
    /// Pairs and fields read from a file
    File,
    /// The largest cut of a graph read from a rudy (G-set) file
    Maxcut,
    /// The largest independent set of such a graph
    IndependentSet,
    /// Spins -1, 0 and +1 on a lattice
    BlumeCapel,
    /// Clocks with several hours on a lattice
    Clock,
    /// Ising spins with three-spin interactions on a triangular lattice
    BaxterWu,
    /// Empty and occupied sites of a lattice
    LatticeGas,
    /// Two Ising spins at every site of a lattice
    AshkinTeller,
    /// Any tables of energies over clusters of sites of a lattice
    LatticeModel,
}

/// Which spins of a glass interact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Geometry {
    /// Neighbours on a lattice
    Lattice,
    /// All pairs: Sherrington and Kirkpatrick's
    Complete,
}

/// What to sample. Every field but the kind has a default that depends on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "clap", command(next_help_heading = "Target"))]
pub struct TargetSpec {
    /// What to sample: ising, potts, spin-glass, rbm, file, maxcut, independent-set, blume-capel, clock, baxter-wu, lattice-gas, ashkin-teller or
    /// lattice-model
    #[cfg_attr(
        feature = "clap",
        arg(index = 1, value_enum, value_name = "TARGET", hide_possible_values = true)
    )]
    #[cfg_attr(feature = "clap", arg(help_heading = None::<&str>))]
    pub kind: Option<Kind>,
    /// File of pairs and fields in one of many formats (file), or a graph in rudy's format (maxcut, independent-set)
    #[cfg_attr(feature = "clap", arg(index = 2, value_name = "PATH", help_heading = None::<&str>, value_parser = text_path))]
    #[serde(serialize_with = "shown")]
    pub path: Option<PathBuf>,
    /// Format of the file: edges, rudy, coo, coo-spin, coo-binary, bqm, qubo, mqlib-qubo, npz or npz-qubo (file) [default: recognised]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_enum, hide_possible_values = true, value_name = "FORMAT")
    )]
    pub format: Option<Format>,
    /// Sites along each axis: 15, or 15x20; complete geometry: number of spins [default: 15, 8 or 64]
    #[cfg_attr(feature = "clap", arg(long, value_name = "L"))]
    pub size: Option<Size>,
    /// Number of axes, 1 to 4 [default: 2]
    #[cfg_attr(feature = "clap", arg(long, value_name = "D", value_parser = count))]
    pub dimensions: Option<usize>,
    /// Lattice: chain, square, cubic, triangular, fcc or bcc; the last two in primitive cells [default: hypercubic]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_enum, hide_possible_values = true, value_name = "NAME")
    )]
    pub lattice: Option<Bravais>,
    /// Inverse temperature; multiplies the whole energy, field included [default: critical or 1]
    #[cfg_attr(feature = "clap", arg(long, value_name = "BETA", value_parser = number))]
    pub beta: Option<f64>,
    /// Coupling J of neighbours; positive is ferromagnetic [default: 1]
    #[cfg_attr(feature = "clap", arg(long, value_name = "J", value_parser = number))]
    pub coupling: Option<f64>,
    /// Coupling of second neighbours [default: 0]
    #[cfg_attr(feature = "clap", arg(long, value_name = "J", value_parser = number))]
    pub j2: Option<f64>,
    /// Coupling of third neighbours [default: 0]
    #[cfg_attr(feature = "clap", arg(long, value_name = "J", value_parser = number))]
    pub j3: Option<f64>,
    /// All bonds by offset and strength, in place of couplings, as "1,0:1 0,1:0.5 1,1:-0.3"
    #[cfg_attr(feature = "clap", arg(long, value_name = "BONDS", allow_hyphen_values = true))]
    pub bonds: Option<Bonds>,
    /// Field h, in E as +h sum s (Potts: [x = 0]): a number, or a list or file of one per site [default: 0]
    #[cfg_attr(feature = "clap", arg(long, value_name = "H", allow_hyphen_values = true))]
    pub field: Option<Field>,
    /// Edges of the lattice: periodic or free [default: periodic]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_enum, hide_possible_values = true, value_name = "HOW")
    )]
    pub boundary: Option<Boundary>,
    /// Number of values of a site, 2 to 255 (potts, clock, lattice-model) [default: 3, 4 or 2]
    #[cfg_attr(feature = "clap", arg(long, value_name = "Q", value_parser = count))]
    pub q: Option<usize>,
    /// Law of the couplings: pm1 or gaussian, both of variance 1 (spin-glass) [default: pm1]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_enum, hide_possible_values = true, value_name = "LAW")
    )]
    pub couplings: Option<Disorder>,
    /// Spins that interact: lattice neighbours, or complete (Sherrington-Kirkpatrick) [default: lattice]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_enum, hide_possible_values = true, value_name = "WHICH")
    )]
    pub geometry: Option<Geometry>,
    /// Seed of the random couplings or weights (spin-glass, rbm) [default: 1]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = seed))]
    pub disorder_seed: Option<u64>,
    /// Visible units (rbm) [default: 16]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = count))]
    pub visible: Option<usize>,
    /// Hidden units (rbm) [default: 8]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = count))]
    pub hidden: Option<usize>,
    /// Standard deviation of the weights (rbm) [default: 0.5]
    #[cfg_attr(feature = "clap", arg(long, value_name = "S", value_parser = number))]
    pub weight_scale: Option<f64>,
    /// Crystal field D, in E as +D sum s^2 (blume-capel) [default: 0]
    #[cfg_attr(feature = "clap", arg(long, value_name = "D", value_parser = number))]
    pub crystal_field: Option<f64>,
    /// Chemical potential mu (or --mu), in E as -mu sum n (lattice-gas) [default: 0]
    #[cfg_attr(feature = "clap", arg(long, alias = "mu", value_name = "MU", value_parser = number))]
    pub chemical_potential: Option<f64>,
    /// Four-spin coupling K, in E as -K sum s s' t t' (ashkin-teller) [default: 0]
    #[cfg_attr(feature = "clap", arg(long, value_name = "K", value_parser = number))]
    pub four_spin: Option<f64>,
    /// Spins of the values 0, 1, ..., such as -1,0,1 (lattice-model) [default: -1,1 for two values]
    #[cfg_attr(feature = "clap", arg(long, value_name = "LIST", allow_hyphen_values = true))]
    pub spins: Option<Spins>,
    /// Interactions as a list of TOML, such as [{offsets = [[0, 0], [0, 1]], strength = 1}] (lattice-model)
    #[cfg_attr(feature = "clap", arg(long, value_name = "LIST"))]
    pub interactions: Option<Interactions>,
}

impl Kind {
    /// Every family.
    pub const ALL: [Kind; 13] = [
        Kind::Ising,
        Kind::Potts,
        Kind::SpinGlass,
        Kind::Rbm,
        Kind::File,
        Kind::Maxcut,
        Kind::IndependentSet,
        Kind::BlumeCapel,
        Kind::Clock,
        Kind::BaxterWu,
        Kind::LatticeGas,
        Kind::AshkinTeller,
        Kind::LatticeModel,
    ];

    /// The name users write.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Ising => "ising",
            Kind::Potts => "potts",
            Kind::SpinGlass => "spin-glass",
            Kind::Rbm => "rbm",
            Kind::File => "file",
            Kind::Maxcut => "maxcut",
            Kind::IndependentSet => "independent-set",
            Kind::BlumeCapel => "blume-capel",
            Kind::Clock => "clock",
            Kind::BaxterWu => "baxter-wu",
            Kind::LatticeGas => "lattice-gas",
            Kind::AshkinTeller => "ashkin-teller",
            Kind::LatticeModel => "lattice-model",
        }
    }

    /// The keys that mean something for this kind.
    pub fn keys(self) -> Vec<&'static str> {
        let more: &[&str] = match self {
            Kind::Ising => &["field"],
            Kind::Potts | Kind::Clock => &["field", "q"],
            Kind::BlumeCapel => &["field", "crystal_field"],
            Kind::LatticeGas => &["chemical_potential"],
            Kind::AshkinTeller => &["field", "four_spin"],
            Kind::SpinGlass => {
                return ["size", "dimensions", "beta", "field", "boundary"]
                    .into_iter()
                    .chain(["couplings", "geometry", "disorder_seed"])
                    .collect();
            }
            Kind::BaxterWu => {
                return vec!["size", "dimensions", "beta", "coupling", "field", "boundary"];
            }
            Kind::LatticeModel => {
                return ["size", "dimensions", "lattice", "beta", "field", "boundary"]
                    .into_iter()
                    .chain(["q", "spins", "interactions"])
                    .collect();
            }
            Kind::Rbm => return vec!["beta", "visible", "hidden", "weight_scale", "disorder_seed"],
            Kind::File => return vec!["path", "format", "beta"],
            Kind::Maxcut | Kind::IndependentSet => return vec!["path", "beta"],
        };
        [&PAIRS, more].concat()
    }
}

/// Keys of all models of pairs on lattices.
const PAIRS: [&str; 9] =
    ["size", "dimensions", "lattice", "beta", "coupling", "j2", "j3", "bonds", "boundary"];

/// Axes that a lattice may have.
const MOST_DIMENSIONS: usize = 4;

impl TargetSpec {
    /// Whether all sites are alike, as far as can be seen without building the target.
    pub fn is_uniform(&self) -> bool {
        let field = matches!(self.field, None | Some(Field::Uniform(_)));
        let uniform =
            |kind: Kind| kind.is_lattice_model() || matches!(kind, Kind::Ising | Kind::Potts);
        field && self.kind.is_some_and(uniform)
    }

    /// The same target with every default written out, after refusing keys of other kinds.
    pub fn filled(&self) -> Result<Self> {
        let kind = self.kind.ok_or_else(|| {
            Error::invalid(
                "target.kind",
                "(missing)",
                Kind::ALL.map(Kind::name).join(", "),
                "name a target, or give a configuration",
            )
        })?;
        self.refuse_strangers(kind)?;
        if kind.keys().contains(&"path") && self.path.is_none() {
            return Err(Error::invalid(
                "target.path",
                "(missing)",
                match kind {
                    Kind::File => "the name of a file of pairs and fields",
                    _ => "the name of a graph's file in rudy's format",
                },
                format!("write it after the word {}", kind.name()),
            ));
        }
        self.check_model(kind)?;
        self.check_bonds()?;
        let complete = self.geometry == Some(Geometry::Complete);
        let (size, dimensions) = match kind {
            Kind::Rbm | Kind::File | Kind::Maxcut | Kind::IndependentSet => (None, None),
            Kind::SpinGlass if complete => (Some(self.number_of_spins()?), None),
            _ => {
                let (size, dimensions) =
                    self.shape(if kind == Kind::SpinGlass { 8 } else { 15 })?;
                (Some(size), Some(dimensions))
            }
        };
        let q = kind.filled_q(self);
        // What says nothing is left out, so that a plain lattice has one description.
        let lattice_name = self.lattice.filter(|lattice| !lattice.is_hypercubic());
        let (j2, j3) = (self.j2.filter(|j| *j != 0.0), self.j3.filter(|j| *j != 0.0));
        let nearest = j2.is_none() && j3.is_none() && self.bonds.is_none();
        let critical = || match nearest {
            true => default_beta(kind, lattice_name, dimensions, q),
            false => 1.0,
        };
        let beta = self.beta.unwrap_or_else(critical);
        let on = |key: &str| kind.keys().contains(&key);
        let lattice = on("boundary") && !complete;
        let glass = kind == Kind::SpinGlass;
        let spec = TargetSpec {
            kind: Some(kind),
            path: self.path.clone(),
            format: self.format,
            size,
            dimensions,
            lattice: lattice_name,
            beta: Some(beta),
            coupling: (on("coupling") && self.bonds.is_none())
                .then(|| self.coupling.unwrap_or(1.0)),
            j2,
            j3,
            bonds: self.bonds.clone(),
            field: on("field").then(|| self.field.clone().unwrap_or(Field::Uniform(0.0))),
            boundary: lattice.then(|| self.boundary.unwrap_or(Boundary::Periodic)),
            q,
            couplings: glass.then(|| self.couplings.unwrap_or(Disorder::Pm1)),
            geometry: glass.then(|| self.geometry.unwrap_or(Geometry::Lattice)),
            disorder_seed: on("disorder_seed").then(|| self.disorder_seed.unwrap_or(1)),
            visible: on("visible").then(|| self.visible.unwrap_or(16)),
            hidden: on("hidden").then(|| self.hidden.unwrap_or(8)),
            weight_scale: on("weight_scale").then(|| self.weight_scale.unwrap_or(0.5)),
            crystal_field: on("crystal_field").then(|| self.crystal_field.unwrap_or(0.0)),
            chemical_potential: on("chemical_potential")
                .then(|| self.chemical_potential.unwrap_or(0.0)),
            four_spin: on("four_spin").then(|| self.four_spin.unwrap_or(0.0)),
            spins: self.spins.clone(),
            interactions: self.interactions.clone(),
        };
        spec.check_units()?;
        Ok(spec)
    }

    /// The description as files have it, without what is left out.
    pub fn without_gaps(&self) -> serde_json::Value {
        // Values have words or numbers, and places of files are written in words.
        let mut value = serde_json::to_value(self).unwrap_or_else(|_| unreachable!());
        if let Some(entries) = value.as_object_mut() {
            entries.retain(|_, value| !value.is_null());
        }
        value
    }

    fn refuse_strangers(&self, kind: Kind) -> Result<()> {
        let given = self.without_gaps();
        let given = given.as_object().into_iter().flatten();
        for (key, value) in given.filter(|(key, _)| *key != "kind") {
            let complete = self.geometry == Some(Geometry::Complete);
            let needs_lattice = matches!(key.as_str(), "dimensions" | "boundary");
            if !kind.keys().contains(&key.as_str()) {
                let owners: Vec<&str> = Kind::ALL
                    .iter()
                    .filter(|kind| kind.keys().contains(&key.as_str()))
                    .map(|kind| kind.name())
                    .collect();
                return Err(Error::invalid(
                    format!("target.{key}"),
                    value,
                    format!("left out for {}", kind.name()),
                    format!("it belongs to {}", owners.join(", ")),
                ));
            }
            if complete && needs_lattice {
                return Err(Error::invalid(
                    format!("target.{key}"),
                    value,
                    "left out for the complete geometry",
                    "it belongs to a lattice",
                ));
            }
        }
        Ok(())
    }

    fn shape(&self, default: usize) -> Result<(Size, usize)> {
        let sides = self.size.clone().unwrap_or(Size(vec![default])).0;
        let axes = self.lattice.map_or(2, Bravais::dimensions);
        let dimensions =
            self.dimensions.unwrap_or(if sides.len() > 1 { sides.len() } else { axes });
        if sides.len() > 1 && sides.len() != dimensions {
            return Err(Error::invalid(
                "target.dimensions",
                dimensions,
                format!("{} to agree with size {}", sides.len(), Size(sides.clone())),
                "leave one of them out",
            ));
        }
        let (key, given) = match self.dimensions {
            Some(_) => ("target.dimensions", dimensions.to_string()),
            None => ("target.size", Size(sides.clone()).to_string()),
        };
        if !(1..=MOST_DIMENSIONS).contains(&dimensions) {
            let condition = match self.dimensions {
                Some(_) => format!("from 1 to {MOST_DIMENSIONS}"),
                None => format!("one to {MOST_DIMENSIONS} lengths"),
            };
            return Err(Error::invalid(key, given, condition, "use an edge list for other graphs"));
        }
        let full = if sides.len() > 1 { sides } else { vec![sides[0]; dimensions] };
        Lattice::new(&full, Boundary::Periodic)?;
        let equal = full.iter().all(|side| *side == full[0]);
        Ok((if equal { Size(vec![full[0]]) } else { Size(full) }, dimensions))
    }

    fn number_of_spins(&self) -> Result<Size> {
        let size = self.size.clone().unwrap_or(Size(vec![64]));
        match size.0[..] {
            [2..=20_000] => Ok(size),
            _ => Err(Error::invalid(
                "target.size",
                size,
                "one number of spins from 2 to 20000 for the complete geometry",
                "every pair of spins needs a coupling",
            )),
        }
    }

    fn check_units(&self) -> Result<()> {
        finite("target.beta", self.beta.unwrap_or(0.0))?;
        for (key, units) in [("visible", self.visible), ("hidden", self.hidden)] {
            if units.is_some_and(|n| n == 0 || n > 100_000) {
                let value = units.unwrap_or(0);
                return Err(Error::invalid(
                    format!("target.{key}"),
                    value,
                    "from 1 to 100000",
                    "a machine has at least one unit of each sort",
                ));
            }
        }
        if self.visible.unwrap_or(0).saturating_mul(self.hidden.unwrap_or(0)) > 1 << 28 {
            let value = self.visible.unwrap_or(0);
            return Err(Error::invalid(
                "target.visible",
                value,
                "such that visible x hidden is at most 2^28",
                "use a smaller machine",
            ));
        }
        Ok(())
    }
}

/// A path in words: that of a folder need not be text.
fn shown<S: Serializer>(path: &Option<PathBuf>, to: S) -> std::result::Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.to_string_lossy()).serialize(to)
}

/// Near the critical point where one is known, 1 elsewhere.
fn default_beta(
    kind: Kind,
    lattice: Option<Bravais>,
    dimensions: Option<usize>,
    q: Option<usize>,
) -> f64 {
    match (kind, lattice) {
        (Kind::Ising, Some(Bravais::Triangular)) => return 0.2747,
        (Kind::Ising, Some(Bravais::Fcc)) => return 0.1021,
        (Kind::Ising, Some(Bravais::Bcc)) => return 0.1574,
        (_, Some(_)) => return 1.0,
        _ => {}
    }
    match (kind, dimensions) {
        (Kind::Ising | Kind::BaxterWu, Some(2)) => 0.4407,
        (Kind::Ising, Some(3)) => 0.2217,
        (Kind::Ising, Some(4)) => 0.1497,
        (Kind::Potts, Some(2)) => {
            let critical = (1.0 + (q.unwrap_or(3) as f64).sqrt()).ln();
            (critical * 1e4).round() / 1e4
        }
        _ => 1.0,
    }
}
