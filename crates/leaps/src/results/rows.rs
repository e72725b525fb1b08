//! Results as rows of one long table: one number of one run each, whatever found it.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::nulls::null_is_nan;
use super::{
    BetaResult, ChainResult, Compared, Comparison, ExactPoints, ExactResult, FreeEnergyResult,
    Lowest, MinimumResult, Origin, Record, SamplerResult, ThermoPoint, TwoSidedResult,
    WalkerResult, named, named_modes, named_offsets, named_waves, upgrade,
};
use crate::observe::{Estimate, Observables};
use crate::path::Strength;
use crate::target::Field;
use crate::{Error, Result, file};

/// One number of a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Row {
    /// Where the result was read, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The target in words, without temperature and uniform field.
    pub target: String,
    /// The inverse temperature.
    #[serde(deserialize_with = "null_is_nan")]
    pub beta: f64,
    /// The uniform field, or what stands in its place in results over a range; `None` for targets that have none.
    pub field: Option<f64>,
    /// What `field` is.
    #[serde(default, skip_serializing_if = "Strength::is_field")]
    pub of: Strength,
    /// The seed; exact answers have none.
    pub seed: Option<u64>,
    /// What found it.
    pub sampler: String,
    /// The name of the number.
    pub quantity: String,
    /// The number.
    #[serde(deserialize_with = "null_is_nan")]
    pub value: f64,
    /// Its standard error, if it has one.
    pub error: Option<f64>,
    /// The exact value, where it is known.
    pub exact: Option<f64>,
    /// How many standard errors lie between them.
    pub sigmas: Option<f64>,
}

impl Row {
    /// The same, of a result that was read there.
    pub fn read_from(self, source: &str) -> Self {
        Row { source: Some(source.to_owned()), ..self }
    }

    /// What all rows of a result share.
    fn about(origin: &Origin, sampler: String, seed: Option<u64>) -> Self {
        let (spec, sites) = (origin.spec(), origin.sites().unwrap_or(0));
        // A custom energy has a name of its own.
        let name = || origin.target.get("name").and_then(Value::as_str).unwrap_or("?");
        let field = spec.as_ref().and_then(|spec| spec.field.as_ref());
        Row {
            source: None,
            target: match &spec {
                Some(spec) => spec.describe_energy(sites),
                None => format!("{} of {sites} sites", name()),
            },
            beta: origin.target.get("beta").and_then(Value::as_f64).unwrap_or(f64::NAN),
            field: match field {
                Some(Field::Uniform(h)) => Some(*h),
                _ => None,
            },
            of: Strength::Field,
            seed,
            sampler,
            quantity: String::new(),
            value: f64::NAN,
            error: None,
            exact: None,
            sigmas: None,
        }
    }

    fn number(&self, quantity: &str, value: f64) -> Self {
        Row { quantity: quantity.to_owned(), value, ..self.clone() }
    }

    fn estimate(&self, quantity: &str, estimate: Estimate) -> Self {
        let Estimate { mean, error, exact } = estimate;
        let sigmas = estimate.z().filter(|z| z.is_finite() && error.is_finite() && error > 0.0);
        Row { error: Some(error), exact, sigmas, ..self.number(quantity, mean) }
    }

    /// Averages, structure factors and masses of modes.
    fn observables(&self, observables: &Observables) -> Vec<Self> {
        let own = named(observables).into_iter().map(|(name, value)| self.estimate(name, value));
        let modes = named_modes(&observables.mode_masses);
        // All wave vectors are those of commensurate order, too.
        let waves = match &observables.structure_factor_map[..] {
            [] => named_waves(&observables.structure_factor),
            all => named_waves(all),
        };
        let offsets = named_offsets(&observables.correlation_map);
        let others = waves
            .iter()
            .chain(&offsets)
            .chain(&modes)
            .map(|(name, value)| self.estimate(name, *value));
        own.chain(others).collect()
    }

    fn lowest(&self, lowest: Option<&Lowest>) -> Option<Self> {
        lowest.map(|lowest| self.number("lowest_energy_per_site", lowest.energy_per_site))
    }

    /// Another temperature on the way of walkers.
    fn stop(&self, stop: &BetaResult) -> Vec<Self> {
        let about = Row { beta: stop.beta, ..self.clone() };
        let mut rows = vec![
            about.estimate("ess", Estimate::new(stop.ess, stop.ess_error)),
            about.estimate("log_z", stop.log_z),
            about.estimate("free_energy_per_site", stop.free_energy_per_site),
            about.estimate("entropy_per_site", stop.entropy_per_site),
        ];
        rows.extend(about.observables(&stop.estimates()));
        rows
    }

    /// What walkers of both ways say.
    fn two_sided(&self, both: &TwoSidedResult) -> [Self; 4] {
        [
            self.estimate("log_z_two_sided", both.log_z),
            self.number("log_z_merit_two_sided", both.log_z_merit),
            self.number("overlap", both.overlap),
            self.number("seconds_two_sided", both.seconds),
        ]
    }

