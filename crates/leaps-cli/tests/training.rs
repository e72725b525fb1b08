//! Training of a tiny network, stopped in every way and continued.

mod common;

use std::path::Path;
#[cfg(unix)]
use std::time::{Duration, Instant};

use common::{TINY, code, fails, files, json, leaps, near_exact, number, run, stdout, train};
#[cfg(unix)]
use common::{end_or_kill, send};

fn status(run_directory: &Path) -> serde_json::Value {
    json(&run(&["status", run_directory.to_str().unwrap(), "--json"]))["runs"][0].clone()
}

#[test]
fn training_ends_with_results() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("a");
    let output = train(&directory, "--steps 200 --json");
    let result = json(&output);
    assert_eq!(result["scheme"], "events");
    assert!(number(&result["ess"]) > 0.3, "{}", result["ess"]);
    near_exact("log_z", &result["log_z"]);
    let kept = std::fs::read_to_string(directory.join("results.json")).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&kept).unwrap(), result);
    for bytes in [&output.stdout, &output.stderr] {
        assert!(bytes.iter().all(|&byte| byte >= 0x20 || byte == b'\n'), "a control character");
    }
    for name in ["config.toml", "meta.json", "metrics.jsonl", "events.jsonl", "latest"] {
        assert!(directory.join(name).is_file(), "{name}");
    }
    let config = std::fs::read_to_string(directory.join("config.toml")).unwrap();
    assert!(
        config.contains("(from the command line)") && config.contains("(from --set)"),
        "{config}"
    );
    let status = status(&directory);
    assert_eq!((&status["step"], &status["state"]), (&200.into(), &"finished".into()));
    assert!(number(&status["ess"]) > 0.3 && status["log_z"]["mean"].is_number(), "{status}");
    let text = stdout(&run(&["status", directory.to_str().unwrap()]));
    assert!(text.lines().count() == 2 && text.contains("200/200"), "{text}");
    // The directory stands for its configuration.
    let output = run(&["check", directory.to_str().unwrap()]);
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stdout(&output).contains("hamiltonian") && words.contains("config.toml is valid"));
    // Once more: nothing is left to train, the same numbers come out.
    let again = json(&run(&["train", "--out", directory.to_str().unwrap(), "--json"]));
    assert_eq!(again["log_z"], result["log_z"]);
}

#[test]
fn a_configuration_file_is_enough() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("run.toml");
    let line = format!("init {}", TINY.split(" --network").next().unwrap());
    std::fs::write(&file, stdout(&common::run_line(&line))).unwrap();
    let out = scratch.path().join("a");
    let (file, out) = (file.to_str().unwrap(), out.to_str().unwrap());
    let small =
        ["--set", "train.steps=3", "--set", "network.channels=4", "--set", "sample.walkers=50"];
    let result = json(&run(&[&["train", file, "--out", out, "--json"], &small[..]].concat()));
    assert_eq!(result["target"]["field"], 0.1);
    near_exact("log_z", &result["log_z"]);
}

#[test]
fn a_run_in_two_parts_is_the_run_in_one() {
    let scratch = tempfile::tempdir().unwrap();
    let (whole, parts) = (scratch.path().join("whole"), scratch.path().join("parts"));
    stdout(&train(&whole, "--steps 40 --decay none"));
    stdout(&train(&parts, "--steps 20 --decay none"));
    let output = train(&parts, "--steps 40 --decay none");
    stdout(&output);
    assert!(code(&output).1.contains("continues at step 20"), "{}", code(&output).1);
    for name in ["model.safetensors", "state.safetensors"] {
        let read =
            |run: &Path| std::fs::read(run.join("checkpoints/step-00000040").join(name)).unwrap();
        assert!(read(&whole) == read(&parts), "{name} differs");
    }
}

#[test]
fn another_run_is_not_continued() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("a");
    stdout(&train(&directory, "--steps 20"));
    let before = files(&directory);
    for (change, words) in [
        ("--lr 0.02", &["--lr = 0.02", "0.01", "--fresh"][..]),
        ("--beta 0.3", &["--beta = 0.3", "--fresh"]),
        ("--hidden-units 7", &["--hidden-units = 7", "--fresh"]),
        ("--seed 2", &["--seed = 2", "--fresh"]),
    ] {
        let (flag, value) = change.split_once(' ').unwrap();
        let line = format!("{} --steps 20", TINY).replace(&format!("{flag} 0.01"), "");
        let line = line.replace(&format!("{flag} 6"), "");
        let mut arguments: Vec<&str> = vec!["train"];
        arguments.extend(line.split_whitespace());
        arguments.extend([flag, value, "--out", directory.to_str().unwrap()]);
        let (exit, errors) = code(&run(&arguments));
        assert_eq!(exit, Some(2), "{change}: {errors}");
        for word in words {
            assert!(errors.contains(word), "{change}: no '{word}' in {errors}");
        }
    }
    assert!(files(&directory) == before, "a refused run changed files");
    stdout(&train(&directory, "--steps 20 --fresh"));
    assert!(files(&directory) == before && scratch.path().join("a-2/results.json").exists());
}

