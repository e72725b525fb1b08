//! List the models of the folder `models/`, so that the program brings them along, and say what it is built of.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

fn main() {
    let root =
        Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo says")).join("../leaps/models");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={}", root.display());
    // A package without the repository around it has none.
    let entries = fs::read_dir(&root).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut folders: Vec<_> = entries.filter(|path| path.join("model.json").is_file()).collect();
    folders.sort();
    let mut text = "&[\n".to_owned();
    for folder in folders {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // What a killed process left of a model, and models that need files beside them.
        if name.starts_with('.') || folder.join("target").exists() {
            println!("cargo:warning=models/{name} is not shipped: use it by its directory");
            continue;
        }
        let file = |name: &str| folder.join(name).display().to_string();
        text += &format!(
            "Shipped {{ name: {name:?}, card: include_str!({:?}), description: include_bytes!({:?}), tensors: include_bytes!({:?}) }},\n",
            file("card.toml"),
            file("model.json"),
            file("model.safetensors"),
        );
    }
    let out = Path::new(&env::var("OUT_DIR").expect("cargo says")).join("shipped.rs");
    fs::write(out, text + "]").expect("cargo's own folder can be written");
    println!("cargo:rustc-env=LEAPS_BUILD={}", build());
}

/// The commit, where the source is a clone, and the features.
fn build() -> String {
    let git = |words: &[&str]| {
        let output =
            Command::new("git").args(words).output().ok().filter(|o| o.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file]) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    let commit = git(&["rev-parse", "--short=8", "HEAD"]);
    let commit = commit.map_or("no commit known".to_owned(), |commit| format!("commit {commit}"));
    let features: Vec<&str> = [("CARGO_FEATURE_CUDA", "cuda")]
        .iter()
        .filter(|f| env::var_os(f.0).is_some())
        .map(|f| f.1)
        .collect();
    let features = if features.is_empty() { "none".to_owned() } else { features.join(", ") };
    format!("{commit}; features: {features}")
}
