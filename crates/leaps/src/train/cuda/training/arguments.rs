//! Arguments of the kernels of a gradient step.

use crate::device::cuda::arguments::{Input, Output, arguments};

arguments! {
    /// What residuals are made of, and where they go.
    pub(super) struct Residuals {
        /// `[row * SITES + site]`.
        states: Input<u8>,
        /// `[slot]`: the row of its state.
        rows: Input<u32>,
        /// `[slot * TERMS + term]`.
        lambdas: Input<f64>,
        /// `[slot * TERMS + term]`: derivatives of the weights in time.
        slopes: Input<f64>,
        /// `[slot]`: dF/dt.
        shift: Input<f32>,
        /// `[(slot * SITES + site) * OUTPUTS]`, of the network.
        outputs: Input<f32>,
        /// Two over the number of slots.
        share: f64,
        /// `[slot]`.
        out: Output<f64>,
        /// Gradients of the loss with respect to the outputs.
        d_outputs: Output<f32>,
    }
}

arguments! {
    /// A step of Adam, all arrays `[parameter]` but for the result.
    pub(super) struct Adam {
        parameters: Output<f32>,
        average: Output<f32>,
        first: Output<f32>,
        second: Output<f32>,
        gradient: Input<f32>,
        /// Loss and norm of the gradient.
        result: Input<f64>,
        /// The norm that the gradient is cut to.
        clip: f64,
        rate: f32,
        ema: f32,
        b1: f32,
        b2: f32,
        n: u32,
    }
}
