//! Damage checkpoints in every way a disk or a person can.

use leaps::Error;
use leaps::store::{Checkpoint, Checkpoints, Stop};

use super::*;

/// The file that an error is about.
fn named(error: &Error) -> &Path {
    match error {
        Error::Corrupt { path, .. } | Error::Io { path, .. } => path,
        other => panic!("not about a file: {other}"),
    }
}

/// Every truncation to try, and 200 flips of a bit.
fn damages(bytes: &[u8]) -> Vec<Vec<u8>> {
    let stride = if bytes.len() < 1 << 16 { 97 } else { 4096 };
    let mut all: Vec<Vec<u8>> =
        (0..bytes.len()).step_by(stride).map(|length| bytes[..length].to_vec()).collect();
    all.push(bytes[..bytes.len() - 1].to_vec());
    for flip in 0..200 {
        let mut altered = bytes.to_vec();
        let bit = flip * 2_654_435_761 % (8 * bytes.len());
        altered[bit / 8] ^= 1 << (bit % 8);
        all.push(altered);
    }
    all
}

#[test]
fn damage_is_noticed_named_and_leaves_the_checkpoint_before() {
    let small = small();
    for reference in [Reference::Pool, Reference::Buffer] {
        let scratch = tempfile::tempdir().unwrap();
        let newest = train(&small.setup(reference), scratch.path()).checkpoint;
        let checkpoints = Checkpoints::of(scratch.path());
        let mut victims: Vec<PathBuf> =
            files(&newest).keys().map(|name| newest.join(name)).collect();
        assert_eq!(victims.len(), 4);
        victims.push(scratch.path().join("latest"));
        for file in &victims {
            let (is_latest, bytes) = (file.ends_with("latest"), fs::read(file).unwrap());
            let check = |damaged: &str, fall_back: bool| {
                let error = checkpoints.load(false).unwrap_err();
                assert_eq!(named(&error), file, "{damaged}: {error}");
                if !is_latest {
                    let error = Checkpoint::load(&newest).unwrap_err();
                    assert_eq!(named(&error), file, "{damaged}: {error}");
                }
                if !fall_back {
                    return;
                }
                let (found, passed_over) = checkpoints.load(true).unwrap().unwrap();
                assert_eq!(found.manifest.step, if is_latest { 20 } else { 15 });
                assert!(!passed_over.is_empty());
            };
            for (number, damaged) in damages(&bytes).into_iter().enumerate() {
                fs::write(file, &damaged).unwrap();
                let what = format!("{} of {} bytes", damaged.len(), bytes.len());
                check(&what, number % 8 == 0);
            }
            if !is_latest {
                fs::remove_file(file).unwrap();
                check("removed", true);
            }
            fs::write(file, &bytes).unwrap();
            assert_eq!(checkpoints.load(false).unwrap().unwrap().0.manifest.step, 20);
        }
    }
}

#[test]
fn falling_back_is_asked_for_and_gives_the_same_result() {
    let (small, scratch) = (small(), tempfile::tempdir().unwrap());
    let setup = small.setup(Reference::Pool);
    let (whole, hurt) = (scratch.path().join("whole"), scratch.path().join("hurt"));
    let expected = train(&setup, &whole);
    let stopped =
        TrainingRun::new(&hurt, setup.clone()).run(&StopAfter::steps(13)).unwrap().checkpoint;
    fs::write(stopped.join("state.safetensors"), b"{}").unwrap();
    let before = files(&hurt);
    let mut run = TrainingRun::new(&hurt, setup.clone());
    let error = run.run(&NoProgress).unwrap_err();
    assert_eq!(named(&error), stopped.join("state.safetensors"));
    assert_eq!(files(&hurt), before, "a refused run leaves the directory alone");
    run.fallback = true;
    let outcome = run.run(&NoProgress).unwrap();
    assert_same(&hurt, &outcome, (&whole, &expected), "after a fall-back");
    let events = fs::read_to_string(hurt.join("events.jsonl")).unwrap();
    assert!(events.contains("state.safetensors: checksum"), "{events}");
    // A run that has nothing left to do is mended as well.
    fs::write(hurt.join("latest"), "checkpoints/step-0").unwrap();
    run.run(&NoProgress).unwrap();
    assert!(fs::read(hurt.join("latest")).unwrap() == fs::read(whole.join("latest")).unwrap());
    // With nothing whole left there is nothing to fall back to.
    for (_, directory) in Checkpoints::of(&hurt).list().unwrap() {
        fs::remove_file(directory.join("manifest.json")).unwrap();
    }
    assert_eq!(named(&run.run(&NoProgress).unwrap_err()).file_name().unwrap(), "manifest.json");
}

