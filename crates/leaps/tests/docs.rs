//! The examples that README and guide show run, and are what is shown.

#[path = "../examples/anneal.rs"]
mod anneal;
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

#[test]
fn the_readme_shows_an_example_that_runs() {
    let (_, code) = include_str!("../examples/anneal.rs").split_once("\n\n").unwrap();
    let code = code.replace("pub(crate) fn", "fn");
    assert!(include_str!("../../../README.md").contains(&format!("```rust\n{code}```")));
    anneal::main().unwrap();
}
