//! Configurations survive a round trip, and nothing makes the parser panic.

use std::path::Path;

use leaps::parse::{count, number, seed};
use leaps::path::Points;
use leaps::spec::RunSpec;
use leaps::target::{Field, Size};
use proptest::prelude::*;

use super::*;

fn layers(text: &str, set: &[&str]) -> Result<Layers> {
    let mut layers = Layers::default();
    layers.parse_file(text, Path::new("run.toml"))?;
    let words: Vec<String> = set.iter().map(|word| (*word).to_owned()).collect();
    layers.set(&words)?;
    Ok(layers)
}

fn resolve(text: &str, set: &[&str]) -> Result<RunSpec> {
    let layers = layers(text, set)?;
    let config = layers.resolve()?;
    layers.problem(&config)?;
    Ok(config)
}

fn message(text: &str, set: &[&str]) -> String {
    crate::error::one_line(&resolve(text, set).unwrap_err())
}

#[test]
fn settings_in_advice_of_the_library_are_flags() {
    let spoken = super::layers::flags_in;
    assert_eq!(spoken("start over with `fresh`"), "start over with --fresh");
    assert_eq!(spoken("`train.from` a and a new `out`"), "--from a and a new --out");
    assert_eq!(spoken("see `b3sum`, or none"), "see `b3sum`, or none");
}

#[test]
fn printed_configurations_parse_back_to_themselves() {
    for text in [
        "seed = 3\n[target]\nkind = 'ising'",
        "[target]\nkind = 'ising'\nsize = '5x7'\nfield = -0.25\nboundary = 'free'\ncoupling = -2",
        "[target]\nkind = 'ising'\nsize = [2, 2]\nfield = [0.1, 0.2, -0.3, 0]",
        "[target]\nkind = 'potts'\nq = 5\nsize = [3, 4, 5]\n[path]\nschedule = 'adaptive'",
        "[target]\nkind = 'spin-glass'\ncouplings = 'gaussian'\nfield = 0.1\n\
         [path]\nterms = {field = 'trigonometric'}",
        "[target]\nkind = 'spin-glass'\ngeometry = 'complete'\nsize = 12",
        "[target]\nkind = 'rbm'\nvisible = 3\nhidden = 2\n[sample]\nbetas = [0.1, 0.5, 1.0]",
        "path.table = [[0, 0], [0.5, 0.8], [1, 1]]\ntarget.kind = 'ising'",
        "[target]\nkind = 'blume-capel'\nsize = [3, 4]\ncrystal_field = 0.5\nfield = 0.1",
        "[target]\nkind = 'clock'\nq = 5\ndimensions = 3\nsize = 3",
        "[target]\nkind = 'baxter-wu'\nsize = 6\nboundary = 'free'",
        "[target]\nkind = 'lattice-gas'\nchemical_potential = -2\n",
        "[target]\nkind = 'ashkin-teller'\nfour_spin = 0.25\nsize = 4",
        "[target]\nkind = 'lattice-model'\nsize = 4\nspins = [-1, 0, 1]\nfield = 0.2\n\
         [[target.interactions]]\noffsets = [[0, 0], [0, 1]]\ntable = [[0, 1, 2], [3, 4, 5], [6, 7, 8.5]]\n\
         [[target.interactions]]\noffsets = [[0, 0], [0, 1], [1, 0]]\nstrength = 0.3\nterm = 'three'",
        "target.kind = 'rbm'\n[network]\nkind = 'hollow-graph'\norders = 3\nhead = 5",
    ] {
        let config = resolve(text, &[]).unwrap();
        let printed = to_toml(&config);
        assert_eq!(resolve(&printed, &[]).unwrap(), config, "{printed}");
        assert_eq!(to_toml(&resolve(&printed, &[]).unwrap()), printed);
    }
}

#[test]
fn later_layers_win() {
    let text = "seed = 3\n[target]\nkind = 'ising'\nsize = 4\n[sample]\nwalkers = 10";
    let config = resolve(text, &["sample.walkers=20", "target.size=3x4", "seed=9"]).unwrap();
    assert_eq!((config.walkers.walkers, config.seed), (20, 9));
    assert_eq!(config.target.size, Some(Size(vec![3, 4])));
    assert_eq!(config.target.dimensions, Some(2));
}

