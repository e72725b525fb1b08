//! Results, samples, models and checkpoints in files; networks that are trained in run directories, and go on from there.

mod atomic;
mod card;
mod checkpoint;
mod directory;
mod dump;
mod events;
mod instance;
mod lines;
mod meta;
mod model;
mod npz;
mod parameters;
mod sealed;
mod session;
mod setup;
mod shipped;
mod snapshot;
mod tensorboard;
mod tensors;
mod training;
mod upgrade;
mod warm;

pub use atomic::{remove_unfinished, write as write_file};
pub use card::{CARD, Card, SamplingCard, SpeedCard, TrainingCard};
pub use checkpoint::{Checkpoint, Checkpoints, Manifest, Standing, Validation};
pub use directory::{START, check_directory};
pub use events::{Event, Metrics, Observer, Stop, TimedEvent};
pub use instance::write_instance;
pub use meta::{Machine, Meta};
pub use model::{Model, ModelParts, Summary};
pub use npz::NpzWriter;
pub use setup::{Identity, Setup};
pub use shipped::{
    Found, OWN_MODELS, SETTINGS, SHIPPED, Shipped, model_names, own_models, shipped_settings,
    unknown_model,
};
pub use snapshot::Snapshot;
pub use training::{Outcome, TrainingRun};
pub use warm::{Origin, WarmStart};
