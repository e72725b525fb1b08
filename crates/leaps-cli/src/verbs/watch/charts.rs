//! The curves of a run on a terminal: loss, effective sample size, log Z with its errors against the exact value.

use leaps::store::Metrics;
use leaps_report::text::fixed;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::symbols::Marker;
use ratatui::text::Line;
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType, Widget};

/// A point of a curve.
type Point = (f64, f64);

/// A curve with its frame and its axes.
struct Figure {
    title: String,
    /// Steps of the run.
    steps: f64,
    /// Ends of the vertical axis, and what they are called.
    ends: [f64; 2],
    names: [String; 2],
    curves: Vec<Curve>,
}

struct Curve {
    points: Vec<Point>,
    joined: bool,
    colour: Color,
}

impl Figure {
    fn render(&self, area: Rect, buffer: &mut Buffer) {
        let block = Block::bordered().title(Line::from(format!(" {} ", self.title)));
        if self.curves.iter().all(|curve| curve.points.is_empty()) {
            let inner = block.inner(area);
            block.render(area, buffer);
            Line::from("nothing yet").render(inner, buffer);
            return;
        }
        let sets = self.curves.iter().map(|curve| {
            let kind = if curve.joined { GraphType::Line } else { GraphType::Scatter };
            let marker = if curve.joined { Marker::Braille } else { Marker::Dot };
            let style = Style::new().fg(curve.colour);
            Dataset::default().marker(marker).graph_type(kind).style(style).data(&curve.points)
        });
        let steps = ["0".to_owned(), format!("{}", self.steps)].map(Line::from);
        let names = self.names.clone().map(Line::from);
        let chart = Chart::new(sets.collect())
            .block(block)
            .x_axis(Axis::default().bounds([0.0, self.steps]).labels(steps))
            .y_axis(Axis::default().bounds(self.ends).labels(names));
        chart.render(area, buffer);
    }
}

fn step(line: &Metrics) -> f64 {
    line.step_metrics.step as f64
}

/// Room around values that are all the same, or a little of it around others.
fn around(low: f64, high: f64) -> [f64; 2] {
    let room = if high > low { 0.05 * (high - low) } else { 0.5 * low.abs().max(1e-3) };
    [low - room, high + room]
}

fn bounds(values: impl Iterator<Item = f64> + Clone) -> [f64; 2] {
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(f64::NEG_INFINITY, f64::max);
    if low <= high { around(low, high) } else { [0.0, 1.0] }
}

/// The loss, averaged over so many steps that the points can be told apart.
pub fn loss(metrics: &[Metrics], steps: u64, linear: bool, area: Rect, buffer: &mut Buffer) {
    let every = metrics.len().div_ceil(2 * usize::from(area.width.max(1))).max(1);
    let points: Vec<Point> = metrics
        .chunks(every)
        .map(|lines| {
            let mean =
                lines.iter().map(|line| line.step_metrics.loss).sum::<f64>() / lines.len() as f64;
            (step(&lines[lines.len() / 2]), mean)
        })
        .filter(|(_, loss)| loss.is_finite() && (linear || *loss > 0.0))
        .map(|(step, loss)| (step, if linear { loss } else { loss.log10() }))
        .collect();
    let ends = bounds(points.iter().map(|(_, loss)| *loss));
    let names = ends.map(|end| match linear {
        true => format!("{end:.3}"),
        false => format!("{:.1e}", 10_f64.powf(end)),
    });
    let title = format!("loss{}", if linear { "" } else { " (logarithmic)" });
    let curves = vec![Curve { points, joined: true, colour: Color::Cyan }];
    Figure { title, steps: steps as f64, ends, names, curves }.render(area, buffer);
}

/// The effective sample size at validations.
pub fn ess(metrics: &[Metrics], steps: u64, area: Rect, buffer: &mut Buffer) {
    let points = metrics.iter().filter_map(|line| Some((step(line), line.ess?))).collect();
    let curves = vec![Curve { points, joined: true, colour: Color::Green }];
    let names = ["0".to_owned(), "1".to_owned()];
    let title = "effective sample size".to_owned();
    Figure { title, steps: steps as f64, ends: [0.0, 1.0], names, curves }.render(area, buffer);
}

/// log Z at validations with its errors, and its exact value. The first half, far off as a rule, does not set the scale.
pub fn log_z(metrics: &[Metrics], steps: u64, exact: Option<f64>, area: Rect, buffer: &mut Buffer) {
    let found: Vec<(f64, f64, f64)> = metrics
        .iter()
        .filter_map(|line| line.log_z.map(|log_z| (step(line), log_z.mean, log_z.error)))
        .filter(|(_, mean, error)| mean.is_finite() && error.is_finite())
        .collect();
    let late = &found[found.len() / 2..];
    let spread = late.iter().flat_map(|(_, mean, error)| [mean - error, mean + error]);
    let ends = bounds(spread.chain(exact.filter(|_| !found.is_empty())));
    let mut curves = Vec::new();
    if let Some(exact) = exact.filter(|_| !found.is_empty()) {
        let points = vec![(0.0, exact), (steps as f64, exact)];
        curves.push(Curve { points, joined: true, colour: Color::DarkGray });
    }
    for &(step, mean, error) in &found {
        let inside = |value: f64| value.clamp(ends[0], ends[1]);
        let points = vec![(step, inside(mean - error)), (step, inside(mean + error))];
        curves.push(Curve { points, joined: true, colour: Color::Yellow });
    }
    let points = found.iter().map(|&(step, mean, _)| (step, mean)).collect();
    curves.push(Curve { points, joined: false, colour: Color::Yellow });
    let names = ends.map(|end| fixed(end, if ends[1] - ends[0] < 1.0 { 3 } else { 1 }));
    let title = match exact {
        Some(exact) => format!("log Z, exact {}", fixed(exact, 4)),
        None => "log Z".to_owned(),
    };
    Figure { title, steps: steps as f64, ends, names, curves }.render(area, buffer);
}
