//! Exact answers, for everything else to be checked against.
//!
//! | method | applies to | cost |
//! |---|---|---|
//! | [`enumerate`] | any target with at most $2^{25}$ states | $q^d$ |
//! | [`transfer`] | pairwise models, and models of tables and clusters, on strips: a lattice with one short side, any couplings and fields | $q^{W}$ free, $q^{2W}$ periodic |
//! | [`kaufman`] | uniform Ising models without field on a periodic square lattice | $\min(\text{sides})$ |
//!
//! [`draw`] makes independent samples by the first two, for every target that they apply to; [`ground_state`] finds the lowest energy. [`solve`] picks one; [`known`] does so only if the answer takes well under a second.

mod band;
mod draw;
pub mod enumerate;
mod ground;
mod jet;
pub mod kaufman;
mod modes;
mod plan;
mod strip;
mod sums;
mod tables;
pub mod transfer;
mod walk;

pub use draw::{draw, quick_to_draw};
pub use ground::{Ground, GroundMethod, MAX_EFFORT, energy_bound, ground_state};

use crate::device::{NoProgress, Progress};
use crate::observe::Order;
use crate::target::Target;
use crate::{Error, Result, finite};

/// Up to this many states enumeration comes first: it gives the most and takes no time.
const FEW_STATES: u64 = 1 << 20;

/// The same for targets that are not pairwise, whose energy may be slow.
const FEW_STATES_OF_ANY_ENERGY: u64 = 1 << 12;

/// Elementary operations of the transfer matrix that take well under a second.
const LITTLE_WORK: f64 = 6e7;

/// How an exact answer was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Method {
    /// Summing over all states: [`enumerate`].
    Enumeration,
    /// Summing site by site along a strip: [`transfer`].
    TransferMatrix,
    /// The closed formula for the Ising torus: [`kaufman`].
    Kaufman,
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Method::Enumeration => "enumeration",
            Method::TransferMatrix => "transfer-matrix",
            Method::Kaufman => "kaufman",
        })
    }
}

impl std::str::FromStr for Method {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self> {
        let all = [Method::Enumeration, Method::TransferMatrix, Method::Kaufman];
        all.into_iter().find(|method| method.to_string() == word).ok_or_else(|| {
            let names = all.map(|method| method.to_string()).join(", ");
            Error::invalid("method", word, format!("one of {names}"), "leave it out")
        })
    }
}

/// Exact averages under $\rho(x) = e^{-U(x)}/Z$ with $U = \sum_k \lambda_k E_k$.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exact {
    /// Where the numbers come from.
    pub method: Method,
    /// $\log Z = \log \sum_x e^{-U(x)}$.
    pub log_z: f64,
    /// $\langle \sum_k E_k \rangle$ of the whole system.
    pub energy: f64,
    /// $\mathrm{Var}(U)$ of the whole system.
    pub potential_variance: f64,
    /// Means of the powers of the order parameter; only enumeration knows them.
    pub order: Option<Order>,
}

impl Exact {
    /// $\langle \sum_k E_k \rangle / N$.
    pub fn energy_per_site(&self, sites: usize) -> f64 {
        self.energy / sites as f64
    }

    /// $C/N = \mathrm{Var}(U)/N$, in units of Boltzmann's constant.
    pub fn heat_capacity_per_site(&self, sites: usize) -> f64 {
        self.potential_variance / sites as f64
    }

    /// $\beta N (\langle m^2\rangle - \langle |m|\rangle^2)$ for a [`symmetric`](crate::observe::symmetric) target, else
    /// with $\langle m\rangle$ for $\langle |m|\rangle$; if the order parameter is known.
    pub fn susceptibility_per_site(&self, sites: usize, beta: f64, symmetric: bool) -> Option<f64> {
        let order = self.order?;
        let level = if symmetric { order.abs } else { order.m };
        Some(beta * sites as f64 * (order.squared - level * level))
    }

    /// Binder's cumulant $1 - \langle m^4\rangle / (3 \langle m^2\rangle^2)$, if the order parameter is
    /// known.
    pub fn binder(&self) -> Option<f64> {
        let order = self.order?;
        Some(1.0 - order.fourth / (3.0 * order.squared * order.squared))
    }
}

