//! Experiments: from a file to a page, stopped on the way and continued.

#[path = "../common/mod.rs"]
mod common;
mod instances;
mod mistakes;

use std::path::Path;

use common::{fails, files, json, near_exact, number, run, stdout};
use serde_json::Value;

/// Every kind of figure, on nine spins in a field.
const SMALL: &str = r#"
title = "Nine spins"
paper = "nothing of the kind."
about = "A test."
columns = ["steps", "ess", "log_z", "log_z_off", "energy_per_site", "distance_magnetization", "ess_per_step", "seconds"]
[target]
kind = "ising"
size = 30
[sample]
walkers = 1000000
intervals = 30
[[networks]]
name = "perceptron"
model = "no-such-model"
seed = 7
network = { kind = "mlp", hidden = 6 }
train = { steps = 40, batch = 64, pool = 512, warmup = 10, lr = 0.01, validate_every = 20, validate_walkers = 64, validate_intervals = 10 }
[[runs]]
name = "Gibbs"
sampler = "mcmc"
kernel = "heat-bath"
reference = true
chains = 16
steps = 2000
thin = 2
[[runs]]
name = "events"
sampler = "sample"
network = "perceptron"
keep = true
at_beta = [0.1, 0.2, 0.3]
over.intervals = [5, 20]
paper.ess = [[20, 0.75]]
[[runs]]
name = "AIS"
sampler = "ais"
[[figures]]
name = "training"
title = "Training"
kind = "training"
[[figures]]
name = "law"
title = "Law"
kind = "histogram"
y = "magnetization"
[[figures]]
name = "difference"
title = "Difference"
kind = "difference"
y = "energy_per_site"
[[figures]]
name = "correlation"
title = "Correlation"
kind = "correlation"
[[figures]]
name = "sweep"
title = "Sweep"
kind = "sweep"
x = "steps"
y = "ess"
log_x = true
runs = ["events", "AIS"]
[[figures]]
name = "rows"
title = "Rows"
kind = "rows"
x = "ess_per_step"
[[figures]]
name = "temperatures"
title = "Temperatures"
kind = "temperatures"
y = "free_energy_per_site"
[quick]
target = { size = 3, field = 0.1 }
sample.walkers = 1000
[[quick.runs]]
name = "events"
paper.ess = [[20, 0.5]]
[[quick.runs]]
name = "AIS"
paper = { ess_per_step = 0.25 }
"#;

/// Every element is closed in its turn, and nothing in it is not a number.
fn is_xml(text: &str) {
    let mut open = Vec::new();
    for tag in text.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').expect("a tag ends");
        let name =
            tag.trim_start_matches('/').split_whitespace().next().expect("a name").to_owned();
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "{tag}");
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
    assert!(text.starts_with("<svg xmlns=") && !text.contains("NaN"));
}

/// The picture decodes, and something is drawn on it.
fn is_picture(bytes: &[u8]) {
    let mut reader =
        png::Decoder::new(std::io::Cursor::new(bytes)).read_info().expect("a PNG file");
    let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
    let frame = reader.next_frame(&mut pixels).expect("a picture");
    assert_eq!(frame.width, 1080);
    let dark = pixels.chunks(3).filter(|pixel| pixel.iter().all(|part| *part < 128)).count();
    assert!(dark > 100, "{dark} dark pixels");
}

