//! Stop and go on.

use std::time::Duration;

use leaps::Error;
use leaps::net::{FreeEnergy, FreeEnergySpec, MlpSpec, Net, NetSpec};
use leaps::path::{PathSpec, Ranges, Schedule};
use leaps::store::{Checkpoints, Event, Identity, Manifest, Metrics, Model, Origin, Stop};
use leaps::target::Disorder;
use leaps::train::{Decay, Family, Instances, Member};

use super::*;

#[test]
fn stopping_anywhere_changes_no_byte() {
    let small = small();
    for reference in REFERENCES {
        let scratch = tempfile::tempdir().unwrap();
        let (whole, setup) = (scratch.path().join("whole"), small.setup(reference));
        let expected = train(&setup, &whole);
        assert_eq!((expected.stop, expected.step), (Stop::Finished, 20));
        // 5 and 20 are checkpoints, 8 and 20 validations: those stop half way.
        for stops in [&[1][..], &[5], &[8], &[19], &[20], &[2, 3, 8, 9, 16, 17]] {
            let directory = scratch.path().join(format!("{stops:?}"));
            for &stop in stops {
                let run = TrainingRun::new(&directory, setup.clone());
                let outcome = run.run(&StopAfter::steps(stop)).unwrap();
                assert_eq!((outcome.stop, outcome.step), (Stop::Interrupted, stop));
                assert_eq!(outcome.standing.due, stop % 8 == 0 || stop == 20);
                Model::load(&directory).unwrap().net(&*small.target).unwrap();
            }
            let outcome = train(&setup, &directory);
            let what = format!("{reference:?} stopped at {stops:?}");
            assert_same(&directory, &outcome, (&whole, &expected), &what);
        }
    }
}

#[test]
fn a_family_goes_on_as_if_it_had_never_stopped() {
    let (small, scratch) = (small(), tempfile::tempdir().unwrap());
    let net = Net::conditioned_on(&NetSpec::Mlp(MlpSpec { hidden: 4 }), &*small.target, 1).unwrap();
    let free = FreeEnergy::new(&FreeEnergySpec::Rate, 9).unwrap().conditioned_on(1).unwrap();
    let ranges = Ranges { beta: Some([0.1, 0.4]), ..Ranges::default() };
    let member = |(beta, _): (f64, f64)| Member {
        path: leaps::path::Path::new(&[beta, beta], Schedule::Linear).unwrap(),
        condition: ranges.condition(beta, 0.0).unwrap(),
    };
    let members = ranges.members(7, 0.4, 0.0).into_iter().map(member).collect();
    let mut setup = small.setup(Reference::Pool);
    setup.train.beta_range = ranges.beta;
    setup.train.members = Some(7);
    setup.family = Some(Family { condition: ranges.condition(0.4, 0.0).unwrap(), members });
    (setup.net, setup.free) = (Arc::new(net.clone()), Arc::new(free.clone()));
    let whole = scratch.path().join("whole");
    let expected = train(&setup, &whole);
    for stops in [&[3][..], &[8, 17]] {
        let directory = scratch.path().join(format!("{stops:?}"));
        for &stop in stops {
            let run = TrainingRun::new(&directory, setup.clone());
            assert_eq!(run.run(&StopAfter::steps(stop)).unwrap().step, stop);
        }
        let outcome = train(&setup, &directory);
        assert_same(&directory, &outcome, (&whole, &expected), &format!("stopped at {stops:?}"));
    }
    // The files know the family: the model as what the network is conditioned on, the manifest as a setting.
    let model = Model::load(&whole).unwrap();
    assert_eq!(model.family, Some(ranges));
    assert_eq!(model.net(&*small.target).unwrap().conditions(), 1);
    let run = Manifest::load(&expected.checkpoint).unwrap().run;
    assert_eq!((run.train.beta_range, run.train.members), (Some([0.1, 0.4]), Some(7)));
    // Another range is another run; a plain network does not start one.
    setup.train.beta_range = Some([0.1, 0.5]);
    let error = TrainingRun::new(&whole, setup).run(&NoProgress).unwrap_err().to_string();
    assert!(error.starts_with("train.beta_range = "), "{error}");
    let plain = train(&small.setup(Reference::Pool), &scratch.path().join("plain")).checkpoint;
    let error = Model::load(plain).unwrap().warm_start(&net, &free, 1).unwrap_err().to_string();
    assert!(error.starts_with("train.from = for one target alone"), "{error}");
}

