//! The site, as `scripts/book/build` leaves it: pages of notebooks show the figures and tables that the notebooks were saved with.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::devtools::Browser;
use super::{DESK, PHONE, pictures};

/// What draws formulas comes from outside, and pages can be read without it.
const FORMULAS: &str = "\"url\":\"https://cdn.jsdelivr.net/npm/katex@";

/// Outputs of one kind that a notebook was saved with: of several forms of one output the site shows the first of these.
#[derive(Debug, Default, PartialEq)]
struct Shown {
    images: usize,
    drawings: usize,
    tables: usize,
}

fn text(value: &Value) -> String {
    match value {
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}

/// What a notebook has to show.
fn saved(notebook: &Path) -> Shown {
    let notebook: Value = serde_json::from_slice(&std::fs::read(notebook).unwrap()).unwrap();
    let cells = notebook["cells"].as_array().unwrap().iter();
    let outputs = cells.flat_map(|cell| cell["outputs"].as_array().into_iter().flatten());
    let mut shown = Shown::default();
    for data in outputs.map(|output| &output["data"]) {
        let html = text(&data["text/html"]);
        if data.get("image/png").is_some() {
            shown.images += 1;
        } else {
            shown.tables += html.matches("<table").count();
            // Panels lie in the drawing that they are parts of.
            let mut depth = 0;
            for tag in html.split('<') {
                shown.drawings += usize::from(tag.starts_with("svg") && depth == 0);
                depth += usize::from(tag.starts_with("svg"));
                depth -= usize::from(tag.starts_with("/svg"));
            }
        }
    }
    shown
}

/// Outputs on the page that is open that can be seen: of a size, and pictures in more than a few colours.
fn seen(browser: &mut Browser) -> Shown {
    let mut count = |selector: &str, condition: &str| {
        let expression = format!(
            "[...document.querySelectorAll('main {selector}')].filter(e => {{
                const size = e.getBoundingClientRect();
                return size.width > 100 && size.height > 20 && ({condition});
            }}).length"
        );
        browser.value(&expression).as_u64().unwrap() as usize
    };
    let colours = "(() => {
        const c = document.createElement('canvas'), d = c.getContext('2d');
        c.width = e.naturalWidth; c.height = e.naturalHeight; d.drawImage(e, 0, 0);
        const pixels = new Uint32Array(d.getImageData(0, 0, c.width, c.height).data.buffer);
        return e.complete && new Set(pixels).size > 10;
    })()";
    Shown {
        images: count("img[alt=output]", colours),
        drawings: count(
            ".output svg",
            "!e.parentElement.closest('svg') && e.querySelector('path, polyline, circle, rect')",
        ),
        tables: count(".output table", "e.rows.length > 1"),
    }
}

#[test]
#[cfg_attr(
    not(all(has_chromium, has_book)),
    ignore = "needs a browser and the site: set LEAPS_CHROMIUM, run scripts/book/build and set LEAPS_BOOK to target/book"
)]
fn notebooks_of_the_site_show_their_figures() {
    let book = std::env::var_os("LEAPS_BOOK").expect("LEAPS_BOOK is set, as when this was built");
    let book = PathBuf::from(book).canonicalize().expect("scripts/book/build makes it");
    let notebooks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/notebooks");
    let mut browser = Browser::start();
    let mut looked_at = 0;
    for entry in std::fs::read_dir(notebooks).unwrap() {
        let notebook = entry.unwrap().path();
        if notebook.extension().is_none_or(|extension| extension != "ipynb") {
            continue;
        }
        let name = notebook.file_stem().unwrap().to_str().unwrap().to_owned();
        let page = book.join(format!("notebooks/{name}.html"));
        let saved = saved(&notebook);
        assert!(saved.images + saved.drawings > 0, "{name}: {saved:?}");
        let own = format!("file://{}/", book.display());
        for (screen, size) in [("desk", DESK), ("phone", PHONE)] {
            browser.open(&page, size, "light");
            assert_eq!(seen(&mut browser), saved, "{name}, {screen}");
            let mut complaints = browser.complaints_beside(|address| {
                address.starts_with(&own) || address.starts_with("data:")
            });
            complaints.retain(|complaint| !complaint.contains(FORMULAS));
            assert_eq!(complaints, Vec::<String>::new(), "{name}, {screen}");
            browser.picture(&pictures().join(format!("site-{name}-{screen}.png")));
        }
        looked_at += 1;
    }
    assert_eq!(looked_at, 3, "notebooks");
}
