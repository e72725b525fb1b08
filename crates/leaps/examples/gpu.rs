//! Use the GPU if there is one, the CPU otherwise, and say which it was and why.

use leaps::prelude::*;

pub(crate) fn main() -> leaps::Result<()> {
    let problem = Potts::square(3, 8).beta(1.0)?;
    let job = Annealing::ais(problem).walkers(2000).intervals(50).seed(7);
    let run = job.run_in(&Context { device: Device::Auto, ..Context::default() })?;
    println!("on {}: log Z = {}, {:.2} s", run.computed.device, run.log_z, run.seconds);
    if let Some(reason) = &run.computed.reason {
        println!("not on a GPU: {reason}");
    }
    // The same seed gives the same walkers on both, but for the last bits of their weights.
    let cpu = job.run_in(&Context { device: Device::Cpu, ..Context::default() })?;
    println!("on {}: log Z = {}, {:.2} s", cpu.computed.device, cpu.log_z, cpu.seconds);
    assert!((run.log_z.mean - cpu.log_z.mean).abs() < 1e-6);
    Ok(())
}
