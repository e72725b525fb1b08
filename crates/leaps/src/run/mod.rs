//! Write results, samples, models and checkpoints as files, and read them back.

mod atomic;
mod checkpoint;
pub(crate) mod crc;
mod model;
mod npz;
mod sealed;
mod tensors;

pub use atomic::write as write_file;
pub use model::{Model, Summary};
pub use npz::NpzWriter;
