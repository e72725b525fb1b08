//! CPU forward passes of the hollow convolution that no backward pass follows, two planes at a time.
//!
//! A plane depends only on itself and on planes behind it. A layer can therefore follow the one before it strip by strip,
//! where a *strip* is a row of tiles, two planes thick, and of every layer only the last strips are needed, not the lattice: they stay in the cache
//! however large it is.
//!
//! On a torus the first strip looks back at the last. So layer $l$ starts at strip $l$, goes once round, and ends at strip
//! $l - 1$, which the layer before it computed first of all and kept for this. Nothing is computed twice, and every number
//! is that of [`Stack::forward`], to the bit.

use super::activate::{activate_rows, look_forward};
use super::conv::CHUNK;
use super::geometry::{ACROSS, Geometry, TILE, odometer};
use super::stack::Stack;
use super::tiles::MOST;
use crate::device::vector::Vector;
use crate::net::layout::layout;
use crate::net::network::Group;
use crate::target::Boundary;

/// No site, in tables of this file.
const NONE: u32 = u32::MAX;

/// Strips of a layer that are at hand: the one it started with, and the last three (two, but where an odd side closes
/// on itself the two planes behind a strip belong to two others).
const SLOTS: usize = 4;

/// The planes of a direction in its own frame, two at a time.
#[derive(Clone, Debug)]
pub(super) struct Strips {
    /// Strips in all, and tiles of each.
    count: usize,
    tiles: usize,
    /// Planes in all, and sites of a plane.
    side: usize,
    plane: usize,
    wraps: bool,
    /// Places in a plane that a strip's tiles read, and write: `[tile][point across]`, `[tile][place across]`.
    inputs: Vec<u32>,
    outputs: Vec<u32>,
    /// The site one plane after each, in the order of the frame; the number of sites where there is none.
    after: Vec<u32>,
    /// Sites without a plane behind them.
    edge: Vec<u32>,
}

impl Strips {
    /// For a frame with these sides and sites, and the sites before and after each.
    pub(super) fn new(
        sides: &[usize],
        boundary: Boundary,
        sites: &[u32],
        before: &[u32],
        after: &[u32],
    ) -> Self {
        let (across, none) = (&sides[1..], sites.len() as u32);
        let wraps = boundary == Boundary::Periodic;
        // The place of a tile's point, counted from the tile's corner.
        let place = |tile: &[usize], point: &[usize], back: usize, wraps: bool| {
            let mut place = 0;
            for (j, &side) in across.iter().enumerate() {
                let at = (TILE * tile[j] + point[j]) as isize - back as isize;
                if !(0..side as isize).contains(&at) && !wraps {
                    return NONE;
                }
                place = place * side + at.rem_euclid(side as isize) as usize;
            }
            place as u32
        };
        let counts: Vec<usize> = across.iter().map(|side| side.div_ceil(TILE)).collect();
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for tile in odometer(&counts) {
            let points = odometer(&vec![ACROSS; across.len()]);
            inputs.extend(points.iter().map(|point| place(&tile, point, 1, wraps)));
            let places = odometer(&vec![TILE; across.len()]);
            outputs.extend(places.iter().map(|point| place(&tile, point, 0, false)));
        }
        Strips {
            count: sides[0].div_ceil(TILE),
            tiles: counts.iter().product(),
            side: sides[0],
            plane: across.iter().product(),
            wraps,
            inputs,
            outputs,
            after: sites.iter().map(|&site| after[site as usize]).collect(),
            edge: sites.iter().copied().filter(|&site| before[site as usize] == none).collect(),
        }
    }

    /// Rows of a strip.
    fn rows(&self) -> usize {
        TILE * self.plane
    }

    /// Where a layer keeps the strip that it computes `step` steps after its first.
    fn slot(&self, step: usize) -> usize {
        match step % self.count {
            0 => 0,
            step => 1 + step % (SLOTS - 1),
        }
    }

