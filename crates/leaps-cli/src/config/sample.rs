//! Describe how to sample, once for the command line and for the configuration file.
//!
//! The `[sample]` section of a file is the union of the groups below; a verb offers as flags only the
//! groups it uses.

use clap::{Args, ValueEnum};
use leaps::mcmc::KernelName;
use leaps::mcmc::lanes::Scan;
use leaps::path::Path;
use leaps::sampler::{Resampler, Resampling, Scheme};
use leaps::{Error, Result};
use serde::{Deserialize, Serialize};

use super::moves::{Move, kernel_parser, move_parser};
use super::value::{count, number};

/// How walkers are duplicated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResamplerName {
    Multinomial,
    Stratified,
    Systematic,
    Residual,
}

/// The order of sites in a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScanName {
    Systematic,
    Coloured,
}

impl From<ScanName> for Scan {
    fn from(name: ScanName) -> Scan {
        match name {
            ScanName::Systematic => Scan::Systematic,
            ScanName::Coloured => Scan::Coloured,
        }
    }
}

/// How the jump process of a network is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchemeName {
    Events,
    Euler,
    Trapezoid,
}

impl From<SchemeName> for Scheme {
    fn from(name: SchemeName) -> Scheme {
        match name {
            SchemeName::Events => Scheme::Events,
            SchemeName::Euler => Scheme::Euler,
            SchemeName::Trapezoid => Scheme::Trapezoid,
        }
    }
}

/// The moves that mix the walkers or make the chains.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "Sampling")]
pub struct KernelSpec {
    /// Markov chain kernel
    #[arg(long, default_value = "heat-bath", value_name = "NAME", value_parser = move_parser())]
    #[arg(hide_possible_values = true)]
    pub kernel: Move,
    /// Order of sites in sweeps of heat-bath and metropolis: systematic or coloured
    #[arg(long, value_enum, default_value = "systematic", value_name = "ORDER")]
    #[arg(hide_possible_values = true)]
    pub scan: ScanName,
}

/// An ensemble of weighted walkers.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "Sampling")]
pub struct WalkerSpec {
    /// Number of weighted walkers
    #[arg(long, default_value = "1000", value_name = "N", value_parser = count)]
    pub walkers: usize,
    /// Steps along the path, each a reweighting and some moves
    #[arg(long, default_value = "100", value_name = "N", value_parser = count)]
    pub intervals: usize,
    /// Steps of the kernel in each interval, sweeps for heat-bath and metropolis [default: 1, with a network 0]
    #[arg(long, value_name = "N", value_parser = count)]
    pub sweeps: Option<usize>,
    /// Estimates kept along the path
    #[arg(long, default_value = "10", value_name = "N", value_parser = count)]
    pub trace_points: usize,
    /// Print estimates at these inverse temperatures on the way to the target's as well
    #[arg(long, value_name = "B,...", value_delimiter = ',', value_parser = number)]
    pub at_beta: Vec<f64>,
}

/// Moves smaller than a sweep.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "Sampling")]
pub struct UpdateSpec {
    /// Single-site updates in each interval in place of sweeps, if not 0
    #[arg(long, default_value = "0", value_name = "N", value_parser = count)]
    pub updates: usize,
}

/// How walkers follow a network.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "Sampling")]
pub struct FlowSpec {
    /// Steps of a network's walkers: events (exact), euler (the paper's, biased) or trapezoid (less biased)
    #[arg(long, value_enum, default_value = "events", value_name = "HOW")]
    #[arg(hide_possible_values = true)]
    pub scheme: SchemeName,
    /// Ends of a network's intervals, rising from 0 to 1, in place of --intervals
    #[arg(long, value_name = "T,...", value_delimiter = ',', value_parser = number)]
    pub times: Vec<f64>,
}

