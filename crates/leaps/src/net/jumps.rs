//! Passes for walkers that jump from site to site.

use super::Net;
use super::hollow::{Hollow, local::Alone};
use super::model::AnyNetwork;
use super::worker::Worker;
use crate::device::level::dispatch;
use crate::device::vector::{Floats, WIDTH};

/// Space for walkers on their way through a network, each in a place of its own.
#[derive(Clone, Debug)]
pub(crate) enum JumpWorker {
    /// Sixteen share every pass.
    Shared(Box<Worker>),
    /// One has passes of its own, in which only what has changed since the last one is computed.
    Alone(Box<Alone>),
}

impl JumpWorker {
    /// Condition the network on the target of a place: see [`Worker::set_condition`].
    pub(crate) fn set_condition(&mut self, place: usize, condition: &[f64]) {
        match self {
            JumpWorker::Shared(worker) => worker.set_condition(place, condition),
            JumpWorker::Alone(walker) => walker.set_condition(condition),
        }
    }

    /// Show the network the couplings of a place's instance: see [`Worker::set_couplings`].
    pub(crate) fn set_couplings(&mut self, place: usize, couplings: &[f32]) {
        match self {
            JumpWorker::Shared(worker) => worker.set_couplings(place, couplings),
            JumpWorker::Alone(walker) => walker.set_couplings(couplings),
        }
    }

    /// Put a state and a time into a place.
    pub(crate) fn set(&mut self, place: usize, x: &[u8], t: f64) {
        match self {
            JumpWorker::Shared(worker) => worker.set(place, x, t),
            JumpWorker::Alone(walker) => walker.set(x, t),
        }
    }

    /// Change one value.
    pub(crate) fn set_value(&mut self, place: usize, site: usize, value: u8) {
        match self {
            JumpWorker::Shared(worker) => worker.set_value(place, site, value),
            JumpWorker::Alone(walker) => walker.set_value(site, value),
        }
    }

    /// Output `index = site * outputs + s` of a place after a pass.
    #[inline]
    pub(crate) fn output(&self, place: usize, index: usize) -> f32 {
        match self {
            JumpWorker::Shared(worker) => worker.output(place, index),
            JumpWorker::Alone(walker) => walker.output(index),
        }
    }
}

impl Net {
    /// The hollow convolution that the network is, or is built on.
    pub(super) fn hollow(&self) -> Option<&Hollow> {
        match &self.network {
            AnyNetwork::Hollow(hollow) => Some(hollow),
            AnyNetwork::Glass(glass) => Some(&glass.hollow),
            _ => None,
        }
    }

    /// The hollow convolution that walkers follow alone, if they jump so often for every time at which it is called that this is faster.
    fn followed_alone(&self, jumps: f64) -> Option<&Hollow> {
        self.hollow().filter(|hollow| hollow.faster_alone(jumps))
    }

    /// Places of a [`jump_worker`](Self::jump_worker).
    pub(crate) fn places(&self, jumps: f64) -> usize {
        if self.followed_alone(jumps).is_some() { 1 } else { WIDTH }
    }

    /// Space for walkers that are expected to jump so often for every time at which the network is called, in the way that is faster.
    pub(crate) fn jump_worker(&self, packed: &[f32], jumps: f64) -> JumpWorker {
        match self.followed_alone(jumps) {
            Some(hollow) => self.alone(hollow, packed),
            None => JumpWorker::Shared(Box::new(self.forward_worker())),
        }
    }

    /// Space for one walker with passes of its own.
    pub(super) fn alone(&self, hollow: &Hollow, packed: &[f32]) -> JumpWorker {
        let mut walker = Alone::new(hollow, self.conditions(), packed);
        walker.set_couplings(self.instance());
        JumpWorker::Alone(Box::new(walker))
    }

    /// Compute the outputs of the walkers in `worker`, the same to the bit in both ways.
    pub(crate) fn follow(&self, packed: &[f32], worker: &mut JumpWorker) {
        #[inline(always)]
        unsafe fn pass<L: Floats>(hollow: &Hollow, packed: &[f32], walker: &mut Alone) {
            // SAFETY: the caller has the instructions of the level.
            unsafe { hollow.follow::<L>(packed, walker) }
        }
        match (worker, self.hollow()) {
            (JumpWorker::Alone(walker), Some(hollow)) => {
                dispatch!(self.level, pass, (hollow: &Hollow, packed: &[f32], walker: &mut Alone))
            }
            (JumpWorker::Alone(_), None) => {
                unreachable!("only hollow convolutions have walkers that go alone")
            }
            (JumpWorker::Shared(worker), _) => self.forward(packed, worker),
        }
    }
}