#[test]
fn a_small_experiment_from_its_file_to_its_page() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("nine.toml");
    std::fs::write(&file, SMALL).unwrap();
    let out = scratch.path().join("page");
    let arguments =
        ["reproduce", file.to_str().unwrap(), "--quick", "--out", out.to_str().unwrap()];
    let numbers = json(&run(&[&arguments[..], &["--json", "--device", "cpu"]].concat()));
    assert_eq!(numbers["quick"], true);
    let all = numbers["runs"].as_array().unwrap();
    assert_eq!(all.len(), 4);
    for part in all {
        let result = &part["result"];
        near_exact("energy", &result["observables"]["energy_per_site"]);
        if part["run"] != "Gibbs" {
            near_exact("log Z", &result["log_z"]);
            let distance = &part["distances"]["magnetization"];
            // Noise alone gives about 1; the false alarm rate of 4 is far below 1e-6.
            let ratio = number(&distance["total_variation"]) / number(&distance["noise"]);
            assert!(ratio < 4.0, "{distance}");
        }
    }
    let page = std::fs::read_to_string(out.join("nine.md")).unwrap();
    let exact = format!("{:.6}", number(&all[1]["result"]["log_z"]["exact"]));
    for word in [
        "# Nine spins",
        "**Quick settings**",
        "Target: Ising 3x3 periodic",
        "| events, intervals 20 |",
        "ESS, the paper | ",
        " 0.500 |",
        &exact,
        "`leaps reproduce nine.toml --quick --device cpu`, settings in `nine.toml`",
        "core",
        "mlp, hidden 6",
        "| seed | gradient steps |",
        " | 7 | 40 | 64 |",
        "nine.json",
    ] {
        assert!(page.contains(word), "no '{word}' in\n{page}");
    }
    assert!(!page.contains(scratch.path().to_str().unwrap()), "no places in\n{page}");
    let raw = std::fs::read_to_string(out.join("nine.json")).unwrap();
    assert!(!raw.contains(scratch.path().to_str().unwrap()), "no places in the numbers");
    assert_eq!(serde_json::from_str::<Value>(&raw).unwrap(), numbers);
    for name in ["training", "law", "difference", "correlation", "sweep", "rows", "temperatures"] {
        assert!(page.contains(&format!("(nine-{name}.svg)")), "{name}");
        is_xml(&std::fs::read_to_string(out.join(format!("nine-{name}.svg"))).unwrap());
        is_picture(&std::fs::read(out.join(format!("nine-{name}.png"))).unwrap());
    }
    assert!(out.join("nine-events-intervals-20.npz").is_file());

    // What was done is not done again; what is missing is.
    let lost = out.join("parts/nine-quick/ais.json");
    let before = repeating(&out.join("parts"));
    std::fs::remove_file(&lost).unwrap();
    // A page may be written of what is there alone.
    let page_alone = run(&[&arguments[..], &["--page"]].concat());
    let talk = String::from_utf8_lossy(&page_alone.stderr).into_owned();
    assert!(talk.contains("AIS: not run") || talk.contains("ais: not run"), "{talk}");
    assert_eq!(talk.matches("done before").count(), 3, "{talk}");
    assert!(!lost.exists(), "nothing is run");
    let page = std::fs::read_to_string(out.join("nine.md")).unwrap();
    assert!(page.contains(", not run |") && page.contains("events, intervals 20"), "{page}");
    let again = run(&arguments);
    let talk = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(stdout(&again).contains("events, intervals 20"));
    assert_eq!(talk.matches("done before").count(), 3, "{talk}");
    assert!(!talk.contains("parameters"), "the network is there: {talk}");
    assert!(repeating(&out.join("parts")) == before, "a part that is run again is another");
    let states = repeating(&out);
    let fresh = run(&[&arguments[..], &["--fresh"]].concat());
    assert!(!String::from_utf8_lossy(&fresh.stderr).contains("done before"));
    assert!(repeating(&out) == states, "results of record change from run to run");
    // Times are there for the page, beside what repeats.
    let times = std::fs::read_to_string(lost.with_extension("times.json")).unwrap();
    let times: Value = serde_json::from_str(&times).unwrap();
    assert!(number(&times["seconds"]) > 0.0 && times.get("ess").is_none(), "{times}");
    let page = std::fs::read_to_string(out.join("nine.md")).unwrap();
    assert!(page.contains("| seconds |"), "{page}");
}

/// The files of an experiment that are the same whenever it is run: parts without their times, and states.
fn repeating(out: &Path) -> std::collections::BTreeMap<std::path::PathBuf, Vec<u8>> {
    let mut all = files(out);
    all.retain(|path, _| {
        let name = path.strip_prefix(out).unwrap().to_str().unwrap();
        let part = path.components().any(|folder| folder.as_os_str() == "parts");
        (part && !name.ends_with(".times.json")) || name.ends_with(".npz")
    });
    assert!(!all.is_empty());
    all
}

