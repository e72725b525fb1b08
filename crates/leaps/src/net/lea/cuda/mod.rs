//! The network on a GPU, in float32.

#![cfg(feature = "cuda")]

mod division;

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, CudaViewMut};

use super::Lea;
use crate::Result;
use crate::device::cuda::{Gpu, Kernels, Precision, failed, launch};
use crate::net::cuda::{CudaBatch, CudaNetwork, CudaTime, MOMENT, SumRows, check_lanes};
use crate::net::layout::total;
use crate::net::network::Network;
use division::{Division, Rows};

const SOURCE: &str = concat!(
    include_str!("../../cuda/sums.cu"),
    include_str!("../../cuda/dense.cu"),
    include_str!("lea.cu"),
    include_str!("attention.cu"),
    include_str!("readout.cu")
);

/// Parts of all sites in which the gradient of the hidden weights is summed: a fixed number, so that all GPUs compute
/// the same sums.
const HIDDEN_PARTS: usize = 32;

/// Rows and columns of a block of `product` in `readout.cu`, columns of one of `column_sum` in `lea.cu`.
const EDGE: usize = 64;
const COLUMNS: usize = 32;

/// Kernels by name.
struct Functions {
    tables: CudaFunction,
    attend: CudaFunction,
    hidden: CudaFunction,
    outputs: CudaFunction,
    hidden_back: CudaFunction,
    hidden_weights: CudaFunction,
    seen_back: CudaFunction,
    means: CudaFunction,
    keys_back: CudaFunction,
    queries_back: CudaFunction,
    sum_table: CudaFunction,
    sum_queries: CudaFunction,
    sum_times: CudaFunction,
    described_back: CudaFunction,
    embeddings_back: CudaFunction,
    projections_back: CudaFunction,
}

impl Functions {
    fn new(kernels: &Kernels) -> Result<Self> {
        let get = |name: &str| kernels.get(name, 0);
        Ok(Functions {
            tables: get("lea_tables")?,
            attend: get("lea_attend")?,
            hidden: get("lea_hidden")?,
            outputs: get("lea_outputs")?,
            hidden_back: get("lea_hidden_back")?,
            hidden_weights: get("lea_hidden_weights")?,
            seen_back: get("lea_seen_back")?,
            means: get("lea_means")?,
            keys_back: get("lea_keys_back")?,
            queries_back: get("lea_queries_back")?,
            sum_table: get("lea_sum_table")?,
            sum_queries: get("lea_sum_queries")?,
            sum_times: get("lea_sum_times")?,
            described_back: get("lea_described_back")?,
            embeddings_back: get("lea_embeddings_back")?,
            projections_back: get("lea_projections_back")?,
        })
    }
}

/// See the [module](self).
struct CudaLea {
    gpu: Arc<Gpu>,
    lea: Lea,
    division: Division,
    lanes: usize,
    functions: Functions,
    rows: SumRows,
    time: CudaTime,
    parameters: CudaSlice<f32>,
    /// Keys and values with every value and queries, see `lea.cu`.
    tables: CudaSlice<f32>,
    /// What heads have seen, `[lane][site][size]`; on the way back, gradients of keys.
    seen: CudaSlice<f32>,
    /// Of the sums that weights are divided by, `[lane][head][site]`.
    logs: CudaSlice<f32>,
    /// Hidden units before the time's scale and shift, `[lane][site][embedding]`.
    before: CudaSlice<f32>,
    back: Option<Back>,
}

/// Space for the backward pass.
struct Back {
    /// `[lane][site][embedding]`, see `lea_hidden_back`.
    after: CudaSlice<f32>,
    d_z: CudaSlice<f32>,
    d_hidden: CudaSlice<f32>,
    ends: CudaSlice<f32>,
    hidden_parts: CudaSlice<f32>,
    /// Gradients of what heads have seen, then of queries, and of values, `[lane][site][size]`.
    d_seen: CudaSlice<f32>,
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

    /// Numbers of all tables: of keys and of values for every value, of queries.
    fn tables(&self) -> usize {
        (2 * self.q() + 1) * self.table()
    }

