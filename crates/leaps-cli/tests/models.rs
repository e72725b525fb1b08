//! Sampling with a trained network, its rates, and refusals of models that are none.

mod common;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use common::{fails, files, json, near_exact, number, run, stdout, train};
use leaps::device::NoProgress;
use leaps::net::{FreeEnergy, FreeEnergySpec};
use leaps::path::Schedule;
use leaps::store::Model;
use leaps::target::{Boundary, Lattice, Pairwise, Target};
use leaps::train::{Batch, Loss, Objective};
use safetensors::Dtype;
use safetensors::tensor::{SafeTensors, TensorView, serialize};

/// A tiny network, trained once for all tests.
fn model() -> &'static str {
    static RUN: OnceLock<(tempfile::TempDir, String)> = OnceLock::new();
    let (_, name) = RUN.get_or_init(|| {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().join("run");
        stdout(&train(&directory, "--steps 300"));
        let name = directory.to_str().unwrap().to_owned();
        (scratch, name)
    });
    name
}

#[test]
fn sampling_agrees_with_enumeration() {
    let line = [
        "sample",
        "--model",
        model(),
        "--json",
        "--quiet",
        "--walkers",
        "4000",
        "--trace-points",
        "7",
    ];
    for more in [
        &[][..],
        &["--intervals", "3"],
        &["--sweeps", "1", "--intervals", "10"],
        &["--ess-threshold", "0.9", "--intervals", "20"],
    ] {
        let result = json(&run(&[&line[..], more].concat()));
        assert_eq!(result["scheme"], "events");
        for name in
            ["energy_per_site", "magnetization", "abs_magnetization", "heat_capacity_per_site"]
        {
            near_exact(&format!("{more:?} {name}"), &result["observables"][name]);
        }
        near_exact(&format!("{more:?} log_z"), &result["log_z"]);
        assert!(number(&result["elbo"]) <= number(&result["log_z"]["mean"]));
        assert!(number(&result["network_passes_per_walker"]) > 3.0);
        assert!(number(&result["energy_calls_per_walker"]) > 3.0);
        assert!(!result["path"].as_array().unwrap().is_empty());
        // One walker at seventeen times, or at all times of a coarser grid, from the start to the end.
        let frames = result["snapshots"]["frames"].as_array().unwrap();
        let times: Vec<f64> = frames.iter().map(|frame| number(&frame["t"])).collect();
        assert!(times.is_sorted_by(|a, b| a < b) && (4..=17).contains(&times.len()), "{times:?}");
        assert_eq!([times[0], times[times.len() - 1]], [0.0, 1.0]);
        assert_eq!(result["snapshots"]["sample"].as_array().unwrap().len(), 12);
        for name in ["log_weight", "energy_per_site", "magnetization"] {
            let mass = result["histograms"][name]["mass"].as_array().unwrap();
            let sum: f64 = mass.iter().map(number).sum();
            assert!((sum - 1.0).abs() < 1e-9, "{name}: {sum}");
        }
    }
    for scheme in ["euler", "trapezoid"] {
        let result = json(&run(&[&line[..], &["--scheme", scheme]].concat()));
        assert_eq!(result["scheme"], scheme);
        // Both have a bias that shrinks with the interval; here it is far below a part in ten.
        let log_z = &result["log_z"];
        assert!(
            (number(&log_z["mean"]) - number(&log_z["exact"])).abs() < 0.5,
            "{scheme}: {log_z}"
        );
    }
}

#[test]
fn another_temperature_is_still_exact() {
    let set = ["--set", "target.beta=0.3", "--walkers", "4000", "--json"];
    let result = json(&run(&[&["sample", "--model", model()], &set[..]].concat()));
    assert_eq!(result["target"]["beta"], 0.3);
    near_exact("log_z", &result["log_z"]);
    near_exact("energy", &result["observables"]["energy_per_site"]);
}

