//! The verbs, one file each.

pub mod annealing;
pub mod check;
pub mod compare;
pub mod completions;
pub mod convert;
pub mod demo;
pub mod exact;
pub mod free_energy;
pub mod import;
pub mod init;
pub mod man;
pub mod mcmc;
pub mod minimize;
pub mod models;
pub mod plot;
pub mod rates;
pub mod report;
pub mod reproduce;
pub mod sample;
mod sampling;
pub mod serve;
pub mod status;
pub mod table;
pub mod train;
pub mod watch;
