//! Stop in the middle of a gradient step, or before the first.

use leaps::Error;
use leaps::store::{Checkpoints, Stop};
use leaps::train::Trainer;

use super::*;

/// A step whose reference states would take years to move.
fn long(small: &SmallProblem, reference: Reference) -> Setup {
    let mut setup = small.setup(reference);
    setup.train.sweeps = 100_000;
    setup
}

#[test]
fn a_step_that_would_take_long_can_be_given_up() {
    let small = small();
    for reference in REFERENCES {
        let setup = long(&small, reference);
        let mut trainer: Trainer = setup.start(&NoProgress).unwrap();
        let (pool, optimiser) = (trainer.state.pool.clone(), trainer.state.optimiser.clone());
        let error = trainer.step(&StopAtQuestion::new(50)).unwrap_err();
        assert!(matches!(error, Error::Interrupted), "{reference:?}: {error}");
        assert_eq!((&trainer.state.pool, trainer.steps()), (&pool, 0), "{reference:?}");
        assert!(trainer.state.optimiser.parameters == optimiser.parameters);
        assert!(trainer.state.buffer.times.is_empty());

        let scratch = tempfile::tempdir().unwrap();
        let run = TrainingRun::new(scratch.path(), setup);
        // Enough questions to prepare the pool's 100 walkers.
        let outcome = run.run(&StopAtQuestion::new(300)).unwrap();
        assert_eq!((outcome.stop, outcome.step), (Stop::Interrupted, 0), "{reference:?}");
    }
}

#[test]
fn a_stop_anywhere_in_a_step_leaves_the_pool_where_it_was() {
    let small = small();
    let setup = small.setup(Reference::Pool);
    let patient = StopAtQuestion::new(u64::MAX);
    setup.start(&NoProgress).unwrap().step(&patient).unwrap();
    // One for every walker, then one for every 16 of them.
    let questions = patient.asked.load(Ordering::Relaxed);
    assert!(questions > 30, "{questions}");
    let mut trainer = setup.start(&NoProgress).unwrap();
    let pool = trainer.state.pool.clone();
    for question in 1..=questions {
        let error = trainer.step(&StopAtQuestion::new(question)).unwrap_err();
        assert!(matches!(error, Error::Interrupted), "{question}: {error}");
        assert!(trainer.state.pool == pool && trainer.steps() == 0, "question {question}");
    }
    trainer.step(&StopAtQuestion::new(questions + 1)).unwrap();
    assert!(trainer.state.pool != pool && trainer.steps() == 1);
}

#[test]
fn a_stop_at_any_question_changes_no_byte() {
    let small = small();
    for reference in REFERENCES {
        let scratch = tempfile::tempdir().unwrap();
        let (whole, mut setup) = (scratch.path().join("whole"), small.setup(reference));
        setup.train.steps = 8;
        setup.train.sweeps = 20;
        let expected = train(&setup, &whole);
        let directory = scratch.path().join("stopped");
        // Questions are asked in every walker's sweeps, every pass and every group, so that stops fall into all of them, and most
        // of them into a step. Ever more, so that the run gets to its end.
        let (mut stops, mut patience) = (Vec::new(), 60);
        let outcome = loop {
            patience += patience / 8;
            match TrainingRun::new(&directory, setup.clone()).run(&StopAtQuestion::new(patience)) {
                Ok(outcome) if outcome.stop == Stop::Finished => break outcome,
                Ok(outcome) => stops.push(outcome.step),
                Err(error) => {
                    assert!(matches!(error, Error::Interrupted), "{error}");
                    assert!(stops.is_empty(), "only an unprepared run has nothing to keep");
                    train_to(&setup, &directory, 1);
                    stops.push(1);
                }
            }
        };
        let given_up = stops.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert!(given_up > 0, "{reference:?}: no stop fell into a step: {stops:?}");
        let what = format!("{reference:?} stopped at {stops:?}");
        assert_same(&directory, &outcome, (&whole, &expected), &what);
    }
}

/// Train until so many steps are made. Asks for a stop only then.
fn train_to(setup: &Setup, directory: &Path, steps: u64) {
    let run = TrainingRun::new(directory, setup.clone());
    assert_eq!(run.run(&StopAfter::steps(steps)).unwrap().step, steps);
}

#[test]
fn before_the_pool_is_ready_there_is_nothing_to_keep() {
    let (small, scratch) = (small(), tempfile::tempdir().unwrap());
    let mut setup = small.setup(Reference::Pool);
    setup.train.pool = 1 << 22;
    let run = TrainingRun::new(scratch.path(), setup);
    let progress = StopAtQuestion::new(50);
    let error = run.run(&progress).unwrap_err();
    assert!(matches!(error, Error::Interrupted), "{error}");
    // Every thread looks once more at the most, not once for every walker.
    assert!(progress.asked.load(Ordering::Relaxed) < 10_000);
    assert!(Checkpoints::of(scratch.path()).load(false).unwrap().is_none());
    // The directory is left such that the run can begin.
    train_to(&small.setup(Reference::Pool), scratch.path(), 2);
}
