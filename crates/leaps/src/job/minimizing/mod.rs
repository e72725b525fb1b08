//! Minimisation: the lowest energy of a target and a state that has it, by restarts of annealing, tempering or a network.

mod descent;
mod range;
mod restart_progress;
mod rounding;
mod rounds;
mod settings;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use super::{Context, Monitor, Run, Samples};
use crate::device::{NoProgress, Progress, StopOnly};
use crate::exact::{self, MAX_EFFORT};
use crate::file::checksum;
use crate::parse::at_least;
use crate::problem::Problem;
use crate::results::{Computed, FoundResult, Lowest, MinimumResult, RestartResult};
use crate::spec::SEED;
use crate::store::Model;
use crate::target::{Graph, Kind, initial_state};
use crate::{Error, Result};

use descent::descend;
pub use range::BetaRange;
use restart_progress::RestartProgress;
use rounding::Rounding;
pub use settings::{MinimizeMethod, MinimizeSpec};

/// Restarts if nothing else says when to end.
const USUAL_RESTARTS: usize = 10;

/// The search for the lowest energy, in independent restarts. Every state that is found is improved by single changes until none is left.
///
/// ```
/// use leaps::prelude::*;
///
/// let glass = SpinGlass::square(10, 1).boundary(Boundary::Free).beta(1.0)?;
/// let run = Minimizing::new(glass).restarts(2).run()?;
/// assert!(run.proven && run.lowest.energy < -120.0);
/// # Ok::<(), leaps::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Minimizing {
    /// Whose energy; its temperature is not used.
    pub problem: Problem,
    /// How to look, and how often.
    pub settings: MinimizeSpec,
    /// The network, and how the user knows it.
    pub model: Option<(Model, String)>,
    /// The coldest inverse temperature; chosen by the energy changes of the target if it is left out.
    pub beta: Option<f64>,
    /// How long to go on.
    pub time_limit: Option<Duration>,
    /// The seed of all restarts.
    pub seed: u64,
}

impl Minimizing {
    /// Ten restarts of whatever suits the target.
    pub fn new(problem: Problem) -> Self {
        Minimizing {
            problem,
            settings: MinimizeSpec::default(),
            model: None,
            beta: None,
            time_limit: None,
            seed: SEED,
        }
    }

    /// How to look.
    pub fn method(mut self, method: MinimizeMethod) -> Self {
        self.settings.method = method;
        self
    }

    /// Walkers of a restart.
    pub fn walkers(mut self, walkers: usize) -> Self {
        self.settings.walkers = walkers;
        self
    }

    /// Sweeps of each walker in a restart.
    pub fn sweeps(mut self, sweeps: usize) -> Self {
        self.settings.sweeps = sweeps;
        self
    }

    /// So many restarts.
    pub fn restarts(mut self, restarts: usize) -> Self {
        self.settings.restarts = Some(restarts);
        self
    }

