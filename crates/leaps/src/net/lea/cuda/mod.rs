//! The attention network on a GPU, in float32.

#![cfg(feature = "cuda")]

mod division;

use cudarc::driver::{CudaSlice, CudaViewMut};

use super::{Lea, Parameters};
use crate::Result;
use crate::device::cuda::arguments::{Input, Output, arguments, join};
use crate::device::cuda::{Gpu, Kernels, launch};
use crate::net::cuda::{
    Base, Compiled, CudaBatch, CudaPasses, CudaTime, DENSE, SumRows, functions, time_defines,
};
use crate::net::layout::layout;
use division::{Division, Rows};

arguments! {
    /// Of the backward pass through attention.
    struct AttentionBack {
        /// Keys and values with every value and queries, see `lea.cu`.
        tables: Input<f32>,
        /// `[slot * TIMES]`.
        times: Input<f32>,
        /// `[row * SITES + site]`.
        states: Input<u8>,
        /// `[slot]`: the row of its state.
        rows: Input<u32>,
        /// `[slot][head][site]`: of the sums that weights are divided by.
        logs: Input<f32>,
        /// `[slot][head][site]`, see `lea_means`.
        means: Input<f32>,
    }
}

arguments! {
    /// Of the backward pass through the outputs to the hidden units.
    struct HiddenBack {
        parameters: Input<f32>,
        /// `[slot * TIMES]`.
        times: Input<f32>,
        /// `[slot][site][EMBEDDING]`: before the time's scale and shift.
        before: Input<f32>,
        /// `[slot][site][output]`.
        d_out: Input<f32>,
        /// `[slot][site][EMBEDDING]`.
        after: Output<f32>,
        d_z: Output<f32>,
        d_hidden: Output<f32>,
        d_times: Output<f32>,
        /// `[slot][ENDS]`.
        ends: Output<f32>,
    }
}

const SOURCE: &str = join!(
    DENSE,
    AttentionBack::SOURCE,
    HiddenBack::SOURCE,
    include_str!("lea.cu"),
    include_str!("attention.cu"),
    include_str!("readout.cu"),
);

/// Parts of all sites in which the gradient of the hidden weights is summed: a fixed number, so that all GPUs compute
/// the same sums.
const HIDDEN_PARTS: usize = 32;

/// Rows and columns of a block of `product` in `readout.cu`, columns of one of `column_sum` in `lea.cu`.
const EDGE: usize = 64;
const COLUMNS: usize = 32;

/// Threads of a block of all kernels but those of attention: 4 by 4 numbers each of a product, or a stripe of a column.
const BLOCK: usize = EDGE * EDGE / 16;

/// What the source calls where parameters start, and where the last ones end.
#[rustfmt::skip]
const PARAMETERS: [&str; 11] = [
    "P_TOKENS", "P_PLACES", "P_KEY", "P_VALUE", "P_QUERY", "P_HIDDEN", "P_HIDDEN_BIAS", "P_OUT", "P_OUT_BIAS", "P_ALL",
    "P_END",
];

layout! {
    /// Tables of `[site][SIZE]`.
    struct Tables(lea: &Lea) {
        keys: lea.q() * lea.table(),
        values: lea.q() * lea.table(),
        queries: lea.table(),
    }
}

functions!(
    Functions, "lea_";
    tables,
    attend,
    hidden,
    outputs,
    hidden_back,
    hidden_weights,
    context_back,
    means,
    keys_back,
    queries_back,
    sum_table,
    sum_queries,
    sum_times,
    described_back,
    embeddings_back,
    projections_back,
);

/// See the [module](self).
struct CudaLea {
    lea: Lea,
    division: Division,
    functions: Functions,
    rows: SumRows,
    time: CudaTime,
    /// Keys and values with every value and queries, see `lea.cu`.
    tables: CudaSlice<f32>,
    /// Contexts of heads, `[slot][site][size]`; on the way back, gradients of keys.
    context: CudaSlice<f32>,
    /// Of the sums that weights are divided by, `[slot][head][site]`.
    logs: CudaSlice<f32>,
    /// Hidden units before the time's scale and shift, `[slot][site][embedding]`.
    before: CudaSlice<f32>,
}

