//! The hollow network of a graph on a GPU, in float32.

#![cfg(feature = "cuda")]

use cudarc::driver::{CudaFunction, CudaSlice, CudaViewMut};

use super::HollowGraph;
use crate::Result;
use crate::device::cuda::arguments::{Input, Output, arguments, join};
use crate::device::cuda::{Gpu, Kernels, launch};
use crate::net::cuda::{
    BLOCKS, Base, Compiled, CudaBatch, CudaPasses, CudaTime, DENSE, SumRows, time_defines,
};
use crate::net::layout::layout;

arguments! {
    /// A batch and what a pass reads beside it.
    struct Batch {
        parameters: Input<f32>,
        /// See `Orders` in the source.
        tables: Input<u32>,
        /// `[slot * 2 * CHANNELS]`: of the messages.
        times: Input<f32>,
        /// `[slot * 2 * HEAD]`: of the head.
        head_times: Input<f32>,
        /// `[row * SITES + site]`.
        states: Input<u8>,
        /// `[slot]`: the row of its state.
        rows: Input<u32>,
    }
}

arguments! {
    /// What the backward pass writes.
    struct Gradients {
        /// Space of every block.
        spaces: Output<f32>,
        /// As `times` of the batch.
        d_times: Output<f32>,
        d_head_times: Output<f32>,
        /// What every block adds to the gradient.
        parts: Output<f32>,
    }
}

const SOURCE: &str = join!(Batch::SOURCE, Gradients::SOURCE, DENSE, include_str!("graph.cu"),);

layout! {
    /// Parameters in their natural order.
    struct Parameters(graph: &HollowGraph) {
        value: graph.inputs * graph.channels,
        bias: graph.sites * graph.channels,
        bond: graph.bonds * graph.channels,
        pass_on: graph.pass_on.len(),
        time: graph.time.parameters(),
        mix: graph.head.width() * graph.width(),
        mix_bias: graph.head.width(),
        hidden: graph.head.width() * graph.head.width(),
        hidden_bias: graph.head.width(),
        out: graph.head.out.inputs * graph.head.out.outputs,
        out_bias: graph.head.out.outputs,
        head_time: graph.head.time.parameters(),
    }
}

layout! {
    /// What the forward pass saves of a slot.
    struct Activations(graph: &HollowGraph) {
        /// `[step][ALL]`: what is collected, a site's own, passed on.
        collected: graph.sites * graph.width(),
        own: graph.sites * graph.width(),
        passed: graph.sites * graph.width(),
        /// `[site][ALL]`.
        context: graph.sites * graph.width(),
        /// `[site][HEAD]`.
        u: graph.sites * graph.head.width(),
        v: graph.sites * graph.head.width(),
        w: graph.sites * graph.head.width(),
    }
}

layout! {
    /// Space of a block of the backward pass.
    struct Space(graph: &HollowGraph) {
        /// `[step][ALL]`: gradients of what is passed on, collected, active; and z.
        passed: graph.sites * graph.width(),
        collected: graph.sites * graph.width(),
        active: graph.sites * graph.width(),
        z: graph.sites * graph.width(),
        /// `[site][ALL]`: a gradient.
        context: graph.sites * graph.width(),
        /// `[site][HEAD]`: r and gradients.
        r: graph.sites * graph.head.width(),
        w: graph.sites * graph.head.width(),
        dz: graph.sites * graph.head.width(),
        u: graph.sites * graph.head.width(),
    }
}

/// What the source calls where the parts of these layouts start, and where they end.
#[rustfmt::skip]
const PARAMETERS: [&str; 13] = [
    "P_VALUE", "P_BIAS", "P_BOND", "P_PASS", "P_TIME", "P_MIX", "P_MIX_BIAS", "P_HIDDEN", "P_HIDDEN_BIAS", "P_OUT",
    "P_OUT_BIAS", "P_ALL", "P_END",
];
const ACTIVATIONS: [&str; 8] =
    ["K_COLLECTED", "K_OWN", "K_PASSED", "K_CONTEXT", "K_U", "K_V", "K_W", "SAVED"];
#[rustfmt::skip]
const SPACE: [&str; 10] =
    ["S_PASSED", "S_COLLECTED", "S_ACTIVE", "S_Z", "S_CONTEXT", "S_R", "S_W", "S_DZ", "S_U", "SPACE"];

/// Threads of a block.
const THREADS: usize = 128;

/// See the [module](self).
struct CudaGraph {
    forward: CudaFunction,
    backward: CudaFunction,
    rows: SumRows,
    /// Functions of time of the messages and of the head; the latter's parameters come last.
    time: CudaTime,
    head_time: CudaTime,
    head_start: usize,
    tables: CudaSlice<u32>,
    saved: CudaSlice<f32>,
    /// Numbers that a block of the backward pass needs.
    space: usize,
}

/// Space for the backward pass: of every block, and what it adds to the gradient.
struct Saved {
    spaces: CudaSlice<f32>,
    parts: CudaSlice<f32>,
}

