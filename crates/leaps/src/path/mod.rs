//! Paths: the weights of the energy terms from 0 to their final values, `lambda_k(t)`, t in [0, 1].
//!
//! At `t = 0` every weight is 0 and the distribution is uniform. At `t = 1` term `k` has its final
//! weight, for a temperature the inverse temperature `beta`.

mod ranges;
mod spec;

pub use ranges::{Ranges, Strength};
pub use spec::{PathSpec, Points, ScheduleName};

use crate::{Error, Result, finite};

/// The shape `s(t)` of a schedule, with `s(0) = 0`, `s(1) = 1`, never decreasing.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Schedule {
    /// `t`.
    Linear,
    /// `sin^2(pi t / 2)`: slow at both ends.
    Trigonometric,
    /// `(r^t - 1) / (r - 1)`: steps grow by a constant ratio; `r < 1` makes them shrink, which spends
    /// time near the target.
    Geometric {
        /// `r`, the ratio of the last step to the first; positive and not 1.
        ratio: f64,
    },
    /// Straight lines between the points `(t, s)` of a table that runs from (0, 0) to (1, 1).
    Piecewise(Vec<(f64, f64)>),
}

impl Schedule {
    /// A geometric schedule with ratio `ratio > 0`; 1 is the linear one.
    pub fn geometric(ratio: f64) -> Result<Self> {
        if !(1e-6..=1e6).contains(&ratio) {
            return Err(Error::invalid(
                "path.ratio",
                ratio,
                "from 1e-6 to 1e6",
                "0.1 spends ten times more time near the target than near t = 0",
            ));
        }
        Ok(if ratio == 1.0 { Schedule::Linear } else { Schedule::Geometric { ratio } })
    }

    /// A schedule from a table of `(t, s)`.
    pub fn piecewise(table: &[(f64, f64)]) -> Result<Self> {
        let ends =
            table.len() >= 2 && table[0] == (0.0, 0.0) && table[table.len() - 1] == (1.0, 1.0);
        let rises = table.windows(2).all(|p| p[0].0 < p[1].0 && p[0].1 <= p[1].1);
        if !ends || !rises || table.iter().any(|p| !p.0.is_finite() || !p.1.is_finite()) {
            return Err(Error::invalid(
                "path.table",
                format!("{table:?}"),
                "a list of [t, s] from [0, 0] to [1, 1], t increasing and s never decreasing",
                "for example [[0, 0], [0.5, 0.8], [1, 1]]",
            ));
        }
        Ok(Schedule::Piecewise(table.to_vec()))
    }

    /// `s(t)`; `t` outside [0, 1] counts as the nearer end.
    pub fn at(&self, t: f64) -> f64 {
        let t = t.clamp(0.0, 1.0);
        if t == 1.0 {
            return 1.0; // exactly, whatever the rounding of the formulas
        }
        match self {
            Schedule::Linear => t,
            Schedule::Trigonometric => (0.5 * std::f64::consts::PI * t).sin().powi(2),
            Schedule::Geometric { ratio } => (t * ratio.ln()).exp_m1() / (ratio - 1.0),
            Schedule::Piecewise(table) => {
                let (from, to) = segment(table, t);
                from.1 + (to.1 - from.1) * (t - from.0) / (to.0 - from.0)
            }
        }
    }

    /// The first time with `s(t) = s`; `s` outside [0, 1] counts as the nearer end.
    pub fn time(&self, s: f64) -> f64 {
        let s = s.clamp(0.0, 1.0);
        match self {
            _ if s == 0.0 || s == 1.0 && !matches!(self, Schedule::Piecewise(_)) => s,
            Schedule::Linear => s,
            Schedule::Trigonometric => s.sqrt().asin() * std::f64::consts::FRAC_2_PI,
            Schedule::Geometric { ratio } => (s * (ratio - 1.0)).ln_1p() / ratio.ln(),
            Schedule::Piecewise(table) => {
                let k = table.partition_point(|p| p.1 < s).clamp(1, table.len() - 1);
                let (from, to) = (table[k - 1], table[k]);
                from.0 + (to.0 - from.0) * (s - from.1) / (to.1 - from.1)
            }
        }
    }

    /// `s'(t)`; at a corner of a table, the slope to its right.
    pub fn slope(&self, t: f64) -> f64 {
        let t = t.clamp(0.0, 1.0);
        match self {
            Schedule::Linear => 1.0,
            Schedule::Trigonometric => {
                0.5 * std::f64::consts::PI * (std::f64::consts::PI * t).sin()
            }
            Schedule::Geometric { ratio } => ratio.ln() * (t * ratio.ln()).exp() / (ratio - 1.0),
            Schedule::Piecewise(table) => {
                let (from, to) = segment(table, t);
                (to.1 - from.1) / (to.0 - from.0)
            }
        }
    }
}

fn segment(table: &[(f64, f64)], t: f64) -> ((f64, f64), (f64, f64)) {
    let last = table.len() - 2;
    let k = table.partition_point(|p| p.0 <= t).saturating_sub(1).min(last);
    (table[k], table[k + 1])
}

/// The path `U_t = sum_k lambda_k(t) E_k` with `lambda_k(t) = end_k s_k(t)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    ends: Vec<f64>,
    schedules: Vec<Schedule>,
}

