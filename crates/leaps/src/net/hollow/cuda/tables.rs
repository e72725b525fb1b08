//! Tables of where every number of the kernels comes from, and where every gradient is collected.

use std::ops::Range;

use super::sizes::Sizes;
use crate::net::cuda::Entry;
use crate::net::hollow::Hollow;

/// Where tensors start among the parameters.
pub(super) struct Offsets {
    /// Weights and biases of every layer of the stack.
    pub(super) layers: Vec<(usize, usize)>,
    /// Weights and biases of mix, hidden and out.
    pub(super) mix: (usize, usize),
    pub(super) hidden: (usize, usize),
    pub(super) out: (usize, usize),
    /// Time embeddings of the residual layers and of the head: where all parameters of each are.
    pub(super) embeddings: Vec<Range<usize>>,
    pub(super) total: usize,
}

impl Offsets {
    pub(super) fn new(network: &Hollow, sizes: &Sizes) -> Self {
        let (c, width) = (sizes.real_channels, sizes.real_head);
        let inputs = network.stack.first.matrix.inputs;
        let mut at = 0;
        let mut take = |n: usize| {
            at += n;
            at - n
        };
        let (mut layers, mut embeddings) = (Vec::new(), Vec::new());
        for layer in 0..sizes.layers {
            let entering = if layer == 0 { inputs } else { c };
            layers.push((take(c * entering * sizes.taps), take(c)));
            if layer > 0 {
                let start = take(network.stack.time.parameters());
                embeddings.push(start..start + network.stack.time.parameters());
            }
        }
        let mix = (take(width * (sizes.directions * c + sizes.real_global_features)), take(width));
        let hidden = (take(width * width), take(width));
        let out = (take(sizes.outputs * width), take(sizes.outputs));
        let start = take(network.head.time.parameters());
        embeddings.push(start..at);
        Offsets { layers, mix, hidden, out, embeddings, total: at }
    }

    /// Where the weights of mix start that lead from the context along `direction` to channel `o`; past the last
    /// direction, from global features.
    fn context(&self, sizes: &Sizes, o: usize, direction: usize) -> usize {
        let row = sizes.directions * sizes.real_channels + sizes.real_global_features;
        self.mix.0 + o * row + direction * sizes.real_channels
    }
}

/// Numbers of the kernels in terms of parameters.
pub(super) struct Orders {
    pub(super) first: Vec<Entry>,
    pub(super) biases: Vec<Entry>,
    pub(super) weights: Vec<Entry>,
    pub(super) weights_back: Vec<Entry>,
    pub(super) mix: Vec<Entry>,
    pub(super) mix_back: Vec<Entry>,
    pub(super) mix_bias: Vec<Entry>,
    pub(super) hidden: Vec<Entry>,
    pub(super) hidden_back: Vec<Entry>,
    pub(super) hidden_bias: Vec<Entry>,
    pub(super) last: Vec<Entry>,
    pub(super) last_bias: Vec<Entry>,
}

/// The entry at `index`, or 0 outside of the real numbers.
fn when(inside: bool, index: impl FnOnce() -> usize) -> Entry {
    if inside { Entry::Plus(index()) } else { Entry::Zero }
}

/// A matrix `entry(k, n)` with `height` rows and `width` columns in the order in which tensor cores read it: for each 16 rows,
/// each 16 columns and each thread of a warp the 8 numbers it needs.
fn fragments(height: usize, width: usize, entry: impl Fn(usize, usize) -> Entry) -> Vec<Entry> {
    let (steps, pairs) = (height.div_ceil(16), width.div_ceil(16));
    let mut out = Vec::with_capacity(steps * pairs * 256);
    for step in 0..steps {
        for pair in 0..pairs {
            for lane in 0..32 {
                let (g, t) = (lane / 4, lane % 4);
                for e in 0..8 {
                    let k = step * 16 + 2 * t + (e & 1) + (e >> 1 & 1) * 8;
                    let n = (2 * pair + e / 4) * 8 + g;
                    out.push(if k < height && n < width { entry(k, n) } else { Entry::Zero });
                }
            }
        }
    }
    out
}

/// A matrix row by row.
fn rows(height: usize, width: usize, entry: impl Fn(usize, usize) -> Entry) -> Vec<Entry> {
    (0..height * width).map(|i| entry(i / width, i % width)).collect()
}