/// A network for all glasses on 3x4 sites with free edges, whose instances are renewed at steps 64, 128 and 192.
fn over_instances() -> Setup {
    let lattice = Lattice::new(&[3, 4], Boundary::Free).unwrap();
    let disorder = Disorder::Gaussian;
    let small =
        SmallProblem::new(Pairwise::edwards_anderson(lattice.clone(), disorder, 3).unwrap());
    let mut setup = small.setup(Reference::Pool);
    let train = TrainSpec {
        steps: 200,
        batch: 64,
        instances: Some(20),
        validate_every: 50,
        checkpoint_every: 40,
        ..setup.train.clone()
    };
    setup.instances =
        Some(Instances { lattice, disorder, seed: setup.seed, count: 20, walkers: 4, drawn: 16 });
    setup.free = Arc::new(FreeEnergy::new(&FreeEnergySpec::None, 12).unwrap());
    setup.train = train;
    setup
}

#[test]
fn instances_go_on_as_if_they_had_never_stopped() {
    let (setup, scratch) = (over_instances(), tempfile::tempdir().unwrap());
    let whole = scratch.path().join("whole");
    let expected = train(&setup, &whole);
    // Before, at and after renewals; in the middle of the step that renews.
    for stops in [&[30, 64][..], &[63, 65, 128, 193]] {
        let directory = scratch.path().join(format!("{stops:?}"));
        for &stop in stops {
            let run = TrainingRun::new(&directory, setup.clone());
            assert_eq!(run.run(&StopAfter::steps(stop)).unwrap().step, stop);
        }
        let outcome = train(&setup, &directory);
        assert_same(&directory, &outcome, (&whole, &expected), &format!("stopped at {stops:?}"));
    }
    let model = Model::load(&whole).unwrap();
    assert_eq!(
        (model.free_energy, model.training.settings.and_then(|settings| settings.instances)),
        (FreeEnergySpec::None, Some(20))
    );
    let mut other = setup;
    other.train.instances = Some(24);
    let error = TrainingRun::new(&whole, other).run(&NoProgress).unwrap_err().to_string();
    assert!(error.starts_with("train.instances = 24"), "{error}");
}

#[test]
fn interrupted_renewals_are_made_again() {
    let (setup, scratch) = (over_instances(), tempfile::tempdir().unwrap());
    let whole = scratch.path().join("whole");
    let expected = train(&setup, &whole);
    let start = scratch.path().join("start");
    TrainingRun::new(&start, setup.clone()).run(&StopAfter::steps(64)).unwrap();
    for number in 2..14 {
        let directory = scratch.path().join(number.to_string());
        copy(&start, &directory);
        let run = TrainingRun::new(&directory, setup.clone());
        let step = run.run(&StopAtQuestion::new(number)).unwrap().step;
        assert!((64..66).contains(&step), "stopped at {step}");
        let outcome = train(&setup, &directory);
        let what = format!("stopped at question {number}");
        assert_same(&directory, &outcome, (&whole, &expected), &what);
    }
}

#[test]
fn the_number_of_threads_changes_no_byte() {
    let small = small();
    for reference in REFERENCES {
        let scratch = tempfile::tempdir().unwrap();
        let runs = [1, 2, 7].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let directory = scratch.path().join(threads.to_string());
            (pool.install(|| train(&small.setup(reference), &directory)), directory)
        });
        let (expected, whole) = &runs[0];
        for (outcome, directory) in &runs[1..] {
            assert_same(directory, outcome, (whole, expected), &format!("{reference:?}"));
        }
    }
}

#[test]
fn a_finished_run_stays_as_it_is_and_can_be_extended() {
    let (small, scratch) = (small(), tempfile::tempdir().unwrap());
    let (whole, short) = (scratch.path().join("whole"), scratch.path().join("short"));
    let mut setup = small.setup(Reference::Pool);
    setup.train.decay = Decay::None;
    let expected = train(&setup, &whole);
    let events = fs::read_to_string(whole.join("events.jsonl")).unwrap();
    assert_eq!(train(&setup, &whole).checkpoint, expected.checkpoint);
    assert!(fs::read_to_string(whole.join("events.jsonl")).unwrap().starts_with(&events));
    // A constant learning rate does not know the last step.
    setup.train.steps = 10;
    setup.train.validate_every = 16;
    train(&setup, &short);
    setup.train.steps = 20;
    let outcome = train(&setup, &short);
    let parameters = |outcome: &Outcome| fs::read(outcome.checkpoint.join("model.safetensors"));
    assert!(parameters(&outcome).unwrap() == parameters(&expected).unwrap());
}

