//! Settings of samplers, in groups of which every sampler uses some; together they are the section `[sample]`.

use serde::{Deserialize, Serialize};

use super::{Resampler, Resampling, Scheme};
use crate::parse::{at_least, list_or_range};
#[cfg(feature = "clap")]
use crate::parse::{count, number, numbers};
use crate::path::Path;
use crate::{Error, Result};

/// Numbers that are one value on the command line.
type Numbers = Vec<f64>;

/// An ensemble of weighted walkers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "clap", command(next_help_heading = "Sampling"))]
pub struct WalkerSpec {
    /// Number of weighted walkers
    #[cfg_attr(feature = "clap", arg(long, default_value_t = WalkerSpec::default().walkers, value_name = "N", value_parser = count))]
    pub walkers: usize,
    /// Steps along the path, each a reweighting and some moves
    #[cfg_attr(feature = "clap", arg(long, default_value_t = WalkerSpec::default().intervals, value_name = "N", value_parser = count))]
    pub intervals: usize,
    /// Steps of the kernel in each interval, sweeps for heat-bath and metropolis [default: 1, with a network 0]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = count))]
    pub sweeps: Option<usize>,
    /// Estimates kept along the path
    #[cfg_attr(feature = "clap", arg(long, default_value_t = WalkerSpec::default().trace_points, value_name = "N", value_parser = count))]
    pub trace_points: usize,
    /// Print estimates at these inverse temperatures on the way to the target's as well: B,... or FROM:TO:POINTS
    #[cfg_attr(feature = "clap", arg(long, value_name = "B,...", value_parser = numbers))]
    #[cfg_attr(feature = "clap", arg(default_value = "", hide_default_value = true))]
    #[serde(deserialize_with = "list_or_range")]
    pub at_beta: Numbers,
    /// Send as many walkers back from samples of the target, and estimate log Z from both sides (BAR)
    #[cfg_attr(feature = "clap", arg(long))]
    pub two_sided: bool,
}

/// Moves smaller than a sweep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "clap", command(next_help_heading = "Sampling"))]
pub struct UpdateSpec {
    /// Single-site updates in each interval in place of sweeps, if not 0
    #[cfg_attr(feature = "clap", arg(long, default_value_t = 0, value_name = "N", value_parser = count))]
    pub updates: usize,
}

/// How walkers follow a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "clap", command(next_help_heading = "Sampling"))]
pub struct SchemeSpec {
    /// Steps of a network's walkers: events (exact), euler (the paper's, biased) or trapezoid (less biased)
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t, value_name = "HOW"))]
    #[cfg_attr(feature = "clap", arg(hide_possible_values = true))]
    pub scheme: Scheme,
    /// Ends of a network's intervals, rising from 0 to 1, in place of --intervals
    #[cfg_attr(feature = "clap", arg(long, value_name = "T,...", value_delimiter = ',', value_parser = number))]
    pub times: Vec<f64>,
    /// Steps of each interval at which energies follow the path while the network's output is kept (events)
    #[cfg_attr(feature = "clap", arg(long, default_value_t = SchemeSpec::default().substeps, value_name = "N", value_parser = count))]
    pub substeps: usize,
}

impl Default for SchemeSpec {
    fn default() -> Self {
        SchemeSpec { scheme: Scheme::default(), times: Vec::new(), substeps: 1 }
    }
}

impl SchemeSpec {
    /// The ends of the intervals: those given, or `intervals` equal ones.
    pub fn cuts(&self, intervals: usize) -> Vec<f64> {
        if !self.times.is_empty() {
            return self.times.clone();
        }
        let mut cuts: Vec<f64> = (0..=intervals).map(|k| k as f64 / intervals as f64).collect();
        cuts[intervals] = 1.0;
        cuts
    }

    /// Refuse times that do not rise from 0 to 1, and numbers of substeps outside their range.
    pub fn check(&self) -> Result<()> {
        at_least("sample.substeps", self.substeps, 1, 1 << 20, "4 is usual with few intervals")?;
        let rising = self.times.windows(2).all(|pair| pair[0] < pair[1]);
        let ends = self.times.first().zip(self.times.last());
        if rising && ends.is_none_or(|(first, last)| (*first, *last) == (0.0, 1.0)) {
            return Ok(());
        }
        let list: Vec<String> = self.times.iter().map(f64::to_string).collect();
        let advice = "write 0,0.3,0.6,0.8,1, or leave it out for equal intervals";
        Err(Error::invalid("sample.times", list.join(","), "rising from 0 to 1", advice))
    }
}

/// When and how walkers are resampled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "clap", command(next_help_heading = "Sampling"))]
pub struct ResampleSpec {
    /// Resample when the effective sample size falls below this, 0 (never) to 1 (always) [default: 0.5, with a network 0]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = number))]
    pub ess_threshold: Option<f64>,
    /// Resampling scheme: multinomial, stratified, systematic or residual
    #[cfg_attr(
        feature = "clap",
        arg(long, value_enum, default_value_t, hide_possible_values = true, value_name = "SCHEME")
    )]
    pub resampler: Resampler,
}

impl Default for WalkerSpec {
    fn default() -> Self {
        WalkerSpec {
            walkers: 1000,
            intervals: 100,
            sweeps: None,
            trace_points: 10,
            at_beta: Vec::new(),
            two_sided: false,
        }
    }
}

impl WalkerSpec {
    /// Refuse values outside their ranges.
    pub fn check(&self) -> Result<()> {
        at_least("sample.walkers", self.walkers, 2, 1 << 31, "errors need at least two walkers")?;
        at_least("sample.intervals", self.intervals, 1, 1 << 40, "a path has at least one step")?;
        at_least("sample.sweeps", self.sweeps.unwrap_or(1), 0, 1 << 40, "1 is usual")?;
        at_least(
            "sample.trace_points",
            self.trace_points,
            1,
            1 << 20,
            "1 keeps the end of the path alone",
        )
    }

    /// The inverse temperatures asked for, as they are met on `path` to `beta`, and when.
    pub fn stops(&self, path: &Path, beta: f64) -> Result<Vec<(f64, f64)>> {
        // Ranges computed elsewhere end where the path does but for rounding.
        let ends = |at: f64| (at - beta).abs() <= 1e-12 * beta.abs();
        let mut all: Vec<f64> =
            self.at_beta.iter().map(|&at| if ends(at) { beta } else { at }).collect();
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
                Error::not_applicable("sample.at_beta", reason)
            })?;
            Ok((at, time))
        };
        all.into_iter().map(stop).collect()
    }

    /// The error for resampled walkers, which cannot be sent back.
    pub(crate) fn no_way_back() -> Error {
        let reason = "resampling has no reversal; use ais, or a network with the threshold 0";
        Error::not_applicable("a two-sided estimate", reason)
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
            "left out for mcmc with one temperature, whose chains stay at the target's",
            "use the kernel parallel-tempering or ladder, which have several, or use ais, smc or sample, which pass them on the way",
        ))
    }
}

impl UpdateSpec {
    /// Refuse values outside their ranges.
    pub fn check(&self) -> Result<()> {
        at_least("sample.updates", self.updates, 0, 1 << 40, "0 runs sweeps instead")
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
        Resampling { threshold: self.ess_threshold.unwrap_or(usual), resampler: self.resampler }
    }
}
