//! Pages in a browser: no complaints, no network, numbers of the results, light and dark, on a desk and on a phone.
//!
//! Pictures of the pages are left in the folder that is named at the end.
#![cfg(unix)]

mod book;
#[path = "../common/mod.rs"]
mod common;
mod devtools;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use common::shown::wrong;
use common::{leaps, run, run_line, stdout, train};
use devtools::Browser;
use serde_json::Value;

const DESK: (u32, u32) = (1200, 900);
const PHONE: (u32, u32) = (390, 844);

/// Where pictures go.
fn pictures() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The numbers that the browser shows, in words or in what they carry, and that are not those of the results.
fn wrong_numbers(browser: &mut Browser, results: &Value) -> Vec<String> {
    let shown = browser.value(
        "[...document.querySelectorAll('main [data-key]')].map(e => [e.dataset.key, e.dataset.value, e.innerText])",
    );
    let shown = shown.as_array().expect("numbers");
    assert!(shown.len() >= 10, "{shown:?}");
    let word = |number: &Value, at: usize| number[at].as_str().unwrap().to_owned();
    let found = |number| wrong(results, &word(number, 0), &word(number, 1), &word(number, 2));
    shown.iter().filter_map(found).collect()
}

/// Every number that the browser shows is the one of the results.
fn numbers_agree(browser: &mut Browser, results: &Value) {
    assert_eq!(wrong_numbers(browser, results), Vec::<String>::new());
}

/// Colours that the browser computes for the first title of a chart and for the paper behind it, as red + green + blue.
fn brightness(browser: &mut Browser) -> [f64; 3] {
    let sum = |of: &str, property: &str| {
        format!(
            "getComputedStyle({of}).{property}.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + +b, 0)"
        )
    };
    let [body, chart, title] = [
        sum("document.body", "backgroundColor"),
        sum("document.querySelector('.charts polygon')", "fill"),
        sum("document.querySelector('.charts text')", "fill"),
    ]
    .map(|text| browser.value(&text).as_f64().expect("a colour"));
    [body, chart, title]
}

/// What is hard to see on the page that is open: words that hardly differ from their paper, and what lies beyond an edge.
fn faults(browser: &mut Browser, scheme: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let [body, chart, title] = brightness(browser);
    if body != chart {
        faults.push(format!("charts of {chart} lie on a page of {body}"));
    }
    let (bright, dark) = if scheme == "dark" { (title, body) } else { (body, title) };
    if bright - dark <= 400.0 {
        faults.push(format!("{scheme}: {bright} on {dark}"));
    }
    // Wide tables scroll within themselves; the page does not. (The window of a phone grows with what is in it, its client does not.)
    let over = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
    let over = browser.value(over);
    if over.as_f64().unwrap() > 0.0 {
        faults.push(format!("{over} pixels too wide"));
    }
    let outside = browser.value(
        "[...document.querySelectorAll('.charts text')].filter(text => {
            const own = text.getBoundingClientRect(), all = text.closest('.charts > svg').getBoundingClientRect();
            return own.left < all.left - 1 || own.right > all.right + 1 || own.top < all.top - 1 || own.bottom > all.bottom + 1;
        }).map(text => text.textContent)",
    );
    let words = outside.as_array().into_iter().flatten();
    faults.extend(words.map(|word| format!("beyond the edge of a figure: {word}")));
    faults
}

/// Look at a page on every screen, in the light and in the dark.
fn looked_at(browser: &mut Browser, page: &Path, name: &str, results: &Value) {
    let folder = pictures();
    for (screen, size) in [("desk", DESK), ("phone", PHONE)] {
        for scheme in ["light", "dark"] {
            browser.open(page, size, scheme);
            let file = folder.join(format!("{name}-{screen}-{scheme}.png"));
            let picture = browser.picture(&file);
            assert!(picture.starts_with(b"\x89PNG") && picture.len() > 20_000, "{}", picture.len());
            numbers_agree(browser, results);
            let mut found = faults(browser, scheme);
            found.extend(browser.complaints(page));
            assert_eq!(found, Vec::<String>::new(), "{name}, {screen}, {scheme}");
        }
    }
    println!("pictures: {}", folder.display());
}

