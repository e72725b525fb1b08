//! Draw lines, steps and points with error bars as inline SVG.

use super::html::escape;
use super::scale::Scale;

/// How the points of a series are shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mark {
    /// Joined by a line.
    Line,
    /// Joined by a broken line: what is compared with.
    Dashes,
    /// One bar per point, whose width is the distance of the points; a filled outline.
    Steps,
    /// Dots with error bars.
    Dots,
}

/// Points `(x, y, error of y)` with a name.
#[derive(Clone, Debug)]
pub struct Series {
    name: String,
    mark: Mark,
    points: Vec<(f64, f64, f64)>,
}

/// A chart with its axes.
#[derive(Clone, Debug)]
pub struct Chart {
    title: String,
    x_label: String,
    y_label: String,
    x: Option<Scale>,
    y: Option<Scale>,
    log: bool,
    series: Vec<Series>,
    /// A horizontal line and what it stands for.
    rule: Option<(f64, String)>,
}

const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 270.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 42.0;

impl Chart {
    /// An empty chart.
    pub fn new(title: &str, x_label: &str, y_label: &str) -> Self {
        Chart {
            title: title.to_owned(),
            x_label: x_label.to_owned(),
            y_label: y_label.to_owned(),
            x: None,
            y: None,
            log: false,
            series: Vec::new(),
            rule: None,
        }
    }

    /// Add points.
    pub fn series(mut self, name: &str, mark: Mark, points: Vec<(f64, f64, f64)>) -> Self {
        if !points.is_empty() {
            self.series.push(Series { name: name.to_owned(), mark, points });
        }
        self
    }

    /// Powers of ten along y.
    pub fn logarithmic(mut self) -> Self {
        self.log = true;
        self
    }

    /// A fixed range of x.
    pub fn x_between(mut self, low: f64, high: f64) -> Self {
        self.x = Some(Scale::between(low, high));
        self
    }

    /// A fixed range of y.
    pub fn y_between(mut self, low: f64, high: f64) -> Self {
        self.y = Some(Scale::between(low, high));
        self
    }

    /// A horizontal line.
    pub fn rule(mut self, y: f64, name: &str) -> Self {
        self.rule = Some((y, name.to_owned()));
        self
    }

    /// Whether there is nothing to see.
    pub fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    fn scales(&self) -> (Scale, Scale) {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let half = |series: &Series| match series.mark {
            Mark::Steps => 0.5 * spacing(&series.points),
            _ => 0.0,
        };
        let ends = self.series.iter().flat_map(|series| {
            let half = half(series);
            series.points.iter().flat_map(move |p| [p.0 - half, p.0 + half])
        });
        let x = self.x.unwrap_or_else(|| Scale::around(ends, false));
        let error = |e: f64| if e.is_finite() && !self.log { e } else { 0.0 };
        let heights = points().flat_map(|p| [p.1 - error(p.2), p.1 + error(p.2)]);
        let rule = self.rule.iter().map(|rule| rule.0);
        let y = self.y.unwrap_or_else(|| Scale::around(heights.chain(rule), self.log));
        let from_zero = self.y.is_none() && self.series.iter().any(|s| s.mark == Mark::Steps);
        (x, if from_zero && !self.log { y.from(0.0) } else { y })
    }