    /// Rows of a lane: sites of all heads.
    fn rows(&self) -> usize {
        self.sites * self.attention.heads
    }

    /// Numbers that a lane adds to the gradient of the hidden bias and of what follows it, and where these parameters start.
    fn ends(&self) -> (usize, usize) {
        let sizes = self.sizes();
        (sizes[6..].iter().sum(), sizes[..6].iter().sum())
    }

    fn defines(&self) -> Vec<(&'static str, usize)> {
        let division = Division::new(self.sites, self.attention.width);
        vec![
            ("SITES", self.sites),
            ("INPUTS", self.inputs),
            ("EMBEDDING", self.embedding),
            ("HEADS", self.attention.heads),
            ("WIDTH", self.attention.width),
            ("OUTPUTS", self.outputs),
            ("TIMES", self.time.outputs),
            ("MOMENT", MOMENT),
            ("SLICES", division.slices),
            ("SLICE", division.slice),
            ("TILE", division.tile),
            ("ROWS", division.forward.rows),
            ("THREADS", division.forward.threads),
            ("PARTS", division.forward.parts),
            ("BACK_ROWS", division.back.rows),
            ("BACK_THREADS", division.back.threads),
            ("BACK_PARTS", division.back.parts),
            ("HIDDEN_PARTS", HIDDEN_PARTS),
        ]
    }

    /// Compile the kernels, where there is a compiler.
    #[cfg(test)]
    pub(crate) fn compiles(&self) {
        crate::device::cuda::testing::compiles(SOURCE, &self.defines());
    }

    /// The network on a GPU, for batches of up to `lanes`; always in float32.
    pub(crate) fn on_gpu(
        &self,
        gpu: &Arc<Gpu>,
        lanes: usize,
        _: Precision,
    ) -> Result<Box<dyn CudaNetwork>> {
        let kernels = gpu.compile(SOURCE, &self.defines())?;
        let own = self.sizes().iter().sum();
        Ok(Box::new(CudaLea {
            functions: Functions::new(&kernels)?,
            rows: SumRows::new(&kernels)?,
            time: CudaTime::new(gpu, &kernels, self.time, lanes, own)?,
            parameters: gpu.zeros(total(&self.tensors()))?,
            tables: gpu.zeros(self.tables())?,
            seen: gpu.zeros(lanes * self.table())?,
            logs: gpu.zeros(lanes * self.rows())?,
            before: gpu.zeros(lanes * self.sites * self.embedding)?,
            back: None,
            division: Division::new(self.sites, self.attention.width),
            lea: self.clone(),
            gpu: Arc::clone(gpu),
            lanes,
        }))
    }
}

impl CudaLea {
    fn back_space(&self) -> Result<Back> {
        let (gpu, lea, lanes) = (&self.gpu, &self.lea, self.lanes);
        let hidden = lanes * lea.sites * lea.embedding;
        Ok(Back {
            after: gpu.zeros(hidden)?,
            d_z: gpu.zeros(hidden)?,
            d_hidden: gpu.zeros(hidden)?,
            ends: gpu.zeros(lanes * lea.ends().0)?,
            hidden_parts: gpu.zeros(HIDDEN_PARTS * lea.embedding * lea.attention.size())?,
            d_seen: gpu.zeros(lanes * lea.table())?,
            d_value: gpu.zeros(lanes * lea.table())?,
            means: gpu.zeros(lanes * lea.rows())?,
            d_tables: gpu.zeros(lea.tables())?,
            d_described: gpu.zeros(lea.q() * lea.sites * lea.embedding)?,
        })
    }

    /// Blocks of attention: all heads of all lanes.
    fn heads(&self, lanes: usize, rows: Rows) -> (u32, u32, u32) {
        ((lanes * self.lea.attention.heads * rows.parts) as u32, 1, 1)
    }

