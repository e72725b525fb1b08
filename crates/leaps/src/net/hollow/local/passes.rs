//! Passes of one walker over the layers.

use super::cone::Cone;
use super::wide::{Product, scalars, scalars_mut};
use super::{Activations, Alone, CHUNK, ROWS, SiteFeatures, Space, Weights};
use crate::device::vector::{Array, Floats, Vector, WIDTH, cast, cast_mut};
use crate::net::dense::TIME_UNITS;
use crate::net::hollow::Hollow;
use crate::net::hollow::activate::activate_rows;
use crate::net::hollow::tiles::{Each, Read, Write, stride};
use crate::net::network::Group;
use crate::net::time_features::FEATURES;

/// Time that a multiplication takes alone, in the same of a common pass: fewer of them follow one another. Measured.
const MORE: f64 = 1.1;

impl Hollow {
    /// Whether walkers that jump so many times on average for every time at which the network is called are faster alone than sixteen at a time.
    pub(in crate::net) fn faster_alone(&self, jumps: f64) -> bool {
        let (whole, jump) = self.costs_alone();
        whole + jumps * jump < 1.0 + jumps
    }

    /// Planes from a site on, and sites to its sides, that a layer sees its value at.
    fn extent(&self, layer: usize) -> (usize, usize) {
        let reach = self.stack.entering.reach();
        (reach + self.geometry.behind * (layer + 1), reach + layer + 1)
    }

    /// Multiplications of a whole pass of a walker alone and of a pass after a jump, as fractions of a walker's share of a common pass.
    fn costs_alone(&self) -> (f64, f64) {
        let (geometry, channels, width) = (&self.geometry, self.stack.channels, self.head.width());
        let (sites, directions) = (geometry.sites, geometry.directions.len());
        let (lattice, mut tiles) = (&geometry.lattice, Vec::new());
        let (mut cone, mut contexts) = (0, 0);
        for layer in 0..self.stack.depth {
            tiles.clear();
            Cone::new(lattice, 0).tiles(lattice, sites / 2, self.extent(layer), &mut tiles);
            cone += if layer == 0 { 0 } else { tiles.len() };
            contexts = sites.min(directions * tiles.len() * self.stack.next.shape.places());
        }
        let residual = self.stack.depth - 1;
        let all = residual * geometry.tiles;
        // Of tiles, of sites whose context is read, and of all sites; alone a vector holds sixteen channels or fewer.
        let products = |tiles: usize, contexts: usize, alone: bool| {
            let round = |n: usize| if alone { n.next_multiple_of(WIDTH) } else { n };
            let stack = tiles * directions * self.stack.next.points() * channels * round(channels);
            let mix = contexts * directions * channels * round(width);
            (stack + mix + sites * width * (width + self.stack.global_features())) as f64
        };
        // The time is embedded for one walker in the space of sixteen.
        let units = residual * self.stack.time.outputs + self.head.time.outputs;
        let embedding = (WIDTH * TIME_UNITS * (units + self.stack.depth * FEATURES)) as f64;
        let share = products(all, sites, false);
        let [whole, jump] = [(all, sites), (cone, contexts)]
            .map(|(tiles, contexts)| products(tiles, contexts, true));
        (MORE * (whole + embedding) / share, MORE * jump / share)
    }