#[test]
fn one_run_gives_every_temperature_on_the_way() {
    let line = ["sample", "--model", model(), "--walkers", "4000", "--intervals", "7"];
    let at = ["--at-beta", "0.4407,0.1,0.3"];
    for more in [
        &[][..],
        &["--set", "path.schedule=trigonometric"],
        &["--sweeps", "1", "--ess-threshold", "0.9"],
        &["--set", "target.beta=0.5"],
    ] {
        let result = json(&run(&[&line[..], &at, more, &["--json"]].concat()));
        let all = result["at_beta"].as_array().unwrap();
        let betas: Vec<f64> = all.iter().map(|point| number(&point["beta"])).collect();
        assert_eq!(betas, [0.1, 0.3, 0.4407]);
        for point in all {
            let name = format!("{more:?} at {}", point["beta"]);
            for key in ["log_z", "free_energy_per_site"] {
                near_exact(&name, &point[key]);
            }
            for key in ["energy_per_site", "heat_capacity_per_site", "abs_magnetization"] {
                near_exact(&format!("{name}: {key}"), &point["observables"][key]);
            }
            assert!(number(&point["ess"]) > 0.2 && number(&point["ess_error"]) >= 0.0);
        }
        if number(&result["target"]["beta"]) == 0.4407 {
            assert_eq!(all[2]["log_z"], result["log_z"]);
            assert_eq!(all[2]["t"], 1.0);
        }
        assert!(number(&result["intervals"]) >= 9.0, "{}", result["intervals"]);
    }
    let text = stdout(&run(&[&line[..], &at].concat()));
    let rows: Vec<_> = text.lines().skip_while(|row| !row.starts_with("beta")).collect();
    assert!(rows.len() == 4 && rows[0].contains("sigmas") && rows[1].starts_with("0.1 "), "{text}");
    for (beta, words) in [
        ("0.45", &["--at-beta = 0.45", "above 0 and at most 0.4407"][..]),
        ("-0.1", &["--at-beta = -0.1"]),
        ("0", &["--at-beta = 0"]),
        ("x", &["--at-beta"]),
    ] {
        fails(&["sample", "--model", model(), "--at-beta", beta], 2, words);
    }
    let mixed = ["--at-beta", "0.2", "--set", "path.terms.field=trigonometric"];
    fails(&[&line[..], &mixed].concat(), 2, &["--at-beta", "path.terms"]);
}

#[test]
fn samples_and_requirements_are_those_of_all_samplers() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("x.npz");
    let line = ["sample", "--model", model(), "--walkers", "50", "--intervals", "10"];
    stdout(&run(&[&line[..], &["--out", file.to_str().unwrap()]].concat()));
    let text = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
    assert!(text.contains("(50, 3, 3)"));
    let output = run(&[&line[..], &["--require-ess", "0.9999"]].concat());
    assert_eq!(output.status.code(), Some(1));
    let spec = scratch.path().join("compare.toml");
    let text = format!(
        "[target]\nkind = 'ising'\nsize = 3\nfield = 0.1\n[sample]\nwalkers = 500\n[[compare]]\n\
         sampler = 'sample'\nmodel = '{}'\nintervals = 20\n[[compare]]\nsampler = 'ais'\n",
        model()
    );
    std::fs::write(&spec, &text).unwrap();
    let shown = stdout(&run(&["compare", spec.to_str().unwrap()]));
    assert!(shown.contains("events 20") && shown.contains("ais 100"), "{shown}");
    std::fs::write(&spec, text.replace("model =", "name =")).unwrap();
    fails(&["compare", spec.to_str().unwrap()], 2, &["compare entry 1", "model"]);
}

#[test]
fn results_have_every_field_that_scripts_are_promised() {
    let small = ["--walkers", "50", "--intervals", "5", "--json"];
    let sampled = run(&[&["sample", "--model", model()], &small[..]].concat());
    let line = "ising --size 3 --field 0.1 --json --walkers 50 --intervals 5";
    let others = ["ais", "smc"].map(|verb| common::run_line(&format!("{verb} {line}")));
    for result in [sampled].iter().chain(&others).map(json) {
        for (key, kind) in [
            ("schema", "number"),
            ("version", "string"),
            ("command", "array"),
            ("target", "object"),
            ("device", "string"),
            ("seed", "number"),
            ("scheme", "string"),
            ("walkers", "number"),
            ("intervals", "number"),
            ("ess", "number"),
            ("ess_error", "number"),
            ("log_z", "estimate"),
            ("elbo", "number"),
            ("correlation", "array"),
            ("network_passes_per_walker", "number"),
            ("energy_calls_per_walker", "number"),
            ("seconds", "number"),
            ("effective_samples_per_second", "number"),
        ] {
            assert!(is(kind, &result[key]), "{key}: {}", result[key]);
        }
        for name in [
            "energy_per_site",
            "abs_magnetization",
            "magnetization_squared",
            "binder",
            "heat_capacity_per_site",
            "susceptibility_per_site",
        ] {
            assert!(is("estimate", &result["observables"][name]), "{name}: {result}");
        }
        for (r, point) in result["correlation"].as_array().unwrap().iter().enumerate() {
            assert_eq!(point["r"], r);
            assert!(point["mean"].is_number() && point["error"].is_number(), "{point}");
        }
    }
}

