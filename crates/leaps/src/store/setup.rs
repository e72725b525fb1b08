//! The setup of a training run, and everything that changes in training to and from arrays.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::model::{Model, ModelParts, Summary};
use super::parameters;
use super::sealed;
use super::tensors::Tensors;
use super::warm::Origin;
use crate::device::{Placement, Progress, Ranks};
use crate::net::{FreeEnergy, FreeEnergySpec, Net, NetSpec};
use crate::path::{Path, PathSpec};
use crate::rates::Parametrisation;
use crate::target::Target;
use crate::train::{
    Buffer, Decay, Family, Instances, Objective, Optimiser, Pool, Reference, TrainSpec, Trainer,
};
use crate::{Error, Result};

/// What is trained, on what, and how.
#[derive(Clone)]
pub struct Setup {
    /// What to sample.
    pub target: Arc<dyn Target>,
    /// The path to it.
    pub path: Path,
    /// The family of targets that is trained on, if it is not this one alone; its ranges are those of [`train`](Self::train).
    pub family: Option<Family>,
    /// The random instances that are trained on, if it is not the target itself.
    pub instances: Option<Instances>,
    /// The network.
    pub net: Arc<Net>,
    /// The free energy.
    pub free: Arc<FreeEnergy>,
    /// How fluxes become rates.
    pub parametrisation: Parametrisation,
    /// How to train.
    pub train: TrainSpec,
    /// Seed of everything random.
    pub seed: u64,
    /// The trained model that the run starts from, if it does not start afresh; for the files.
    pub from: Option<Origin>,
    /// Parameters to start with in place of fresh ones, [`WarmStart::parameters`](super::WarmStart::parameters); a run that
    /// continues has its own.
    pub parameters: Option<Vec<f32>>,
    /// Where to compute; a run may continue elsewhere.
    pub placement: Placement,
    /// The processes that share the work.
    pub ranks: Arc<dyn Ranks>,
    /// The target in words of the caller, for the files.
    pub described_target: Value,
    /// Files that these words name, by their names from the run's directory on: models and runs have copies.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The path as it was described, for the files.
    pub described_path: PathSpec,
}

/// What makes two runs the same: a run continues only with an equal one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// The target, as described.
    pub target: Value,
    /// The path, as described.
    #[serde(serialize_with = "sealed::sorted")]
    pub path: PathSpec,
    /// The network.
    pub network: NetSpec,
    /// The free energy.
    pub free_energy: FreeEnergySpec,
    /// How fluxes become rates.
    pub parametrisation: Parametrisation,
    /// How it is trained.
    pub train: TrainSpec,
    /// The seed.
    pub seed: u64,
    /// The trained model that it started from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Origin>,
}

/// Settings that may change when a run continues: without roll-backs they leave the parameters alone. So does the
/// number of steps, unless the learning rate falls towards the last one.
const FREE: [&str; 6] = [
    "validate_every",
    "validate_walkers",
    "validate_intervals",
    "checkpoint_every",
    "rollbacks",
    "tensorboard",
];

impl Identity {
    /// The first setting in which `self` is not what `old` was: its name, its value now, its value then.
    pub fn difference(&self, old: &Identity) -> Option<(String, Value, Value)> {
        let keys = |identity: &Identity| {
            // Structures of ours have text keys and no failing serialisers.
            let mut value = serde_json::to_value(identity).unwrap_or_else(|_| unreachable!());
            if let Some(train) = value.get_mut("train").and_then(Value::as_object_mut) {
                let steps = (identity.train.decay != Decay::Cosine).then_some("steps");
                FREE.into_iter().chain(steps).for_each(|key| drop(train.remove(key)));
                // Users know it as a setting of training. Its model may have been trained on since.
                train.extend(identity.from.iter().map(|f| ("from".into(), f.name.clone().into())));
            }
            if let Some(entries) = value.as_object_mut() {
                entries.remove("from");
            }
            value
        };
        difference("", &keys(self), &keys(old))
    }

