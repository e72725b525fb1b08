//! The page of an experiment: figures, table, networks, and how it was made.

use leaps::device::Device;
use leaps::job::experiment::{
    Experiment, ExperimentRun, FigureEntry, NetworkFacts, Part, RunEntry,
};
use leaps::results::{SCHEMA, SamplerResult};
use serde_json::{Value, json};

use super::figures::paper;
use super::means::{Mean, has_instances, means};
use super::measures::{Measure, heading, measure, modes};
use crate::draw::Chart;
use crate::machine;
use crate::text::{Short, Table, fixed, sigmas, span, with_error};

/// What a page is made of.
pub struct Page<'a> {
    pub experiment: &'a Experiment,
    pub run: &'a ExperimentRun,
    pub figures: &'a [(&'a FigureEntry, Chart)],
    /// Titles of figures that have nothing to show, and why.
    pub undrawn: &'a [(&'a str, &'a str)],
    /// The device that was asked for.
    pub device: Device,
}

impl Page<'_> {
    /// The words that repeat the experiment.
    fn command(&self) -> String {
        let mut words = format!("leaps reproduce {}", self.experiment.word);
        if self.experiment.quick {
            words += " --quick";
        }
        if self.device != Device::Auto {
            words += &format!(" --device {}", self.device);
        }
        words
    }

    /// Seconds of training and of sampling.
    fn seconds(&self) -> [f64; 2] {
        let facts = self.run.networks.iter().map(|network| &network.facts);
        let training = facts.filter(|facts| facts.shipped.is_none()).filter_map(|f| f.seconds);
        let sampling = self.run.parts().filter_map(|(_, part)| match part.kept.result()? {
            SamplerResult::Walkers(result) => Some(result.seconds),
            SamplerResult::Chains(result) => Some(result.seconds),
        });
        // Without any, the sum of numbers is -0.
        [0.0 + training.sum::<f64>(), sampling.sum()]
    }

    /// What computed, and what it computed.
    fn devices(&self) -> Vec<(&str, Vec<&str>)> {
        let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
        for (run, part) in self.run.parts() {
            // What was left out was computed nowhere.
            let Some(placement) = part.kept.found.as_ref().map(|found| found.device.as_str())
            else {
                continue;
            };
            match all.iter_mut().find(|(name, _)| *name == placement) {
                // Several targets have runs of the same name.
                Some((_, runs)) if runs.contains(&run.name.as_str()) => {}
                Some((_, runs)) => runs.push(&run.name),
                None => all.push((placement, vec![&run.name])),
            }
        }
        all
    }

    /// Everything in numbers.
    pub fn numbers(&self) -> Value {
        let [training, sampling] = self.seconds();
        let figures = self.figures.iter().map(|(figure, chart)| {
            let mut kept = chart.to_json();
            kept["name"] = json!(figure.name);
            kept
        });
        let runs = self.run.parts().map(|(run, part)| part.numbers(run));
        json!({
            "schema": SCHEMA,
            "version": env!("CARGO_PKG_VERSION"),
            "experiment": self.experiment.name,
            "title": self.experiment.title,
            "target": self.run.target,
            "quick": self.experiment.quick,
            "command": self.command(),
            "cpu": machine::cpu_name(),
            "devices": self.devices().iter().map(|(placement, _)| *placement).collect::<Vec<_>>(),
            "date": machine::today(),
            "training_seconds": training,
            "sampling_seconds": sampling,
            "networks": self.run.networks.iter().map(|network| &network.facts).collect::<Vec<_>>(),
            "runs": runs.collect::<Vec<_>>(),
            "figures": figures.collect::<Vec<_>>(),
        })
    }

    /// The table of the page: a row for every part, its head first.
    fn rows(&self) -> Vec<Vec<String>> {
        let columns = &self.experiment.columns;
        let cells = |run: &RunEntry, part: &Part| -> Vec<[Option<String>; 4]> {
            let cell = |name: &String| {
                let found = measure(part, name);
                let exact = found.and_then(|found| found.exact);
                let text = |found: Measure| match name.as_str() {
                    "mode_masses" => masses(part),
                    _ => shown(name, found),
                };
                [
                    found.map(text),
                    found.zip(exact).map(|(found, exact)| match found.exact_error {
                        0.0 => fixed(exact, 6),
                        error => with_error(exact, error),
                    }),
                    found.zip(exact).map(|(found, exact)| {
                        sigmas(found.mean, found.error.hypot(found.exact_error), exact)
                    }),
                    paper(run, part, name).map(plain),
                ]
            };
            columns.iter().map(cell).collect()
        };
        let body: Vec<(String, Vec<[Option<String>; 4]>)> =
            self.run.parts().map(|(run, part)| (part.label.clone(), cells(run, part))).collect();
        // Columns that are empty in every row are left out.
        let used =
            |column: usize, kind: usize| body.iter().any(|(_, row)| row[column][kind].is_some());
        let wanted: Vec<(usize, usize)> = (0..columns.len())
            .flat_map(|column| (0..4).map(move |kind| (column, kind)))
            .filter(|&(column, kind)| used(column, kind))
            .collect();
        let name = |&(column, kind): &(usize, usize)| {
            let name = heading(&columns[column]);
            match kind {
                0 => name.to_owned(),
                1 => "exact".to_owned(),
                2 => "sigmas".to_owned(),
                _ => format!("{name}, {}", self.experiment.theirs),
            }
        };
        let mut rows =
            vec![std::iter::once(String::new()).chain(wanted.iter().map(name)).collect()];
        for (label, row) in body {
            let mut line = vec![label];
            line.extend(
                wanted.iter().map(|&(column, kind)| row[column][kind].clone().unwrap_or_default()),
            );
            rows.push(line);
        }
        rows
    }

    /// When networks are ahead of everything else in log Z, their training counted, where the table speaks of that.
    ///
    /// A method of merit $m$ has a variance of $1/(m t)$ after $t$ seconds, a network that was trained for $T$ of them $1/(m (t - T))$: it is ahead from
    /// $t = T m / (m - m')$ on, where the other's merit is $m'$.
    fn ahead(&self) -> Vec<String> {
        if !self.experiment.columns.iter().any(|column| column == "log_z_merit") {
            return Vec::new();
        }
        let all = means(&self.run.runs);
        let mut groups: Vec<&str> = all.iter().map(|mean| mean.group).collect();
        groups.dedup();
        let mut lines = Vec::new();
        for group in groups {
            let merits = || {
                let own = all.iter().filter(|mean| mean.group == group);
                own.filter_map(|mean| Some((mean, mean.measure("log_z_merit")?.mean)))
            };
            let better = |a: &(&Mean<'_>, f64), b: &(&Mean<'_>, f64)| a.1.total_cmp(&b.1);
            let learnt = |mean: &Mean<'_>| mean.run.network.is_some();
            let network = merits().filter(|(mean, _)| learnt(mean)).max_by(better);
            let other = merits().filter(|(mean, _)| !learnt(mean)).max_by(better);
            let (Some((mean, merit)), Some((rival, least))) = (network, other) else {
                continue;
            };
            let trained = self.run.networks.iter().find(|network| {
                let own = group.is_empty() || network.name.starts_with(&format!("{group}, "));
                own && network.name.ends_with(mean.run.network.as_deref().unwrap_or_default())
            });
            let (name, rival, times) = (&mean.name, &rival.name, Short(merit / least));
            lines.push(match trained.and_then(|network| network.facts.seconds) {
                _ if merit <= least => format!("{rival} has {} times the merit of {name}, whose training never pays.", Short(least / merit)),
                Some(training) => {
                    let from = Short(training * merit / (merit - least));
                    let training = span(training);
                    format!("{name} has {times} times the merit of {rival}, the best without a network; its training of {training} counted, it is ahead after {from} s.")
                }
                None => format!("{name} has {times} times the merit of {rival}, the best without a network."),
            });
        }
        lines
    }

    /// The table of averages over instances, its head first.
    fn mean_rows(&self) -> Vec<Vec<String>> {
        let columns = &self.experiment.columns;
        let all = means(&self.run.runs);
        let off = |column: &String| all.iter().any(|mean| mean.deviations(column).is_some());
        let mut head = vec![String::new(), "instances".to_owned()];
        for column in columns {
            head.push(heading(column).to_owned());
            if off(column) {
                head.extend(["sigmas, rms".to_owned(), "largest".to_owned()]);
            }
        }
        let mut rows = vec![head];
        for mean in &all {
            let found = mean.parts.iter().filter(|part| part.kept.found.is_some()).count();
            let mut row = vec![mean.name.clone(), found.to_string()];
            for column in columns {
                row.push(
                    mean.measure(column).map(|found| shown(column, found)).unwrap_or_default(),
                );
                if off(column) {
                    let both = mean.deviations(column);
                    let text = |number: f64| format!("{number:.2}");
                    row.push(both.map(|both| text(both.0)).unwrap_or_default());
                    row.push(both.map(|both| text(both.1)).unwrap_or_default());
                }
            }
            rows.push(row);
        }
        rows
    }

    /// Reasons to doubt rows of the table, as they were said when the rows were made.
    fn cautions(&self) -> Vec<String> {
        let mut all = Vec::new();
        for (_, part) in self.run.parts() {
            let (row, doubts) = (&part.kept.name, part.kept.result().map(SamplerResult::doubts));
            all.extend(doubts.into_iter().flatten().map(|doubt| format!("{row}: {doubt}")));
        }
        all
    }

    /// The table for a terminal.
    pub fn text(&self) -> String {
        let mut table = Table::default();
        let averaged = has_instances(self.experiment);
        for row in if averaged { self.mean_rows() } else { self.rows() } {
            table.row(
                row.into_iter().map(|cell| if cell.is_empty() { "-".to_owned() } else { cell }),
            );
        }
        table.text()
    }

    /// The page.
    pub fn markdown(&self) -> String {
        let Experiment { name, title, paper, about, .. } = self.experiment;
        let mut out = format!("# {title}\n\n");
        if self.experiment.quick {
            out += "**Quick settings**: smaller lattices and networks, fewer targets and steps than the text below speaks of. A check that \
                    everything works, not the numbers of the experiment.\n\n";
        }
        let target = &self.run.target;
        let word = if self.experiment.targets.len() > 1 { "Targets" } else { "Target" };
        let theirs =
            if self.experiment.theirs == "the paper" { "In the paper" } else { "Published" };
        out += &format!("{}\n\n{word}: {target}. {theirs}: {paper}\n\n", about.trim());
        for (figure, chart) in self.figures {
            out += &format!("![{}]({name}-{}.svg)\n\n", chart.title, figure.name);
        }
        for (title, why) in self.undrawn {
            out += &format!("Figure \"{title}\" is not drawn: {why}.\n\n");
        }
        out += "## Numbers\n\n";
        if has_instances(self.experiment) {
            out += "Averages over instances, with their standard errors; how far estimates are from exact values, in their own errors.\n\n";
            out += &markdown_table(&self.mean_rows());
            out += "\nEvery instance:\n\n";
        }
        out += &markdown_table(&self.rows());
        out += "\nErrors are standard errors, in the last digits. Exact values and numbers of the paper stand beside ours where there are \
                some; values with an error under 'exact' are those of the reference runs.\n";
        for line in self.ahead() {
            out += &format!("\n{line}\n");
        }
        let cautions = self.cautions();
        if !cautions.is_empty() {
            out += "\nTo be taken with care:\n\n";
            for caution in cautions {
                out += &format!("- {caution}\n");
            }
        }
        if !self.run.networks.is_empty() {
            out += "\n## Networks\n\n";
            out += &markdown_table(&self.network_rows());
        }
        out += "\n## How it was made\n\n";
        let [training, sampling] = self.seconds();
        let devices = self.devices();
        let settings = match self.experiment.shipped {
            true => {
                format!("[`experiments/{name}.toml`](../../crates/leaps/experiments/{name}.toml)")
            }
            false => format!("`{}`", self.experiment.word),
        };
        let machine = match self.run.done_before {
            true => "a page of runs that were made before".to_owned(),
            false => machine::cpu_name(),
        };
        let mut lines = vec![
            format!(
                "`{}`, settings in {settings}, seed {}, of which that of every run is made (in the raw numbers)",
                self.command(),
                self.experiment.seed
            ),
            format!("leaps {}, {}, {machine}", env!("CARGO_PKG_VERSION"), machine::today()),
        ];
        if devices.iter().any(|(placement, _)| *placement != "the CPU") {
            let words =
                |(placement, runs): &(&str, Vec<&str>)| format!("{placement}: {}", runs.join("; "));
            lines.extend(devices.iter().map(words));
        }
        lines.push(format!("training {}, sampling {}", span(training), span(sampling)));
        let png: Vec<String> = self
            .figures
            .iter()
            .map(|(figure, _)| format!("[{0}]({name}-{0}.png)", figure.name))
            .collect();
        let mut files = format!("raw numbers: [{name}.json]({name}.json)");
        if !png.is_empty() {
            files += &format!("; figures as PNG: {}", png.join(", "));
        }
        lines.push(files);
        out + &lines.iter().map(|line| format!("- {line}\n")).collect::<String>()
    }

    /// The table of the networks; seeds are shown if any of them has one of its own.
    fn network_rows(&self) -> Vec<Vec<String>> {
        let all = self.experiment.each();
        let seeds = all.iter().flat_map(|one| &one.networks).any(|entry| entry.seed.is_some());
        let head =
            ["", "network", "parameters", "seed", "gradient steps", "batch", "training time"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        for network in &self.run.networks {
            let facts = &network.facts;
            let time = match (&facts.shipped, &facts.trained_on) {
                (Some(model), Some(own)) => format!("{model}, trained on {own}"),
                (Some(model), None) => format!("shipped as {model}"),
                (None, _) => facts.seconds.map(span).unwrap_or_default(),
            };
            rows.push(vec![
                network.name.clone(),
                architecture(facts),
                facts.parameters.to_string(),
                facts.seed.map(|seed| seed.to_string()).unwrap_or_default(),
                facts.steps.to_string(),
                facts.batch.map(|batch| batch.to_string()).unwrap_or_default(),
                time,
            ]);
        }
        if !seeds {
            let column = head.iter().position(|name| *name == "seed").unwrap_or(head.len());
            rows.iter_mut().for_each(|row| drop(row.remove(column)));
        }
        rows
    }
}

