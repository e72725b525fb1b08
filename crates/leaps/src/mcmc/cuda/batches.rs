//! Kept states on their way from a GPU to recorders: several at a time, so that neither waits for the other.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use cudarc::driver::{CudaEvent, CudaSlice, CudaViewMut, PinnedHostSlice};
use rayon::prelude::*;

use super::ladders::RungTable;
use crate::Result;
use crate::device::Progress;
use crate::device::cuda::{Gpu, failed};
use crate::mcmc::ChainSettings;
use crate::mcmc::rounds::adjusted;
use crate::observe::RemoteRecorder;
use crate::observe::cuda::{CudaMeasure, Found, Unpacked};

/// Bytes of a batch, about.
const BYTES: usize = 32 << 20;

/// Bytes of a GPU that chains take however many they are: two batches, and tables of the same size.
pub(super) const FIXED: usize = 4 * BYTES;

/// Kept states of a batch, at most.
const MOST: usize = 1024;

/// The setting that says how many chains there are.
pub(super) const KEY: &str = "sample.chains";

/// Numbers on the GPU and where they go on the host.
struct Channel<T> {
    there: CudaSlice<T>,
    here: PinnedHostSlice<T>,
    /// Numbers of a kept state.
    each: usize,
}

/// One batch: rows of all recorders, and their states and what tables of ladders take in, if wanted.
struct Batch {
    rows: Channel<u64>,
    states: Option<Channel<u8>>,
    rungs: Option<Channel<f64>>,
    /// Kept states.
    held: usize,
    /// Steps that led to them.
    steps: u64,
    /// Happens when all of it has arrived.
    arrival: Option<CudaEvent>,
}

/// Two batches: while the GPU fills one, the other is recorded.
pub(super) struct Batches {
    gpu: Arc<Gpu>,
    measure: CudaMeasure,
    recorders: usize,
    /// Kept states of a batch, at most.
    room: usize,
    batches: [Batch; 2],
    filling: usize,
}

/// What a recorder wants of a kept state.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    words: usize,
    states: usize,
    rungs: usize,
}

impl Wanted {
    /// What recorders like this one want, and tables of ladders with so many numbers.
    pub(super) fn by(recorder: &impl RemoteRecorder, measure: &CudaMeasure, rungs: usize) -> Self {
        let states = if recorder.keeps_states() { measure.sites() } else { 0 };
        Wanted { words: measure.words(), states, rungs }
    }

    fn bytes(self) -> usize {
        8 * (self.words + self.rungs) + self.states
    }

    /// Kept states of a batch.
    fn room(self, recorders: usize, settings: &ChainSettings) -> usize {
        let kept = usize::try_from(settings.steps / settings.thin).unwrap_or(MOST);
        (BYTES / (recorders * self.bytes())).min(kept).clamp(1, MOST)
    }
}

impl<T> Channel<T>
where
    T: cudarc::driver::DeviceRepr + cudarc::driver::ValidAsZeroBits,
{
    fn new(gpu: &Gpu, each: usize, room: usize) -> Result<Self> {
        let n = each * room;
        Ok(Channel { there: gpu.zeros(n)?, here: gpu.pinned(n)?, each })
    }

    fn of(gpu: &Gpu, each: usize, room: usize) -> Result<Option<Self>> {
        (each > 0).then(|| Self::new(gpu, each, room)).transpose()
    }

    fn at(&self, held: usize) -> Range<usize> {
        held * self.each..(held + 1) * self.each
    }

    fn send(&mut self, gpu: &Gpu, held: usize) -> Result<()> {
        match held {
            0 => Ok(()),
            held => gpu.send(&self.there.slice(..held * self.each), &mut self.here),
        }
    }

    /// What has arrived, after waiting for it.
    fn arrived(&self) -> Result<&[T]> {
        self.here.as_slice().map_err(failed("a kernel"))
    }
}

impl Batches {
    /// Room for what `recorders` recorders want.
    pub(super) fn new(
        gpu: &Arc<Gpu>,
        measure: CudaMeasure,
        recorders: usize,
        wanted: Wanted,
        settings: &ChainSettings,
    ) -> Result<Self> {
        let room = wanted.room(recorders, settings);
        let batch = || -> Result<Batch> {
            Ok(Batch {
                rows: Channel::new(gpu, recorders * wanted.words, room)?,
                states: Channel::of(gpu, recorders * wanted.states, room)?,
                rungs: Channel::of(gpu, recorders * wanted.rungs, room)?,
                held: 0,
                steps: 0,
                arrival: None,
            })
        };
        let batches = [batch()?, batch()?];
        Ok(Batches { gpu: gpu.clone(), measure, recorders, room, batches, filling: 0 })
    }

