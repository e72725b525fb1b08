//! Draw states of a lattice of two dimensions as small SVG images.

use serde_json::Value;

/// Side of a picture on the page.
const SIDE: f64 = 132.0;

/// The colours of tokens: light and dark for two, a qualitative scale for more.
const TWO: [&str; 2] = ["#eef2f7", "#1f4e79"];
const MANY: [&str; 10] = [
    "#1f4e79", "#e08a3c", "#5a9e6f", "#c9524b", "#8a6db1", "#8c6d5a", "#d98fb9", "#8f8f8f",
    "#b8b84a", "#5ab4c5",
];

/// The snapshots of a result, each with its time; nothing if the result has none.
pub fn pictures(snapshots: &Value) -> String {
    let side = |axis: usize| snapshots["shape"][axis].as_u64().map(|n| n as usize);
    let (Some(rows), Some(columns)) = (side(0), side(1)) else { return String::new() };
    let tokens = snapshots["states"].as_u64().unwrap_or(2) as usize;
    let mut out = String::from("<div class=\"frames\">\n");
    for frame in snapshots["frames"].as_array().into_iter().flatten() {
        let (Some(t), Some(x)) = (frame["t"].as_f64(), frame["x"].as_str()) else { continue };
        if x.len() == rows * columns {
            out += &format!(
                "<figure>{}<figcaption>t = {t:.2}</figcaption></figure>\n",
                svg(x, rows, columns, tokens)
            );
        }
    }
    out + "</div>\n"
}

/// One picture: a rectangle for every run of equal tokens in a row.
fn svg(x: &str, rows: usize, columns: usize, tokens: usize) -> String {
    let colours: &[&str] = if tokens == 2 { &TWO } else { &MANY };
    let colour = |token: u8| colours[usize::from(token.saturating_sub(b'0')) % colours.len()];
    let height = SIDE * rows as f64 / columns as f64;
    let mut out = format!(
        "<svg class=\"lattice\" width=\"{SIDE}\" height=\"{height:.0}\" viewBox=\"0 0 {columns} {rows}\" \
         shape-rendering=\"crispEdges\">"
    );
    out += &format!("<rect width=\"{columns}\" height=\"{rows}\" fill=\"{}\"/>", colour(b'0'));
    for (row, line) in x.as_bytes().chunks(columns).enumerate() {
        let mut from = 0;
        while from < line.len() {
            let run = line[from..].iter().take_while(|token| **token == line[from]).count();
            if line[from] != b'0' {
                let fill = colour(line[from]);
                out += &format!("<path fill=\"{fill}\" d=\"M{from} {row}h{run}v1h-{run}z\"/>");
            }
            from += run;
        }
    }
    out + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_site_has_its_colour() {
        let picture = svg("0110", 2, 2, 2);
        assert!(picture.contains("M1 0h1") && picture.contains("M0 1h1"), "{picture}");
        assert_eq!(picture.matches("<path").count(), 2);
        assert_eq!(svg("0120", 2, 2, 3).matches("<path").count(), 2);
    }

    #[test]
    fn what_is_no_picture_is_left_out() {
        let odd =
            json!({"shape": [2, 2], "states": 2, "frames": [{"t": 0.0, "x": "01"}, {"t": 1.0}]});
        assert_eq!(pictures(&odd).matches("<svg").count(), 0);
        assert_eq!(pictures(&Value::Null), "");
        let good = json!({"shape": [2, 2], "states": 2, "frames": [{"t": 0.5, "x": "0101"}]});
        assert!(pictures(&good).contains("t = 0.50"));
    }
}