/// A network in words: its kind and sizes.
fn architecture(facts: &NetworkFacts) -> String {
    let spec = json!(facts.network);
    let kind = spec["kind"].as_str().unwrap_or("network").to_owned();
    let sizes = spec.as_object().into_iter().flatten();
    let counts = |value: &Value| value.is_number() || value.is_array() || *value == true;
    let words = sizes.filter(|(key, value)| *key != "kind" && counts(value)).map(|(key, value)| {
        let key = key.replace('_', " ");
        if *value == true { key } else { format!("{key} {}", value.to_string().replace('"', "")) }
    });
    let rates = json!(facts.parametrisation);
    let rates = rates.as_str().map(|rates| format!("{rates} rates"));
    std::iter::once(kind).chain(words).chain(rates).collect::<Vec<_>>().join(", ")
}

/// A measure as tables show it.
fn shown(name: &str, found: Measure) -> String {
    match name {
        "steps" => format!("{}", found.mean),
        _ if name.starts_with("distance") => {
            format!("{:.4} (noise {:.4})", found.mean, found.error)
        }
        _ if found.error > 0.0 => with_error(found.mean, found.error),
        _ => plain(found.mean),
    }
}

/// The masses of all modes.
fn masses(part: &Part) -> String {
    let all: Vec<String> =
        modes(part).iter().map(|mode| with_error(mode.mean, mode.error)).collect();
    all.join(" ")
}