impl HollowGraph {
    /// The orders as the source reads them, see `Orders` there.
    fn tables(&self) -> Vec<u32> {
        let (n, count) = (self.sites, self.orders.len() * self.sites);
        let (mut sites, mut steps) = (Vec::new(), vec![0; count]);
        let (mut starts, mut from, mut bond) = (vec![0], Vec::new(), Vec::new());
        let mut leaving = vec![Vec::new(); count];
        let (mut bond_to, mut bond_from) = (vec![0; self.bonds], vec![0; self.bonds]);
        for (k, order) in self.orders.iter().enumerate() {
            for (step, &site) in order.sites.iter().enumerate() {
                sites.push(site);
                steps[k * n + site as usize] = step as u32;
                for message in order.messages(step) {
                    from.push(message.from);
                    bond.push(message.bond);
                    leaving[k * n + message.from as usize].push((step as u32, message.bond));
                    bond_to[message.bond as usize] = site;
                    bond_from[message.bond as usize] = order.sites[message.from as usize];
                }
                starts.push(from.len() as u32);
            }
        }
        let mut leave = vec![0];
        for list in &leaving {
            leave.push(leave[leave.len() - 1] + list.len() as u32);
        }
        let (to, leave_bond): (Vec<u32>, Vec<u32>) = leaving.into_iter().flatten().unzip();
        [sites, steps, starts, leave, bond_to, bond_from, from, bond, to, leave_bond].concat()
    }
}

impl Compiled for HollowGraph {
    const SOURCE: &'static str = SOURCE;

    fn defines(&self) -> Vec<(&'static str, usize)> {
        [
            ("SITES", self.sites),
            ("INPUTS", self.inputs),
            ("CHANNELS", self.channels),
            ("ORDERS", self.orders.len()),
            ("ALL", self.width()),
            ("BONDS", self.bonds),
            ("HEAD", self.head.width()),
            ("OUTPUTS", self.head.out.outputs),
        ]
        .into_iter()
        .chain(Parameters::starts(self, PARAMETERS))
        .chain(Activations::starts(self, ACTIVATIONS))
        .chain(Space::starts(self, SPACE))
        .chain(time_defines(self.time.features))
        .collect()
    }

    fn passes(
        &self,
        gpu: &Gpu,
        kernels: &Kernels,
        slots: usize,
    ) -> Result<impl CudaPasses + 'static> {
        let lengths = Parameters::lengths(self);
        let messages = lengths.value + lengths.bias + lengths.bond + lengths.pass_on;
        let head_start = Parameters::len(self) - lengths.head_time;
        Ok(CudaGraph {
            forward: kernels.get("graph_forward", 0)?,
            backward: kernels.get("graph_backward", 0)?,
            rows: SumRows::new(kernels)?,
            time: CudaTime::new(gpu, kernels, self.time, slots, messages)?,
            head_time: CudaTime::new(gpu, kernels, self.head.time, slots, head_start)?,
            head_start,
            tables: gpu.upload(&self.tables())?,
            saved: gpu.zeros(slots * Activations::len(self))?,
            space: Space::len(self),
        })
    }
}

impl CudaGraph {
    /// What kernels read of a batch, whose functions of time are computed.
    fn batch(&self, base: &Base, batch: &CudaBatch<'_>) -> Batch {
        let gpu = &base.gpu;
        Batch {
            parameters: Input::of(gpu, &base.parameters),
            tables: Input::of(gpu, &self.tables),
            times: Input::of(gpu, &self.time.times),
            head_times: Input::of(gpu, &self.head_time.times),
            states: Input::of(gpu, batch.states),
            rows: Input::of(gpu, batch.rows),
        }
    }
}

impl CudaPasses for CudaGraph {
    type Saved = Saved;

    fn reserve(&mut self, base: &Base) -> Result<Saved> {
        let most = base.slots.min(BLOCKS);
        Ok(Saved {
            spaces: base.gpu.zeros(most * self.space)?,
            parts: base.gpu.zeros(most * self.head_start)?,
        })
    }

    fn forward(
        &mut self,
        base: &Base,
        batch: &CudaBatch<'_>,
        _saved: Option<&mut Saved>,
        out: &mut CudaSlice<f32>,
    ) -> Result<()> {
        let (gpu, grid) = (&base.gpu, (batch.slots as u32, 1, 1));
        self.time.forward(base, batch)?;
        self.head_time.forward(base, batch)?;
        let given = self.batch(base, batch);
        launch!(gpu, self.forward, (grid, THREADS, 0), &given, &mut self.saved, out)
    }

    fn backward(
        &mut self,
        base: &Base,
        batch: &CudaBatch<'_>,
        saved: &mut Saved,
        d_out: &CudaSlice<f32>,
        gradient: &mut CudaViewMut<'_, f32>,
    ) -> Result<()> {
        let (gpu, given) = (&base.gpu, self.batch(base, batch));
        let (blocks, n) = (batch.slots.min(BLOCKS), batch.slots as u32);
        let to = Gradients {
            spaces: Output::of(gpu, &saved.spaces),
            d_times: Output::of(gpu, &self.time.d_times),
            d_head_times: Output::of(gpu, &self.head_time.d_times),
            parts: Output::of(gpu, &saved.parts),
        };
        let grid = (blocks as u32, 1, 1);
        launch!(gpu, self.backward, (grid, THREADS, 0), &given, &to, &self.saved, d_out, &n)?;
        // The messages' functions of time are among the others: written as 0 here, then as they are.
        self.rows.sum(gpu, &saved.parts, gradient, 0, self.head_start, blocks)?;
        self.time.backward(base, batch, gradient)?;
        self.head_time.backward(base, batch, gradient)
    }
}