#[test]
fn a_time_limit_leaves_a_valid_checkpoint() {
    let (small, scratch) = (small(), tempfile::tempdir().unwrap());
    let run = TrainingRun::new(scratch.path().join("a"), small.setup(Reference::Policy));
    let outcome = run.within(Duration::ZERO).run(&NoProgress).unwrap();
    assert_eq!((outcome.stop, outcome.step), (Stop::TimeLimit, 0));
    assert!(Checkpoints::of(scratch.path().join("a")).load(false).unwrap().is_some());
}

#[test]
fn stops_do_not_push_out_the_checkpoint_to_roll_back_to() {
    let (small, scratch) = (small(), tempfile::tempdir().unwrap());
    let mut run = TrainingRun::new(scratch.path(), small.setup(Reference::Pool));
    run.keep = 1;
    for (stop, kept) in [(6, [5, 6]), (7, [5, 7]), (8, [5, 8]), (11, [10, 11])] {
        run.run(&StopAfter::steps(stop)).unwrap();
        let list = Checkpoints::of(scratch.path()).list().unwrap();
        assert_eq!(list.iter().map(|(step, _)| *step).collect::<Vec<_>>(), kept);
    }
}

#[test]
fn the_run_directory_tells_what_happened() {
    #[derive(Default)]
    struct Record(std::sync::Mutex<(Vec<u64>, Vec<Event>)>);
    impl Progress for Record {}
    impl Observer for Record {
        fn measured(&self, metrics: &Metrics) {
            self.0.lock().unwrap().0.push(metrics.step_metrics.step);
        }
        fn happened(&self, event: &Event) {
            self.0.lock().unwrap().1.push(event.clone());
        }
    }
    let (small, scratch) = (small(), tempfile::tempdir().unwrap());
    let directory = scratch.path().join("a/b");
    let mut run = TrainingRun::new(&directory, small.setup(Reference::Pool));
    run.config = "[train]\nsteps = 20\n".into();
    run.command = vec!["leaps".into(), "train".into()];
    let record = Record::default();
    let outcome = run.run(&record).unwrap();
    let (steps, events) = record.0.into_inner().unwrap();
    assert_eq!(steps, (1..=20).collect::<Vec<u64>>());
    let text = fs::read_to_string(directory.join("events.jsonl")).unwrap();
    let names: Vec<String> = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["event"].to_string())
        .collect();
    assert_eq!(names.len(), events.len());
    let count = |name: &str| names.iter().filter(|n| n.trim_matches('"') == name).count();
    let counts = ["started", "validated", "checkpointed", "stopped"].map(count);
    assert_eq!(counts, [1, 3, 5, 1], "{names:?}");
    assert!(text.lines().last().unwrap().contains(r#""reason":"finished""#));
    let lines = metrics(&directory);
    assert_eq!(lines.len(), 20);
    let (read, damaged) = Metrics::read(&directory).unwrap();
    assert!(damaged.is_none());
    assert_eq!(read.len(), 20);
    assert_eq!(
        (Some(read[19].step_metrics), read[19].ess),
        (outcome.standing.last, lines[19]["ess"].as_f64())
    );
    assert!(read.windows(2).all(|pair| pair[0].seconds <= pair[1].seconds));
    assert_eq!(Manifest::load(&outcome.checkpoint).unwrap().step, 20);
    assert!(lines[7]["ess"].as_f64().unwrap() > 0.1 && lines[6].get("ess").is_none());
    assert!(lines[7]["log_z"]["mean"].as_f64().unwrap().is_finite());
    assert!(lines.iter().all(|line| line["lr"].as_f64().unwrap() > 0.0));
    assert_eq!(fs::read_to_string(directory.join("config.toml")).unwrap(), run.config);
    let meta = fs::read_to_string(directory.join("meta.json")).unwrap();
    assert!(meta.contains("threads") && meta.contains("train"), "{meta}");
    let list = Checkpoints::of(&directory).list().unwrap();
    assert_eq!(list.iter().map(|(step, _)| *step).collect::<Vec<_>>(), [10, 15, 20]);
    let model = Model::load(&directory).unwrap();
    assert_eq!(model.file(), outcome.checkpoint.join("model.safetensors"));
    assert_eq!((model.training.steps, model.training.seed), (20, Some(7)));
    assert_eq!(model.training.ess, lines[19]["ess"].as_f64());
}

#[test]
fn another_run_is_refused_by_the_name_of_its_key() {
    let (small, scratch) = (small(), tempfile::tempdir().unwrap());
    let setup = small.setup(Reference::Pool);
    train(&setup, scratch.path());
    let before = files(scratch.path());
    let wider = Net::new(&NetSpec::Mlp(MlpSpec { hidden: 5 }), &*small.target).unwrap();
    let wider = Arc::new(wider);
    let changed = |change: &dyn Fn(&mut Setup)| {
        let mut setup = setup.clone();
        change(&mut setup);
        setup.identity()
    };
    let same = |identity: Identity| identity.difference(&setup.identity()).is_none();
    assert!(same(changed(&|s| s.train.validate_every = 3)));
    assert!(!same(changed(&|s| s.train.steps = 30)), "a cosine knows the last step");
    let cases: [(&str, Setup); 6] = [
        (
            "train.lr",
            Setup { train: TrainSpec { lr: 0.5, ..setup.train.clone() }, ..setup.clone() },
        ),
        ("seed", Setup { seed: 8, ..setup.clone() }),
        ("network.hidden", Setup { net: wider.clone(), ..setup.clone() }),
        ("parametrisation", Setup { parametrisation: Parametrisation::Sqrt, ..setup.clone() }),
        (
            "path.ratio",
            Setup {
                described_path: PathSpec { ratio: 0.5, ..PathSpec::default() },
                ..setup.clone()
            },
        ),
        (
            "target.size",
            Setup {
                described_target: serde_json::json!({ "kind": "ising", "size": 4, "field": 0.2 }),
                ..setup.clone()
            },
        ),
    ];
    for (key, other) in cases {
        let error = TrainingRun::new(scratch.path(), other).run(&NoProgress).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::Invalid { key: named, .. } if named == key), "{text}");
        assert!(text.contains("`fresh`"), "{text}");
    }
    assert_eq!(files(scratch.path()), before);
}

