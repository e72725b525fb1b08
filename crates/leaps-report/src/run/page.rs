//! The page of a report: its frame, the numbers that matter most, and the sections; a section without data is left out.

use leaps::job::Reference;
use leaps::problem::Problem;
use leaps::results::SamplerResult;
use leaps::spec::RunSpec;

use super::along::Curve;
use super::figures::{COMPARISON, END, GRID, LADDER, PATH, SEARCH, TRAINING, figures};
use super::found::Found;
use super::html::{Form, counted, escape, estimated, shown};
use super::source::Source;
use super::{modes, pictures, thermo};
use crate::figure::Figure;
use crate::text::{sigmas, span};

/// What a page is made of.
pub struct Page<'a> {
    pub source: &'a Source,
    pub config: &'a RunSpec,
    /// None if a file that it is made of is not what it was.
    pub problem: Option<&'a Problem>,
    pub reference: Reference,
    pub curve: Curve,
}

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("page.js");

/// What browsers let the page do: its own style and script, known by their SHA-256, and nothing else, no network above all.
pub const POLICY: &str = "default-src 'none'; style-src 'sha256-PvxqgIHI2MYvP9TzHX2spv4GaFSeVfuyqOymzcYGYeA='; script-src 'sha256-gItpbeL1h0jkwADNHoGswZPp/zPVtyWY4yhHFw0Aci4='; \
    base-uri 'none'; form-action 'none'";

/// The target in words.
pub fn description(source: &Source, config: &RunSpec, problem: Option<&Problem>) -> String {
    let sites = || source.sites().unwrap_or(0);
    problem.map_or_else(|| config.target.describe(sites()), |own| own.description.clone())
}

