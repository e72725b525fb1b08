//! Settings of training.

use std::path::PathBuf;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::parse::count;
#[cfg(feature = "clap")]
use crate::parse::{number, range, seed, text_path};
use crate::path::{Ranges, Strength};
use crate::{Error, Result};

/// How the learning rate falls after warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Decay {
    /// Half a cosine to 1 %.
    #[default]
    Cosine,
    /// Multiplied by `decay_factor` every `decay_every` steps, as in the paper.
    Step,
    /// Constant.
    None,
}

/// Where reference states come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Reference {
    /// Persistent walkers in equilibrium, each at its own time.
    #[default]
    Pool,
    /// Rollouts of the network as it is, used once.
    Policy,
    /// A replay buffer of rollouts (alg:train-with-buffer).
    Buffer,
}

/// Settings of a training run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = "Training"))]
#[serde(default, deny_unknown_fields)]
pub struct TrainSpec {
    /// Gradient steps
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = seed, default_value_t = TrainSpec::default().steps))]
    pub steps: u64,
    /// Configurations of a gradient step; over instances 1024, if nobody says
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = count, default_value_t = TrainSpec::default().batch))]
    pub batch: usize,
    /// Largest learning rate
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = number, default_value_t = TrainSpec::default().lr))]
    pub lr: f64,
    /// Steps over which the learning rate rises from 0
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = seed, default_value_t = TrainSpec::default().warmup))]
    #[cfg_attr(feature = "clap", arg(hide_short_help = true))]
    pub warmup: u64,
    /// Fall of the learning rate: cosine (to 1 %), step or none
    #[cfg_attr(feature = "clap", arg(long, value_enum, value_name = "HOW", default_value_t))]
    #[cfg_attr(feature = "clap", arg(hide_possible_values = true, hide_short_help = true))]
    pub decay: Decay,
    /// Factor of the step decay
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = number, default_value_t = TrainSpec::default().decay_factor))]
    #[cfg_attr(feature = "clap", arg(hide_short_help = true))]
    pub decay_factor: f64,
    /// Steps between two factors of the step decay
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = seed, default_value_t = TrainSpec::default().decay_every))]
    #[cfg_attr(feature = "clap", arg(hide_short_help = true))]
    pub decay_every: u64,
    /// Adam's memory of the gradient
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = number, default_value_t = TrainSpec::default().beta1))]
    #[cfg_attr(feature = "clap", arg(hide_short_help = true))]
    pub beta1: f64,
    /// Adam's memory of the gradient's square
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = number, default_value_t = TrainSpec::default().beta2))]
    #[cfg_attr(feature = "clap", arg(hide_short_help = true))]
    pub beta2: f64,
    /// Norm beyond which the gradient is scaled down
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = number, default_value_t = TrainSpec::default().clip))]
    #[cfg_attr(feature = "clap", arg(hide_short_help = true))]
    pub clip: f64,
    /// Decay per step of the averaged parameters, which sampling uses
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = number, default_value_t = TrainSpec::default().ema))]
    #[cfg_attr(feature = "clap", arg(hide_short_help = true))]
    pub ema: f64,
    /// Reference states: pool (in equilibrium), policy or buffer (rollouts of the network)
    #[cfg_attr(feature = "clap", arg(long, value_enum, value_name = "WHERE", default_value_t))]
    #[cfg_attr(feature = "clap", arg(hide_possible_values = true))]
    pub reference: Reference,
    /// Walkers of the pool
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = count, default_value_t = TrainSpec::default().pool))]
    #[cfg_attr(feature = "clap", arg(hide_short_help = true))]
    pub pool: usize,
    /// Heat-bath sweeps of a reference walker each time it is used
    #[cfg_attr(feature = "clap", arg(id = "train.sweeps", long = "reference-sweeps", value_name = "N", value_parser = seed))]
    #[cfg_attr(feature = "clap", arg(default_value_t = TrainSpec::default().sweeps, hide_short_help = true))]
    pub sweeps: u64,
    /// Walkers of a rollout
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = count, default_value_t = TrainSpec::default().rollout_walkers))]
    #[cfg_attr(feature = "clap", arg(hide_short_help = true))]
    pub rollout_walkers: usize,
    /// Steps of a rollout
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = count, default_value_t = TrainSpec::default().rollout_steps))]
    #[cfg_attr(feature = "clap", arg(hide_short_help = true))]
    pub rollout_steps: usize,
    /// Rollouts that the buffer holds
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = count, default_value_t = TrainSpec::default().buffer))]
    #[cfg_attr(feature = "clap", arg(hide_short_help = true))]
    pub buffer: usize,
    /// Gradient steps between two rollouts
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = seed, default_value_t = TrainSpec::default().rollout_every))]
    #[cfg_attr(feature = "clap", arg(hide_short_help = true))]
    pub rollout_every: u64,
    /// Gradient steps over which rollouts grow from their first step to the whole path
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = seed, default_value_t = TrainSpec::default().anneal))]
    #[cfg_attr(feature = "clap", arg(hide_short_help = true))]
    pub anneal: u64,
    /// Gradient steps between two validations; 0 is never
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = seed, default_value_t = TrainSpec::default().validate_every))]
    pub validate_every: u64,
    /// Walkers of a validation
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = count, default_value_t = TrainSpec::default().validate_walkers))]
    #[cfg_attr(feature = "clap", arg(hide_short_help = true))]
    pub validate_walkers: usize,
    /// Intervals of a validation
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = count, default_value_t = TrainSpec::default().validate_intervals))]
    #[cfg_attr(feature = "clap", arg(hide_short_help = true))]
    pub validate_intervals: usize,
    /// Gradient steps between two checkpoints
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = seed, default_value_t = TrainSpec::default().checkpoint_every))]
    pub checkpoint_every: u64,
    /// Times that a loss which is not finite may send training back to the last checkpoint
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = seed, default_value_t = TrainSpec::default().rollbacks))]
    #[cfg_attr(feature = "clap", arg(hide_short_help = true))]
    pub rollbacks: u64,
    /// Write the metrics for TensorBoard as well, to tb/ in the run directory
    #[cfg_attr(feature = "clap", arg(long, hide_short_help = true))]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    // checkpoints of runs without it stay as they were
    pub tensorboard: bool,
    /// Train one network for all inverse temperatures from LOW to HIGH; 'leaps sample --beta' chooses one
    #[cfg_attr(feature = "clap", arg(long, value_name = "LOW,HIGH", value_parser = range, allow_hyphen_values = true))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beta_range: Option<[f64; 2]>,
    /// Train one network for all uniform fields from LOW to HIGH; 'leaps sample --field' chooses one
    #[cfg_attr(feature = "clap", arg(long, value_name = "LOW,HIGH", value_parser = range, allow_hyphen_values = true))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_range: Option<[f64; 2]>,
    /// The same for chemical potentials of a lattice-gas, in place of fields; 'leaps sample --mu' chooses one
    #[cfg_attr(feature = "clap", arg(long, alias = "mu-range", value_name = "LOW,HIGH", value_parser = range, allow_hyphen_values = true, hide_short_help = true))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chemical_potential_range: Option<[f64; 2]>,
    /// The same for crystal fields of blume-capel, in place of fields; 'leaps sample --crystal-field' chooses one
    #[cfg_attr(feature = "clap", arg(long, value_name = "LOW,HIGH", value_parser = range, allow_hyphen_values = true, hide_short_help = true))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crystal_field_range: Option<[f64; 2]>,
    /// Targets of the ranges that are trained on [default: 64]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = count, hide_short_help = true))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<usize>,
    /// Train one network for all instances of a spin glass on so many random ones; random is 4096, 0 the target alone
    #[cfg_attr(feature = "clap", arg(long, value_name = "N|random", value_parser = instances))]
    #[serde(deserialize_with = "number_of_instances", skip_serializing_if = "Option::is_none")]
    pub instances: Option<usize>,
    /// Reference walkers of each instance, which share a time: 2, 4, 8 or 16 [default: 4]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = count, hide_short_help = true))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub walkers_per_instance: Option<usize>,
}