/// Two samplers on four spins, in no time.
const TINY: &str = r#"
title = "t"
paper = "p"
about = "a"
columns = ["ess", "energy_per_site"]
target = { kind = "ising", size = 2 }
sample = { walkers = 400, intervals = 5 }
runs = [{ name = "one", sampler = "ais" }, { name = "two", sampler = "smc" }]
figures = [{ name = "f", title = "f", kind = "rows", x = "ess" }]
"#;

#[test]
fn doubtful_rows_are_named_on_the_page() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("tiny.toml");
    let care = |walkers: &str| {
        std::fs::write(&file, TINY.replace("walkers = 400", walkers)).unwrap();
        let out = scratch.path().join(walkers);
        let arguments = ["reproduce", file.to_str().unwrap(), "--out", out.to_str().unwrap()];
        let done = run(&[&arguments[..], &["--device", "cpu"]].concat());
        let talk = String::from_utf8_lossy(&done.stderr).into_owned();
        let page = std::fs::read_to_string(out.join("tiny.md")).unwrap();
        let said = talk.lines().filter_map(|line| line.split_once("warning: "));
        let said: Vec<String> = said.map(|(_, sentence)| format!("- {sentence}")).collect();
        let written = page.split("with care:").nth(1).unwrap_or_default().replace("\n  ", " ");
        let written = written.lines().filter(|line| line.starts_with("- ") && !line.contains('`'));
        let written: Vec<String> = written.map(str::to_owned).take(said.len()).collect();
        (said, written, page)
    };
    let (said, written, page) = care("walkers = 30");
    assert!(said.len() >= 2 && said[0].starts_with("- one: only"), "{said:?}");
    assert_eq!(said, written, "the page says what the terminal said:\n{page}");
    let (said, _, page) = care("walkers = 2000");
    assert!(said.is_empty() && !page.contains("with care"), "{page}");
}

/// Temperatures on the way feed figures of every sampler that passes them; a figure without numbers is missed aloud.
#[test]
fn temperatures_on_the_way_are_drawn_or_missed_aloud() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("tiny.toml");
    let text = TINY.replace("size = 2 }", "size = 3, beta = 0.4 }").replace(
        "kind = \"rows\", x = \"ess\"",
        "kind = \"temperatures\", y = \"energy_per_site\"",
    );
    let page = |name: &str, sample: &str| {
        std::fs::write(&file, text.replace("intervals = 5", sample)).unwrap();
        let out = scratch.path().join(name);
        let arguments = ["reproduce", file.to_str().unwrap(), "--out", out.to_str().unwrap()];
        let done = run(&[&arguments[..], &["--device", "cpu"]].concat());
        stdout(&done);
        let page = std::fs::read_to_string(out.join("tiny.md")).unwrap();
        (page, String::from_utf8_lossy(&done.stderr).into_owned(), out)
    };
    let (drawn, talk, out) = page("with", "intervals = 5, at_beta = [0.1, 0.2]");
    assert!(drawn.contains("(tiny-f.svg)") && !drawn.contains("not drawn"), "{drawn}");
    assert!(!talk.contains("not drawn"), "{talk}");
    let chart = std::fs::read_to_string(out.join("tiny-f.svg")).unwrap();
    assert!(chart.contains("one") && chart.contains("two") && chart.contains("exact"), "{chart}");
    let numbers: Value =
        serde_json::from_str(&std::fs::read_to_string(out.join("tiny.json")).unwrap()).unwrap();
    let [one, two] = [0, 1].map(|k| &numbers["runs"][k]["result"]["seed"]);
    assert_ne!(one, two, "every run has a seed of its own");
    let (missed, talk, _) = page("without", "intervals = 5");
    let why = "is not drawn: none of its runs was measured on the way: at_beta asks for that";
    assert!(missed.contains(why) && !missed.contains("tiny-f.svg"), "{missed}");
    assert!(talk.contains(why), "{talk}");
    // Chains have no temperatures on the way.
    let own = "sampler = \"mcmc\", at_beta = [0.1, 0.2]";
    let chains = text.replace("sampler = \"smc\"", own);
    std::fs::write(&file, chains).unwrap();
    let out = scratch.path().join("chains");
    let words = ["sample.at_beta = 0.1,0.2", "mcmc"];
    fails(&["reproduce", file.to_str().unwrap(), "--out", out.to_str().unwrap()], 2, &words);
    assert!(!out.exists(), "nothing is begun");
}

