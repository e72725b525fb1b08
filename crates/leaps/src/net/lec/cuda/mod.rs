//! The LEC network on a GPU: its memory there and the forward pass.

#![cfg(feature = "cuda")]

mod arguments;
mod backward;

use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaViewMut};

use super::Lec;
use super::stencil::Stencil;
use crate::device::cuda::arguments::{Input, Output, join};
use crate::device::cuda::{Gpu, Precision, launch};
use crate::net::cuda::{
    Base, CudaBatch, CudaNetwork, CudaPasses, SUMS, functions, on_gpu, time_defines,
};
use crate::net::time_features::FEATURES;
use crate::{Error, Result};
use arguments::{LayerForward, LayerWeights, STRUCTURES, Time, Times};
use backward::Back;

const SOURCE: &str = join!(
    STRUCTURES,
    include_str!("units.cu"),
    include_str!("forward.cu"),
    SUMS,
    include_str!("backward.cu"),
    include_str!("backward_times.cu"),
);

/// Threads of a block of `layer_exact`.
const THREADS: usize = 128;

/// Tiles of 8 positions of a warp of `layer_tf32`, and its output channels.
const TILES: usize = 4;
const SOME: usize = 5;

/// Positions and threads of a block there: four warps.
const POSITIONS: usize = 4 * TILES * 8;

/// Positions and threads of a block of `back_inputs`.
const ROWS: usize = 128;

/// Most channels: what shared memory holds.
const MOST_CHANNELS: usize = 96;

/// Numbers that shape the kernels, as `#define`s.
struct Sizes {
    /// Eighths of the channels and a constant.
    columns: usize,
    /// Weights of an element of a kernel, its inner and its outer bias.
    row: usize,
    /// Output channels of a thread of `layer_exact`, and groups of them.
    group: usize,
    groups: usize,
    /// Slots of a thread there.
    per: usize,
    /// Positions that `back_weights` holds at a time, its warps and their output channels.
    span: usize,
    warps: usize,
    items: usize,
    exact: bool,
}

impl Sizes {
    fn new(channels: usize, exact: bool) -> Self {
        let groups = channels.div_ceil(20);
        let columns = (channels + 8) / 8;
        let items = (if exact { 6 } else { 12 } / columns).clamp(1, 4).min(channels);
        let warps = channels.div_ceil(items).min(10);
        let bytes = |span: usize| {
            let rows = span * (8 * columns + 4) * if exact { 2 } else { 1 };
            4 * (rows + warps * items * span + 16 * (span + 8))
        };
        let span = [64, 32, 16].into_iter().find(|&span| bytes(span) <= 48 << 10).unwrap_or(8);
        let per = if channels <= 24 { 2 } else { 1 };
        let (group, row) = (channels.div_ceil(groups), channels.next_multiple_of(4) + 4);
        Sizes { columns, row, group, groups, per, span, warps, items, exact }
    }

    /// Channels that a layer reads, with the constant and zeros behind it.
    fn h_row(&self) -> usize {
        8 * self.columns
    }
}

/// Parameters of a layer as the kernels read them, and where they are among all.
struct CudaLayer {
    taps: usize,
    near: CudaSlice<u8>,
    /// Of `A`; the biases follow.
    weight: usize,
    /// Where its function of time starts among the outputs of all.
    theta: usize,
    exact: CudaSlice<f32>,
    left: [CudaSlice<u32>; 2],
    outer: CudaSlice<f32>,
    right: [CudaSlice<u32>; 2],
}

functions!(
    Functions, "";
    embed,
    pack_first,
    transpose,
    pack_exact,
    pack_left,
    pack_right,
    place,
    time_forward,
    first_forward,
    layer_exact,
    layer_tf32,
    read_out,
    read_back,
    spread,
    back_weights,
    sum_weights,
    back_inputs,
    activate_back,
    theta_back,
    time_back,
    time_sum,
    first_back,
    sum_rows,
    first_weights,
    embed_back,
);

/// See the [module](self).
struct CudaLec {
    lec: Lec,
    sizes: Sizes,
    functions: Functions,
    /// Channels of the values.
    values: CudaSlice<f32>,
    /// The first convolution: its neighbours, its weights, where they are among the parameters.
    first_near: CudaSlice<u8>,
    first: CudaSlice<f32>,
    first_weight: usize,
    layers: Vec<CudaLayer>,
    /// Functions of time, and their turned weights.
    times: CudaSlice<Time>,
    turned: CudaSlice<f32>,
    thetas: usize,
    /// The batch: input, functions of time, both scales, outputs of layers.
    x: CudaSlice<u8>,
    theta: CudaSlice<f32>,
    ends: CudaSlice<f32>,
    u: Vec<CudaSlice<f32>>,
}

