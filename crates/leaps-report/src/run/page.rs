//! The sections of a report; a section without data is left out.

use leaps::observe::Estimate;
use serde_json::Value;

use super::charts;
use super::html::{escape, lookup, number, quoted, shown, table};
use super::pictures::pictures;
use super::source::{Source, words};
use super::thermo;
use crate::draw::Chart;
use crate::text::{Short, beside, fixed, sigmas, span, with_error};
use leaps::job::Reference;
use leaps::problem::Problem;
use leaps::results::{Compared, Comparison, SamplerResult, attach_exact, named};
use leaps::spec::RunSpec;

/// What a page is made of.
pub struct Page<'a> {
    pub source: &'a Source,
    pub config: &'a RunSpec,
    /// None if a file that it is made of is not what it was.
    pub problem: Option<&'a Problem>,
    pub reference: Reference,
}

const STYLE: &str = include_str!("style.css");

impl Page<'_> {
    /// The whole page.
    pub fn html(&self) -> String {
        let results = &self.source.results;
        let title = escape(&self.description());
        let exact = number(results, "log_z.exact");
        let law = self.reference.law.as_ref();
        let mut out = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        );
        out += &format!("<p class=\"lead\">{}</p>\n", escape(&self.lead()));
        out += &self.facts();
        let result = self.source.result.as_ref();
        let grid = self.source.free_energy.as_ref();
        let doubts = result.map(SamplerResult::doubts).into_iter().flatten();
        for doubt in doubts.chain(grid.into_iter().flat_map(|grid| grid.warnings.clone())) {
            out += &format!("<p class=\"warning\">Warning: {}</p>\n", escape(&doubt));
        }
        let walkers = result.and_then(|result| match result {
            SamplerResult::Walkers(result) => Some(&**result),
            SamplerResult::Chains(_) => None,
        });
        let tempering = result.and_then(|result| match result {
            SamplerResult::Walkers(_) => None,
            SamplerResult::Chains(result) => result.tempering.as_ref(),
        });
        let drawn = grid.map(|grid| thermo::curves(&self.description(), grid));
        out += &section("Over temperatures and fields", &drawn.unwrap_or_default());
        let listed = grid.map(|grid| thermo::grid(results, grid));
        out += &section("Free energies", &listed.unwrap_or_default());
        let histograms = result.map(|result| charts::histograms(result, law));
        let figures = [
            ("Training", charts::training(&self.source.metrics, exact)),
            ("Along the path", walkers.map(charts::path).unwrap_or_default()),
            ("At the end of the path", histograms.unwrap_or_default()),
        ];
        for (heading, charts) in figures {
            out += &section(heading, &figure(&charts, self.note(heading)));
        }
        let frames = walkers.and_then(|walkers| walkers.snapshots.as_ref().map(pictures));
        let frames = frames.unwrap_or_default();
        let note = "<p class=\"note\">One walker from the uniform start to the target, not reweighted.</p>\n";
        out += &section("Lattice", &if frames.is_empty() { frames } else { frames + note });
        out += &section("Observables", &self.observables());
        out += &section("On the way", &self.at_beta());
        let rungs = tempering.map(|tempering| thermo::ladder(results, tempering));
        out += &section("Temperatures of the ladder", &rungs.unwrap_or_default());
        out += &section("Comparison", &self.comparison());
        out += &section("Settings", &self.settings());
        out += &section("How to repeat it", &self.commands());
        if !results.is_null() {
            let text = serde_json::to_string(results).unwrap_or_default().replace('<', "\\u003c");
            out += &format!("<script type=\"application/json\" id=\"results\">{text}</script>\n");
        }
        out + "</body>\n</html>\n"
    }

    fn description(&self) -> String {
        let sites = || number(&self.source.results, "target.sites").unwrap_or(0.0) as usize;
        self.problem
            .map_or_else(|| self.config.target.describe(sites()), |own| own.description.clone())
    }

    fn lead(&self) -> String {
        let results = &self.source.results;
        let word = |key: &str| results[key].as_str().map(str::to_owned);
        let mut parts = vec![self.config.target.formula()];
        let ranges = self.config.ranges();
        parts.extend(ranges.map(|ranges| format!("one network for {}", ranges.describe())));
        parts.extend(match (word("model"), word("scheme"), word("kernel")) {
            (Some(model), Some(scheme), _) => Some(format!("network {model}, scheme {scheme}")),
            (None, Some(scheme), Some(kernel)) => Some(format!("{scheme} with {kernel}")),
            _ => None,
        });
        parts.extend(self.source.free_energy.as_ref().map(|grid| {
            let how = match &grid.model {
                Some(model) => format!("{} {model}", grid.method),
                None => grid.method.clone(),
            };
            format!("free energies by {how} at {} points", grid.points.len())
        }));
        for (key, name) in
            [("walkers", "walkers"), ("chains", "chains"), ("intervals", "intervals")]
        {
            parts.extend(results[key].as_u64().map(|n| format!("{n} {name}")));
        }
        parts.extend(results["seed"].as_u64().map(|seed| format!("seed {seed}")));
        parts.extend(word("version").map(|version| format!("leaps {version}")));
        parts.join("; ")
    }

    /// The numbers that matter most, large.
    fn facts(&self) -> String {
        let results = &self.source.results;
        let mut facts: Vec<(String, String)> = Vec::new();
        if let (Some(mean), error) = (number(results, "log_z.mean"), number(results, "log_z.error"))
        {
            let error = error.unwrap_or(f64::INFINITY);
            let name = match number(results, "log_z.exact") {
                Some(exact) => {
                    let value = shown(results, "log_z.exact", &fixed(exact, 4));
                    format!("log Z (exact {value}, {} &sigma;)", sigmas(mean, error, exact))
                }
                None => "log Z".to_owned(),
            };
            facts.push((shown(results, "log_z.mean", &with_error(mean, error)), name));
        }
        if let Some(ess) = number(results, "ess") {
            let error = number(results, "ess_error").unwrap_or(f64::INFINITY);
            facts.push((
                shown(results, "ess", &with_error(ess, error)),
                "effective sample size".to_owned(),
            ));
        }
        if let Some(elbo) = number(results, "elbo") {
            let text = beside(elbo, number(results, "log_z.error").unwrap_or(f64::INFINITY));
            facts.push((shown(results, "elbo", &text), "ELBO, a lower bound of log Z".to_owned()));
        }
        for (key, name) in [
            ("network_passes_per_walker", "network passes per walker"),
            ("energy_calls_per_walker", "energy calls per walker"),
            ("effective_samples_per_second", "effective samples per second"),
            ("log_z_merit", "log Z merit, 1/(variance &times; seconds)"),
            ("seconds", "seconds"),
        ] {
            if let Some(value) = number(results, key).filter(|value| *value != 0.0) {
                facts.push((shown(results, key, &Short(value).to_string()), name.to_owned()));
            }
        }
        if let Some(lowest) = number(results, "lowest.energy_per_site") {
            let value = shown(results, "lowest.energy_per_site", &fixed(lowest, 6));
            facts.push((value, "lowest energy per site that was met".to_owned()));
        }
        if let Some(last) = self.source.metrics.last() {
            let all = self.source.seconds.unwrap_or(last.seconds);
            let more = if all > last.seconds { ", smaller lattices first" } else { "" };
            let words = format!("gradient steps in {}{more}", span(all));
            facts.push((last.step_metrics.step.to_string(), words));
        }
        let fact = |(value, name): &(String, String)| {
            format!("<div class=\"fact\"><b>{value}</b><span class=\"name\">{name}</span></div>\n")
        };
        format!("<div class=\"facts\">\n{}</div>\n", facts.iter().map(fact).collect::<String>())
    }

    fn note(&self, heading: &str) -> String {
        match heading {
            "At the end of the path" if self.reference.law.is_some() => {
                "The broken line is the reference.".to_owned()
            }
            _ => String::new(),
        }
    }

    fn observables(&self) -> String {
        let results = &self.source.results;
        let Some(all) = results["observables"].as_object() else { return String::new() };
        let law = self.reference.law.as_ref();
        let mut law = law.map(|law| (law.name.as_str(), named(&law.samples.observables())));
        let known = self.known();
        let exact_of = |name: &str| {
            let own = number(results, &format!("observables.{name}.exact"));
            own.or_else(|| known.iter().find(|(other, _)| *other == name)?.1.exact)
        };
        // Where the exact value is known nothing else is worth a look, and a column of nothing is none.
        law.as_mut().into_iter().for_each(|(of, others)| {
            others.retain(|(name, _)| *of == "exact" || exact_of(name).is_none());
            others
                .retain(|(name, _)| number(results, &format!("observables.{name}.mean")).is_some());
        });
        let law = law.filter(|(_, others)| !others.is_empty());
        let mut head = ["", "estimate", "exact", "sigmas"].map(str::to_owned).to_vec();
        head.extend(law.iter().map(|(name, _)| escape(name)));
        let mut rows = vec![head];
        let free = ["free_energy_per_site", "entropy_per_site"].map(|name| (name, ""));
        let observed = all.keys().map(|name| (name.as_str(), "observables."));
        for (name, place) in free.into_iter().chain(observed) {
            let path = |part: &str| format!("{place}{name}.{part}");
            let value = |part: &str| number(results, &path(part));
            let Some(mean) = value("mean") else { continue };
            let error = value("error").unwrap_or(f64::INFINITY);
            let own = value("exact");
            let exact = own.or_else(|| exact_of(name));
            let cell = |value: f64| match own {
                Some(_) => shown(results, &path("exact"), &fixed(value, 6)),
                None => escape(&fixed(value, 6)),
            };
            let mut row = vec![
                escape(&name.replace('_', " ")),
                shown(results, &path("mean"), &with_error(mean, error)),
                exact.map(cell).unwrap_or_default(),
                exact.map(|exact| sigmas(mean, error, exact)).unwrap_or_default(),
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
        table("numbers", &rows) + &format!("<p class=\"note\">{note}</p>\n")
    }

    /// Estimates at inverse temperatures that the walkers passed.
    fn at_beta(&self) -> String {
        let results = &self.source.results;
        let stops = results["at_beta"].as_array().map_or(0, Vec::len);
        if stops == 0 {
            return String::new();
        }
        let head = ["beta", "log Z", "F/N", "E/N", "ESS"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        for stop in 0..stops {
            let cell = |mean: &str, error: &str| {
                let path = format!("at_beta.{stop}.{mean}");
                let error = number(results, &format!("at_beta.{stop}.{error}"));
                let text = number(results, &path)
                    .map(|mean| with_error(mean, error.unwrap_or(f64::INFINITY)));
                shown(results, &path, &text.unwrap_or_default())
            };
            let estimate = |name: &str| cell(&format!("{name}.mean"), &format!("{name}.error"));
            let beta = format!("at_beta.{stop}.beta");
            rows.push(vec![
                shown(results, &beta, &plain(&results["at_beta"][stop]["beta"])),
                estimate("log_z"),
                estimate("free_energy_per_site"),
                estimate("observables.energy_per_site"),
                cell("ess", "ess_error"),
            ]);
        }
        table("numbers", &rows)
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

    fn comparison(&self) -> String {
        let Some(Comparison { samplers, .. }) = &self.source.compared else {
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
            "merit",
        ];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        for Compared { name, result, .. } in samplers {
            let (ess, log_z, cost) = match result {
                SamplerResult::Walkers(r) => (
                    [r.ess, r.ess_error],
                    Some(r.log_z),
                    [
                        r.network_passes_per_walker,
                        r.energy_calls_per_walker,
                        r.seconds,
                        r.log_z_merit,
                    ],
                ),
                SamplerResult::Chains(r) => (
                    [r.ess, r.ess_error],
                    r.log_z,
                    [
                        r.network_passes_per_walker,
                        r.energy_calls_per_walker,
                        r.seconds,
                        r.log_z_merit.unwrap_or(f64::NAN),
                    ],
                ),
            };
            let none = || "-".to_owned();
            let sigmas = |e: Estimate| Some(sigmas(e.mean, e.error, e.exact?));
            let mut row = vec![
                escape(name),
                with_error(ess[0], ess[1]),
                log_z.map_or_else(none, |e| with_error(e.mean, e.error)),
                log_z.and_then(sigmas).unwrap_or_else(none),
            ];
            row.extend(cost.map(|number| Short(number).to_string()));
            rows.push(row);
        }
        table("numbers", &rows)
    }

    fn settings(&self) -> String {
        let results = &self.source.results;
        let mut rows = vec![vec!["setting".to_owned(), "value".to_owned()]];
        for (key, value) in results["target"].as_object().into_iter().flatten() {
            rows.push(vec![format!("target {}", escape(&key.replace('_', " "))), plain(value)]);
        }
        for key in [
            "method",
            "scheme",
            "kernel",
            "model",
            "walkers",
            "intervals",
            "resamplings",
            "chains",
            "steps",
            "interrupted",
            "seed",
            "device",
        ] {
            if let Some(value) = lookup(results, key) {
                rows.push(vec![key.to_owned(), plain(value)]);
            }
        }
        let mut out = if rows.len() > 1 { table("settings", &rows) } else { String::new() };
        if let Some(config) = &self.source.config {
            let config = escape(config);
            out +=
                &format!("<details><summary>config.toml</summary><pre>{config}</pre></details>\n");
        }
        out
    }

    fn commands(&self) -> String {
        let mut lines = Vec::new();
        let line = |words: &[String]| {
            let program = std::iter::once("leaps".to_owned());
            let rest = untimed(words).into_iter().skip(1).map(quoted);
            program.chain(rest).collect::<Vec<_>>().join(" ")
        };
        lines.extend(self.source.training.as_deref().map(line));
        for results in [&self.source.results, &self.source.comparison] {
            let Some(words) = words(&results["command"]) else { continue };
            let mut own = line(&words);
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

fn section(heading: &str, content: &str) -> String {
    if content.is_empty() {
        return String::new();
    }
    format!("<section>\n<h2>{}</h2>\n{content}</section>\n", escape(heading))
}

fn figure(charts: &[Chart], note: String) -> String {
    let drawn: String = charts.iter().filter(|chart| !chart.is_empty()).map(Chart::svg).collect();
    if drawn.is_empty() {
        return drawn;
    }
    let note = match note.is_empty() {
        true => note,
        false => format!("<p class=\"note\">{}</p>\n", escape(&note)),
    };
    format!("<div class=\"charts\">\n{drawn}</div>\n{note}")
}

fn plain(value: &Value) -> String {
    escape(&value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}
