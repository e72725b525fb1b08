//! Free energies over a range of temperatures and fields, by whichever method suits.

use std::fmt;
use std::str::FromStr;
use std::time::Instant;

use super::{Annealing, Chains, Context, Monitor, Run, Samples, Sampling};
use crate::device::NoProgress;
use crate::mcmc::Move;
use crate::observe::LadderTable;
use crate::path::{Ranges, Strength};
use crate::problem::Problem;
use crate::results::{Computed, FreeEnergyResult, Lowest, ThermoPoint, WalkerResult, log_z_merit};
use crate::sampler::WalkerWarning;
use crate::spec::RunSpec;
use crate::store::Model;
use crate::{Error, Result, finite};

/// How free energies are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FreeEnergyMethod {
    /// A network if there is one, else parallel tempering, or smc for energies that are functions of many states at once
    #[default]
    Auto,
    /// Weighted walkers of a trained network
    Network,
    /// Annealed importance sampling
    Ais,
    /// Sequential Monte Carlo, also called population annealing
    Smc,
    /// Parallel tempering, with all temperatures analysed together (MBAR)
    Tempering,
}

const METHODS: [(&str, FreeEnergyMethod); 5] = [
    ("auto", FreeEnergyMethod::Auto),
    ("network", FreeEnergyMethod::Network),
    ("ais", FreeEnergyMethod::Ais),
    ("smc", FreeEnergyMethod::Smc),
    ("tempering", FreeEnergyMethod::Tempering),
];

impl fmt::Display for FreeEnergyMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(METHODS.iter().find(|(_, method)| method == self).map_or("", |named| named.0))
    }
}

impl FromStr for FreeEnergyMethod {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self> {
        let found = METHODS.iter().find(|(name, _)| *name == word).map(|named| named.1);
        found.ok_or_else(|| {
            let names = METHODS.map(|(name, _)| name).join(", ");
            Error::invalid("method", word, format!("one of {names}"), "leave it out")
        })
    }
}

/// Most points of a grid.
const MOST_POINTS: usize = 100_000;
/// Rungs of a ladder for each standard deviation of the energy that it goes through, measured at infinite temperature.
const RUNGS: f64 = 1.5;
/// Rungs that every ladder has.
const LEAST_RUNGS: usize = 8;

/// Free energy, entropy, energy, heat capacity and order over a grid of temperatures and fields.
///
/// ```
/// use leaps::prelude::*;
///
/// let problem = Ising::square(4).field(0.1).beta(0.5)?;
/// let run = FreeEnergies::new(problem).betas([0.3, 0.5]).run()?;
/// assert!(run.points.iter().all(|point| point.log_z.z().unwrap().abs() < 5.0));
/// # Ok::<(), leaps::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct FreeEnergies {
    /// The energy; its own temperature and field stand where the grid has none.
    pub problem: Problem,
    /// Inverse temperatures, all of one sign.
    pub betas: Vec<f64>,
    /// Uniform fields, or values of what stands in their place.
    pub fields: Vec<f64>,
    /// What `fields` are values of.
    pub of: Strength,
    /// How.
    pub method: FreeEnergyMethod,
    /// The network and its name, for the method that needs one.
    pub model: Option<(Model, String)>,
    /// How many walkers or chains, and how long.
    pub spec: RunSpec,
    /// Whether the ladder has as many temperatures as the energies' spread asks for, whatever the settings say.
    pub fit_ladder: bool,
}

impl FreeEnergies {
    /// At the problem's own temperature and field.
    pub fn new(problem: Problem) -> Self {
        FreeEnergies {
            problem,
            betas: Vec::new(),
            fields: Vec::new(),
            of: Strength::Field,
            method: FreeEnergyMethod::Auto,
            model: None,
            spec: RunSpec::default(),
            fit_ladder: true,
        }
    }

    /// At these inverse temperatures.
    pub fn betas(mut self, betas: impl IntoIterator<Item = f64>) -> Self {
        self.betas = betas.into_iter().collect();
        self
    }