/// Blocks of 256 threads for `n` of them.
fn blocks(n: usize) -> (u32, u32, u32) {
    (n.div_ceil(256) as u32, 1, 1)
}

/// Neighbours as `[tap][site]`, in two bytes if sites fit.
fn neighbours(stencil: &Stencil, sites: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for tap in 0..stencil.taps() {
        for site in 0..sites {
            let near = stencil.of(site)[tap];
            match sites < 65535 {
                true => out.extend((near as u16).to_le_bytes()),
                false => out.extend(near.to_le_bytes()),
            }
        }
    }
    out
}

impl Lec {
    /// The network on a GPU, for batches of up to `slots`. Bfloat16 is taken to mean tf32.
    pub(crate) fn on_gpu(
        &self,
        gpu: &Arc<Gpu>,
        slots: usize,
        precision: Precision,
    ) -> Result<Box<dyn CudaNetwork>> {
        if !gpu.has_tensor_cores() || self.channels > MOST_CHANNELS {
            return Err(Error::not_applicable(
                "the network lec on this GPU",
                format!(
                    "it needs tf32 tensor cores, and at most {MOST_CHANNELS} channels; use the device cpu"
                ),
            ));
        }
        // The kernels count in 32 bits.
        let row = self.thetas(self.layers.len()).max(self.places());
        if slots * row >= 1 << 31 {
            let most = format!("fewer than {}", (1usize << 31) / row);
            return Err(Error::invalid("slots", slots, most, "use a smaller batch"));
        }
        let passes = CudaLec::new(self, gpu, slots, precision == Precision::Float32)?;
        on_gpu(gpu, slots, self, passes)
    }

    /// Outputs of the functions of time before layer `l`.
    fn thetas(&self, l: usize) -> usize {
        self.layers[..l].iter().map(|layer| layer.time.outputs).sum()
    }

    fn q(&self) -> usize {
        self.inputs.max(2)
    }

    /// Sites and nothing.
    fn places(&self) -> usize {
        self.sites + 1
    }

    /// What the source wants to know.
    fn defines(&self, sizes: &Sizes) -> Vec<(&'static str, usize)> {
        let depth = self.layers.len();
        let staged = ((44 << 10) / (4 * sizes.group * sizes.row)).clamp(1, 8);
        let (first, last) = (self.layers[0].stencil.taps(), self.layers[depth - 1].stencil.taps());
        [
            ("SITES", self.sites),
            ("PLACES", self.places()),
            ("CHANNELS", self.channels),
            ("COLUMNS", sizes.columns),
            ("H_ROW", sizes.h_row()),
            ("ROW", sizes.row),
            ("Q", self.q()),
            ("SPINS", usize::from(self.inputs == 1)),
            ("OUTPUTS", self.inputs),
            ("IMPORTED", usize::from(self.imported)),
            ("UNITS", self.layers[0].time.units),
            ("THETAS", self.thetas(depth)),
            ("FIRST_SCALE", first),
            ("LAST_SCALE", self.thetas(depth - 1) + last),
            ("GROUP", sizes.group),
            ("GROUPS", sizes.groups),
            ("PER", sizes.per),
            ("STAGED", staged),
            ("EXACT", usize::from(sizes.exact)),
            ("SPAN", sizes.span),
            ("WARPS", sizes.warps),
            ("ITEMS", sizes.items),
            ("THREADS", THREADS),
            ("TILES", TILES),
            ("SOME", SOME),
            ("POSITIONS", POSITIONS),
            ("ROWS", ROWS),
        ]
        .into_iter()
        .chain(time_defines(FEATURES))
        .collect()
    }

    /// Compile the kernels, where there is a compiler.
    #[cfg(test)]
    pub(crate) fn compiles(&self) {
        for exact in [true, false] {
            let defines = self.defines(&Sizes::new(self.channels, exact));
            crate::device::cuda::testing::compiles(SOURCE, &defines);
        }
    }
}

