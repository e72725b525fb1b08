//! The GPU of a program that was built without the feature `cuda`: there is none, and the compiler knows it.
//!
//! Code that is given a GPU has nothing to do: `match *gpu {}`.

use std::sync::Arc;

use crate::{Error, Result};

/// A GPU, of which there is none.
pub enum Gpu {}

impl Gpu {
    /// An error that says so.
    pub fn ready(_number: usize) -> Result<Arc<Self>> {
        let reason = "this program was built without the feature cuda";
        Err(Error::device("CUDA", reason, "use the device cpu"))
    }

    /// What the GPU is called.
    pub fn name(&self) -> &str {
        match *self {}
    }
}
