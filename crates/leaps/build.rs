//! Build script: the networks of `models/` and the settings of `experiments/` that the library brings along, and which
//! tests can run.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    test_resources();
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo says"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says"));
    println!("cargo::rustc-check-cfg=cfg(read_only_folders_bind)");
    if read_only_folders_bind(&out.join("read-only")) {
        println!("cargo::rustc-cfg=read_only_folders_bind");
    }
    let with_models = env::var_os("CARGO_FEATURE_MODELS").is_some();
    let models = if with_models { models(&root.join("models")) } else { String::new() };
    write(&out.join("models.rs"), &models);
    write(&out.join("settings.rs"), &settings(&root.join("experiments")));
}

/// Whether this user may not write to read-only folders: the superuser may, and tests of them are then ignored.
fn read_only_folders_bind(folder: &Path) -> bool {
    fs::create_dir_all(folder).expect("cargo's own folder can be written");
    let mut rights = fs::metadata(folder).expect("it was made").permissions();
    rights.set_readonly(true);
    fs::set_permissions(folder, rights).expect("it is ours");
    fs::write(folder.join("probe"), b"").is_err()
}

fn write(file: &Path, entries: &str) {
    fs::write(file, format!("&[\n{entries}]\n")).expect("cargo's own folder can be written");
}

/// What lies in a folder, in order; changes there build the library anew.
fn entries(folder: &Path) -> Vec<PathBuf> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let found = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<_> = found.map(|entry| entry.path()).collect();
    found.sort();
    found
}

fn models(folder: &Path) -> String {
    let mut text = String::new();
    for model in entries(folder).into_iter().filter(|path| path.join("model.json").is_file()) {
        let name = model.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // What a killed process left of a model, and models that need files beside them.
        if name.starts_with('.') || model.join("target").exists() {
            println!("cargo::warning=models/{name} is not shipped: use it by its directory");
            continue;
        }
        let file = |name: &str| model.join(name).display().to_string();
        let (card, description, tensors) =
            (file("card.toml"), file("model.json"), file("model.safetensors"));
        writeln!(
            text,
            "Shipped {{ name: {name:?}, card: include_str!({card:?}), \
             description: include_bytes!({description:?}), tensors: include_bytes!({tensors:?}) }},"
        )
        .expect("memory can be written");
    }
    text
}

fn settings(folder: &Path) -> String {
    let mut text = String::new();
    for file in
        entries(folder).into_iter().filter(|file| file.extension().is_some_and(|e| e == "toml"))
    {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let file = file.display().to_string();
        writeln!(text, "({name:?}, include_str!({file:?})),").expect("memory can be written");
    }
    text
}

/// Tests that need the authors' numbers, a compiler for kernels or a Python with NumPy are ignored where none is named, and say so. What is
/// named but missing makes them fail.
fn test_resources() {
    for (variable, found) in [
        ("LEAPS_FIXTURES", "has_fixtures"),
        ("LEAPS_NVRTC", "has_nvrtc"),
        ("LEAPS_PYTHON", "has_python"),
    ] {
        println!("cargo::rerun-if-env-changed={variable}");
        println!("cargo::rustc-check-cfg=cfg({found})");
        if env::var_os(variable).is_some() {
            println!("cargo::rustc-cfg={found}");
        }
    }
}
