//! Train one network for a family of targets that differ in inverse temperature and field.
//!
//! The members of a family have the same energy terms $E_k$; what differs is how much they weigh at the end of the path,
//! $U_t(x) = \sum_k \lambda_k(t)\,E_k(x)$ with $\lambda_k(1) = \beta$ for bonds and $\beta h$ for a field of strength 1. So a member is a [`Path`] of
//! one and the same target, and what the network is told of it: $\beta$ and $h$, scaled to go from -1 to 1 over their ranges.
//!
//! Every reference walker belongs to one member for good. A batch holds walkers of many members; the residual of each is against the free
//! energy of its own, $L = \langle (K_t(x; c) + \partial_t F_t(c))^2 \rangle$ over members c, times and states.

use crate::net::{FreeEnergy, Net};
use crate::path::Path;
use crate::{Error, Result};

/// One target of a family.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its path.
    pub path: Path,
    /// What the network is told about it.
    pub condition: Vec<f64>,
}

impl Member {
    /// The only target there is, or the middle of what the network is told of.
    pub(crate) fn only(path: &Path, net: &Net) -> Self {
        Member { path: path.clone(), condition: vec![0.0; net.conditions()] }
    }
}

/// The targets that one network is trained on.
#[derive(Clone, Debug)]
pub struct Family {
    /// What the network is told about the target itself, on which it is validated.
    pub condition: Vec<f64>,
    /// The targets that reference states come from.
    pub members: Vec<Member>,
}

impl Family {
    /// Refuse networks that cannot be told of the members.
    pub(super) fn check(&self, net: &Net, free: &FreeEnergy) -> Result<()> {
        let told =
            std::iter::once(&self.condition).chain(self.members.iter().map(|m| &m.condition));
        let fits = |condition: &Vec<f64>| {
            condition.len() == net.conditions() && condition.len() == free.conditions()
        };
        if self.members.is_empty() || !told.into_iter().all(fits) {
            return Err(Error::invalid(
                "family",
                format!("{} members", self.members.len()),
                format!("some, each with {} numbers that the network is told", net.conditions()),
                "build network and free energy with told()",
            ));
        }
        Ok(())
    }
}