/// The number of instances that a word stands for.
fn instances(word: &str) -> std::result::Result<usize, String> {
    match word {
        "random" => Ok(INSTANCES),
        number => count(number).map_err(|_| "a whole number or the word random".to_owned()),
    }
}

fn number_of_instances<'de, D: Deserializer<'de>>(
    from: D,
) -> std::result::Result<Option<usize>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a whole number or the word random")]
    enum Given {
        Number(usize),
        Word(String),
    }
    match Given::deserialize(from)? {
        Given::Number(number) => Ok(Some(number)),
        Given::Word(word) => instances(&word)
            .map(Some)
            .map_err(|wanted| D::Error::custom(format!("expected {wanted}"))),
    }
}

/// What a run starts from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "clap", command(next_help_heading = "Training"))]
pub struct StartSpec {
    /// Start from the parameters of this model or run in place of fresh ones, whatever the size of its lattice
    #[cfg_attr(feature = "clap", arg(long, value_name = "DIR|NAME", value_parser = text_path))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<PathBuf>,
    /// Train on a smaller lattice first; true where any uniform lattice may [default: on planes of Ising and Potts models with sides of at least 21]
    #[cfg_attr(feature = "clap", arg(long, value_name = "BOOL", hide_short_help = true))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grow: Option<bool>,
}

