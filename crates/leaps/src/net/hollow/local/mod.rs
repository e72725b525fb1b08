//! Passes of one walker that compute only what a jump has changed.
//!
//! A jump changes the value of one site. Layer $l$ of a stack then changes only inside a [cone] ahead of it, the contexts of sites only around it; what changes
//! everywhere are [global features](value_features), and they are the last that the head reads. So the activations of a walker are saved, and of every layer the tiles that
//! the change reaches are computed again; the first product of the head is saved without global features and taken up from there. All sums are those of
//! a full pass in the same order: outputs are the same to the bit.
//!
//! Walkers jump at different sites, so that sixteen of them have nothing to share. One walker has the vectors to itself: [channels lie in
//! lanes](wide) where sites change one by one, sixteen sites in lanes where all of them change.

mod cone;
mod passes;
#[cfg(test)]
mod tests;
mod value_features;
mod wide;

use super::Hollow;
use super::entering::Entering;
use super::geometry::TILE;
use super::tiles::{MOST, stride};
use crate::device::vector::{Array, WIDTH};
use crate::net::glass::bond_features::BondFeatures;
use crate::net::glass::bonds::ENERGY;
use crate::net::time_features::{conditioned_features, features_with};
use cone::Cone;
use value_features::ValueFeatures;
use wide::Wide;

/// Tiles multiplied at a time.
const CHUNK: usize = 16;

/// Sites whose first product is computed at a time.
const ROWS: usize = 16;

/// One walker, with everything its passes leave behind.
#[derive(Clone, Debug)]
pub(crate) struct Alone {
    weights: Weights,
    cones: Vec<Cone>,
    site_features: SiteFeatures,
    condition: Vec<f64>,
    features: Vec<Array<f32>>,
    /// Whether the time has changed, and with it everything; sites that have changed since the last pass.
    all: bool,
    changed: Vec<usize>,
    saved: Activations,
    space: Space,
    /// Outputs, sixteen sites in lanes: `[site / 16][s]`.
    out: Vec<Array<f32>>,
    outputs: usize,
}

/// The features of sites that come from sums over a walker's values or bonds.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // there is one to a walker
enum SiteFeatures {
    Values(ValueFeatures),
    Bonds(BondFeatures),
}

/// Weights with output channels in lanes.
#[derive(Clone, Debug)]
struct Weights {
    /// Of every layer: `[point][input][output]`.
    layers: Vec<Wide>,
    biases: Vec<Wide>,
    /// Of the head's first product, the part that reads the context.
    mix: Wide,
    mix_bias: Wide,
}

/// Saved activations, from which later passes start. Rows are sites, in stacks with one for no site.
#[derive(Clone, Debug)]
struct Activations {
    /// The values, in lanes.
    x: Vec<Array<f32>>,
    /// Channels after every layer but the last, before and after the activation: `[layer][direction][row]`.
    h: Vec<Array<f32>>,
    active: Vec<Array<f32>>,
    /// The context of every site: `[site][direction][channels]`.
    context: Vec<Array<f32>>,
    /// The first product of the head without global features, sixteen sites in lanes: `[site / 16][channel]`.
    first: Vec<Array<f32>>,
    /// Scales and shifts of every residual layer.
    time: Vec<Array<f32>>,
    /// The embedded time of the head.
    head: Vec<Array<f32>>,
}

/// Space for intermediate numbers.
#[derive(Clone, Debug)]
struct Space {
    /// Channels after the last layer.
    last: Vec<Array<f32>>,
    read: Vec<Array<f32>>,
    products: Vec<Array<f32>>,
    embedding: Vec<Array<f32>>,
    time: Vec<Array<f32>>,
    /// Contexts and first products of a few sites.
    rows: Vec<Array<f32>>,
    firsts: Vec<Array<f32>>,
    /// What the head says of every site, sixteen of them in lanes.
    o: Vec<Array<f32>>,
    /// Tiles at hand, and the rows that some of them read and write.
    tiles: Vec<u32>,
    inputs: Vec<u32>,
    outputs: Vec<u32>,
    /// Sites of which the head reads other numbers than before.
    turned: Sites,
}

/// Some sites, each once.
#[derive(Clone, Debug)]
struct Sites {
    noted: Vec<bool>,
    list: Vec<u32>,
}

fn zeros(n: usize) -> Vec<Array<f32>> {
    vec![Array([0.0; WIDTH]); n]
}