/// Space for the backward pass.
struct Saved {
    /// `[slot][site][embedding]`, see `lea_hidden_back`.
    after: CudaSlice<f32>,
    d_z: CudaSlice<f32>,
    d_hidden: CudaSlice<f32>,
    ends: CudaSlice<f32>,
    hidden_parts: CudaSlice<f32>,
    /// Gradients of contexts of heads, then of queries, and of values, `[slot][site][size]`.
    d_context: CudaSlice<f32>,
    d_value: CudaSlice<f32>,
    means: CudaSlice<f32>,
    d_tables: CudaSlice<f32>,
    d_described: CudaSlice<f32>,
}

impl Lea {
    fn q(&self) -> usize {
        self.inputs.max(2)
    }

    /// Numbers of a table.
    fn table(&self) -> usize {
        self.sites * self.attention.size()
    }

    /// Rows of a slot: sites of all heads.
    fn rows(&self) -> usize {
        self.sites * self.attention.heads
    }

    /// Numbers that a slot adds to the gradient of the hidden bias and of what follows it, and where these parameters start.
    fn ends(&self) -> (usize, usize) {
        let lengths = Parameters::lengths(self);
        let ends = lengths.hidden_bias + lengths.out + lengths.out_bias;
        (ends, Parameters::len(self) - lengths.time - ends)
    }
}

impl Compiled for Lea {
    const SOURCE: &'static str = SOURCE;

    fn defines(&self) -> Vec<(&'static str, usize)> {
        let division = Division::new(self.sites, self.attention.width);
        [
            ("SITES", self.sites),
            ("INPUTS", self.inputs),
            ("Q", self.q()),
            ("EMBEDDING", self.embedding),
            ("HEADS", self.attention.heads),
            ("WIDTH", self.attention.width),
            ("SIZE", self.attention.size()),
            ("TABLE_LENGTH", self.table()),
            ("ENDS", self.ends().0),
            ("OUTPUTS", self.outputs),
            ("TIMES", self.time.outputs),
            ("SLICES", division.slices),
            ("SLICE", division.slice),
            ("STRIDE", division.stride),
            ("ROW", division.row()),
            ("TILE", division.tile),
            ("ROWS", division.forward.rows),
            ("THREADS", division.forward.threads),
            ("PARTS", division.forward.parts),
            ("BACK_ROWS", division.back.rows),
            ("BACK_THREADS", division.back.threads),
            ("BACK_PARTS", division.back.parts),
            ("HIDDEN_PARTS", HIDDEN_PARTS),
            ("EDGE", EDGE),
            ("COLUMNS", COLUMNS),
            ("STRIPES", BLOCK / COLUMNS),
            ("BLOCK", BLOCK),
        ]
        .into_iter()
        .chain(Parameters::starts(self, PARAMETERS))
        .chain(Tables::starts(self, ["KEY_TABLES", "VALUE_TABLES", "QUERY_TABLE", "TABLES"]))
        .chain(time_defines(self.time.features))
        .collect()
    }

    fn passes(
        &self,
        gpu: &Gpu,
        kernels: &Kernels,
        slots: usize,
    ) -> Result<impl CudaPasses + 'static> {
        let own = Parameters::len(self) - self.time.parameters();
        Ok(CudaLea {
            functions: Functions::new(kernels, |_| 0)?,
            rows: SumRows::new(kernels)?,
            time: CudaTime::new(gpu, kernels, self.time, slots, own)?,
            tables: gpu.zeros(Tables::len(self))?,
            context: gpu.zeros(slots * self.table())?,
            logs: gpu.zeros(slots * self.rows())?,
            before: gpu.zeros(slots * self.sites * self.embedding)?,
            division: Division::new(self.sites, self.attention.width),
            lea: self.clone(),
        })
    }
}

impl CudaLea {
    /// Blocks of attention: all heads of all slots.
    fn heads(&self, slots: usize, rows: Rows) -> (u32, u32, u32) {
        ((slots * self.lea.attention.heads * rows.parts) as u32, 1, 1)
    }

