//! Draw lines, steps and points with error bars into a frame.

use super::scale::Scale;
use super::surface::{Ink, Pen, Point, Surface};

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
    /// Dots with error bars, joined by a line.
    Joined,
    /// Open dots joined by a broken line: numbers of others.
    Open,
}

/// Points `(x, y, error of y)` with a name.
#[derive(Clone, Debug)]
pub struct Series {
    pub name: String,
    pub(super) mark: Mark,
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

    pub(super) fn draw(&self, frame: &Frame, surface: &mut dyn Surface) {
        match self.mark {
            Mark::Line | Mark::Dashes => self.path(frame, surface),
            Mark::Steps => self.steps(frame, surface),
            Mark::Dots => self.dots(frame, surface),
            Mark::Joined | Mark::Open => {
                self.path(frame, surface);
                self.dots(frame, surface);
            }
        }
    }

    fn path(&self, frame: &Frame, surface: &mut dyn Surface) {
        let places: Vec<Point> = self.points.iter().filter_map(|p| frame.near(p.0, p.1)).collect();
        if places.len() > 1 {
            surface.line(&places, self.pen());
        }
    }

    fn steps(&self, frame: &Frame, surface: &mut dyn Surface) {
        let half = 0.5 * spacing(&self.points);
        let mut outline = Vec::new();
        for &(x, y, _) in &self.points {
            outline.extend([x - half, x + half].iter().filter_map(|&edge| frame.near(edge, y)));
        }
        let (Some(first), Some(last)) = (outline.first(), outline.last()) else { return };
        let mut area = vec![(first.0, frame.bottom)];
        area.extend(&outline);
        area.push((last.0, frame.bottom));
        surface.polygon(&area, self.ink().faint(0.16));
        surface.line(&outline, self.pen());
        for &(x, y, error) in &self.points {
            self.error_bar(frame, (x, y), error, 0.0, surface);
        }
    }

    pub(super) fn dots(&self, frame: &Frame, surface: &mut dyn Surface) {
        for &(x, y, error) in &self.points {
            self.error_bar(frame, (x, y), error, 2.0, surface);
            // Above or below the frame counts as on its edge.
            let place = frame.across(x).and(frame.near(x, y));
            if let Some(at) = place.filter(|_| y.is_finite()) {
                surface.open(&format!("{x}: {y}"));
                self.dot(at, surface);
                surface.close();
            }
        }
    }

    /// The mark of a point: the colour and the shape say which series it is of.
    pub(super) fn dot(&self, at: Point, surface: &mut dyn Surface) {
        if matches!(self.mark, Mark::Line | Mark::Dashes | Mark::Steps) {
            return;
        }
        self.shape(at, 1.0, self.ink(), surface);
        if self.mark == Mark::Open {
            self.shape(at, 0.6, Ink::solid(0xffffff), surface);
        }
    }

    fn shape(&self, (x, y): Point, size: f64, ink: Ink, surface: &mut dyn Surface) {
        let r = DOT * size;
        let corners: &[Point] = match self.colour % 4 {
            0 => return surface.circle((x, y), r, ink),
            1 => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
            2 => &[(0.0, -1.25), (1.15, 0.8), (-1.15, 0.8)],
            _ => &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
        };
        let placed: Vec<Point> = corners.iter().map(|c| (x + r * c.0, y + r * c.1)).collect();
        surface.polygon(&placed, ink);
    }

    fn error_bar(
        &self,
        frame: &Frame,
        (x, y): Point,
        error: f64,
        cap: f64,
        surface: &mut dyn Surface,
    ) {
        if !(error > 0.0 && error.is_finite()) || frame.across(x).is_none() {
            return;
        }
        // What is not positive has no place on a logarithmic axis: such bars end at its foot.
        let low = if frame.y.is_log() { (y - error).max(f64::MIN_POSITIVE) } else { y - error };
        let (Some(low), Some(high)) = (frame.near(x, low), frame.near(x, y + error)) else {
            return;
        };
        let pen = Pen::new(self.ink().faint(0.75), 1.0);
        surface.line(&[low, high], pen);
        if cap > 0.0 && low.1 - high.1 > 2.0 * DOT {
            for end in [low, high] {
                surface.line(&[(end.0 - cap, end.1), (end.0 + cap, end.1)], pen);
            }
        }
    }
}

/// The distance of neighbouring points.
pub(super) fn spacing(points: &[(f64, f64, f64)]) -> f64 {
    points.windows(2).map(|pair| pair[1].0 - pair[0].0).next().unwrap_or(1.0)
}
