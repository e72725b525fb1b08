//! The whole picture of a run: numbers, curves and the lattice.

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Gauge, Widget};

use super::charts;
use super::lattice::{Picture, Plane};
use super::view::View;
use crate::standing::Standing;

/// How it is drawn.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look {
    /// Without colours.
    pub plain: bool,
    /// The loss on a linear scale.
    pub linear: bool,
}

impl Look {
    /// With colours, unless `NO_COLOR` is set.
    pub fn of_terminal() -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Look { plain, linear: false }
    }
}

/// The picture.
pub struct Screen<'a> {
    pub view: &'a View,
    pub look: Look,
    /// Why the files could not be read just now.
    pub trouble: Option<&'a str>,
}

/// Curves need so many lines, and the lattice so many columns.
const LEAST_HEIGHT: u16 = 6;
const LEAST_WIDTH: u16 = 24;

impl Widget for &Screen<'_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let parts = u16::from(!self.view.parts.is_empty());
        let [title, bar, numbers, grown, body, keys] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Length(parts),
            Constraint::Fill(1),
            Constraint::Length(1),
        ])
        .areas(area);
        self.title().render(title, buffer);
        self.bar(bar, buffer);
        self.numbers().render(numbers, buffer);
        self.parts().render(grown, buffer);
        self.body(body, buffer);
        self.keys().render(keys, buffer);
    }
}

impl Screen<'_> {
    fn title(&self) -> Line<'static> {
        let standing = &self.view.standing;
        let colour = match standing.state.as_str() {
            "running" => Color::Green,
            "finished" => Color::Cyan,
            _ => Color::Yellow,
        };
        let title = if self.view.title.is_empty() { "training run" } else { &self.view.title };
        Line::from(vec![
            Span::from(clean(title)).bold(),
            Span::from("  "),
            Span::from(clean(&standing.state)).fg(colour).bold(),
            Span::from(format!("  {}", clean(&standing.run))),
        ])
    }

    /// Steps, speed and time left.
    fn bar(&self, area: Rect, buffer: &mut Buffer) {
        let Standing { step, steps, .. } = self.view.standing;
        let ratio = if steps == 0 { 0.0 } else { (step as f64 / steps as f64).clamp(0.0, 1.0) };
        let words = self.view.standing.pace();
        if self.look.plain {
            return Line::from(format!("{words} ({:.0} %)", 100.0 * ratio)).render(area, buffer);
        }
        let style = Style::new().fg(Color::Blue).bg(Color::Black);
        Gauge::default().ratio(ratio).label(words).gauge_style(style).render(area, buffer);
    }

    fn numbers(&self) -> Line<'static> {
        Line::from(self.view.standing.numbers(self.view.exact))
    }

    /// The lattices that are trained on one after another.
    fn parts(&self) -> Line<'static> {
        let part = |part: &super::view::Part| {
            let words = match &part.standing {
                None => "to come".to_owned(),
                Some(standing) => {
                    let ess = standing.ess.map(|ess| format!(", ESS {ess:.3}"));
                    format!("{}{}", clean(&standing.state), ess.unwrap_or_default())
                }
            };
            format!("{} {words}", part.size)
        };
        let parts: Vec<String> = self.view.parts.iter().map(part).collect();
        Line::from(format!("lattices: {}", parts.join(" > ")))
    }

    /// Curves to the left, the lattice to the right.
    fn body(&self, area: Rect, buffer: &mut Buffer) {
        if area.height < LEAST_HEIGHT {
            return;
        }
        let plane = self.view.state.as_ref().and_then(|state| Plane::of(&state.snapshot));
        let right = match &plane {
            _ if area.width < 2 * LEAST_WIDTH => 0,
            // As many columns as a lattice drawn as high as the screen needs, up to two fifths.
            Some(plane) => {
                let wide = (2 * usize::from(area.height - 2)).max(plane.columns()) + 2;
                u16::try_from(wide)
                    .unwrap_or(u16::MAX)
                    .clamp(LEAST_WIDTH, (2 * area.width / 5).max(LEAST_WIDTH))
            }
            None => LEAST_WIDTH,
        };
        let [left, right] =
            Layout::horizontal([Constraint::Fill(1), Constraint::Length(right)]).areas(area);
        self.curves(left, buffer);
        if right.width > 0 {
            self.lattice(plane.as_ref(), right, buffer);
        }
    }

    fn curves(&self, area: Rect, buffer: &mut Buffer) {
        let count = (area.height / LEAST_HEIGHT).clamp(1, 3);
        let rows = Layout::vertical(vec![Constraint::Fill(1); usize::from(count)]).split(area);
        let Standing { metrics, steps, .. } = &self.view.standing;
        for (number, &row) in rows.iter().enumerate() {
            match number {
                0 => charts::loss(metrics, *steps, self.look.linear, row, buffer),
                1 => charts::ess(metrics, *steps, row, buffer),
                _ => charts::log_z(metrics, *steps, self.view.exact, row, buffer),
            }
        }
    }

    fn lattice(&self, plane: Option<&Plane<'_>>, area: Rect, buffer: &mut Buffer) {
        let inner = Block::bordered().inner(area);
        let (Some(plane), Some(state)) = (plane, &self.view.state) else {
            Block::bordered().title(" state ").render(area, buffer);
            return Line::from("none stored yet").render(inner, buffer);
        };
        let mut words = vec![clean(&state.origin)];
        words.extend(plane.cropped(inner, self.look.plain));
        if state.snapshot.shape.len() > 2 {
            words.push("first plane".to_owned());
        }
        Block::bordered().title(format!(" {} ", words.join(", "))).render(area, buffer);
        Picture(plane, self.look.plain).render(inner, buffer);
    }

    fn keys(&self) -> Line<'static> {
        let trouble = self.trouble.map(str::to_owned);
        let warning = trouble.or_else(|| self.view.warnings.first().cloned());
        match warning {
            Some(warning) => Line::from(format!("warning: {}", clean(&warning))).fg(Color::Yellow),
            None if self.look.plain => Line::default(),
            None => Line::from("q leaves, l: loss linear or logarithmic").fg(Color::DarkGray),
        }
    }
}