    /// Compute the outputs of a walker, as far as they have changed since the last time.
    #[inline(always)]
    pub(in crate::net) unsafe fn follow<L: Floats>(&self, packed: &[f32], walker: &mut Alone) {
        let Alone {
            weights, cones, site_features, features, all, changed, saved, space, out, ..
        } = walker;
        let (_, of_head) = packed.split_at(self.stack.packed());
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            if *all {
                self.embed::<L>(packed, cast::<L>(features), saved, space);
                // Sites without a plane behind them see nothing.
                saved.context.fill(Array([0.0; WIDTH]));
                (0..self.geometry.sites as u32).for_each(|site| space.turned.note(site));
            }
            let everywhere = all.then_some(None).into_iter();
            for site in everywhere.chain(changed.iter().copied().map(Some)) {
                for (k, cone) in cones.iter().enumerate() {
                    self.direction::<L>((weights, saved, space), (k, cone), site);
                }
            }
            let near = match site_features {
                SiteFeatures::Values(_) => &[][..],
                SiteFeatures::Bonds(bonds) => {
                    bonds.update::<L>(|site| space.turned.note(site));
                    bonds.near()
                }
            };
            self.first::<L>(weights, cast::<L>(near), saved, space);
            let (first, scratch) = (cast::<L>(&saved.first), cast_mut::<L>(&mut saved.head));
            let (o, out) = (cast_mut::<L>(&mut space.o), cast_mut::<L>(out));
            match site_features {
                SiteFeatures::Values(values) => {
                    self.head.finish(of_head, (first, values.features::<L>()), scratch, out);
                }
                SiteFeatures::Bonds(bonds) => {
                    self.head.finish(of_head, (first, bonds.energy::<L>()), scratch, o);
                    bonds.contract::<L>(o, out);
                }
            }
        }
        *all = false;
        changed.clear();
    }

    /// Embed the time.
    #[inline(always)]
    unsafe fn embed<L: Floats>(
        &self,
        packed: &[f32],
        features: &[L::V],
        saved: &mut Activations,
        space: &mut Space,
    ) {
        let (of_stack, of_head) = packed.split_at(self.stack.packed());
        // Every lane has the same time.
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            // Embeddings read the features alone.
            let group = Group { x: &[], t: L::V::zero(), features, couplings: &[] };
            let embedding = cast_mut::<L>(&mut space.embedding);
            self.stack.prepare(of_stack, &group, embedding, cast_mut::<L>(&mut space.time));
            self.head.embed(of_head, features, cast_mut::<L>(&mut saved.head));
        }
        let channels = self.stack.channels;
        let halves = space.time.chunks_exact(channels);
        for (from, to) in halves.zip(saved.time.chunks_exact_mut(channels.div_ceil(WIDTH))) {
            for (c, from) in from.iter().enumerate() {
                to[c / WIDTH].0[c % WIDTH] = from.0[0];
            }
        }
    }

    /// Compute what `site` changes of every layer along direction `k`, or everything, and what sites then see.
    #[inline(always)]
    unsafe fn direction<L: Floats>(
        &self,
        (weights, saved, space): (&Weights, &mut Activations, &mut Space),
        (k, cone): (usize, &Cone),
        site: Option<usize>,
    ) {
        let (stack, geometry) = (&self.stack, &self.geometry);
        let direction = &geometry.directions[k];
        let (sites, directions) = (geometry.sites, geometry.directions.len());
        let wide = stack.channels.div_ceil(WIDTH);
        let plane = (sites + 1) * wide;
        let (points, places) = (stack.next.points(), stack.next.shape.places());
        let (x, h) = (cast::<L>(&saved.x), cast_mut::<L>(&mut saved.h));
        let way = (sites + 1) * stack.entering.inputs().div_ceil(WIDTH);
        let x = &x[k * way % x.len()..][..way];
        let (active, context) =
            (cast_mut::<L>(&mut saved.active), cast_mut::<L>(&mut saved.context));
        let (time, last) = (cast::<L>(&saved.time), cast_mut::<L>(&mut space.last));
        let (read, products) = (cast_mut::<L>(&mut space.read), cast_mut::<L>(&mut space.products));
        for layer in 0..stack.depth {
            space.tiles.clear();
            match site {
                Some(site) => {
                    let extent = self.extent(layer);
                    cone.tiles(&geometry.lattice, site, extent, &mut space.tiles);
                }
                None => space.tiles.extend(0..geometry.tiles as u32),
            }
            let conv = stack.convolution(layer);
            let inputs = conv.matrix.inputs;
            let w = cast::<L>(&weights.layers[layer].vectors);
            let bias = cast::<L>(&weights.biases[layer].vectors);
            let at = |layer: usize| (layer * directions + k) * plane;
            // What the layer reads and adds to, and what it writes: after the last one nobody adds.
            let (done, next) = h.split_at_mut(at(layer).min(h.len()));
            let (input, base) = match layer {
                0 => (x, &[][..]),
                _ => (&active[at(layer - 1)..][..plane], &done[at(layer - 1)..][..plane]),
            };
            let ends = layer + 1 == stack.depth;
            let out = if ends { &mut *last } else { &mut next[..plane] };
            for chunk in space.tiles.chunks(CHUNK) {
                space.inputs.clear();
                space.outputs.clear();
                for &tile in chunk {
                    let tile = tile as usize;
                    space.inputs.extend_from_slice(&direction.inputs[tile * points..][..points]);
                    space.outputs.extend_from_slice(&direction.outputs[tile * places..][..places]);
                }
                let (from, to) = (&space.inputs[..], &space.outputs[..]);
                // SAFETY: the caller has the instructions of the level.
                unsafe {
                    let (shape, channels) = (conv.shape, inputs.div_ceil(WIDTH));
                    L::V::call(Read { shape, inputs: from, channels, input, read });
                    let (rows, outputs) = (chunk.len(), wide);
                    for (p, w) in w.chunks_exact(inputs * wide).enumerate() {
                        let x = &read[p * stride(rows, channels)..][..rows * channels];
                        let y = &mut products[p * stride(rows, wide)..][..rows * wide];
                        L::V::call(Product { w, inputs, outputs, x, rows, y, goes_on: false });
                    }
                    let bias = Each(bias);
                    L::V::call(Write { shape, outputs: to, products, bias, base, out });
                }
            }
            let written = space.tiles.iter().flat_map(|&tile| {
                direction.outputs[tile as usize * places..][..places].iter().copied()
            });
            for site in written.filter(|&site| (site as usize) < sites) {
                let row = site as usize * wide..(site as usize + 1) * wide;
                if !ends {
                    let time = &time[2 * layer * wide..][..2 * wide];
                    let active = &mut active[at(layer)..][row.clone()];
                    // SAFETY: the caller has the instructions of the level.
                    unsafe { activate_rows(wide, time, &next[row], active) };
                    continue;
                }
                let after = direction.after[site as usize];
                if after as usize == sites {
                    continue;
                }
                let to = &mut context[(after as usize * directions + k) * wide..][..wide];
                for (to, h) in to.iter_mut().zip(&last[row]) {
                    // SAFETY: the caller has the instructions of the level.
                    *to = unsafe { h.silu() };
                }
                space.turned.note(after);
            }
        }
    }

    /// Compute the head's first products of sites whose context has changed.
    #[inline(always)]
    unsafe fn first<L: Floats>(
        &self,
        weights: &Weights,
        near: &[L::V],
        saved: &mut Activations,
        space: &mut Space,
    ) {
        let (channels, width) = (self.stack.channels, self.head.width());
        let directions = self.geometry.directions.len();
        let (wide, outputs) = (channels.div_ceil(WIDTH), width.div_ceil(WIDTH));
        let context = cast::<L>(&saved.context);
        let w = cast::<L>(&weights.mix.vectors);
        let bias = cast::<L>(&weights.mix_bias.vectors);
        let rows = cast_mut::<L>(&mut space.rows);
        let firsts = cast_mut::<L>(&mut space.firsts);
        let first = scalars_mut::<L::V>(cast_mut::<L>(&mut saved.first));
        for sites in space.turned.list.chunks(ROWS) {
            let y = &mut firsts[..sites.len() * outputs];
            for y in y.chunks_exact_mut(outputs) {
                y.copy_from_slice(bias);
            }
            let (of_context, of_near) = w.split_at(directions * channels * outputs);
            let parts = of_context.chunks_exact(channels * outputs).enumerate();
            let parts = parts.map(|(k, w)| (w, context, k * wide, wide));
            // What is near, where something is.
            let last = (of_near, near, 0, near.len() / self.geometry.sites);
            for (w, from, start, length) in parts.chain((!near.is_empty()).then_some(last)) {
                let stride = from.len() / self.geometry.sites;
                for (row, &site) in rows.chunks_exact_mut(length).zip(sites) {
                    let at = site as usize * stride + start;
                    row.copy_from_slice(&from[at..at + length]);
                }
                let (inputs, x) = (w.len() / outputs, &rows[..sites.len() * length]);
                let rows = sites.len();
                // SAFETY: the caller has the instructions of the level.
                unsafe { L::V::call(Product { w, inputs, outputs, x, rows, y, goes_on: true }) }
            }
            for (y, &site) in scalars(y).chunks_exact(outputs * WIDTH).zip(sites) {
                let (block, lane) = (site as usize / WIDTH, site as usize % WIDTH);
                let to = first[block * width * WIDTH..][..width * WIDTH].iter_mut();
                for (to, &y) in to.skip(lane).step_by(WIDTH).zip(y) {
                    *to = y;
                }
            }
        }
        space.turned.clear();
    }
}