    /// Restarts until so much time is over.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = Some(limit);
        self
    }

    /// Restarts until an energy at most this is found.
    pub fn target_energy(mut self, energy: f64) -> Self {
        self.settings.target_energy = Some(energy);
        self
    }

    settings!(seed);

    /// Refuse settings that mean nothing.
    pub fn check(&self) -> Result<()> {
        at_least(
            "minimize.walkers",
            self.settings.walkers,
            1,
            1 << 24,
            "64 run about as fast as one",
        )?;
        at_least("minimize.sweeps", self.settings.sweeps, 1, 1 << 40, "1000 is usual")?;
        at_least(
            "minimize.temperatures",
            self.settings.temperatures,
            2,
            10_000,
            "a ladder has two ends",
        )?;
        if self.settings.restarts == Some(0) {
            return Err(Error::invalid(
                "minimize.restarts",
                0,
                "at least 1",
                "leave it out for 10",
            ));
        }
        if let Some(beta) = self.beta.filter(|beta| !(*beta > 0.0 && beta.is_finite())) {
            let advice = "leave it out to have it chosen";
            return Err(Error::invalid("target.beta", beta, "above 0 and finite", advice));
        }
        if let Some(energy) = self.settings.target_energy.filter(|energy| energy.is_nan()) {
            let advice = "give the energy of the whole system";
            return Err(Error::invalid("minimize.target_energy", energy, "a number", advice));
        }
        match (self.settings.method, &self.model) {
            (MinimizeMethod::Network, None) => Err(Error::invalid(
                "minimize.method",
                "network",
                "used beside a model",
                "name one, or use annealing",
            )),
            (MinimizeMethod::Auto | MinimizeMethod::Network, _) | (_, None) => Ok(()),
            (method, Some(_)) => Err(Error::invalid(
                "minimize.method",
                method,
                "network or auto beside a model",
                "leave one of them out",
            )),
        }
    }

    /// Look on the CPU.
    pub fn run(&self) -> Result<Run<MinimumResult>> {
        self.run_in(&Context::default(), &NoProgress)
    }

    /// Look on the CPU while somebody watches; a context that asks for a GPU is refused. A stop, by time or by whoever watches, keeps what was found.
    pub fn run_in(
        &self,
        context: &Context<'_>,
        monitor: &dyn Monitor,
    ) -> Result<Run<MinimumResult>> {
        self.check()?;
        let computed = context.place_on_cpu("lowest energies are looked for")?;
        let mut run = context.install(|| self.run_here(context.progress, monitor))?;
        run.computed = computed;
        Ok(run)
    }

    fn run_here(
        &self,
        progress: &dyn Progress,
        monitor: &dyn Monitor,
    ) -> Result<Run<MinimumResult>> {
        let graph = self.graph()?;
        let target = &*self.problem.target;
        let start = Instant::now();
        let effort = if self.settings.method == MinimizeMethod::Exact { MAX_EFFORT } else { 1.0 };
        let ground = match exact::ground_state(target, effort, &StopOnly(progress)) {
            Ok(ground) => Some(ground),
            Err(error @ Error::Interrupted) => return Err(error),
            Err(error) if self.settings.method == MinimizeMethod::Exact => return Err(error),
            Err(_) => None,
        };
        let method = match (self.settings.method, &ground) {
            (MinimizeMethod::Auto, _) if self.model.is_some() => MinimizeMethod::Network,
            (MinimizeMethod::Auto, Some(_)) => MinimizeMethod::Exact,
            (MinimizeMethod::Auto, None) => MinimizeMethod::Annealing,
            (method, _) => method,
        };
        let rounding = Rounding::of(target);
        let mut search = Search::new(rounding);
        let mut range = None;
        let ended_by = if let (MinimizeMethod::Exact, Some(ground)) = (method, &ground) {
            search.take(self.seed, &[(ground.energy, &ground.state)], start.elapsed());
            "exact"
        } else {
            if method != MinimizeMethod::Network {
                range = Some(BetaRange::of(target, self.seed, self.beta)?);
            }
            self.search(method, range, &mut search, (progress, monitor))?
        };
        let energy = search.energy;
        let (proof, optimum) = match ground {
            Some(ground) => (Some(ground.method.to_string()), Some(ground.energy)),
            None => {
                let bound = match (target.lattice_model(), target.pairwise()) {
                    (Some(model), _) => Some(model.energy_bound()),
                    (None, model) => model.map(exact::energy_bound),
                };
                let bound = bound.filter(|bound| rounding.same(energy, *bound));
                (bound.map(|_| "bound".to_owned()), bound)
            }
        };
        let walks = !matches!(method, MinimizeMethod::Exact);
        let ladder = matches!(method, MinimizeMethod::Tempering | MinimizeMethod::Houdayer);
        let result = MinimumResult {
            seed: self.seed,
            method: method.to_string(),
            model: self.model.as_ref().map(|(_, name)| name.clone()),
            walkers: if walks { self.settings.walkers } else { 1 },
            sweeps: if walks { self.settings.sweeps } else { 0 },
            temperatures: ladder.then_some(self.settings.temperatures),
            beta_hot: range.map(|range| range.hot),
            beta_cold: range.map(|range| range.cold),
            cut: graph
                .as_ref()
                .filter(|(kind, _)| *kind == Kind::Maxcut)
                .map(|g| g.1.cut(&search.state)),
            set_size: graph
                .as_ref()
                .filter(|(kind, _)| *kind == Kind::IndependentSet)
                .and_then(|(_, graph)| graph.independent(&search.state)),
            lowest: Lowest::new(energy, &search.state, target.q()),
            found: search.found(),
            proven: optimum.is_some_and(|optimum| rounding.reaches(energy, optimum)),
            proof,
            optimum,
            target_energy: self.settings.target_energy,
            ended_by: ended_by.to_owned(),
            restarts: search.restarts,
            seconds_of_restarts: search.seconds,
            seconds_to_best: search.to_best.as_secs_f64(),
            seconds: start.elapsed().as_secs_f64(),
        };
        Ok(Run { result, samples: search.samples, computed: Computed::on_cpu() })
    }

    /// Restart until there is a reason to end, which is returned.
    fn search(
        &self,
        method: MinimizeMethod,
        range: Option<BetaRange>,
        search: &mut Search,
        (progress, monitor): (&dyn Progress, &dyn Monitor),
    ) -> Result<&'static str> {
        let target = &*self.problem.target;
        let start = Instant::now();
        let most = match (self.settings.restarts, self.time_limit, self.settings.target_energy) {
            (None, None, None) => Some(USUAL_RESTARTS),
            (most, ..) => most,
        };
        let restarts = RestartProgress::new(progress, self.time_limit, most);
        loop {
            let number = search.restarts.len();
            let seed = self.seed_of(number);
            restarts.begin();
            let round = match self.round(method, range, seed, &restarts) {
                // The first restart was stopped before it had anything to show.
                Err(Error::Interrupted) if number == 0 => rounds::Round {
                    states: (0..self.settings.walkers as u32)
                        .flat_map(|walker| initial_state(target, seed, walker))
                        .collect(),
                    unfinished: true,
                },
                Err(Error::Interrupted) => return Ok(restarts.reason()),
                round => round?,
            };
            let mut states = round.states;
            let energies = descend(target, &mut states)?;
            let found: Vec<(f64, &[u8])> =
                energies.into_iter().zip(states.chunks_exact(target.sites())).collect();
            let better = search.take(seed, &found, start.elapsed());
            if let Some(last) = search.restarts.last_mut() {
                last.unfinished = round.unfinished;
                let text = format!(
                    "restart {}: energy {}, found by {} of {} walkers, {:.2} s",
                    number + 1,
                    last.energy,
                    last.found,
                    last.walkers,
                    start.elapsed().as_secs_f64()
                );
                if better { monitor.note(&text) } else { monitor.detail(&text) }
            }
            restarts.end();
            if self.settings.target_energy.is_some_and(|wanted| {
                search.energy <= wanted || search.rounding.same(search.energy, wanted)
            }) {
                return Ok("target-energy");
            }
            if restarts.stopped() {
                return Ok(restarts.reason());
            }
            if most.is_some_and(|most| search.restarts.len() >= most) {
                return Ok("restarts");
            }
        }
    }

    /// The graph of a problem on one.
    fn graph(&self) -> Result<Option<(Kind, Graph)>> {
        let Some(spec) = &self.problem.spec else { return Ok(None) };
        match spec.kind {
            Some(kind @ (Kind::Maxcut | Kind::IndependentSet)) => Ok(Some((kind, spec.graph()?))),
            _ => Ok(None),
        }
    }

    /// The seed of a restart: independent of the others', and of those of other seeds.
    fn seed_of(&self, restart: usize) -> u64 {
        let digits = checksum(format!("{}\nrestart {restart}", self.seed).as_bytes());
        u64::from_str_radix(&digits[..13], 16).unwrap_or(restart as u64)
    }
}

