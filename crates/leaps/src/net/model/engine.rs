//! Say where a network is computed and how exactly, and put it on a card.

#[cfg(feature = "cuda")]
use std::sync::Arc;

#[cfg(feature = "cuda")]
use super::AnyNetwork;
use super::Net;
#[cfg(feature = "cuda")]
use crate::Result;
#[cfg(feature = "cuda")]
use crate::device::cuda::{Card, memory::counted};
use crate::device::{Engine, Precision};
#[cfg(feature = "cuda")]
use crate::net::card::CardNetwork;

impl Net {
    /// The network on a card, for batches of up to `lanes`.
    #[cfg(feature = "cuda")]
    pub(crate) fn on_card(
        &self,
        card: &Arc<Card>,
        lanes: usize,
        precision: Precision,
    ) -> Result<Box<dyn CardNetwork>> {
        if self.conditions > 0 {
            return Err(crate::train::Ranges::no_card());
        }
        match &self.network {
            AnyNetwork::Mlp(network) => network.on_card(card, lanes, precision),
            AnyNetwork::Lea(network) => network.on_card(card, lanes, precision),
            AnyNetwork::Lec(network) => network.on_card(card, lanes, precision),
            AnyNetwork::Hollow(network) => network.on_card(self.tokens, card, lanes, precision),
            AnyNetwork::HollowGraph(network) => network.on_card(card, lanes, precision),
        }
    }

    /// Where the network is computed, in words: the processor, or a card and how exactly the network is computed there.
    pub fn computed_on(&self, engine: &Engine) -> String {
        match self.precision_on(engine) {
            Some(precision) => format!("{}, {}", engine.machine(), precision.name()),
            None => engine.machine().to_owned(),
        }
    }

    /// How exactly the network is computed on a card, which may be more exact than what was asked for.
    pub fn precision_on(&self, engine: &Engine) -> Option<Precision> {
        match engine {
            Engine::Cpu => None,
            #[cfg(feature = "cuda")]
            Engine::Cuda(_, Precision::Float32) => Some(Precision::Float32),
            #[cfg(feature = "cuda")]
            Engine::Cuda(card, _) => Some(match &self.network {
                AnyNetwork::Lec(_) => Precision::Tf32,
                AnyNetwork::Hollow(network) if network.uses_matrix_units(self.tokens, card) => {
                    Precision::Bf16
                }
                _ => Precision::Float32,
            }),
        }
    }

    /// Bytes that the network takes on a card: beside its lanes, and for every lane. With `backward`, for training.
    #[cfg(feature = "cuda")]
    pub(crate) fn card_bytes(
        &self,
        card: &Arc<Card>,
        precision: Precision,
        backward: bool,
    ) -> Result<(usize, usize)> {
        let bytes = |lanes| {
            counted(|| {
                let mut network = self.on_card(card, lanes, precision)?;
                if backward { network.reserve() } else { Ok(()) }
            })
        };
        // Beyond some hundred lanes nothing grows but what lanes need.
        let (few, many) = (bytes(1024)?, bytes(2048)?);
        let each = (many - few).div_ceil(1024);
        Ok((few.saturating_sub(1024 * each), each))
    }

    /// Compile the network's kernels, where there is a compiler.
    #[cfg(all(test, feature = "cuda"))]
    pub(crate) fn compiles(&self) {
        match &self.network {
            AnyNetwork::Mlp(network) => network.compiles(),
            AnyNetwork::Lea(network) => network.compiles(),
            AnyNetwork::Lec(network) => network.compiles(),
            AnyNetwork::HollowGraph(network) => network.compiles(),
            AnyNetwork::Hollow(_) => {}
        }
    }
}