    /// Rows in the slots of the layer before `layer` where the planes begin that `strip` reads, from `behind` planes
    /// before it to its last.
    fn planes(&self, strip: usize, layer: usize, behind: usize) -> [u32; 4] {
        let mut planes = [NONE; 4];
        for (number, out) in planes[..behind + TILE].iter_mut().enumerate() {
            let mut plane = (TILE * strip + number) as isize - behind as isize;
            if plane < 0 && self.wraps {
                plane += self.side as isize;
            }
            // A plane past the last is read only for outputs that nobody keeps.
            if (0..self.side as isize).contains(&plane) {
                let plane = plane as usize;
                let start = (layer - 1) % self.count;
                let step = (plane / TILE + self.count - start) % self.count;
                *out = (self.slot(step) * self.rows() + plane % TILE * self.plane) as u32;
            }
        }
        planes
    }
}

/// Tables of the tiles multiplied at a time.
struct Tables {
    inputs: [u32; CHUNK * MOST],
    outputs: [u32; CHUNK * MOST],
}

impl Tables {
    /// The rows that tiles read from the slots of a layer, and write to a strip.
    #[inline(always)]
    fn fill(
        &mut self,
        strips: &Strips,
        planes: &[u32],
        tiles: std::ops::Range<usize>,
    ) -> (&[u32], &[u32]) {
        let rows = strips.rows();
        let (across, places) =
            (strips.inputs.len() / strips.tiles, strips.outputs.len() / strips.tiles);
        let (nothing, mut at) = ((SLOTS * rows) as u32, 0);
        for tile in strips.inputs[tiles.start * across..tiles.end * across].chunks_exact(across) {
            for &plane in planes {
                for &place in tile {
                    let none = plane == NONE || place == NONE;
                    self.inputs[at] = if none { nothing } else { plane + place };
                    at += 1;
                }
            }
        }
        let mut to = 0;
        for tile in strips.outputs[tiles.start * places..tiles.end * places].chunks_exact(places) {
            for plane in 0..TILE {
                for &place in tile {
                    let row = plane * strips.plane + place as usize;
                    self.outputs[to] = if place == NONE { rows as u32 } else { row as u32 };
                    to += 1;
                }
            }
        }
        (&self.inputs[..at], &self.outputs[..to])
    }
}

layout! {
    /// Scratch space.
    struct Planes(stack: &Stack, geometry: &Geometry) {
        /// The values, with a row of zeros for no site.
        x: (geometry.sites + 1) * stack.first.matrix.inputs,
        /// The context of every site, after the activation: `[site][direction][channel]`.
        context: geometry.sites * stack.context_width(geometry),
        /// Channels of a strip after a layer and after the next, with a row for no site.
        h: stack.strip_len(geometry).0,
        other: stack.strip_len(geometry).0,
        /// Channels of the strip that every layer but the last began with: `[layer][row or none][channel]`.
        began: (stack.depth - 1) * stack.strip_len(geometry).0,
        /// Channels after the activation, of every layer but the last: `[layer][slot and row, or none][channel]`.
        active: (stack.depth - 1) * stack.strip_len(geometry).1,
        /// Scales, then shifts, of every residual layer; what the embeddings need.
        time: (stack.depth - 1) * stack.time.outputs,
        embeddings: (stack.depth - 1) * stack.time.scratch(),
        /// Transformed inputs and products.
        read: stack.first.chunk_len().max(stack.next.chunk_len()),
        products: stack.first.chunk_len().max(stack.next.chunk_len()),
    }
}

impl Stack {
    /// Whether [`forward`](Self::forward) computes this stack: whether no layer that looks two planes back starts at a strip
    /// that it would see from behind. Of hollow stacks none does.
    pub(super) fn can_forward(&self, geometry: &Geometry) -> bool {
        let reaches = |strips: &Strips| strips.wraps && self.depth > strips.count;
        geometry.behind < TILE || !geometry.directions.iter().any(|d| reaches(&d.strips))
    }

    /// Vectors of a strip, and of the slots of a layer, of the thickest direction.
    fn strip_len(&self, geometry: &Geometry) -> (usize, usize) {
        let rows = geometry.directions.iter().map(|d| d.strips.rows()).max().unwrap_or(0);
        ((rows + 1) * self.channels, (SLOTS * rows + 1) * self.channels)
    }

    pub(super) fn forward_scratch(&self, geometry: &Geometry) -> usize {
        Planes::len(self, geometry)
    }