/// Without what a terminal would take for a command.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::watch::view::{Part, State};
    use leaps::observe::Estimate;
    use leaps::store::{Metrics, Snapshot};
    use leaps::train::StepMetrics;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn view(state: &str) -> View {
        let line = |step: u64| Metrics {
            step_metrics: StepMetrics { step, loss: 10.0 / step as f64, norm: 1.0, rate: 1e-3 },
            seconds: step as f64,
            ess: step.is_multiple_of(10).then_some(0.5),
            log_z: step.is_multiple_of(10).then_some(Estimate {
                mean: 5.0,
                error: 0.1,
                exact: None,
            }),
        };
        let metrics: Vec<Metrics> = (1..=40).map(line).collect();
        let standing = Standing {
            run: "runs/\u{1b}a".to_owned(),
            step: 40,
            steps: 100,
            loss: Some(0.25),
            ess: Some(0.5),
            log_z: Some(Estimate { mean: 5.0, error: 0.1, exact: None }),
            rate: Some(1.0),
            left: Some(60.0),
            state: state.to_owned(),
            family: None,
            instances: None,
            metrics,
        };
        let snapshot = Snapshot { step: 40, shape: vec![2, 2], q: 2, x: "0110".to_owned() };
        let origin = "validation at step 40".to_owned();
        let parts = vec![
            Part { size: "14x14".to_owned(), standing: Some(standing.clone()) },
            Part { size: "21x21".to_owned(), standing: None },
        ];
        let state = Some(State { origin, snapshot });
        let (title, warnings) = ("Ising 2x2".to_owned(), Vec::new());
        View { title, parts, standing, exact: Some(5.2), state, warnings }
    }

    fn drawn(view: &View, (width, height): (u16, u16)) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let screen = Screen { view, look: Look::default(), trouble: None };
        terminal.draw(|frame| frame.render_widget(&screen, frame.area())).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn everything_is_there() {
        let picture = drawn(&view("running"), (100, 30));
        for words in [
            "Ising 2x2",
            "running",
            "step 40/100, 1.000 steps/s, 60 s left",
            "loss 0.250, ESS 0.5000, log Z 5.00(10), exact 5.2000 (-2.0 σ), 40 s of training",
            "lattices: 14x14 running, ESS 0.500 > 21x21 to come",
            "loss (logarithmic)",
            "log Z, exact 5.2000",
            "validation at step 40",
            "██",
            "q leaves",
        ] {
            assert!(picture.contains(words), "no {words:?} in\n{picture}");
        }
        assert!(!picture.contains('\u{1b}'), "a control character");
        // Nothing is left to wait for.
        assert!(!drawn(&view("killed"), (100, 30)).contains("left"), "time left");
    }

    #[test]
    fn any_size_will_do() {
        for width in [1, 2, 5, 20, 47, 48, 49, 80, 300] {
            for height in [1, 2, 4, 7, 10, 11, 17, 24, 90] {
                drawn(&view("running"), (width, height));
            }
        }
        assert!(drawn(&view("running"), (60, 9)).contains("step 40/100"));
    }

    #[test]
    fn runs_without_numbers_can_be_drawn() {
        let mut view = view("running");
        view.standing.metrics.clear();
        (view.standing.step, view.standing.steps, view.state) = (0, 0, None);
        let picture = drawn(&view, (100, 30));
        assert!(
            picture.contains("nothing yet") && picture.contains("none stored yet"),
            "{picture}"
        );
        view.warnings = vec!["metrics.jsonl: line 3".to_owned()];
        assert!(drawn(&view, (100, 30)).contains("warning: metrics.jsonl: line 3"));
    }
}