#[test]
fn damaged_parts_are_run_again() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("tiny.toml");
    std::fs::write(&file, TINY).unwrap();
    let out = scratch.path().join("page");
    let talk = || {
        let out = out.to_str().unwrap();
        let done = run(&["reproduce", file.to_str().unwrap(), "--out", out, "--device", "cpu"]);
        String::from_utf8_lossy(&done.stderr).into_owned()
    };
    let first = talk();
    assert!(!first.contains("warning") && !first.contains("done before"), "{first}");
    let part = out.join("parts/tiny/one.json");
    let sum = out.join("parts/tiny/one.json.b3");
    let sound = std::fs::read_to_string(&part).unwrap();
    assert!(sound.contains("\"mean\": "), "{sound}");
    let damage: [&dyn Fn(); 6] = [
        &|| std::fs::write(&part, sound.replace("\"energy_per_site\"", "\"energy\"")).unwrap(),
        &|| std::fs::write(&part, sound.replacen("\"mean\": ", "\"mean\": 1e308", 1)).unwrap(),
        &|| std::fs::write(&part, &sound[..sound.len() / 2]).unwrap(),
        &|| std::fs::write(&part, b"\xff\xfe").unwrap(),
        &|| std::fs::remove_file(&sum).unwrap(),
        &|| std::fs::remove_file(part.with_extension("times.json")).unwrap(),
    ];
    for (number, harm) in damage.iter().enumerate() {
        harm();
        let again = talk();
        assert_eq!(again.matches("warning").count(), 1, "{number}: {again}");
        let line = again.lines().find(|line| line.contains("warning")).unwrap();
        assert!(line.contains("one.json") && line.contains("run again"), "{number}: {line}");
        assert_eq!(again.matches("done before").count(), 1, "the other: {again}");
        let mended = std::fs::read_to_string(&part).unwrap();
        let energy = |text: &str| {
            let part: Value = serde_json::from_str(text).unwrap();
            part["result"]["observables"]["energy_per_site"].clone()
        };
        assert!(energy(&sound).is_object());
        assert_eq!(energy(&mended), energy(&sound), "{number}");
        let after = talk();
        assert!(!after.contains("warning"), "{number}: {after}");
        assert_eq!(after.matches("done before").count(), 2, "{number}: {after}");
    }
}

/// Two targets, of which one has a network, each beside clusters.
const TARGETS: &str = r#"
title = "Two targets"
theirs = "published"
paper = "elsewhere."
about = "A test."
columns = ["ess", "log_z", "energy_per_site", "distance_abs_magnetization", "mode_masses"]
sample = { walkers = 400, intervals = 20 }
[[networks]]
name = "net"
[[runs]]
name = "clusters"
sampler = "mcmc"
kernel = "swendsen-wang"
reference = true
chains = 32
steps = 1000
burn_in = 100
thin = 5
[[runs]]
name = "walkers"
sampler = "sample"
network = "net"
[[targets]]
name = "small"
target = { kind = "ising", size = 8, beta = 0.4407 }
networks = [{ name = "net", model = "ising-8-critical" }]
runs = [{ name = "walkers", paper = { ess = 0.875 } }]
[[targets]]
name = "other"
target = { kind = "ising", size = 4, beta = 0.4 }
networks = [{ name = "net", model = "ising-8-critical" }]
[[targets]]
name = "missing"
target = { kind = "potts", q = 3, size = 4, beta = 0.5 }
networks = [{ name = "net", model = "no-such-model" }]
runs = [{ name = "walkers", paper = { ess = 0.125 } }]
[[figures]]
name = "ess"
title = "ESS"
kind = "rows"
x = "ess"
"#;

