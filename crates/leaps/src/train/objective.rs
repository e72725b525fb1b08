//! What is learnt: a network and a free energy, on paths of one target.

use std::sync::Arc;

use super::{Family, Member};
use crate::Result;
use crate::net::{FreeEnergy, Net};
use crate::path::Path;
use crate::rates::Parametrisation;
use crate::target::Target;

/// What is learnt, and on what. Cheap to clone.
#[derive(Clone)]
pub struct Objective {
    /// What to sample.
    pub target: Arc<dyn Target>,
    /// The path to it, on which the network is validated.
    pub path: Path,
    /// The network.
    pub net: Arc<Net>,
    /// The free energy.
    pub free: Arc<FreeEnergy>,
    /// How fluxes become rates.
    pub parametrisation: Parametrisation,
    /// What the network is conditioned on when it is validated.
    pub(super) condition: Vec<f64>,
    /// The targets that reference states come from: that of the path, or a family.
    pub(super) members: Vec<Member>,
}

impl Objective {
    /// `net` and `free` on `target` along `path`.
    pub fn new(
        target: &Arc<dyn Target>,
        path: &Path,
        net: &Arc<Net>,
        free: &Arc<FreeEnergy>,
        parametrisation: Parametrisation,
    ) -> Self {
        let condition = vec![0.0; net.conditions()];
        Objective {
            target: target.clone(),
            path: path.clone(),
            net: net.clone(),
            free: free.clone(),
            parametrisation,
            members: vec![Member { path: path.clone(), condition: condition.clone() }],
            condition,
        }
    }

    /// The same on a family of targets, paths of this target that the network is conditioned on. The path itself is what it is validated on.
    pub fn over(mut self, family: &Family) -> Result<Self> {
        family.check(&self.net, &self.free)?;
        self.condition.clone_from(&family.condition);
        self.members.clone_from(&family.members);
        Ok(self)
    }

    /// Number of parameters: of the network, then of the free energy.
    pub fn parameters(&self) -> usize {
        self.net.parameters() + self.free.parameters()
    }

    /// Fresh parameters.
    pub fn initial(&self, seed: u64) -> Vec<f32> {
        let mut parameters = self.net.initial(seed);
        parameters.extend(self.free.initial(seed));
        parameters
    }
}
