//! Let walkers follow a network wherever it is computed.

use super::flow_walkers::{Flow, FlowWalkers, Stepper};
use super::population::Population;
use crate::Result;
use crate::device::Engine;
use crate::path::Path;
use crate::target::Target;

/// Walkers that follow a network.
pub trait Followers: Population {
    /// Network passes per walker so far.
    fn passes(&self) -> Result<f64>;
}

impl Followers for FlowWalkers<'_> {
    fn passes(&self) -> Result<f64> {
        Ok(FlowWalkers::passes(self))
    }
}

#[cfg(feature = "cuda")]
impl Followers for super::card_walkers::CardWalkers<'_> {
    fn passes(&self) -> Result<f64> {
        super::card_walkers::CardWalkers::passes(self)
    }
}

/// `walkers` walkers in uniformly random states, on `engine`; `durations` from [`flow_grid`](super::flow_grid).
pub fn followers<'a>(
    engine: &Engine,
    target: &'a dyn Target,
    path: &'a Path,
    flow: &'a Flow<'a>,
    stepper: Stepper,
    durations: Vec<f64>,
    sweeps: u64,
    walkers: usize,
    seed: u64,
) -> Result<Box<dyn Followers + 'a>> {
    match engine {
        Engine::Cpu => Ok(Box::new(FlowWalkers::new(
            target, path, flow, stepper, durations, sweeps, walkers, seed,
        )?)),
        #[cfg(feature = "cuda")]
        Engine::Cuda(card, precision) => {
            use super::card_sweeps::KEY;
            use super::card_walkers::{CardFlow, CardWalkers, FEWEST_LANES, LANES};
            use crate::device::cuda::memory::fitting;
            use crate::target::card::CardTarget;
            let (fixed, each) = flow.net.card_bytes(card, *precision, false)?;
            let lane = each + CardWalkers::bytes_per_lane(target);
            let walker = CardWalkers::bytes_per_walker(target);
            let few = fixed + walkers.min(FEWEST_LANES) * lane;
            card.with_room(KEY, walkers, (few, walker), || {
                // With less memory, fewer at a time.
                let room = fitting(fixed + walkers * walker, lane, card.free_memory()?);
                let lanes = walkers.min(LANES).min(room.max(FEWEST_LANES));
                let mut network = flow.net.on_card(card, lanes, *precision)?;
                network.refresh(&card.upload(&flow.parameters)?)?;
                let on_card = std::sync::Arc::new(CardTarget::new(card, target)?);
                let there = CardFlow { network, lanes, parametrisation: flow.parametrisation };
                let made: Box<dyn Followers> = Box::new(CardWalkers::new(
                    target, &on_card, path, there, stepper, durations, sweeps, walkers, seed,
                )?);
                Ok(made)
            })
        }
    }
}