impl FlowSpec {
    /// The ends of the intervals: those given, or `intervals` equal ones.
    pub fn cuts(&self, intervals: usize) -> Vec<f64> {
        if !self.times.is_empty() {
            return self.times.clone();
        }
        let mut cuts: Vec<f64> = (0..=intervals).map(|k| k as f64 / intervals as f64).collect();
        cuts[intervals] = 1.0;
        cuts
    }

    /// Refuse times that do not rise from 0 to 1.
    pub fn check(&self) -> Result<()> {
        let rising = self.times.windows(2).all(|pair| pair[0] < pair[1]);
        let ends = self.times.first().zip(self.times.last());
        if rising && ends.is_none_or(|(first, last)| (*first, *last) == (0.0, 1.0)) {
            return Ok(());
        }
        let list: Vec<String> = self.times.iter().map(f64::to_string).collect();
        let advice = "write --times 0,0.3,0.6,0.8,1, or leave it out for equal intervals";
        Err(Error::invalid("sample.times", list.join(","), "rising from 0 to 1", advice))
    }
}

/// When and how walkers are resampled.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "Sampling")]
pub struct ResampleSpec {
    /// Resample when the effective sample size falls below this, 0 (never) to 1 (always) [default: 0.5, with a network 0]
    #[arg(long, value_name = "X", value_parser = number)]
    pub ess_threshold: Option<f64>,
    /// Resampling scheme: multinomial, stratified, systematic or residual
    #[arg(
        long,
        value_enum,
        default_value = "systematic",
        hide_possible_values = true,
        value_name = "SCHEME"
    )]
    pub resampler: ResamplerName,
}

/// Independent Markov chains.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "Sampling")]
pub struct ChainSpec {
    /// Number of independent chains
    #[arg(long, default_value = "64", value_name = "N", value_parser = count)]
    pub chains: usize,
    /// Steps of each chain after burn-in
    #[arg(long, default_value = "10000", value_name = "N", value_parser = count)]
    pub steps: usize,
    /// Steps dropped at the start of each chain; step sizes adapt during the first half
    #[arg(long, default_value = "1000", value_name = "N", value_parser = count)]
    pub burn_in: usize,
    /// Measure every N steps
    #[arg(long, default_value = "1", value_name = "N", value_parser = count)]
    pub thin: usize,
    /// Kernel within each temperature of parallel-tempering and houdayer
    #[arg(long, default_value = "heat-bath", value_name = "NAME", value_parser = kernel_parser())]
    #[arg(hide_possible_values = true)]
    pub tempering_kernel: KernelName,
    /// Temperatures of the ladder, unless betas lists them
    #[arg(long, default_value = "8", value_name = "N", value_parser = count)]
    pub temperatures: usize,
    /// Inverse temperatures of the ladder, rising to the target's
    #[arg(long, value_name = "B,...", value_delimiter = ',', value_parser = number)]
    pub betas: Vec<f64>,
}

macro_rules! default_from_flags {
    ($($spec:ty),*) => { $(
        impl Default for $spec {
            fn default() -> Self {
                super::defaults()
            }
        }
    )* };
}
default_from_flags!(KernelSpec, WalkerSpec, UpdateSpec, FlowSpec, ResampleSpec, ChainSpec);

fn at_least(key: &str, value: usize, least: usize, most: usize, advice: &str) -> Result<()> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Error::invalid(format!("sample.{key}"), value, format!("from {least} to {most}"), advice))
}

impl WalkerSpec {
    /// Refuse values outside their ranges.
    pub fn check(&self) -> Result<()> {
        at_least("walkers", self.walkers, 2, 1 << 31, "errors need at least two walkers")?;
        at_least("intervals", self.intervals, 1, 1 << 40, "a path has at least one step")?;
        at_least("sweeps", self.sweeps.unwrap_or(1), 0, 1 << 40, "1 is usual")?;
        at_least("trace_points", self.trace_points, 1, 1 << 20, "1 keeps the end of the path alone")
    }