/// Members of a family.
const MEMBERS: usize = 64;

/// Instances that training goes over, where nobody says how many.
const INSTANCES: usize = 4096;

/// Reference walkers of an instance.
const WALKERS_PER_INSTANCE: usize = 4;

/// Those that it may have: whole instances must fill the vectors of 16 configurations of the CPU.
const MAY_SHARE: [usize; 4] = [2, 4, 8, 16];

/// Configurations of a gradient step over instances: with a few walkers each, they are of many of them.
pub(crate) const BATCH_OVER_INSTANCES: usize = 1024;

impl Default for TrainSpec {
    fn default() -> Self {
        TrainSpec {
            steps: 5000,
            batch: 256,
            lr: 2e-3,
            warmup: 200,
            decay: Decay::Cosine,
            decay_factor: 0.995,
            decay_every: 1000,
            beta1: 0.9,
            beta2: 0.99,
            clip: 20.0,
            ema: 0.995,
            reference: Reference::Pool,
            pool: 8192,
            sweeps: 2,
            rollout_walkers: 200,
            rollout_steps: 125,
            buffer: 100,
            rollout_every: 100,
            anneal: 20_000,
            validate_every: 1000,
            validate_walkers: 500,
            validate_intervals: 50,
            checkpoint_every: 500,
            rollbacks: 0,
            tensorboard: false,
            beta_range: None,
            field_range: None,
            chemical_potential_range: None,
            crystal_field_range: None,
            members: None,
            instances: None,
            walkers_per_instance: None,
        }
    }
}

/// More states than this in a batch, a pool or an ensemble are a mistake.
const MOST: usize = 1 << 28;
const MOST_SWEEPS: u64 = 100_000;
const MOST_INTERVALS: u64 = 1 << 24;
const MOST_STEPS: u64 = 1 << 40;

