//! Minimisation: the lowest energy of a target and a state that has it, by restarts of annealing, tempering or a network.

mod descent;
mod range;
mod rounding;
mod rounds;
#[cfg(test)]
mod tests;
mod watch;

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
use rounding::Rounding;
use watch::Watch;

/// Restarts if nothing else says when to end.
const USUAL_RESTARTS: usize = 10;

/// How to look for the lowest energy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum MinimizeMethod {
    /// A network if there is one, an exact method if one is quick, else annealing.
    #[default]
    Auto,
    /// Enumeration or elimination: the ground state, proven.
    Exact,
    /// Walkers that are cooled.
    Annealing,
    /// Temperatures that exchange states.
    Tempering,
    /// The same with two states a temperature that exchange clusters.
    Houdayer,
    /// Walkers that follow a trained network.
    Network,
}

impl std::str::FromStr for MinimizeMethod {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self> {
        let all = [
            MinimizeMethod::Auto,
            MinimizeMethod::Exact,
            MinimizeMethod::Annealing,
            MinimizeMethod::Tempering,
            MinimizeMethod::Houdayer,
            MinimizeMethod::Network,
        ];
        let found = all.into_iter().find(|method| method.to_string() == word);
        found.ok_or_else(|| {
            let names: Vec<String> = all.iter().map(ToString::to_string).collect();
            Error::invalid("method", word, format!("one of {}", names.join(", ")), "auto is usual")
        })
    }
}

impl std::fmt::Display for MinimizeMethod {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            MinimizeMethod::Auto => "auto",
            MinimizeMethod::Exact => "exact",
            MinimizeMethod::Annealing => "annealing",
            MinimizeMethod::Tempering => "tempering",
            MinimizeMethod::Houdayer => "houdayer",
            MinimizeMethod::Network => "network",
        })
    }
}

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
    /// How to look.
    pub method: MinimizeMethod,
    /// The network, and how the user knows it.
    pub model: Option<(Model, String)>,
    /// Walkers of a restart, or ladders of temperatures.
    pub walkers: usize,
    /// Sweeps of each walker or temperature in a restart; a network's walkers take a tenth as many intervals.
    pub sweeps: usize,
    /// Temperatures of each ladder.
    pub temperatures: usize,
    /// The coldest inverse temperature; chosen by the energy changes of the target if it is left out.
    pub beta: Option<f64>,
    /// How many restarts: 10 if nothing else says when to end.
    pub restarts: Option<usize>,
    /// How long to go on.
    pub time_limit: Option<Duration>,
    /// The energy at which to end.
    pub target_energy: Option<f64>,
    /// The seed of all restarts.
    pub seed: u64,
}

impl Minimizing {
    /// Ten restarts of whatever suits the target.
    pub fn new(problem: Problem) -> Self {
        Minimizing {
            problem,
            method: MinimizeMethod::Auto,
            model: None,
            walkers: 128,
            sweeps: 1000,
            temperatures: 16,
            beta: None,
            restarts: None,
            time_limit: None,
            target_energy: None,
            seed: SEED,
        }
    }

    /// How to look.
    pub fn method(mut self, method: MinimizeMethod) -> Self {
        self.method = method;
        self
    }

    /// Walkers of a restart.
    pub fn walkers(mut self, walkers: usize) -> Self {
        self.walkers = walkers;
        self
    }

    /// Sweeps of each walker in a restart.
    pub fn sweeps(mut self, sweeps: usize) -> Self {
        self.sweeps = sweeps;
        self
    }

    /// So many restarts.
    pub fn restarts(mut self, restarts: usize) -> Self {
        self.restarts = Some(restarts);
        self
    }

    /// Restarts until so much time is over.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = Some(limit);
        self
    }

    /// Restarts until an energy at most this is found.
    pub fn target_energy(mut self, energy: f64) -> Self {
        self.target_energy = Some(energy);
        self
    }

    /// The seed.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Refuse settings that mean nothing.
    pub fn check(&self) -> Result<()> {
        at_least("minimize.walkers", self.walkers, 1, 1 << 24, "64 run about as fast as one")?;
        at_least("minimize.sweeps", self.sweeps, 1, 1 << 40, "1000 is usual")?;
        at_least("minimize.temperatures", self.temperatures, 2, 10_000, "a ladder has two ends")?;
        if self.restarts == Some(0) {
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
        if let Some(energy) = self.target_energy.filter(|energy| energy.is_nan()) {
            let advice = "give the energy of the whole system";
            return Err(Error::invalid("minimize.target_energy", energy, "a number", advice));
        }
        match (self.method, &self.model) {
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

    /// Look on the CPU while somebody watches. A stop, by time or by whoever watches, keeps what was found.
    pub fn run_in(
        &self,
        context: &Context<'_>,
        monitor: &dyn Monitor,
    ) -> Result<Run<MinimumResult>> {
        self.check()?;
        context.install(|| self.run_here(context.progress, monitor))
    }

    fn run_here(
        &self,
        progress: &dyn Progress,
        monitor: &dyn Monitor,
    ) -> Result<Run<MinimumResult>> {
        let graph = self.graph()?;
        let target = &*self.problem.target;
        let start = Instant::now();
        let effort = if self.method == MinimizeMethod::Exact { MAX_EFFORT } else { 1.0 };
        let ground = match exact::ground_state(target, effort, &StopOnly(progress)) {
            Ok(ground) => Some(ground),
            Err(error @ Error::Interrupted) => return Err(error),
            Err(error) if self.method == MinimizeMethod::Exact => return Err(error),
            Err(_) => None,
        };
        let method = match (self.method, &ground) {
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
                let bound = target.pairwise().map(exact::energy_bound);
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
            walkers: if walks { self.walkers } else { 1 },
            sweeps: if walks { self.sweeps } else { 0 },
            temperatures: ladder.then_some(self.temperatures),
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
            target_energy: self.target_energy,
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
        let most = match (self.restarts, self.time_limit, self.target_energy) {
            (None, None, None) => Some(USUAL_RESTARTS),
            (restarts, ..) => restarts,
        };
        let watch = Watch::new(progress, self.time_limit, most);
        loop {
            let number = search.restarts.len();
            let seed = self.seed_of(number);
            watch.begin();
            let round = match self.round(method, range, seed, &watch) {
                // The first restart was stopped before it had anything to show.
                Err(Error::Interrupted) if number == 0 => rounds::Round {
                    states: (0..self.walkers as u32)
                        .flat_map(|walker| initial_state(target, seed, walker))
                        .collect(),
                    unfinished: true,
                },
                Err(Error::Interrupted) => return Ok(watch.reason()),
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
            watch.end();
            if self.target_energy.is_some_and(|wanted| {
                search.energy <= wanted || search.rounding.same(search.energy, wanted)
            }) {
                return Ok("target-energy");
            }
            if watch.stopped() {
                return Ok(watch.reason());
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