#[test]
fn a_time_limit_ends_with_75_and_the_run_goes_on() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("a");
    let (exit, errors) = code(&train(&directory, "--steps 10000000 --time-limit 1s"));
    assert_eq!(exit, Some(75), "{errors}");
    assert!(errors.contains("time limit") && errors.contains("leaps train --out"), "{errors}");
    let first = status(&directory);
    assert_eq!(first["state"], "stopped (time limit)");
    let step = format!("after step {},", first["step"]);
    assert!(errors.contains(&step), "{errors} has no '{step}'");
    let output = run(&["train", "--out", directory.to_str().unwrap(), "--time-limit", "1s"]);
    let (exit, errors) = code(&output);
    assert_eq!(exit, Some(75), "{errors}");
    assert!(number(&status(&directory)["step"]) > number(&first["step"]));

    // A minute is left for the checkpoint before a SLURM job ends.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let output = leaps(&["train", "--out", directory.to_str().unwrap()])
        .env("SLURM_JOB_END_TIME", (now + 61).to_string())
        .output()
        .unwrap();
    assert_eq!(code(&output).0, Some(75), "{}", code(&output).1);
}

#[test]
fn a_time_limit_does_not_wait_for_reference_walkers() {
    let scratch = tempfile::tempdir().unwrap();
    let (pool, sweeps) = (scratch.path().join("pool"), scratch.path().join("sweeps"));
    // Half a minute of preparation: nothing to keep yet.
    let line = "train ising --size 4 --network mlp --pool 10000000 --time-limit 1s --out";
    let words: Vec<&str> = line.split(' ').chain(pool.to_str()).collect();
    let (exit, errors) = code(&run(&words));
    assert_eq!(exit, Some(75), "{errors}");
    assert!(errors.contains("nothing to keep") && errors.contains("time limit"), "{errors}");
    // Minutes of sweeps in one step: the step is given up.
    let line = "train ising --size 4 --network mlp --pool 512 --batch 512 --reference-sweeps 1e5 --time-limit 1s --out";
    let words: Vec<&str> = line.split(' ').chain(sweeps.to_str()).collect();
    let (exit, errors) = code(&run(&words));
    assert_eq!(exit, Some(75), "{errors}");
    assert!(errors.contains("after step 0"), "{errors}");
    assert_eq!(status(&sweeps)["state"], "stopped (time limit)");
}

/// Start a training without end in `directory` by these words, and wait for its first checkpoint.
#[cfg(unix)]
fn begun(program: &mut std::process::Command, directory: &Path) -> std::process::Child {
    use std::process::Stdio;
    let line = format!("train {TINY} --steps 10000000");
    program.args(line.split_whitespace()).arg("--out").arg(directory);
    let child = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while !directory.join("latest").exists() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    child
}

/// A program that hears SIGHUP, even where `nohup` runs these tests: what is ignored stays ignored in children.
#[cfg(unix)]
fn with_hangups(mut program: std::process::Command) -> std::process::Command {
    use std::os::unix::process::CommandExt;
    let default = || {
        // SAFETY: between fork and exec only this call is made, which is safe there and takes no memory.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_DFL) };
        Ok(())
    };
    // SAFETY: see above; the closure holds nothing that a fork could leave locked.
    unsafe { program.pre_exec(default) };
    program
}