/// Whether a value is what a script expects; an estimate has an exact value here.
fn is(kind: &str, value: &serde_json::Value) -> bool {
    match kind {
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.as_array().is_some_and(|list| !list.is_empty()),
        "object" => value.is_object(),
        _ => ["mean", "error", "exact"].iter().all(|key| value[*key].is_number()),
    }
}

fn target() -> Pairwise {
    Pairwise::ising(Lattice::new(&[3, 3], Boundary::Periodic).unwrap(), 1.0, 0.1).unwrap()
}

/// States and times as a file for `leaps rates`.
fn input(path: &Path, x: &[f32], shape: &[usize], t: &[f32]) {
    let bytes =
        |numbers: &[f32]| -> Vec<u8> { numbers.iter().flat_map(|n| n.to_le_bytes()).collect() };
    let (x, t_bytes) = (bytes(x), bytes(t));
    let views = [
        ("x", TensorView::new(Dtype::F32, shape.to_vec(), &x).unwrap()),
        ("t", TensorView::new(Dtype::F32, vec![t.len()], &t_bytes).unwrap()),
    ];
    std::fs::write(path, serialize(views, None).unwrap()).unwrap();
}

fn tensor(file: &SafeTensors<'_>, name: &str) -> (Vec<usize>, Vec<f64>) {
    let view = file.tensor(name).unwrap();
    let numbers = match view.dtype() {
        Dtype::F32 => view
            .data()
            .chunks_exact(4)
            .map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap())))
            .collect(),
        _ => {
            view.data().chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect()
        }
    };
    (view.shape().to_vec(), numbers)
}

#[test]
fn rates_are_what_the_loss_sees() {
    let scratch = tempfile::tempdir().unwrap();
    let (from, to) =
        (scratch.path().join("in.safetensors"), scratch.path().join("out.safetensors"));
    // Twenty states, and the same with their first spin flipped.
    let n = 20;
    let mut spins: Vec<f32> =
        (0..n * 9).map(|k| if (k * k + k / 3) % 7 < 3 { -1.0 } else { 1.0 }).collect();
    let mut flipped = spins.clone();
    flipped.iter_mut().step_by(9).for_each(|spin| *spin = -*spin);
    spins.extend(flipped);
    let times: Vec<f32> = (0..2 * n).map(|k| (k % n) as f32 / (n - 1) as f32).collect();
    input(&from, &spins, &[2 * n, 3, 3], &times);
    let files = ["--input", from.to_str().unwrap(), "--output", to.to_str().unwrap()];
    stdout(&run(&[&["rates", "--model", model()], &files[..]].concat()));
    let bytes = std::fs::read(&to).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let get = |name: &str| tensor(&file, name);
    let (shape, flux) = get("G");
    assert_eq!(shape, [2 * n, 3, 3]);
    let (out, back, delta) = (get("out_rates").1, get("back_rates").1, get("delta_U").1);
    let (k, du_dt, u) = (get("K").1, get("dU_dt").1, get("U").1);
    for state in 0..2 * n {
        let own = state * 9..(state + 1) * 9;
        let sum: f64 = own.clone().map(|at| out[at] - back[at]).sum();
        assert!((k[state] - (sum - du_dt[state])).abs() < 1e-12);
    }
    for state in 0..n {
        let (a, b) = (9 * state, 9 * (state + n));
        assert_eq!(flux[a], -flux[b], "local equivariance");
        assert!((delta[a] - (u[state + n] - u[state])).abs() < 1e-12);
        assert!((back[a] - out[b] * (-delta[a]).exp()).abs() < 1e-9, "reversal");
    }

    // The library's loss computes the residual in another way.
    let (target, model) = (target(), Model::load(model()).unwrap());
    let (net, free) = (model.net(&target).unwrap(), model.free(&target).unwrap());
    assert_eq!(free.spec(), &FreeEnergySpec::Rate);
    let _: &FreeEnergy = &free;
    let path = leaps::path::Path::new(&[0.4407, 0.4407], Schedule::Linear).unwrap();
    let mut parameters = model.parameters(&net).unwrap();
    parameters.extend(model.free_parameters(&free).unwrap());
    let mut batch = Batch::new(9);
    batch.states = spins.iter().map(|&spin| u8::from(spin > 0.0)).collect();
    batch.times = times.iter().map(|&t| f64::from(t)).collect();
    let target: Arc<dyn Target> = Arc::new(target);
    let (net, free) = (Arc::new(net), Arc::new(free));
    let objective = Objective::new(&target, &path, &net, &free, model.parametrisation);
    let mut loss = Loss::new(&objective);
    let mut gradient = vec![0.0; parameters.len()];
    let residuals = loss.gradient(&parameters, &batch, &mut gradient, &NoProgress).unwrap();
    for (ours, theirs) in get("residual").1.iter().zip(residuals) {
        assert!((ours - theirs).abs() < 1e-9 * (1.0 + theirs.abs()), "{ours} {theirs}");
    }
}

