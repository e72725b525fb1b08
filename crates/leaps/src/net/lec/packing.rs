//! The order of the parameters in which the passes read them.
//!
//! Taps come in blocks of 8, and constants are folded in. With `z = -log2(e) a` the kernel is
//! `silu(a) + c + theta = -ln 2 (z / (1 + 2^z) - c / ln 2 - theta / ln 2)`: `A` and `b` are stored times
//! `-log2(e)`, `c` and the last layer of `theta` times `-1/ln 2`, which is the same number.

use std::f64::consts::LOG2_E;

use super::stencil::BLOCK;
use super::{Layer, Lec};
use crate::net::layout::{layout, take};

layout! {
    /// Where the packed parameters of a layer lie.
    pub(super) struct Parts(layer: &Layer, channels: usize) {
        a: layer.rows(channels) * channels,
        inner: layer.rows(channels),
        outer: layer.rows(channels),
        time: layer.time.parameters(),
    }
}

/// The packed parameters of a layer.
pub(super) struct Packed<'a, S> {
    /// `[channel * blocks + block][b][tap of the block]`.
    pub(super) a: &'a [[S; BLOCK]],
    /// `[channel * blocks + block]`.
    pub(super) inner: &'a [[S; BLOCK]],
    pub(super) outer: &'a [[S; BLOCK]],
    pub(super) time: &'a [S],
}

impl Layer {
    /// Kernel elements, filled up to whole blocks of taps.
    fn rows(&self, channels: usize) -> usize {
        channels * self.stencil.blocks() * BLOCK
    }

    /// Packed parameters.
    pub(super) fn size(&self, channels: usize) -> usize {
        Parts::len(self, channels)
    }

    /// Cut its packed parameters off a slice.
    #[inline(always)]
    pub(super) fn packed<'a, S>(&self, channels: usize, p: &mut &'a [S]) -> Packed<'a, S> {
        let parts = Parts::cut(self, channels, take(p, self.size(channels)));
        Packed {
            a: parts.a.as_chunks().0,
            inner: parts.inner.as_chunks().0,
            outer: parts.outer.as_chunks().0,
            time: parts.time,
        }
    }
}

impl Lec {
    /// Size of the packed first convolution: `[block of channels][plane][tap][channel of the block]`.
    pub(super) fn first_size(&self) -> usize {
        self.channels.next_multiple_of(BLOCK) * self.planes() * self.first.taps()
    }

    pub(super) fn packed_size(&self) -> usize {
        let c = self.channels;
        let embedding = if self.inputs == 1 { 0 } else { self.inputs * c };
        let layers: usize = self.layers.iter().map(|layer| layer.size(c)).sum();
        embedding + self.first_size() + layers + self.inputs * c
    }

    /// Call `f(parameter, packed, factor)` for every parameter.
    pub(super) fn walk(&self, mut f: impl FnMut(usize, usize, f64)) {
        let (c, planes) = (self.channels, self.planes());
        let (mut from, mut to) = (0, 0);
        let mut copy = |n: usize, factor: f64, from: &mut usize, to: &mut usize| {
            for i in 0..n {
                f(*from + i, *to + i, factor);
            }
            *from += n;
            *to += n;
        };
        if self.inputs > 1 {
            copy(self.inputs * c, 1.0, &mut from, &mut to);
        }
        let taps = self.first.taps();
        for channel in 0..c {
            for plane in 0..planes {
                for tap in 0..taps {
                    let block = (channel / BLOCK * planes + plane) * taps + tap;
                    copy(1, 1.0, &mut from, &mut (to + block * BLOCK + channel % BLOCK));
                }
            }
        }
        to += self.first_size();
        for layer in &self.layers {
            let (taps, blocks) = (layer.stencil.taps(), layer.stencil.blocks());
            for channel in 0..c {
                for tap in 0..taps {
                    for b in 0..c {
                        let block = (channel * blocks + tap / BLOCK) * c + b;
                        copy(1, -LOG2_E, &mut from, &mut (to + block * BLOCK + tap % BLOCK));
                    }
                }
            }
            to += c * blocks * BLOCK * c;
            for _ in 0..2 {
                for channel in 0..c {
                    copy(taps, -LOG2_E, &mut from, &mut (to + channel * blocks * BLOCK));
                }
                to += c * blocks * BLOCK;
            }
            copy(layer.time.hidden_parameters(), 1.0, &mut from, &mut to);
            // What is left after the taps is a scale, which no kernel reads.
            let scales = layer.time.outputs - taps;
            copy(taps * layer.time.units, -LOG2_E, &mut from, &mut to);
            copy(scales * layer.time.units, 1.0, &mut from, &mut to);
            copy(taps, -LOG2_E, &mut from, &mut to);
            copy(scales, 1.0, &mut from, &mut to);
        }
        copy(self.inputs * c, 1.0, &mut from, &mut to);
    }
}
