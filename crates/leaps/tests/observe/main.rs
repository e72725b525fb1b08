//! Errors that are claimed against errors that are made: estimates, chains, observables.

mod chain;
mod estimate;
mod log_z_estimate;
mod measure;
mod modes;
mod samples;

use leaps::device::{Purpose, Stream};

/// Random numbers for replication `r` of a test.
fn stream(r: u32) -> Stream {
    Stream::new(0x0b5e_a7e5, Purpose::Statistic, r, 0)
}

/// Mean and root mean square of z-scores.
fn mean_and_rms(z: &[f64]) -> (f64, f64) {
    let n = z.len() as f64;
    (z.iter().sum::<f64>() / n, (z.iter().map(|z| z * z).sum::<f64>() / n).sqrt())
}