#[test]
fn several_targets_share_a_page_and_networks_may_be_missing() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("two.toml");
    std::fs::write(&file, TARGETS).unwrap();
    let out = scratch.path().join("page");
    let done = run(&[
        "reproduce",
        file.to_str().unwrap(),
        "--out",
        out.to_str().unwrap(),
        "--json",
        "--device",
        "cpu",
    ]);
    let talk = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(talk.contains("[9/9]") && talk.contains("is of another target: it is left out"));
    let numbers = json(&done);
    let all = numbers["runs"].as_array().unwrap();
    assert_eq!(all.len(), 6);
    let walkers = &all[1];
    assert_eq!(walkers["name"], "small, walkers");
    near_exact("log Z", &walkers["result"]["log_z"]);
    near_exact("energy", &walkers["result"]["observables"]["energy_per_site"]);
    near_exact("a mode", &walkers["result"]["mode_masses"][0]);
    let distance = &walkers["distances"]["abs_magnetization"];
    // As for other laws: noise alone gives about 1.
    assert!(number(&distance["total_variation"]) / number(&distance["noise"]) < 4.0, "{distance}");
    // The reference stands beside, and is of the same target.
    let beside = number(&walkers["reference"]["energy_per_site"]["mean"]);
    assert_eq!(beside, number(&all[0]["result"]["observables"]["energy_per_site"]["mean"]));
    for (part, name) in [(3, "other, walkers"), (5, "missing, walkers")] {
        assert_eq!(all[part]["name"], name);
        assert_eq!(all[part]["absent"], "not trained here", "{}", all[part]);
    }
    // Lines are broken anywhere.
    let page = std::fs::read_to_string(out.join("two.md")).unwrap().replace('\n', " ");
    for word in [
        "Targets: Ising 8x8 periodic, beta 0.4407; Ising 4x4",
        "Published: elsewhere.",
        "| small, walkers | 0.9",
        " 0.875 |",
        "| missing, walkers, not trained here |  | 0.125 |",
        "ESS, published",
        "masses of modes",
        "TV(\\|m\\|)",
        "shipped as ising-8-critical",
    ] {
        assert!(page.contains(word), "no '{word}' in\n{page}");
    }
    assert!(!page.contains("| seed |"), "no network has one of its own:\n{page}");
    let chart = std::fs::read_to_string(out.join("two-ess.svg")).unwrap();
    is_xml(&chart);
    assert!(chart.contains("missing, walkers") && !chart.contains("clusters"), "{chart}");
}

/// As `leaps sample --set target.size=10` does: a network is not trained where one of another lattice fits.
#[test]
fn networks_of_other_lattices_are_used_where_they_fit() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("other.toml");
    let text = TARGETS.split("[[targets]]").next().unwrap();
    let figures = TARGETS.split("[[figures]]").nth(1).unwrap();
    let target = |name: &str, size: usize, model: &str| {
        format!(
            "[[targets]]\nname = '{name}'\ntarget = {{ kind = 'ising', size = {size}, beta = 0.4407 }}\n\
             networks = [{{ name = 'net', model = '{model}', train.steps = 2 }}]\n"
        )
    };
    let large = target("large", 10, "ising-8-critical");
    // Too small for what the network looks at; without settings, nothing is trained instead.
    let small = target("small", 4, "ising-8-critical").replace(", train.steps = 2", "");
    std::fs::write(&file, format!("{text}{large}{small}[[figures]]{figures}")).unwrap();
    let out = scratch.path().join("page");
    let arguments = ["reproduce", file.to_str().unwrap(), "--out", out.to_str().unwrap()];
    let done = run(&[&arguments[..], &["--json", "--device", "cpu"]].concat());
    let talk = String::from_utf8_lossy(&done.stderr).into_owned();
    let numbers = json(&done);
    assert!(talk.contains("ising-8-critical was trained on Ising 8x8"), "{talk}");
    assert!(talk.contains("ising-8-critical does not fit Ising 4x4"), "{talk}");
    assert!(!out.join("networks").exists(), "a network is trained: {talk}");
    let [walkers, absent] = [1, 3].map(|part| &numbers["runs"][part]);
    near_exact("log Z", &walkers["result"]["log_z"]);
    near_exact("energy", &walkers["result"]["observables"]["energy_per_site"]);
    assert!(number(&walkers["result"]["ess"]) > 0.5, "{}", walkers["result"]["ess"]);
    assert_eq!(absent["absent"], "not trained here");
    let page = std::fs::read_to_string(out.join("other.md")).unwrap();
    assert!(
        page.contains("| ising-8-critical, trained on Ising 8x8 periodic, beta 0.4407 |"),
        "{page}"
    );
}