#[test]
#[cfg_attr(not(has_fixtures), ignore = "needs the authors' numbers: set LEAPS_FIXTURES")]
fn the_authors_network_gives_the_authors_numbers() {
    let root = std::env::var_os("LEAPS_FIXTURES").expect("LEAPS_FIXTURES names the fixtures");
    let folder = Path::new(&root).join("authors/ising");
    let scratch = tempfile::tempdir().unwrap();
    let (model, to) = (scratch.path().join("m"), scratch.path().join("out.safetensors"));
    let (model, checkpoint) = (model.to_str().unwrap(), folder.join("ising_final.ckpt"));
    stdout(&run(&["import", checkpoint.to_str().unwrap(), "--out", model]));
    let from = folder.join("random.safetensors");
    let files = ["--input", from.to_str().unwrap(), "--output", to.to_str().unwrap()];
    stdout(&run(&[&["rates", "--model", model], &files[..]].concat()));
    let (ours, theirs) = (std::fs::read(&to).unwrap(), folder.join("random_f64.safetensors"));
    let theirs = std::fs::read(theirs).unwrap();
    let ours = SafeTensors::deserialize(&ours).unwrap();
    let theirs = SafeTensors::deserialize(&theirs).unwrap();
    // Their rates into a state are without the ratio of probabilities.
    let ratios = tensor(&theirs, "lh_ratios").1;
    for (name, other, tolerance) in [
        ("G", "G", 2e-5),
        ("out_rates", "out_rates", 2e-5),
        ("back_rates", "in_rates", 2e-5),
        ("U", "U", 1e-6),
        ("delta_U", "delta_U", 1e-6),
        ("dU_dt", "dt_U", 1e-6),
        ("dF_dt", "dF_dt", 2e-4),
        ("residual", "residual", 5e-4),
    ] {
        let ((_, a), (_, mut b)) = (tensor(&ours, name), tensor(&theirs, other));
        if name == "back_rates" {
            b.iter_mut().zip(&ratios).for_each(|(rate, ratio)| *rate *= ratio);
        }
        let size = b.iter().fold(1.0f64, |m, v| m.max(v.abs()));
        let worst = a.iter().zip(&b).map(|(a, b)| (a - b).abs() / size).fold(0.0, f64::max);
        assert!(a.len() == b.len() && worst < tolerance, "{name}: {worst}");
    }
}

