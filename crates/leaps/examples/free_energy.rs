//! Free energy over temperatures: one run of annealed walkers measures every temperature that they pass.

use leaps::prelude::*;

pub(crate) fn main() -> leaps::Result<()> {
    let problem = Ising::square(8).field(0.05).beta(0.6)?;
    let betas = (1..=6).map(|k| 0.1 * f64::from(k));
    let run = Annealing::smc(problem).walkers(2000).intervals(120).at_beta(betas).run()?;
    println!("{:>5} {:>14} {:>12} {:>12} {:>8}", "beta", "F / N", "E / N", "C / N", "|m|");
    for at in &run.at_beta {
        let Observables { energy_per_site, heat_capacity_per_site, abs_magnetization, .. } =
            &at.observables;
        println!(
            "{:>5.2} {:>14} {energy_per_site:>12} {heat_capacity_per_site:>12} {abs_magnetization:>8}",
            at.beta, at.free_energy_per_site,
        );
    }
    // The last one beside the exact answer, by transfer matrix.
    let exact = Solving::new(Ising::square(8).field(0.05).beta(0.6)?).run()?;
    println!("exact at 0.60: F / N = {:.6}", exact.free_energy_per_site);
    let last = run.at_beta.last().expect("six were asked for").free_energy_per_site;
    assert!((last.mean - exact.free_energy_per_site).abs() < 5.0 * last.error);
    Ok(())
}