/// What has been found so far.
struct Search {
    rounding: Rounding,
    energy: f64,
    state: Vec<u8>,
    to_best: Duration,
    restarts: Vec<RestartResult>,
    seconds: Vec<f64>,
    /// The best state of every restart.
    samples: Samples,
    /// When the last restart ended.
    last: Duration,
}

impl Search {
    fn new(rounding: Rounding) -> Self {
        Search {
            rounding,
            energy: f64::INFINITY,
            state: Vec::new(),
            to_best: Duration::ZERO,
            restarts: Vec::new(),
            seconds: Vec::new(),
            samples: Samples::default(),
            last: Duration::ZERO,
        }
    }

    /// Take in the states of a restart with their energies; whether one is better than all before.
    fn take(&mut self, seed: u64, found: &[(f64, impl AsRef<[u8]>)], now: Duration) -> bool {
        let lowest = found.iter().min_by(|a, b| a.0.total_cmp(&b.0));
        let Some((energy, state)) = lowest.map(|(energy, state)| (*energy, state.as_ref())) else {
            return false;
        };
        let as_good = found.iter().filter(|(other, _)| self.rounding.same(*other, energy)).count();
        self.restarts.push(RestartResult::new(seed, energy, as_good, found.len()));
        self.seconds.push((now - self.last).as_secs_f64());
        self.last = now;
        self.samples.states.extend_from_slice(state);
        self.samples.energies.push(energy);
        self.samples.log_weights.push(0.0);
        let better = energy < self.energy && !self.rounding.same(energy, self.energy);
        if better || self.state.is_empty() {
            (self.energy, self.state, self.to_best) = (energy, state.to_vec(), now);
        }
        better
    }

    /// How often the lowest energy was found.
    fn found(&self) -> FoundResult {
        let best =
            self.restarts.iter().filter(|restart| self.rounding.same(restart.energy, self.energy));
        let (mut restarts, mut walkers) = (0, 0);
        for restart in best {
            restarts += 1;
            walkers += restart.found;
        }
        FoundResult::new(restarts, walkers, self.restarts.iter().map(|r| r.walkers).sum())
    }
}