    /// In these uniform fields.
    pub fn fields(mut self, fields: impl IntoIterator<Item = f64>) -> Self {
        self.fields = fields.into_iter().collect();
        self
    }

    /// At these values of a strength, in place of fields.
    pub fn strengths(mut self, of: Strength, values: impl IntoIterator<Item = f64>) -> Self {
        self.of = of;
        self.fields(values)
    }

    /// By this method.
    pub fn method(mut self, method: FreeEnergyMethod) -> Self {
        self.method = method;
        self
    }

    /// With this network, trained for the problem or for a family that has all points of the grid.
    pub fn model(mut self, model: Model, name: &str) -> Self {
        self.model = Some((model, name.to_owned()));
        self
    }

    /// The seed.
    pub fn seed(mut self, seed: u64) -> Self {
        self.spec.seed = seed;
        self
    }

    /// Refuse a grid or a method that cannot be meant, before any work.
    pub fn check(&self) -> Result<()> {
        let (betas, fields) = self.grid()?;
        let method = self.chosen()?;
        if let (FreeEnergyMethod::Network, Some((model, _))) = (method, &self.model) {
            fields.iter().try_for_each(|&field| known((self.of, field), model.family))?;
        }
        self.problem.at_strength(betas[0], self.of, fields[0]).map(drop)
    }

    /// The method that is meant by `auto`.
    fn chosen(&self) -> Result<FreeEnergyMethod> {
        match (self.method, &self.model) {
            (FreeEnergyMethod::Auto, Some(_)) => Ok(FreeEnergyMethod::Network),
            // Ladders move their states one by one.
            (FreeEnergyMethod::Auto, None) if self.problem.target.prefers_batches() => {
                Ok(FreeEnergyMethod::Smc)
            }
            (FreeEnergyMethod::Auto, None) => Ok(FreeEnergyMethod::Tempering),
            (FreeEnergyMethod::Network, None) => {
                let (condition, advice) = ("given a model", "name a model, or use tempering");
                Err(Error::invalid("method", "network", condition, advice))
            }
            (method, _) => Ok(method),
        }
    }

    /// Find them where there is a GPU, or on the CPU.
    pub fn run(&self) -> Result<Run<FreeEnergyResult>> {
        self.run_in(&Context::default(), &NoProgress)
    }

    /// Find them, field by field. A stop keeps the points that there are by then, and the result says that it was interrupted.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if there was a reason to stop before the first of them.
    pub fn run_in(
        &self,
        context: &Context<'_>,
        monitor: &dyn Monitor,
    ) -> Result<Run<FreeEnergyResult>> {
        let (betas, fields) = self.grid()?;
        let method = self.chosen()?;
        let start = Instant::now();
        let mut all = Gathered::default();
        for &field in &fields {
            let label = field.map_or_else(
                || method.to_string(),
                |h| format!("{method}, {} {h}", self.of.name()),
            );
            let part = Part { job: self, context, monitor, field, label: &label };
            let done = match method {
                FreeEnergyMethod::Network => part.network(&betas, &mut all),
                FreeEnergyMethod::Tempering => part.tempering(&betas, &mut all),
                other => part.annealing(&betas, other == FreeEnergyMethod::Smc, &mut all),
            };
            match done {
                Err(Error::Interrupted) if !all.points.is_empty() => all.interrupted = true,
                done => done?,
            }
            if all.interrupted {
                break;
            }
        }
        let asked = betas.len() * fields.len();
        let result = FreeEnergyResult {
            seed: self.spec.seed,
            method: method.to_string(),
            model: self.model.as_ref().map(|(_, name)| name.clone()),
            of: self.of,
            points: all.points,
            asked: all.interrupted.then_some(asked),
            interrupted: all.interrupted,
            lowest: all.lowest,
            warnings: all.warnings,
            seconds: start.elapsed().as_secs_f64(),
        };
        let computed = all.computed.unwrap_or_else(Computed::on_cpu);
        Ok(Run { result, samples: Samples::default(), computed })
    }

