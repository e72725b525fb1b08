//! Training of a network so that its jump process carries the uniform distribution to the target.
//!
//! The loss is $L = \langle (K_t(x) + \partial_t F_t)^2 \rangle$ over reference states x at times t, any
//! reference being allowed (prop. thm:pinn_theorem). Reference states come from a pool of persistent walkers, each
//! held in equilibrium at its own time by heat-bath sweeps, or from rollouts of the network itself.

mod adam;
mod cpu;
mod cuda;
mod family;
mod instances;
mod loss;
mod objective;
mod pool;
mod rollout;
mod spec;
mod step;
mod trainer;

pub use adam::Optimiser;
pub use family::{Family, Member};
pub use instances::Instances;
pub use loss::{Batch, Loss};
pub use objective::Objective;
pub use pool::{Pool, PoolDraw};
pub use rollout::Buffer;
pub(crate) use spec::BATCH_OVER_INSTANCES;
pub use spec::{Decay, Reference, StartSpec, TrainSpec};
pub use step::TrainState;
pub use trainer::{StepMetrics, Trainer};