#[cfg(unix)]
#[test]
fn signals_leave_a_valid_checkpoint() {
    for (signal, expected) in [("-TERM", 75), ("-USR1", 75), ("-HUP", 75), ("-INT", 130)] {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().join("a");
        let child = begun(&mut with_hangups(leaps(&[])), &directory);
        assert_eq!(status(&directory)["state"], "running");
        send(signal, &child);
        let output = end_or_kill(child);
        let (exit, errors) = code(&output);
        assert_eq!(exit, Some(expected), "{signal}: {errors}");
        let last = errors.lines().last().unwrap_or_default();
        assert!(last.starts_with("leaps: stopped by ") && last.contains("kept in"), "{errors}");
        assert!(!errors.contains("error"), "a stop as planned is no error: {errors}");
        let state = status(&directory);
        assert_eq!(state["state"], "stopped (interrupted)");
        assert!(number(&state["step"]) > 0.0);
        let small = ["--walkers", "50", "--intervals", "5", "--json"];
        json(&run(&[&["sample", "--model", directory.to_str().unwrap()], &small[..]].concat()));
    }
}

/// `nohup leaps train` outlives its terminal.
#[cfg(unix)]
#[test]
fn a_hangup_that_is_ignored_stays_ignored() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("a");
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(common::program());
    let mut child = begun(&mut shell, &directory);
    send("-HUP", &child);
    std::thread::sleep(Duration::from_millis(500));
    assert!(child.try_wait().unwrap().is_none(), "the run ended");
    send("-TERM", &child);
    let (exit, errors) = code(&child.wait_with_output().unwrap());
    assert!(exit == Some(75) && errors.contains("stopped by SIGTERM"), "{exit:?}: {errors}");
}

#[test]
fn wrong_settings_are_named_before_anything_is_written() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("a");
    let out = out.to_str().unwrap();
    for (line, words) in [
        ("train --out OUT", &["no configuration", "run.toml"][..]),
        ("train isin --out OUT", &["FILE|DIR|TARGET = isin", "run.toml", "ising"]),
        ("train ising", &["--out"]),
        ("train ising --size 4 --out OUT --steps 0", &["--steps = 0", "at least 1"]),
        ("train ising --size 4 --out OUT --lr 3", &["--lr = 3", "from"]),
        (
            "train ising --size 4 --out OUT --reference-sweeps 1e15",
            &["--reference-sweeps = 1000000000000000", "at most"],
        ),
        ("train ising --size 4 --out OUT --steps 1e15", &["--steps = ", "at most"]),
        ("train ising --size 4 --out OUT --from no-such-model", &["--from = no-such-model"]),
        ("train ising --size 4 --out OUT --set train.from=", &["--set train.from = "]),
        ("train ising --size 4 --out OUT --time-limit soon", &["--time-limit = soon", "30m"]),
        ("train ising --size 4 --out OUT --network big", &["--network = big", "hollow"]),
        ("train ising --size 4 --out OUT --network mlp --depth 3", &["--depth = 3", "hollow"]),
        ("train ising --size 4 --out OUT --orders 2", &["--orders = 2", "hollow-graph"]),
        ("train rbm --out OUT --network hollow-graph --orders 0", &["--orders = 0", "at least 1"]),
        ("train ising --size 4 --out OUT --depth 9", &["--depth = 9", "network.depth"]),
        ("train ising --size 4 --out OUT --network lec --kernels 3,7", &["--kernels", "wide"]),
        ("train ising --size 4 --out OUT --parametrisation x", &["--parametrisation = x", "relu"]),
        (
            "train ising --size 4 --out OUT --schedule adaptive",
            &["--schedule = adaptive", "linear"],
        ),
        ("train rbm --out OUT --network hollow", &["hollow", "lattice"]),
        ("train ising --size 4 --out OUT --set train.stepz=3", &["train.stepz", "train.steps"]),
        ("train ising --size 4 --out OUT --set network.kind=7", &["network.kind"]),
        ("status", &["DIR"]),
    ] {
        let line = line.replace("OUT", out);
        fails(&line.split_whitespace().collect::<Vec<_>>(), 2, words);
    }
    fails(&["train", "/nowhere/run.toml", "--out", out], 4, &["/nowhere/run.toml"]);
    fails(&["status", "/nowhere"], 4, &["/nowhere"]);
    fails(&["check", scratch.path().to_str().unwrap()], 4, &["config.toml"]);
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0, "files left behind");
}

/// Flags of a tiny convolution, for lattices of any size.
const HOLLOW: &str = "ising --field 0.1 --beta 0.3 --batch 64 --pool 256 --warmup 5 --lr 0.01 \
     --validate-every 0 --set sample.walkers=400 --set sample.intervals=20";

fn arguments<'a>(line: &'a str, directory: &'a Path) -> Vec<&'a str> {
    let mut all: Vec<&str> = line.split_whitespace().collect();
    all.extend(["--out", directory.to_str().unwrap()]);
    all
}

