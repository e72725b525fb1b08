//! Arguments of the kernels of the LEC network.

use crate::device::cuda::arguments::{Input, Output, arguments, elements, join};

elements! {
    /// What stands at a site: a spin as a number, or a value.
    pub(super) struct Context = "Context";
    /// A neighbour: a site, in two bytes where that is enough.
    pub(super) struct Near = "Near";
    /// Four weights.
    pub(super) struct Four = "float4";
    /// What a thread has of a matrix: four numbers of tf32.
    pub(super) struct Fragment = "uint4";
}

/// The structures of this file, which the source of the kernels follows.
pub(super) const STRUCTURES: &str = join!(
    include_str!("types.cu"),
    Time::SOURCE,
    Times::SOURCE,
    LayerWeights::SOURCE,
    LayerForward::SOURCE,
    ReadBack::SOURCE,
    WeightsBack::SOURCE,
    InputsBack::SOURCE,
    ThetaBack::SOURCE,
    EmbedBack::SOURCE,
);

arguments! {
    /// The function of time of a layer: where its parameters are, its outputs, where they go, where its turned weights are.
    pub(super) struct Time {
        parameters: u32,
        outputs: u32,
        theta: u32,
        turned: u32,
    }
}

arguments! {
    /// What functions of time are made of.
    pub(super) struct Times {
        parameters: Input<f32>,
        turned: Input<f32>,
        /// `[layer]`.
        layers: Input<Time>,
        /// `[slot]`.
        time_indices: Input<u32>,
        /// `[time index * TIME_FEATURES]`.
        table: Input<f32>,
    }
}

arguments! {
    /// Parameters of a layer, as they are among all.
    pub(super) struct LayerWeights {
        /// `[(channel * taps + tap) * CHANNELS + entering channel]`.
        weight: Input<f32>,
        /// `[channel * taps + tap]`.
        inner: Input<f32>,
        outer: Input<f32>,
        taps: u32,
    }
}

arguments! {
    /// Of the forward pass of a layer.
    pub(super) struct LayerForward {
        /// `[(slot * CHANNELS + channel) * SITES + site]`.
        u: Input<f32>,
        /// `[slot * 2]`: the first and the last scale.
        ends: Input<f32>,
        /// `[slot * PLACES + site]`.
        x: Input<Context>,
        /// `[slot * THETAS + tap]`.
        theta: Input<f32>,
        /// For `layer_exact`.
        exact: Input<Four>,
        /// For `layer_tf32`.
        left: Input<Fragment>,
        outer: Input<f32>,
        /// `[tap * SITES + site]`.
        near: Input<Near>,
        /// `[site_value * CHANNELS + channel]`.
        values: Input<f32>,
        /// As `u`.
        out: Output<f32>,
        slots: u32,
        taps: u32,
        is_first: u32,
    }
}

arguments! {
    /// Of the way back from the outputs to the last layer.
    pub(super) struct ReadBack {
        u: Input<f32>,
        weight: Input<f32>,
        ends: Input<f32>,
        d_out: Input<f32>,
        d: Output<f32>,
        /// `[(slot * OUTPUTS + output) * CHANNELS + channel]`.
        d_weight: Output<f32>,
        /// As `ends`.
        d_ends: Output<f32>,
    }
}

arguments! {
    /// Of the gradient of a layer's weights.
    pub(super) struct WeightsBack {
        /// `[position * H_ROW + channel]`.
        h: Input<f32>,
        d: Input<f32>,
        x: Input<Context>,
        theta: Input<f32>,
        high: Input<Fragment>,
        low: Input<Fragment>,
        /// `[channel * taps + tap]`.
        outer: Input<f32>,
        near: Input<Near>,
        values: Input<f32>,
        parts: Output<f32>,
        d_values: Output<f32>,
        slots: u32,
        taps: u32,
        /// Positions of a block.
        share: u32,
    }
}

arguments! {
    /// Of the gradient of what a layer reads.
    pub(super) struct InputsBack {
        h: Input<f32>,
        d: Input<f32>,
        x: Input<Context>,
        high: Input<Fragment>,
        low: Input<Fragment>,
        near: Input<Near>,
        values: Input<f32>,
        /// `[(slot * CHANNELS + channel) * SITES + site]`.
        d_h: Output<f32>,
        slots: u32,
        taps: u32,
    }
}

arguments! {
    /// Of the gradient of a layer's function of time.
    pub(super) struct ThetaBack {
        d: Input<f32>,
        x: Input<Context>,
        near: Input<Near>,
        values: Input<f32>,
        by_context: Output<f32>,
        d_theta: Output<f32>,
        taps: u32,
    }
}

arguments! {
    /// Of the gradient of embeddings.
    pub(super) struct EmbedBack {
        embedding: Input<f32>,
        /// Of the first convolution.
        weight: Input<f32>,
        /// `[(channel * taps + tap) * Q + site_value]`.
        total: Input<f32>,
        /// `[(layer * CHANNELS + channel) * Q + site_value]`.
        d_values: Input<f32>,
        gradient: Output<f32>,
        taps: u32,
        layers: u32,
    }
}
