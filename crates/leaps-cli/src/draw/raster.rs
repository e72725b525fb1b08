//! Draw as pixels with smooth edges, and write them as PNG.

use super::font;
use super::surface::{Anchor, DASHES, Ink, Pen, Point, Surface, Type};

/// Lines of a pixel on which polygons are measured.
const LINES: usize = 5;

/// A white picture.
#[derive(Clone, Debug)]
pub struct Raster {
    width: usize,
    height: usize,
    /// Pixels of a unit.
    scale: f64,
    pixels: Vec<[f32; 3]>,
    /// How far a pixel is covered by the shape that is being drawn.
    mask: Vec<f32>,
    /// The pixels that the shape may have touched: from and to, across and down.
    touched: [usize; 4],
}

impl Raster {
    /// A picture of so many units with `scale` pixels each.
    pub fn new(width: f64, height: f64, scale: f64) -> Self {
        let pixels = |length: f64| (length * scale).ceil().max(1.0) as usize;
        let (width, height) = (pixels(width), pixels(height));
        Raster {
            width,
            height,
            scale,
            pixels: vec![[1.0; 3]; width * height],
            mask: vec![0.0; width * height],
            touched: [usize::MAX, 0, usize::MAX, 0],
        }
    }

    /// The picture as a PNG file.
    pub fn png(&self) -> Vec<u8> {
        let bytes: Vec<u8> = self
            .pixels
            .iter()
            .flat_map(|pixel| pixel.map(|part| (255.0 * part).round().clamp(0.0, 255.0) as u8))
            .collect();
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::High);
        // Large areas of one colour: nothing is gained by differences of neighbours.
        encoder.set_filter(png::Filter::NoFilter);
        let written = encoder.write_header().and_then(|mut file| file.write_image_data(&bytes));
        written.unwrap_or_else(|error| unreachable!("memory takes any picture: {error}"));
        file
    }

    /// Pixels whose centres are near a range, within the picture.
    fn span(from: f64, to: f64, length: usize) -> std::ops::Range<usize> {
        let inside = |value: f64| value.clamp(0.0, length as f64);
        (inside((from - 1.0).floor()) as usize)..(inside((to + 1.0).ceil()) as usize)
    }

    fn touch(&mut self, across: &std::ops::Range<usize>, down: &std::ops::Range<usize>) {
        let [left, right, top, bottom] = self.touched;
        self.touched = [
            left.min(across.start),
            right.max(across.end),
            top.min(down.start),
            bottom.max(down.end),
        ];
    }

    /// Cover a line with round ends; in pixels.
    fn stroke(&mut self, a: Point, b: Point, width: f64) {
        let half = 0.5 * width;
        let across = Self::span(a.0.min(b.0) - half, a.0.max(b.0) + half, self.width);
        let down = Self::span(a.1.min(b.1) - half, a.1.max(b.1) + half, self.height);
        self.touch(&across, &down);
        let (dx, dy) = (b.0 - a.0, b.1 - a.1);
        let square = dx * dx + dy * dy;
        for row in down {
            for column in across.clone() {
                let (x, y) = (column as f64 + 0.5 - a.0, row as f64 + 0.5 - a.1);
                let t =
                    if square > 0.0 { ((x * dx + y * dy) / square).clamp(0.0, 1.0) } else { 0.0 };
                let distance = (x - t * dx).hypot(y - t * dy);
                let covered = (half + 0.5 - distance).clamp(0.0, width.min(1.0)) as f32;
                let mask = &mut self.mask[row * self.width + column];
                *mask = mask.max(covered);
            }
        }
    }

    /// Cover what contours go round (non-zero winding); in pixels.
    fn fill(&mut self, contours: &[Vec<Point>]) {
        let points = || contours.iter().flatten();
        let ends = |part: fn(&Point) -> f64| {
            points().map(part).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            })
        };
        let ((left, right), (top, bottom)) = (ends(|p| p.0), ends(|p| p.1));
        if !(left <= right && top <= bottom) {
            return;
        }
        let across = Self::span(left, right, self.width);
        let down = Self::span(top, bottom, self.height);
        self.touch(&across, &down);
        let mut crossings: Vec<(f64, i32)> = Vec::new();
        for row in down {
            for line in 0..LINES {
                let y = row as f64 + (line as f64 + 0.5) / LINES as f64;
                crossings.clear();
                for contour in contours {
                    for (k, a) in contour.iter().enumerate() {
                        let b = contour[(k + 1) % contour.len()];
                        if (a.1 <= y) != (b.1 <= y) {
                            let x = a.0 + (y - a.1) / (b.1 - a.1) * (b.0 - a.0);
                            crossings.push((x, if a.1 <= y { 1 } else { -1 }));
                        }
                    }
                }
                crossings.sort_by(|a, b| a.0.total_cmp(&b.0));
                let mut winding = 0;
                for pair in crossings.windows(2) {
                    winding += pair[0].1;
                    if winding != 0 {
                        self.cover(row, pair[0].0, pair[1].0);
                    }
                }
            }
        }
    }

    /// Cover a part of one of the lines of a row.
    fn cover(&mut self, row: usize, from: f64, to: f64) {
        for column in Self::span(from, to, self.width) {
            let (left, right) = (column as f64, column as f64 + 1.0);
            let part = (to.min(right) - from.max(left)).max(0.0);
            self.mask[row * self.width + column] += (part / LINES as f64) as f32;
        }
    }

    /// Paint what is covered and begin the next shape.
    fn paint(&mut self, ink: Ink) {
        let colour = [16, 8, 0].map(|shift| f32::from((ink.rgb >> shift) as u8) / 255.0);
        let [left, right, top, bottom] = self.touched;
        for row in top..bottom {
            for at in row * self.width + left..row * self.width + right {
                let covered = std::mem::take(&mut self.mask[at]).min(1.0) * ink.opacity as f32;
                for (pixel, colour) in self.pixels[at].iter_mut().zip(colour) {
                    *pixel += covered * (colour - *pixel);
                }
            }
        }
        self.touched = [usize::MAX, 0, usize::MAX, 0];
    }

    /// Lines along the axes lie between pixels, so that they are sharp.
    fn snapped(&self, a: Point, b: Point, width: f64) -> (Point, Point) {
        let odd = width.round().max(1.0) as i64 % 2 == 1;
        let snap = |value: f64| if odd { value.floor() + 0.5 } else { value.round() };
        match (a.0 == b.0, a.1 == b.1) {
            (true, false) => ((snap(a.0), a.1), (snap(b.0), b.1)),
            (false, true) => ((a.0, snap(a.1)), (b.0, snap(b.1))),
            _ => (a, b),
        }
    }
}

