//! The names that most programs need: `use leaps::prelude::*`.

pub use crate::device::{Device, NoProgress, Progress};
pub use crate::exact::Method;
pub use crate::job::{
    Annealing, Chains, Context, FreeEnergies, FreeEnergyMethod, MinimizeMethod, Minimizing, Run,
    Sampling, Solving, Training,
};
pub use crate::mcmc::{KernelName, Move};
pub use crate::net::{NetworkKind, NetworkOptions};
pub use crate::observe::{Estimate, Observables};
pub use crate::problem::{
    AshkinTeller, BaxterWu, BlumeCapel, Clock, Clusters, EdgeList, IndependentSet, Ising,
    LatticeGas, MaxCut, Potts, Problem, SpinGlass,
};
pub use crate::store::Model;
pub use crate::target::{Boundary, Lattice, Target};