#[test]
fn a_network_of_a_small_lattice_starts_one_of_a_larger_lattice() {
    let scratch = tempfile::tempdir().unwrap();
    let [small, large, again] = ["small", "large", "again"].map(|name| scratch.path().join(name));
    let line = format!("train {HOLLOW} --size 4 --channels 6 --steps 150");
    stdout(&run(&arguments(&line, &small)));
    // Sampling alone: the network takes any lattice it fits, and the weights stay exact.
    let name = small.to_str().unwrap();
    let there = ["--set", "target.size=6", "--walkers", "4000", "--intervals", "20", "--json"];
    let output = run(&[&["sample", "--model", name], &there[..]].concat());
    let moved = json(&output);
    assert_eq!(moved["target"]["sites"], 36);
    near_exact("log_z", &moved["log_z"]);
    assert!(code(&output).1.contains("was trained on Ising 4x4"), "{}", code(&output).1);

    let line = format!("train {HOLLOW} --size 6 --steps 4 --from {name}");
    let output = run(&arguments(&line, &large));
    stdout(&output);
    assert!(code(&output).1.contains("trained for 150 steps"), "{}", code(&output).1);
    let config = std::fs::read_to_string(large.join("config.toml")).unwrap();
    let kept: toml::Table = config.parse().unwrap();
    for (group, key, value) in [
        ("network", "channels", toml::Value::from(6)),
        ("network", "depth", 1.into()),
        ("train", "from", name.into()),
    ] {
        assert_eq!(kept[group][key], value, "{config}");
    }
    let manifest = large.join("checkpoints/step-00000004/manifest.json");
    let manifest = json_file(&manifest);
    let checksum =
        leaps::file::checksum_of(&small.join("checkpoints/step-00000150/model.safetensors"));
    assert_eq!(manifest["run"]["from"]["name"], name);
    assert_eq!(manifest["run"]["from"]["checksum"], checksum.unwrap());
    // The model may go: the run has all it needs, whichever way it goes on.
    std::fs::rename(&small, scratch.path().join("moved")).unwrap();
    stdout(&run(&arguments(&line, &large)));
    stdout(&run(&["train", large.to_str().unwrap()]));
    let gone = run(&arguments(&line, &again));
    assert!(code(&gone).1.contains("--from = ") && code(&gone).0 == Some(2), "{}", code(&gone).1);
    assert!(!again.exists());
}

fn json_file(path: &Path) -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn models_that_do_not_fit_start_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let [mlp, hollow, out] = ["mlp", "hollow", "out"].map(|name| scratch.path().join(name));
    stdout(&train(&mlp, "--steps 1"));
    let line = format!("train {HOLLOW} --size 4 --channels 6 --steps 1");
    stdout(&run(&arguments(&line, &hollow)));
    let start = |model: &Path, more: &str| {
        format!("train {HOLLOW} --steps 1 --from {} {more}", model.display())
    };
    for (line, words) in [
        (start(&mlp, "--size 4"), &["tensor net.weight", "[6, 9, 8]", "[6, 16, 15]"][..]),
        (start(&mlp, "--size 4 --network hollow"), &["--network = hollow", "must be mlp"]),
        (
            start(&hollow, "--size 4 --parametrisation relu"),
            &["--parametrisation = relu", "barker"],
        ),
        (
            start(&hollow, "--size 6 --channels 7"),
            &["tensor net.layer0.weight", "[6, 1, 3, 3]", "[7, 1, 3, 3]"],
        ),
        (start(&hollow, "--size 3"), &["network.rows = 3", "from 1 to 2"]),
        (start(scratch.path(), "--size 4"), &["neither a model"]),
    ] {
        let output = run(&arguments(&line, &out));
        let (exit, errors) = code(&output);
        assert!(matches!(exit, Some(2 | 4)), "{line}: {errors}");
        for word in words {
            assert!(errors.contains(word), "{line}: no '{word}' in {errors}");
        }
        assert!(!out.exists(), "{line}");
    }
    let line = start(&hollow, "--size 6 --depth 2");
    let output = run(&arguments(&line, &out));
    stdout(&output);
    assert!(code(&output).1.contains("with 1 more layer"), "{}", code(&output).1);
}

