//! Problems: a target and the path that leads to it.

mod lattice_models;
mod models;
mod strength;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::path::{Path, PathSpec, Strength};
use crate::target::{Described, Target, TargetIdentity, TargetSpec, initial_state, undescribed};
use crate::{Error, Result, finite};

pub use lattice_models::{AshkinTeller, BaxterWu, BlumeCapel, Clock, Clusters, LatticeGas};
pub use models::{EdgeList, IndependentSet, Ising, MaxCut, Potts, SpinGlass};

/// The kind of targets that are not ours.
const CUSTOM: &str = "custom";
/// States whose energies tell custom targets apart.
const STATES: u32 = 64;

/// Energy terms of a few fixed states, one after the other.
fn sample_energies(target: &dyn Target) -> Result<Vec<f64>> {
    let states: Vec<u8> = (0..STATES).flat_map(|walker| initial_state(target, 0, walker)).collect();
    let mut energies = vec![0.0; STATES as usize * target.terms()];
    target.energies(&states, &mut energies)?;
    Ok(energies)
}

/// What to sample: $\\rho(x) \\propto e^{-\\beta E(x)}$, and the way from the uniform distribution to it.
///
/// Cheap to clone; everything that samples or trains is given one.
#[derive(Clone)]
pub struct Problem {
    /// The energy.
    pub target: Arc<dyn Target>,
    /// From the uniform distribution to `beta` times the energy.
    pub path: Path,
    /// The inverse temperature.
    pub beta: f64,
    /// The target in a few words.
    pub description: String,
    /// The target as it was described, if it is one of ours.
    pub spec: Option<TargetSpec>,
    /// The path as it was described.
    pub path_spec: PathSpec,
    /// The target for files: results, runs, models.
    pub described: Described,
}

impl std::fmt::Debug for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Problem").field(&self.description).finish()
    }
}

impl Problem {
    /// The target of a complete description at its own temperature, along a path.
    pub fn of(spec: &TargetSpec, path: &PathSpec) -> Result<Self> {
        let target = spec.build()?;
        let beta = spec.beta.unwrap_or(1.0);
        Ok(Problem {
            path: path.build(&target.term_names(), &vec![beta; target.terms()])?,
            beta,
            description: spec.describe(target.sites()),
            described: spec.described()?,
            target,
            spec: Some(spec.clone()),
            path_spec: path.clone(),
        })
    }

    /// Any energy of yours at inverse temperature `beta`, along a straight path.
    ///
    /// # Errors
    /// A `beta` that is not finite, or a target without sites or with a number of values outside 2 to 255.
    pub fn new(target: impl Target + 'static, beta: f64) -> Result<Self> {
        finite("target.beta", beta)?;
        let (sites, q) = (target.sites(), target.q());
        if sites == 0 || !(2..=255).contains(&q) {
            let shown = format!("{sites} sites of {q} values");
            let advice = "see Target::sites and Target::q";
            return Err(Error::invalid(
                "target",
                shown,
                "at least one site of 2 to 255 values",
                advice,
            ));
        }
        let path_spec = PathSpec::default();
        let mut described = json!({
            "kind": CUSTOM,
            "name": target.name(),
            "beta": beta,
            "q": q,
            "sites": sites,
            "energies": sample_energies(&target)?,
        });
        if let TargetIdentity::Custom { version: Some(version), .. } = target.identity() {
            described["version"] = version.into();
        }
        Ok(Problem {
            path: path_spec.build(&target.term_names(), &vec![beta; target.terms()])?,
            beta,
            description: format!("{} of {sites} sites, beta {beta}", target.name()),
            described: Described { target: described, files: BTreeMap::new() },
            target: Arc::new(target),
            spec: None,
            path_spec,
        })
    }

    /// The same target along another path.
    pub fn along(self, path: &PathSpec) -> Result<Self> {
        let ends = self.path.ends().to_vec();
        let built = path.build(&self.target.term_names(), &ends)?;
        Ok(Problem { path: built, path_spec: path.clone(), ..self })
    }

    /// The same energy at another inverse temperature and, if one is given, in another uniform field.
    pub fn at(&self, beta: f64, field: Option<f64>) -> Result<Self> {
        self.at_strength(beta, Strength::Field, field)
    }

