//! What the kernels that move walkers along a network are compiled with, and their arguments.

use super::BLOCK;
use crate::device::Purpose;
use crate::device::cuda::arguments::{Input, Output, arguments};
use crate::rates::Parametrisation;
use crate::sampler::Scheme;

arguments! {
    /// Walkers that follow a network, as kernels read and write them.
    pub(super) struct WalkArguments {
        /// `[walker * SITES + site]`.
        states: Output<u8>,
        /// `[walker]`.
        log_weights: Output<f64>,
        /// `[walker * TERMS + term]`.
        energies: Output<f64>,
        /// `[walker]`.
        pending: Output<f64>,
        /// `[walker]`.
        passes: Output<u32>,
        /// `[slot]`: the walker.
        rows: Output<u32>,
        /// `[slot]`: time indices.
        time_indices: Output<u32>,
        /// `[slot]`: 0 is an empty slot.
        intervals: Output<u32>,
        /// `[slot]`: passes in this interval.
        passed: Output<u32>,
        /// `[slot]`: of this interval.
        left: Output<f64>,
        outputs: Input<f32>,
        /// `[time index * TERMS + term]`.
        lambda: Input<f64>,
        /// `[time index * TERMS + term]`.
        slopes: Input<f64>,
        /// `[interval]`.
        durations: Input<f64>,
        counters: Output<u64>,
        seed: u64,
        start: u64,
        end: u64,
        /// Trapezoid makes one more pass before this interval.
        closing: u64,
        walkers: u64,
        weigh: u64,
    }
}

/// What the kernels of `network.cu` are compiled with.
pub(crate) fn defines(
    parametrisation: Parametrisation,
    scheme: Scheme,
    reversed: bool,
) -> [(&'static str, usize); 5] {
    let scheme = match scheme {
        Scheme::Euler => 0,
        Scheme::Trapezoid => 1,
        Scheme::Events => 2,
    };
    [
        ("PARAMETRISATION", parametrisation as usize),
        ("SCHEME", scheme),
        ("REVERSED", usize::from(reversed)),
        ("BLOCK", BLOCK),
        ("JUMP", Purpose::Jump as usize),
    ]
}
