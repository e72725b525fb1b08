//! The objective of training: a network and a free energy, on paths of one target.

use std::sync::Arc;

use super::{Family, Instances, Member};
use crate::net::{FreeEnergy, FreeEnergySpec, Net};
use crate::path::Path;
use crate::rates::Parametrisation;
use crate::target::{Pairwise, Target};
use crate::{Error, Result};

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
    /// The instances that reference states come from, if they do not come from the target itself.
    pub(super) instances: Option<Instances>,
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
            instances: None,
        }
    }

    /// The same on a family of targets, paths of this target that the network is conditioned on. The path itself is what it is validated on.
    pub fn over(mut self, family: &Family) -> Result<Self> {
        family.check(&self.net, &self.free)?;
        self.condition.clone_from(&family.condition);
        self.members.clone_from(&family.members);
        Ok(self)
    }

    /// The same on random instances of the target's disorder. The target itself is what the network is validated on.
    pub fn over_instances(mut self, instances: &Instances) -> Result<Self> {
        let plain = |pairs: &Pairwise| {
            pairs.lattice() == Some(&instances.lattice) && pairs.axis_couplings().is_some()
        };
        if self.members.len() > 1 || !self.target.pairwise().is_some_and(plain) {
            let reason = "the target must be a spin glass on their lattice with sides of at least 3, without a field and without ranges";
            return Err(Error::not_applicable("training over instances", reason));
        }
        if *self.free.spec() != FreeEnergySpec::None {
            let reason = "walkers of an instance stand for its free energy, so that none is learnt";
            return Err(Error::not_applicable("a free energy", reason));
        }
        self.instances = Some(instances.clone());
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