    /// The chart as an `<svg>` element.
    pub fn svg(&self) -> String {
        let (x, y) = self.scales();
        let frame = Frame { x, y };
        let mut out = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
            escape(&self.title)
        );
        out += &text(LEFT, 16.0, "title", "start", &self.title);
        for (value, label) in x.ticks() {
            if let Some(at) = frame.across(value) {
                out += &line(at, TOP, at, HEIGHT - BOTTOM, "grid");
                out += &text(at, HEIGHT - BOTTOM + 15.0, "tick", "middle", &label);
            }
        }
        for (value, label) in y.ticks() {
            if let Some(at) = frame.up(value) {
                out += &line(LEFT, at, WIDTH - RIGHT, at, "grid");
                out += &text(LEFT - 6.0, at + 3.5, "tick", "end", &label);
            }
        }
        let middle = 0.5 * (TOP + HEIGHT - BOTTOM);
        out += &text(0.5 * (LEFT + WIDTH - RIGHT), HEIGHT - 8.0, "label", "middle", &self.x_label);
        out += &format!("<g transform=\"translate(13 {middle}) rotate(-90)\">");
        out += &text(0.0, 0.0, "label", "middle", &self.y_label);
        out += "</g>\n";
        if let Some((value, name)) = &self.rule
            && let Some(at) = frame.up(*value)
        {
            out += &line(LEFT, at, WIDTH - RIGHT, at, "rule");
            out += &text(LEFT + 4.0, at - 4.0, "tick", "start", name);
        }
        for (number, series) in self.series.iter().enumerate() {
            out += &series.draw(&frame, number);
        }
        out += &line(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, "axis");
        out += &line(LEFT, TOP, LEFT, HEIGHT - BOTTOM, "axis");
        out + &self.legend() + "</svg>\n"
    }

    fn legend(&self) -> String {
        let named: Vec<(usize, &Series)> =
            self.series.iter().enumerate().filter(|(_, series)| !series.name.is_empty()).collect();
        if self.series.len() < 2 {
            return String::new();
        }
        let mut out = String::new();
        let mut right = WIDTH - RIGHT;
        for (number, series) in named.into_iter().rev() {
            out += &text(right, 16.0, "tick", "end", &series.name);
            right -= 6.8 * series.name.chars().count() as f64 + 6.0;
            let dash = if series.mark == Mark::Dashes { " dashes" } else { "" };
            out += &line(right - 16.0, 12.5, right, 12.5, &format!("s{number}{dash}"));
            right -= 26.0;
        }
        out
    }
}

/// Where data go on the page.
struct Frame {
    x: Scale,
    y: Scale,
}

impl Frame {
    fn across(&self, value: f64) -> Option<f64> {
        self.x.place(value).map(|part| LEFT + part * (WIDTH - RIGHT - LEFT))
    }

    fn up(&self, value: f64) -> Option<f64> {
        self.y.place(value).map(|part| HEIGHT - BOTTOM - part * (HEIGHT - BOTTOM - TOP))
    }

    /// Beyond the frame counts as on its edge.
    fn near(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        let across = LEFT + self.x.clamp(x)? * (WIDTH - RIGHT - LEFT);
        Some((across, HEIGHT - BOTTOM - self.y.clamp(y)? * (HEIGHT - BOTTOM - TOP)))
    }
}

impl Series {
    fn draw(&self, frame: &Frame, number: usize) -> String {
        match self.mark {
            Mark::Line => self.path(frame, &format!("line s{number}")),
            Mark::Dashes => self.path(frame, &format!("line dashes s{number}")),
            Mark::Steps => self.steps(frame, number),
            Mark::Dots => self.dots(frame, number),
        }
    }

    fn path(&self, frame: &Frame, class: &str) -> String {
        let places = self.points.iter().filter_map(|p| frame.near(p.0, p.1));
        let words: Vec<String> = places.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        format!("<polyline class=\"{class}\" points=\"{}\"/>\n", words.join(" "))
    }

    fn steps(&self, frame: &Frame, number: usize) -> String {
        let half = 0.5 * spacing(&self.points);
        let mut words = Vec::new();
        for &(x, y, _) in &self.points {
            for edge in [x - half, x + half] {
                words.extend(frame.near(edge, y).map(|(x, y)| format!("{x:.1},{y:.1}")));
            }
        }
        let base = HEIGHT - BOTTOM;
        let end = |point: Option<&(f64, f64, f64)>, side: f64| {
            point.and_then(|p| frame.near(p.0 + side * half, p.1)).map_or(LEFT, |(x, _)| x)
        };
        let (first, last) = (end(self.points.first(), -1.0), end(self.points.last(), 1.0));
        let outline = words.join(" ");
        let mut out = format!(
            "<polygon class=\"fill s{number}\" points=\"{first:.1},{base} {outline} {last:.1},{base}\"/>\n\
             <polyline class=\"line s{number}\" points=\"{outline}\"/>\n"
        );
        for &(x, y, error) in &self.points {
            out += &error_bar(frame, x, y, error, number);
        }
        out
    }