    /// Back through the read-out: gradients of its weights and of what heads have seen.
    fn readout_back(
        &mut self,
        lanes: usize,
        d_out: &CudaSlice<f32>,
        back: &mut Back,
        gradient: &mut CudaViewMut<'_, f32>,
    ) -> Result<()> {
        let (gpu, f, lea, p) = (&self.gpu, &self.functions, &self.lea, &self.parameters);
        let (size, e, sites) = (lea.attention.size(), lea.embedding, lanes * lea.sites);
        let n = sites as u32;
        launch!(
            gpu,
            f.hidden_back,
            ((lanes as u32, 1, 1), 256, 0),
            p,
            &self.time.times,
            &self.before,
            d_out,
            &mut back.after,
            &mut back.d_z,
            &mut back.d_hidden,
            &mut self.time.d_times,
            &mut back.ends
        )?;
        let (ends, start) = lea.ends();
        self.rows.sum(gpu, &back.ends, gradient, start, ends, lanes)?;
        let grid = (size.div_ceil(EDGE) as u32, e.div_ceil(EDGE) as u32, HIDDEN_PARTS as u32);
        let parts = &mut back.hidden_parts;
        launch!(gpu, f.hidden_weights, (grid, 256, 0), &back.d_hidden, &self.seen, parts, &n)?;
        let (start, parts) = (start - e * size, &back.hidden_parts);
        self.rows.sum(gpu, parts, gradient, start, e * size, HIDDEN_PARTS)?;
        let grid = (sites.div_ceil(EDGE) as u32, size.div_ceil(EDGE) as u32, 1);
        launch!(gpu, f.seen_back, (grid, 256, 0), p, &back.d_hidden, &mut back.d_seen, &n)
    }

    /// Back through attention: gradients of keys, values and queries take the places of `seen`, `d_value` and `d_seen`.
    fn attention_back(&mut self, batch: &CudaBatch<'_>, back: &mut Back) -> Result<()> {
        let (gpu, f, rows) = (&self.gpu, &self.functions, self.division.back);
        let (grid, n) = (self.heads(batch.lanes, rows), batch.lanes as u32);
        let means = ((batch.lanes * self.lea.rows()).div_ceil(256) as u32, 1, 1);
        launch!(gpu, f.means, (means, 256, 0), &self.seen, &back.d_seen, &mut back.means, &n)?;
        launch!(
            gpu,
            f.keys_back,
            (grid, rows.threads, 0),
            &self.tables,
            &self.time.times,
            batch.states,
            batch.rows,
            &self.logs,
            &back.means,
            &back.d_seen,
            &mut self.seen,
            &mut back.d_value
        )?;
        launch!(
            gpu,
            f.queries_back,
            (grid, rows.threads, 0),
            &self.tables,
            &self.time.times,
            batch.states,
            batch.rows,
            &self.logs,
            &back.means,
            &mut back.d_seen
        )
    }

    /// Gradients of the tables, and of the queries' functions of time.
    fn sum_lanes(&mut self, batch: &CudaBatch<'_>, back: &mut Back) -> Result<()> {
        let (gpu, f, lea) = (&self.gpu, &self.functions, &self.lea);
        let (q, table, size) = (lea.q(), lea.table(), lea.attention.size());
        let (n, columns) = (batch.lanes as u32, table.div_ceil(COLUMNS) as u32);
        for (d, start) in [(&self.seen, 0), (&back.d_value, q * table)] {
            let mut to = back.d_tables.slice_mut(start..start + q * table);
            let grid = (columns, q as u32, 1);
            launch!(gpu, f.sum_table, (grid, 256, 0), d, batch.states, batch.rows, &mut to, &n)?;
        }
        let mut to = back.d_tables.slice_mut(2 * q * table..);
        let (d, times) = (&back.d_seen, &self.time.times);
        launch!(gpu, f.sum_queries, ((columns, 1, 1), 256, 0), d, times, &mut to, &n)?;
        let grid = (n, size.div_ceil(COLUMNS) as u32, 1);
        launch!(gpu, f.sum_times, (grid, 256, 0), d, &self.tables, &mut self.time.d_times)
    }

