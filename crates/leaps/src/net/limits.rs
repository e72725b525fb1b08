//! The largest sizes that a network may have: beyond them a size is a mistake.

use super::{FreeEnergySpec, NetSpec};
use crate::{Error, Result};

/// Weights of a network that looks from every site at every other, beyond which it is not built.
const WEIGHTS: usize = 1 << 27;
/// Units of a hidden layer.
const UNITS: usize = 16384;
/// Layers of any kind.
const LAYERS: usize = 4096;

impl NetSpec {
    /// Refuse sizes beyond reason.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the setting as `network.KEY`.
    pub fn check_sizes(&self) -> Result<()> {
        let sizes = match self {
            NetSpec::Mlp(spec) => vec![("hidden", spec.hidden, WEIGHTS)],
            NetSpec::Lea(spec) => vec![
                ("heads", spec.heads, 256),
                ("width", spec.width, 4096),
                ("embedding", spec.embedding, UNITS),
            ],
            NetSpec::Lec(spec) => vec![
                ("channels", spec.channels, 4096),
                ("time_units", spec.time_units, UNITS),
                ("kernels", spec.kernels.len(), LAYERS),
            ],
            NetSpec::Hollow(spec) => vec![
                ("channels", spec.channels, 4096),
                ("depth", spec.depth.unwrap_or(1), LAYERS),
                ("rows", spec.rows.unwrap_or(1), 3),
                ("head", spec.head.unwrap_or(1), UNITS),
            ],
            NetSpec::Glass(spec) => vec![
                ("channels", spec.channels, 4096),
                ("depth", spec.depth.unwrap_or(1), LAYERS),
                ("rows", spec.rows.unwrap_or(1), 3),
                ("head", spec.head.unwrap_or(1), UNITS),
            ],
            NetSpec::HollowGraph(spec) => vec![
                ("channels", spec.channels, 4096),
                ("orders", spec.orders, 256),
                ("head", spec.head.unwrap_or(1), UNITS),
            ],
        };
        sizes.into_iter().try_for_each(|(key, size, most)| {
            at_most(&format!("network.{key}"), size, most, "use fewer")
        })
    }

    /// Refuse more weights than a network of this kind may have on so many sites.
    pub(super) fn check_weights(&self, sites: usize) -> Result<()> {
        let NetSpec::Mlp(spec) = self else { return Ok(()) };
        let (hidden, pairs) = (spec.hidden, sites.saturating_mul(sites));
        let weights = hidden.saturating_mul(pairs);
        if weights <= WEIGHTS {
            return Ok(());
        }
        Err(Error::not_applicable(
            "the network mlp",
            format!(
                "{hidden} hidden units on {sites} sites are {weights} weights; use network.kind = hollow-graph"
            ),
        ))
    }
}

impl FreeEnergySpec {
    /// Refuse sizes beyond reason.
    pub(crate) fn check_sizes(&self) -> Result<()> {
        let FreeEnergySpec::Mlp { hidden } = self else { return Ok(()) };
        let key = "free_energy.hidden";
        at_most(key, hidden.len(), LAYERS, "use fewer layers")?;
        hidden.iter().try_for_each(|&units| at_most(key, units, UNITS, "use fewer units"))
    }
}

fn at_most(key: &str, value: usize, most: usize, advice: &str) -> Result<()> {
    if value <= most {
        return Ok(());
    }
    Err(Error::invalid(key, value, format!("at most {most}"), advice))
}