    /// Back through the read-out: gradients of its weights and of contexts of heads.
    fn readout_back(
        &mut self,
        base: &Base,
        slots: usize,
        d_out: &CudaSlice<f32>,
        saved: &mut Saved,
        gradient: &mut CudaViewMut<'_, f32>,
    ) -> Result<()> {
        let (gpu, f, lea, p) = (&base.gpu, &self.functions, &self.lea, &base.parameters);
        let (size, e, sites) = (lea.attention.size(), lea.embedding, slots * lea.sites);
        let n = sites as u32;
        let pass = HiddenBack {
            parameters: Input::of(gpu, p),
            times: Input::of(gpu, &self.time.times),
            before: Input::of(gpu, &self.before),
            d_out: Input::of(gpu, d_out),
            after: Output::of(gpu, &saved.after),
            d_z: Output::of(gpu, &saved.d_z),
            d_hidden: Output::of(gpu, &saved.d_hidden),
            d_times: Output::of(gpu, &self.time.d_times),
            ends: Output::of(gpu, &saved.ends),
        };
        launch!(gpu, f.hidden_back, ((slots as u32, 1, 1), BLOCK, 0), &pass)?;
        let (ends, start) = lea.ends();
        self.rows.sum(gpu, &saved.ends, gradient, start, ends, slots)?;
        let grid = (size.div_ceil(EDGE) as u32, e.div_ceil(EDGE) as u32, HIDDEN_PARTS as u32);
        let parts = &mut saved.hidden_parts;
        launch!(
            gpu,
            f.hidden_weights,
            (grid, BLOCK, 0),
            &saved.d_hidden,
            &self.context,
            parts,
            &n
        )?;
        let (start, parts) = (start - e * size, &saved.hidden_parts);
        self.rows.sum(gpu, parts, gradient, start, e * size, HIDDEN_PARTS)?;
        let grid = (sites.div_ceil(EDGE) as u32, size.div_ceil(EDGE) as u32, 1);
        launch!(gpu, f.context_back, (grid, BLOCK, 0), p, &saved.d_hidden, &mut saved.d_context, &n)
    }

    /// Back through attention: gradients of keys, values and queries take the places of `context`, `d_value` and `d_context`.
    fn attention_back(
        &mut self,
        gpu: &Gpu,
        batch: &CudaBatch<'_>,
        saved: &mut Saved,
    ) -> Result<()> {
        let (f, rows) = (&self.functions, self.division.back);
        let (grid, n) = (self.heads(batch.slots, rows), batch.slots as u32);
        let means = ((batch.slots * self.lea.rows()).div_ceil(BLOCK) as u32, 1, 1);
        launch!(
            gpu,
            f.means,
            (means, BLOCK, 0),
            &self.context,
            &saved.d_context,
            &mut saved.means,
            &n
        )?;
        let pass = AttentionBack {
            tables: Input::of(gpu, &self.tables),
            times: Input::of(gpu, &self.time.times),
            states: Input::of(gpu, batch.states),
            rows: Input::of(gpu, batch.rows),
            logs: Input::of(gpu, &self.logs),
            means: Input::of(gpu, &saved.means),
        };
        let (d_context, d_key, d_value) =
            (&mut saved.d_context, &mut self.context, &mut saved.d_value);
        let block = rows.threads;
        launch!(gpu, f.keys_back, (grid, block, 0), &pass, &*d_context, d_key, d_value)?;
        launch!(gpu, f.queries_back, (grid, block, 0), &pass, d_context)
    }

    /// Gradients of the tables, and of the queries' functions of time.
    fn sum_slots(&mut self, gpu: &Gpu, batch: &CudaBatch<'_>, saved: &mut Saved) -> Result<()> {
        let (f, lea) = (&self.functions, &self.lea);
        let (q, table, size) = (lea.q(), lea.table(), lea.attention.size());
        let (n, columns) = (batch.slots as u32, table.div_ceil(COLUMNS) as u32);
        for (d, start) in [(&self.context, 0), (&saved.d_value, q * table)] {
            let mut to = saved.d_tables.slice_mut(start..start + q * table);
            let grid = (columns, q as u32, 1);
            launch!(gpu, f.sum_table, (grid, BLOCK, 0), d, batch.states, batch.rows, &mut to, &n)?;
        }
        let mut to = saved.d_tables.slice_mut(2 * q * table..);
        let (d, times) = (&saved.d_context, &self.time.times);
        launch!(gpu, f.sum_queries, ((columns, 1, 1), BLOCK, 0), d, times, &mut to, &n)?;
        let grid = (n, size.div_ceil(COLUMNS) as u32, 1);
        launch!(gpu, f.sum_times, (grid, BLOCK, 0), d, &self.tables, &mut self.time.d_times)
    }

