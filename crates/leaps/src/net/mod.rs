//! Locally equivariant networks: for every site and token a flux `J_t(s, i | x)` with
//! `J_t(s, i | x) = -J_t(x_i, i | x[i <- s])`.
//!
//! Every network here is *hollow*: its outputs `o_s(i)` at site `i` do not depend on the token `x_i`. Then
//! `J_t(s, i | x) = o_s(i) - o_{x_i}(i)` is locally equivariant, exactly, whatever the rounding. For two
//! tokens a site has one output and `J` is spin times output.
//!
//! A network is a folder with its specification, its parameters and its forward pass beside a
//! hand-derived backward pass, written once for 16 configurations in SIMD lanes.

mod dense;
mod fe;
mod features;
mod layout;
mod mlp;
mod model;
mod network;
#[cfg(test)]
mod testing;

pub use fe::{FreeEnergy, FreeEnergySpec};
pub use layout::Tensor;
pub use mlp::MlpSpec;
pub use model::{Net, NetSpec, Worker};
