//! What the package finds out when it is built.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    test_resources();
}

/// Tests that need the authors' numbers or a compiler for kernels are ignored where none is named, and say so. What is
/// named but missing makes them fail.
fn test_resources() {
    for (variable, found) in [("LEAPS_FIXTURES", "has_fixtures"), ("LEAPS_NVRTC", "has_nvrtc")] {
        println!("cargo::rerun-if-env-changed={variable}");
        println!("cargo::rustc-check-cfg=cfg({found})");
        if std::env::var_os(variable).is_some() {
            println!("cargo::rustc-cfg={found}");
        }
    }
}
