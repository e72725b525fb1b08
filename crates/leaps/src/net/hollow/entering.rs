//! Inputs of a stack of convolutions, and the features that sites read beside the context that it gives them.

use std::sync::Arc;

use super::global_features::GlobalFeatures;
use crate::device::vector::Vector;
use crate::net::glass::bonds::Bonds;
use crate::net::network::Group;

/// What enters, the same or its own for every direction.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Entering {
    /// The values, with or without global features of them.
    Values { inputs: usize, global_features: Option<GlobalFeatures> },
    /// The bonds of a spin glass.
    Bonds(Arc<Bonds>),
}

impl Entering {
    /// Numbers of a site that enter.
    pub(super) fn inputs(&self) -> usize {
        match self {
            Entering::Values { inputs, .. } => *inputs,
            Entering::Bonds(bonds) => bonds.inputs(),
        }
    }

    /// Numbers that a site sees beside the context.
    pub(super) fn beside(&self) -> usize {
        match self {
            Entering::Values { global_features, .. } => {
                global_features.as_ref().map_or(0, GlobalFeatures::width)
            }
            Entering::Bonds(bonds) => bonds.width(),
        }
    }

    /// How far from a site its value enters: with its bonds it enters at the next sites, too.
    pub(super) fn reach(&self) -> usize {
        match self {
            Entering::Values { .. } => 0,
            Entering::Bonds(_) => 1,
        }
    }

    /// Write what enters along direction `k`, with a row of zeros for no site.
    #[inline(always)]
    pub(super) unsafe fn enter<V: Vector>(&self, k: usize, group: &Group<'_, V>, x: &mut [V]) {
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            match self {
                Entering::Values { .. } => {
                    let (sites, none) = x.split_at_mut(group.x.len());
                    sites.copy_from_slice(group.x);
                    none.fill(V::zero());
                }
                Entering::Bonds(bonds) => bonds.enter(k, group, x),
            }
        }
    }

    /// Write what sites see beside the context into the last columns of its rows, once something has [entered](Self::enter) into `x`.
    #[inline(always)]
    pub(super) unsafe fn write<V: Vector>(&self, group: &Group<'_, V>, x: &[V], context: &mut [V]) {
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            match self {
                Entering::Values { global_features: Some(features), .. } => {
                    features.write(x, context);
                }
                Entering::Values { .. } => {}
                Entering::Bonds(bonds) => bonds.write(group, context),
            }
        }
    }
}