impl TrainSpec {
    /// Refuse values that make no sense.
    pub fn check(&self) -> Result<()> {
        let positive = |key: &str, value: u64, advice: &str| {
            if value > 0 {
                return Ok(());
            }
            Err(Error::invalid(format!("train.{key}"), value, "at least 1", advice))
        };
        positive("steps", self.steps, "5000 is a start")?;
        positive("batch", self.batch as u64, "256 is usual on a CPU")?;
        positive("pool", self.pool as u64, "8192 is usual")?;
        if self.reference == Reference::Pool && self.batch > self.pool_walkers() {
            let condition = format!("at most the pool, {}", self.pool_walkers());
            let advice = match self.instances() {
                None => "use a larger train.pool",
                Some(_) => "use more train.instances",
            };
            return Err(Error::invalid("train.batch", self.batch, condition, advice));
        }
        for (key, value) in [
            ("batch", self.batch),
            ("pool", self.pool),
            ("rollout_walkers", self.rollout_walkers),
            ("rollout_steps", self.rollout_steps),
            ("validate_walkers", self.validate_walkers),
        ] {
            if value > MOST {
                let condition = format!("at most {MOST}");
                return Err(Error::invalid(format!("train.{key}"), value, condition, "use fewer"));
            }
        }
        // Nothing stops training within a step or a validation's interval: those must end.
        for (key, value, most) in [
            ("sweeps", self.sweeps, MOST_SWEEPS),
            ("validate_intervals", self.validate_intervals as u64, MOST_INTERVALS),
            ("steps", self.steps, MOST_STEPS),
            ("warmup", self.warmup, MOST_STEPS),
        ] {
            if value > most {
                let condition = format!("at most {most}");
                return Err(Error::invalid(format!("train.{key}"), value, condition, "use fewer"));
            }
        }
        let rollouts = self.rollout_walkers.saturating_mul(self.rollout_steps);
        let kept = if self.reference == Reference::Buffer { self.buffer } else { 1 };
        if self.reference != Reference::Pool && rollouts.saturating_mul(kept) > MOST {
            return Err(Error::invalid(
                "train.buffer",
                kept,
                format!(
                    "such that all rollouts hold at most {MOST} states; one holds {rollouts} of them"
                ),
                "use fewer rollouts, walkers or steps",
            ));
        }
        positive("rollout_walkers", self.rollout_walkers as u64, "200 is usual")?;
        positive("rollout_steps", self.rollout_steps as u64, "125 is usual")?;
        positive("buffer", self.buffer as u64, "100 is usual")?;
        positive("rollout_every", self.rollout_every, "100 is usual")?;
        positive("decay_every", self.decay_every, "1000 is usual")?;
        positive("checkpoint_every", self.checkpoint_every, "500 is usual")?;
        positive("validate_walkers", self.validate_walkers as u64, "500 is usual")?;
        positive("validate_intervals", self.validate_intervals as u64, "50 is usual")?;
        let within = |key: &str, value: f64, low: f64, high: f64, advice: &str| {
            if value >= low && value <= high {
                return Ok(());
            }
            let condition = format!("from {low} to {high}");
            Err(Error::invalid(format!("train.{key}"), value, condition, advice))
        };
        within("lr", self.lr, 1e-12, 1.0, "2e-3 is usual")?;
        within("beta1", self.beta1, 0.0, 0.999_999, "0.9 is usual")?;
        within("beta2", self.beta2, 0.0, 0.999_999_9, "0.99 is usual")?;
        within("ema", self.ema, 0.0, 0.999_999_9, "0.995 is usual; 0 averages nothing")?;
        within("clip", self.clip, 1e-12, f64::MAX, "20 is usual")?;
        within("decay_factor", self.decay_factor, 1e-6, 1.0, "0.995 is the paper's")?;
        self.check_family()?;
        self.check_instances()
    }

    fn check_instances(&self) -> Result<()> {
        let walkers = self.walkers_per_instance();
        let Some(instances) = self.instances() else {
            let Some(walkers) = self.walkers_per_instance else { return Ok(()) };
            let (key, condition) = ("train.walkers_per_instance", "left out for a single target");
            return Err(Error::invalid(key, walkers, condition, "train.instances trains on many"));
        };
        let refused = |condition: String, advice: &str| {
            Err(Error::invalid("train.instances", instances, condition, advice))
        };
        if self.ranges().is_some() {
            let advice = "one network for many instances serves one beta at the end of the path, and those on the way";
            return refused(
                "left out beside train.beta_range and train.field_range".into(),
                advice,
            );
        }
        if self.reference != Reference::Pool {
            return refused(
                "given with train.reference = pool".into(),
                "rollouts go to one target",
            );
        }
        if !MAY_SHARE.contains(&walkers) {
            let (key, condition) = ("train.walkers_per_instance", "2, 4, 8 or 16");
            return Err(Error::invalid(key, walkers, condition, "leave it out for 4"));
        }
        if instances > MOST / walkers {
            return refused(format!("at most {}", MOST / walkers), "use fewer");
        }
        if !self.batch.is_multiple_of(walkers) {
            let condition = format!("a multiple of {walkers}, the walkers of an instance");
            return Err(Error::invalid("train.batch", self.batch, condition, "1024 is usual"));
        }
        Ok(())
    }

    fn check_family(&self) -> Result<()> {
        let Some(ranges) = self.ranges() else {
            let Some(members) = self.members else { return Ok(()) };
            let condition = "left out for a single target";
            let advice = "train.beta_range or train.field_range makes a family";
            return Err(Error::invalid("train.members", members, condition, advice));
        };
        ranges.check()?;
        if let [_, (other, [low, high]), ..] = self.strengths()[..] {
            return Err(Error::invalid(
                format!("train.{}_range", other.name()),
                format!("[{low}, {high}]"),
                "the only range beside train.beta_range",
                "leave the others out",
            ));
        }
        if !(2..=self.pool).contains(&self.members()) {
            let condition = format!("from 2 to the pool, {}", self.pool);
            let advice = "64 is usual";
            return Err(Error::invalid("train.members", self.members(), condition, advice));
        }
        if self.reference != Reference::Pool {
            let name = format!("{:?}", self.reference).to_lowercase();
            let condition = "pool for a range of beta or field";
            let advice = "leave it out; rollouts go to one target";
            return Err(Error::invalid("train.reference", name, condition, advice));
        }
        Ok(())
    }

