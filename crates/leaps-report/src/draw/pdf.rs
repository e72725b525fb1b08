//! Figures as PDF files, drawn from their SVG text: shapes stay shapes, and letters are outlines that look the same everywhere.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use leaps::{Error, Result};
use pdf_writer::types::{LineCapStyle, LineJoinStyle};
use pdf_writer::{Content, Filter, Finish, Name, Pdf, Rect, Ref, TextStr};
use resvg::tiny_skia::{Path as Outline, PathSegment, Transform};
use resvg::usvg::{FillRule, Group, LineCap, LineJoin, Node, Options, Paint, Path, Tree};

use super::font::FONTS;

/// Points of a unit: figures have pixels of 1/96 inch, PDF files points of 1/72.
const POINTS: f32 = 0.75;

const CATALOG: i32 = 1;
const PAGES: i32 = 2;
const PAGE: i32 = 3;
const CONTENT: i32 = 4;
const INFO: i32 = 5;
/// The first of the objects that say how much shines through.
const STATES: i32 = 6;

/// The PDF file of an SVG file with a title: one page of the size of the figure.
///
/// # Errors
/// Text that is not SVG.
pub fn pdf(svg: &str, title: &str) -> Result<Vec<u8>> {
    let fail = |reason: String| Error::invalid("svg", "(a figure)", "an SVG image", reason);
    let options = Options { fontdb: FONTS.clone(), ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(|error| fail(error.to_string()))?;
    let (width, height) = (POINTS * tree.size().width(), POINTS * tree.size().height());
    let mut page = Drawn { content: Content::new(), opacities: Vec::new() };
    // In PDF files y points upwards.
    page.content.transform([POINTS, 0.0, 0.0, -POINTS, 0.0, height]);
    page.group(tree.root(), 1.0);
    let mut deflate = ZlibEncoder::new(Vec::new(), Compression::default());
    let stream = deflate.write_all(&page.content.finish()).and_then(|()| deflate.finish());
    let stream = stream.map_err(|error| fail(error.to_string()))?;

    let mut file = Pdf::new();
    file.catalog(Ref::new(CATALOG)).pages(Ref::new(PAGES));
    file.pages(Ref::new(PAGES)).kids([Ref::new(PAGE)]).count(1);
    let mut sheet = file.page(Ref::new(PAGE));
    sheet.media_box(Rect::new(0.0, 0.0, width, height)).parent(Ref::new(PAGES));
    sheet.contents(Ref::new(CONTENT));
    let mut resources = sheet.resources();
    let mut states = resources.ext_g_states();
    for number in 0..page.opacities.len() {
        states.pair(Name(&name(number)), Ref::new(STATES + number as i32));
    }
    states.finish();
    resources.finish();
    sheet.finish();
    for (number, &[fill, stroke]) in page.opacities.iter().enumerate() {
        let mut state = file.ext_graphics(Ref::new(STATES + number as i32));
        state.non_stroking_alpha(fill).stroking_alpha(stroke);
    }
    file.stream(Ref::new(CONTENT), &stream).filter(Filter::FlateDecode);
    file.document_info(Ref::new(INFO)).title(TextStr(title)).creator(TextStr("leaps"));
    Ok(file.finish())
}

/// The name of a state among the resources of the page.
fn name(number: usize) -> Vec<u8> {
    format!("g{number}").into_bytes()
}

/// What is on the page, and the opacities of fills and strokes that it uses.
struct Drawn {
    content: Content,
    opacities: Vec<[f32; 2]>,
}

impl Drawn {
    fn group(&mut self, group: &Group, opacity: f32) {
        self.content.save_state();
        self.transform(group.transform());
        if let Some(clip) = group.clip_path() {
            // Figures within figures are cut at their edges: one rectangle each.
            for node in clip.root().children() {
                if let Node::Path(path) = node {
                    self.outline(path.data());
                    self.content.clip_nonzero().end_path();
                }
            }
        }
        for node in group.children() {
            let opacity = opacity * group.opacity().get();
            match node {
                Node::Group(inner) => self.group(inner, opacity),
                Node::Path(path) if path.is_visible() => self.path(path, opacity),
                Node::Text(text) => self.group(text.flattened(), opacity),
                Node::Path(_) | Node::Image(_) => {}
            }
        }
        self.content.restore_state();
    }

    fn transform(&mut self, t: Transform) {
        if !t.is_identity() {
            self.content.transform([t.sx, t.ky, t.kx, t.sy, t.tx, t.ty]);
        }
    }

    fn path(&mut self, path: &Path, opacity: f32) {
        let (fill, stroke) = (path.fill(), path.stroke());
        let state = [
            fill.map_or(1.0, |fill| opacity * fill.opacity().get()),
            stroke.map_or(1.0, |stroke| opacity * stroke.opacity().get()),
        ];
        self.content.save_state();
        self.shine_through(state);
        let fill = fill.and_then(|fill| Some((rgb(fill.paint())?, fill.rule())));
        let stroke = stroke.and_then(|stroke| Some((rgb(stroke.paint())?, stroke)));
        if let Some(([r, g, b], _)) = fill {
            self.content.set_fill_rgb(r, g, b);
        }
        if let Some(([r, g, b], stroke)) = stroke {
            self.content.set_stroke_rgb(r, g, b).set_line_width(stroke.width().get());
            self.content.set_line_cap(match stroke.linecap() {
                LineCap::Butt => LineCapStyle::ButtCap,
                LineCap::Round => LineCapStyle::RoundCap,
                LineCap::Square => LineCapStyle::ProjectingSquareCap,
            });
            self.content.set_line_join(match stroke.linejoin() {
                LineJoin::Round => LineJoinStyle::RoundJoin,
                LineJoin::Bevel => LineJoinStyle::BevelJoin,
                LineJoin::Miter | LineJoin::MiterClip => LineJoinStyle::MiterJoin,
            });
            if let Some(dashes) = stroke.dasharray() {
                self.content.set_dash_pattern(dashes.iter().copied(), stroke.dashoffset());
            }
        }
        self.outline(path.data());
        let even_odd = fill.is_some_and(|(_, rule)| rule == FillRule::EvenOdd);
        match (fill.is_some(), stroke.is_some()) {
            (true, true) if even_odd => self.content.fill_even_odd_and_stroke(),
            (true, true) => self.content.fill_nonzero_and_stroke(),
            (true, false) if even_odd => self.content.fill_even_odd(),
            (true, false) => self.content.fill_nonzero(),
            (false, true) => self.content.stroke(),
            (false, false) => self.content.end_path(),
        };
        self.content.restore_state();
    }

    fn shine_through(&mut self, state: [f32; 2]) {
        if state == [1.0, 1.0] {
            return;
        }
        let known = self.opacities.iter().position(|other| *other == state);
        let number = known.unwrap_or_else(|| {
            self.opacities.push(state);
            self.opacities.len() - 1
        });
        self.content.set_parameters(Name(&name(number)));
    }

    /// The segments of a path; curves of second degree become those of third.
    fn outline(&mut self, path: &Outline) {
        let mut at = (0.0, 0.0);
        for segment in path.segments() {
            match segment {
                PathSegment::MoveTo(p) => {
                    self.content.move_to(p.x, p.y);
                    at = (p.x, p.y);
                }
                PathSegment::LineTo(p) => {
                    self.content.line_to(p.x, p.y);
                    at = (p.x, p.y);
                }
                PathSegment::QuadTo(c, p) => {
                    let toward = |from: f32, control: f32| from + 2.0 / 3.0 * (control - from);
                    let first = (toward(at.0, c.x), toward(at.1, c.y));
                    let second = (toward(p.x, c.x), toward(p.y, c.y));
                    self.content.cubic_to(first.0, first.1, second.0, second.1, p.x, p.y);
                    at = (p.x, p.y);
                }
                PathSegment::CubicTo(a, b, p) => {
                    self.content.cubic_to(a.x, a.y, b.x, b.y, p.x, p.y);
                    at = (p.x, p.y);
                }
                PathSegment::Close => {
                    self.content.close_path();
                }
            }
        }
    }
}

/// A plain colour; figures have no others.
fn rgb(paint: &Paint) -> Option<[f32; 3]> {
    match paint {
        Paint::Color(colour) => {
            Some([colour.red, colour.green, colour.blue].map(|part| f32::from(part) / 255.0))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::{Chart, Mark};
    use std::io::Read;

    /// The drawing of a file, as text.
    fn drawing(file: &[u8]) -> String {
        let find = |word: &[u8]| file.windows(word.len()).position(|w| w == word).unwrap();
        let (start, end) = (find(b"\nstream\n") + 8, find(b"\nendstream"));
        let mut text = String::new();
        flate2::read::ZlibDecoder::new(&file[start..end]).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn shapes_words_and_opacities_are_there() {
        let points = vec![(0.0, 1.0, 0.1), (1.0, 3.0, 0.2)];
        let chart = |title: &str| {
            Chart::new(title, "x", "y").series("a", Mark::Steps, points.clone()).svg_file()
        };
        let file = pdf(&chart("Loss"), "Loss").unwrap();
        assert!(file.starts_with(b"%PDF-1.7") && file.ends_with(b"%%EOF"));
        assert_eq!(file, pdf(&chart("Loss"), "Loss").unwrap(), "the same bytes again");
        let text = drawing(&file);
        assert!(text.contains("/g0 gs"), "the fill of the steps is faint: {text}");
        assert!(text.contains("0 0.44705883 0.69803923 RG"), "the colour of the series");
        let longer = drawing(&pdf(&chart("Loss of a network"), "").unwrap());
        assert!(longer.len() > text.len() + 500, "letters are outlines");
        let lines = |word: &str| text.lines().filter(|line| *line == word).count();
        assert!(lines("q") > 20 && lines("q") == lines("Q"), "{text}");
        assert!(pdf("<p>", "").is_err());
    }
}