impl Alone {
    /// Space for a walker; `packed` are the network's parameters.
    pub(in crate::net) fn new(hollow: &Hollow, conditions: usize, packed: &[f32]) -> Self {
        let (geometry, stack, head) = (&hollow.geometry, &hollow.stack, &hollow.head);
        let (sites, directions) = (geometry.sites, geometry.directions.len());
        let blocks = sites.div_ceil(WIDTH);
        // Bonds enter along every direction in its own way.
        let (site_features, ways, near, outputs) = match &stack.entering {
            Entering::Values { inputs, global_features } => {
                let values = ValueFeatures::new(global_features.as_ref(), *inputs, sites);
                (SiteFeatures::Values(values), 1, 0, head.out.outputs)
            }
            Entering::Bonds(bonds) => {
                (SiteFeatures::Bonds(BondFeatures::new(bonds)), directions, bonds.near(), 1)
            }
        };
        let entering = (sites + 1) * stack.entering.inputs().div_ceil(WIDTH);
        let (of_stack, of_head) = packed.split_at(stack.packed());
        let weights = Weights::new(hollow, of_stack, of_head);
        let (wide, width) = (stack.channels.div_ceil(WIDTH), head.width());
        let (plane, residual) = ((sites + 1) * wide, stack.depth - 1);
        let widest = wide.max(stack.entering.inputs().div_ceil(WIDTH));
        let chunk = stack.next.points() * stride(CHUNK, widest);
        Alone {
            weights,
            cones: (0..directions).map(|k| Cone::new(&geometry.lattice, k)).collect(),
            site_features,
            condition: vec![0.0; conditions],
            features: zeros(features_with(conditions)),
            all: true,
            changed: Vec::new(),
            saved: Activations {
                x: zeros(ways * entering),
                h: zeros(residual * directions * plane),
                active: zeros(residual * directions * plane),
                context: zeros(sites * directions * wide),
                first: zeros(blocks * width),
                time: zeros(residual * 2 * wide),
                head: zeros(head.forward_scratch()),
            },
            space: Space {
                last: zeros(plane),
                read: zeros(chunk),
                products: zeros(chunk),
                embedding: zeros(residual * stack.time.scratch()),
                time: zeros(residual * stack.time.outputs),
                rows: zeros(ROWS * wide.max(near.div_ceil(WIDTH))),
                firsts: zeros(ROWS * width.div_ceil(WIDTH)),
                o: zeros(blocks * head.out.outputs),
                tiles: Vec::new(),
                inputs: Vec::with_capacity(CHUNK * MOST),
                outputs: Vec::with_capacity(CHUNK * TILE.pow(3)),
                turned: Sites { noted: vec![false; sites], list: Vec::with_capacity(sites) },
            },
            out: zeros(blocks * outputs),
            outputs,
        }
    }

    /// Condition the network on a target, from the next time on that is [set](Self::set).
    pub(in crate::net) fn set_condition(&mut self, condition: &[f64]) {
        self.condition.copy_from_slice(condition);
    }

    /// Show the network the couplings of an instance, from the next time on that is [set](Self::set).
    pub(in crate::net) fn set_couplings(&mut self, couplings: &[f32]) {
        if let SiteFeatures::Bonds(bonds) = &mut self.site_features {
            bonds.set_couplings(couplings);
        }
    }

    /// Put in a state and a time.
    pub(in crate::net) fn set(&mut self, x: &[u8], t: f64) {
        for (row, value) in self.features.iter_mut().zip(conditioned_features(t, &self.condition)) {
            *row = Array([value as f32; WIDTH]);
        }
        match &mut self.site_features {
            SiteFeatures::Values(values) => values.set(x, &mut self.saved.x),
            SiteFeatures::Bonds(bonds) => bonds.set(x, &mut self.saved.x),
        }
        self.all = true;
        self.changed.clear();
    }

    /// Change one value.
    pub(in crate::net) fn set_value(&mut self, site: usize, value: u8) {
        match &mut self.site_features {
            SiteFeatures::Values(values) => values.change(site, value, &mut self.saved.x),
            SiteFeatures::Bonds(bonds) => bonds.change(site, value, &mut self.saved.x),
        }
        self.changed.push(site);
    }

    /// Output `index = site * outputs + s` after a pass.
    pub(in crate::net) fn output(&self, index: usize) -> f32 {
        let (site, s) = (index / self.outputs, index % self.outputs);
        self.out[site / WIDTH * self.outputs + s].0[site % WIDTH]
    }
}

impl Sites {
    fn note(&mut self, site: u32) {
        if !std::mem::replace(&mut self.noted[site as usize], true) {
            self.list.push(site);
        }
    }

    fn clear(&mut self) {
        for site in self.list.drain(..) {
            self.noted[site as usize] = false;
        }
    }
}

impl Weights {
    fn new(hollow: &Hollow, of_stack: &[f32], of_head: &[f32]) -> Self {
        let stack = &hollow.stack;
        let (mut layers, mut biases) = (Vec::new(), Vec::new());
        for layer in 0..stack.depth {
            let conv = stack.convolution(layer);
            let (weights, rest) = of_stack[stack.layer_range(layer)].split_at(conv.packed());
            layers.push(Wide::new(weights, stack.channels));
            biases.push(Wide::new(&rest[..stack.channels], stack.channels));
        }
        let (mix, bias) = hollow.head.first_product(of_head);
        // Global features are left for last.
        let global = match &stack.entering {
            Entering::Values { .. } => stack.global_features(),
            Entering::Bonds(_) => ENERGY,
        };
        let width = hollow.head.width();
        let read = mix.len() / width - global;
        Weights {
            layers,
            biases,
            mix: Wide::new(&mix[..read * width], width),
            mix_bias: Wide::new(bias, width),
        }
    }
}