#[test]
#[cfg_attr(not(has_chromium), ignore = "needs a browser: set LEAPS_CHROMIUM to Chromium")]
fn pages_of_runs_and_results_are_drawn() {
    let scratch = tempfile::tempdir().unwrap();
    let mut browser = Browser::start();
    let directory = scratch.path().join("run");
    stdout(&train(&directory, "--steps 60"));
    stdout(&run(&["report", directory.to_str().unwrap()]));
    let results = std::fs::read(directory.join("results.json")).unwrap();
    let page = directory.join("report.html");
    looked_at(&mut browser, &page, "run", &serde_json::from_slice(&results).unwrap());

    let line = "smc potts --q 3 --size 8 --beta 0.9 --field 0.02 --walkers 500 --intervals 40 --at-beta 0.2:0.8:4";
    let tempering =
        "mcmc ising --size 4 --field 0.1 --kernel parallel-tempering --temperatures 6 --steps 300";
    let grid =
        "free-energy ising --size 4 --beta 0.1:0.6:6 --field 0:0.1:2 --method ais --walkers 200";
    for (name, line) in [("smc", line), ("tempering", tempering), ("free-energy", grid)] {
        let file = scratch.path().join(format!("{name}.json"));
        let printed = stdout(&run_line(&format!("{line} --json --quiet")));
        std::fs::write(&file, &printed).unwrap();
        stdout(&run(&["report", file.to_str().unwrap()]));
        let results = serde_json::from_str(&printed).unwrap();
        looked_at(&mut browser, &file.with_extension("html"), name, &results);
    }
}

/// Each check of a page finds what it is there for, on small pages that are wrong in one thing.
#[test]
#[cfg_attr(not(has_chromium), ignore = "needs a browser: set LEAPS_CHROMIUM to Chromium")]
fn what_is_wrong_is_found() {
    let scratch = tempfile::tempdir().unwrap();
    let page = scratch.path().join("page.html");
    let mut browser = Browser::start();
    let results: Value =
        (0..10).map(|k| (format!("n{k}"), k.into())).collect::<serde_json::Map<_, _>>().into();
    let good = "<!doctype html><meta charset=utf-8><meta name=viewport content='width=device-width'>
        <style>:root { --ink: #111; --paper: #fff } @media (prefers-color-scheme: dark) { :root { --ink: #eee; --paper: #111 } }
        body { background: var(--paper) } polygon { fill: var(--paper) } text { fill: var(--ink) } div, svg { width: 300px }</style>
        <main>NUMBERS</main><div>wide or not</div>
        <div class=charts><svg height=50><polygon points='0,0 9,0 9,9'/><text x=9 y=30>title</text></svg></div>";
    let numbers: String =
        (0..10).map(|k| format!("<b data-key=n{k} data-value={k}>{k}</b> ")).collect();
    let good = good.replace("NUMBERS", &numbers);
    for (scheme, right, wrong, word) in [
        ("light", "", "", ""),
        ("dark", "", "", ""),
        ("light", "--ink: #111;", "--ink: #999;", "light: 765 on 459"),
        ("dark", "--ink: #eee;", "--ink: #666;", "dark: 306 on 51"),
        ("dark", "polygon { fill: var(--paper) }", "polygon { fill: #fff }", "charts of 765"),
        ("light", "<div>wide", "<div style='width: 500px'>wide", "pixels too wide"),
        ("light", "<text x=9", "<text x=290", "beyond the edge of a figure: \"title\""),
        ("light", "data-value=7", "data-value=7.5", "n7: carries 7.5"),
        ("light", ">7</b>", ">8</b>", "n7: shown as 8"),
        ("light", ">7</b>", "><i hidden>7</i></b>", "n7: shown as  for"),
        ("light", "<main>", "<script>console.error('broken')</script><main>", "broken"),
        ("light", "<main>", "<img src='http://127.0.0.1:9/x.png'><main>", "x.png"),
    ] {
        assert!(good.contains(right));
        std::fs::write(&page, good.replacen(right, wrong, usize::from(!right.is_empty()))).unwrap();
        browser.open(&page, PHONE, scheme);
        let mut found = faults(&mut browser, scheme);
        found.extend(wrong_numbers(&mut browser, &results));
        found.extend(browser.complaints(&page));
        assert_eq!(found.is_empty(), word.is_empty(), "{wrong}: {found:?}");
        assert!(found.iter().all(|fault| fault.contains(word)), "{wrong}: {found:?}");
    }
}

/// A slider shows one state at a time, says which, and stays where it is when the contents of the page are exchanged.
#[test]
#[cfg_attr(not(has_chromium), ignore = "needs a browser: set LEAPS_CHROMIUM to Chromium")]
fn sliders_turn_pages() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("ais.json");
    let line = "ais ising --size 6 --field 0.1 --walkers 200 --intervals 32 --json --quiet";
    std::fs::write(&file, stdout(&run_line(line))).unwrap();
    stdout(&run(&["report", file.to_str().unwrap()]));
    let page = file.with_extension("html");
    let mut browser = Browser::start();
    browser.open(&page, DESK, "light");
    let seen = "[...document.querySelectorAll('#walker-slides figure')].filter(f => f.offsetParent).map(f => f.dataset.label)";
    let said = "document.querySelector('output[for=walker-at]').textContent";
    assert_eq!(browser.value(seen), serde_json::json!(["t = 1.00"]));
    let slide = "(() => { const s = document.getElementById('walker-at'); s.value = 4;
        s.dispatchEvent(new Event('input', { bubbles: true })); })()";
    browser.value(slide);
    assert_eq!(browser.value(seen), serde_json::json!(["t = 0.25"]));
    assert_eq!(browser.value(said), "t = 0.25");
    let exchange = "(() => { const m = document.querySelector('main'), html = m.innerHTML; m.innerHTML = ''; m.innerHTML = html; })()";
    browser.value(exchange);
    assert_eq!(browser.value(seen), serde_json::json!(["t = 0.25"]));
    assert_eq!(browser.value("document.getElementById('walker-at').value"), "4");
    assert_eq!(browser.value("document.querySelectorAll('#sample-slides figure').length"), 12);
    assert_eq!(browser.complaints(&page), Vec::<String>::new());
}