    /// The inverse temperatures from hot to cold, and the fields; `None` is the problem's own.
    fn grid(&self) -> Result<(Vec<f64>, Vec<Option<f64>>)> {
        let mut betas = match self.betas.is_empty() {
            true => vec![self.problem.beta],
            false => self.betas.clone(),
        };
        for &beta in &betas {
            finite("target.beta", beta)?;
            if beta == 0.0 || (beta < 0.0) != (betas[0] < 0.0) {
                let condition = "other than 0, and all of one sign";
                let advice = "log Z at infinite temperature is known: sites times log q";
                return Err(Error::invalid("target.beta", beta, condition, advice));
            }
        }
        betas.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        betas.dedup();
        let mut fields = self.fields.clone();
        let key = format!("target.{}", self.of.name());
        fields.iter().try_for_each(|&field| finite(&key, field).map(|_| ()))?;
        fields.sort_by(f64::total_cmp);
        fields.dedup();
        if betas.len().saturating_mul(fields.len().max(1)) > MOST_POINTS {
            let points = betas.len().saturating_mul(fields.len());
            let condition = format!("at most {MOST_POINTS}");
            return Err(Error::invalid("points of the grid", points, condition, "take fewer"));
        }
        let fields = match fields.is_empty() {
            true => vec![None],
            false => fields.into_iter().map(Some).collect(),
        };
        Ok((betas, fields))
    }
}

/// What has been found so far.
#[derive(Default)]
struct Gathered {
    points: Vec<ThermoPoint>,
    lowest: Option<Lowest>,
    warnings: Vec<String>,
    computed: Option<Computed>,
    interrupted: bool,
}

impl Gathered {
    fn lowest(&mut self, other: Option<&Lowest>) {
        let lower = |own: &&Lowest| self.lowest.as_ref().is_none_or(|l| own.energy < l.energy);
        if let Some(other) = other.filter(lower) {
            self.lowest = Some(other.clone());
        }
    }
}

/// One field.
struct Part<'a> {
    job: &'a FreeEnergies,
    context: &'a Context<'a>,
    monitor: &'a dyn Monitor,
    field: Option<f64>,
    label: &'a str,
}

