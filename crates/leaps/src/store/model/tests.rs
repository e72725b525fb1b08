//! Tests of models in files.

use serde_json::json;

use super::*;
use crate::net::{HollowSpec, MlpSpec};
use crate::target::{Lattice, Pairwise};

fn ising(side: usize) -> Pairwise {
    let lattice = Lattice::new(&[side, side], Boundary::Periodic).unwrap();
    Pairwise::ising(lattice, 1.0, 0.1).unwrap()
}

fn model(seed: u64) -> (Model, Vec<f32>, Vec<f32>) {
    let target = ising(3);
    let net = Net::new(&NetSpec::Mlp(MlpSpec { hidden: 4 }), &target).unwrap();
    let free = FreeEnergy::new(&FreeEnergySpec::Rate, 9).unwrap();
    let mut average = net.initial(seed);
    average.extend(free.initial(seed));
    let raw: Vec<f32> = average.iter().map(|p| p + 1.0).collect();
    let training = Summary {
        steps: 3,
        loss: Some(0.1),
        log_z: Some(Estimate::new(1.0, f64::INFINITY)),
        ..Summary::default()
    };
    let (target, path) =
        (json!({ "kind": "ising", "size": 3 }), PathSpec { ratio: 0.2, ..PathSpec::default() });
    let parametrisation = Parametrisation::Barker;
    let (net, free, some) = (&net, &free, Some(&raw[..]));
    let parts = ModelParts {
        net,
        free,
        parametrisation,
        target,
        path,
        training,
        average: &average,
        raw: some,
    };
    let model = Model::new(parts).unwrap();
    (model, average, raw)
}

#[test]
fn what_is_saved_is_loaded() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("new/model");
    let (model, average, raw) = model(1);
    model.save(&directory).unwrap();
    model.save(&directory).unwrap(); // over itself
    let mut loaded = Model::load(&directory).unwrap();
    assert_eq!(loaded.file(), directory.join(TENSORS));
    let target = ising(3);
    let (net, free) = (loaded.net(&target).unwrap(), loaded.free(&target).unwrap());
    let parameters = loaded.parameters(&net).unwrap();
    assert_eq!(parameters, average[..net.parameters()]);
    assert_eq!(loaded.free_parameters(&free).unwrap(), average[net.parameters()..]);
    assert_eq!(loaded.raw(&net, &free).unwrap(), Some(raw));
    assert_eq!(loaded.parameters(&net).unwrap(), parameters);
    loaded.tensors.path = model.tensors.path.clone();
    assert_eq!(loaded, model);
}

#[test]
fn a_model_is_read_from_memory_with_or_without_its_raw_parameters() {
    let scratch = tempfile::tempdir().unwrap();
    let (model, average, _) = model(1);
    let directory = scratch.path().join("m");
    model.averaged().save(&directory).unwrap();
    let read = |name: &str| fs::read(directory.join(name)).unwrap();
    let (description, tensors) = (read(DESCRIPTION), read(TENSORS));
    let place = Path::new("shipped");
    let found = Model::from_bytes(place, &description, &tensors).unwrap();
    assert_eq!(found.checksum().unwrap(), file::checksum(&tensors));
    let target = ising(3);
    let (net, free) = (found.net(&target).unwrap(), found.free(&target).unwrap());
    assert_eq!(found.raw(&net, &free).unwrap(), None);
    assert_eq!(found.parameters(&net).unwrap(), average[..net.parameters()]);
    assert_eq!(found.file(), place.join(TENSORS));
    for at in [0, 1] {
        let mut files = [description.clone(), tensors.clone()];
        let middle = files[at].len() / 2;
        files[at][middle] ^= 1;
        let error = Model::from_bytes(place, &files[0], &files[1]).unwrap_err();
        assert!(error.to_string().contains("shipped"), "{error}");
    }
}