#[test]
fn errors_name_file_line_key_value_and_condition() {
    let ising = "[target]\nkind = 'ising'\n";
    for (text, expected) in [
        ("[sample]\nwalkers = 0", "run.toml:4: sample.walkers = 0: must be from 2 to"),
        ("[sample]\nwalkers = 'x'", "run.toml:4: sample.walkers = \"x\": must be a whole number"),
        ("[sample]\nwalkers = -3", "run.toml:4: sample.walkers = -3: must be a whole number"),
        (
            "[sample]\nwalkrs = 5",
            "run.toml:4: sample.walkrs: unknown key; did you mean sample.walkers?",
        ),
        ("size = 1", "run.toml:3: target.size = 1: must be at least 2"),
        ("size = 1.5", "run.toml:3: target.size = 1.5: must be a length such as 15"),
        ("q = 3", "run.toml:3: target.q = 3: must be left out for ising"),
        ("beta = nan", "run.toml:3: target.beta = NaN: must be finite"),
        (
            "field = [1, 2]",
            "run.toml:3: target.field = 2 values: must be one number, or one for each",
        ),
        ("field = inf", "run.toml:3: target.field = inf: must be finite"),
        ("[path]\nratio = 0", "run.toml:4: path.ratio = 0: must be from 1e-6 to 1e6"),
        ("[path]\ntable = [[0, 1]]", "run.toml:4: path.table = "),
        (
            "[path.terms]\nfield = 'linear'",
            "run.toml:4: path.terms.field = linear: must be a schedule of an energy term",
        ),
        (
            "[path.terms]\nfield = 'x'",
            "run.toml:4: path.terms.field = \"x\": must be one of linear",
        ),
        (
            "[sample]\nbetas = [0.5, 0.1]",
            "run.toml:4: sample.betas = 0.5,0.1: must be two or more rising",
        ),
        ("size = ", "run.toml:3:8: "),
    ] {
        let got = message(&format!("{ising}{text}\n"), &[]);
        assert!(got.starts_with(expected), "{text}\n  got {got}\n  not {expected}");
        assert!(!got.contains('\n'));
    }
}

#[test]
fn whole_numbers_may_have_an_exponent() {
    let text = "seed = 2e1\n[target]\nkind = 'ising'\nsize = 1e1\n[train]\nsteps = 2e3\n[network]\nkind = 'lec'\nkernels = [3.0, 5]\n";
    let config = resolve(text, &["train.steps=1e3", "sample.walkers=5.0"]).unwrap();
    assert_eq!((config.seed, config.train.steps, config.walkers.walkers), (20, 1000, 5));
    assert_eq!(config.network.kernels, Some(vec![3, 5]));
    assert_eq!(config.target.build().unwrap().sites(), 100);
    for word in ["train.steps=1.5", "train.steps=1e300", "train.steps=nan", "train.steps=-1e3"] {
        let got = message(text, &[word]);
        let key = "--set train.steps = ";
        assert!(got.starts_with(key) && got.contains("a whole number from 0"), "{got}");
    }
}

#[test]
fn missing_target_says_what_to_write() {
    assert!(message("seed = 1", &[]).contains("target.kind"));
    assert!(message("target.kind = 'file'", &[]).contains("target.path"));
}

proptest! {
    #[test]
    fn never_panics_on_bytes(text in "\\PC{0,80}") {
        let _ = resolve(&text, &[]);
    }

    #[test]
    fn never_panics_on_almost_valid_text(
        kind in "(ising|potts|spin-glass|rbm|file|maxcut|independent-set|blume-capel|clock|baxter-wu|lattice-gas|ashkin-teller|lattice-model|x)",
        keys in proptest::collection::vec(
            ("(target|path|sample)\\.[a-z_]{1,12}|target\\.(size|dimensions|field|beta|q|path|visible|geometry|spins|interactions)|\
              path\\.(ratio|table|schedule|terms\\.field)|sample\\.(walkers|betas|thin|ess_threshold)|seed",
             "-?[0-9]{1,2}|'[a-z0-9:,x.-]{0,6}'|\\[[0-9., \\[\\]]{0,8}\\]|nan|-inf|true|\\{\\}|1979-05-27"),
            0..5),
    ) {
        let mut text = format!("target.kind = '{kind}'\n");
        let mut set = Vec::new();
        for (key, value) in &keys {
            text += &format!("{key} = {value}\n");
            set.push(format!("{key}={value}"));
        }
        // Not built: some of these ask for a great many sites.
        let _ = layers(&text, &[]).and_then(|layers| layers.resolve());
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        let kind = format!("target.kind = '{kind}'");
        let _ = layers(&kind, &set).and_then(|layers| layers.resolve());
    }

    #[test]
    fn never_panics_on_words(word in "\\PC{0,40}") {
        let _ = resolve("target.kind = 'ising'", &[&word]);
        let _ = word.parse::<Size>();
        let _ = word.parse::<Field>();
        let _ = word.parse::<Points>();
        let _ = (count(&word), number(&word), seed(&word));
    }
}
