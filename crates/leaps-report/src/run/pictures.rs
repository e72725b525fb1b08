//! States of a lattice of two dimensions: pages that a slider turns, and figures of all of them.

use leaps::results::{MinimumResult, Snapshots};
use leaps::target::TargetSpec;

use crate::draw::{Ink, Svg, escape, strip};
use crate::figure::Figure;

/// Side of a picture among others.
const SIDE: f64 = 132.0;

/// The colours of values: light and dark for two, a qualitative scale for more.
const TWO: [u32; 2] = [0xeef2f7, 0x1f4e79];
const MANY: [u32; 10] = [
    0x1f4e79, 0xe08a3c, 0x5a9e6f, 0xc9524b, 0x8a6db1, 0x8c6d5a, 0xd98fb9, 0x8f8f8f, 0xb8b84a,
    0x5ab4c5,
];

/// A lattice of two dimensions, and how many values a site has.
#[derive(Clone, Copy)]
struct Plane {
    rows: usize,
    columns: usize,
    q: usize,
}

impl Plane {
    fn of(snapshots: &Snapshots) -> Option<Self> {
        let &[rows, columns] = &snapshots.shape[..] else { return None };
        Some(Plane { rows, columns, q: snapshots.q })
    }
}

/// States that belong together, each with a caption.
struct Album<'s> {
    name: &'static str,
    title: &'static str,
    /// What the slider is called, and what is said below it.
    slider: &'static str,
    note: &'static str,
    states: Vec<(String, &'s str)>,
}

/// One walker on its way, and the sample; nothing if the lattice is not of two dimensions.
fn albums(snapshots: &Snapshots, plane: Plane) -> Vec<Album<'_>> {
    let whole = |x: &&str| x.len() == plane.rows * plane.columns;
    let frames = snapshots.frames.iter().map(|frame| (format!("t = {:.2}", frame.t), &*frame.x));
    let sample = snapshots.sample.iter().map(String::as_str).filter(whole).enumerate();
    let mut all = vec![
        Album {
            name: "walker",
            title: "One walker along the path",
            slider: "Time of the path",
            note: "One walker from the uniform start to the target, not reweighted.",
            states: frames.filter(|(_, x)| whole(x)).collect(),
        },
        Album {
            name: "sample",
            title: "States of the sample",
            slider: "State of the sample",
            note: "Walkers at the end of the path, each as often as its weight says: states of the target.",
            states: sample.map(|(k, x)| (format!("state {}", k + 1), x)).collect(),
        },
    ];
    all.retain(|album| !album.states.is_empty());
    all
}

/// The albums of a page, each with a slider that turns its pages; without scripts all pages are seen.
pub fn sliders(snapshots: &Snapshots) -> String {
    let Some(plane) = Plane::of(snapshots) else { return String::new() };
    let shown: String =
        albums(snapshots, plane).into_iter().map(|album| slides(&album, plane)).collect();
    if shown.is_empty() { shown } else { format!("<div class=\"albums\">\n{shown}</div>\n") }
}

fn slides(album: &Album<'_>, plane: Plane) -> String {
    let (name, last) = (album.name, album.states.len() - 1);
    let mut out = format!(
        "<div class=\"album\">\n<h3>{}</h3>\n<div class=\"slider\"><label for=\"{name}-at\">{}</label>\
         <input type=\"range\" id=\"{name}-at\" data-slides=\"{name}-slides\" min=\"0\" max=\"{last}\" step=\"1\" \
         value=\"{last}\"><output for=\"{name}-at\">{}</output></div>\n<div class=\"frames\" id=\"{name}-slides\">\n",
        escape(album.title),
        escape(album.slider),
        escape(&album.states[last].0),
    );
    for (caption, x) in &album.states {
        let picture = svg(x, plane, &format!("{}: {caption}", album.title));
        let caption = escape(caption);
        out += &format!(
            "<figure data-label=\"{caption}\">{picture}<figcaption>{caption}</figcaption></figure>\n"
        );
    }
    out + &format!("</div>\n<p class=\"note\">{}</p>\n</div>\n", escape(album.note))
}

/// A figure of every album.
pub fn figures(section: &'static str, snapshots: &Snapshots) -> Vec<Figure> {
    let Some(plane) = Plane::of(snapshots) else { return Vec::new() };
    let figure = |album: Album<'_>| {
        let states = album.states.iter();
        let pictures: Vec<(String, String)> =
            states.map(|(caption, x)| (caption.clone(), svg(x, plane, ""))).collect();
        let element = strip(album.title, (SIDE, height(plane)), &pictures);
        Figure { name: album.name.to_owned(), title: album.title.to_owned(), section, element }
    };
    albums(snapshots, plane).into_iter().map(figure).collect()
}

/// The state of lowest energy that a search found, where the target lies on a lattice of two dimensions.
pub fn lowest(
    section: &'static str,
    search: &MinimumResult,
    target: &TargetSpec,
) -> Option<Figure> {
    let x = &search.lowest.state;
    let (rows, columns) = match (&target.size.as_ref()?.0[..], target.dimensions.unwrap_or(2)) {
        // One number is the side of a square.
        (&[side], 2) => (side, side),
        (&[rows, columns], _) => (rows, columns),
        _ => return None,
    };
    if rows * columns != x.len() {
        return None;
    }
    let largest = x.bytes().map(|digit| usize::from(digit.saturating_sub(b'0'))).max()?;
    let plane = Plane { rows, columns, q: target.q.unwrap_or(2).max(largest + 1) };
    let title = "The state of lowest energy";
    let pictures = [(format!("energy {}", search.lowest.energy), svg(x, plane, ""))];
    let element = strip(title, (SIDE, height(plane)), &pictures);
    Some(Figure { name: "lowest".to_owned(), title: title.to_owned(), section, element })
}