/// A page that is served shows new results without being loaded again.
#[test]
#[cfg_attr(not(has_chromium), ignore = "needs a browser: set LEAPS_CHROMIUM to Chromium")]
fn served_pages_are_renewed() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("run");
    stdout(&train(&directory, "--steps 40"));
    let mut child = leaps(&["serve", directory.to_str().unwrap(), "--port", "0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut address = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
    let address = address.trim();
    let mut browser = Browser::start();
    browser.open_address(address, DESK, "light");
    let file = directory.join("results.json");
    let mut results: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    numbers_agree(&mut browser, &results);
    let line = "document.getElementById('live').textContent";
    assert!(browser.value(line).as_str().unwrap().contains("finished, step 40/40"));
    browser.value(
        "window.sameDocument = true;
         window.renewed = new Promise(done => new MutationObserver(() => done(1)).observe(document.querySelector('main'), { childList: true })); 0",
    );
    results["log_z"]["mean"] = 123.25.into();
    std::fs::write(&file, results.to_string()).unwrap();
    assert_eq!(browser.promised("window.renewed"), 1);
    numbers_agree(&mut browser, &results);
    let shown = "document.querySelector('[data-key=\"log_z.mean\"]').innerText";
    let words = browser.value(shown).as_str().unwrap().to_owned();
    assert!(words.starts_with("123.2"), "{words}");
    assert_eq!(browser.value("window.sameDocument"), true);
    let picture = browser.picture(&pictures().join("served-desk-light.png"));
    assert!(picture.starts_with(b"\x89PNG") && picture.len() > 20_000, "{}", picture.len());
    let complaints = browser.complaints_beside(|asked| asked.starts_with(address));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(complaints, Vec::<String>::new());
}
