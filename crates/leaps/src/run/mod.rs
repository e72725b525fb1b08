//! Write results and samples as files.

pub(crate) mod crc;
mod npz;

pub use npz::NpzWriter;