#[test]
fn records_are_quickly_checked() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("page");
    let out = out.to_str().unwrap();
    let numbers =
        json(&run(&["reproduce", "records", "--quick", "--out", out, "--json", "--device", "cpu"]));
    let walkers = &numbers["runs"][1]["result"];
    near_exact("log Z", &walkers["log_z"]);
    assert!(number(&walkers["ess"]) > 0.9, "{walkers}");
    assert_eq!(walkers["scheme"], "events");
    assert_eq!(walkers["kernel"], "none");
}

#[test]
fn methods_are_counted_alike() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("rates.toml");
    let text = TINY.replace("columns = [\"ess\",", "columns = [\"effective_per_second\",").replace(
        "sampler = \"smc\" }]",
        "sampler = \"mcmc\", kernel = \"heat-bath\", chains = 8, steps = 200 }]",
    );
    assert!(text.contains("heat-bath") && text.contains("effective_per_second"));
    std::fs::write(&file, text).unwrap();
    let out = scratch.path().join("page");
    let arguments = ["reproduce", file.to_str().unwrap(), "--out", out.to_str().unwrap()];
    let numbers = json(&run(&[&arguments[..], &["--json", "--device", "cpu"]].concat()));
    let page = std::fs::read_to_string(out.join("rates.md")).unwrap();
    assert!(page.contains("| effective/s |"), "{page}");
    let [walkers, chains] = [0, 1].map(|k| &numbers["runs"][k]["result"]);
    // Nothing was resampled: families are walkers, so that the rate is ESS times walkers over seconds.
    let (ess, seconds) = (number(&walkers["ess"]), number(&walkers["seconds"]));
    let rate = number(&walkers["effective_samples_per_second"]);
    assert!((rate * seconds / (400.0 * ess) - 1.0).abs() < 1e-9, "{rate} {ess} {seconds}");
    assert!(number(&chains["effective_samples_per_second"]) > 0.0);
    assert!(number(&chains["discs"]["ess_per_second"]) > 0.0);
}

#[cfg(unix)]
#[test]
fn finished_parts_survive_an_interrupt() {
    let scratch = tempfile::tempdir().unwrap();
    let text = r#"
        title = "t"
        paper = "p"
        about = "a"
        columns = ["ess"]
        target = { kind = "ising", size = 4 }
        runs = [{ name = "first", sampler = "ais" },
                { name = "long", sampler = "mcmc", kernel = "wolff", chains = 2, steps = 1000000000, thin = 1000000 }]
        figures = [{ name = "f", title = "f", kind = "rows", x = "ess" }]
    "#;
    std::fs::write(scratch.path().join("slow.toml"), text).unwrap();
    let mut child = common::leaps(&["reproduce", "slow.toml"])
        .current_dir(scratch.path())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let first = scratch.path().join("results/slow/parts/slow/first.json");
    for _ in 0..600 {
        if first.exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    common::send("-INT", &child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let mut talk = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut talk).unwrap();
    assert!(talk.contains("finished parts are kept"), "{talk}");
    assert!(first.is_file() && !scratch.path().join("results/slow/slow.md").exists());
}
