//! Targets: what to sample.
//!
//! A state is a slice of `sites` values in `0..q`. Implement [`Target`] for any energy; the
//! pairwise models of physics are all one type, [`Pairwise`], with constructors in the modules
//! named after them; those with other tables or with clusters of more sites are [`LatticeModel`].

mod batched;
mod boltzmann;
mod bonds;
mod colouring;
pub(crate) mod cuda;
mod glass;
mod graph;
mod identity;
mod instance;
mod lattice;
mod lattice_model;
mod pairwise;
mod spec;

pub use batched::{BatchChanges, BatchEnergies, BatchEnergy};
#[cfg(test)]
pub(crate) use bonds::testing::on_shells;
pub use bonds::{Bond, Bravais, Couplings};
pub use colouring::Colouring;
pub use glass::Disorder;
pub use graph::{EdgeWeights, Graph};
pub use identity::TargetIdentity;
pub(crate) use instance::{FIELD, OFFSET};
pub use instance::{Format, Instance, PlacedBonds, Variables};
pub use lattice::{Boundary, Lattice};
pub use lattice_model::{ClusterTable, LatticeModel, SiteMean};
pub use pairwise::{Interaction, Pairwise, Term};
pub use spec::{
    Bonds, Described, Field, Geometry, InteractionSpec, Interactions, Kind, Size, Spins,
    TargetSpec, printed, undescribed, unprinted,
};

use crate::device::{Draw, Purpose, Stream};
use crate::{Error, Result};

/// The pairwise model that a target is: GPUs have no other energies.
pub(crate) fn pairwise_for_gpu(target: &dyn Target) -> Result<&Pairwise> {
    target.pairwise().ok_or_else(|| {
        let reason = match target.lattice_model() {
            Some(_) => "the tables of the target are not those of Potts pairs; use the device cpu",
            None => "the target is not pairwise; use the device cpu",
        };
        Error::not_applicable("a GPU", reason)
    })
}

/// A distribution over `sites` values, known up to a constant through its energy terms:
/// `rho(x) ~ exp(-sum_k lambda_k E_k(x))`.
///
/// Only [`sites`](Target::sites), [`q`](Target::q) and [`energy`](Target::energy) must be
/// written; the other methods have defaults that are right for any energy, and can be replaced by
/// faster ones. States lent as `&mut` are for trial moves and are given back as they were.
///
/// # Example
/// A one-dimensional chain in which equal neighbours three apart attract:
/// ```
/// use leaps::target::Target;
///
/// struct Chain(usize);
///
/// impl Target for Chain {
///     fn sites(&self) -> usize { self.0 }
///     fn q(&self) -> usize { 3 }
///     fn energy(&self, _term: usize, x: &[u8]) -> f64 {
///         -(x.windows(4).filter(|w| w[0] == w[3]).count() as f64)
///     }
/// }
///
/// let chain = Chain(6);
/// assert_eq!(chain.energy(0, &[1, 0, 2, 1, 0, 1]), -2.0);
/// assert_eq!(chain.change(&[0.5], &mut [1, 0, 2, 1, 0, 1], 0, 2), 0.5);
/// ```
pub trait Target: Send + Sync {
    /// Number of sites, `d`.
    fn sites(&self) -> usize;

    /// Number of values per site, `q`, from 2 to 255.
    fn q(&self) -> usize;

    /// Number of energy terms.
    fn terms(&self) -> usize {
        1
    }

    /// What the target is called in results and models.
    fn name(&self) -> String {
        let path = std::any::type_name::<Self>();
        path.rsplit("::").next().unwrap_or(path).to_owned()
    }

    /// What the target is, for models: a custom energy of this name, unless it says otherwise. A model is used with the version it was trained on.
    fn identity(&self) -> TargetIdentity {
        TargetIdentity::Custom { name: self.name(), version: None }
    }

    /// A word for term `term`, used as a name in outputs and configurations.
    fn term_name(&self, term: usize) -> String {
        format!("energy{term}")
    }

    /// The words for all terms.
    fn term_names(&self) -> Vec<String> {
        (0..self.terms()).map(|term| self.term_name(term)).collect()
    }

    /// The energy term `E_term(x)`.
    fn energy(&self, term: usize, x: &[u8]) -> f64;

    /// The change of `sum_k lambda_k E_k` when `site` becomes `value`.
    fn change(&self, lambda: &[f64], x: &mut [u8], site: usize, value: u8) -> f64 {
        let old = x[site];
        let before = potential(self, lambda, x);
        x[site] = value;
        let after = potential(self, lambda, x);
        x[site] = old;
        after - before
    }

    /// All neighbours' changes at once: `out[site * q + value]`, 0 at the value in place.
    fn changes(&self, lambda: &[f64], x: &mut [u8], out: &mut [f64]) {
        let q = self.q();
        let before = potential(self, lambda, x);
        for site in 0..self.sites() {
            let old = x[site];
            for value in 0..q {
                out[site * q + value] = if value as u8 == old {
                    0.0
                } else {
                    x[site] = value as u8;
                    potential(self, lambda, x) - before
                };
            }
            x[site] = old;
        }
    }

