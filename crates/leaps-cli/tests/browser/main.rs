//! Pages in a browser: no complaints, no network, numbers of the results, light and dark, on a desk and on a phone.
//!
//! Pictures of the pages are left in the folder that is named at the end.
#![cfg(unix)]

#[path = "../common/mod.rs"]
mod common;
mod devtools;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

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

fn lookup<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(value, |value, key| match key.parse::<usize>() {
        Ok(place) => &value[place],
        Err(_) => &value[key],
    })
}

/// Every number that the browser shows is the one of the results.
fn numbers_agree(browser: &mut Browser, results: &Value) {
    let shown = browser.value(
        "[...document.querySelectorAll('main [data-key]')].map(e => [e.dataset.key, e.dataset.value])",
    );
    let shown = shown.as_array().expect("numbers");
    assert!(shown.len() >= 10, "{shown:?}");
    for pair in shown {
        let (key, value) = (pair[0].as_str().unwrap(), pair[1].as_str().unwrap());
        let own = lookup(results, key).as_f64();
        assert_eq!(own, value.parse().ok(), "{key}");
    }
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
            let [body, chart, title] = brightness(browser);
            assert_eq!(body, chart, "{scheme}: charts lie on the paper of the page");
            let (bright, dark) = if scheme == "dark" { (title, body) } else { (body, title) };
            assert!(bright - dark > 400.0, "{scheme}: {bright} on {dark}");
            // Wide tables scroll within themselves; the page does not.
            let over = browser.value("document.documentElement.scrollWidth - window.innerWidth");
            assert!(over.as_f64().unwrap() <= 0.0, "{name} on a {screen}: {over} pixels too wide");
            let outside = browser.value(
                "[...document.querySelectorAll('.charts text')].filter(text => {
                    const own = text.getBoundingClientRect(), all = text.closest('.charts > svg').getBoundingClientRect();
                    return own.left < all.left - 1 || own.right > all.right + 1 || own.top < all.top - 1 || own.bottom > all.bottom + 1;
                }).map(text => text.textContent)",
            );
            assert_eq!(outside, serde_json::json!([]), "{name}: words beyond the edge of a figure");
            assert_eq!(
                browser.complaints(page),
                Vec::<String>::new(),
                "{name}, {screen}, {scheme}"
            );
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
    let shown = "document.querySelector('[data-key=\"log_z.mean\"]').dataset.value";
    assert_eq!(browser.value(shown), "123.25");
    assert_eq!(browser.value("window.sameDocument"), true);
    let picture = browser.picture(&pictures().join("served-desk-light.png"));
    assert!(picture.starts_with(b"\x89PNG") && picture.len() > 20_000, "{}", picture.len());
    let complaints = browser.complaints_beside(|asked| asked.starts_with(address));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(complaints, Vec::<String>::new());
}