    /// Ranges of fields, and of what stands in their place.
    fn strengths(&self) -> Vec<(Strength, [f64; 2])> {
        let ranges = [self.field_range, self.chemical_potential_range, self.crystal_field_range];
        let all = Strength::ALL.into_iter().zip(ranges);
        all.filter_map(|(of, range)| Some((of, range?))).collect()
    }

    /// The ranges of the family that is trained on, if it is one.
    pub fn ranges(&self) -> Option<Ranges> {
        let (of, field) = match self.strengths().first() {
            Some(&(of, range)) => (of, Some(range)),
            None => (Strength::Field, None),
        };
        let ranges = Ranges { beta: self.beta_range, field, of };
        (ranges.conditions() > 0).then_some(ranges)
    }

    /// Random instances that are trained on, if it is not the target alone.
    pub fn instances(&self) -> Option<usize> {
        self.instances.filter(|instances| *instances > 0)
    }

    /// Reference walkers of each.
    pub fn walkers_per_instance(&self) -> usize {
        self.walkers_per_instance.unwrap_or(WALKERS_PER_INSTANCE)
    }

    /// Walkers of the pool: those of all instances, if there are some.
    pub fn pool_walkers(&self) -> usize {
        match self.instances() {
            Some(instances) => instances.saturating_mul(self.walkers_per_instance()),
            None => self.pool,
        }
    }

    /// Members of the family that are trained on.
    pub fn members(&self) -> usize {
        self.members.unwrap_or(MEMBERS)
    }

    /// The learning rate of step `step`, from 0.
    pub fn rate(&self, step: u64) -> f64 {
        let warm = if self.warmup == 0 { 1.0 } else { (step as f64 + 1.0) / self.warmup as f64 };
        let fall = match self.decay {
            Decay::None => 1.0,
            Decay::Step => self.decay_factor.powf((step / self.decay_every) as f64),
            Decay::Cosine => {
                let part = step as f64 / self.steps as f64;
                0.01 + 0.99 * 0.5 * (1.0 + (std::f64::consts::PI * part.min(1.0)).cos())
            }
        };
        self.lr * warm.min(1.0) * fall
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_learning_rate_rises_and_falls() {
        let spec = TrainSpec { steps: 1000, warmup: 100, lr: 1.0, ..TrainSpec::default() };
        assert!((spec.rate(0) - 0.01).abs() < 1e-6);
        assert!(spec.rate(99) > 0.97 && spec.rate(500) < 0.52);
        assert!((spec.rate(1000) - 0.01).abs() < 1e-9);
        let step = TrainSpec { decay: Decay::Step, warmup: 0, lr: 1.0, ..TrainSpec::default() };
        assert_eq!(step.rate(999), 1.0);
        assert!((step.rate(2000) - 0.995f64.powi(2)).abs() < 1e-12);
        assert!(TrainSpec { lr: f64::NAN, ..TrainSpec::default() }.check().is_err());
        assert!(TrainSpec::default().check().is_ok());
        let buffer = Reference::Buffer;
        for (key, absurd) in [
            ("sweeps", TrainSpec { sweeps: 1 << 50, ..TrainSpec::default() }),
            ("steps", TrainSpec { steps: u64::MAX, ..TrainSpec::default() }),
            ("warmup", TrainSpec { warmup: u64::MAX, ..TrainSpec::default() }),
            ("rollout_steps", TrainSpec { rollout_steps: 1 << 50, ..TrainSpec::default() }),
            (
                "validate_intervals",
                TrainSpec { validate_intervals: 1 << 50, ..TrainSpec::default() },
            ),
            ("buffer", TrainSpec { buffer: 1 << 50, reference: buffer, ..TrainSpec::default() }),
        ] {
            let error = absurd.check().unwrap_err().to_string();
            assert!(error.starts_with(&format!("train.{key} = ")), "{error}");
        }
    }
}
