//! Write results and samples as files.

mod crc;
mod npz;

pub use npz::NpzWriter;