    /// Refuse to continue a run that is another one.
    pub(crate) fn check(&self, old: &Identity, run: &std::path::Path) -> Result<()> {
        let Some((key, now, then)) = self.difference(old) else { return Ok(()) };
        let run = run.display();
        if key == "target.energies" {
            let condition = format!("that of the run in {run}, which has other energies");
            let advice = "train in another directory, or start over in this one with `fresh`";
            return Err(Error::invalid("target", "another energy", condition, advice));
        }
        let shown = |value: Value| if value.is_null() { "(left out)".into() } else { value };
        let (now, then) = (shown(now), shown(then));
        if let Some(own) = key.strip_prefix("target.").and_then(|k| k.strip_suffix("_checksum")) {
            // Names were compared before: it is the contents that differ.
            let file = self.target[own].as_str().and_then(|name| name.rsplit('/').next());
            let condition = format!(
                "the file that the run in {run} was started with, and the file has changed since"
            );
            let advice = "put the old one back, of which every checkpoint of the run has a copy, or start over in a new directory with `fresh`";
            let (key, file) = (format!("target.{own}"), file.unwrap_or("(left out)"));
            return Err(Error::invalid(key, file, condition, advice));
        }
        let condition = format!("{then}, as in the run in {run}");
        let advice = match key.as_str() {
            "train.steps" => format!(
                "its learning rate falls towards the last step (decay cosine), so that a longer run is another run; \
                 go on from its parameters in a new one with `train.from` {run} and a new `out`"
            ),
            _ => "set it back to continue that run, or start over in a new directory with `fresh`"
                .into(),
        };
        Err(Error::invalid(key, now, condition, advice))
    }
}

fn difference(key: &str, now: &Value, then: &Value) -> Option<(String, Value, Value)> {
    let (Value::Object(a), Value::Object(b)) = (now, then) else {
        return (now != then).then(|| (key.into(), now.clone(), then.clone()));
    };
    let names = a.keys().chain(b.keys().filter(|name| !a.contains_key(*name)));
    names.into_iter().find_map(|name| {
        let inner = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
        difference(&inner, a.get(name).unwrap_or(&Value::Null), b.get(name).unwrap_or(&Value::Null))
    })
}

impl Setup {
    /// What makes this run itself.
    pub fn identity(&self) -> Identity {
        Identity {
            target: self.described_target.clone(),
            path: self.described_path.clone(),
            network: self.net.spec().clone(),
            free_energy: self.free.spec().clone(),
            parametrisation: self.parametrisation,
            train: self.train.clone(),
            seed: self.seed,
            from: self.from.clone(),
        }
    }

    /// Training from the start: fresh parameters, or those it was given. `progress` can interrupt the preparation of
    /// reference states.
    pub fn start(&self, progress: &dyn Progress) -> Result<Trainer> {
        let mut trainer = Trainer::new(&self.objective()?, &self.train, self.seed, progress)?;
        match (&self.parameters, &self.from) {
            (Some(parameters), _) => trainer.start_from(parameters)?,
            // The checkpoints were there when the caller looked, and no model was read.
            (None, Some(from)) => {
                let (condition, advice) = ("given with its parameters", "start the run again");
                return Err(Error::invalid("train.from", &from.name, condition, advice));
            }
            (None, None) => {}
        }
        self.placed(trainer)
    }

    /// Training where it is to go on.
    fn placed(&self, trainer: Trainer) -> Result<Trainer> {
        trainer.with_ranks(self.ranks.clone()).place_on(&self.placement)
    }

    /// What is learnt, on the family if there is one.
    fn objective(&self) -> Result<Objective> {
        let Setup { target, path, net, free, parametrisation, .. } = self;
        let objective = Objective::new(target, path, net, free, *parametrisation);
        match (&self.family, self.train.ranges()) {
            (None, None) => match (&self.instances, self.train.instances()) {
                (None, None) => Ok(objective),
                (Some(instances), Some(_)) => objective.over_instances(instances),
                (instances, _) => Err(Error::invalid(
                    "instances",
                    if instances.is_some() { "given" } else { "left out" },
                    "given if and only if train has a number of them",
                    "set train.instances beside it",
                )),
            },
            (Some(family), Some(_)) => objective.over(family),
            (family, _) => Err(Error::invalid(
                "family",
                if family.is_some() { "given" } else { "left out" },
                "given if and only if train has a range",
                "set train.beta_range or train.field_range beside it",
            )),
        }
    }

    /// The network as it is.
    pub(crate) fn model(&self, trainer: &Trainer, training: Summary) -> Result<Model> {
        let model = Model::new(ModelParts {
            net: &self.net,
            free: &self.free,
            parametrisation: self.parametrisation,
            target: self.described_target.clone(),
            path: self.described_path.clone(),
            training,
            average: &trainer.state.optimiser.average,
            raw: Some(&trainer.state.optimiser.parameters),
        })?;
        Ok(Model { family: self.train.ranges(), files: self.files.clone(), ..model })
    }