/// The height of a picture.
fn height(plane: Plane) -> f64 {
    (SIDE * plane.rows as f64 / plane.columns as f64).round()
}

/// One picture, called `label` on a page and nothing within a figure: a rectangle for every run of equal values in a row.
fn svg(x: &str, plane: Plane, label: &str) -> String {
    let Plane { rows, columns, q } = plane;
    let colours: &[u32] = if q == 2 { &TWO } else { &MANY };
    // Within a figure of several the figure says how large each is.
    let size = match label {
        "" => String::new(),
        _ => format!(" width=\"{SIDE}\" height=\"{}\"", height(plane)),
    };
    let attributes = format!(" class=\"lattice\"{size} shape-rendering=\"crispEdges\"");
    let mut out = Svg::new(columns as f64, rows as f64, label, &attributes);
    out.rectangles(&[[0.0, 0.0, columns as f64, rows as f64]], Ink::solid(colours[0]));
    let mut runs: Vec<Vec<[f64; 4]>> = vec![Vec::new(); colours.len()];
    for (row, line) in x.as_bytes().chunks(columns).enumerate() {
        let mut from = 0;
        while from < line.len() {
            let run = line[from..].iter().take_while(|value| **value == line[from]).count();
            let colour = usize::from(line[from].saturating_sub(b'0')) % colours.len();
            runs[colour].push([from as f64, row as f64, run as f64, 1.0]);
            from += run;
        }
    }
    for (colour, runs) in runs.iter().enumerate().skip(1).filter(|(_, runs)| !runs.is_empty()) {
        out.rectangles(runs, Ink::solid(colours[colour]));
    }
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(shape: &[usize], q: usize, x: &str) -> Snapshots {
        let frames = json!([{"t": 0.5, "x": x}, {"t": 1.0, "x": x}]);
        let all = json!({"shape": shape, "q": q, "frames": frames, "sample": [x, "1"]});
        serde_json::from_value(all).unwrap()
    }

    #[test]
    fn every_site_has_its_colour() {
        let picture = svg("0110", Plane { rows: 2, columns: 2, q: 2 }, "");
        assert!(picture.contains("M1 0h1v1h-1zM0 1h1v1h-1z"), "{picture}");
        assert_eq!(picture.matches("<path").count(), 2, "{picture}");
        let potts = svg("0120", Plane { rows: 2, columns: 2, q: 3 }, "");
        assert_eq!(potts.matches("<path").count(), 3);
        assert!(potts.contains("#e08a3c") && potts.contains("#5a9e6f"), "{potts}");
    }

    #[test]
    fn the_lowest_state_is_drawn_on_its_lattice() {
        let lowest = |x: &str, target: Value| {
            let search = json!({
                "seed": 1, "method": "annealing", "walkers": 1, "sweeps": 1, "proven": false,
                "lowest": {"energy": -2.5, "energy_per_site": -0.5, "state": x},
                "found": {"restarts": 1, "walkers": 1, "of_walkers": 1}, "ended_by": "restarts",
                "restarts": [], "seconds_of_restarts": [], "seconds_to_best": 0.0, "seconds": 0.0,
            });
            let target = serde_json::from_value(target).unwrap();
            super::lowest("", &serde_json::from_value(search).unwrap(), &target)
        };
        let drawn = lowest("011010", json!({"size": [2, 3]})).unwrap();
        assert!(drawn.element.contains("M1 0h2v1h-2zM1 1h1v1h-1z"), "{}", drawn.element);
        assert!(drawn.element.contains("energy -2.5"));
        assert!(lowest("0110", json!({"size": 2, "dimensions": 2})).is_some());
        for (x, target) in [
            ("0110", json!({"size": [4]})),
            ("01101", json!({"size": 2})),
            ("10,2,3,4", json!({"size": 2, "q": 11})),
            ("01101001", json!({"size": 2, "dimensions": 3})),
            ("0110", json!({"path": "edges.txt"})),
        ] {
            assert!(lowest(x, target.clone()).is_none(), "{target}");
        }
    }

    #[test]
    fn what_is_no_picture_is_left_out() {
        assert_eq!(sliders(&read(&[2, 2], 2, "01")), "");
        assert_eq!(sliders(&read(&[4], 2, "0101")), "");
        let page = sliders(&read(&[2, 2], 2, "0101"));
        assert_eq!(page.matches("<svg").count(), 3, "two frames and one state of the sample");
        assert!(page.contains("t = 0.50") && page.contains("max=\"1\""));
        let figures = figures("", &read(&[2, 2], 2, "0101"));
        assert_eq!(figures.iter().map(|f| &*f.name).collect::<Vec<_>>(), ["walker", "sample"]);
        assert_eq!(figures[0].element.matches("class=\"lattice\"").count(), 2);
        for format in crate::figure::Format::ALL {
            assert!(figures[0].encode(format).is_ok(), "{format:?}");
        }
    }
}
