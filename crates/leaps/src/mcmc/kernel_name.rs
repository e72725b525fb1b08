//! Names of the kernels, for `--kernel` and for files. A new kernel has an entry in every list here, [`KernelName::ALL`] among them.

use std::str::FromStr;

use super::lanes::Rule;
use super::*;
use crate::target::Target;
use crate::{Error, Result};

/// The kernels by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum KernelName {
    /// [`Metropolis`](super::Metropolis).
    Metropolis,
    /// [`HeatBath`](super::HeatBath).
    HeatBath,
    /// [`Gibbs`](super::Gibbs).
    Gibbs,
    /// [`BlockGibbs`](super::BlockGibbs) with two sites.
    BlockGibbs,
    /// [`HammingBall`](super::HammingBall) with ten sites and radius 1.
    HammingBall,
    /// [`RandomWalk`](super::RandomWalk).
    RandomWalk,
    /// [`LocallyBalanced`](super::LocallyBalanced) with Barker's function.
    LocallyBalanced,
    /// [`GibbsWithGradients`](super::GibbsWithGradients).
    Gwg,
    /// [`PathAuxiliary`](super::PathAuxiliary).
    PathAuxiliary,
    /// [`DiscreteMala`](super::DiscreteMala).
    Dmala,
    /// [`DiscreteLangevin`](super::DiscreteLangevin).
    Dlmc,
    /// [`Wolff`](super::Wolff).
    Wolff,
    /// [`SwendsenWang`](super::SwendsenWang).
    SwendsenWang,
}

impl KernelName {
    /// Every kernel.
    pub const ALL: [KernelName; 13] = [
        KernelName::Metropolis,
        KernelName::HeatBath,
        KernelName::Gibbs,
        KernelName::BlockGibbs,
        KernelName::HammingBall,
        KernelName::RandomWalk,
        KernelName::LocallyBalanced,
        KernelName::Gwg,
        KernelName::PathAuxiliary,
        KernelName::Dmala,
        KernelName::Dlmc,
        KernelName::Wolff,
        KernelName::SwendsenWang,
    ];

    /// The name in configurations and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            KernelName::Metropolis => "metropolis",
            KernelName::HeatBath => "heat-bath",
            KernelName::Gibbs => "gibbs",
            KernelName::BlockGibbs => "block-gibbs",
            KernelName::HammingBall => "hamming-ball",
            KernelName::RandomWalk => "random-walk",
            KernelName::LocallyBalanced => "locally-balanced",
            KernelName::Gwg => "gwg",
            KernelName::PathAuxiliary => "path-auxiliary",
            KernelName::Dmala => "dmala",
            KernelName::Dlmc => "dlmc",
            KernelName::Wolff => "wolff",
            KernelName::SwendsenWang => "swendsen-wang",
        }
    }

    /// The kernels that GPUs have.
    pub const ON_GPU: [KernelName; 2] = [KernelName::HeatBath, KernelName::Metropolis];

    /// How tables move many states at once as this kernel does, if there are tables for it.
    pub fn rule(self) -> Option<Rule> {
        match self {
            KernelName::HeatBath => Some(Rule::HeatBath),
            KernelName::Metropolis => Some(Rule::Metropolis),
            _ => None,
        }
    }

    /// What one step does, in a line.
    pub const fn description(self) -> &'static str {
        match self {
            KernelName::Metropolis => "sweep of Metropolis proposals, site by site",
            KernelName::HeatBath => "sweep of conditional draws, site by site",
            KernelName::Gibbs => "conditional draw of one site, the sites in turn (DISCS)",
            KernelName::BlockGibbs => "joint conditional draw of two sites (DISCS)",
            KernelName::HammingBall => "draw from a ball of single changes in ten sites (DISCS)",
            KernelName::RandomWalk => "blind flips of a few random sites, number adapted",
            KernelName::LocallyBalanced => "one flip chosen by Barker-balanced weights",
            KernelName::Gwg => "one flip chosen by square-root weights (Gibbs with gradients)",
            KernelName::PathAuxiliary => "path of informed flips, length adapted",
            KernelName::Dmala => "informed proposal at all sites (discrete MALA), step adapted",
            KernelName::Dlmc => "jump process of all sites for a time step (DLMC), step adapted",
            KernelName::Wolff => "one cluster of a pairwise model, any fields",
            KernelName::SwendsenWang => "all clusters of a pairwise model, any fields",
        }
    }

    /// Bytes of one copy of the kernel for a target, about. Every walker and every chain at work has one.
    pub fn bytes(self, target: &dyn Target) -> usize {
        let (sites, numbers) = (target.sites(), 8 * target.sites() * target.q());
        let bonds: usize = match (target.pairwise(), target.lattice_model()) {
            (Some(p), _) => (0..sites).map(|site| p.neighbours(site).len()).sum(),
            (None, model) => model.map_or(0, |model| 2 * model.clusters()),
        };
        let neighbours = numbers + sites;
        let clusters = bonds * (13 + 8 * target.terms()) + numbers + 12 * sites;
        match self {
            KernelName::Metropolis | KernelName::HeatBath | KernelName::Gibbs => 0,
            KernelName::BlockGibbs | KernelName::HammingBall => 0,
            KernelName::RandomWalk => 6 * sites,
            KernelName::LocallyBalanced | KernelName::Gwg => 2 * (neighbours + numbers),
            KernelName::PathAuxiliary => 2 * neighbours + numbers + 10 * sites,
            KernelName::Dmala | KernelName::Dlmc => 2 * (neighbours + sites),
            KernelName::Wolff => clusters,
            KernelName::SwendsenWang => clusters + 8 * bonds + numbers,
        }
    }
}

