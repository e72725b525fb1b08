//! Averages over the instances of a disorder: a row for every run in place of one for each of its instances.

use leaps::job::experiment::{Experiment, Part, RunEntry, RunParts};

use super::measures::{Measure, measure};

/// What a run found on the instances of a target, or on the target itself.
pub struct Mean<'a> {
    /// What tables call it: the target and the run.
    pub name: String,
    /// The name of the target.
    pub group: &'a str,
    /// The run.
    pub run: &'a RunEntry,
    /// One part for every instance.
    pub parts: Vec<&'a Part>,
}

/// Whether targets are taken for several instances.
pub fn has_instances(experiment: &Experiment) -> bool {
    experiment.each().iter().any(|one| one.instances.is_some())
}

/// Every run at every setting, with its parts on all instances together.
pub fn means<'a>(runs: impl IntoIterator<Item = &'a RunParts>) -> Vec<Mean<'a>> {
    let mut all: Vec<Mean<'_>> = Vec::new();
    for RunParts { heading, group, run, parts } in runs {
        for part in parts {
            let own = part.label.strip_prefix(heading.as_str()).unwrap_or(&part.label);
            let own = own.trim_start_matches(", ");
            let name = if group.is_empty() { own.to_owned() } else { format!("{group}, {own}") };
            match all.iter_mut().find(|mean| mean.name == name && mean.group == group) {
                Some(mean) => mean.parts.push(part),
                None => all.push(Mean { name, group, run, parts: vec![part] }),
            }
        }
    }
    all
}

impl Mean<'_> {
    /// The mean over instances with its standard error; of one part alone, its own number and error.
    pub fn measure(&self, name: &str) -> Option<Measure> {
        let all: Vec<Measure> = self.parts.iter().filter_map(|part| measure(part, name)).collect();
        if let [one] = all[..] {
            return Some(one);
        }
        let (first, many) = (all.first()?, all.len() as f64);
        // Equal numbers, such as those of settings, have their mean to the last digit.
        if all.iter().all(|one| one.mean == first.mean) {
            return Some(Measure { error: 0.0, exact: None, exact_error: 0.0, ..*first });
        }
        let mean = all.iter().map(|one| one.mean).sum::<f64>() / many;
        let squares: f64 = all.iter().map(|one| (one.mean - mean).powi(2)).sum();
        let error = (squares / (many - 1.0) / many).sqrt();
        Some(Measure { mean, error, exact: None, exact_error: 0.0 })
    }

    /// Root mean square and largest size of the deviations from exact values, in standard errors.
    pub fn deviations(&self, name: &str) -> Option<(f64, f64)> {
        let off = |part: &&Part| {
            let found = measure(part, name)?;
            let error = found.error.hypot(found.exact_error);
            Some((found.mean - found.exact?).abs() / error).filter(|off| off.is_finite())
        };
        let all: Vec<f64> = self.parts.iter().filter_map(off).collect();
        let largest = all.iter().copied().reduce(f64::max)?;
        let squares: f64 = all.iter().map(|off| off * off).sum();
        Some(((squares / all.len() as f64).sqrt(), largest))
    }
}