impl Path {
    /// All terms on one schedule, to the final weights `ends`.
    pub fn new(ends: &[f64], schedule: Schedule) -> Result<Self> {
        Self::with_schedules(ends, vec![schedule; ends.len()])
    }

    /// Every term on its own schedule.
    pub fn with_schedules(ends: &[f64], schedules: Vec<Schedule>) -> Result<Self> {
        assert_eq!(ends.len(), schedules.len(), "one schedule per energy term");
        for &end in ends {
            finite("beta", end)?;
        }
        Ok(Path { ends: ends.to_vec(), schedules })
    }

    /// Number of energy terms.
    pub fn terms(&self) -> usize {
        self.ends.len()
    }

    /// The final weights, `lambda(1)`.
    pub fn ends(&self) -> &[f64] {
        &self.ends
    }

    /// Write `lambda_k(t)` for every term.
    pub fn lambda_into(&self, t: f64, out: &mut [f64]) {
        for ((out, end), schedule) in out.iter_mut().zip(&self.ends).zip(&self.schedules) {
            *out = end * schedule.at(t);
        }
    }

    /// `lambda_k(t)` for every term.
    pub fn lambda(&self, t: f64) -> Vec<f64> {
        let mut out = vec![0.0; self.terms()];
        self.lambda_into(t, &mut out);
        out
    }

    /// The first time at which every weight is `share` of its final value, from 0 to 1: with one temperature for all terms the time at which
    /// the inverse temperature is `share` times the last. `None` if schedules of the terms differ there.
    pub fn time(&self, share: f64) -> Option<f64> {
        let t = self.schedules.first()?.time(share);
        self.schedules.iter().all(|schedule| (schedule.at(t) - share).abs() < 1e-9).then_some(t)
    }

    /// `d lambda_k / dt` for every term.
    pub fn slope(&self, t: f64) -> Vec<f64> {
        self.ends.iter().zip(&self.schedules).map(|(end, s)| end * s.slope(t)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedules() -> Vec<Schedule> {
        vec![
            Schedule::Linear,
            Schedule::Trigonometric,
            Schedule::geometric(0.1).unwrap(),
            Schedule::geometric(30.0).unwrap(),
            Schedule::piecewise(&[(0.0, 0.0), (0.3, 0.5), (0.7, 0.5), (1.0, 1.0)]).unwrap(),
        ]
    }

    #[test]
    fn schedules_run_from_0_to_1_and_never_fall() {
        for schedule in schedules() {
            assert_eq!((schedule.at(0.0), schedule.at(1.0)), (0.0, 1.0));
            let values: Vec<f64> = (0..=100).map(|i| schedule.at(i as f64 / 100.0)).collect();
            assert!(values.windows(2).all(|w| w[0] <= w[1]), "{schedule:?}");
        }
    }

    #[test]
    fn times_are_inverses() {
        for schedule in schedules() {
            for s in [0.0, 1e-9, 0.1, 0.5, 0.9, 1.0 - 1e-9, 1.0] {
                let t = schedule.time(s);
                assert!((schedule.at(t) - s).abs() < 1e-14, "{schedule:?} at {s}");
                assert!(
                    t == 0.0 || schedule.at(t - 1e-6) < s,
                    "{schedule:?}: {t} is not the first"
                );
            }
        }
        let mut both = vec![Schedule::Linear; 2];
        let path = |schedules: &[Schedule]| Path::with_schedules(&[0.4, 0.4], schedules.to_vec());
        assert_eq!(path(&both).unwrap().time(0.25), Some(0.25));
        both[1] = Schedule::Trigonometric;
        assert_eq!(path(&both).unwrap().time(0.25), None);
        assert_eq!(path(&both).unwrap().time(1.0), Some(1.0));
    }

    #[test]
    fn slopes_are_derivatives() {
        let h = 1e-6;
        for schedule in schedules() {
            for t in [0.01, 0.25, 0.5, 0.9, 0.99] {
                let difference = (schedule.at(t + h) - schedule.at(t - h)) / (2.0 * h);
                assert!((schedule.slope(t) - difference).abs() < 1e-7, "{schedule:?} at {t}");
            }
        }
    }

    #[test]
    fn terms_keep_their_own_schedules() {
        let path =
            Path::with_schedules(&[0.4, -2.0], vec![Schedule::Linear, Schedule::Trigonometric])
                .unwrap();
        let lambda = path.lambda(0.5);
        assert!((lambda[0] - 0.2).abs() < 1e-15 && (lambda[1] + 1.0).abs() < 1e-15);
        assert_eq!(path.lambda(1.0), vec![0.4, -2.0]);
    }

    #[test]
    fn bad_tables_are_refused() {
        for table in [
            &[][..],
            &[(0.0, 0.0)],
            &[(0.0, 0.0), (1.0, 0.9)],
            &[(0.0, 0.0), (0.5, 0.8), (0.4, 0.9), (1.0, 1.0)],
            &[(0.0, 0.0), (0.5, f64::NAN), (1.0, 1.0)],
            &[(0.0, 0.0), (0.5, 1.2), (1.0, 1.0)],
        ] {
            assert!(Schedule::piecewise(table).is_err(), "{table:?}");
        }
        assert!(Schedule::geometric(0.0).is_err() && Schedule::geometric(f64::NAN).is_err());
        assert!(Path::new(&[f64::INFINITY], Schedule::Linear).is_err());
    }
}