impl Part<'_> {
    fn problem(&self, beta: f64) -> Result<Problem> {
        self.job.problem.at_strength(beta, self.job.of, self.field)
    }

    /// Random numbers of its own, so that errors of neighbouring points do not depend on each other.
    fn seed(&self, problem: &Problem) -> u64 {
        let mut spec = self.job.spec.clone();
        spec.target = problem.spec.clone().unwrap_or_default();
        spec.seed_of(&format!("free energy\n{}", problem.description), problem.target.sites())
    }

    fn take(
        &self,
        all: &mut Gathered,
        points: impl IntoIterator<Item = ThermoPoint>,
        seconds: f64,
        lowest: Option<&Lowest>,
    ) {
        all.points.extend(points.into_iter().map(|point| ThermoPoint {
            field: self.field,
            log_z_merit: log_z_merit(point.log_z, seconds),
            lowest: lowest.cloned(),
            ..point
        }));
        all.lowest(lowest);
    }

    fn doubts(&self, all: &mut Gathered, doubts: impl IntoIterator<Item = String>) {
        let of = self.job.of.name();
        let place = self.field.map_or_else(String::new, |field| format!("{of} {field}: "));
        all.warnings.extend(doubts.into_iter().map(|doubt| format!("{place}{doubt}")));
    }

    fn annealing(&self, betas: &[f64], resample: bool, all: &mut Gathered) -> Result<()> {
        let problem = self.problem(betas[betas.len() - 1])?;
        let seed = self.seed(&problem);
        let job = Annealing::of(&self.job.spec, problem, resample).at_beta(betas.to_vec());
        let progress = self.monitor.progress(self.label);
        let run = job.seed(seed).run_in(&self.context.watched_by(&*progress))?;
        self.walkers(all, run)
    }

    /// The points that walkers have passed; those that were stopped on their way have some.
    fn walkers(&self, all: &mut Gathered, run: Run<WalkerResult>) -> Result<()> {
        if run.at_beta.is_empty() && run.interrupted {
            return Err(Error::Interrupted);
        }
        all.interrupted = run.interrupted;
        let points = run.at_beta.iter().map(ThermoPoint::of_beta);
        self.take(all, points, run.seconds, run.lowest.as_ref());
        // Where the walkers were stopped is no matter of the points before.
        let doubts = run.warnings.iter().filter(|w| !matches!(w, WalkerWarning::Stopped { .. }));
        self.doubts(all, doubts.map(ToString::to_string));
        all.computed = Some(run.computed);
        Ok(())
    }

    fn tempering(&self, betas: &[f64], all: &mut Gathered) -> Result<()> {
        let problem = self.problem(betas[betas.len() - 1])?;
        let seed = self.seed(&problem);
        let mut job = Chains::of(&self.job.spec, problem).seed(seed);
        if !matches!(job.kernel.kernel, Move::Ladder | Move::Houdayer) {
            job.kernel.kernel = Move::ParallelTempering;
        }
        if self.job.fit_ladder {
            job.chains.betas.clear();
            job.chains.temperatures = rungs(&job.problem);
        }
        job.at_beta = betas.to_vec();
        let progress = self.monitor.progress(self.label);
        let run = job.run_in(&self.context.watched_by(&*progress))?;
        let points = run.tempering.iter().flat_map(|tempering| tempering.at_beta.clone());
        let points: Vec<ThermoPoint> = points.collect();
        if points.is_empty() && run.interrupted {
            return Err(Error::Interrupted);
        }
        if points.is_empty() {
            let reason = "neighbouring temperatures have no energies in common, or there is one ladder alone; use more temperatures, or more chains";
            return Err(Error::not_applicable("log Z from tempering", reason));
        }
        // Ladders that were stopped have all their temperatures, from fewer steps.
        all.interrupted = run.interrupted;
        self.take(all, points, run.seconds, run.lowest.as_ref());
        self.doubts(all, run.warnings.iter().map(ToString::to_string));
        all.computed = Some(run.computed);
        Ok(())
    }

    fn network(&self, betas: &[f64], all: &mut Gathered) -> Result<()> {
        let Some((model, name)) = &self.job.model else { return Ok(()) };
        let family = model.family.unwrap_or_default();
        known((self.job.of, self.field), model.family)?;
        // A network for a range of temperatures knows a path to each; another passes them on its own.
        let ends: Vec<&[f64]> = match family.beta {
            Some(_) => betas.chunks(1).collect(),
            None => vec![betas],
        };
        for stops in ends {
            let end = if family.beta.is_some() { stops[0] } else { self.job.problem.beta };
            let problem = self.problem(end)?;
            let seed = self.seed(&problem);
            let job = Sampling::of(&self.job.spec, problem, model.clone(), name).seed(seed);
            let label = match family.beta {
                Some(_) => format!("{}, beta {end}", self.label),
                None => self.label.to_owned(),
            };
            let progress = self.monitor.progress(&label);
            let job = job.at_beta(stops.to_vec());
            let run = job.run_in(&self.context.watched_by(&*progress))?;
            self.walkers(all, run)?;
            if all.interrupted {
                break;
            }
        }
        Ok(())
    }
}

/// Refuse a field, or another strength, that a network of this family does not know.
fn known((of, value): (Strength, Option<f64>), family: Option<Ranges>) -> Result<()> {
    let ranged = |family: Ranges| family.field.is_some() && family.of == of;
    match value {
        Some(value) if !family.is_some_and(ranged) => {
            let (name, key) = (of.name().replace('_', " "), format!("target.{}", of.name()));
            let condition = format!("left out for a network that was trained in one {name}");
            let advice = format!("train one over a range of {name}s, or use the method tempering");
            Err(Error::invalid(key, value, condition, advice))
        }
        _ => Ok(()),
    }
}

/// Rungs that a ladder to the problem's temperature needs.
fn rungs(problem: &Problem) -> usize {
    let spread = LadderTable::spread(&*problem.target, 1);
    ((RUNGS * problem.beta.abs() * spread).ceil() as usize).clamp(LEAST_RUNGS, 1000)
}