impl CudaLec {
    fn new(lec: &Lec, gpu: &Arc<Gpu>, slots: usize, exact: bool) -> Result<Self> {
        let (c, sites, depth) = (lec.channels, lec.sites, lec.layers.len());
        let sizes = Sizes::new(c, exact);
        let kernels = gpu.compile(SOURCE, &lec.defines(&sizes))?;
        let (q, columns) = (lec.q(), sizes.columns);
        let first_weight = if lec.inputs == 1 { 0 } else { lec.inputs * c };
        let mut at = first_weight + c * lec.planes() * lec.first.taps();
        let (mut layers, mut times, mut turned) = (Vec::new(), Vec::new(), 0);
        for (l, layer) in lec.layers.iter().enumerate() {
            let (taps, time) = (layer.stencil.taps(), &layer.time);
            let fragments = |tile: usize| taps.div_ceil(tile) * c * columns * 32 * 4;
            let two = |n: usize| Ok::<_, Error>([gpu.zeros(n)?, gpu.zeros(n)?]);
            layers.push(CudaLayer {
                taps,
                near: gpu.upload(&neighbours(&layer.stencil, sites))?,
                weight: at,
                theta: lec.thetas(l),
                exact: gpu.zeros(taps * sizes.groups * sizes.group * sizes.row)?,
                left: two(fragments(16))?,
                outer: gpu.zeros(taps.div_ceil(16) * c * 16)?,
                right: two(fragments(8))?,
            });
            at += c * taps * (c + 2);
            times.push(Time {
                parameters: at as u32,
                outputs: time.outputs as u32,
                theta: lec.thetas(l) as u32,
                turned: turned as u32,
            });
            at += time.parameters();
            turned += time.units * (time.units + time.outputs);
        }
        let bytes = if lec.inputs == 1 { 4 } else { 1 };
        let thetas = lec.thetas(depth);
        let per_tap = if lec.inputs == 1 { c } else { c * (q + 1) };
        Ok(CudaLec {
            functions: Functions::new(&kernels, |_| 0)?,
            values: gpu.zeros((q + 1) * c)?,
            first_near: gpu.upload(&neighbours(&lec.first, sites))?,
            first: gpu.zeros(lec.first.taps() * per_tap)?,
            first_weight,
            layers,
            times: gpu.upload(&times)?,
            turned: gpu.zeros(turned)?,
            thetas,
            x: gpu.zeros(slots * lec.places() * bytes)?,
            theta: gpu.zeros(slots * thetas)?,
            ends: gpu.zeros(slots * 2)?,
            u: vec![gpu.zeros(slots * c * sites)?, gpu.zeros(slots * c * sites)?],
            lec: lec.clone(),
            sizes,
        })
    }

    /// Where the weights of the outputs are.
    fn out_weight(&self, base: &Base) -> usize {
        base.parameters.len() - self.lec.inputs * self.lec.channels
    }

    /// Layer `l` of the network: read `u[from]`, write `u[to]`.
    fn layer(
        &mut self,
        gpu: &Gpu,
        l: usize,
        (from, to): (usize, usize),
        slots: usize,
    ) -> Result<()> {
        let (c, sites) = (self.lec.channels, self.lec.sites);
        let (f, layer) = (&self.functions, &self.layers[l]);
        let [u, out] = self.u.get_disjoint_mut([from, to]).map_err(|_| {
            Error::not_applicable("a layer", "it cannot write what it reads") // cannot be
        })?;
        let pass = LayerForward {
            u: Input::of(gpu, &*u),
            ends: Input::of(gpu, &self.ends),
            x: Input::cast(gpu, &self.x),
            theta: Input::of(gpu, &self.theta.slice(layer.theta..)),
            exact: Input::cast(gpu, &layer.exact),
            left: Input::cast(gpu, &layer.left[0]),
            outer: Input::of(gpu, &layer.outer),
            near: Input::cast(gpu, &layer.near),
            values: Input::of(gpu, &self.values),
            out: Output::of(gpu, &*out),
            slots: slots as u32,
            taps: layer.taps as u32,
            is_first: u32::from(l == 0),
        };
        if self.sizes.exact {
            let threads = slots.div_ceil(self.sizes.per) * sites;
            let grid = (threads.div_ceil(THREADS) as u32, self.sizes.groups as u32, 1);
            return launch!(gpu, f.layer_exact, (grid, THREADS, 0), &pass);
        }
        let grid = ((slots * sites).div_ceil(POSITIONS) as u32, c.div_ceil(SOME) as u32, 1);
        launch!(gpu, f.layer_tf32, (grid, POSITIONS, 0), &pass)
    }

    /// What functions of time are made of.
    fn times(&self, base: &Base, batch: &CudaBatch<'_>) -> Times {
        let gpu = &base.gpu;
        Times {
            parameters: Input::of(gpu, &base.parameters),
            turned: Input::of(gpu, &self.turned),
            layers: Input::of(gpu, &self.times),
            time_indices: Input::of(gpu, batch.time_indices),
            table: Input::of(gpu, batch.table),
        }
    }
}

impl CudaPasses for CudaLec {
    type Saved = Back;

