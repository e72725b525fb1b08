//! Write results and samples as files.

mod atomic;
mod crc;
mod npz;

pub use npz::NpzWriter;