#[test]
fn fewer_steps_than_were_made_are_refused() {
    let (small, scratch) = (small(), tempfile::tempdir().unwrap());
    let mut setup = small.setup(Reference::Pool);
    setup.train.decay = leaps::train::Decay::None;
    train(&setup, scratch.path());
    let before = files(scratch.path());
    setup.train.steps = 19;
    let error = TrainingRun::new(scratch.path(), setup).run(&NoProgress).unwrap_err();
    assert!(error.to_string().contains("at least 20"), "{error}");
    assert_eq!(files(scratch.path()), before);
}

#[test]
fn other_versions_and_mixed_checkpoints_are_refused() {
    let (small, scratch) = (small(), tempfile::tempdir().unwrap());
    let newest = train(&small.setup(Reference::Pool), scratch.path()).checkpoint;
    let manifest = newest.join("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    // Sealed as a later version would.
    let body = &text[..text.rfind("  \"checksum\"").unwrap()];
    let seal =
        |body: String| format!("{body}  \"checksum\": \"{}\"\n}}\n", blake3::hash(body.as_bytes()));
    assert_eq!(seal(body.into()), text);
    for (from, to) in [("\"schema\": 2", "\"schema\": 3"), ("\"step\": 20", "\"step\": 21")] {
        assert!(body.contains(from));
        fs::write(&manifest, seal(body.replacen(from, to, 1))).unwrap();
        let error = Checkpoint::load(&newest).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
        println!("{error}");
    }
    // A whole state of another step.
    let other = newest.with_file_name("step-00000015");
    fs::write(&manifest, &text).unwrap();
    fs::copy(other.join("state.safetensors"), newest.join("state.safetensors")).unwrap();
    let error = Checkpoint::load(&newest).unwrap_err();
    assert_eq!(named(&error), newest.join("state.safetensors"));
}

#[test]
fn leftovers_of_killed_processes_disturb_nobody() {
    let (small, scratch) = (small(), tempfile::tempdir().unwrap());
    let setup = small.setup(Reference::Buffer);
    let (whole, killed) = (scratch.path().join("whole"), scratch.path().join("killed"));
    let expected = train(&setup, &whole);
    TrainingRun::new(&killed, setup.clone()).run(&StopAfter::steps(11)).unwrap();
    let folder = killed.join("checkpoints");
    // Killed while a checkpoint was written; after it got its name, but before `latest` knew; while a line was written.
    copy(&folder.join("step-00000011"), &folder.join(".step-00000012.123.0.part"));
    fs::remove_file(folder.join(".step-00000012.123.0.part/manifest.json")).unwrap();
    copy(&expected.checkpoint, &folder.join("step-00000015"));
    fs::write(killed.join(".latest.123.0.part"), b"checkpoi").unwrap();
    let mut lines = fs::read(killed.join("metrics.jsonl")).unwrap();
    lines.extend(b"{\"step\":12,\"loss\":0.3}\n{\"step\":13,\"lo");
    fs::write(killed.join("metrics.jsonl"), lines).unwrap();
    let outcome = train(&setup, &killed);
    assert_eq!(outcome.stop, Stop::Finished);
    assert_same(&killed, &outcome, (&whole, &expected), "leftovers");
    let names: Vec<_> = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().starts_with('.')), "{names:?}");
    assert!(!killed.join(".latest.123.0.part").exists());
}

#[test]
fn a_model_must_be_the_one_of_its_manifest() {
    let (small, scratch) = (small(), tempfile::tempdir().unwrap());
    let (a, b) = (scratch.path().join("a"), scratch.path().join("b"));
    let setup = small.setup(Reference::Pool);
    let ours = train(&setup, &a).checkpoint;
    let theirs = train(&Setup { seed: 8, ..setup }, &b).checkpoint;
    for name in ["model.json", "model.safetensors"] {
        leaps::store::Model::load(&ours).unwrap();
        let own = fs::read(ours.join(name)).unwrap();
        fs::copy(theirs.join(name), ours.join(name)).unwrap();
        let error = leaps::store::Model::load(&ours).unwrap_err();
        assert!(matches!(error, leaps::Error::Corrupt { .. }), "{error}");
        fs::write(ours.join(name), own).unwrap();
    }
    // Both files, which fit each other but not the manifest.
    for name in ["model.json", "model.safetensors"] {
        fs::copy(theirs.join(name), ours.join(name)).unwrap();
    }
    let error = leaps::store::Model::load(&ours).unwrap_err();
    assert!(error.to_string().contains("model.json"), "{error}");
    // A model without a manifest is a model too; what a manifest names has to be there.
    fs::remove_file(ours.join("manifest.json")).unwrap();
    leaps::store::Model::load(&ours).unwrap();
    fs::remove_file(theirs.join("state.safetensors")).unwrap();
    let error = leaps::store::Model::load(&theirs).unwrap_err();
    assert!(error.to_string().contains("state.safetensors"), "{error}");
    fs::remove_file(theirs.join("manifest.json")).unwrap();
    leaps::store::Model::load(&theirs).unwrap();
}