    /// What training needs besides the model to go on as if it had never stopped.
    pub(crate) fn state<'t>(&self, trainer: &'t Trainer) -> Result<Tensors<'t>> {
        let mut tensors = Tensors::new("state.safetensors");
        let (state, sites) = (&trainer.state, self.target.sites());
        let optimiser = &state.optimiser;
        parameters::put(&mut tensors, "first.", &self.net, &self.free, &optimiser.first)?;
        parameters::put(&mut tensors, "second.", &self.net, &self.free, &optimiser.second)?;
        tensors.put("step", &[1], vec![optimiser.step]);
        tensors.put("rate_factor", &[1], vec![state.rate_factor]);
        if let Some(pool) = &state.pool {
            tensors.put("pool", &[pool.walkers(), sites], pool.states.as_slice());
        }
        // Rollouts of the policy are used once: the next step makes new ones.
        if self.train.reference == Reference::Buffer {
            let Buffer { states, times, next } = &state.buffer;
            tensors.put("buffer.states", &[times.len(), sites], states.as_slice());
            tensors.put("buffer.times", &[times.len()], times.as_slice());
            tensors.put("buffer.next", &[1], vec![*next as u64]);
        }
        Ok(tensors)
    }

    /// Training from where `model` and `state` were taken.
    pub(crate) fn resume(&self, model: &Model, state: &Tensors<'_>) -> Result<Trainer> {
        let mut average = model.parameters(&self.net)?;
        average.extend(model.free_parameters(&self.free)?);
        let Some(parameters) = model.raw(&self.net, &self.free)? else {
            let (what, reason) = ("tensors raw.*".into(), "are missing".into());
            return Err(Error::Corrupt { path: model.file().into(), what, reason });
        };
        let means = |prefix: &str| {
            let mut all =
                parameters::collect(state, &format!("{prefix}.net."), &self.net.tensors())?;
            all.extend(parameters::collect(
                state,
                &format!("{prefix}.free."),
                &self.free.tensors(),
            )?);
            Result::Ok(all)
        };
        let mut trainer =
            Trainer::bare(&self.objective()?, &self.train, self.seed, parameters.clone())?;
        let (first, second) = (means("first")?, means("second")?);
        let made = &mut trainer.state;
        made.optimiser =
            Optimiser { parameters, average, first, second, step: state.number("step")? };
        made.rate_factor = state.number("rate_factor")?;
        if !(made.rate_factor > 0.0 && made.rate_factor <= 1.0) {
            return Err(state.corrupt("tensor rate_factor", "is not from 0 to 1"));
        }
        match self.train.reference {
            Reference::Pool => made.pool = Some(self.pool(state)?),
            Reference::Buffer => made.buffer = self.buffer(state)?,
            Reference::Policy => {}
        }
        self.placed(trainer)
    }

    fn pool(&self, state: &Tensors<'_>) -> Result<Pool> {
        let (shape, states) = state.get::<u8>("pool")?;
        let expected = [self.train.pool_walkers(), self.target.sites()];
        if shape != expected {
            let reason = format!("has shape {shape:?} instead of {expected:?}");
            return Err(state.corrupt("tensor pool", reason));
        }
        Pool::resume(states.to_vec(), self.target.sites(), self.target.q(), self.seed)
            .map_err(|error| state.corrupt("tensor pool", error.to_string()))
    }

    fn buffer(&self, state: &Tensors<'_>) -> Result<Buffer> {
        let (_, states) = state.get::<u8>("buffer.states")?;
        let (_, times) = state.get::<f64>("buffer.times")?;
        let next = state.number::<u64>("buffer.next")? as usize;
        let spec = &self.train;
        let room = spec.buffer * spec.rollout_walkers * spec.rollout_steps;
        let whole = states.len() == times.len() * self.target.sites() && times.len() <= room;
        let q = states.iter().all(|&value| (value as usize) < self.target.q());
        if !whole || !q || next >= room || !times.iter().all(|t| (0.0..=1.0).contains(t)) {
            let reason = format!(
                "{} states at {} times do not fit this target and a buffer of {room}",
                states.len() / self.target.sites(),
                times.len()
            );
            return Err(state.corrupt("tensors buffer.*", reason));
        }
        Ok(Buffer { states: states.to_vec(), times: times.to_vec(), next })
    }
}