    /// The same energy at another inverse temperature and, if one is given, with another value of a strength.
    pub fn at_strength(&self, beta: f64, of: Strength, value: Option<f64>) -> Result<Self> {
        finite("target.beta", beta)?;
        if let Some(spec) = &self.spec {
            let spec = match value {
                Some(value) => {
                    let spec = spec.clone().with_strength(of, value);
                    spec.check_strength(of)?;
                    spec
                }
                None => spec.clone(),
            };
            return Problem::of(&TargetSpec { beta: Some(beta), ..spec }, &self.path_spec);
        }
        if value.is_some() {
            let reason = "a custom energy has no field that could be changed";
            return Err(Error::not_applicable(format!("target.{}", of.name()), reason));
        }
        let (target, path_spec) = (&self.target, &self.path_spec);
        let mut described = self.described.clone();
        described.target["beta"] = beta.into();
        Ok(Problem {
            path: path_spec.build(&target.term_names(), &vec![beta; target.terms()])?,
            beta,
            description: format!("{} of {} sites, beta {beta}", target.name(), target.sites()),
            described,
            ..self.clone()
        })
    }

    /// The problem that a model describes, whose files lie beside `file` and are known by their contents.
    pub(crate) fn described_in(
        target: &Value,
        path: &PathSpec,
        file: &std::path::Path,
        copies: &BTreeMap<String, Vec<u8>>,
    ) -> Result<Self> {
        let folder = file.parent().unwrap_or(std::path::Path::new(""));
        if target["kind"] == CUSTOM {
            let name = target["name"].as_str().unwrap_or(CUSTOM);
            let reason = format!(
                "it was trained on the energy {name}, which only its program has; load it there (leaps.load(directory, energy) in Python)"
            );
            return Err(Error::not_applicable("the model without its energy", reason));
        }
        let target = undescribed(target.clone(), folder, copies)?;
        let spec: TargetSpec = serde_json::from_value(target).map_err(|error| Error::Corrupt {
            path: folder.join("model.json"),
            what: "target".to_owned(),
            reason: error.to_string(),
        })?;
        Problem::of(&spec.placed(|_, path| folder.join(path)).filled()?, path)
    }

    /// What the target is: as it was described, or a custom energy.
    pub fn identity(&self) -> TargetIdentity {
        match &self.spec {
            Some(spec) => TargetIdentity::BuiltIn(Box::new(spec.clone())),
            None => self.target.identity(),
        }
    }

    /// Refuse to use a model that was trained on another custom energy or another version of it, by energies of a few states.
    pub fn check_same(&self, described: &Value, model: &str) -> Result<()> {
        let custom = |target: &Value| target["kind"] == CUSTOM;
        let own = &self.described.target;
        if !custom(described) && !custom(own) {
            return Ok(());
        }
        let energies = |target: &Value| -> Option<Vec<f64>> {
            target["energies"].as_array()?.iter().map(Value::as_f64).collect()
        };
        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * (1.0 + a.abs().max(b.abs()));
        let same = match (energies(own), energies(described)) {
            (Some(a), Some(b)) => a.len() == b.len() && a.iter().zip(&b).all(near),
            _ => false,
        };
        if same && own["version"] == described["version"] {
            return Ok(());
        }
        let name = described["name"].as_str().unwrap_or("a built-in target");
        let what =
            if same { "version is another than that" } else { "energies are other than those" };
        let reason = format!("it was trained on {name}, whose {what} of {}", self.description);
        Err(Error::not_applicable(format!("the model {model}"), reason))
    }

    /// The target for results: as it was described, with checksums of its files and its number of sites.
    pub fn origin(&self) -> Map<String, Value> {
        let described = match &self.spec {
            Some(spec) => spec.without_gaps(),
            None => self.described.target.clone(),
        };
        let Value::Object(mut target) = described else { return Map::new() };
        let sums = self.described.target.as_object().into_iter().flatten();
        let sums = sums.filter(|(key, _)| key.ends_with("_checksum"));
        target.extend(sums.map(|(key, sum)| (key.clone(), sum.clone())));
        target.insert("sites".to_owned(), self.target.sites().into());
        target
    }
}
