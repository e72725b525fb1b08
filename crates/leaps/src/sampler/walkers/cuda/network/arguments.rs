//! Arguments of the kernels that move walkers along a network, and the constants that they are compiled with.

use super::BLOCK;
use crate::device::Purpose;
use crate::device::cuda::arguments::{Input, Output, arguments};
use crate::net::cuda::MARKS;
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
        /// `[slot]`: the site that has changed since the last pass, or what stands for all of them.
        jumped: Output<u32>,
        outputs: Input<f32>,
        /// `[time index * TERMS + term]`.
        lambda: Input<f64>,
        /// `[time index * TERMS + term]`.
        slopes: Input<f64>,
        /// `[interval]`.
        durations: Input<f64>,
        /// `[interval]`: which call of the network serves it.
        calls: Input<u32>,
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

/// Places of the counters: walkers that have entered a slot, that have arrived; intervals that were crossed; what failed first, with
/// its walker, its interval and its value.
pub(super) const WAITING: usize = 0;
pub(super) const FINISHED: usize = 1;
pub(super) const CROSSED: usize = 2;
pub(super) const FAILED: usize = 3;
pub(super) const FAILED_WALKER: usize = 4;
pub(super) const FAILED_INTERVAL: usize = 5;
pub(super) const FAILED_VALUE: usize = 6;
/// How many there are.
pub(super) const COUNTERS: usize = 7;

/// Kinds of failure, 0 if nothing failed: the sum of the rates, energy term 0, and the other terms behind it.
pub(super) const RATES_FAILED: usize = 1;
pub(super) const TERMS_FAILED: usize = 2;

/// Threads of the block of `compact`.
pub(super) const COMPACTORS: usize = 1024;

/// Numbers of the schemes.
const EULER: usize = 0;
const TRAPEZOID: usize = 1;
const EVENTS: usize = 2;

/// What the kernels of `network.cu` are compiled with.
pub(crate) fn defines(
    parametrisation: Parametrisation,
    scheme: Scheme,
    reversed: bool,
) -> [(&'static str, usize); 5 + 3 + 2 + 2 + COUNTERS + 3] {
    let scheme = match scheme {
        Scheme::Euler => EULER,
        Scheme::Trapezoid => TRAPEZOID,
        Scheme::Events => EVENTS,
    };
    [
        ("PARAMETRISATION", parametrisation as usize),
        ("SCHEME", scheme),
        ("REVERSED", usize::from(reversed)),
        ("BLOCK", BLOCK),
        ("JUMP", Purpose::Jump as usize),
        ("RELU", Parametrisation::Relu as usize),
        ("BARKER", Parametrisation::Barker as usize),
        ("SQRT", Parametrisation::Sqrt as usize),
        ("TRAPEZOID", TRAPEZOID),
        ("EVENTS", EVENTS),
        MARKS[0],
        MARKS[1],
        ("WAITING", WAITING),
        ("FINISHED", FINISHED),
        ("CROSSED", CROSSED),
        ("FAILED", FAILED),
        ("FAILED_WALKER", FAILED_WALKER),
        ("FAILED_INTERVAL", FAILED_INTERVAL),
        ("FAILED_VALUE", FAILED_VALUE),
        ("RATES_FAILED", RATES_FAILED),
        ("TERMS_FAILED", TERMS_FAILED),
        ("COMPACTORS", COMPACTORS),
    ]
}