    fn refresh(&mut self, base: &Base) -> Result<()> {
        let (gpu, p) = (&base.gpu, &base.parameters);
        let (f, c) = (&self.functions, self.lec.channels);
        if self.lec.inputs > 1 {
            launch!(gpu, f.embed, ((1, 1, 1), 256, 0), p, &mut self.values)?;
        }
        let (weight, taps) = (p.slice(self.first_weight..), self.lec.first.taps() as u32);
        let grid = blocks(self.first.len());
        launch!(gpu, f.pack_first, (grid, 256, 0), &weight, &self.values, &mut self.first, &taps)?;
        let mut turned = 0;
        for (layer, own) in self.layers.iter_mut().zip(&self.lec.layers) {
            let rows = c * layer.taps;
            let given = LayerWeights {
                weight: Input::of(gpu, &p.slice(layer.weight..)),
                inner: Input::of(gpu, &p.slice(layer.weight + rows * c..)),
                outer: Input::of(gpu, &p.slice(layer.weight + rows * (c + 1)..)),
                taps: layer.taps as u32,
            };
            let [left, left_low] = &mut layer.left;
            let [right, right_low] = &mut layer.right;
            if self.sizes.exact {
                let grid = blocks(layer.exact.len());
                launch!(gpu, f.pack_exact, (grid, 256, 0), &given, &mut layer.exact)?;
            }
            let grid = blocks(left.len() / 4);
            let outer = &mut layer.outer;
            launch!(gpu, f.pack_left, (grid, 256, 0), &given, left, left_low, outer)?;
            let grid = blocks(right.len() / 4);
            launch!(gpu, f.pack_right, (grid, 256, 0), &given, right, right_low)?;
            // Weights of the functions of time, so that neighbouring threads read neighbouring numbers.
            let (units, outputs) = (own.time.units, own.time.outputs);
            let start = layer.weight + rows * (c + 2);
            for (from, n) in [(2 * units, units), (units * (units + 3), outputs)] {
                let mut to = self.turned.slice_mut(turned..turned + n * units);
                let weight = p.slice(start + from..);
                let (rows, inputs) = (n as u32, units as u32);
                launch!(
                    gpu,
                    f.transpose,
                    (blocks(n * units), 256, 0),
                    &weight,
                    &mut to,
                    &rows,
                    &inputs
                )?;
                turned += n * units;
            }
        }
        Ok(())
    }

    fn reserve(&mut self, base: &Base) -> Result<Back> {
        while self.u.len() <= self.layers.len() {
            self.u.push(base.gpu.zeros(base.slots * self.lec.channels * self.lec.sites)?);
        }
        self.back_space(base)
    }

    fn forward(
        &mut self,
        base: &Base,
        batch: &CudaBatch<'_>,
        _saved: Option<&mut Back>,
        out: &mut CudaSlice<f32>,
    ) -> Result<()> {
        let (slots, sites, depth) = (batch.slots, self.lec.sites, self.layers.len());
        let (gpu, f, n) = (&base.gpu, &self.functions, slots as u32);
        let grid = blocks(slots * self.lec.places());
        launch!(gpu, f.place, (grid, 256, 0), batch.states, batch.rows, &mut self.x, &n)?;
        let grid = (n, depth as u32, 1);
        let (times, theta) = (self.times(base, batch), &mut self.theta);
        launch!(gpu, f.time_forward, (grid, 128, 0), &times, theta, &mut self.ends)?;
        let taps = self.lec.first.taps() as u32;
        launch!(
            gpu,
            f.first_forward,
            (blocks(slots * sites), 256, 0),
            &self.x,
            &self.first_near,
            &self.first,
            &mut self.u[0],
            &n,
            &taps
        )?;
        // Layers go through `u` around a circle, which is long enough to save them all where a backward pass follows.
        let circle = self.u.len();
        for l in 0..depth {
            self.layer(gpu, l, (l % circle, (l + 1) % circle), slots)?;
        }
        let (weight, f) = (base.parameters.slice(self.out_weight(base)..), &self.functions);
        launch!(
            gpu,
            f.read_out,
            (blocks(slots * sites), 256, 0),
            &self.u[depth % circle],
            &weight,
            &self.ends,
            out,
            &n
        )
    }

    fn backward(
        &mut self,
        base: &Base,
        batch: &CudaBatch<'_>,
        saved: &mut Back,
        d_out: &CudaSlice<f32>,
        gradient: &mut CudaViewMut<'_, f32>,
    ) -> Result<()> {
        self.go_back(base, saved, batch, d_out, gradient)
    }
}
