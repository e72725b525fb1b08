//! The multilayer perceptron on a card, as plainly as possible: a network to test walkers and training with.

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, CudaViewMut};

use super::card::{CardBatch, CardNetwork};
use crate::Result;
use crate::device::cuda::{Card, Kernels, launch};
use crate::target::Target;

/// Source of the kernels.
pub(crate) const PLAIN: &str = include_str!("plain_card.cu");

/// See the [module](self).
pub(crate) struct PlainCard {
    card: Arc<Card>,
    kernels: Kernels,
    sites: usize,
    hidden: usize,
    count: usize,
    parameters: CudaSlice<f32>,
    scale: CudaSlice<f32>,
    sums: CudaSlice<f32>,
    d_scale: CudaSlice<f32>,
    d_sums: CudaSlice<f32>,
}

impl PlainCard {
    /// A perceptron with `hidden` units and `count` parameters, for up to `lanes` lanes.
    pub(crate) fn new(
        card: &Arc<Card>,
        target: &dyn Target,
        hidden: usize,
        count: usize,
        lanes: usize,
    ) -> Result<Self> {
        let (sites, tokens) = (target.sites(), target.tokens());
        let defines = [("SITES", sites), ("Q", tokens), ("HIDDEN", hidden)];
        Ok(PlainCard {
            kernels: card.compile(PLAIN, &defines)?,
            sites,
            hidden,
            count,
            parameters: card.zeros(count)?,
            scale: card.zeros(lanes * 2 * hidden)?,
            sums: card.zeros(lanes * hidden * sites)?,
            d_scale: card.zeros(lanes * 2 * hidden)?,
            d_sums: card.zeros(lanes * hidden * sites)?,
            card: card.clone(),
        })
    }

    fn kernel(&self, name: &str) -> Result<CudaFunction> {
        self.kernels.get(name, 0)
    }
}

fn grid(n: usize) -> (u32, u32, u32) {
    (n.div_ceil(128) as u32, 1, 1)
}

impl CardNetwork for PlainCard {
    fn refresh(&mut self, parameters: &CudaSlice<f32>) -> Result<()> {
        let part = parameters.slice(..self.count);
        self.card
            .stream
            .memcpy_dtod(&part, &mut self.parameters)
            .map_err(crate::device::cuda::failed("parameters"))
    }

    fn forward(&mut self, batch: &CardBatch<'_>, out: &mut CudaSlice<f32>) -> Result<()> {
        let (lanes, all) = (batch.lanes as u32, batch.lanes * 2 * self.hidden);
        let (times, forward) = (self.kernel("plain_times")?, self.kernel("plain_forward")?);
        launch!(
            self.card,
            times,
            (grid(all), 128, 0),
            &self.parameters,
            batch.table,
            batch.moments,
            &self.scale,
            &lanes
        )?;
        launch!(
            self.card,
            forward,
            (grid(batch.lanes * self.sites), 128, 0),
            &self.parameters,
            batch.states,
            batch.rows,
            &self.scale,
            &self.sums,
            out,
            &lanes,
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
        let lanes = batch.lanes as u32;
        let (back, all) = (self.kernel("plain_back")?, self.kernel("plain_gradient")?);
        launch!(
            self.card,
            back,
            (grid(batch.lanes * self.hidden), 128, 0),
            &self.parameters,
            &self.scale,
            &self.sums,
            d_out,
            &self.d_sums,
            &self.d_scale,
            &lanes,
        )?;
        launch!(
            self.card,
            all,
            (grid(self.count), 128, 0),
            &self.parameters,
            batch.states,
            batch.rows,
            batch.moments,
            batch.table,
            &self.scale,
            &self.sums,
            d_out,
            &self.d_sums,
            &self.d_scale,
            gradient,
            &lanes,
        )
    }
}