    /// From the gradients of the tables to those of values, places, keys, values and queries.
    fn tables_back(
        &self,
        base: &Base,
        saved: &mut Saved,
        gradient: &mut CudaViewMut<'_, f32>,
    ) -> Result<()> {
        let (gpu, f, lea, p) = (&base.gpu, &self.functions, &self.lea, &base.parameters);
        let (e, size) = (lea.embedding, lea.attention.size());
        let columns = e.div_ceil(COLUMNS) as u32;
        let grid = (lea.sites as u32, lea.q() as u32, columns);
        let (d_tables, d_described) = (&saved.d_tables, &mut saved.d_described);
        launch!(gpu, f.described_back, (grid, BLOCK, 0), p, d_tables, &mut *d_described)?;
        let (grid, d_described) = ((lea.sites + lea.inputs) as u32, &saved.d_described);
        let grid = (grid, columns, 1);
        launch!(
            gpu,
            f.embeddings_back,
            (grid, BLOCK, 0),
            p,
            d_tables,
            d_described,
            &mut *gradient
        )?;
        let grid = (size.div_ceil(COLUMNS) as u32, e as u32, 3);
        launch!(gpu, f.projections_back, (grid, BLOCK, 0), p, d_tables, gradient)
    }
}

impl CudaPasses for CudaLea {
    type Saved = Saved;

    fn refresh(&mut self, base: &Base) -> Result<()> {
        let grid = (self.lea.sites as u32, 2 * self.lea.q() as u32 + 1, 1);
        let tables = &mut self.tables;
        launch!(base.gpu, self.functions.tables, (grid, BLOCK, 0), &base.parameters, tables)
    }

    fn reserve(&mut self, base: &Base) -> Result<Saved> {
        let (gpu, lea, slots) = (&base.gpu, &self.lea, base.slots);
        let hidden = slots * lea.sites * lea.embedding;
        Ok(Saved {
            after: gpu.zeros(hidden)?,
            d_z: gpu.zeros(hidden)?,
            d_hidden: gpu.zeros(hidden)?,
            ends: gpu.zeros(slots * lea.ends().0)?,
            hidden_parts: gpu.zeros(HIDDEN_PARTS * lea.embedding * lea.attention.size())?,
            d_context: gpu.zeros(slots * lea.table())?,
            d_value: gpu.zeros(slots * lea.table())?,
            means: gpu.zeros(slots * lea.rows())?,
            d_tables: gpu.zeros(Tables::len(lea))?,
            d_described: gpu.zeros(lea.q() * lea.sites * lea.embedding)?,
        })
    }

    fn forward(
        &mut self,
        base: &Base,
        batch: &CudaBatch<'_>,
        _saved: Option<&mut Saved>,
        out: &mut CudaSlice<f32>,
    ) -> Result<()> {
        self.time.forward(base, batch)?;
        let (gpu, f, rows) = (&base.gpu, &self.functions, self.division.forward);
        let heads = self.heads(batch.slots, rows);
        launch!(
            gpu,
            f.attend,
            (heads, rows.threads, 0),
            &self.tables,
            &self.time.times,
            batch.states,
            batch.rows,
            &mut self.context,
            &mut self.logs
        )?;
        let (p, sites) = (&base.parameters, batch.slots * self.lea.sites);
        let grid = (sites.div_ceil(EDGE) as u32, self.lea.embedding.div_ceil(EDGE) as u32, 1);
        let (n, before) = (sites as u32, &mut self.before);
        launch!(gpu, f.hidden, (grid, BLOCK, 0), p, &self.context, &mut *before, &n)?;
        let grid = (sites.div_ceil(BLOCK) as u32, 1, 1);
        launch!(gpu, f.outputs, (grid, BLOCK, 0), p, &self.time.times, &self.before, out, &n)
    }

    fn backward(
        &mut self,
        base: &Base,
        batch: &CudaBatch<'_>,
        saved: &mut Saved,
        d_out: &CudaSlice<f32>,
        gradient: &mut CudaViewMut<'_, f32>,
    ) -> Result<()> {
        self.readout_back(base, batch.slots, d_out, saved, gradient)?;
        self.attention_back(&base.gpu, batch, saved)?;
        self.sum_slots(&base.gpu, batch, saved)?;
        self.tables_back(base, saved, gradient)?;
        self.time.backward(base, batch, gradient)
    }
}