    fn dots(&self, frame: &Frame, number: usize) -> String {
        let mut out = String::new();
        for &(x, y, error) in &self.points {
            out += &error_bar(frame, x, y, error, number);
            if let (Some(at), Some(up)) = (frame.across(x), frame.up(y)) {
                let said = format!("{x}: {y}");
                out += &format!(
                    "<circle class=\"dot s{number}\" cx=\"{at:.1}\" cy=\"{up:.1}\" r=\"2.6\">\
                     <title>{said}</title></circle>\n"
                );
            }
        }
        out
    }
}

fn error_bar(frame: &Frame, x: f64, y: f64, error: f64, number: usize) -> String {
    let bar = |low: (f64, f64), high: (f64, f64)| {
        line(low.0, low.1, high.0, high.1, &format!("bar s{number}"))
    };
    match (frame.near(x, y - error), frame.near(x, y + error)) {
        (Some(low), Some(high)) if error > 0.0 && error.is_finite() => bar(low, high),
        _ => String::new(),
    }
}

/// The distance of neighbouring points.
fn spacing(points: &[(f64, f64, f64)]) -> f64 {
    points.windows(2).map(|pair| pair[1].0 - pair[0].0).next().unwrap_or(1.0)
}

fn line(x1: f64, y1: f64, x2: f64, y2: f64, class: &str) -> String {
    format!(
        "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>\n"
    )
}

fn text(x: f64, y: f64, class: &str, anchor: &str, words: &str) -> String {
    let words = escape(words);
    format!(
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points() -> Vec<(f64, f64, f64)> {
        vec![(0.0, 1.0, 0.1), (1.0, 3.0, 0.2), (2.0, 2.0, f64::INFINITY)]
    }

    /// Every number in the attributes of a chart.
    fn is_well_formed(svg: &str) {
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert_eq!(svg.matches("<g ").count(), svg.matches("</g>").count());
    }

    #[test]
    fn every_mark_draws_what_it_is_given() {
        let chart = Chart::new("a < b", "x", "y")
            .series("one", Mark::Line, points())
            .series("two", Mark::Dots, points())
            .series("three", Mark::Steps, points())
            .series("four", Mark::Dashes, points())
            .rule(2.0, "exact");
        let svg = chart.svg();
        is_well_formed(&svg);
        assert!(svg.contains("a &lt; b") && !svg.contains("a < b"));
        assert_eq!(svg.matches("<circle").count(), 3);
        assert_eq!(svg.matches("class=\"bar").count(), 4, "two finite errors each, twice");
        assert_eq!(svg.matches("class=\"rule\"").count(), 1);
        for name in ["one", "two", "three", "four"] {
            assert!(svg.contains(name));
        }
    }

    #[test]
    fn larger_values_are_higher() {
        let chart = Chart::new("", "", "").series("", Mark::Dots, points());
        let svg = chart.svg();
        let height = |n: usize| -> f64 {
            let circle = svg.split("cy=\"").nth(n + 1).unwrap();
            circle.split('"').next().unwrap().parse().unwrap()
        };
        assert!(height(0) > height(2) && height(2) > height(1));
        assert!((height(0) - height(2) - (height(2) - height(1))).abs() < 0.15);
    }

    #[test]
    fn odd_numbers_do_not_break_it() {
        for odd in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
            for log in [false, true] {
                for mark in [Mark::Line, Mark::Steps, Mark::Dots] {
                    let mut chart = Chart::new("t", "x", "y").series(
                        "s",
                        mark,
                        vec![(0.0, odd, odd), (1.0, 5.0, 1.0), (odd, 2.0, 0.1)],
                    );
                    chart.log = log;
                    is_well_formed(&chart.svg());
                }
            }
        }
        assert!(Chart::new("", "", "").series("", Mark::Line, Vec::new()).is_empty());
        is_well_formed(&Chart::new("", "", "").svg());
    }
}