impl Page<'_> {
    /// The whole page.
    pub fn html(&self) -> String {
        let title = escape(&description(self.source, self.config, self.problem));
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n\
             {}</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
            self.contents()
        )
    }

    /// What is below the title.
    fn contents(&self) -> String {
        let law = self.reference.law.as_ref();
        let mut out = format!("<p class=\"lead\">{}</p>\n", escape(&self.lead()));
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
        let drawn = figures(self.source, "", law, &self.curve);
        let charts = |heading: &str, note: &str| charted(&drawn, heading, note);
        let dashed = if law.is_some() { "The reference is broken or grey." } else { "" };
        out += &section(SEARCH, &charts(SEARCH, ""));
        out += &section(GRID, &charts(GRID, ""));
        let listed = grid.map(thermo::grid);
        out += &section("Free energies", &listed.unwrap_or_default());
        out += &section(TRAINING, &charts(TRAINING, ""));
        let states = walkers.and_then(|walkers| walkers.snapshots.as_ref());
        out += &section("Lattice", &states.map(pictures::sliders).unwrap_or_default());
        out += &section(PATH, &charts(PATH, ""));
        out += &section("On the way", &self.at_beta());
        out += &section(END, &charts(END, dashed));
        let masses = result.map(|result| modes::listed(modes::masses(result), law));
        out += &section("Modes", &masses.unwrap_or_default());
        out += &section("Observables", &self.observables());
        let waves = result.map(|result| modes::waves(modes::structure(result), law));
        out += &section("Structure factor", &waves.unwrap_or_default());
        out += &section(LADDER, &charts(LADDER, ""));
        let rungs = tempering.map(thermo::ladder);
        out += &section("Temperatures of the ladder", &rungs.unwrap_or_default());
        out += &section("What a second is worth", &self.worth());
        out += &section(COMPARISON, &(charts(COMPARISON, "") + &self.comparison()));
        out += &section("Settings", &self.settings());
        out += &section("How to repeat it", &self.commands());
        if let Some(text) = &self.source.text {
            let text = text.replace('<', "\\u003c");
            out += &format!("<script type=\"application/json\" id=\"results\">{text}</script>\n");
        }
        out
    }

    fn lead(&self) -> String {
        let found = Found::of(self.source);
        let mut target = self.config.target.clone();
        // Walkers that were stopped on the way are those of another temperature.
        target.beta = self.source.reached().and_then(|reached| reached.beta).or(target.beta);
        let mut parts = vec![target.formula()];
        let ranges = self.config.ranges();
        parts.extend(ranges.map(|ranges| format!("one network for {}", ranges.describe())));
        let instances = self.config.train.instances();
        parts.extend(
            instances.map(|n| format!("one network for all instances, {n} random ones at a time")),
        );
        parts.extend(match (found.model, found.scheme, found.kernel) {
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
        for (count, name) in
            [(found.walkers, "walkers"), (found.chains, "chains"), (found.intervals, "intervals")]
        {
            parts.extend(count.map(|n| format!("{n} {name}")));
        }
        parts.extend(found.seed.map(|seed| format!("seed {seed}")));
        let origin = self.source.origin.as_ref();
        parts.extend(origin.map(|origin| format!("leaps {}", origin.version)));
        parts.join("; ")
    }

    /// The numbers that matter most, large.
    fn facts(&self) -> String {
        let found = Found::of(self.source);
        let mut facts: Vec<(String, String)> = Vec::new();
        let error = found.log_z.map_or(f64::INFINITY, |log_z| log_z.error);
        if let Some(log_z) = found.log_z.filter(|log_z| log_z.mean.is_finite()) {
            let name = match log_z.exact {
                Some(exact) => {
                    let value = shown("log_z.exact", exact, Form::Fixed(4));
                    format!("log Z (exact {value}, {} &sigma;)", sigmas(log_z.mean, error, exact))
                }
                None => "log Z".to_owned(),
            };
            facts.push((estimated("log_z", log_z), name));
        }
        if let Some(ess) = found.ess.filter(|ess| ess.mean.is_finite()) {
            let value = shown("ess", ess.mean, Form::WithError(ess.error));
            facts.push((value, "effective sample size".to_owned()));
        }
        if let Some(elbo) = found.elbo.filter(|elbo| elbo.is_finite()) {
            let value = shown("elbo", elbo, Form::Beside(error));
            facts.push((value, "ELBO, a lower bound of log Z".to_owned()));
        }
        for (key, value, name) in [
            ("network_passes_per_walker", found.network_passes, "network passes per walker"),
            ("energy_calls_per_walker", found.energy_calls, "energy calls per walker"),
            ("effective_samples_per_second", found.samples, "effective samples per second"),
            ("log_z_merit", found.log_z_merit, "log Z merit, 1/(variance &times; seconds)"),
            ("seconds", found.seconds, "seconds"),
        ] {
            if let Some(value) = value.filter(|value| value.is_finite() && *value != 0.0) {
                facts.push((shown(key, value, Form::Short), name.to_owned()));
            }
        }
        if let Some(search) = &self.source.minimum {
            let proven =
                if search.proven { "lowest energy, proven" } else { "lowest energy, not proven" };
            facts.push((shown("lowest.energy", search.lowest.energy, Form::Full), proven.into()));
            let cut = search.cut.map(|cut| (shown("cut", cut, Form::Full), "weight of the cut"));
            let set = search.set_size.map(|n| (counted("set_size", n), "vertices of the set"));
            facts.extend(cut.into_iter().chain(set).map(|(value, name)| (value, name.to_owned())));
        }
        if let Some(lowest) = found.lowest {
            let value = shown("lowest.energy_per_site", lowest.energy_per_site, Form::Fixed(6));
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
}

fn section(heading: &str, content: &str) -> String {
    if content.is_empty() {
        return String::new();
    }
    format!("<section>\n<h2>{}</h2>\n{content}</section>\n", escape(heading))
}

/// The figures of a section.
fn charted(figures: &[Figure], section: &str, note: &str) -> String {
    let own = figures.iter().filter(|figure| figure.section == section);
    let drawn: String = own.map(|figure| figure.element.as_str()).collect();
    if drawn.is_empty() {
        return drawn;
    }
    let note = match note {
        "" => String::new(),
        words => format!("<p class=\"note\">{}</p>\n", escape(words)),
    };
    format!("<div class=\"charts\">\n{drawn}</div>\n{note}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::{Chart, Mark};
    use base64::Engine;
    use sha2::{Digest, Sha256};

    #[test]
    fn browsers_know_style_and_script_by_their_sums() {
        for (what, text) in [("style", STYLE), ("script", SCRIPT)] {
            let sum = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text));
            let rule = format!("{what}-src 'sha256-{sum}'");
            assert!(POLICY.contains(&rule), "write {rule} into POLICY");
        }
    }

    #[test]
    fn colours_of_charts_have_partners_in_the_dark() {
        let points = vec![(0.0, 1.0, 0.1), (1.0, 3.0, 0.2)];
        let mut chart = Chart::new("t", "x", "y").rule(2.0, "exact");
        for colour in 0..7 {
            for mark in [Mark::Steps, Mark::Open] {
                chart = chart.coloured("s", mark, points.clone(), colour);
            }
        }
        let svg = chart.svg();
        let colours: std::collections::BTreeSet<&str> =
            svg.split("=\"#").skip(1).map(|rest| &rest[..6]).collect();
        assert_eq!(colours.len(), 12, "{colours:?}");
        let (_, dark) = STYLE.split_once("prefers-color-scheme: dark").unwrap();
        for colour in colours {
            assert!(dark.contains(&format!("[fill=\"#{colour}\"]")), "{colour}");
            assert!(dark.contains(&format!("[stroke=\"#{colour}\"]")), "{colour}");
        }
    }
}