#[test]
fn a_directory_with_other_things_or_another_process_is_refused() {
    let (small, scratch) = (small(), tempfile::tempdir().unwrap());
    let setup = small.setup(Reference::Pool);
    fs::write(scratch.path().join("thesis.tex"), b"").unwrap();
    let error = TrainingRun::new(scratch.path(), setup.clone()).run(&NoProgress).unwrap_err();
    assert!(error.to_string().contains("thesis.tex"), "{error}");
    let directory = scratch.path().join("run");
    struct Meanwhile<'a>(&'a TrainingRun);
    impl Progress for Meanwhile<'_> {
        fn total(&self, _: u64) {
            let error = self.0.run(&NoProgress).unwrap_err();
            assert!(error.to_string().contains("another process"), "{error}");
        }
    }
    impl Observer for Meanwhile<'_> {}
    let run = TrainingRun::new(directory, setup);
    run.run(&Meanwhile(&run)).unwrap();
}

#[test]
fn a_run_from_a_model_says_so_and_resumes_with_the_same_bytes() {
    let (small, scratch) = (small(), tempfile::tempdir().unwrap());
    let first = scratch.path().join("first");
    train(&small.setup(Reference::Pool), &first);
    let model = Model::load(&first).unwrap();
    let mut setup = small.setup(Reference::Pool);
    setup.seed = 8;
    let warm = model.warm_start(&small.net, &small.free, setup.seed).unwrap();
    let origin = Origin { name: "first".into(), checksum: warm.checksum };
    setup.from = Some(origin.clone());
    setup.parameters = Some(warm.parameters.clone());
    let whole = scratch.path().join("whole");
    // It starts where the model ended, not somewhere else.
    let begun = setup.start(&NoProgress).unwrap().state.optimiser;
    let own = small.net.parameters();
    assert_eq!(begun.average[..own], model.parameters(&small.net).unwrap());
    assert!(begun.parameters == warm.parameters && begun.average == warm.parameters);
    let expected = train(&setup, &whole);
    let manifest = Manifest::load(&expected.checkpoint).unwrap();
    assert_eq!(manifest.run.from, Some(origin.clone()));
    assert_eq!(Model::load(&whole).unwrap().training.from, Some(origin.clone()));
    let model_file = model.file().to_owned();
    assert_eq!(leaps::file::checksum_of(&model_file).unwrap(), origin.checksum);

    // Going on needs the name of the model, not the model.
    let parts = scratch.path().join("parts");
    TrainingRun::new(&parts, setup.clone()).run(&StopAfter::steps(7)).unwrap();
    setup.parameters = None;
    let outcome = train(&setup, &parts);
    assert_same(&parts, &outcome, (&whole, &expected), "stopped at 7");
    let fresh = TrainingRun::new(scratch.path().join("new"), setup.clone()).run(&NoProgress);
    assert!(matches!(fresh, Err(Error::Invalid { key, .. }) if key == "train.from"));
    setup.from = None;
    let error = TrainingRun::new(&parts, setup).run(&NoProgress).unwrap_err();
    assert!(error.to_string().contains("train.from"), "{error}");
}
