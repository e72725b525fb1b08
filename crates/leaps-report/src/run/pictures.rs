//! States of a lattice of two dimensions as small SVG images.

use leaps::results::Snapshots;

use crate::draw::{Ink, Svg};

/// Side of a picture on the page.
const SIDE: f64 = 132.0;

/// The colours of values: light and dark for two, a qualitative scale for more.
const TWO: [u32; 2] = [0xeef2f7, 0x1f4e79];
const MANY: [u32; 10] = [
    0x1f4e79, 0xe08a3c, 0x5a9e6f, 0xc9524b, 0x8a6db1, 0x8c6d5a, 0xd98fb9, 0x8f8f8f, 0xb8b84a,
    0x5ab4c5,
];

/// The snapshots of a result, each with its time; nothing if they are not of two dimensions.
pub fn pictures(snapshots: &Snapshots) -> String {
    let &[rows, columns] = &snapshots.shape[..] else { return String::new() };
    let mut out = String::from("<div class=\"frames\">\n");
    for frame in snapshots.frames.iter().filter(|frame| frame.x.len() == rows * columns) {
        out += &format!(
            "<figure>{}<figcaption>t = {:.2}</figcaption></figure>\n",
            svg(&frame.x, rows, columns, snapshots.q),
            frame.t
        );
    }
    out + "</div>\n"
}

/// One picture: a rectangle for every run of equal values in a row.
fn svg(x: &str, rows: usize, columns: usize, q: usize) -> String {
    let colours: &[u32] = if q == 2 { &TWO } else { &MANY };
    let ink =
        |value: u8| Ink::solid(colours[usize::from(value.saturating_sub(b'0')) % colours.len()]);
    let height = SIDE * rows as f64 / columns as f64;
    let attributes = format!(
        " class=\"lattice\" width=\"{SIDE}\" height=\"{height:.0}\" shape-rendering=\"crispEdges\""
    );
    let mut out = Svg::new(columns as f64, rows as f64, "", &attributes);
    let mut rectangle = |[left, right]: [usize; 2], [top, bottom]: [usize; 2], value: u8| {
        let [left, right, top, bottom] = [left, right, top, bottom].map(|side| side as f64);
        let corners = [(left, top), (right, top), (right, bottom), (left, bottom)];
        out.polygon(&corners, ink(value));
    };
    rectangle([0, columns], [0, rows], b'0');
    for (row, line) in x.as_bytes().chunks(columns).enumerate() {
        let mut from = 0;
        while from < line.len() {
            let run = line[from..].iter().take_while(|value| **value == line[from]).count();
            if line[from] != b'0' {
                rectangle([from, from + run], [row, row + 1], line[from]);
            }
            from += run;
        }
    }
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_site_has_its_colour() {
        let picture = svg("0110", 2, 2, 2);
        assert!(picture.contains("1,0 2,0 2,1 1,1") && picture.contains("0,1 1,1 1,2 0,2"));
        assert_eq!(picture.matches("<polygon").count(), 3, "{picture}");
        assert_eq!(svg("0120", 2, 2, 3).matches("<polygon").count(), 3);
    }

    #[test]
    fn what_is_no_picture_is_left_out() {
        let read = |value| serde_json::from_value::<Snapshots>(value).unwrap();
        let frames = |x: &str| json!([{"t": 0.5, "x": x}]);
        let odd = read(json!({"shape": [2, 2], "q": 2, "frames": frames("01")}));
        assert_eq!(pictures(&odd).matches("<svg").count(), 0);
        let ring = read(json!({"shape": [4], "q": 2, "frames": frames("0101")}));
        assert_eq!(pictures(&ring), "");
        let good = read(json!({"shape": [2, 2], "q": 2, "frames": frames("0101")}));
        assert!(pictures(&good).contains("t = 0.50"));
    }
}