/// The pieces of a line that dashes leave.
fn dashes(points: &[Point], scale: f64) -> Vec<(Point, Point)> {
    let (mut pieces, mut drawing, mut left) = (Vec::new(), true, DASHES[0] * scale);
    for pair in points.windows(2) {
        let (a, b) = (pair[0], pair[1]);
        let length = (b.0 - a.0).hypot(b.1 - a.1);
        let at = |way: f64| {
            let part = if length > 0.0 { way / length } else { 0.0 };
            (a.0 + part * (b.0 - a.0), a.1 + part * (b.1 - a.1))
        };
        let mut way = 0.0;
        while way < length {
            let step = left.min(length - way);
            if drawing {
                pieces.push((at(way), at(way + step)));
            }
            way += step;
            left -= step;
            if left <= 1e-9 {
                drawing = !drawing;
                left = DASHES[usize::from(!drawing)] * scale;
            }
        }
    }
    pieces
}

impl Surface for Raster {
    fn line(&mut self, points: &[Point], pen: Pen) {
        let scaled: Vec<Point> =
            points.iter().map(|&(x, y)| (x * self.scale, y * self.scale)).collect();
        let width = pen.width * self.scale;
        let pieces = match pen.dashed {
            true => dashes(&scaled, self.scale),
            false => scaled.windows(2).map(|pair| (pair[0], pair[1])).collect(),
        };
        for (a, b) in pieces {
            let (a, b) = self.snapped(a, b, width);
            self.stroke(a, b, width);
        }
        self.paint(pen.ink);
    }

