//! A network trained on the Ising model, and what it says about log Z, as the README shows it.

use leaps::prelude::*;

pub(crate) fn main() -> leaps::Result<()> {
    let problem = Ising::square(6).beta(0.4407)?;
    let model = Training::new(problem).steps(300).run()?;
    let run = model.sampling().walkers(2_000).run()?;
    println!("log Z = {}, ESS = {:.3}", run.log_z, run.ess);
    Ok(())
}
