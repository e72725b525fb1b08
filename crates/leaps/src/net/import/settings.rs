//! The target among a checkpoint's settings.

use super::value::{Id, Pickle, Value};
use super::{Damage, damage};
use crate::Result as LibraryResult;
use crate::path::{Path, Schedule};
use crate::target::{Boundary, Interaction, Lattice, Pairwise, Target};

/// What an imported network samples: a model on a square torus, its coupling switched on linearly,
/// `U_t = -beta t J sum_<ij> ...`.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedTarget {
    /// Ising or Potts.
    pub interaction: Interaction,
    /// Values per site.
    pub q: usize,
    /// Sites along each axis.
    pub side: usize,
    /// The coupling `J` at `t = 1`.
    pub coupling: f64,
    /// The inverse temperature.
    pub beta: f64,
}

impl ImportedTarget {
    /// The model.
    pub fn model(&self) -> LibraryResult<Pairwise> {
        let lattice = Lattice::new(&[self.side, self.side], Boundary::Periodic)?;
        match self.interaction {
            Interaction::Ising => Pairwise::ising(lattice, self.coupling, 0.0),
            Interaction::Potts => Pairwise::potts(lattice, self.q, self.coupling, 0.0),
        }
    }

    /// The path it was trained on.
    pub fn path(&self) -> LibraryResult<Path> {
        let terms = self.model()?.terms();
        Path::new(&vec![self.beta; terms], Schedule::Linear)
    }
}

/// Larger lattices are no lattices of these checkpoints.
const MAX_SIDE: f64 = 1024.0;

/// The target that the settings describe, for a network with `q` values.
pub(super) fn target(pickle: &Pickle, q: usize) -> Result<ImportedTarget, Damage> {
    let Some(all) = pickle.get(pickle.root, "hyper_parameters") else {
        return damage("hyper_parameters", "the entry is missing, and with it the target");
    };
    let settings = Settings { pickle, all: pickle.get(all, "config").unwrap_or(all) };
    let interaction = match settings.text("target")? {
        "ising" => Interaction::Ising,
        "potts" => Interaction::Potts,
        other => return damage("config.target", format!("{other:?} is not ising or potts")),
    };
    if (interaction == Interaction::Ising) != (q == 2) {
        let reason = format!("the network has {q} values, which is another target");
        return damage("config.target", reason);
    }
    match settings.text("path")? {
        "linear" => {}
        other => return damage("config.path", format!("{other:?} is not known, only linear")),
    }
    let side = settings.number("L")?;
    if !(2.0..=MAX_SIDE).contains(&side) || side.fract() != 0.0 {
        return damage("config.L", format!("{side} is not the side of a lattice"));
    }
    let beta = settings.number("beta_1")?;
    if settings.number("beta_0")? != beta || settings.number("J_0")? != 0.0 {
        let reason = "only paths from J = 0 at a constant temperature are known";
        return damage("config.beta_0, config.J_0", reason);
    }
    for field in ["mu_0", "mu_1", "B_0", "B_1"] {
        if settings.find(field).is_some() && settings.number(field)? != 0.0 {
            return damage(format!("config.{field}"), "only targets without fields are known");
        }
    }
    let coupling = settings.number("J_1")?;
    Ok(ImportedTarget { interaction, q, side: side as usize, coupling, beta })
}

struct Settings<'a> {
    pickle: &'a Pickle,
    all: Id,
}

impl<'a> Settings<'a> {
    fn find(&self, name: &str) -> Option<&'a Value> {
        self.pickle.get(self.all, name).map(|id| self.pickle.value(id))
    }

    fn text(&self, name: &str) -> Result<&'a str, Damage> {
        match self.find(name) {
            Some(Value::Text(text)) => Ok(text),
            _ => damage(format!("config.{name}"), "it is missing or not a text"),
        }
    }

    fn number(&self, name: &str) -> Result<f64, Damage> {
        match self.find(name) {
            Some(&Value::Int(value)) => Ok(value as f64),
            Some(&Value::Float(value)) if value.is_finite() => Ok(value),
            _ => damage(format!("config.{name}"), "it is missing or not a finite number"),
        }
    }
}