/// Solve `target` at the weights `lambda` of its energy terms, by `method` or by the best that applies.
///
/// With `None`: enumeration up to $2^{20}$ states, else Kaufman's formula, else enumeration up to
/// $2^{25}$ states, else the transfer matrix.
///
/// # Errors
/// [`Error::NotApplicable`] with the reason, or with one for each method; [`Error::Invalid`] if `lambda`
/// is not one finite number per term; [`Error::NonFinite`] for energies that are not numbers;
/// [`Error::Interrupted`] through `progress`.
///
/// # Example
/// ```
/// use leaps::device::NoProgress;
/// use leaps::exact::{self, Method};
/// use leaps::target::{Boundary, Lattice, Pairwise};
///
/// let torus = Lattice::new(&[32, 32], Boundary::Periodic)?;
/// let ising = Pairwise::ising(torus, 1.0, 0.0)?;
/// let exact = exact::solve(&ising, &[0.4407], None, &NoProgress)?;
/// assert_eq!(exact.method, Method::Kaufman);
/// assert!((exact.log_z - 952.6674684005).abs() < 1e-9);
/// # Ok::<(), leaps::Error>(())
/// ```
pub fn solve(
    target: &dyn Target,
    lambda: &[f64],
    method: Option<Method>,
    progress: &dyn Progress,
) -> Result<Exact> {
    match method {
        Some(Method::Enumeration) => enumerate::solve(target, lambda, progress),
        Some(Method::TransferMatrix) => transfer::solve(target, lambda, progress),
        Some(Method::Kaufman) => kaufman::solve(target, lambda),
        None => {
            let few = enumerate::states(target).is_some_and(|states| states <= FEW_STATES);
            let enumeration = || enumerate::solve(target, lambda, progress);
            let formula = || kaufman::solve(target, lambda);
            let transfer = || transfer::solve(target, lambda, progress);
            if few { enumeration() } else { first_of(&[&formula, &enumeration, &transfer]) }
        }
    }
}

/// The first answer of several methods, or why none of them applies.
fn first_of(methods: &[&dyn Fn() -> Result<Exact>]) -> Result<Exact> {
    let mut reasons = Vec::new();
    for method in methods {
        match method() {
            Err(error @ Error::NotApplicable { .. }) => reasons.push(error.to_string()),
            result => return result,
        }
    }
    Err(Error::not_applicable("an exact method", reasons.join("; ")))
}

/// The exact answer if it is cheap: what is printed beside an estimate. The methods of [`solve`] with
/// limits that keep each well under a second; `None` if nothing applies or the energies are not finite.
pub fn known(target: &dyn Target, lambda: &[f64]) -> Option<Exact> {
    known_among(target, lambda, 1)
}

/// The same where so many answers are wanted that they must be cheaper: all of them take some seconds at most.
pub fn known_among(target: &dyn Target, lambda: &[f64], answers: usize) -> Option<Exact> {
    known_at(target, lambda, (10.0 / answers.max(1) as f64).min(1.0), &NoProgress)
}

/// The same with limits that are `effort` times those of [`known`]: 1 is well under a second, 20 some seconds.
pub fn known_at(
    target: &dyn Target,
    lambda: &[f64],
    effort: f64,
    progress: &dyn Progress,
) -> Option<Exact> {
    let limit = few_states(target);
    if enumerate::states(target).is_some_and(|states| states as f64 <= effort * limit as f64) {
        return enumerate::solve(target, lambda, progress).ok();
    }
    if let Ok(exact) = kaufman::solve(target, lambda) {
        return Some(exact);
    }
    if target.sites() as f64 > effort * LITTLE_WORK / 4.0 {
        return None;
    }
    let work = transfer::estimate(target).ok()?.work;
    (work <= effort * LITTLE_WORK).then(|| transfer::solve(target, lambda, progress).ok()).flatten()
}

/// Up to how many states a walk through all of them takes well under a second.
fn few_states(target: &dyn Target) -> u64 {
    match target.pairwise().is_some() || target.lattice_model().is_some() {
        true => FEW_STATES,
        false => FEW_STATES_OF_ANY_ENERGY,
    }
}

/// Refuse weights that are not one finite number per energy term.
fn check_weights(target: &dyn Target, lambda: &[f64]) -> Result<()> {
    if lambda.len() != target.terms() {
        return Err(Error::invalid(
            "lambda",
            format!("{} weights", lambda.len()),
            format!("one weight for each of the {} energy terms", target.terms()),
            "give the full list",
        ));
    }
    lambda.iter().try_for_each(|&weight| finite("lambda", weight).map(|_| ()))
}
