//! SVG text that needs no style sheet.

use super::font::FAMILY;
use super::style::{Anchor, DASHES, Ink, Pen, Point, Type};

/// An `<svg>` element in the making.
#[derive(Debug)]
pub struct Svg {
    text: String,
}

impl Svg {
    /// An element of so many units, called `label` for those who do not see it; `attributes` are its own.
    pub fn new(width: f64, height: f64, label: &str, attributes: &str) -> Self {
        let label = match label {
            "" => String::new(),
            words => format!(" role=\"img\" aria-label=\"{}\"", escape(words)),
        };
        let text = format!("<svg viewBox=\"0 0 {width} {height}\"{label}{attributes}>\n");
        Svg { text }
    }

    /// The whole element.
    pub fn finish(self) -> String {
        self.text + "</svg>\n"
    }

    /// A line through some points.
    pub fn line(&mut self, points: &[Point], pen: Pen) {
        let dashes = match pen.dashed {
            true => format!(" stroke-dasharray=\"{} {}\"", DASHES[0], DASHES[1]),
            false => String::new(),
        };
        self.text += &format!(
            "<polyline points=\"{}\" fill=\"none\" {} stroke-width=\"{}\"{dashes}/>\n",
            places(points),
            paint("stroke", pen.ink),
            short(pen.width)
        );
    }

    /// A filled polygon.
    pub fn polygon(&mut self, points: &[Point], ink: Ink) {
        self.text += &format!("<polygon points=\"{}\" {}/>\n", places(points), paint("fill", ink));
    }

    /// Filled rectangles of one colour, each as left, top, width and height.
    pub fn rectangles(&mut self, all: &[[f64; 4]], ink: Ink) {
        let one = |&[left, top, width, height]: &[f64; 4]| {
            let [left, top, width, height] = [left, top, width, height].map(short);
            format!("M{left} {top}h{width}v{height}h-{width}z")
        };
        let path: String = all.iter().map(one).collect();
        self.text += &format!("<path d=\"{path}\" {}/>\n", paint("fill", ink));
    }

    /// A filled circle.
    pub fn circle(&mut self, centre: Point, radius: f64, ink: Ink) {
        let (x, y, radius) = (short(centre.0), short(centre.1), short(radius));
        self.text +=
            &format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" {}/>\n", paint("fill", ink));
    }

    /// Words on one line.
    pub fn text(&mut self, at: Point, words: &str, style: Type) {
        let (x, y) = (short(at.0), short(at.1));
        let anchor = match style.anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let weight = if style.bold { " font-weight=\"600\"" } else { "" };
        let turn = match style.turned {
            true => format!(" transform=\"rotate(-90 {x} {y})\""),
            false => String::new(),
        };
        self.text += &format!(
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" font-family=\"{FAMILY}\" \
             font-size=\"{}\"{weight} {}{turn}>{}</text>\n",
            short(style.size),
            paint("fill", style.ink),
            escape(words)
        );
    }

    /// Another element, fitted into a box.
    pub fn nest(&mut self, at: Point, size: (f64, f64), element: &str) {
        let place = format!(
            "<svg x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" ",
            short(at.0),
            short(at.1),
            short(size.0),
            short(size.1)
        );
        self.text += &element.replacen("<svg ", &place, 1);
    }

    /// What the shapes up to [`close`](Self::close) stand for.
    pub fn open(&mut self, hint: &str) {
        self.text += &format!("<g><title>{}</title>\n", escape(hint));
    }

    /// The end of such shapes.
    pub fn close(&mut self) {
        self.text += "</g>\n";
    }
}

/// An element of a page as a file of its own.
pub fn file(element: &str) -> String {
    element.replacen("<svg ", "<svg xmlns=\"http://www.w3.org/2000/svg\" ", 1)
}

/// Words that are safe inside an element or a quoted attribute.
pub fn escape(words: &str) -> String {
    let mut out = String::with_capacity(words.len());
    for letter in words.chars() {
        match letter {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            letter if letter.is_control() && letter != '\n' => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}

/// A length with two decimals at the most.
fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn places(points: &[Point]) -> String {
    let words: Vec<String> =
        points.iter().map(|&(x, y)| format!("{},{}", short(x), short(y))).collect();
    words.join(" ")
}

fn paint(attribute: &str, ink: Ink) -> String {
    let colour = format!("{attribute}=\"#{:06x}\"", ink.rgb);
    match ink.opacity {
        opacity if opacity < 1.0 => {
            format!("{colour} {attribute}-opacity=\"{}\"", short(opacity))
        }
        _ => colour,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_cannot_leave_their_element() {
        assert_eq!(escape("<b a=\"1\">&'\u{7}"), "&lt;b a=&quot;1&quot;&gt;&amp;&#39; ");
    }

    #[test]
    fn shapes_carry_their_style() {
        let mut svg = Svg::new(10.0, 20.0, "a & b", "");
        svg.line(&[(0.0, 1.0), (2.5, 3.125)], Pen::new(Ink::solid(0x12ab), 1.0));
        svg.circle((1.0, 1.0), 2.0, Ink::solid(0xff0000).faint(0.25));
        let text = svg.finish();
        assert!(text.contains("points=\"0,1 2.5,3.12\"") || text.contains("2.5,3.13"), "{text}");
        assert!(text.contains("#0012ab") && text.contains("fill-opacity=\"0.25\""), "{text}");
        assert!(text.contains("a &amp; b") && text.ends_with("</svg>\n"), "{text}");
    }
}