    /// A temperature of a ladder or of a grid.
    fn point(&self, point: &ThermoPoint) -> Vec<Self> {
        let about = Row { beta: point.beta, field: point.field.or(self.field), ..self.clone() };
        let mut rows = vec![about.number("ess", point.ess)];
        rows.extend(point.named().map(|(name, value)| about.estimate(name, value)));
        if point.log_z_merit.is_finite() {
            rows.push(about.number("log_z_merit", point.log_z_merit));
        }
        rows.extend(about.lowest(point.lowest.as_ref()));
        rows
    }
}

/// A result that is rows of a table.
pub trait Tabulate {
    /// One row for every number that has a name, temperatures on the way and rungs of ladders included.
    fn rows(&self, origin: &Origin) -> Vec<Row>;
}

impl<T: Tabulate + ?Sized> Tabulate for &T {
    fn rows(&self, origin: &Origin) -> Vec<Row> {
        (**self).rows(origin)
    }
}

impl<T: Tabulate> Record<T> {
    /// The rows of the result.
    pub fn rows(&self) -> Vec<Row> {
        self.result.rows(&self.origin)
    }
}

impl WalkerResult {
    /// The sampler in words.
    pub fn sampler(&self) -> String {
        match (&self.model, self.kernel.as_str()) {
            (None, kernel) => format!("{} with {kernel}", self.scheme),
            (Some(model), "none") => format!("{model} by {}", self.scheme),
            (Some(model), kernel) => format!("{model} by {} and {kernel}", self.scheme),
        }
    }
}

impl Tabulate for WalkerResult {
    fn rows(&self, origin: &Origin) -> Vec<Row> {
        let mut about = Row::about(origin, self.sampler(), Some(self.seed));
        let mut end = 1.0;
        if let Some(reached) = &self.reached {
            (about.beta, end) = (reached.beta.unwrap_or(f64::NAN), reached.t);
        }
        let mut rows = vec![
            about.estimate("ess", Estimate::new(self.ess, self.ess_error)),
            about.estimate("log_z", self.log_z),
            about.estimate("free_energy_per_site", self.free_energy_per_site),
            about.estimate("entropy_per_site", self.entropy_per_site),
        ];
        rows.extend(self.two_sided.iter().flat_map(|both| about.two_sided(both)));
        rows.extend(about.observables(&self.estimates()));
        rows.push(about.number("elbo", self.elbo));
        rows.extend(about.lowest(self.lowest.as_ref()));
        for (name, value) in [
            ("log_z_merit", self.log_z_merit),
            ("effective_samples_per_second", self.effective_samples_per_second),
            ("seconds", self.seconds),
        ] {
            rows.push(about.number(name, value));
        }
        // The end of the way has its rows already.
        let stops = self.at_beta.iter().filter(|stop| stop.t < end);
        rows.extend(stops.flat_map(|stop| about.stop(stop)));
        rows
    }
}

impl Tabulate for ChainResult {
    fn rows(&self, origin: &Origin) -> Vec<Row> {
        let about = Row::about(origin, self.kernel.clone(), Some(self.seed));
        let tempering = self.tempering.as_ref();
        let free = [
            ("log_z", self.log_z),
            ("log_z_by_integration", tempering.and_then(|t| t.log_z_by_integration)),
            ("free_energy_per_site", self.free_energy_per_site),
            ("entropy_per_site", self.entropy_per_site),
        ];
        let mut rows = vec![about.estimate("ess", Estimate::new(self.ess, self.ess_error))];
        rows.extend(free.into_iter().filter_map(|(name, e)| Some(about.estimate(name, e?))));
        rows.extend(about.observables(&self.estimates()));
        rows.extend(about.lowest(self.lowest.as_ref()));
        rows.extend(self.log_z_merit.map(|merit| about.number("log_z_merit", merit)));
        for (name, value) in [
            ("r_hat", self.r_hat),
            ("acceptance", self.acceptance),
            ("effective_samples_per_second", self.effective_samples_per_second),
            ("seconds", self.seconds),
        ] {
            rows.push(about.number(name, value));
        }
        if let Some(tempering) = tempering {
            let all = Row { sampler: format!("{}, MBAR", self.kernel), ..about };
            let rung = |beta: f64| tempering.rungs.iter().any(|rung| rung.beta == beta);
            let between = tempering.at_beta.iter().filter(|point| !rung(point.beta));
            rows.extend(tempering.rungs.iter().chain(between).flat_map(|point| all.point(point)));
        }
        rows
    }
}

impl Tabulate for SamplerResult {
    fn rows(&self, origin: &Origin) -> Vec<Row> {
        match self {
            SamplerResult::Walkers(result) => result.rows(origin),
            SamplerResult::Chains(result) => result.rows(origin),
        }
    }
}

impl SamplerResult {
    /// The rows of a sampler that has a name.
    pub(crate) fn rows_as(&self, name: &str, origin: &Origin) -> Vec<Row> {
        let mut rows = self.rows(origin);
        let own = rows.first().map_or_else(String::new, |row| row.sampler.clone());
        for row in &mut rows {
            // What follows the sampler's own name stays: whether rungs are analysed together.
            row.sampler = format!("{name}{}", row.sampler.strip_prefix(&own).unwrap_or(""));
        }
        rows
    }
}