    /// The inverse temperatures asked for, as they are met on `path` to `beta`, and when.
    pub fn stops(&self, path: &Path, beta: f64) -> Result<Vec<(f64, f64)>> {
        let mut all = self.at_beta.clone();
        all.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        all.dedup();
        let stop = |at: f64| {
            let share = at / beta;
            if !(share > 0.0 && share <= 1.0) {
                return Err(Error::invalid(
                    "sample.at_beta",
                    at,
                    match beta < 0.0 {
                        true => format!("below 0 and at least {beta}, where the path ends"),
                        false => format!("above 0 and at most {beta}, where the path ends"),
                    },
                    "leave it out, or go to that temperature (a network has to be trained for it)",
                ));
            }
            let time = if at == beta { Some(1.0) } else { path.time(share) };
            let time = time.ok_or_else(|| {
                let reason = "path.terms gives the energy terms schedules of their own, so that no time has one temperature";
                Error::not_applicable("--at-beta", reason)
            })?;
            Ok((at, time))
        };
        all.into_iter().map(stop).collect()
    }

    /// Refuse temperatures on the way for samplers that do not go along the path.
    pub fn check_no_stops(&self) -> Result<()> {
        if self.at_beta.is_empty() {
            return Ok(());
        }
        let list: Vec<String> = self.at_beta.iter().map(f64::to_string).collect();
        Err(Error::invalid(
            "sample.at_beta",
            list.join(","),
            "left out for mcmc, whose chains stay at the target's temperature",
            "run mcmc once for each of them, or use ais, smc or sample, which pass them on the way",
        ))
    }
}

impl UpdateSpec {
    /// Refuse values outside their ranges.
    pub fn check(&self) -> Result<()> {
        at_least("updates", self.updates, 0, 1 << 40, "0 runs sweeps instead")
    }
}

impl ResampleSpec {
    /// Refuse values outside their ranges.
    pub fn check(&self) -> Result<()> {
        match self.ess_threshold {
            Some(threshold) if !(0.0..=1.0).contains(&threshold) => Err(Error::invalid(
                "sample.ess_threshold",
                threshold,
                "from 0 to 1",
                "0.5 is usual",
            )),
            _ => Ok(()),
        }
    }

    /// When and how to resample, below `usual` unless a threshold was given.
    pub fn resampling(&self, usual: f64) -> Resampling {
        let resampler = match self.resampler {
            ResamplerName::Multinomial => Resampler::Multinomial,
            ResamplerName::Stratified => Resampler::Stratified,
            ResamplerName::Systematic => Resampler::Systematic,
            ResamplerName::Residual => Resampler::Residual,
        };
        Resampling { threshold: self.ess_threshold.unwrap_or(usual), resampler }
    }
}

impl ChainSpec {
    /// Refuse values outside their ranges.
    pub fn check(&self, beta: f64) -> Result<()> {
        at_least("chains", self.chains, 1, 1 << 31, "64 run about as fast as one")?;
        at_least(
            "steps",
            self.steps,
            2,
            1 << 40,
            "a few hundred autocorrelation times are wanted",
        )?;
        at_least("burn_in", self.burn_in, 0, 1 << 40, "a tenth of the steps is usual")?;
        at_least("thin", self.thin, 1, self.steps, "1 measures every step")?;
        at_least("temperatures", self.temperatures, 2, 10_000, "a ladder has two ends")?;
        let rising = self.betas.windows(2).all(|pair| pair[0].abs() < pair[1].abs());
        let ends = self.betas.last().is_none_or(|last| *last == beta && self.betas.len() >= 2);
        if !rising || !ends || self.betas.iter().any(|b| !b.is_finite()) {
            let list: Vec<String> = self.betas.iter().map(f64::to_string).collect();
            return Err(Error::invalid(
                "sample.betas",
                list.join(","),
                format!("two or more rising numbers that end at the target's beta {beta}"),
                "leave it out to spread --temperatures evenly",
            ));
        }
        Ok(())
    }
}
