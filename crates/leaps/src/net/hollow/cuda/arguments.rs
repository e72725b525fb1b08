//! Arguments of the kernels of the hollow convolution.

use crate::device::cuda::arguments::{Input, Output, arguments, elements, join};

elements! {
    /// A channel of an activation; on tensor cores a pair of them, rounded to bfloat16.
    pub(in crate::net) struct Word = "Word";
    /// A weight; on tensor cores eight of them, rounded to bfloat16, in the order in which a thread reads them.
    pub(super) struct Weights = "Weights";
}

/// What [`Word`] and [`Weights`] are.
const FLOATS: &str = "typedef float Word;\ntypedef float Weights;\n";
const PAIRS: &str = "typedef u32 Word;\ntypedef uint4 Weights;\n";

/// The structures of this file, which the source of the kernels follows.
pub(super) fn source(matrix: bool) -> String {
    const STRUCTURES: &str = join!(
        Embedding::SOURCE,
        StackForward::SOURCE,
        Axis::SOURCE,
        StackChanges::SOURCE,
        HeadForward::SOURCE,
        HeadBackward::SOURCE,
        StackBackward::SOURCE,
        WeightsBackward::SOURCE,
        FirstBackward::SOURCE,
        EmbedGradient::SOURCE,
        BondRows::SOURCE,
        Counting::SOURCE,
    );
    [if matrix { PAIRS } else { FLOATS }, STRUCTURES].concat()
}

arguments! {
    /// A time embedding: where its parameters start, outputs of each half, with those that pad it, and where its outputs
    /// start in a row of times.
    pub(super) struct Embedding {
        parameters: u32,
        real: u32,
        padded: u32,
        start: u32,
    }
}

arguments! {
    /// Of the forward pass through the stack.
    pub(super) struct StackForward {
        /// `[row * SITES + site]`.
        states: Input<u8>,
        /// `[slot]`: the row of its state.
        rows: Input<u32>,
        /// `[slot]`.
        time_indices: Input<u32>,
        /// `[time index * TIME_ROW]`: outputs of all embeddings.
        times: Input<f32>,
        /// `[direction][tap][row]`: where the row that a tap reads begins.
        taps: Input<u32>,
        /// Numbers that enter the first layer if there are any, else values do: `[slot][direction][site][ENTERING]`.
        entering: Input<Word>,
        /// `[tap][value][channel]` of the first layer; of one that numbers enter as `weights`.
        first: Input<f32>,
        /// `[layer][channel]`.
        biases: Input<f32>,
        /// `[layer - 1]` of the others, as tables.rs orders them.
        weights: Input<Weights>,
        /// `[slot][direction][site][channel]`: the last layer after its activation.
        context: Output<Word>,
        /// `[layer][slot][direction][site][channel]`: all layers; only for training.
        saved: Output<Word>,
        /// Planes of channels that do not fit into shared memory.
        scratch: Output<Word>,
    }
}

arguments! {
    /// An axis of the lattice as seen along a direction.
    pub(super) struct Axis {
        side: u32,
        stride: u32,
        /// 1 if it runs the other way.
        backwards: u32,
    }
}

arguments! {
    /// Of the passes through the stack of slots in which a site has changed.
    pub(super) struct StackChanges {
        states: Input<u8>,
        rows: Input<u32>,
        time_indices: Input<u32>,
        times: Input<f32>,
        first: Input<f32>,
        biases: Input<f32>,
        weights: Input<Weights>,
        /// `[direction][along, across]`.
        axes: Input<Axis>,
        /// `[slot]`: the site.
        changed: Input<u32>,
        /// The slots, and after the number of those that need a whole pass how many they are.
        local: Input<u32>,
        counts: Input<u32>,
        /// `[slot][layer - 1][direction][site][channel]`: layers between the first and the last before their activation.
        kept: Output<f32>,
        context: Output<Word>,
    }
}

