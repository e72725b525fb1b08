//! Wrong flags, each refused in one line that names it, and what users look up.

mod common;

use common::{fails, leaps, refused, run, run_line, stdout};

#[test]
fn bad_flags_are_named_with_their_values() {
    for (line, words) in [
        ("", &["no verb", "--help"][..]),
        ("frobnicate", &["frobnicate"]),
        ("exact", &["TARGET", "--config"]),
        ("exact isin", &["TARGET = isin", "ising, potts"]),
        ("exact ising --sizee 3", &["--sizee", "--size"]),
        ("exact ising --size", &["--size", "value"]),
        ("exact ising --size abc", &["--size = abc", "15x20"]),
        ("exact ising --size 1", &["--size = 1", "at least 2"]),
        ("exact ising --size 0x4", &["--size = 0", "at least 2"]),
        ("exact ising --size 9x9 --dimensions 3", &["--dimensions = 3", "9x9"]),
        ("exact ising --size 4 --dimensions 9", &["--dimensions = 9", "from 1 to 4"]),
        ("exact ising --size 1x1x1x1x1", &["--size = 1x1x1x1x1", "one to 4 lengths"]),
        ("exact ising --size 99999999999999999999", &["--size = 9999", "9223372036854775807"]),
        ("ais ising --walkers 18446744073709551615", &["--walkers = 184", "9223372036854775807"]),
        ("ais ising --walkers 1e20", &["--walkers = 1e20", "1e15"]),
        (
            "ais ising --set sample.walkers=18446744073709551616",
            &["sample.walkers", "92233720368547"],
        ),
        ("exact ising --size 400000x400000", &["--size = ", "sites"]),
        ("exact ising --beta nan", &["--beta = nan", "finite"]),
        ("exact ising --temperature 0", &["beta of --temperature 0 = inf", "finite"]),
        ("exact ising --temperature cold", &["--temperature = cold", "finite number"]),
        ("exact ising --beta 1 --temperature 1", &["--temperature", "--beta"]),
        (
            "exact ising --temperature 2 --set target.beta=0.5",
            &["--temperature 2", "--set target.beta", "give one of them"],
        ),
        (
            "mcmc ising --temperature 2.5 --betas 0.1,0.3",
            &["--betas = 0.1,0.3", "the target's beta 0.4"],
        ),
        ("exact ising --at-beta 0.1,0.2", &["--at-beta", "belongs to", "'leaps sample'"]),
        ("init ising --conditional-ess 0.9", &["--conditional-ess", "'leaps ais', 'leaps smc'"]),
        ("exact ising --coupling x", &["--coupling = x", "number"]),
        ("exact ising --field 1,x", &["--field = 1,x", "commas"]),
        ("exact ising --size 2 --field 1,2", &["--field = 2 values", "4 sites"]),
        ("exact ising --boundary open", &["--boundary = open", "periodic, free"]),
        ("exact ising --q 3", &["--q = 3", "ising", "potts"]),
        ("exact ising model.txt", &["PATH", "file"]),
        ("exact potts --q 1", &["--q = 1", "from 2 to 255"]),
        ("exact spin-glass --couplings levy", &["--couplings = levy", "pm1, gaussian"]),
        ("exact spin-glass --geometry complete --size 4x4", &["--size = 4x4", "number of spins"]),
        ("exact spin-glass --geometry complete --boundary free", &["--boundary", "complete"]),
        ("exact rbm --visible 0", &["--visible = 0", "from 1"]),
        ("exact rbm --disorder-seed -1", &["--disorder-seed"]),
        ("exact file", &["target.path", "file of pairs"]),
        ("exact ising --config run.toml", &["TARGET", "--config"]),
        ("exact ising --method magic", &["--method = magic", "kaufman"]),
        ("exact ising --size 3 --field 0.1 --method kaufman", &["Kaufman", "does not apply"]),
        ("ais ising --device gpu", &["--device = gpu: must be auto, cpu, cuda"]),
        ("exact ising --device cuda", &["--device = cuda", "only demo, train", "leave it out"]),
        (
            "smc ising --device cuda --kernel wolff",
            &["--kernel = wolff", "heat-bath and metropolis", "the device cpu"],
        ),
        (
            "mcmc ising --device cuda --kernel swendsen-wang",
            &["--kernel = swendsen-wang", "heat-bath and metropolis", "the device cpu"],
        ),
        (
            "mcmc ising --device cuda --kernel houdayer",
            &["--kernel = houdayer", "parallel-tempering", "the device cpu"],
        ),
        (
            "mcmc ising --device cuda --kernel parallel-tempering --tempering-kernel wolff",
            &["--tempering-kernel = wolff", "heat-bath and metropolis", "the device cpu"],
        ),
        ("exact ising --threads 0", &["--threads = 0", "from 1"]),
        ("exact ising --seed -4", &["--seed"]),
        ("exact ising --quiet --verbose", &["--quiet", "--verbose"]),
        ("exact ising --set sample.walkers", &["--set sample.walkers", "KEY=VALUE"]),
        ("exact ising --set sample.walkrs=3", &["sample.walkrs", "did you mean sample.walkers?"]),
        ("exact ising --set walkers=3", &["walkers", "did you mean sample.walkers?"]),
        ("exact ising --set target.size=x", &["--set target.size", "15x20"]),
        ("exact ising --set path.terms.field=linear", &["path.terms.field", "bonds"]),
        ("ais ising --walkers 9 --set sample.walkers=8", &["--walkers", "--set sample.walkers"]),
        ("exact ising --seed 9 --set seed=8", &["--seed", "--set seed"]),
        ("exact ising --set target.size=8 --size 4", &["--size", "--set target.size"]),
        ("man frobnicate", &["frobnicate", "verb"]),
        ("completions tcsh", &["SHELL = tcsh", "bash"]),
    ] {
        refused(line, words);
    }
}

