//! Axes: places of numbers along them, and round ticks.

/// An axis from `low` to `high`, in powers of ten if `log`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    low: f64,
    high: f64,
    log: bool,
}

/// About how many ticks an axis has.
const TICKS: f64 = 6.0;

/// Most ticks of a logarithmic axis.
const MOST_TICKS: usize = 8;

/// Most powers of ten of an axis with small ticks.
const MOST_DECADES: i32 = 9;

impl Scale {
    /// An axis that holds all finite `values`, with a little room at both ends.
    pub fn around(values: impl IntoIterator<Item = f64>, log: bool) -> Self {
        let usable = |value: &f64| value.is_finite() && (!log || *value > 0.0);
        let (low, high) = values
            .into_iter()
            .filter(usable)
            .map(|value| if log { value.log10() } else { value })
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
        if low > high {
            return Scale { low: 0.0, high: 1.0, log };
        }
        let spread = high - low;
        let room =
            if spread > 1e-12 * high.abs() { 0.05 * spread } else { 0.5 * high.abs().max(1e-12) };
        Scale { low: low - room, high: high + room, log }
    }

    /// An axis from the lowest of all finite `values` to the highest.
    pub fn around_exactly(values: impl Iterator<Item = f64> + Clone) -> Self {
        let finite = || values.clone().filter(|value| value.is_finite());
        let (low, high) =
            (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
        if low < high { Scale { low, high, log: false } } else { Scale::around(finite(), false) }
    }

    /// An axis between two numbers.
    pub fn between(low: f64, high: f64, log: bool) -> Self {
        match log {
            true if low > 0.0 && low < high => Scale { low: low.log10(), high: high.log10(), log },
            false if low < high => Scale { low, high, log },
            _ => Scale::around([low, high], log),
        }
    }

    /// Whether it goes in powers of ten.
    pub fn is_log(&self) -> bool {
        self.log
    }

    /// Small ticks without labels: the whole multiples of powers of ten, unless there are too many.
    pub fn minor(&self) -> Vec<f64> {
        let (first, last) = (self.low.floor() as i32, self.high.ceil() as i32);
        if !self.log || last - first > MOST_DECADES {
            return Vec::new();
        }
        let all = (first..=last).flat_map(|p| (1..10).map(move |m| f64::from(m) * 10f64.powi(p)));
        all.filter(|value| self.place(*value).is_some()).collect()
    }

    /// The same axis with `value` as its lower end.
    pub fn from(self, value: f64) -> Self {
        Scale { low: value, high: self.high.max(value + 1e-12), ..self }
    }

    /// Where a value lies, 0 at the lower end and 1 at the upper; `None` if it has no place.
    pub fn place(&self, value: f64) -> Option<f64> {
        let value = if self.log { value.log10() } else { value };
        let place = (value - self.low) / (self.high - self.low);
        (place.is_finite() && (-1e-9..=1.0 + 1e-9).contains(&place))
            .then_some(place.clamp(0.0, 1.0))
    }

    /// Where a value lies, at the nearer end if it is outside.
    pub fn clamp(&self, value: f64) -> Option<f64> {
        let value = if self.log { value.log10() } else { value };
        let place = (value - self.low) / (self.high - self.low);
        (!place.is_nan()).then_some(place.clamp(0.0, 1.0))
    }

    /// Round numbers along the axis with their labels.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        if self.log { self.decades() } else { linear(self.low, self.high) }
    }

    fn decades(&self) -> Vec<(f64, String)> {
        let (first, last) = (self.low.floor() as i32, self.high.ceil() as i32);
        let within = |value: &f64| self.place(*value).is_some();
        let rounds = |mantissas: &[f64]| -> Vec<f64> {
            let all = (first..=last).flat_map(|p| mantissas.iter().map(move |m| m * 10f64.powi(p)));
            all.filter(within).collect()
        };
        let fine = rounds(&[1.0, 2.0, 5.0]);
        if fine.len() < 3 {
            // Within a small part of a decade.
            return linear(10f64.powf(self.low), 10f64.powf(self.high));
        }
        if fine.len() <= MOST_TICKS {
            return fine.into_iter().map(|value| (value, short(value))).collect();
        }
        let whole = rounds(&[1.0]);
        let every = whole.len().div_ceil(MOST_TICKS);
        whole.into_iter().step_by(every).map(|value| (value, short(value))).collect()
    }
}