#[test]
fn a_finished_cosine_is_not_stretched_but_starts_a_longer_run() {
    let scratch = tempfile::tempdir().unwrap();
    let (directory, next) = (scratch.path().join("a"), scratch.path().join("b"));
    stdout(&train(&directory, "--steps 20"));
    let before = files(&directory);
    let name = directory.to_str().unwrap();
    for change in [&["--steps", "40"][..], &["--set", "train.steps=40"]] {
        let (exit, errors) = code(&run(&[&["train", name], change].concat()));
        assert_eq!(exit, Some(2), "{errors}");
        for word in ["steps = 40", "20", "cosine", &format!("--from {name} and a new --out")] {
            assert!(errors.contains(word), "no '{word}' in {errors}");
        }
    }
    assert!(files(&directory) == before, "a refused run changed files");
    let line = format!("train {name} --from {name} --steps 40");
    stdout(&run(&arguments(&line, &next)));
    assert_eq!(status(&next)["step"], 40);
}

/// Large lattices are trained on smaller ones first; a stop on the way changes nothing, and a run that began without goes on without.
#[test]
fn large_lattices_start_from_smaller_ones() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| {
        let native: std::path::PathBuf = scratch.path().join(name).components().collect();
        native.to_str().unwrap().to_owned()
    };
    let line = "train ising --size 22x28 --beta 0.4 --field 0.05 --channels 4 --depth 8 --batch 16 --pool 32 \
                --validate-every 0 --set sample.walkers=20 --set sample.intervals=3";
    let go =
        |name: &str, more: &str| run(&arguments(&format!("{line} {more}"), Path::new(&at(name))));
    let output = go("whole", "--steps 5");
    let (_, messages) = code(&output);
    assert!(stdout(&output).contains("log_z") && messages.contains("15x19"), "{messages}");
    let [config, first] = ["whole/config.toml", "whole/start/config.toml"]
        .map(|name| std::fs::read_to_string(at(name)).unwrap());
    assert!(first.contains("size = [15, 19]") && first.contains("depth = 6 "), "{first}");
    assert!(config.contains("size = [22, 28]") && config.contains("depth = 8 "), "{config}");
    // Stopped before anything was kept, and then once more when the smaller lattice was done.
    let (status, messages) = code(&go("parts", "--steps 5 --time-limit 0.000001s"));
    assert!(status == Some(75) && messages.contains("parts'"), "{messages}");
    assert!(!Path::new(&at("parts/meta.json")).exists());
    stdout(&run(&["train", "--out", &at("parts/start")]));
    assert_eq!(self::status(Path::new(&at("parts")))["run"], at("parts/start"));
    fails(&["report", &at("parts")], 2, &["smaller lattice", &at("parts/start")]);
    fails(&["sample", "--model", &at("parts")], 4, &["smaller lattice"]);
    fails(&["train", "--out", &at("parts"), "--grow", "false"], 2, &["--grow = false", "new name"]);
    // Other settings are refused, and leave no trace.
    for other in ["--lr 1e-4", "--size 30", "--beta 0.3"] {
        let line =
            format!("{line} --steps 5").replace("--beta 0.4 ", "").replace("--size 22x28 ", "");
        let line = match other.split_once(' ') {
            Some(("--lr", _)) => format!("{line} --beta 0.4 --size 22x28 {other}"),
            Some(("--size", _)) => format!("{line} --beta 0.4 {other}"),
            _ => format!("{line} --size 22x28 {other}"),
        };
        let (status, messages) = code(&run(&arguments(&line, Path::new(&at("parts")))));
        assert!(status == Some(2) && messages.contains("first part"), "{other}: {messages}");
    }
    let kept = std::fs::read_to_string(at("parts/config.toml")).unwrap();
    assert!(kept.contains("size = [22, 28]") && kept.contains("beta = 0.4 "), "{kept}");
    stdout(&run(&["train", "--out", &at("parts")]));
    let last = |run: &str| {
        let file = format!("{run}/checkpoints/step-00000005/model.safetensors");
        std::fs::read(at(&file)).unwrap()
    };
    assert!(last("whole") == last("parts"), "stops change the network");
    // What users say of sizes is not what the first part is told.
    let again = go("whole", "--steps 5");
    assert!(stdout(&again).contains("log_z"), "{:?}", code(&again));
    let report = at("report.html");
    stdout(&run(&["report", &at("whole"), "--out", &report]));
    let report = std::fs::read_to_string(report).unwrap();
    assert!(report.contains("smaller lattices first"), "the time of the first part is missing");
    // A new beginning is one from the smaller lattice on.
    stdout(&run(&["train", &at("whole"), "--seed", "2", "--fresh"]));
    assert!(Path::new(&at("whole-2/start/meta.json")).exists() && last("whole-2") != last("whole"));
    // A run from a model that was named does not go on without the name.
    stdout(&go("named", &format!("--steps 5 --from {}", at("whole/start"))));
    let (status, messages) = code(&go("named", "--steps 5"));
    assert!(status == Some(2) && messages.contains("from"), "{messages}");
    // What sampling would refuse is refused before anything is trained.
    let (status, messages) =
        code(&go("deep", "--steps 5 --set network.rows=3 --set sample.at_beta=[0.9]"));
    assert!(status == Some(2) && messages.contains("at_beta"), "{messages}");
    assert!(!Path::new(&at("deep")).exists());
    stdout(&go("alone", "--steps 5 --grow false"));
    assert!(!Path::new(&at("alone/start")).exists() && last("alone") != last("whole"));
    let output = go("alone", "--steps 5");
    assert!(stdout(&output).contains("log_z") && !code(&output).1.contains("15x19"));
}