impl Orders {
    pub(super) fn new(sizes: &Sizes, offsets: &Offsets) -> Self {
        let s = *sizes;
        let (c, taps, inputs) = (s.channels, s.taps, s.real_inputs());
        let real = |k: usize| k < s.real_channels;
        let lay = |height, width, entry: &dyn Fn(usize, usize) -> Entry| match s.matrix {
            true => fragments(height, width, entry),
            false => rows(height, width, entry),
        };
        let (weight0, _) = offsets.layers[0];
        let entering = s.entering.max(1);
        let numbers = |k: usize, n: usize| {
            let (tap, number) = (k / entering, k % entering);
            let at = || weight0 + (n * inputs + number) * taps + tap;
            when(real(n) && number < inputs, at)
        };
        let values = (0..taps * (s.q + 1) * c).map(|i| {
            let (tap, value, o) = (i / c / (s.q + 1), i / c % (s.q + 1), i % c);
            let at = |input: usize| weight0 + (o * inputs + input) * taps + tap;
            match value {
                _ if !real(o) || value == s.q => Entry::Zero,
                // Two values are spins.
                0 if s.q == 2 => Entry::Minus(at(0)),
                1 if s.q == 2 => Entry::Plus(at(0)),
                value => Entry::Plus(at(value)),
            }
        });
        let first = match s.entering {
            0 => values.collect(),
            _ => lay(taps * entering, c, &numbers),
        };
        let biases = offsets
            .layers
            .iter()
            .flat_map(|&(_, bias)| (0..c).map(move |o| when(o < s.real_channels, || bias + o)));
        let (mut weights, mut weights_back) = (Vec::new(), Vec::new());
        for &(weight, _) in &offsets.layers[1..] {
            let at = |o: usize, i: usize, tap: usize| {
                when(real(o) && real(i), || weight + (o * s.real_channels + i) * taps + tap)
            };
            weights.extend(lay(taps * c, c, &|k, n| at(n, k % c, k / c)));
            weights_back.extend(lay(taps * c, c, &|k, n| at(k % c, n, k / c)));
        }
        let head = |n: usize| n < s.real_head;
        let mix_at = |o: usize, direction: usize, i: usize| {
            when(head(o) && real(i), || offsets.context(&s, o, direction) + i)
        };
        let global_feature_at = |o: usize, i: usize| {
            when(head(o) && i < s.real_global_features, || offsets.context(&s, o, s.directions) + i)
        };
        let hidden_at = |o: usize, i: usize| {
            when(head(o) && head(i), || offsets.hidden.0 + o * s.real_head + i)
        };
        let mix_back = match s.matrix {
            true => (0..s.directions)
                .flat_map(|d| fragments(s.head, c, move |k, n| mix_at(k, d, n)))
                .collect(),
            false => rows(s.head, s.directions * c, |k, n| mix_at(k, n / c, n % c)),
        };
        Orders {
            first,
            biases: biases.collect(),
            weights,
            weights_back,
            mix: lay(s.mix_width(), s.head, &|k, n| match k.checked_sub(s.directions * c) {
                None => mix_at(n, k / c, k % c),
                Some(i) => global_feature_at(n, i),
            }),
            mix_back,
            mix_bias: (0..s.head).map(|n| when(head(n), || offsets.mix.1 + n)).collect(),
            hidden: lay(s.head, s.head, &|k, n| hidden_at(n, k)),
            hidden_back: lay(s.head, s.head, &|k, n| hidden_at(k, n)),
            hidden_bias: (0..s.head).map(|n| when(head(n), || offsets.hidden.1 + n)).collect(),
            last: rows(s.outputs, s.head, |o, n| {
                when(head(n), || offsets.out.0 + o * s.real_head + n)
            }),
            last_bias: (0..s.outputs).map(|o| Entry::Plus(offsets.out.1 + o)).collect(),
        }
    }
}

/// Partial sums of one kind: where their sums go, where they start, how many numbers, how many parts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Section {
    sum: usize,
    pub(super) start: usize,
    pub(super) len: usize,
    pub(super) parts: usize,
}

/// How the gradient is collected from partial sums.
pub(super) struct Collection {
    pub(super) weights: Section,
    pub(super) first: Section,
    pub(super) stack: Section,
    pub(super) head: Section,
    pub(super) mix: Section,
    pub(super) hidden: Section,
    pub(super) embeddings: Section,
    /// Where the gradient of each embedding starts in its section.
    pub(super) starts: Vec<u32>,
    /// The sum to add and the sum to subtract for every parameter.
    pub(super) plus: Vec<u32>,
    pub(super) minus: Vec<u32>,
    /// Numbers of all sections together, and without their parts.
    pub(super) total: usize,
    pub(super) sums: usize,
}

/// Parts of the sums over slots.
const PARTS: usize = 128;

