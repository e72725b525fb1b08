//! The tables of a report, and how to repeat it; what has no data is left out.

use leaps::observe::Estimate;
use leaps::results::{Compared, Comparison, Origin, Record, SamplerResult, attach_exact, named};

use super::charts::merits;
use super::found::Found;
use super::html::{Form, escape, estimated, quoted, shown, table};
use super::page::Page;
use crate::text::{Short, fixed, sigmas, with_error};

impl Page<'_> {
    pub fn observables(&self) -> String {
        let found = Found::of(self.source);
        let Some(observed) = found.observables.as_ref().map(named) else { return String::new() };
        let mean_of = |name: &str| {
            let own = observed.iter().find(|(other, _)| *other == name);
            own.map(|(_, value)| *value).filter(|value| value.mean.is_finite())
        };
        let law = self.reference.law.as_ref();
        let mut law = law.map(|law| (law.name.as_str(), named(&law.samples.observables())));
        let known = self.known();
        let exact_of = |name: &str| {
            let own = mean_of(name).and_then(|value| value.exact);
            own.or_else(|| known.iter().find(|(other, _)| *other == name)?.1.exact)
        };
        // Where the exact value is known nothing else is worth a look, and a column of nothing is none.
        law.as_mut().into_iter().for_each(|(of, others)| {
            others.retain(|(name, _)| *of == "exact" || exact_of(name).is_none());
            others.retain(|(name, _)| mean_of(name).is_some());
        });
        let law = law.filter(|(_, others)| !others.is_empty());
        let mut head = ["", "estimate", "exact", "sigmas"].map(str::to_owned).to_vec();
        head.extend(law.iter().map(|(name, _)| escape(name)));
        let mut rows = vec![head];
        let free =
            [("free_energy_per_site", found.free_energy), ("entropy_per_site", found.entropy)];
        let free = free.into_iter().filter_map(|(name, value)| Some((name, "", value?)));
        let mut listed: Vec<_> = observed.iter().map(|&(n, v)| (n, "observables.", v)).collect();
        listed.sort_by_key(|(name, ..)| *name);
        for (name, place, value) in free.chain(listed) {
            let (path, own) = (format!("{place}{name}"), value.exact);
            if !value.mean.is_finite() {
                continue;
            }
            let exact = own.or_else(|| exact_of(name));
            let cell = |value: f64| match own {
                Some(_) => shown(&format!("{path}.exact"), value, Form::Fixed(6)),
                None => escape(&fixed(value, 6)),
            };
            let mut row = vec![
                escape(&name.replace('_', " ")),
                estimated(&path, value),
                exact.map(cell).unwrap_or_default(),
                exact.map(|exact| sigmas(value.mean, value.error, exact)).unwrap_or_default(),
            ];
            if let Some((name_of, others)) = &law {
                let other = others.iter().find(|(other, _)| *other == name);
                let other = other.map(|(_, value)| value);
                let text = other.map(|value| match *name_of {
                    "exact" => fixed(value.mean, 6),
                    _ => with_error(value.mean, value.error),
                });
                row.push(text.unwrap_or_default());
            }
            rows.push(row);
        }
        let note = escape(&self.reference.sentence());
        table("Observables", "numbers", &rows) + &format!("<p class=\"note\">{note}</p>\n")
    }

    /// Both measures of merit, and what each is for.
    pub fn worth(&self) -> String {
        let found = Found::of(self.source);
        let measures = [
            (
                "effective_samples_per_second",
                found.samples,
                "effective samples per second",
                "averages: their variance after a second is that of one sample divided by this",
            ),
            (
                "log_z_merit",
                found.log_z_merit,
                "log Z merit, 1/(variance &times; seconds)",
                "log Z: its variance after a second is one over this",
            ),
            (
                "two_sided.log_z_merit",
                found.two_sided.map(|both| both.log_z_merit),
                "the same of walkers that go both ways",
                "log Z from both ends of the path",
            ),
        ];
        let mut rows = vec![["measure", "value", "for"].map(str::to_owned).to_vec()];
        for (key, value, name, purpose) in measures {
            if let Some(value) = value.filter(|value| value.is_finite()) {
                let value = shown(key, value, Form::Short);
                rows.push(vec![name.to_owned(), value, purpose.to_owned()]);
            }
        }
        if rows.len() == 1 {
            return String::new();
        }
        let note = "Training is not counted. Either number is of this machine and this run alone.";
        table("What a second is worth", "words", &rows) + &format!("<p class=\"note\">{note}</p>\n")
    }

    /// Estimates at inverse temperatures that the walkers passed.
    pub fn at_beta(&self) -> String {
        let stops = match &self.source.result {
            Some(SamplerResult::Walkers(result)) => &result.at_beta[..],
            _ => &[],
        };
        if stops.is_empty() {
            return String::new();
        }
        let head = ["beta", "log Z", "F/N", "S/N", "E/N", "C/N", "|m|", "ESS"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        for (at, stop) in stops.iter().enumerate() {
            let cell = |key: &str, value, form| shown(&format!("at_beta.{at}.{key}"), value, form);
            let estimate = |key: &str, value| estimated(&format!("at_beta.{at}.{key}"), value);
            let averages = &stop.observables;
            rows.push(vec![
                cell("beta", stop.beta, Form::Full),
                estimate("log_z", stop.log_z),
                estimate("free_energy_per_site", stop.free_energy_per_site),
                estimate("entropy_per_site", stop.entropy_per_site),
                estimate("observables.energy_per_site", averages.energy_per_site),
                estimate("observables.heat_capacity_per_site", averages.heat_capacity_per_site),
                estimate("observables.abs_magnetization", averages.abs_magnetization),
                cell("ess", stop.ess, Form::WithError(stop.ess_error)),
            ]);
        }
        table("On the way", "numbers", &rows)
    }

    /// The observables of the run with the exact values that the reference has.
    fn known(&self) -> Vec<(&'static str, Estimate)> {
        let own = self.source.result.as_ref().map(|result| match result {
            SamplerResult::Walkers(result) => result.observables.clone(),
            SamplerResult::Chains(result) => result.estimates(),
        });
        let (Some(mut own), Some(exact), Some(problem)) =
            (own, &self.reference.exact, self.problem)
        else {
            return Vec::new();
        };
        attach_exact(&mut own, exact, &*problem.target, problem.path.ends());
        named(&own)
    }

    pub fn comparison(&self) -> String {
        let Some(Record { result: Comparison { samplers, .. }, .. }) = &self.source.compared else {
            return String::new();
        };
        let head = [
            "sampler",
            "ESS",
            "log Z",
            "sigmas",
            "network passes",
            "energy calls",
            "seconds",
            "samples/s",
            "log Z merit",
        ];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        for Compared { name, result, .. } in samplers {
            let (ess, cost) = match result {
                SamplerResult::Walkers(r) => {
                    ([r.ess, r.ess_error], [r.network_passes_per_walker, r.energy_calls_per_walker])
                }
                SamplerResult::Chains(r) => {
                    ([r.ess, r.ess_error], [r.network_passes_per_walker, r.energy_calls_per_walker])
                }
            };
            let log_z = result.log_z();
            let none = || "-".to_owned();
            let sigmas = |e: Estimate| Some(sigmas(e.mean, e.error, e.exact?));
            let mut row = vec![
                escape(name),
                with_error(ess[0], ess[1]),
                log_z.map_or_else(none, |e| with_error(e.mean, e.error)),
                log_z.and_then(sigmas).unwrap_or_else(none),
            ];
            let numbers = cost.into_iter().chain([result.seconds()]).chain(merits(result));
            row.extend(numbers.map(|number| Short(number).to_string()));
            rows.push(row);
        }
        table("Comparison", "numbers", &rows)
    }

    pub fn settings(&self) -> String {
        let mut rows = vec![vec!["setting".to_owned(), "value".to_owned()]];
        let mut set = |key: &str, value: &str| rows.push(vec![key.to_owned(), escape(value)]);
        // Targets may be described by programs: their keys are not ours.
        let origin = self.source.origin.as_ref();
        for (key, value) in origin.into_iter().flat_map(|origin| &origin.target) {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            set(&format!("target {}", escape(&key.replace('_', " "))), &value);
        }
        let found = Found::of(self.source);
        found.settings().iter().for_each(|(key, value)| set(key, value));
        if found.interrupted {
            set("interrupted", "true");
        }
        if let Some(reached) = self.source.reached() {
            set("reached", &serde_json::to_string(reached).unwrap_or_default());
        }
        if let Some(seed) = found.seed {
            set("seed", &seed.to_string());
        }
        if let Some(origin) = origin {
            set("device", &origin.device);
        }
        let mut out =
            if rows.len() > 1 { table("Settings", "settings", &rows) } else { String::new() };
        if let Some(config) = &self.source.config {
            let config = escape(config);
            out +=
                &format!("<details><summary>config.toml</summary><pre>{config}</pre></details>\n");
        }
        out
    }

    pub fn commands(&self) -> String {
        let mut lines = Vec::new();
        let line = |words: &[String]| {
            let program = std::iter::once("leaps".to_owned());
            let rest = untimed(words).into_iter().skip(1).map(quoted);
            program.chain(rest).collect::<Vec<_>>().join(" ")
        };
        lines.extend(self.source.training.as_deref().map(line));
        let compared = self.source.compared.as_ref().map(|compared| &compared.origin);
        for Origin { command: words, .. } in self.source.origin.iter().chain(compared) {
            let mut own = line(words);
            if self.source.from_file {
                own += &format!(" > {}", quoted(&self.source.name));
            }
            if words.iter().any(|word| word == "-" || word == "--config=-") {
                own += "  # the configuration came from standard input";
            }
            if !lines.contains(&own) {
                lines.push(own);
            }
        }
        lines.push(format!("leaps report {}", quoted(&self.source.name)));
        format!("<pre>{}</pre>\n", escape(&lines.join("\n")))
    }
}

/// The words of a command without its time limit: whoever repeats it wants all of it.
fn untimed(words: &[String]) -> Vec<&str> {
    let (mut kept, mut rest) = (Vec::new(), words.iter().map(String::as_str));
    while let Some(word) = rest.next() {
        match word {
            "--time-limit" => drop(rest.next()),
            word if word.starts_with("--time-limit=") => {}
            word => kept.push(word),
        }
    }
    kept
}
