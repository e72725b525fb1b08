//! Several pictures side by side, each with a caption.

use super::chart::{INK, LETTERS, TITLE, letters};
use super::style::{Anchor, Ink, Type};
use super::svg::Svg;

/// Pictures in a row before the next row begins.
const ACROSS: usize = 6;
/// Room between pictures, below them for captions, and above all of them for the title.
const GAP: f64 = 12.0;
const CAPTION: f64 = 20.0;
const HEAD: f64 = 30.0;

/// One `<svg>` element of pictures `(caption, element)` of a size.
pub fn strip(title: &str, size: (f64, f64), pictures: &[(String, String)]) -> String {
    let across = pictures.len().clamp(1, ACROSS);
    let rows = pictures.len().div_ceil(across);
    let (wide, high) = (size.0 + GAP, size.1 + CAPTION);
    let (width, height) = (across as f64 * wide + GAP, HEAD + rows as f64 * high + GAP);
    let mut svg = Svg::new(width, height, title, "");
    let corners = [(0.0, 0.0), (width, 0.0), (width, height), (0.0, height)];
    svg.polygon(&corners, Ink::solid(0xffffff));
    let style = letters(TITLE, Anchor::Start, INK);
    svg.text((GAP, 19.0), title, Type { bold: true, ..style });
    for (k, (caption, picture)) in pictures.iter().enumerate() {
        let (x, y) = (GAP + (k % across) as f64 * wide, HEAD + (k / across) as f64 * high);
        svg.nest((x, y), size, picture);
        let below = (x + 0.5 * size.0, y + size.1 + 14.0);
        svg.text(below, caption, letters(LETTERS, Anchor::Middle, INK));
    }
    svg.finish()
}
