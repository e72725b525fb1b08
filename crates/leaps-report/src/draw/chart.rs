//! Charts: series between two axes, with labels and a legend.

use leaps::Result;

use super::font;
use super::png::png;
use super::scale::Scale;
use super::series::{Frame, Mark, Series, spacing};
use super::style::{Anchor, Ink, Pen, Point, Type};
use super::svg::{self, Svg};

/// An axis: what it measures, whether in powers of ten, and its range if that is fixed.
#[derive(Clone, Debug, Default)]
pub(super) struct Axis {
    pub(super) label: String,
    pub(super) log: bool,
    pub(super) fixed: Option<(f64, f64)>,
}

/// A chart with its axes.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What stands above it.
    pub title: String,
    pub(super) size: (f64, f64),
    pub(super) x: Axis,
    pub(super) y: Axis,
    /// Names of rows in place of numbers along y: the first is at y = 0, the next at -1 and so on.
    pub(super) rows: Vec<String>,
    /// Names of columns in place of numbers along x: the first is at x = 0, the next at 1 and so on.
    pub(super) columns: Vec<String>,
    /// What is drawn.
    pub series: Vec<Series>,
    /// A horizontal line and what it stands for.
    pub(super) rule: Option<(f64, String)>,
    pub(super) joined: bool,
    pub(super) dodged: bool,
}

/// The size of a chart among others on a page.
const SIZE: (f64, f64) = (440.0, 270.0);

pub(super) const INK: Ink = Ink::solid(0x1d2733);
pub(super) const SOFT: Ink = Ink::solid(0x5b6775);
const GRID: Pen = Pen::new(Ink::solid(0xe4e9ef), 1.0);
pub(super) const AXIS: Pen = Pen::new(Ink::solid(0x8d99a6), 1.0);
const RULE: Pen = Pen { ink: INK, width: 1.3, dashed: true };

pub(super) const LETTERS: f64 = 11.0;
pub(super) const TITLE: f64 = 13.0;
const LEGEND_LINE: f64 = 16.0;
/// The length of a line in the legend, and the room around it.
const SAMPLE: f64 = 22.0;
const ROOM: f64 = 14.0;
/// The distance of dodged points.
const ASIDE: f64 = 4.0;

pub(super) fn letters(size: f64, anchor: Anchor, ink: Ink) -> Type {
    Type { size, anchor, ink, bold: false, turned: false }
}

impl Chart {
    /// The size of a chart among others.
    pub const SIZE: (f64, f64) = SIZE;

    /// An empty chart.
    pub fn new(title: &str, x_label: &str, y_label: &str) -> Self {
        let axis = |label: &str| Axis { label: label.to_owned(), ..Axis::default() };
        Chart {
            title: title.to_owned(),
            size: SIZE,
            x: axis(x_label),
            y: axis(y_label),
            rows: Vec::new(),
            columns: Vec::new(),
            series: Vec::new(),
            rule: None,
            joined: true,
            dodged: false,
        }
    }

    /// Add points, in the next colour.
    pub fn series(self, name: &str, mark: Mark, points: Vec<(f64, f64, f64)>) -> Self {
        let colour = self.series.iter().map(|series| series.colour + 1).max().unwrap_or(0);
        self.coloured(name, mark, points, colour)
    }

    /// Add points in colour `colour`.
    pub fn coloured(
        mut self,
        name: &str,
        mark: Mark,
        points: Vec<(f64, f64, f64)>,
        colour: usize,
    ) -> Self {
        if !points.is_empty() {
            self.series.push(Series { name: name.to_owned(), mark, points, colour });
        }
        self
    }

    /// Powers of ten along x.
    pub fn logarithmic_x(mut self) -> Self {
        self.x.log = true;
        self
    }

    /// Powers of ten along y.
    pub fn logarithmic(mut self) -> Self {
        self.y.log = true;
        self
    }

    /// A fixed range of x.
    pub fn x_between(mut self, low: f64, high: f64) -> Self {
        self.x.fixed = Some((low, high));
        self
    }

    /// A fixed range of y.
    pub fn y_between(mut self, low: f64, high: f64) -> Self {
        self.y.fixed = Some((low, high));
        self
    }