arguments! {
    /// Of the forward pass through the head.
    pub(super) struct HeadForward {
        context: Input<Word>,
        /// `[slot][site][global feature]`.
        global_features: Input<Word>,
        /// `[direction][site]`: the site whose context it reads.
        before: Input<u32>,
        time_indices: Input<u32>,
        times: Input<f32>,
        mix: Input<Weights>,
        mix_bias: Input<f32>,
        hidden: Input<Weights>,
        hidden_bias: Input<f32>,
        /// `[output][HEAD]`.
        last: Input<f32>,
        last_bias: Input<f32>,
        /// `[slot][site][output]`.
        out: Output<f32>,
        /// `[slot][site][HEAD]`: channels before and after the first activation and before the second; only for training.
        u: Output<Word>,
        v: Output<Word>,
        w: Output<Word>,
    }
}

arguments! {
    /// Of the backward pass through the head.
    pub(super) struct HeadBackward {
        time_indices: Input<u32>,
        times: Input<f32>,
        mix_back: Input<Weights>,
        hidden_back: Input<Weights>,
        last: Input<f32>,
        /// `[slot][site][output]`.
        d_out: Input<f32>,
        u: Input<Word>,
        w: Input<Word>,
        /// `[slot][site][HEAD]`.
        d_u: Output<Word>,
        d_w: Output<Word>,
        /// `[slot][site][direction * channel]`.
        d_context: Output<Word>,
        /// `[slot][block][HEAD_SUMS]`.
        sums: Output<f32>,
    }
}

arguments! {
    /// Of the backward pass through the stack.
    pub(super) struct StackBackward {
        time_indices: Input<u32>,
        times: Input<f32>,
        /// `[direction][tap][row]`: where the row begins whose tap reads a row.
        taps_back: Input<u32>,
        /// `[direction][site]`: the site that reads its context.
        after: Input<u32>,
        weights_back: Input<Weights>,
        saved: Input<Word>,
        d_context: Input<Word>,
        /// As `saved`.
        d_saved: Output<Word>,
        /// `[layer][slot][direction][BACK_SUMS]`.
        sums: Output<f32>,
        scratch: Output<Word>,
    }
}

arguments! {
    /// Of the gradient of weights of the stack.
    pub(super) struct WeightsBackward {
        time_indices: Input<u32>,
        times: Input<f32>,
        taps: Input<u32>,
        saved: Input<Word>,
        d_saved: Input<Word>,
        /// `[group][layer - 1][tap][input][output]`.
        parts: Output<f32>,
        /// Directions of all slots.
        items: u32,
    }
}

arguments! {
    /// Of the gradient of weights of the first layer.
    pub(super) struct FirstBackward {
        states: Input<u8>,
        rows: Input<u32>,
        /// As in [`StackForward`].
        entering: Input<Word>,
        taps: Input<u32>,
        d_saved: Input<Word>,
        /// `[group][tap][value or number][channel]`.
        parts: Output<f32>,
        items: u32,
    }
}

arguments! {
    /// Of the gradient of the embeddings' parameters.
    pub(super) struct EmbedGradient {
        embeddings: Input<Embedding>,
        /// `[embedding]`: where its gradient begins.
        starts: Input<u32>,
        time_indices: Input<u32>,
        /// `[time index * TIME_FEATURES]`.
        table: Input<f32>,
        /// `[time index][embedding][2 * TIME_UNITS]`: before and after the activation.
        hidden: Input<f32>,
        /// `[slot][TIME_ROW]`.
        d_times: Input<f32>,
        /// `[slot][embedding][TIME_UNITS]`.
        d_hidden: Input<f32>,
        gradient: Output<f32>,
        slots: u32,
    }
}

arguments! {
    /// A class of bonds: its rows of ends, and how their count becomes a number.
    pub(super) struct BondRows {
        first: u32,
        end: u32,
        factor: f32,
        offset: f32,
    }
}

arguments! {
    /// Of the counts that become global features.
    pub(super) struct Counting {
        states: Input<u8>,
        rows: Input<u32>,
        /// `[2 * offset + sense][site]`: where bonds lead, forwards and backwards.
        ends: Input<u32>,
        /// `[class]`.
        classes: Input<BondRows>,
        /// `[site]`: bit `k` is set where the sign of order `k` is -1.
        signs: Input<u8>,
        /// `[slot][site][GLOBAL_FEATURES]`.
        global_features: Output<Word>,
        value_factor: f32,
        value_offset: f32,
        order_factor: f32,
        /// Of the number of sites.
        root: f32,
    }
}
