//! Repeat an experiment: networks, samplers, figures, table, page.

mod figures;
mod json;
mod kept;
mod machine;
mod measures;
mod mistakes;
mod networks;
mod page;
mod parts;
mod spec;

use std::path::{Path, PathBuf};

use anyhow::Result;
use leaps::Error;
use leaps::store::write_file;
use serde_json::Value;

use crate::app::Context;
use networks::PreparedNetwork;
use page::Page;
use parts::PartRunner;

pub use spec::{Experiment, SHIPPED};

/// Where and how an experiment is run.
pub struct Request<'a> {
    pub quick: bool,
    /// The folder of the page.
    pub out: PathBuf,
    /// The folder of the networks that are trained; experiments may share it.
    pub networks: PathBuf,
    /// Do again what was done before, but for the training of networks.
    pub fresh: bool,
    pub context: &'a Context,
}

/// What is there once an experiment was run.
pub struct Finished {
    /// Where the page is.
    pub page: PathBuf,
    /// The raw numbers.
    pub numbers: Value,
    /// The table of the page, for a terminal.
    pub table: String,
}

impl Request<'_> {
    /// Do what is not done yet, and write the page with everything that belongs to it.
    pub fn run(&self, experiment: &Experiment) -> Result<Finished> {
        let (name, context) = (&experiment.name, self.context);
        for one in experiment.each() {
            one.check_settings()?;
        }
        let folder = self.out.join("parts").join(if self.quick {
            format!("{name}-quick")
        } else {
            name.clone()
        });
        create(&folder)?;
        context.say(format!("{name}: {}", experiment.title));
        let all = experiment.each().iter().map(|one| one.networks.len() + parts::count(one)).sum();
        let (mut ready, mut runs, mut done) = (Vec::new(), Vec::new(), 0);
        for one in experiment.each() {
            let mut networks = Vec::new();
            for entry in &one.networks {
                done += 1;
                let shown = one.label(&entry.name);
                context.say(format!("[{done}/{all}] network {shown}"));
                networks.extend(networks::ready(one, entry, self.quick, &self.networks, context)?);
            }
            let runner = PartRunner {
                experiment: one,
                networks: &networks,
                out: &self.out,
                folder: folder.clone(),
                context,
                fresh: self.fresh,
            };
            runs.extend(runner.run(done, all)?);
            done += parts::count(one);
            ready.extend(
                networks
                    .into_iter()
                    .map(|network| PreparedNetwork { name: one.label(&network.name), ..network }),
            );
        }
        if context.is_stopped() {
            return Err(Error::Interrupted.into());
        }
        let all = figures::figures(experiment, &ready, &runs);
        let (empty, figures): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(_, chart)| chart.is_empty());
        let undrawn: Vec<(&str, &str)> = empty
            .iter()
            .map(|(figure, _)| (figure.title.as_str(), figures::why_empty(figure)))
            .collect();
        for (title, why) in &undrawn {
            context.say(format!("warning: figure '{title}' is not drawn: {why}"));
        }
        for (figure, chart) in &figures {
            let file = |end: &str| self.out.join(format!("{name}-{}.{end}", figure.name));
            write_file(file("svg"), chart.svg_file().as_bytes())?;
            write_file(file("png"), &chart.png()?)?;
        }
        let mut targets = Vec::new();
        for one in experiment.each() {
            let layers = one.layers()?;
            targets.push(layers.problem(&layers.resolve()?)?.description);
        }
        let page = Page {
            experiment,
            quick: self.quick,
            networks: &ready,
            runs: &runs,
            figures: &figures,
            undrawn: &undrawn,
            context,
            target: targets.join("; "),
        };
        let numbers = page.numbers()?;
        let text = serde_json::to_string_pretty(&numbers)? + "\n";
        write_file(self.out.join(format!("{name}.json")), text.as_bytes())?;
        let file = self.out.join(format!("{name}.md"));
        write_file(&file, page.markdown().as_bytes())?;
        Ok(Finished { page: file, numbers, table: page.text() })
    }
}

fn create(folder: &Path) -> Result<()> {
    let fail = |source| Error::Io { path: folder.into(), source };
    Ok(std::fs::create_dir_all(folder).map_err(fail)?)
}
