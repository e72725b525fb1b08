//! Results as tables for people.

use leaps::observe::{Estimate, Observables};
use leaps_report::text::{Short, Table, beside, fixed, sigmas, with_error};

use leaps::results::{
    BetaResult, ChainResult, Lowest, TemperingResult, ThermoPoint, WalkerResult, named,
    named_modes, strong_waves,
};
use leaps::sampler::Reached;

/// A result that can be shown to a person.
pub trait Report {
    /// One line on how it was found.
    fn summary(&self) -> String;

    /// The numbers.
    fn table(&self) -> String;

    /// The effective sample size as a fraction.
    fn ess(&self) -> f64;

    /// Reasons to doubt the numbers.
    fn doubts(&self) -> Vec<String>;

    /// How far the work came, if it was interrupted.
    fn interrupted(&self) -> Option<String> {
        None
    }
}

/// The rows of the observables, of order that is not that of equal values, and of the modes.
fn printed(observables: &Observables) -> Vec<(String, Estimate)> {
    let own = named(observables).into_iter().map(|(name, value)| (name.to_owned(), value));
    let waves = strong_waves(&observables.structure_factor);
    own.chain(waves).chain(named_modes(&observables.mode_masses)).collect()
}

/// Estimates, with columns for exact values and autocorrelation times if there are any.
fn estimates(rows: &[(String, Estimate)], times: &[(&'static str, Estimate)]) -> Table {
    let exact = rows.iter().any(|(_, estimate)| estimate.exact.is_some());
    let mut table = Table::default();
    let mut head = vec!["", "estimate"];
    head.extend(["exact", "sigmas"].iter().filter(|_| exact));
    head.extend((!times.is_empty()).then_some("tau/steps"));
    table.row(head);
    for (name, estimate) in rows {
        let mut cells = vec![name.clone(), with_error(estimate.mean, estimate.error)];
        if exact {
            let value = estimate.exact.map(|exact| fixed(exact, 8));
            let deviation =
                estimate.exact.map(|exact| sigmas(estimate.mean, estimate.error, exact));
            cells.extend([value.unwrap_or_default(), deviation.unwrap_or_default()]);
        }
        let time = times.iter().find(|(timed, _)| timed == name);
        cells.extend(time.map(|(_, time)| with_error(time.mean, time.error)));
        table.row(cells);
    }
    table
}

/// Estimates at inverse temperatures on the way, each with its distance from the exact value where that is known.
pub fn at_beta(results: &[BetaResult]) -> String {
    let columns = |r: &BetaResult| {
        [
            ("log_z", r.log_z),
            ("energy_per_site", r.observables.energy_per_site),
            ("heat_capacity_per_site", r.observables.heat_capacity_per_site),
            ("abs_magnetization", r.observables.abs_magnetization),
        ]
    };
    let Some(first) = results.first() else { return String::new() };
    let mut table = Table::default();
    let mut head = vec!["beta", "ess"];
    for (name, estimate) in columns(first) {
        head.push(name);
        head.extend(estimate.exact.map_or(&[][..], |_| &["exact", "sigmas"]));
    }
    table.row(head);
    for result in results {
        let mut cells = vec![result.beta.to_string(), with_error(result.ess, result.ess_error)];
        for (_, e) in columns(result) {
            cells.push(with_error(e.mean, e.error));
            if let Some(exact) = e.exact {
                cells.extend([fixed(exact, 6), sigmas(e.mean, e.error, exact)]);
            }
        }
        table.row(cells);
    }
    format!("\n{}", table.text())
}

/// The lowest energy that was met.
fn lowest(lowest: Option<&Lowest>, table: &mut Table) {
    if let Some(lowest) = lowest {
        let energy = fixed(lowest.energy_per_site, 6);
        table.row(["lowest_energy_per_site".to_owned(), energy]);
    }
}

/// What the temperatures of a ladder say, and those between them.
fn rungs(tempering: &TemperingResult) -> String {
    if tempering.rungs.is_empty() {
        return String::new();
    }
    let mut table = Table::default();
    let exact = tempering.rungs.iter().any(|rung| rung.log_z.exact.is_some());
    let mut head = vec!["beta", "swaps", "overlap", "log_z"];
    head.extend(["exact", "sigmas"].iter().filter(|_| exact));
    head.extend(["entropy_per_site", "energy_per_site", "heat_capacity_per_site"]);
    head.push("abs_magnetization");
    table.row(head);
    let rung = |point: &ThermoPoint, swaps: Option<&f64>, overlap: Option<&f64>| {
        let part = |share: Option<&f64>| share.map_or("-".to_owned(), |share| fixed(*share, 3));
        let mut cells = vec![fixed(point.beta, 6), part(swaps), part(overlap)];
        for (name, e) in point.named() {
            if ["free_energy_per_site", "susceptibility_per_site"].contains(&name) {
                continue;
            }
            cells.push(with_error(e.mean, e.error));
            if name == "log_z" && exact {
                let known = e.exact.map(|exact| [fixed(exact, 6), sigmas(e.mean, e.error, exact)]);
                cells.extend(known.unwrap_or_else(|| ["-".to_owned(), "-".to_owned()]));
            }
        }
        cells
    };
    // Swaps and overlaps are those with the next rung.
    for (k, point) in tempering.rungs.iter().enumerate() {
        table.row(rung(point, tempering.swap_rates.get(k), tempering.overlaps.get(k + 1)));
    }
    for point in &tempering.at_beta {
        table.row(rung(point, None, None));
    }
    format!("\n{}", table.text())
}

impl Report for WalkerResult {
    fn summary(&self) -> String {
        let how = self.sampler();
        let both = self.two_sided.as_ref().map_or_else(String::new, |both| {
            let (overlap, merit) = (both.overlap, Short(both.log_z_merit));
            format!(
                "\nboth ways from {}: overlap {overlap:.3}, {:.2} s, log_z_merit {merit}",
                both.starts, both.seconds
            )
        });
        let of = self.substeps.map_or_else(String::new, |n| format!(" of {n} substeps"));
        format!(
            "{how}, {} walkers, {} intervals{of}, {} resamplings, {:.2} s, {} effective samples/s, log_z_merit {}{both}",
            self.walkers,
            self.intervals,
            self.resamplings,
            self.seconds,
            Short(self.effective_samples_per_second),
            Short(self.log_z_merit),
        )
    }

    fn table(&self) -> String {
        let ess = Estimate::new(self.ess, self.ess_error);
        let mut rows = vec![("ess".to_owned(), ess), ("log_z".to_owned(), self.log_z)];
        rows.extend(self.two_sided.iter().map(|both| ("log_z_two_sided".to_owned(), both.log_z)));
        rows.extend([
            ("free_energy_per_site".to_owned(), self.free_energy_per_site),
            ("entropy_per_site".to_owned(), self.entropy_per_site),
        ]);
        rows.extend(printed(&self.observables));
        let mut table = estimates(&rows, &[]);
        table.row(["elbo".to_owned(), beside(self.elbo, self.log_z.error)]);
        lowest(self.lowest.as_ref(), &mut table);
        if self.model.is_some() {
            let passes = format!("{:.1}", self.network_passes_per_walker);
            table.row(["network_passes".to_owned(), passes]);
        }
        if self.interrupted {
            table.row(["interrupted".to_owned(), place(self)]);
        }
        table.text() + &at_beta(&self.at_beta)
    }

    fn ess(&self) -> f64 {
        self.ess
    }

    fn doubts(&self) -> Vec<String> {
        let two_sided = self.two_sided.iter().flat_map(|both| both.warnings.clone());
        self.warnings.iter().map(ToString::to_string).chain(two_sided).collect()
    }

    fn interrupted(&self) -> Option<String> {
        let of = if self.reached.is_some() { "; the results are for there" } else { "" };
        self.interrupted.then(|| format!("interrupted {}{of}", place(self)))
    }
}

/// Where walkers are that were interrupted.
fn place(result: &WalkerResult) -> String {
    match &result.reached {
        None => "at the end of the path".to_owned(),
        Some(Reached { beta: Some(beta), t, .. }) => {
            format!("at beta {}, t {}", fixed(*beta, 6), fixed(*t, 4))
        }
        Some(reached) => format!("at t {}", fixed(reached.t, 4)),
    }
}

impl Report for ChainResult {
    fn summary(&self) -> String {
        format!(
            "{}, {} chains of {} steps after {}, acceptance {:.3}, {:.2} s, {} effective samples/s{}",
            self.kernel,
            self.chains,
            self.steps,
            self.burn_in,
            self.acceptance,
            self.seconds,
            Short(self.effective_samples_per_second),
            self.log_z_merit.map_or_else(String::new, |m| format!(", log_z_merit {}", Short(m))),
        )
    }

    fn table(&self) -> String {
        let mut rows = vec![("ess".to_owned(), Estimate::new(self.ess, self.ess_error))];
        let integrated = self.tempering.as_ref().and_then(|t| t.log_z_by_integration);
        let free = [
            ("log_z", self.log_z),
            ("log_z_by_integration", integrated),
            ("free_energy_per_site", self.free_energy_per_site),
            ("entropy_per_site", self.entropy_per_site),
        ];
        rows.extend(free.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        rows.extend(printed(&self.estimates()));
        let mut table = estimates(&rows, &self.times());
        lowest(self.lowest.as_ref(), &mut table);
        if self.interrupted {
            let asked = self.asked.unwrap_or(self.steps);
            table.row(["interrupted".to_owned(), format!("{}/{asked} steps", self.steps)]);
        }
        table.text() + &self.tempering.as_ref().map_or_else(String::new, rungs)
    }

    fn ess(&self) -> f64 {
        self.ess
    }

    fn doubts(&self) -> Vec<String> {
        self.warnings.iter().map(ToString::to_string).collect()
    }

    fn interrupted(&self) -> Option<String> {
        let (steps, asked) = (self.steps, self.asked.unwrap_or(self.steps));
        let text = format!(
            "interrupted after {steps} of {asked} steps of each chain; the results are those of --steps {steps}"
        );
        self.interrupted.then_some(text)
    }
}
