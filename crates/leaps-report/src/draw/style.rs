//! Places, colours, pens and letters of figures.

/// A place, x to the right and y downwards.
pub type Point = (f64, f64);

/// A colour that may let what is below shine through.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ink {
    /// Red, green and blue, eight bits each.
    pub rgb: u32,
    /// From 0 to 1.
    pub opacity: f64,
}

impl Ink {
    /// A colour that hides what is below.
    pub const fn solid(rgb: u32) -> Self {
        Ink { rgb, opacity: 1.0 }
    }

    /// The same colour with another opacity.
    pub const fn faint(self, opacity: f64) -> Self {
        Ink { rgb: self.rgb, opacity }
    }
}

/// How lines are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pen {
    pub ink: Ink,
    pub width: f64,
    pub dashed: bool,
}

impl Pen {
    /// A pen for unbroken lines.
    pub const fn new(ink: Ink, width: f64) -> Self {
        Pen { ink, width, dashed: false }
    }
}

/// The lengths of dashes and of the gaps between them.
pub const DASHES: [f64; 2] = [5.0, 3.0];

/// Which part of a text is at its place.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// How words are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Type {
    pub size: f64,
    pub anchor: Anchor,
    pub ink: Ink,
    pub bold: bool,
    /// From below to above.
    pub turned: bool,
}
