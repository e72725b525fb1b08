//! Where jobs run, and who watches them.

use crate::device::{Device, NoProgress, Placement, Precision, Progress};
use crate::results::Computed;
use crate::{Error, Result};

/// What every job is given.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The device that was asked for.
    pub device: Device,
    /// The precision of networks on a GPU.
    pub precision: Precision,
    /// Who hears of progress, and can ask for a stop.
    pub progress: &'a dyn Progress,
}

impl Default for Context<'_> {
    /// A GPU if there is one that can do the work, and nobody watching.
    fn default() -> Self {
        let precision = Precision::default();
        Context { device: Device::Auto, precision, progress: &NoProgress }
    }
}

impl Context<'_> {
    /// Turn the device into a place, once, before work starts; `able` says whether a GPU can do the work at all.
    pub fn place(&self, able: Result<()>) -> Result<(Placement, Computed)> {
        let (placement, reason) = self.device.place(self.precision, able)?;
        self.progress.placed(&placement, reason.as_ref());
        let computed = Computed {
            device: placement.name().to_owned(),
            reason: reason.as_ref().map(Error::to_string),
        };
        Ok((placement, computed))
    }
}
