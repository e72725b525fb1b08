//! Series of a chart: lines, steps and points with error bars.

use super::scale::Scale;
use super::style::{Ink, Pen, Point};
use super::svg::Svg;

/// How the points of a series are shown.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Mark {
    /// Joined by a line.
    Line,
    /// Joined by a broken line: what is compared with.
    Dashes,
    /// One bar per point, whose width is the distance of the points; a filled outline.
    Steps,
    /// One bar per point with room between them: what has names, not numbers, along x.
    Bars,
    /// Dots with error bars.
    Dots,
    /// Dots with error bars, joined by a line.
    Joined,
    /// Open dots joined by a broken line: numbers of others.
    Open,
}

/// Points `(x, y, error of y)` with a name.
#[derive(Clone, Debug)]
pub struct Series {
    /// What the legend calls it.
    pub name: String,
    pub(super) mark: Mark,
    /// The points.
    pub points: Vec<(f64, f64, f64)>,
    pub(super) colour: usize,
}

/// Colours that people with any colour vision tell apart (Okabe and Ito).
const COLOURS: [u32; 7] = [0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7, 0xe69f00, 0x56b4e9, 0x444444];

/// The number of the grey among them: what others are compared with.
pub const GREY: usize = 6;

const DOT: f64 = 3.0;

/// Where data go on the page.
#[derive(Clone)]
pub(super) struct Frame {
    pub(super) x: Scale,
    pub(super) y: Scale,
    /// Added to every place along x.
    pub(super) aside: f64,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Frame {
    pub(super) fn across(&self, value: f64) -> Option<f64> {
        self.x.place(value).map(|part| self.left + self.aside + part * (self.right - self.left))
    }

    pub(super) fn up(&self, value: f64) -> Option<f64> {
        self.y.place(value).map(|part| self.bottom - part * (self.bottom - self.top))
    }

    /// Beyond the frame counts as on its edge.
    fn near(&self, x: f64, y: f64) -> Option<Point> {
        let across = self.left + self.aside + self.x.clamp(x)? * (self.right - self.left);
        Some((across, self.bottom - self.y.clamp(y)? * (self.bottom - self.top)))
    }
}

impl Series {
    fn ink(&self) -> Ink {
        Ink::solid(COLOURS[self.colour % COLOURS.len()])
    }

    pub(super) fn pen(&self) -> Pen {
        let dashed = matches!(self.mark, Mark::Dashes | Mark::Open);
        let width = if self.mark == Mark::Open { 1.1 } else { 1.6 };
        Pen { ink: self.ink(), width, dashed }
    }

    pub(super) fn draw(&self, frame: &Frame, svg: &mut Svg) {
        match self.mark {
            Mark::Line | Mark::Dashes => self.path(frame, svg),
            Mark::Steps => self.steps(frame, svg),
            Mark::Bars => self.bars(frame, svg),
            Mark::Dots => self.dots(frame, svg),
            Mark::Joined | Mark::Open => {
                self.path(frame, svg);
                self.dots(frame, svg);
            }
        }
    }

    fn path(&self, frame: &Frame, svg: &mut Svg) {
        let places: Vec<Point> = self.points.iter().filter_map(|p| frame.near(p.0, p.1)).collect();
        if places.len() > 1 {
            svg.line(&places, self.pen());
        }
    }

    fn steps(&self, frame: &Frame, svg: &mut Svg) {
        let half = 0.5 * spacing(&self.points);
        let mut outline = Vec::new();
        for &(x, y, _) in &self.points {
            outline.extend([x - half, x + half].iter().filter_map(|&edge| frame.near(edge, y)));
        }
        let (Some(first), Some(last)) = (outline.first(), outline.last()) else { return };
        let mut area = vec![(first.0, frame.bottom)];
        area.extend(&outline);
        area.push((last.0, frame.bottom));
        svg.polygon(&area, self.ink().faint(0.16));
        svg.line(&outline, self.pen());
        for &(x, y, error) in &self.points {
            self.error_bar(frame, (x, y), error, 0.0, svg);
        }
    }

    fn bars(&self, frame: &Frame, svg: &mut Svg) {
        let half = 0.3 * spacing(&self.points);
        for &(x, y, error) in &self.points {
            let edges = [x - half, x + half].map(|edge| frame.near(edge, y));
            let ([Some(left), Some(right)], true) = (edges, x.is_finite() && y.is_finite()) else {
                continue;
            };
            let outline = [(left.0, frame.bottom), left, right, (right.0, frame.bottom)];
            svg.open(&format!("{x}: {y}"));
            svg.polygon(&outline, self.ink().faint(0.16));
            svg.line(&outline, self.pen());
            svg.close();
            self.error_bar(frame, (x, y), error, 2.0, svg);
        }
    }

    pub(super) fn dots(&self, frame: &Frame, svg: &mut Svg) {
        for &(x, y, error) in &self.points {
            self.error_bar(frame, (x, y), error, 2.0, svg);
            // Above or below the frame counts as on its edge.
            let place = frame.across(x).and(frame.near(x, y));
            if let Some(at) = place.filter(|_| y.is_finite()) {
                svg.open(&format!("{x}: {y}"));
                self.dot(at, svg);
                svg.close();
            }
        }
    }

    /// The mark of a point: the colour and the shape say which series it is of.
    pub(super) fn dot(&self, at: Point, svg: &mut Svg) {
        if matches!(self.mark, Mark::Line | Mark::Dashes | Mark::Steps | Mark::Bars) {
            return;
        }
        self.shape(at, 1.0, self.ink(), svg);
        if self.mark == Mark::Open {
            self.shape(at, 0.6, Ink::solid(0xffffff), svg);
        }
    }

    fn shape(&self, (x, y): Point, size: f64, ink: Ink, svg: &mut Svg) {
        let r = DOT * size;
        let corners: &[Point] = match self.colour % 4 {
            0 => return svg.circle((x, y), r, ink),
            1 => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
            2 => &[(0.0, -1.25), (1.15, 0.8), (-1.15, 0.8)],
            _ => &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
        };
        let placed: Vec<Point> = corners.iter().map(|c| (x + r * c.0, y + r * c.1)).collect();
        svg.polygon(&placed, ink);
    }

    fn error_bar(&self, frame: &Frame, (x, y): Point, error: f64, cap: f64, svg: &mut Svg) {
        if !(error > 0.0 && error.is_finite()) || frame.across(x).is_none() {
            return;
        }
        // What is not positive has no place on a logarithmic axis: such bars end at its foot.
        let low = if frame.y.is_log() { (y - error).max(f64::MIN_POSITIVE) } else { y - error };
        let (Some(low), Some(high)) = (frame.near(x, low), frame.near(x, y + error)) else {
            return;
        };
        let pen = Pen::new(self.ink().faint(0.75), 1.0);
        svg.line(&[low, high], pen);
        if cap > 0.0 && low.1 - high.1 > 2.0 * DOT {
            for end in [low, high] {
                svg.line(&[(end.0 - cap, end.1), (end.0 + cap, end.1)], pen);
            }
        }
    }
}

/// The distance of neighbouring points.
pub(super) fn spacing(points: &[(f64, f64, f64)]) -> f64 {
    points.windows(2).map(|pair| pair[1].0 - pair[0].0).next().unwrap_or(1.0)
}