#[test]
fn bad_input_of_rates_is_named_and_nothing_is_overwritten() {
    let scratch = tempfile::tempdir().unwrap();
    let (from, to) =
        (scratch.path().join("in.safetensors"), scratch.path().join("out.safetensors"));
    std::fs::write(&to, "precious").unwrap();
    let line = ["rates", "--model", model(), "--input", from.to_str().unwrap()];
    let line = [&line[..], &["--output", to.to_str().unwrap()]].concat();
    fails(&line, 4, &["in.safetensors", common::NOT_FOUND]);
    let good = [1.0f32; 9];
    for (x, shape, t, exit, words) in [
        (
            &good[..],
            &[1, 9][..],
            &[1.5f32][..],
            2,
            &["in.safetensors: t[0] = 1.5", "from 0 to 1"][..],
        ),
        (&good, &[1, 9], &[0.5, 0.5], 2, &["in.safetensors: t = of shape [2]", "of shape [1]"]),
        (&good, &[9], &[0.5], 2, &["in.safetensors: x = of shape [9]", "[n, 9] or [n, 3, 3]"]),
        (&good[..4], &[1, 4], &[0.5], 2, &["x = of shape [1, 4]"]),
        (
            &[1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 1.0, 1.0, 1.0],
            &[1, 3, 3],
            &[0.5],
            2,
            &["in.safetensors: x[0, 1, 2] = 0.5", "-1 or +1"],
        ),
        (&[f32::NAN; 9], &[1, 9], &[0.5], 2, &["in.safetensors: x[0, 0] = NaN"]),
    ] {
        input(&from, x, shape, t);
        fails(&line, exit, words);
    }
    for text in [&b"{}"[..], b"\xff\xff\xff\xff\xff\xff\xff\x7f", b""] {
        std::fs::write(&from, text).unwrap();
        fails(&line, 4, &["in.safetensors", "header"]);
    }
    std::fs::write(&from, b"\x08\0\0\0\0\0\0\0{}      ").unwrap();
    fails(&line, 4, &["in.safetensors", "x", "missing"]);
    assert_eq!(std::fs::read(&to).unwrap(), b"precious");
    let missing = [&line[..5], &["--output", "/nowhere/x.safetensors"]].concat();
    fails(&missing, 4, &["/nowhere/x.safetensors"]);
}

#[test]
fn models_that_are_none_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path();
    fails(&["sample", "--model", "no-such-model"], 2, &["--model = no-such-model", "LEAPS_MODELS"]);
    fails(&["sample", "--model", path.to_str().unwrap()], 4, &["model.json"]);
    // One flipped bit in each file of a copy.
    let checkpoint = std::fs::read_to_string(Path::new(model()).join("latest")).unwrap();
    let checkpoint = Path::new(model()).join(checkpoint.split(' ').next().unwrap());
    for name in ["model.safetensors", "model.json"] {
        for (file, bytes) in files(&checkpoint) {
            std::fs::write(path.join(file.file_name().unwrap()), bytes).unwrap();
        }
        let copy = path.to_str().unwrap();
        stdout(&run(&["sample", "--model", copy, "--walkers", "10", "--intervals", "2", "-q"]));
        let mut bytes = std::fs::read(path.join(name)).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 4;
        std::fs::write(path.join(name), &bytes).unwrap();
        fails(&["sample", "--model", copy], 4, &[name]);
        std::fs::write(path.join(name), &bytes[..middle]).unwrap();
        fails(&["rates", "--model", copy, "--input", "x", "--output", "y"], 4, &[name]);
    }
    // A network of nine sites on sixteen.
    fails(
        &["sample", "--model", model(), "--set", "target.size=4"],
        2,
        &["does not fit Ising 4x4", "trained on"],
    );
}

#[test]
fn imports_that_fail_leave_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let (file, out) = (scratch.path().join("x.ckpt"), scratch.path().join("m"));
    let line = ["import", file.to_str().unwrap(), "--out", out.to_str().unwrap()];
    fails(&line, 4, &["x.ckpt", common::NOT_FOUND]);
    for bytes in [&b""[..], b"PK\x03\x04 not a zip", &[0x80, 2, b'c', b'o', b's', b'\n']] {
        std::fs::write(&file, bytes).unwrap();
        fails(&line, 4, &["x.ckpt"]);
    }
    assert!(!out.exists());
    std::fs::create_dir(&out).unwrap();
    fails(&line, 2, &["--out", "exists"]);
}

#[cfg(unix)]
#[test]
fn resampled_walkers_of_a_network_can_be_interrupted_within_an_interval() {
    let more = ["--ess-threshold", "0.9", "--intervals", "2", "--sweeps", "1000000000"];
    let mut command = common::leaps(&[&["sample", "--model", model()], &more[..]].concat());
    let (child, _errors, _) = common::begin(&mut command);
    common::send("-INT", &child);
    assert_eq!(common::end_or_kill(child).status.code(), Some(130));
}