/// A number without an error: three figures.
fn plain(value: f64) -> String {
    match value.abs() {
        size if size > 0.0 && size < 0.01 => format!("{value:.2e}"),
        _ => Short(value).to_string(),
    }
}

fn markdown_table(rows: &[Vec<String>]) -> String {
    let mut out = String::new();
    for (number, row) in rows.iter().enumerate() {
        let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
        out += &format!("| {} |\n", cells.join(" | "));
        if number == 0 {
            out += &format!("|---{}|\n", "|---:".repeat(row.len() - 1));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_with_their_errors() {
        let measure = |mean, error| Measure { mean, error, exact: None, exact_error: 0.0 };
        assert_eq!(shown("ess", measure(0.9678, 0.0012)), "0.9678(12)");
        assert_eq!(shown("steps", measure(1e6, 0.0)), "1000000");
        assert_eq!(shown("ess_per_step", measure(1.6e-4, 0.0)), "1.60e-4");
        assert_eq!(shown("distance_energy", measure(0.02, 0.01)), "0.0200 (noise 0.0100)");
    }

    #[test]
    fn tables_are_markdown() {
        let rows = [vec!["".to_owned(), "<|m|>".to_owned()], vec!["a".to_owned(), "1".to_owned()]];
        assert_eq!(markdown_table(&rows), "|  | <\\|m\\|> |\n|---|---:|\n| a | 1 |\n");
    }
}
