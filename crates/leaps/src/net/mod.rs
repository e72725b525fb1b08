//! Locally equivariant networks: for every site and value a flux `J_t(s, i | x)` with
//! `J_t(s, i | x) = -J_t(x_i, i | x[i <- s])`.
//!
//! Every network here is *hollow*: its outputs `o_s(i)` at site `i` do not depend on the value `x_i`. Then
//! `J_t(s, i | x) = o_s(i) - o_{x_i}(i)` is locally equivariant, exactly, whatever the rounding. For two
//! values a site has one output and `J` is spin times output.
//!
//! A network is a folder with its specification, its parameters and its forward pass beside a
//! hand-derived backward pass, written once for 16 configurations in SIMD lanes.

#[cfg(test)]
mod authors;
pub mod cuda;
mod dense;
mod evaluator;
mod free_energy;
mod glass;
mod graph;
mod head;
mod hollow;
mod import;
mod jumps;
mod layout;
mod lea;
mod lec;
mod limits;
mod mlp;
mod model;
mod network;
mod options;
mod product;
#[cfg(test)]
mod testing;
mod time_features;
mod worker;

pub use evaluator::{Evaluator, Inputs};
pub use free_energy::{FreeEnergy, FreeEnergySpec};
pub use glass::GlassSpec;
pub use graph::HollowGraphSpec;
pub use hollow::HollowSpec;
pub use import::{Imported, ImportedTarget, import_checkpoint};
pub(crate) use jumps::JumpWorker;
pub use layout::Tensor;
pub(crate) use layout::take_mut;
pub use lea::LeaSpec;
pub use lec::LecSpec;
pub use mlp::MlpSpec;
pub use model::{Net, NetSpec};
pub use options::{NetworkKind, NetworkOptions};
pub use worker::Worker;
