//! What is measured beside the usual observables; a part of the section `[sample]`.

use serde::{Deserialize, Serialize};

/// Observables that are measured where they are asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "clap", command(next_help_heading = "Sampling"))]
pub struct MeasureSpec {
    /// Measure S(k) at all wave vectors of a periodic lattice, and correlations at all offsets
    #[cfg_attr(feature = "clap", arg(long))]
    pub structure_factor: bool,
}