    /// A horizontal line.
    pub fn rule(mut self, y: f64, name: &str) -> Self {
        self.rule = Some((y, name.to_owned()));
        self
    }

    /// Rows with names along y.
    pub fn rows(mut self, names: Vec<String>) -> Self {
        self.y.fixed = Some((0.5 - names.len() as f64, 0.5));
        self.rows = names;
        self
    }

    /// Columns with names along x.
    pub fn columns(mut self, names: Vec<String>) -> Self {
        self.x.fixed = Some((-0.5, names.len() as f64 - 0.5));
        self.columns = names;
        self
    }

    /// Set the points of different series a little apart, so that those of the same x do not hide each other.
    pub fn dodged(mut self) -> Self {
        self.dodged = true;
        self
    }

    /// Leave lines between points out, also broken ones.
    pub fn unjoined(mut self) -> Self {
        self.joined = false;
        self
    }

    /// Another size.
    pub fn sized(mut self, width: f64, height: f64) -> Self {
        self.size = (width, height);
        self
    }

    /// Whether there is nothing to see.
    pub fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// What the axes measure.
    pub fn labels(&self) -> [&str; 2] {
        [&self.x.label, &self.y.label]
    }

    fn scales(&self) -> (Scale, Scale) {
        let half = |series: &Series| match series.mark {
            Mark::Steps => 0.5 * spacing(&series.points),
            _ => 0.0,
        };
        let ends = self.series.iter().flat_map(|series| {
            let half = half(series);
            series.points.iter().flat_map(move |p| [p.0 - half, p.0 + half])
        });
        let fixed = |axis: &Axis| axis.fixed.map(|(low, high)| Scale::between(low, high, axis.log));
        let x = fixed(&self.x).unwrap_or_else(|| Scale::around(ends, self.x.log));
        let error = |e: f64| if e.is_finite() && !self.y.log { e } else { 0.0 };
        let points = self.series.iter().flat_map(|series| &series.points);
        let heights = points.flat_map(|p| [p.1 - error(p.2), p.1 + error(p.2)]);
        let rule = self.rule.iter().map(|rule| rule.0);
        let y = fixed(&self.y).unwrap_or_else(|| Scale::around(heights.chain(rule), self.y.log));
        let from_zero = self.y.fixed.is_none() && self.series.iter().any(|s| s.mark == Mark::Steps);
        (x, if from_zero && !self.y.log { y.from(0.0) } else { y })
    }

    /// The chart in words, for those who do not see it.
    fn description(&self) -> String {
        let [x, y] = self.labels();
        let mut words = match y {
            "" => format!("{}: {x}", self.title),
            y => format!("{}: {y} against {x}", self.title),
        };
        let names: Vec<&str> = self
            .series
            .iter()
            .map(|series| series.name.as_str())
            .filter(|n| !n.is_empty())
            .collect();
        if names.len() > 1 {
            words += &format!("; {}", names.join(", "));
        }
        words
    }

    /// The chart as an `<svg>` element.
    pub fn svg(&self) -> String {
        let layout = self.layout();
        let mut svg = Svg::new(self.size.0, layout.height, &self.description(), "");
        self.draw(&layout, &mut svg);
        svg.finish()
    }

    /// The chart as an SVG file.
    pub fn svg_file(&self) -> String {
        svg::file(&self.svg())
    }

    /// The chart as a PNG file, two pixels a unit.
    ///
    /// # Errors
    /// None that a chart could cause.
    pub fn png(&self) -> Result<Vec<u8>> {
        png(&self.svg_file())
    }