    fn polygon(&mut self, points: &[Point], ink: Ink) {
        let scaled = points.iter().map(|&(x, y)| (x * self.scale, y * self.scale)).collect();
        self.fill(&[scaled]);
        self.paint(ink);
    }

    fn circle(&mut self, centre: Point, radius: f64, ink: Ink) {
        let centre = (centre.0 * self.scale, centre.1 * self.scale);
        self.stroke(centre, centre, 2.0 * radius * self.scale);
        self.paint(ink);
    }

    fn text(&mut self, at: Point, words: &str, style: Type) {
        let size = style.size * self.scale;
        let back = match style.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => 0.5 * font::width(words, size),
            Anchor::End => font::width(words, size),
        };
        let origin = (at.0 * self.scale, at.1 * self.scale);
        let contours = font::contours(words, size);
        // A second print a little aside makes letters bold.
        for aside in [0.0, 0.035 * size].into_iter().take(1 + usize::from(style.bold)) {
            let place = |&(x, y): &Point| match style.turned {
                false => (origin.0 + x - back + aside, origin.1 + y),
                true => (origin.0 + y, origin.1 - (x - back + aside)),
            };
            let placed: Vec<Vec<Point>> =
                contours.iter().map(|contour| contour.iter().map(place).collect()).collect();
            self.fill(&placed);
            self.paint(style.ink);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dark(raster: &Raster) -> f64 {
        raster.pixels.iter().map(|pixel| f64::from(1.0 - pixel[0])).sum()
    }

    #[test]
    fn shapes_have_their_areas() {
        let ink = Ink::solid(0);
        for scale in [1.0, 2.0] {
            let blank = Raster::new(40.0, 40.0, scale);
            let mut circle = blank.clone();
            circle.circle((20.3, 19.6), 10.0, ink);
            let area = std::f64::consts::PI * 100.0 * scale * scale;
            assert!((dark(&circle) / area - 1.0).abs() < 0.01, "{}", dark(&circle));
            let mut triangle = blank.clone();
            triangle.polygon(&[(5.2, 5.1), (25.2, 5.1), (5.2, 35.1)], ink);
            assert!((dark(&triangle) / (300.0 * scale * scale) - 1.0).abs() < 0.01);
            let mut line = blank.clone();
            line.line(&[(5.0, 20.0), (35.0, 20.0)], Pen::new(ink, 1.0));
            assert!((dark(&line) / (30.0 * scale * scale) - 1.0).abs() < 0.07, "{}", dark(&line));
            let mut broken = blank.clone();
            broken.line(&[(4.0, 20.0), (36.0, 20.0)], Pen { dashed: true, ..Pen::new(ink, 1.0) });
            assert!(dark(&broken) < 0.9 * 32.0 * scale * scale && dark(&broken) > 10.0);
        }
    }

    #[test]
    fn opacity_lets_shine_through_and_beyond_the_edge_is_nothing() {
        let mut raster = Raster::new(10.0, 10.0, 1.0);
        raster.polygon(
            &[(-5.0, -5.0), (50.0, -5.0), (50.0, 50.0), (-5.0, 50.0)],
            Ink::solid(0xff0000).faint(0.5),
        );
        assert_eq!(raster.pixels[55], [1.0, 0.5, 0.5]);
        raster.circle((-100.0, 3.0), 2.0, Ink::solid(0));
        raster.line(&[(-9.0, -9.0), (f64::NAN, 4.0)], Pen::new(Ink::solid(0), 1.0));
        assert_eq!(raster.pixels[55], [1.0, 0.5, 0.5]);
    }

    #[test]
    fn pictures_are_png_files() {
        let mut raster = Raster::new(30.0, 20.0, 2.0);
        raster.text(
            (15.0, 12.0),
            "ESS",
            Type {
                size: 11.0,
                anchor: Anchor::Middle,
                ink: Ink::solid(0x123456),
                bold: true,
                turned: false,
            },
        );
        let file = raster.png();
        let mut reader = png::Decoder::new(std::io::Cursor::new(&file)).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        assert_eq!((info.width, info.height), (60, 40));
        assert!(bytes.chunks(3).any(|pixel| pixel == [0x12, 0x34, 0x56]), "solid ink");
    }
}
