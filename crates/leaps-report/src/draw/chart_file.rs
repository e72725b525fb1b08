//! Charts as JSON: all that is needed to draw them again.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::chart::{Axis, Chart};
use super::series::{GREY, Mark, Series};

/// A chart as files have it. Files of older versions have names, axes and points alone.
#[derive(Serialize, Deserialize)]
struct ChartInFile {
    title: String,
    x: String,
    y: String,
    series: Vec<SeriesInFile>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<(f64, f64)>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    log_x: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    log_y: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    x_between: Option<(f64, f64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    y_between: Option<(f64, f64)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rows: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    columns: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rule: Option<(f64, String)>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    unjoined: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    dodged: bool,
}

/// A series; numbers that are not finite are `null`.
#[derive(Serialize, Deserialize)]
struct SeriesInFile {
    name: String,
    points: Vec<[Option<f64>; 3]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mark: Option<Mark>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    colour: Option<usize>,
}

impl Chart {
    /// The chart as a JSON object.
    pub fn to_json(&self) -> Value {
        let finite = |value: f64| value.is_finite().then_some(value);
        let series = self.series.iter().map(|series| SeriesInFile {
            name: series.name.clone(),
            points: series.points.iter().map(|p| [finite(p.0), finite(p.1), finite(p.2)]).collect(),
            mark: Some(series.mark),
            colour: Some(series.colour),
        });
        let file = ChartInFile {
            title: self.title.clone(),
            x: self.x.label.clone(),
            y: self.y.label.clone(),
            series: series.collect(),
            size: Some(self.size),
            log_x: self.x.log,
            log_y: self.y.log,
            x_between: self.x.fixed,
            y_between: self.y.fixed,
            rows: self.rows.clone(),
            columns: self.columns.clone(),
            rule: self.rule.clone(),
            unjoined: !self.joined,
            dodged: self.dodged,
        };
        // Numbers and text under keys of text cannot fail.
        serde_json::to_value(file).unwrap_or_else(|_| unreachable!())
    }

    /// The chart of such an object, if it is one.
    pub fn read(value: &Value) -> Option<Chart> {
        let file = ChartInFile::deserialize(value).ok()?;
        let series = file.series.into_iter().enumerate().map(|(number, series)| {
            // Older files do not say how: what others are held against is a line, the rest are points.
            let exact = series.name.starts_with("exact");
            let points = series.points.into_iter().map(|[x, y, error]| {
                (x.unwrap_or(f64::NAN), y.unwrap_or(f64::NAN), error.unwrap_or(f64::INFINITY))
            });
            Series {
                points: points.collect(),
                mark: series.mark.unwrap_or(if exact { Mark::Line } else { Mark::Joined }),
                colour: series.colour.unwrap_or(if exact { GREY } else { number }),
                name: series.name,
            }
        });
        Some(Chart {
            title: file.title,
            size: file.size.unwrap_or(Chart::SIZE),
            x: Axis { label: file.x, log: file.log_x, fixed: file.x_between },
            y: Axis { label: file.y, log: file.log_y, fixed: file.y_between },
            rows: file.rows,
            columns: file.columns,
            series: series.collect(),
            rule: file.rule,
            joined: !file.unjoined,
            dodged: file.dodged,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn charts_come_back_as_they_were() {
        let points = vec![(1.0, 1.5, 0.1), (10.0, 3.0, f64::INFINITY), (20.0, f64::NAN, 0.0)];
        let plain = Chart::new("a", "b", "c");
        let charts = [
            plain.clone().logarithmic_x().series("s", Mark::Open, points.clone()).dodged(),
            plain
                .clone()
                .y_between(0.0, 4.0)
                .series("s", Mark::Steps, points.clone())
                .rule(2.0, "r"),
            plain.clone().rows(vec!["u".into(), "v".into()]).series(
                "s",
                Mark::Dots,
                points.clone(),
            ),
            plain.sized(540.0, 340.0).series("s", Mark::Line, points).unjoined(),
        ];
        for chart in charts {
            let text = chart.to_json().to_string();
            let again = Chart::read(&serde_json::from_str(&text).unwrap()).unwrap();
            assert_eq!(again.svg(), chart.svg());
        }
    }

    #[test]
    fn older_files_are_read() {
        let old = json!({"title": "C", "x": "beta", "y": "C/N", "name": "heat", "series": [
            {"name": "events", "points": [[0.1, 1.0, 0.1], [0.2, 2.0, 0.1]]},
            {"name": "exact", "points": [[0.1, 1.0, 0.0], [0.2, 2.0, 0.0]]}]});
        let chart = Chart::read(&old).unwrap();
        assert_eq!([chart.series[0].mark, chart.series[1].mark], [Mark::Joined, Mark::Line]);
        assert!(Chart::read(&json!({"title": 3})).is_none());
    }
}