    /// The context of every site, as [`forward_train`](Self::forward_train) computes it.
    #[inline(always)]
    pub(super) unsafe fn forward<'a, V: Vector>(
        &self,
        packed: &[V::Scalar],
        geometry: &Geometry,
        group: &Group<'_, V>,
        scratch: &'a mut [V],
    ) -> &'a [V] {
        let mut s = Planes::cut_mut(self, geometry, scratch);
        let width = self.context_width(geometry);
        let mut tables = Tables { inputs: [0; CHUNK * MOST], outputs: [0; CHUNK * MOST] };
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            self.prepare(packed, group, s.embeddings, s.time);
            for k in 0..geometry.directions.len() {
                self.entering.enter(k, group, s.x);
                let strips = &geometry.directions[k].strips;
                for &site in &strips.edge {
                    let row = &mut s.context[site as usize * width + k * self.channels..];
                    row[..self.channels].fill(V::zero());
                }
                for step in 0..strips.count + self.depth - 1 {
                    let first = (step + 1).saturating_sub(strips.count);
                    for layer in first..self.depth.min(step + 1) {
                        self.strip(packed, geometry, (k, layer, step - layer), &mut s, &mut tables);
                    }
                }
            }
            self.entering.write(group, s.x, s.context);
        }
        s.context
    }

    /// Compute a layer's strip, `step` steps after its first, along direction `k`.
    #[inline(always)]
    unsafe fn strip<V: Vector>(
        &self,
        packed: &[V::Scalar],
        geometry: &Geometry,
        (k, layer, step): (usize, usize, usize),
        s: &mut Planes<&mut [V]>,
        tables: &mut Tables,
    ) {
        let direction = &geometry.directions[k];
        let (strips, channels) = (&direction.strips, self.channels);
        let strip = (layer + step) % strips.count;
        let rows = strips.rows();
        let (strip_len, slots) = ((rows + 1) * channels, (SLOTS * rows + 1) * channels);
        let conv = self.convolution(layer);
        let (weights, rest) = packed[self.layer_range(layer)].split_at(conv.packed());
        let bias = &rest[..channels];
        let planes = match layer {
            0 => [NONE; 4],
            _ => strips.planes(strip, layer, geometry.behind),
        };
        let tiles_across = strips.tiles;
        let mut tile = 0;
        while tile < tiles_across {
            let end = tiles_across.min(tile + CHUNK);
            let (from, to) = tables.fill(strips, &planes[..geometry.behind + TILE], tile..end);
            let out = &mut s.other[..strip_len];
            let buffers = (&mut *s.read, &mut *s.products);
            let (parameters, points) = ((weights, bias), conv.points());
            // SAFETY: the caller has the instructions of the vector.
            unsafe {
                if layer == 0 {
                    let first = strip * tiles_across;
                    let from = &direction.inputs[(first + tile) * points..(first + end) * points];
                    conv.tiles(parameters, (from, to), s.x, &[], out, buffers);
                } else {
                    let last = step + 1 == strips.count;
                    let base = if last { &s.began[(layer - 1) * strip_len..] } else { &*s.h };
                    let input = &s.active[(layer - 1) * slots..][..slots];
                    let base = &base[..strip_len];
                    conv.tiles(parameters, (from, to), input, base, out, buffers);
                }
            }
            tile = end;
        }
        std::mem::swap(&mut s.h, &mut s.other);
        // The last strip of an odd side has one plane.
        let there = rows.min((strips.side - TILE * strip) * strips.plane);
        let h = &s.h[..there * channels];
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            if layer + 1 == self.depth {
                let after = &strips.after[strip * rows..][..there];
                let width = self.context_width(geometry);
                return look_forward(channels, k, width, after, h, s.context);
            }
            if step == 0 {
                s.began[layer * strip_len..][..h.len()].copy_from_slice(h);
            }
            let time = &s.time[layer * self.time.outputs..][..self.time.outputs];
            let active = &mut s.active[layer * slots..][..slots];
            active[slots - channels..].fill(V::zero());
            let at = strips.slot(step) * rows * channels;
            activate_rows(channels, time, h, &mut active[at..][..h.len()]);
        }
    }
}
