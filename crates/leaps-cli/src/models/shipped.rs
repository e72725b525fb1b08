//! The models that the program brings along: the folder `models/` of the repository, read when the program is built.

use std::path::Path;

use anyhow::Result;
use leaps::store::Model;

use super::card::Card;

/// The files of a model.
pub struct Shipped {
    pub name: &'static str,
    card: &'static str,
    description: &'static [u8],
    tensors: &'static [u8],
}

/// All of them, by name.
pub const SHIPPED: &[Shipped] = include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

impl Shipped {
    /// The model of this name, if the program has it.
    pub fn find(name: &str) -> Option<&'static Shipped> {
        SHIPPED.iter().find(|shipped| shipped.name == name)
    }

    /// The network.
    pub fn model(&self) -> leaps::Result<Model> {
        Model::from_bytes(&Path::new("models").join(self.name), self.description, self.tensors)
    }

    /// What is known about it.
    pub fn card(&self) -> Result<Card> {
        Card::parse(self.card, &Path::new("models").join(self.name))
    }
}
