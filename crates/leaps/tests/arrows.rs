//! Modules of the library use only those before them, so that every room can be read without the ones that stand on it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms from the ground up. Those of one line stand side by side and do not use each other, but for the first line.
const ROOMS: [&[&str]; 13] = [
    &["error", "device", "file", "parse"],
    &["target", "path"],
    &["problem"],
    &["observe"],
    &["exact", "mcmc", "rates"],
    &["net"],
    &["sampler"],
    &["train"],
    &["spec"],
    &["results"],
    &["store"],
    &["job"],
    &["prelude"],
];

fn floor(room: &str) -> Option<usize> {
    ROOMS.iter().position(|rooms| rooms.contains(&room))
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        match entry.is_dir() {
            true => sources(&entry, found),
            false if entry.extension().is_some_and(|end| end == "rs") => found.push(entry),
            false => {}
        }
    }
}

/// Rooms that a source names after `crate::`, tests left out.
fn named(text: &str) -> BTreeSet<String> {
    let code = text.split("#[cfg(test)]\nmod").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let words = lines.flat_map(|line| line.split("crate::").skip(1));
    words
        .map(|rest| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
        .collect()
}

#[test]
fn arrows_point_one_way() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let (mut seen, mut wrong) = (BTreeSet::new(), Vec::new());
    for file in &files {
        let inside = file.strip_prefix(&root).unwrap();
        let room = inside.iter().next().unwrap().to_string_lossy().replace(".rs", "");
        let test = inside.iter().any(|part| part.to_string_lossy().contains("test"));
        let Some(own) = floor(&room).filter(|_| !test) else { continue };
        seen.insert(room.clone());
        for other in named(&fs::read_to_string(file).unwrap()) {
            let above = floor(&other).is_some_and(|other| other > own || own > 0 && other == own);
            if above && other != room {
                wrong.push(format!("{} uses {other}", inside.display()));
            }
        }
    }
    assert_eq!(seen.len(), ROOMS.iter().map(|rooms| rooms.len()).sum::<usize>(), "{seen:?}");
    assert!(wrong.is_empty(), "against the arrows:\n{}", wrong.join("\n"));
}

/// Files that still ask for the feature elsewhere.
const ASKING: [&str; 7] = [
    "sampler/moves.rs",
    "sampler/walkers/mod.rs",
    "sampler/walkers/network.rs",
    "sampler/walkers/place.rs",
    "train/mod.rs",
    "train/pool.rs",
    "train/trainer.rs",
];

#[test]
fn the_feature_cuda_is_asked_for_in_device_and_in_modules_named_cuda() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let asks = |file: &&PathBuf| fs::read_to_string(file).unwrap().contains("feature = \"cuda\"");
    let elsewhere: Vec<String> = files
        .iter()
        .filter(asks)
        .map(|file| file.strip_prefix(&root).unwrap())
        .filter(|file| !file.starts_with("device") && !file.iter().any(|part| part == "cuda"))
        .filter(|file| file.file_name().is_none_or(|name| name != "cuda.rs"))
        .map(|file| file.display().to_string().replace('\\', "/"))
        .filter(|file| !ASKING.contains(&&file[..]))
        .collect();
    assert!(elsewhere.is_empty(), "these ask for the feature cuda: {elsewhere:?}");
}
