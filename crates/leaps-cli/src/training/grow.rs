//! Train on a smaller lattice first.
//!
//! What a hollow convolution has learnt on a small lattice holds on a large one, where every step costs more: decision 12. A run on a large lattice
//! therefore starts from one on two thirds of its sides, kept in `start/` of the run's directory, which may start from a smaller one in the same way.

use anyhow::Result;
use leaps::run::{self, Checkpoints, Model, START};

use super::{Start, Training};
use crate::app::Context;
use crate::config::{BoundaryName, Config, Field, Kind, Layers, NetworkKind, Size, to_toml_from};

/// Sites up to which a lattice is small.
const FEW_SITES: usize = 400;
/// The shortest side of a smaller lattice: on less, networks would have to be shallower than on the large one.
const SHORTEST: usize = 14;

/// The sizes of the smaller lattices that training goes through first, the smallest first.
pub fn sizes(config: &Config) -> Vec<Size> {
    let mut sizes: Vec<Size> = Vec::new();
    while let Some(size) = smaller(config, sizes.last()) {
        sizes.push(size);
    }
    sizes.reverse();
    sizes
}

/// The next smaller lattice than `size`, at first than the target's, where training there first is worth while.
fn smaller(config: &Config, size: Option<&Size>) -> Option<Size> {
    let (target, train) = (&config.target, &config.train);
    let wanted = train.grow.unwrap_or(true) && train.from.is_none();
    let uniform = matches!(target.kind, Some(Kind::Ising | Kind::Potts))
        && matches!(target.field, None | Some(Field::Uniform(_)))
        && matches!(target.boundary, None | Some(BoundaryName::Periodic))
        && matches!(config.network.kind, Some(NetworkKind::Hollow));
    let Size(sides) = size.or(target.size.as_ref())?;
    let sides = match (sides[..].len(), target.dimensions) {
        (1, Some(2)) => vec![sides[0]; 2],
        _ => sides.clone(),
    };
    let two_thirds: Vec<usize> = sides.iter().map(|side| (2 * side + 1) / 3).collect();
    let large = sides.len() == 2
        && sides.iter().product::<usize>() > FEW_SITES
        && two_thirds.iter().all(|&side| side >= SHORTEST);
    (wanted && uniform && large).then_some(Size(two_thirds))
}

impl Training<'_> {
    /// Train on a smaller lattice, if that is worth while: the configuration with that run to start from.
    pub(super) fn grown(&self, context: &Context) -> Result<Option<Layers>> {
        let Some(size) = smaller(self.config, None) else { return Ok(None) };
        let part = self.directory.join(START);
        let mut layers = self.layers.clone();
        if let Some(begun) = Checkpoints::of(&self.directory).identity() {
            // A run that goes on knows what it started from.
            let from = begun.from.map(|from| from.name);
            return from.map(|from| layers.grow("train.from", from).map(|()| layers)).transpose();
        }
        if !is_finished(&part, self.config.train.steps) {
            let fail = |source| leaps::Error::Io { path: self.directory.clone(), source };
            std::fs::create_dir_all(&self.directory).map_err(fail)?;
            run::check_directory(&self.directory)?;
            let own = to_toml_from(self.config, self.layers);
            run::write_file(self.directory.join("config.toml"), own.as_bytes())?;
            let mut layers = self.layers.clone();
            layers.grow("target.size", size.to_string())?;
            if let Some(depth) = shallower(self.config, &size) {
                layers.grow("network.depth", depth as i64)?;
            }
            let start = Start::prepare(&mut layers, Some(&part))?;
            let config = Config::resolve(&layers)?;
            let problem = config.problem(&layers)?;
            context.say(format!("first on a lattice of {size} (train.grow = false goes without)"));
            let (directory, whole) = (part.clone(), self.whole.clone());
            let smaller = Training {
                layers: &layers,
                config: &config,
                problem: &problem,
                directory,
                whole,
                start,
                ..*self
            };
            smaller.train(context)?;
        }
        layers.grow("train.from", part.display().to_string())?;
        Ok(Some(layers))
    }
}

fn is_finished(run: &std::path::Path, steps: usize) -> bool {
    Model::load(run).is_ok_and(|model| model.training.steps >= steps as u64)
}

/// The depth that fits a smaller lattice, if the one that was asked for does not.
fn shallower(config: &Config, Size(sides): &Size) -> Option<usize> {
    let reach = config.network.rows.unwrap_or(3).saturating_sub(1).max(1);
    let deepest = sides.iter().min()?.saturating_sub(2) / reach;
    (config.network.depth? > deepest).then_some(deepest)
}
