//! Descriptions of targets, once for the command line, for configurations and for models.

mod build;
mod files;
mod values;
mod words;

use std::path::PathBuf;

use serde::{Deserialize, Serialize, Serializer};

use super::{Boundary, Disorder, Lattice};
#[cfg(feature = "clap")]
use crate::parse::{count, number, seed, text_path};
use crate::{Error, Result, finite};

pub use files::{Described, printed, undescribed, unprinted};
pub use values::{Field, Size};

/// The families of targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Spins -1 and +1 on a lattice
    Ising,
    /// Sites in one of several equivalent states, on a lattice
    Potts,
    /// Ising spins with random couplings
    SpinGlass,
    /// A restricted Boltzmann machine with random weights
    Rbm,
    /// Edges and fields read from a text file
    File,
    /// The largest cut of a graph read from a rudy (G-set) file
    Maxcut,
    /// The largest independent set of such a graph
    IndependentSet,
}

/// Which spins of a glass interact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
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
    /// What to sample: ising, potts, spin-glass, rbm, file, maxcut or independent-set
    #[cfg_attr(
        feature = "clap",
        arg(index = 1, value_enum, value_name = "TARGET", hide_possible_values = true)
    )]
    #[cfg_attr(feature = "clap", arg(help_heading = None::<&str>))]
    pub kind: Option<Kind>,
    /// File of edges and fields, one "i j J" or "field i h" a line (file), or a graph in rudy's format (maxcut, independent-set)
    #[cfg_attr(feature = "clap", arg(index = 2, value_name = "PATH", help_heading = None::<&str>, value_parser = text_path))]
    #[serde(serialize_with = "shown")]
    pub path: Option<PathBuf>,
    /// Sites along each axis: 15, or 15x20; complete geometry: number of spins [default: 15, 8 or 64]
    #[cfg_attr(feature = "clap", arg(long, value_name = "L"))]
    pub size: Option<Size>,
    /// Number of axes, 1 to 4 [default: 2]
    #[cfg_attr(feature = "clap", arg(long, value_name = "D", value_parser = count))]
    pub dimensions: Option<usize>,
    /// Inverse temperature; multiplies the whole energy, field included [default: critical or 1]
    #[cfg_attr(feature = "clap", arg(long, value_name = "BETA", value_parser = number))]
    pub beta: Option<f64>,
    /// Coupling J of neighbours; positive is ferromagnetic [default: 1]
    #[cfg_attr(feature = "clap", arg(long, value_name = "J", value_parser = number))]
    pub coupling: Option<f64>,
    /// Field h, in E as +h sum s (Potts: [x = 0]): a number, or a list or file of one per site [default: 0]
    #[cfg_attr(feature = "clap", arg(long, value_name = "H", allow_hyphen_values = true))]
    pub field: Option<Field>,
    /// Edges of the lattice: periodic or free [default: periodic]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_enum, hide_possible_values = true, value_name = "HOW")
    )]
    pub boundary: Option<Boundary>,
    /// Number of values of a site, 2 to 255 (potts) [default: 3]
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
}

impl Kind {
    /// Every family.
    pub const ALL: [Kind; 7] = [
        Kind::Ising,
        Kind::Potts,
        Kind::SpinGlass,
        Kind::Rbm,
        Kind::File,
        Kind::Maxcut,
        Kind::IndependentSet,
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
        }
    }

    /// The keys that mean something for this kind.
    pub fn keys(self) -> &'static [&'static str] {
        match self {
            Kind::Ising => &["size", "dimensions", "beta", "coupling", "field", "boundary"],
            Kind::Potts => &["size", "dimensions", "beta", "coupling", "field", "boundary", "q"],
            Kind::SpinGlass => &[
                "size",
                "dimensions",
                "beta",
                "field",
                "boundary",
                "couplings",
                "geometry",
                "disorder_seed",
            ],
            Kind::Rbm => &["beta", "visible", "hidden", "weight_scale", "disorder_seed"],
            Kind::File | Kind::Maxcut | Kind::IndependentSet => &["path", "beta"],
        }
    }
}

/// Axes that a lattice may have.
const MOST_DIMENSIONS: usize = 4;

impl TargetSpec {
    /// Whether all sites are alike, as far as can be seen without building the target.
    pub fn is_uniform(&self) -> bool {
        let field = matches!(self.field, None | Some(Field::Uniform(_)));
        field && matches!(self.kind, Some(Kind::Ising | Kind::Potts))
    }

    /// The same target with every default written out, after refusing keys of other kinds.
    pub fn filled(&self) -> Result<Self> {
        let kind = self.kind.ok_or_else(|| {
            Error::invalid(
                "target.kind",
                "(missing)",
                "ising, potts, spin-glass, rbm, file, maxcut or independent-set",
                "name a target, or give a configuration",
            )
        })?;
        self.refuse_strangers(kind)?;
        if kind.keys().contains(&"path") && self.path.is_none() {
            return Err(Error::invalid(
                "target.path",
                "(missing)",
                match kind {
                    Kind::File => "the name of a file of edges",
                    _ => "the name of a graph's file in rudy's format",
                },
                format!("write it after the word {}", kind.name()),
            ));
        }
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
        let q = (kind == Kind::Potts).then(|| self.q.unwrap_or(3));
        let beta = self.beta.unwrap_or_else(|| default_beta(kind, dimensions, q));
        let on = |key: &str| kind.keys().contains(&key);
        let lattice = on("boundary") && !complete;
        let glass = kind == Kind::SpinGlass;
        let spec = TargetSpec {
            kind: Some(kind),
            path: self.path.clone(),
            size,
            dimensions,
            beta: Some(beta),
            coupling: on("coupling").then(|| self.coupling.unwrap_or(1.0)),
            field: on("field").then(|| self.field.clone().unwrap_or(Field::Uniform(0.0))),
            boundary: lattice.then(|| self.boundary.unwrap_or(Boundary::Periodic)),
            q,
            couplings: glass.then(|| self.couplings.unwrap_or(Disorder::Pm1)),
            geometry: glass.then(|| self.geometry.unwrap_or(Geometry::Lattice)),
            disorder_seed: on("disorder_seed").then(|| self.disorder_seed.unwrap_or(1)),
            visible: on("visible").then(|| self.visible.unwrap_or(16)),
            hidden: on("hidden").then(|| self.hidden.unwrap_or(8)),
            weight_scale: on("weight_scale").then(|| self.weight_scale.unwrap_or(0.5)),
        };
        spec.check_units()?;
        Ok(spec)
    }

    /// The description as files have it, without what is left out.
    pub fn without_gaps(&self) -> serde_json::Value {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Some(entries) = value.as_object_mut() {
            entries.retain(|_, value| !value.is_null());
        }
        value
    }

    fn refuse_strangers(&self, kind: Kind) -> Result<()> {
        let given = toml::Table::try_from(self).unwrap_or_default();
        for (key, value) in given.iter().filter(|(key, _)| *key != "kind") {
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
        let dimensions = self.dimensions.unwrap_or(if sides.len() > 1 { sides.len() } else { 2 });
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
fn default_beta(kind: Kind, dimensions: Option<usize>, q: Option<usize>) -> f64 {
    match (kind, dimensions) {
        (Kind::Ising, Some(2)) => 0.4407,
        (Kind::Ising, Some(3)) => 0.2217,
        (Kind::Ising, Some(4)) => 0.1497,
        (Kind::Potts, Some(2)) => {
            let critical = (1.0 + (q.unwrap_or(3) as f64).sqrt()).ln();
            (critical * 1e4).round() / 1e4
        }
        _ => 1.0,
    }
}
