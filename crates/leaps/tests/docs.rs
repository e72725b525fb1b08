//! The worked example runs, is short, and is what the guide shows.

#[path = "../examples/custom_energy.rs"]
mod custom_energy;

#[test]
fn the_custom_energy_of_the_guide_runs() {
    custom_energy::main().unwrap();
}

#[test]
fn the_guide_shows_the_example() {
    let example = include_str!("../examples/custom_energy.rs");
    let guide = include_str!("../../../docs/custom-energy.md");
    assert!(guide.contains(example));
    assert!(example.lines().count() <= 40);
}
