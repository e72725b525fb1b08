//! Machines with little memory and few threads: an answer or a refusal, never an end without a word.
#![cfg(unix)]

mod common;

use std::process::Command;

use common::{code, fails, run, run_under, stdout};

/// Whatever is asked for, a limit of the address space ends in an answer or in a refusal.
#[test]
fn limits_of_memory_are_honoured() {
    let mut refused = 0;
    for line in [
        "ais ising --size 16 --intervals 1 --walkers N",
        "smc ising --size 16 --intervals 2 --ess-threshold 1 --walkers N",
        "ais potts --q 8 --size 8 --intervals 1 --walkers N",
        "ais ising --size 16 --intervals 1 --kernel wolff --walkers N",
        "ais ising --size 16 --intervals 1 --kernel swendsen-wang --walkers N",
        "ais ising --size 8 --intervals 1 --kernel gwg --walkers N",
        "ais ising --size 3 --walkers 10 --trace-points 1 --intervals N0",
        "mcmc ising --size 3 --chains 4 --burn-in 0 --steps N",
        "mcmc ising --size 8 --chains N --burn-in 0 --steps 2",
        "mcmc ising --size 8 --kernel gwg --chains N --burn-in 0 --steps 2",
        "mcmc spin-glass --size 16 --kernel houdayer --chains N --burn-in 0 --steps 3",
        "mcmc spin-glass --size 16 --kernel parallel-tempering --chains N --burn-in 0 --steps 3",
        "mcmc ising --size 16 --chains 4 --burn-in 0 --steps N --out OUT.npz",
        "train ising --size 16 --network mlp --hidden-units 2 --pool N0 --time-limit 1s --out OUT",
    ] {
        for count in [10_000, 20_000, 100_000, 1_000_000] {
            let scratch = tempfile::tempdir().unwrap();
            let out = scratch.path().join("x");
            let line = line.replace('N', &count.to_string());
            let line = line.replace("OUT", out.to_str().unwrap()) + " --device cpu --threads 2";
            let words: Vec<&str> = line.split(' ').collect();
            // 300 MB, of which the program and its threads take half.
            let (exit, errors) = code(&run_under("ulimit -v 300000", &words));
            assert!(matches!(exit, Some(0 | 2 | 75)), "{line}: {exit:?} {errors}");
            if exit == Some(2) {
                assert!(errors.contains("memory suffices: about"), "{line}: {errors}");
                assert!(!errors.contains(" 0 ") && errors.contains("MB are free"), "{errors}");
                refused += 1;
            }
        }
    }
    assert!((8..48).contains(&refused), "{refused} of 56 are refused");
}

/// Narrow limits leave no room for heaps of threads, and the more a limit allows the more is free.
#[test]
fn narrow_limits_are_honoured() {
    let mut before = 0.0;
    for limit in [40_000, 60_000, 100_000, 200_000, 400_000] {
        let limits = format!("ulimit -v {limit}");
        for line in [
            "smc ising --size 24 --walkers 20000 --intervals 2 -q --threads 2",
            "sample --model ising-8-critical --walkers 200 --intervals 2 -q --threads 2 --device cpu",
        ] {
            let (exit, errors) = code(&run_under(&limits, &line.split(' ').collect::<Vec<_>>()));
            assert!(matches!(exit, Some(0 | 2 | 4)), "{limit}, {line}: {exit:?} {errors}");
        }
        let line = "ais ising --size 24 --walkers 1000000000 --intervals 2 --threads 2";
        let (_, errors) = code(&run_under(&limits, &line.split(' ').collect::<Vec<_>>()));
        let free = errors.split("are needed, ").nth(1).and_then(|rest| rest.split(" MB").next());
        let Some(free) = free.and_then(|free| free.parse::<f64>().ok()) else { continue };
        assert!(free > before, "{limit}: {errors} where there were {before}");
        before = free;
    }
    assert!(before > 250.0, "{before} MB of 400");
}

#[test]
fn chains_are_not_refused_for_walkers_that_they_do_not_have() {
    let chains = ["mcmc", "ising", "--size", "3", "--steps", "10", "--burn-in", "0"];
    stdout(&run(&[&chains[..], &["--set", "sample.walkers=2000000000"]].concat()));
    let walkers = ["ais", "ising", "--size", "3", "--walkers", "10", "--intervals", "2"];
    stdout(&run(&[&walkers[..], &["--set", "sample.steps=1000000000000"]].concat()));
    fails(
        &[&walkers[..3], &["3", "--walkers", "2000000000"]].concat(),
        2,
        &["--walkers = 2000000000", "TB are needed"],
    );
    let spec = "target = { kind = 'ising', size = 3 }\nsample = { walkers = 2000000000, steps = 10, burn_in = 0 }\n\
                compare = [{ sampler = 'mcmc' }, { sampler = 'ais', walkers = 10, intervals = 2 }]\n";
    let output = common::run_with_input(&["compare", "-", "--json"], spec);
    assert_eq!(common::json(&output)["samplers"].as_array().map(Vec::len), Some(2));
}

/// A shell's command before the program such that no thread can be started; nobody limits the superuser's.
fn without_threads(arguments: &[&str]) -> std::process::Output {
    let scratch = tempfile::tempdir().unwrap();
    // Others may not see the folder of the build.
    let program = scratch.path().join("leaps");
    std::fs::copy(common::program(), &program).unwrap();
    Command::new("chmod").arg("755").args([scratch.path(), &program]).status().unwrap();
    let superuser = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    let script = "{ ulimit -u 1 2>/dev/null || ulimit -p 1; } && exec \"$0\" \"$@\"";
    let mut command = match superuser {
        true => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=54321", "--clear-groups", "sh"]);
            command
        }
        false => Command::new("sh"),
    };
    command.args(["-c", script]).arg(&program).args(arguments).env_remove("RAYON_NUM_THREADS");
    command.current_dir(scratch.path()).output().expect("sh, or setpriv to become another user")
}

#[test]
#[cfg_attr(not(has_plain_user), ignore = "needs a user with few rights: setpriv makes one")]
fn without_threads_there_is_still_one() {
    let line = ["ais", "ising", "--size", "3", "--field", "0.1", "--walkers", "50", "--json"];
    let (alone, all) = (common::json(&without_threads(&line)), common::json(&run(&line)));
    assert_eq!(alone["log_z"], all["log_z"]);
    let (exit, errors) = code(&without_threads(&line));
    assert!(exit == Some(0) && errors.contains("no thread can be started"), "{errors}");
    let asked = [&line[..], &["--threads", "3"]].concat();
    let (exit, errors) = code(&without_threads(&asked));
    assert!(exit == Some(4) && errors.contains("--threads = 3"), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
}