    fn layout(&self) -> Layout<'_> {
        let (x, y) = self.scales();
        let y_ticks: Vec<(f64, String)> = match self.rows.is_empty() {
            true => y.ticks(),
            false => (0..).map(|k: i32| f64::from(-k)).zip(self.rows.iter().cloned()).collect(),
        };
        let widest = y_ticks.iter().map(|(_, label)| label_width(label)).fold(0.0, f64::max);
        let (width, height) = self.size;
        let left = widest + if self.y.label.is_empty() { 16.0 } else { 30.0 };
        let mut layout = Layout {
            frame: Frame {
                x,
                y,
                aside: 0.0,
                left,
                right: width - 14.0,
                top: 28.0,
                bottom: height - 42.0,
            },
            y_ticks,
            legend: Vec::new(),
            height,
        };
        let entries = self.entries();
        if entries.is_empty() {
            return layout;
        }
        // Beside the title if there is room, else in lines of its own below it, so that it never hides data.
        let wide = |entry: &Entry<'_>| SAMPLE + font::width(entry.name, LETTERS) + ROOM;
        let all: f64 = entries.iter().map(wide).sum();
        let title = self.title_start(left) + font::bold_width(&self.title, TITLE) + ROOM;
        let beside = title + all - ROOM < layout.frame.right;
        let mut at = if beside { (layout.frame.right - all + ROOM, 16.0) } else { (left, 34.0) };
        for entry in entries {
            let room = wide(&entry);
            if !beside && at.0 + room - ROOM > layout.frame.right && at.0 > left {
                at = (left, at.1 + LEGEND_LINE);
            }
            layout.legend.push((at, entry));
            at.0 += room;
        }
        if !beside {
            let more = at.1 - 34.0 + LEGEND_LINE + 2.0;
            layout.frame.top += more;
            layout.frame.bottom += more;
            layout.height += more;
        }
        layout
    }

    /// Where the title begins: above the frame, or further to the left if it is long.
    fn title_start(&self, left: f64) -> f64 {
        let room = self.size.0 - 10.0 - font::bold_width(&self.title, TITLE);
        left.min(room).max(6.0)
    }

    /// What the legend names.
    fn entries(&self) -> Vec<Entry<'_>> {
        let named = self.series.iter().filter(|series| !series.name.is_empty());
        let rule = self.rule.iter().map(|(_, name)| Entry { name, series: None });
        let mut all: Vec<Entry<'_>> = named
            .map(|series| Entry { name: &series.name, series: Some(series) })
            .chain(rule)
            .collect();
        if self.series.len() < 2 && self.rule.is_none() {
            all.clear();
        }
        all
    }

    fn draw(&self, layout: &Layout<'_>, svg: &mut Svg) {
        let (frame, width) = (&layout.frame, self.size.0);
        svg.polygon(
            &[(0.0, 0.0), (width, 0.0), (width, layout.height), (0.0, layout.height)],
            Ink::solid(0xffffff),
        );
        let title = Type { bold: true, ..letters(TITLE, Anchor::Start, INK) };
        svg.text((self.title_start(frame.left), 17.0), &self.title, title);
        self.axes(layout, svg);
        if let Some((value, _)) = &self.rule
            && let Some(at) = frame.up(*value)
        {
            svg.line(&[(frame.left, at), (frame.right, at)], RULE);
        }
        let dots =
            |series: &&Series| !matches!(series.mark, Mark::Steps | Mark::Bars | Mark::Dashes);
        let aside = self.series.iter().filter(dots).count() as f64 - 1.0;
        let mut number = 0.0;
        for series in &self.series {
            let mut frame = frame.clone();
            if self.dodged && dots(&series) {
                frame.aside = ASIDE * (number - 0.5 * aside);
                number += 1.0;
            }
            match self.joined {
                true => series.draw(&frame, svg),
                false => series.dots(&frame, svg),
            }
        }
        let corner = [(frame.left, frame.top), (frame.left, frame.bottom)];
        svg.line(&corner, AXIS);
        svg.line(&[corner[1], (frame.right, frame.bottom)], AXIS);
        for (at, entry) in &layout.legend {
            entry.draw(*at, self.joined, svg);
        }
    }

    fn axes(&self, layout: &Layout<'_>, svg: &mut Svg) {
        let frame = &layout.frame;
        let minor = if self.columns.is_empty() { frame.x.minor() } else { Vec::new() };
        for at in minor.into_iter().filter_map(|value| frame.across(value)) {
            svg.line(&[(at, frame.bottom - 3.0), (at, frame.bottom)], AXIS);
        }
        for at in frame.y.minor().into_iter().filter_map(|value| frame.up(value)) {
            svg.line(&[(frame.left, at), (frame.left + 3.0, at)], AXIS);
        }
        let named = (0..).map(f64::from).zip(self.columns.iter().cloned()).collect();
        let x_ticks = if self.columns.is_empty() { frame.x.ticks() } else { named };
        for (value, text) in x_ticks {
            if let Some(at) = frame.across(value) {
                if self.columns.is_empty() {
                    svg.line(&[(at, frame.top), (at, frame.bottom)], GRID);
                }
                label(svg, (at, frame.bottom + 15.0), &text, Anchor::Middle);
            }
        }
        for (value, text) in &layout.y_ticks {
            if let Some(at) = frame.up(*value) {
                svg.line(&[(frame.left, at), (frame.right, at)], GRID);
                label(svg, (frame.left - 6.0, at + 3.8), text, Anchor::End);
            }
        }
        let middle = (0.5 * (frame.left + frame.right), 0.5 * (frame.top + frame.bottom));
        let style = letters(LETTERS, Anchor::Middle, INK);
        svg.text((middle.0, layout.height - 9.0), &self.x.label, style);
        svg.text((14.0, middle.1), &self.y.label, Type { turned: true, ..style });
    }
}