    /// From the gradients of the tables to those of values, places, keys, values and queries.
    fn tables_back(&self, back: &mut Back, gradient: &mut CudaViewMut<'_, f32>) -> Result<()> {
        let (gpu, f, lea, p) = (&self.gpu, &self.functions, &self.lea, &self.parameters);
        let (e, size) = (lea.embedding, lea.attention.size());
        let columns = e.div_ceil(COLUMNS) as u32;
        let grid = (lea.sites as u32, lea.q() as u32, columns);
        let (d_tables, d_described) = (&back.d_tables, &mut back.d_described);
        launch!(gpu, f.described_back, (grid, 256, 0), p, d_tables, &mut *d_described)?;
        let (grid, d_described) = ((lea.sites + lea.inputs) as u32, &back.d_described);
        let grid = (grid, columns, 1);
        launch!(gpu, f.embeddings_back, (grid, 256, 0), p, d_tables, d_described, &mut *gradient)?;
        let grid = (size.div_ceil(COLUMNS) as u32, e as u32, 3);
        launch!(gpu, f.projections_back, (grid, 256, 0), p, d_tables, gradient)
    }
}

impl CudaNetwork for CudaLea {
    fn refresh(&mut self, parameters: &CudaSlice<f32>) -> Result<()> {
        let (gpu, given) = (&self.gpu, parameters.slice(..self.parameters.len()));
        gpu.stream
            .memcpy_dtod(&given, &mut self.parameters)
            .map_err(failed("memory of the GPU"))?;
        let grid = (self.lea.sites as u32, 2 * self.lea.q() as u32 + 1, 1);
        let (p, tables) = (&self.parameters, &mut self.tables);
        launch!(gpu, self.functions.tables, (grid, 256, 0), p, tables)
    }

    fn reserve(&mut self) -> Result<()> {
        if self.back.is_none() {
            self.back = Some(self.back_space()?);
        }
        Ok(())
    }

    fn forward(&mut self, batch: &CudaBatch<'_>, out: &mut CudaSlice<f32>) -> Result<()> {
        check_lanes(batch.lanes, self.lanes)?;
        if batch.lanes == 0 {
            return Ok(());
        }
        self.time.forward(&self.gpu, &self.parameters, batch)?;
        let (gpu, f, rows) = (&self.gpu, &self.functions, self.division.forward);
        let heads = self.heads(batch.lanes, rows);
        launch!(
            gpu,
            f.attend,
            (heads, rows.threads, 0),
            &self.tables,
            &self.time.times,
            batch.states,
            batch.rows,
            &mut self.seen,
            &mut self.logs
        )?;
        let (p, sites) = (&self.parameters, batch.lanes * self.lea.sites);
        let grid = (sites.div_ceil(EDGE) as u32, self.lea.embedding.div_ceil(EDGE) as u32, 1);
        let (n, before) = (sites as u32, &mut self.before);
        launch!(gpu, f.hidden, (grid, 256, 0), p, &self.seen, &mut *before, &n)?;
        let grid = (sites.div_ceil(256) as u32, 1, 1);
        launch!(gpu, f.outputs, (grid, 256, 0), p, &self.time.times, &self.before, out, &n)
    }

    fn forward_train(&mut self, batch: &CudaBatch<'_>, out: &mut CudaSlice<f32>) -> Result<()> {
        self.forward(batch, out)
    }

    fn backward(
        &mut self,
        batch: &CudaBatch<'_>,
        d_out: &CudaSlice<f32>,
        gradient: &mut CudaViewMut<'_, f32>,
    ) -> Result<()> {
        let mut back = match self.back.take() {
            Some(back) => back,
            None => self.back_space()?,
        };
        self.readout_back(batch.lanes, d_out, &mut back, gradient)?;
        self.attention_back(batch, &mut back)?;
        self.sum_lanes(batch, &mut back)?;
        self.tables_back(&mut back, gradient)?;
        self.back = Some(back);
        self.time.backward(&self.gpu, &self.parameters, batch, gradient)
    }
}
