//! The network on a card, in float32.

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, CudaViewMut};

use super::Lea;
use crate::Result;
use crate::device::cuda::{Card, Precision, failed, launch};
use crate::net::card::{BLOCKS, CardBatch, CardNetwork, CardTime, MOMENT, SumRows, check_lanes};
use crate::net::layout::total;
use crate::net::network::Network;

const SOURCE: &str =
    concat!(include_str!("../sums.cu"), include_str!("../dense.cu"), include_str!("lea.cu"));

/// See the [module](self).
struct CardLea {
    card: Arc<Card>,
    lanes: usize,
    forward: CudaFunction,
    backward: CudaFunction,
    rows: SumRows,
    time: CardTime,
    parameters: CudaSlice<f32>,
    /// Parameters without those of the functions of time.
    own: usize,
    kept: CudaSlice<f32>,
    /// Numbers that a block of the backward pass needs.
    space: usize,
    back: Option<Back>,
}

/// Space for the backward pass: of every block, and what it adds to the gradient.
struct Back {
    spaces: CudaSlice<f32>,
    parts: CudaSlice<f32>,
}

impl Lea {
    fn defines(&self) -> Vec<(&'static str, usize)> {
        vec![
            ("SITES", self.sites),
            ("INPUTS", self.inputs),
            ("EMBEDDING", self.embedding),
            ("HEADS", self.attention.heads),
            ("WIDTH", self.attention.width),
            ("OUTPUTS", self.outputs),
            ("TIMES", self.time.outputs),
            ("MOMENT", MOMENT),
        ]
    }

    /// Compile the kernels, where there is a compiler.
    #[cfg(test)]
    pub(crate) fn compiles(&self) {
        crate::device::cuda::testing::compiles(SOURCE, &self.defines());
    }

    /// The network on a card, for batches of up to `lanes`; always in float32.
    pub(crate) fn on_card(
        &self,
        card: &Arc<Card>,
        lanes: usize,
        _: Precision,
    ) -> Result<Box<dyn CardNetwork>> {
        let kernels = card.compile(SOURCE, &self.defines())?;
        let (own, size) = (self.sizes().iter().sum(), self.attention.size());
        let space = 5 * self.embedding + 4 * size + 3 * self.attention.heads;
        Ok(Box::new(CardLea {
            forward: kernels.get("lea_forward", 0)?,
            backward: kernels.get("lea_backward", 0)?,
            rows: SumRows::new(&kernels)?,
            time: CardTime::new(card, &kernels, self.time, lanes, own)?,
            parameters: card.zeros(total(&self.tensors()))?,
            own,
            kept: card.zeros(lanes * self.sites * (self.embedding + 5 * size))?,
            space: self.sites * space,
            back: None,
            card: Arc::clone(card),
            lanes,
        }))
    }
}

impl CardNetwork for CardLea {
    fn refresh(&mut self, parameters: &CudaSlice<f32>) -> Result<()> {
        let given = parameters.slice(..self.parameters.len());
        let stream = &self.card.stream;
        stream.memcpy_dtod(&given, &mut self.parameters).map_err(failed("memory of the card"))
    }

    fn forward(&mut self, batch: &CardBatch<'_>, out: &mut CudaSlice<f32>) -> Result<()> {
        check_lanes(batch.lanes, self.lanes)?;
        if batch.lanes == 0 {
            return Ok(());
        }
        self.time.forward(&self.card, &self.parameters, batch)?;
        let grid = (batch.lanes as u32, 1, 1);
        launch!(
            self.card,
            self.forward,
            (grid, 256, 0),
            &self.parameters,
            &self.time.times,
            batch.states,
            batch.rows,
            &mut self.kept,
            out
        )
    }

    fn forward_kept(&mut self, batch: &CardBatch<'_>, out: &mut CudaSlice<f32>) -> Result<()> {
        self.forward(batch, out)
    }

    fn backward(
        &mut self,
        batch: &CardBatch<'_>,
        d_out: &CudaSlice<f32>,
        gradient: &mut CudaViewMut<'_, f32>,
    ) -> Result<()> {
        let most = self.lanes.min(BLOCKS);
        let card = &self.card;
        let back = match &mut self.back {
            Some(back) => back,
            none => none.insert(Back {
                spaces: card.zeros(most * self.space)?,
                parts: card.zeros(most * self.own)?,
            }),
        };
        let (blocks, n) = (batch.lanes.min(BLOCKS), batch.lanes as u32);
        launch!(
            card,
            self.backward,
            ((blocks as u32, 1, 1), 256, 0),
            &self.parameters,
            &self.time.times,
            batch.states,
            batch.rows,
            &self.kept,
            d_out,
            &mut back.spaces,
            &mut self.time.d_times,
            &mut back.parts,
            &n
        )?;
        self.rows.sum(card, &back.parts, gradient, 0, self.own, blocks)?;
        self.time.backward(card, &self.parameters, batch, gradient)
    }
}