/// What is computed before anything is drawn.
struct Layout<'c> {
    frame: Frame,
    y_ticks: Vec<(f64, String)>,
    legend: Vec<(Point, Entry<'c>)>,
    height: f64,
}

/// A line of the legend: a series, or the rule.
struct Entry<'c> {
    name: &'c str,
    series: Option<&'c Series>,
}

impl Entry<'_> {
    fn draw(&self, at: Point, joined: bool, svg: &mut Svg) {
        let middle = at.1 - 3.5;
        let line = [(at.0, middle), (at.0 + SAMPLE - 5.0, middle)];
        match self.series {
            None => svg.line(&line, RULE),
            Some(series) => {
                if joined && series.mark != Mark::Dots {
                    svg.line(&line, series.pen());
                }
                series.dot((at.0 + 0.5 * (SAMPLE - 5.0), middle), svg);
            }
        }
        svg.text((at.0 + SAMPLE, at.1), self.name, letters(LETTERS, Anchor::Start, INK));
    }
}

/// The width of the label of a tick.
fn label_width(text: &str) -> f64 {
    match text.split_once('^') {
        None => font::width(text, LETTERS),
        Some((base, power)) => font::width(base, LETTERS) + font::width(power, 0.75 * LETTERS),
    }
}

/// The label of a tick; what follows `^` is a power.
pub(super) fn label(svg: &mut Svg, at: Point, text: &str, anchor: Anchor) {
    let style = letters(LETTERS, anchor, SOFT);
    let Some((base, power)) = text.split_once('^') else { return svg.text(at, text, style) };
    let start = match anchor {
        Anchor::Start => at.0,
        Anchor::Middle => at.0 - 0.5 * label_width(text),
        Anchor::End => at.0 - label_width(text),
    };
    let style = letters(LETTERS, Anchor::Start, SOFT);
    svg.text((start, at.1), base, style);
    let above = (start + font::width(base, LETTERS) + 0.5, at.1 - 4.0);
    svg.text(above, power, Type { size: 0.75 * LETTERS, ..style });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points() -> Vec<(f64, f64, f64)> {
        vec![(0.0, 1.0, 0.1), (1.0, 3.0, 0.2), (2.0, 2.0, f64::INFINITY)]
    }

    fn is_well_formed(svg: &str) {
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert_eq!(svg.matches("<g>").count(), svg.matches("</g>").count());
    }

    #[test]
    fn every_mark_draws_what_it_is_given() {
        let marks = [Mark::Line, Mark::Dots, Mark::Steps, Mark::Dashes, Mark::Joined, Mark::Open];
        let mut chart = Chart::new("a < b", "x", "y").rule(2.0, "exact");
        for mark in marks {
            chart = chart.series(&format!("{mark:?}"), mark, points());
        }
        let svg = chart.svg();
        is_well_formed(&svg);
        assert!(svg.contains("a &lt; b") && !svg.contains("a < b"));
        assert_eq!(svg.matches("<g><title>").count(), 9, "three points of three series");
        assert_eq!(svg.matches("stroke-opacity").count(), 8 + 12, "finite errors, and their caps");
        for mark in marks {
            assert!(svg.contains(&format!(">{mark:?}<")), "{mark:?} is in the legend");
        }
        assert!(svg.contains(">exact<"));
        let png = chart.png().unwrap();
        assert!(png.starts_with(b"\x89PNG") && png.len() > 5000, "{}", png.len());
    }

    #[test]
    fn larger_values_are_higher() {
        let svg = Chart::new("", "", "").series("", Mark::Dots, points()).svg();
        let height = |n: usize| -> f64 {
            let circle = svg.split("cy=\"").nth(n + 1).unwrap();
            circle.split('"').next().unwrap().parse().unwrap()
        };
        assert!(height(0) > height(2) && height(2) > height(1));
        assert!((height(0) - height(2) - (height(2) - height(1))).abs() < 0.05);
    }

    #[test]
    fn legends_stay_out_of_the_frame() {
        let mut chart = Chart::new("A title of some length", "x", "y");
        let short =
            chart.clone().series("a", Mark::Line, points()).series("b", Mark::Line, points());
        assert_eq!(short.layout().height, SIZE.1, "beside the title");
        for k in 0..6 {
            chart = chart.series(&format!("a long name of series {k}"), Mark::Line, points());
        }
        let layout = chart.layout();
        assert!(layout.height > SIZE.1);
        for ((x, y), entry) in &layout.legend {
            assert!(*y < layout.frame.top && *y > 17.0);
            assert!(x + SAMPLE + font::width(entry.name, LETTERS) <= layout.frame.right + 1e-9);
        }
    }

    #[test]
    fn rows_have_names() {
        let rows = vec!["first".to_owned(), "second".to_owned()];
        let chart = Chart::new("t", "x", "").rows(rows).logarithmic_x().series(
            "ours",
            Mark::Dots,
            vec![(1e-4, 0.0, 0.0), (1e3, -1.0, 0.0)],
        );
        let svg = chart.svg();
        is_well_formed(&svg);
        let place = |word: &str| -> f64 {
            let before = svg.split(&format!(">{word}<")).next().unwrap();
            before.rsplit(" y=\"").next().unwrap().split('"').next().unwrap().parse().unwrap()
        };
        assert!(place("first") < place("second"), "the first row is on top");
    }

    #[test]
    fn columns_have_names_and_bars_of_their_own() {
        let names = vec!["m < 0".to_owned(), "m > 0".to_owned()];
        let points = vec![(0.0, 0.25, 0.01), (1.0, 0.75, 0.01)];
        let chart = Chart::new("t", "mode", "p").columns(names).y_between(0.0, 1.0);
        let svg = chart.series("", Mark::Bars, points).svg();
        is_well_formed(&svg);
        assert!(svg.contains(">m &lt; 0<") && svg.contains(">m &gt; 0<") && !svg.contains(">0.5<"));
        assert_eq!(svg.matches("fill-opacity=\"0.16\"").count(), 2, "{svg}");
    }

    #[test]
    fn odd_numbers_do_not_break_it() {
        for odd in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
            for log in [false, true] {
                for mark in
                    [Mark::Line, Mark::Steps, Mark::Bars, Mark::Dots, Mark::Joined, Mark::Open]
                {
                    let mut chart = Chart::new("t", "x", "y").series(
                        "s",
                        mark,
                        vec![(0.0, odd, odd), (1.0, 5.0, 1.0), (odd, 2.0, 0.1)],
                    );
                    chart.y.log = log;
                    chart.x.log = log;
                    is_well_formed(&chart.svg());
                    assert!(chart.png().unwrap().starts_with(b"\x89PNG"));
                }
            }
        }
        assert!(Chart::new("", "", "").series("", Mark::Line, Vec::new()).is_empty());
        is_well_formed(&Chart::new("", "", "").svg());
    }
}
