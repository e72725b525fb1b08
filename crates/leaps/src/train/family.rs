//! Families of targets that differ in inverse temperature and field, for one network.
//!
//! The members of a family have the same energy terms $E_k$; what differs is how much they weigh at the end of the path,
//! $U_t(x) = \sum_k \lambda_k(t)\,E_k(x)$ with $\lambda_k(1) = \beta$ for bonds and $\beta h$ for a field of strength 1. So a member is a [`Path`] of
//! one and the same target, and what the network is conditioned on: $\beta$ and $h$, scaled to go from -1 to 1 over their ranges.
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
    /// What the network is conditioned on.
    pub condition: Vec<f64>,
}

/// The targets that one network is trained on.
#[derive(Clone, Debug)]
pub struct Family {
    /// What the network is conditioned on for the target itself, on which it is validated.
    pub condition: Vec<f64>,
    /// The targets that reference states come from.
    pub members: Vec<Member>,
}

impl Family {
    /// Refuse networks that are not conditioned on as many numbers as the members have.
    pub(super) fn check(&self, net: &Net, free: &FreeEnergy) -> Result<()> {
        let mut conditions =
            std::iter::once(&self.condition).chain(self.members.iter().map(|m| &m.condition));
        let fits = |condition: &Vec<f64>| {
            condition.len() == net.conditions() && condition.len() == free.conditions()
        };
        if self.members.is_empty() || !conditions.all(fits) {
            return Err(Error::invalid(
                "family",
                format!("{} members", self.members.len()),
                format!(
                    "some, each with the {} numbers that the network is conditioned on",
                    net.conditions()
                ),
                "build network and free energy with conditioned_on()",
            ));
        }
        Ok(())
    }
}