impl Collection {
    /// `blocks` blocks fill the GPU.
    pub(super) fn new(sizes: &Sizes, offsets: &Offsets, blocks: usize) -> Self {
        let s = sizes;
        let (c, taps) = (s.channels, s.taps);
        let (mut total, mut sums) = (0, 0);
        let mut take = |len: usize, parts: usize| {
            let section = Section { sum: sums, start: total, len, parts };
            total += len * parts;
            sums += len;
            section
        };
        let by_direction = |blocks: usize| (blocks / s.directions).max(1) * s.directions;
        let residual = s.layers - 1;
        let slices = (residual * s.taps.div_ceil(s.outer_taps())).max(1);
        let mut starts = Vec::new();
        let mut embedded = 0;
        for embedding in &offsets.embeddings {
            starts.push(embedded as u32);
            embedded += embedding.len();
        }
        let weights = take(residual * taps * c * c, by_direction((2 * blocks / slices).max(4)));
        let groups = if s.entering > 0 && s.matrix { s.first_blocks().1 * 2 } else { 1 };
        let first = take(taps * s.first_rows() * c, by_direction(4 * blocks / groups));
        let stack = take(s.layers * s.back_sums(), PARTS);
        let head = take(s.head_sums(), PARTS);
        let mix = take(s.mix_width() * s.head, 2 * blocks);
        let hidden = take(s.head * s.head, 2 * blocks);
        let embeddings = take(embedded, 1);

        let none = u32::MAX;
        let (mut plus, mut minus) = (vec![0u32; offsets.total], vec![none; offsets.total]);
        let mut set = |parameter: usize, section: Section, at: usize| {
            plus[parameter] = (section.sum + at) as u32;
        };
        let inputs = s.real_inputs();
        for (layer, &(weight, bias)) in offsets.layers.iter().enumerate() {
            for o in 0..s.real_channels {
                set(bias + o, stack, layer * s.back_sums() + 2 * c + o);
                let entering = if layer == 0 { inputs } else { s.real_channels };
                for i in 0..entering {
                    for tap in 0..taps {
                        let parameter = weight + (o * entering + i) * taps + tap;
                        if layer == 0 && s.entering > 0 {
                            set(parameter, first, (tap * s.entering + i) * c + o);
                        } else if layer == 0 {
                            let value = if s.q == 2 { 1 } else { i };
                            set(parameter, first, (tap * s.q + value) * c + o);
                        } else {
                            set(parameter, weights, (((layer - 1) * taps + tap) * c + i) * c + o);
                        }
                    }
                }
            }
        }
        for n in 0..s.real_head {
            set(offsets.mix.1 + n, head, 2 * s.head + n);
            set(offsets.hidden.1 + n, head, 3 * s.head + n);
            for direction in 0..s.directions {
                for i in 0..s.real_channels {
                    let parameter = offsets.context(s, n, direction) + i;
                    set(parameter, mix, (direction * c + i) * s.head + n);
                }
            }
            for i in 0..s.real_global_features {
                let parameter = offsets.context(s, n, s.directions) + i;
                set(parameter, mix, (s.directions * c + i) * s.head + n);
            }
            for i in 0..s.real_head {
                set(offsets.hidden.0 + n * s.real_head + i, hidden, i * s.head + n);
            }
            for o in 0..s.outputs {
                set(offsets.out.0 + o * s.real_head + n, head, 4 * s.head + o * s.head + n);
            }
        }
        for o in 0..s.outputs {
            set(offsets.out.1 + o, head, 4 * s.head + s.outputs * s.head + o);
        }
        for (embedding, &start) in offsets.embeddings.iter().zip(&starts) {
            for (i, parameter) in embedding.clone().enumerate() {
                set(parameter, embeddings, start as usize + i);
            }
        }
        if s.q == 2 && s.entering == 0 {
            // A weight of the first layer multiplies the spin.
            let (weight, _) = offsets.layers[0];
            for o in 0..s.real_channels {
                for tap in 0..taps {
                    minus[weight + o * taps + tap] = (first.sum + tap * s.q * c + o) as u32;
                }
            }
        }
        Collection {
            weights,
            first,
            stack,
            head,
            mix,
            hidden,
            embeddings,
            starts,
            plus,
            minus,
            total,
            sums,
        }
    }

    /// The sections, as the kernel reads them.
    pub(super) fn sections(&self) -> Vec<u32> {
        let all = [
            self.weights,
            self.first,
            self.stack,
            self.head,
            self.mix,
            self.hidden,
            self.embeddings,
        ];
        all.iter().flat_map(|s| [s.sum, s.start, s.len, s.parts].map(|n| n as u32)).collect()
    }
}