#[test]
fn missing_files_end_with_4() {
    for line in
        ["check /nowhere/run.toml", "exact --config /nowhere/run.toml", "exact file /nowhere/x"]
    {
        let output = run_line(line);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(4), "leaps {line}: {errors}");
        assert_eq!(errors.lines().count(), 1, "{errors}");
        assert!(errors.contains("/nowhere/"), "{errors}");
        assert_eq!(errors.matches(common::NOT_FOUND).count(), 1, "{errors}");
    }
}

#[test]
fn misspelt_names_have_a_hint() {
    let meant = "did you mean ising-15-critical?";
    refused("train ising-15-critcal --out x", &["FILE|DIR|TARGET = ising-15-critcal", meant]);
    refused("sample --model isng-15-critical", &["--model = isng-15-critical", meant]);
    for line in ["compare discs-isng-15", "check discs-ising-15.toml"] {
        let words: Vec<&str> = line.split_whitespace().collect();
        let meant = "did you mean the shipped settings discs-ising-15?";
        fails(&words, 4, &[words[1], common::NOT_FOUND, meant]);
    }
}

#[test]
fn experiments_are_no_configurations() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../leaps/experiments/glass.toml");
    for (verb, name) in [("train", "glass"), ("check", "glass"), ("compare", file)] {
        let line = format!("{verb} {name}{}", if verb == "train" { " --out x" } else { "" });
        refused(&line, &["is an experiment", &format!("'leaps reproduce {name}' runs it")]);
    }
}

#[cfg(unix)]
#[test]
fn words_that_are_not_text_are_named() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let odd = OsStr::from_bytes(b"b\xffd");
    for line in ["exact file", "exact ising --field", "ais ising --set"] {
        let words: Vec<&str> = line.split_whitespace().collect();
        let output = leaps(&words).arg(odd).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {errors}");
        assert!(errors.contains("b\u{fffd}d") && errors.contains("UTF-8"), "{line}: {errors}");
        assert_eq!(errors.lines().count(), 1, "{errors}");
    }
}

#[test]
fn numerical_failures_end_with_3_and_a_way_out() {
    let output = run_line("exact ising --size 3 --field 0.1 --beta 1e308");
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{errors}");
    assert!(errors.contains("lower --beta"), "{errors}");
}

/// Every verb.
const VERBS: &[&str] = &[
    "demo",
    "train",
    "sample",
    "models",
    "status",
    "watch",
    "serve",
    "report",
    "plot",
    "rates",
    "exact",
    "free-energy",
    "ais",
    "smc",
    "mcmc",
    "minimize",
    "compare",
    "table",
    "reproduce",
    "import",
    "convert",
    "init",
    "check",
    "completions",
    "man",
];

#[test]
fn help_is_as_reviewed() {
    insta::assert_snapshot!(
        "help",
        stdout(&leaps(&["--help"]).env("COLUMNS", "100").output().unwrap())
    );
    for verb in VERBS {
        let output = leaps(&[verb, "--help"]).env("COLUMNS", "100").output().unwrap();
        insta::assert_snapshot!(format!("help_{verb}"), stdout(&output));
    }
}

#[test]
fn manual_pages_name_the_flags() {
    let page = stdout(&run(&["man"]));
    assert!(page.contains(".TH leaps 1") && page.contains("exact"), "{page}");
    let page = stdout(&run(&["man", "exact"]));
    assert!(page.contains("boundary") && page.contains("Inverse temperature"), "{page}");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("man1");
    stdout(&run(&["man", "--out", path.to_str().unwrap()]));
    let pages = std::fs::read_dir(&path).unwrap();
    let mut pages: Vec<String> =
        pages.map(|page| page.unwrap().file_name().into_string().unwrap()).collect();
    pages.sort();
    // The program and its verbs, and no second page of each under 'help'.
    let mut wanted: Vec<String> = VERBS.iter().map(|verb| format!("leaps-{verb}.1")).collect();
    wanted.push("leaps.1".to_owned());
    wanted.sort();
    assert_eq!(pages, wanted);
    let page = std::fs::read_to_string(path.join("leaps.1")).unwrap();
    assert!(page.contains("leaps\\-exact(1)") && !page.contains("leaps\\-help"), "{page}");
}

#[test]
fn completions_for_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = stdout(&run(&["completions", shell]));
        assert!(script.contains("boundary") && script.contains("spin-glass"), "{shell}");
    }
}

#[test]
fn the_version_names_package_commit_and_features() {
    let short = format!("leaps {}", env!("CARGO_PKG_VERSION"));
    assert_eq!(stdout(&run(&["-V"])), format!("{short}\n"));
    let long = stdout(&run(&["--version"]));
    let build = long.strip_prefix(&short).unwrap().trim().trim_matches(['(', ')']);
    let (commit, features) = build.split_once("; features: ").expect("commit and features");
    assert!(commit.starts_with("commit ") || commit == "no commit known", "{long}");
    assert_eq!(features, if cfg!(feature = "cuda") { "cuda" } else { "none" }, "{long}");
}
