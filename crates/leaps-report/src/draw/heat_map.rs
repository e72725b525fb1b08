//! Maps: a colour for every pair of two parameters, with a scale of colours beside it.

use super::chart::{AXIS, Chart, INK, LETTERS, SOFT, TITLE, label, letters};
use super::font;
use super::scale::Scale;
use super::style::{Anchor, Ink, Type};
use super::svg::Svg;

/// A grid of cells, each coloured by its value.
#[derive(Clone, Debug)]
pub struct HeatMap {
    title: String,
    x_label: String,
    y_label: String,
    /// `(x, y, value)`.
    cells: Vec<(f64, f64, f64)>,
}

/// From low to high: dark to light, so that a grey print shows the same.
const COLOURS: [[f64; 3]; 5] = [
    [45.0, 17.0, 96.0],
    [56.0, 88.0, 140.0],
    [32.0, 145.0, 140.0],
    [122.0, 200.0, 88.0],
    [250.0, 230.0, 60.0],
];

/// The width of the scale of colours, and the steps that it is drawn in.
const SCALE: f64 = 12.0;
const STEPS: usize = 48;
/// By how much cells lie over their neighbours.
const OVERLAP: f64 = 0.4;

impl HeatMap {
    /// A map of `(x, y, value)`.
    pub fn new(title: &str, x_label: &str, y_label: &str, cells: Vec<(f64, f64, f64)>) -> Self {
        let [title, x_label, y_label] = [title, x_label, y_label].map(str::to_owned);
        HeatMap { title, x_label, y_label, cells }
    }

    /// The map as an `<svg>` element of the size of a chart.
    pub fn svg(&self) -> String {
        let (width, height) = Chart::SIZE;
        let mut svg = Svg::new(width, height, &self.title, "");
        let whole = [(0.0, 0.0), (width, 0.0), (width, height), (0.0, height)];
        svg.polygon(&whole, Ink::solid(0xffffff));
        let xs = edges(self.cells.iter().map(|cell| cell.0));
        let ys = edges(self.cells.iter().map(|cell| cell.1));
        let values = Scale::around_exactly(self.cells.iter().map(|cell| cell.2));
        let (x, y) = (between(&xs), between(&ys));
        let wide = |ticks: &[(f64, String)]| {
            ticks.iter().map(|(_, text)| font::width(text, LETTERS)).fold(0.0, f64::max)
        };
        let (x_ticks, y_ticks, marks) = (x.ticks(), y.ticks(), values.ticks());
        let (left, right) = (30.0 + wide(&y_ticks), width - 34.0 - SCALE - wide(&marks));
        let (top, bottom) = (28.0, height - 42.0);
        let across = |value: f64| x.clamp(value).map(|part| left + part * (right - left));
        let up = |value: f64| y.clamp(value).map(|part| bottom - part * (bottom - top));
        for &(cx, cy, value) in &self.cells {
            let (Some(place), Some((x0, x1)), Some((y0, y1))) =
                (values.clamp(value), around(&xs, cx), around(&ys, cy))
            else {
                continue;
            };
            let (Some(x0), Some(x1), Some(y0), Some(y1)) = (across(x0), across(x1), up(y0), up(y1))
            else {
                continue;
            };
            // A little over the neighbours, or the paper would shine through between them.
            let (x1, y1) = ((x1 + OVERLAP).min(right), (y1 - OVERLAP).max(top));
            let corners = [(x0, y0), (x1, y0), (x1, y1), (x0, y1)];
            svg.open(&format!("{cx}, {cy}: {value}"));
            svg.polygon(&corners, colour(place));
            svg.close();
        }
        for (value, text) in &x_ticks {
            if let Some(at) = across(*value) {
                label(&mut svg, (at, bottom + 15.0), text, Anchor::Middle);
            }
        }
        for (value, text) in &y_ticks {
            if let Some(at) = up(*value) {
                label(&mut svg, (left - 6.0, at + 3.8), text, Anchor::End);
            }
        }
        let bar = right + 14.0;
        let level = |part: f64| bottom - part * (bottom - top);
        for step in 0..STEPS {
            let (low, high) = (step as f64 / STEPS as f64, (step + 1) as f64 / STEPS as f64);
            let (y0, y1) = (level(low), (level(high) - OVERLAP).max(top));
            let corners = [(bar, y0), (bar + SCALE, y0), (bar + SCALE, y1), (bar, y1)];
            svg.polygon(&corners, colour(0.5 * (low + high)));
        }
        for (value, text) in &marks {
            if let Some(part) = values.place(*value) {
                let at = (bar + SCALE + 5.0, level(part) + 3.8);
                svg.text(at, text, letters(LETTERS, Anchor::Start, SOFT));
            }
        }
        svg.line(&[(left, top), (left, bottom), (right, bottom)], AXIS);
        let style = letters(LETTERS, Anchor::Middle, INK);
        let middle = (0.5 * (left + right), 0.5 * (top + bottom));
        svg.text((middle.0, height - 9.0), &self.x_label, style);
        svg.text((14.0, middle.1), &self.y_label, Type { turned: true, ..style });
        let title = Type { bold: true, ..letters(TITLE, Anchor::Start, INK) };
        svg.text((left, 17.0), &self.title, title);
        svg.finish()
    }
}

/// The colour of a place between 0 and 1.
fn colour(place: f64) -> Ink {
    let at = place.clamp(0.0, 1.0) * (COLOURS.len() - 1) as f64;
    let first = (at as usize).min(COLOURS.len() - 2);
    let part = at - first as f64;
    let mix = |c: usize| {
        let (a, b) = (COLOURS[first][c], COLOURS[first + 1][c]);
        (a + part * (b - a)).round() as u32
    };
    Ink::solid(mix(0) << 16 | mix(1) << 8 | mix(2))
}

/// The middles of neighbours among some values, and as much beyond the first and the last.
fn edges(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut all: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    let Some((&first, &last)) = all.first().zip(all.last()) else { return vec![0.0, 1.0] };
    let gap = |at: usize| all.get(at + 1).zip(all.get(at)).map_or(1.0, |(b, a)| b - a);
    let mut edges = vec![first - 0.5 * gap(0)];
    edges.extend(all.windows(2).map(|pair| 0.5 * (pair[0] + pair[1])));
    edges.push(last + 0.5 * gap(all.len().saturating_sub(2)));
    edges
}

/// The edges next to a value.
fn around(edges: &[f64], value: f64) -> Option<(f64, f64)> {
    edges
        .windows(2)
        .find(|pair| pair[0] <= value && value <= pair[1])
        .map(|pair| (pair[0], pair[1]))
}

fn between(edges: &[f64]) -> Scale {
    Scale::between(edges[0], edges[edges.len() - 1], false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_has_a_colour_by_its_value() {
        let cells = [(0.0, 0.0, 1.0), (1.0, 0.0, 2.0), (0.0, 2.0, 3.0), (1.0, 2.0, f64::NAN)];
        let svg = HeatMap::new("F < 0", "beta", "h", cells.to_vec()).svg();
        assert!(svg.contains("F &lt; 0") && !svg.contains("NaN"), "{svg}");
        assert_eq!(svg.matches("<g><title>").count(), 3);
        assert!(svg.contains("#2d1160") && svg.contains("#fae63c"), "lowest and highest");
        let one = HeatMap::new("", "", "", vec![(0.3, 0.1, 5.0)]).svg();
        assert!(!one.contains("NaN") && !one.contains("inf"), "{one}");
        assert!(!HeatMap::new("", "", "", Vec::new()).svg().contains("NaN"));
    }
}