impl Tabulate for Comparison {
    fn rows(&self, origin: &Origin) -> Vec<Row> {
        let of = |Compared { name, beta, field, result }: &Compared| {
            let mut origin = origin.clone();
            for (key, own) in [("beta", beta), ("field", field)] {
                if let Some(own) = own {
                    origin.target.insert(key.to_owned(), (*own).into());
                }
            }
            result.rows_as(name, &origin)
        };
        self.samplers.iter().flat_map(of).collect()
    }
}

impl Tabulate for ExactResult {
    fn rows(&self, origin: &Origin) -> Vec<Row> {
        let about = Row::about(origin, self.method.clone(), None);
        let named = self.named().into_iter();
        let known =
            named.map(|(name, value)| Row { exact: Some(value), ..about.number(name, value) });
        known.chain([about.number("seconds", self.seconds)]).collect()
    }
}

impl Tabulate for ExactPoints {
    fn rows(&self, origin: &Origin) -> Vec<Row> {
        let mut rows = Vec::new();
        for point in &self.points {
            let place = |row: Row| Row {
                beta: point.beta,
                field: point.field.or(row.field),
                of: self.of,
                ..row
            };
            rows.extend(point.result.rows(origin).into_iter().map(place));
        }
        rows
    }
}

impl Tabulate for FreeEnergyResult {
    fn rows(&self, origin: &Origin) -> Vec<Row> {
        let sampler = match &self.model {
            Some(model) => format!("{} {model}", self.method),
            None => self.method.clone(),
        };
        let about = Row { of: self.of, ..Row::about(origin, sampler, Some(self.seed)) };
        self.points.iter().flat_map(|point| about.point(point)).collect()
    }
}

impl Tabulate for MinimumResult {
    fn rows(&self, origin: &Origin) -> Vec<Row> {
        let sampler = match &self.model {
            Some(model) => format!("{} {model}", self.method),
            None => self.method.clone(),
        };
        let about = Row::about(origin, sampler, Some(self.seed));
        let about = Row { beta: self.beta_cold.unwrap_or(f64::NAN), ..about };
        let optimum = self.optimum;
        let energy = about.number("lowest_energy", self.lowest.energy);
        let mut rows = vec![Row { exact: optimum, ..energy }];
        rows.extend(about.lowest(Some(&self.lowest)));
        rows.extend(self.cut.map(|cut| about.number("cut", cut)));
        rows.extend(self.set_size.map(|size| about.number("set_size", size as f64)));
        for (name, value) in [
            ("found_restarts", self.found.restarts as f64),
            ("found_walkers", self.found.walkers as f64),
            ("walkers", self.found.of_walkers as f64),
            ("seconds_to_best", self.seconds_to_best),
            ("seconds", self.seconds),
        ] {
            rows.push(about.number(name, value));
        }
        for (restart, seconds) in self.restarts.iter().zip(&self.seconds_of_restarts) {
            let own = Row { seed: Some(restart.seed), ..about.clone() };
            rows.push(Row { exact: optimum, ..own.number("restart_energy", restart.energy) });
            rows.push(own.number("restart_found_walkers", restart.found as f64));
            rows.push(own.number("restart_seconds", *seconds));
        }
        rows
    }
}

/// Whatever `--json` prints about a target.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum AnyResult {
    /// Of several samplers.
    Comparison(Comparison),
    /// Over a grid of temperatures and fields.
    FreeEnergy(FreeEnergyResult),
    /// Exact ones over such a grid.
    ExactPoints(ExactPoints),
    /// The lowest energy.
    Minimum(Box<MinimumResult>),
    /// Of one sampler.
    Sampler(Box<SamplerResult>),
    /// The exact answer.
    Exact(ExactResult),
}

impl Tabulate for AnyResult {
    fn rows(&self, origin: &Origin) -> Vec<Row> {
        match self {
            AnyResult::Comparison(result) => result.rows(origin),
            AnyResult::FreeEnergy(result) => result.rows(origin),
            AnyResult::ExactPoints(result) => result.rows(origin),
            AnyResult::Minimum(result) => result.rows(origin),
            AnyResult::Sampler(result) => result.rows(origin),
            AnyResult::Exact(result) => result.rows(origin),
        }
    }
}

impl Record<AnyResult> {
    /// Read what a verb has printed.
    ///
    /// # Errors
    /// A file that cannot be read, and one that holds anything else.
    pub fn read(path: &Path) -> Result<Self> {
        let text = file::read_text(path)?;
        let fail = |line: usize, column: usize, reason: String| Error::Parse {
            path: path.into(),
            line: line.max(1),
            column: column.max(1),
            reason,
        };
        let mut value: Value = serde_json::from_str(&text)
            .map_err(|error| fail(error.line(), error.column(), error.to_string()))?;
        upgrade(&mut value);
        let foreign = |_| fail(1, 1, "no result of this version of leaps".to_owned());
        let origin = Origin::deserialize(&value).map_err(foreign)?;
        Ok(Record { origin, result: AnyResult::deserialize(&value).map_err(foreign)? })
    }
}