/// Stripes and a cubic lattice grow where they are asked to, stop on the way, and go on as if they had not.
#[test]
fn stripes_and_cubes_grow_where_they_are_asked_to() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| {
        let native: std::path::PathBuf = scratch.path().join(name).components().collect();
        native.to_str().unwrap().to_owned()
    };
    let rest = "--field 0.1 --channels 3 --batch 16 --pool 32 --steps 4 --validate-every 0 \
                --set sample.walkers=20 --set sample.intervals=3";
    for (name, line, size, depth) in [
        ("stripes", "train ising --size 8 --j2 -0.6 --beta 1", "6x6", "depth = 2"),
        ("cube", "train ising --size 6x6x6 --beta 0.22 --depth 1", "4x4x4", "depth = 1"),
    ] {
        let go = |name: &str, more: &str| {
            run(&arguments(&format!("{line} {rest} {more}"), Path::new(&at(name))))
        };
        let (whole, parts) = (format!("{name}-whole"), format!("{name}-parts"));
        let output = go(&whole, "--grow true");
        let messages = code(&output).1;
        assert!(stdout(&output).contains("log_z") && messages.contains(size), "{messages}");
        let read = |file: &str| std::fs::read_to_string(at(file)).unwrap();
        let [config, first] =
            [format!("{whole}/config.toml"), format!("{whole}/start/config.toml")]
                .map(|f| read(&f));
        assert!(config.contains(depth) && config.contains("grow = true"), "{config}");
        assert!(first.contains(depth) && !first.contains("grow = true"), "{first}");
        // Stopped before the smaller lattice is done; without the wish the run is another one.
        let (status, messages) = code(&go(&parts, "--grow true --time-limit 0.000001s"));
        assert_eq!(status, Some(75), "{messages}");
        stdout(&run(&["train", "--out", &at(&format!("{parts}/start"))]));
        let (status, messages) = code(&go(&parts, ""));
        assert!(status == Some(2) && messages.contains("smaller lattice"), "{messages}");
        stdout(&run(&["train", "--out", &at(&parts)]));
        let last = |run: &str| {
            std::fs::read(at(&format!("{run}/checkpoints/step-00000004/model.safetensors")))
                .unwrap()
        };
        assert!(last(&whole) == last(&parts), "stops change the network");
        assert!(last(&whole) != last(&format!("{whole}/start")));
        let again = go(&whole, "--grow true");
        assert!(stdout(&again).contains("log_z"), "{:?}", code(&again));
    }
    let refused = "train ising --size 4 --beta 0.4 --grow true --steps 4 --batch 16 --pool 32";
    let (status, messages) = code(&run(&arguments(refused, Path::new(&at("small")))));
    assert!(status == Some(2) && messages.contains("as small as this"), "{messages}");
}

#[test]
fn directories_without_a_run_are_named() {
    let scratch = tempfile::tempdir().unwrap();
    let (empty, missing) = (scratch.path(), scratch.path().join("missing"));
    let (empty, missing) = (empty.to_str().unwrap(), missing.to_str().unwrap());
    fails(&["status", empty], 2, &[empty, "directory of a training run"]);
    fails(&["status", missing], 4, &[missing, common::NOT_FOUND]);
    fails(&["train", empty], 2, &[empty, "config.toml"]);
    fails(&["train", missing, "--out", empty], 4, &[missing, common::NOT_FOUND]);
}
