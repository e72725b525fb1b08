//! Samples of discrete distributions that are known up to a constant, with numbers that say how uncertain they are.
//!
//! A *target* has `d` sites with `q` values each and an energy made of a few terms,
//! `U_t(x) = sum_k lambda_k(t) E_k(x)`. A *path* moves the weights `lambda_k` of the terms from 0,
//! where every state is equally likely, to their values in the target distribution.
//!
//! | module | what it does |
//! |---|---|
//! | [`target`] | what to sample: Ising, Potts, spin glasses, Boltzmann machines, and any energy of your own |
//! | [`path`] | how the weights of the energy terms grow from 0 to their final values |
//! | [`exact`] | ground truth by enumeration, transfer matrix or Kaufman's formula |
//! | [`mcmc`] | Markov chain kernels, each of which leaves the target distribution invariant |
//! | [`net`] | locally equivariant networks |
//! | [`sampler`] | annealed importance sampling and sequential Monte Carlo as one driver |
//! | [`observe`] | observables and their errors, for weighted samples and for chains |
//! | [`device`] | CPU or GPU, random numbers, SIMD lanes |
//! | [`rates`] | from network outputs to rates of a Markov jump process |
//! | [`train`] | learning the networks |
//! | [`problem`] | a target and the path to it: what samplers and training are given |
//! | [`spec`] | the whole of a `run.toml`: target, path, network, training, sampling |
//! | [`parse`] | parsing values as users write them |
//! | [`job`] | what a user asks for: sampling, training, exact answers, each a builder |
//! | [`results`] | what jobs return, as types that can be saved and read back |
//! | [`store`] | models, runs and their checkpoints, results and samples as files |
//! | [`file`](mod@file) | reading ordinary files, within bounds |

pub mod device;
mod error;
pub mod exact;
pub mod file;
pub mod job;
pub mod mcmc;
pub mod net;
pub mod observe;
pub mod parse;
pub mod path;
pub mod prelude;
pub mod problem;
pub mod rates;
pub mod results;
pub mod sampler;
pub mod spec;
pub mod store;
pub mod target;
pub mod train;

pub use error::{Error, Result, finite};