#[test]
fn a_network_for_another_target_is_refused_tensor_by_tensor() {
    let scratch = tempfile::tempdir().unwrap();
    model(1).0.save(scratch.path()).unwrap();
    let mut loaded = Model::load(scratch.path()).unwrap();
    let text = loaded.net(&ising(4)).unwrap_err().to_string();
    let file = scratch.path().join(TENSORS);
    assert!(text.starts_with(file.to_str().unwrap()), "{text}");
    assert!(text.contains("net.weight") && text.contains("[4, 9, 8]"), "{text}");
    loaded.tensors.put("net.extra", &[1], vec![0.0f32]);
    assert!(loaded.net(&ising(3)).unwrap_err().to_string().contains("net.extra"));
    loaded.tensors.put("net.bias", &[4, 9], vec![f32::NAN; 36]);
    assert!(loaded.net(&ising(3)).unwrap_err().to_string().contains("net.bias: number 0 is NaN"));
    loaded.tensors.put("net.weight", &[4, 9, 8], vec![0u8; 288]);
    assert!(loaded.net(&ising(3)).unwrap_err().to_string().contains("net.weight: holds U8"));
    loaded.network = NetSpec::Mlp(MlpSpec { hidden: 0 });
    assert!(matches!(loaded.net(&ising(3)), Err(Error::Invalid { .. })));
}

#[test]
fn lattices_that_are_too_small_for_a_network_are_refused_with_the_side_it_needs() {
    let spec = HollowSpec {
        channels: 2,
        depth: Some(2),
        rows: Some(3),
        head: Some(2),
        ..Default::default()
    };
    let net = Net::new(&NetSpec::Hollow(spec), &ising(6)).unwrap();
    let free = FreeEnergy::new(&FreeEnergySpec::Rate, 36).unwrap();
    let mut all = net.initial(1);
    all.extend(free.initial(1));
    let model = Model::new(ModelParts {
        net: &net,
        free: &free,
        parametrisation: Parametrisation::Barker,
        target: serde_json::Value::Null,
        path: PathSpec::default(),
        training: Summary::default(),
        average: &all,
        raw: None,
    })
    .unwrap();
    model.net(&ising(6)).unwrap();
    model.net(&ising(7)).unwrap();
    let text = model.net(&ising(5)).unwrap_err().to_string();
    assert!(text.contains("at least 6") && text.contains("is 5"), "{text}");
    assert!(!text.contains("network.depth"), "its depth is what it is: {text}");
    // Free boundaries have no way round.
    let free = Lattice::new(&[3, 3], Boundary::Free).unwrap();
    model.net(&Pairwise::ising(free, 1.0, 0.1).unwrap()).unwrap();
}

#[test]
fn altered_files_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    model(1).0.save(scratch.path()).unwrap();
    for name in [TENSORS, DESCRIPTION] {
        let file = scratch.path().join(name);
        let bytes = fs::read(&file).unwrap();
        let refused = |bytes: &[u8]| {
            fs::write(&file, bytes).unwrap();
            let error = Model::load(scratch.path()).unwrap_err();
            assert!(matches!(&error, Error::Corrupt { path, .. } if *path == file), "{error}");
        };
        (0..bytes.len()).step_by(97).for_each(|length| refused(&bytes[..length]));
        for flip in 0..200 {
            let mut altered = bytes.clone();
            let at = flip * 7919 % (8 * bytes.len());
            altered[at / 8] ^= 1 << (at % 8);
            refused(&altered);
        }
        fs::write(&file, &bytes).unwrap();
        Model::load(scratch.path()).unwrap();
    }
    // Files of two models: each is whole, the pair is not.
    let other = tempfile::tempdir().unwrap();
    model(2).0.save(other.path()).unwrap();
    fs::copy(other.path().join(TENSORS), scratch.path().join(TENSORS)).unwrap();
    assert!(matches!(Model::load(scratch.path()), Err(Error::Corrupt { .. })));
}

#[test]
fn missing_models_are_named() {
    let scratch = tempfile::tempdir().unwrap();
    for path in [scratch.path().join("nowhere"), scratch.path().into()] {
        let error = Model::load(&path).unwrap_err();
        assert!(matches!(&error, Error::Io { path: named, .. } if *named == path), "{error}");
    }
}

#[cfg(feature = "models")]
#[test]
fn shipped_models_are_written_as_they_lie_there() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let names = crate::store::model_names();
    assert!(names.len() > 5, "{names:?}");
    for name in names {
        let written = Model::open(&name).unwrap().contents().unwrap();
        for (file, bytes) in written {
            let lies = fs::read(folder.join(&name).join(&file)).unwrap();
            assert!(bytes == lies, "{name}/{file}");
        }
    }
}