    /// Reduce the states that recorders are to see next.
    fn keep(&mut self, mover: &mut impl Mover) -> Result<()> {
        let Batch { rows, states, rungs, held, .. } = &mut self.batches[self.filling];
        let (at, count) = (rows.at(*held), self.recorders);
        let mut out = rows.there.slice_mut(at);
        let mut kept = states.as_mut().map(|states| {
            let at = states.at(*held);
            states.there.slice_mut(at)
        });
        self.measure.reduce(mover.found(), count, &mut out, kept.as_mut())?;
        if let Some(rungs) = rungs {
            let at = rungs.at(*held);
            mover.tabulate(&mut rungs.there.slice_mut(at))?;
        }
        *held += 1;
        Ok(())
    }

    /// Send the batch that was filled, by so many steps, on its way.
    fn send(&mut self, made: u64) -> Result<()> {
        let Batch { rows, states, rungs, held, steps, arrival } = &mut self.batches[self.filling];
        rows.send(&self.gpu, *held)?;
        if let Some(states) = states {
            states.send(&self.gpu, *held)?;
        }
        if let Some(rungs) = rungs {
            rungs.send(&self.gpu, *held)?;
        }
        let event = self.gpu.stream.context().new_event(None).map_err(failed("a kernel"))?;
        event.record(&self.gpu.stream).map_err(failed("a kernel"))?;
        (*steps, *arrival) = (made, Some(event));
        Ok(())
    }

    /// Give the batch that is not being filled to the recorders and the tables of their ladders, and fill it next; returns the steps that led to it.
    fn record<R: RemoteRecorder>(
        &mut self,
        recorders: &mut [R],
        tables: &mut [RungTable],
    ) -> Result<u64> {
        self.filling = 1 - self.filling;
        let batch = &mut self.batches[self.filling];
        if let Some(arrival) = batch.arrival.take() {
            arrival.synchronize().map_err(failed("a kernel"))?;
        }
        let (held, steps) = (std::mem::take(&mut batch.held), std::mem::take(&mut batch.steps));
        let (words, sites, n) = (self.measure.words(), self.measure.sites(), recorders.len());
        let rows = batch.rows.arrived()?;
        let states = batch.states.as_ref().map(Channel::arrived).transpose()?;
        let measure = &self.measure;
        recorders.par_iter_mut().enumerate().for_each_init(
            Unpacked::default,
            |space, (number, recorder)| {
                for place in (0..held).map(|kept| kept * n + number) {
                    let row = &rows[place * words..][..words];
                    let x = states.map(|all| &all[place * sites..][..sites]);
                    measure.record(row, x, space, recorder);
                }
            },
        );
        if let Some(rungs) = &batch.rungs {
            let (all, each) = (rungs.arrived()?, rungs.each / n);
            tables.par_iter_mut().enumerate().for_each(|(number, table)| {
                for place in (0..held).map(|kept| kept * n + number) {
                    table.record(&all[place * each..][..each]);
                }
            });
        }
        Ok(steps)
    }
}

/// What moves states on a GPU.
pub(super) trait Mover {
    /// Make some steps of all chains.
    fn advance(&mut self, steps: Range<u64>) -> Result<()>;

    /// Where the states that are recorded lie.
    fn found(&self) -> Found<'_>;

    /// Write what the tables of all ladders take in of the states as they are now.
    fn tabulate(&mut self, _out: &mut CudaViewMut<'_, f64>) -> Result<()> {
        Ok(())
    }
}

/// Carry all chains through `settings`, as [`in_rounds`](crate::mcmc::rounds::in_rounds) does on the CPU. Returns how many steps after burn-in
/// every chain has made.
pub(super) fn in_batches<R: RemoteRecorder>(
    settings: &ChainSettings,
    mover: &mut impl Mover,
    batches: &mut Batches,
    (recorders, tables): (&mut [R], &mut [RungTable]),
    progress: &dyn Progress,
) -> Result<u64> {
    let ChainSettings { burn_in, thin, .. } = *settings;
    let (total, measured) = (burn_in + settings.steps, burn_in + thin);
    let (mut done, mut length) = (0, 1);
    while done < total && !(done >= measured && progress.stopped()) {
        if done < measured {
            progress.check()?;
        }
        let (from, clock) = (done, Instant::now());
        let end = total.min(done.saturating_add(length));
        while done < end && batches.batches[batches.filling].held < batches.room {
            // To the end of burn-in, then from kept state to kept state.
            let next = match done < burn_in {
                true => burn_in,
                false => done + thin - (done - burn_in) % thin,
            };
            let next = next.min(end);
            mover.advance(done..next)?;
            done = next;
            if done > burn_in && (done - burn_in).is_multiple_of(thin) {
                batches.keep(mover)?;
            }
        }
        batches.send(done - from)?;
        // The GPU is at work on these while the CPU records those before.
        let steps = batches.record(recorders, tables)?;
        progress.advance(steps * settings.chains as u64);
        length = adjusted(length, clock.elapsed());
    }
    let steps = batches.record(recorders, tables)?;
    progress.advance(steps * settings.chains as u64);
    Ok(done - burn_in)
}