/// A round number without needless digits; what follows `^` is a power.
fn short(value: f64) -> String {
    let power = value.log10().floor() as i32;
    let mantissa = (value / 10f64.powi(power)).round();
    match mantissa as i32 {
        _ if (1e-3..1e4).contains(&(value * (1.0 + 1e-12))) => {
            crate::text::fixed(value, (-power).max(0) as usize)
        }
        1 => format!("10^{power}").replace('-', "−"),
        mantissa => format!("{mantissa}·10^{power}").replace('-', "−"),
    }
}

/// Multiples of 1, 2 or 5 times a power of ten.
fn linear(low: f64, high: f64) -> Vec<(f64, String)> {
    let raw = (high - low) / TICKS;
    let magnitude = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * magnitude).into_iter().find(|s| *s >= raw);
    let step = step.unwrap_or(magnitude);
    if !(step.is_finite() && step > 0.0) {
        return Vec::new();
    }
    let decimals = (-step.log10().floor()).max(0.0) as usize;
    let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
    let label = |value: f64| {
        if step.abs() >= 1e5 || decimals > 6 {
            format!("{value:.1e}")
        } else {
            crate::text::fixed(value, decimals)
        }
    };
    (first..=last.min(first + 20)).map(|k| (k as f64 * step, label(k as f64 * step))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale) -> Vec<String> {
        scale.ticks().into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(
            labels(Scale::between(0.0, 1.0, false)),
            ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
        );
        assert_eq!(labels(Scale::between(-1.3, 2.2, false)), ["-1", "0", "1", "2"]);
        assert_eq!(
            labels(Scale::between(0.0, 4321.0, false)),
            ["0", "1000", "2000", "3000", "4000"]
        );
        assert_eq!(labels(Scale::around([1e-3, 10.0], true)), ["0.001", "0.01", "0.1", "1", "10"]);
        assert_eq!(labels(Scale::around([1.7, 15.0], true)), ["2", "5", "10"]);
        assert!(labels(Scale::around([2.0, 3.0], true)).len() >= 3);
        let decades = Scale::between(1e2, 1e6, true);
        assert_eq!(labels(decades), ["100", "1000", "10^4", "10^5", "10^6"]);
        assert_eq!(
            labels(Scale::between(1e-5, 1e-4, true)),
            ["10^−5", "2·10^−5", "5·10^−5", "10^−4"]
        );
        assert_eq!(decades.minor().len(), 37);
        assert!(Scale::between(1.0, 10.0, false).minor().is_empty());
    }

    #[test]
    fn ticks_lie_on_the_axis() {
        for (low, high) in [(0.1, 0.10001), (-5e7, 3e8), (1e-9, 2e-9), (-0.3, 0.3)] {
            let scale = Scale::between(low, high, false);
            let ticks = scale.ticks();
            assert!((3..=11).contains(&ticks.len()), "{low} to {high}: {ticks:?}");
            assert!(ticks.iter().all(|(value, _)| scale.place(*value).is_some()), "{ticks:?}");
        }
    }

    #[test]
    fn odd_data_have_an_axis_too() {
        for values in [&[][..], &[f64::NAN], &[3.0], &[0.0, 0.0], &[f64::INFINITY, -1.0]] {
            for log in [false, true] {
                let scale = Scale::around(values.iter().copied(), log);
                assert!(scale.high > scale.low && scale.high.is_finite(), "{values:?}");
                let _ = scale.ticks();
                assert_eq!(scale.place(f64::NAN), None);
            }
        }
        assert_eq!(Scale::between(0.0, 1.0, false).place(1.5), None);
        assert_eq!(Scale::between(0.0, 1.0, false).clamp(1.5), Some(1.0));
    }
}
