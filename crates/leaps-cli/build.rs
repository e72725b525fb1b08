//! List the models of the folder `models/`, so that the program brings them along.

use std::path::Path;
use std::{env, fs};

fn main() {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo says")).join("../../models");
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
}