impl std::fmt::Display for KernelName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for KernelName {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|name| name.as_str() == word).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|name| name.as_str()).collect();
            Error::invalid(
                "kernel",
                word,
                format!("one of {}", names.join(", ")),
                "check the spelling",
            )
        })
    }
}

macro_rules! any_kernel {
    ($($name:ident($kernel:ty)),* $(,)?) => {
        /// Any one of the kernels.
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        pub enum AnyKernel {
            $(
                #[doc = concat!("[`", stringify!($kernel), "`].")]
                $name($kernel),
            )*
        }

        impl Kernel for AnyKernel {
            fn step<D: Draw>(&mut self, model: &Density<'_>, x: &mut [u8], draw: &mut D) -> Info {
                match self { $(AnyKernel::$name(kernel) => kernel.step(model, x, draw),)* }
            }

            fn adapt(&mut self, info: &Info) {
                match self { $(AnyKernel::$name(kernel) => kernel.adapt(info),)* }
            }

            fn step_size(&mut self) -> Option<&mut StepSize> {
                match self { $(AnyKernel::$name(kernel) => kernel.step_size(),)* }
            }

            fn energy_calls(&self, q: usize) -> f64 {
                match self { $(AnyKernel::$name(kernel) => kernel.energy_calls(q),)* }
            }

            fn reversible(&self) -> bool {
                match self { $(AnyKernel::$name(kernel) => kernel.reversible(),)* }
            }
        }

        $(
            impl From<$kernel> for AnyKernel {
                fn from(kernel: $kernel) -> Self {
                    AnyKernel::$name(kernel)
                }
            }
        )*
    };
}

any_kernel! {
    Metropolis(Metropolis),
    HeatBath(HeatBath),
    Gibbs(Gibbs),
    BlockGibbs(BlockGibbs),
    HammingBall(HammingBall),
    RandomWalk(RandomWalk),
    LocallyBalanced(LocallyBalanced),
    Gwg(GibbsWithGradients),
    PathAuxiliary(PathAuxiliary),
    Dmala(DiscreteMala),
    Dlmc(DiscreteLangevin),
    Wolff(Wolff),
    SwendsenWang(SwendsenWang),
}

impl AnyKernel {
    /// The kernel called `name` for a target with its usual settings. `lambda` are the final weights:
    /// cluster kernels choose their clusters by its couplings there, and refuse what has none.
    pub fn new(name: KernelName, target: &dyn Target, lambda: &[f64]) -> Result<Self> {
        let radius = 2f64.min(target.sites() as f64);
        Ok(match name {
            KernelName::Metropolis => Metropolis::new(target)?.into(),
            KernelName::HeatBath => HeatBath::new(target)?.into(),
            KernelName::Gibbs => Gibbs::new(target)?.into(),
            KernelName::BlockGibbs => BlockGibbs::new(target, 2)?.into(),
            KernelName::HammingBall => HammingBall::new(target, 10, 1)?.into(),
            KernelName::RandomWalk => RandomWalk::new(target, 1.0)?.into(),
            KernelName::LocallyBalanced => LocallyBalanced::new(target, Balance::Barker)?.into(),
            KernelName::Gwg => GibbsWithGradients::new(target)?.into(),
            KernelName::PathAuxiliary => PathAuxiliary::new(target, radius)?.into(),
            KernelName::Dmala => DiscreteMala::new(target, None)?.into(),
            KernelName::Dlmc => DiscreteLangevin::new(target, None)?.into(),
            KernelName::Wolff => Wolff::new(target, lambda)?.into(),
            KernelName::SwendsenWang => SwendsenWang::new(target, lambda)?.into(),
        })
    }

    /// Its name.
    pub fn name(&self) -> KernelName {
        match self {
            AnyKernel::Metropolis(_) => KernelName::Metropolis,
            AnyKernel::HeatBath(_) => KernelName::HeatBath,
            AnyKernel::Gibbs(_) => KernelName::Gibbs,
            AnyKernel::BlockGibbs(_) => KernelName::BlockGibbs,
            AnyKernel::HammingBall(_) => KernelName::HammingBall,
            AnyKernel::RandomWalk(_) => KernelName::RandomWalk,
            AnyKernel::LocallyBalanced(_) => KernelName::LocallyBalanced,
            AnyKernel::Gwg(_) => KernelName::Gwg,
            AnyKernel::PathAuxiliary(_) => KernelName::PathAuxiliary,
            AnyKernel::Dmala(_) => KernelName::Dmala,
            AnyKernel::Dlmc(_) => KernelName::Dlmc,
            AnyKernel::Wolff(_) => KernelName::Wolff,
            AnyKernel::SwendsenWang(_) => KernelName::SwendsenWang,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_as_they_are_written() {
        for name in KernelName::ALL {
            assert_eq!(name.as_str().parse::<KernelName>().unwrap(), name);
            assert_eq!(serde_json::to_string(&name).unwrap(), format!("\"{name}\""));
        }
        assert!("glauber".parse::<KernelName>().unwrap_err().to_string().contains("heat-bath"));
    }
}