    /// Bring `out`, the [`changes`](Target::changes) of a state, up to date after its value at `site` was changed: all of them, unless a target knows
    /// which ones differ now.
    fn changes_after(&self, lambda: &[f64], x: &mut [u8], _site: usize, out: &mut [f64]) {
        self.changes(lambda, x, out);
    }

    /// The changes of `sum_k lambda_k E_k` when `site` becomes any value: `out[value]`, 0 at the value in place.
    fn site_changes(&self, lambda: &[f64], x: &mut [u8], site: usize, out: &mut [f64]) {
        for (value, out) in out.iter_mut().enumerate() {
            let value = value as u8;
            *out = if value == x[site] { 0.0 } else { self.change(lambda, x, site, value) };
        }
    }

    /// Whether many states at once are cheaper than one after the other, as on an accelerator or through another language. Walkers are then moved
    /// in lockstep where the kernel allows (heat bath and Metropolis), site by site, by [`changes_many`](Target::changes_many) and
    /// [`energies`](Target::energies).
    fn prefers_batches(&self) -> bool {
        false
    }

    /// The energy terms of many states, `[state * sites + site]`: `out[state * terms + term]`.
    fn energies(&self, states: &[u8], out: &mut [f64]) -> Result<()> {
        let rows = out.chunks_exact_mut(self.terms());
        for (x, row) in states.chunks_exact(self.sites()).zip(rows) {
            row.iter_mut().enumerate().for_each(|(term, out)| *out = self.energy(term, x));
        }
        Ok(())
    }

    /// The changes of `sum_k lambda_k E_k` when `site` becomes any value, in many states: `out[state * q + value]`, 0 at the value in place. States are
    /// given back as they were.
    fn changes_many(
        &self,
        lambda: &[f64],
        states: &mut [u8],
        site: usize,
        out: &mut [f64],
    ) -> Result<()> {
        let rows = out.chunks_exact_mut(self.q());
        for (x, row) in states.chunks_exact_mut(self.sites()).zip(rows) {
            self.site_changes(lambda, x, site, row);
        }
        Ok(())
    }

    /// The lattice the sites live on, if any: needed for correlation functions.
    fn lattice(&self) -> Option<&Lattice> {
        None
    }

    /// This target as a pairwise model, if it is one: opens the fast and the cluster kernels.
    fn pairwise(&self) -> Option<&Pairwise> {
        None
    }

    /// This target as a model of tables over clusters, if it is one: opens quick exact sums and its own order parameter.
    fn lattice_model(&self) -> Option<&LatticeModel> {
        None
    }
}

/// The potential `sum_k lambda_k E_k(x)`. Terms of weight 0 are not evaluated.
pub fn potential<T: Target + ?Sized>(target: &T, lambda: &[f64], x: &[u8]) -> f64 {
    let mut sum = 0.0;
    for (term, &weight) in lambda.iter().enumerate() {
        if weight != 0.0 {
            sum += weight * target.energy(term, x);
        }
    }
    sum
}

/// A target at fixed weights of its terms: one distribution of a path.
#[derive(Clone, Copy)]
pub struct Density<'a> {
    /// The target.
    pub target: &'a dyn Target,
    /// The weight of each energy term; `lambda.len() == target.terms()`.
    pub lambda: &'a [f64],
}

impl<'a> Density<'a> {
    /// The distribution proportional to `exp(-sum_k lambda_k E_k)`.
    pub fn new(target: &'a dyn Target, lambda: &'a [f64]) -> Self {
        assert_eq!(lambda.len(), target.terms(), "one weight per energy term");
        Density { target, lambda }
    }

    /// Number of sites.
    pub fn sites(&self) -> usize {
        self.target.sites()
    }

    /// Number of values per site.
    pub fn q(&self) -> usize {
        self.target.q()
    }

    /// The potential `U(x)`, so that `rho(x) ~ exp(-U(x))`.
    pub fn potential(&self, x: &[u8]) -> f64 {
        potential(self.target, self.lambda, x)
    }

    /// The change of `U` when `site` becomes `value`.
    pub fn change(&self, x: &mut [u8], site: usize, value: u8) -> f64 {
        self.target.change(self.lambda, x, site, value)
    }

    /// The changes of `U` when `site` becomes any value: `out[value]`.
    pub fn site_changes(&self, x: &mut [u8], site: usize, out: &mut [f64]) {
        self.target.site_changes(self.lambda, x, site, out)
    }

    /// All neighbours' changes of `U`: `out[site * q + value]`.
    pub fn changes(&self, x: &mut [u8], out: &mut [f64]) {
        self.target.changes(self.lambda, x, out)
    }
}

/// Walker `walker`'s initial state: uniform over all states.
pub(crate) fn initial_state(target: &dyn Target, seed: u64, walker: u32) -> Vec<u8> {
    let mut stream = Stream::new(seed, Purpose::Initial, walker, 0);
    (0..target.sites()).map(|_| stream.below(target.q()) as u8).collect()
}

/// A state, shortened for messages.
pub fn show_state(x: &[u8]) -> String {
    let shown: Vec<String> = x.iter().take(64).map(u8::to_string).collect();
    format!("[{}{}]", shown.join(","), if x.len() > 64 { ",..." } else { "" })
}
