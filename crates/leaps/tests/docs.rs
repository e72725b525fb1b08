//! The examples run, and README and guide show them as they are.

#[path = "../examples/custom_energy.rs"]
mod custom_energy;
#[path = "../examples/free_energy.rs"]
mod free_energy;
#[path = "../examples/gpu.rs"]
mod gpu;
#[path = "../examples/quickstart.rs"]
mod quickstart;
#[cfg(feature = "models")]
#[path = "../examples/shipped_network.rs"]
mod shipped_network;
#[path = "../examples/train_custom_energy.rs"]
mod train_custom_energy;

#[test]
fn a_custom_energy_is_sampled() {
    custom_energy::main().unwrap();
}

#[test]
fn a_network_is_trained_on_a_custom_energy() {
    train_custom_energy::main().unwrap();
}

#[test]
fn free_energies_of_many_temperatures_come_from_one_run() {
    free_energy::main().unwrap();
}

#[cfg(feature = "models")]
#[test]
fn a_shipped_network_is_used_by_name() {
    shipped_network::main().unwrap();
}

#[test]
fn a_gpu_is_used_where_there_is_one() {
    gpu::main().unwrap();
}

#[test]
fn the_guide_shows_the_example() {
    let example = include_str!("../examples/custom_energy.rs");
    let guide = include_str!("../../../docs/custom-energy.md");
    assert!(guide.contains(example));
    assert!(example.lines().count() <= 40);
}

#[test]
fn the_readme_shows_an_example_that_runs() {
    let (_, code) = include_str!("../examples/quickstart.rs").split_once("\n\n").unwrap();
    let code = code.replace("pub(crate) fn", "fn");
    assert!(include_str!("../../../README.md").contains(&format!("```rust\n{code}```")));
    quickstart::main().unwrap();
}
