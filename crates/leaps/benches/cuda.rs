//! Time networks on a GPU, forward passes, and forward and backward passes of a training batch; and Markov chains there.
//!
//! `cargo bench -p leaps --bench cuda`. Speeds depend on sizes only, so the parameters are fresh ones. `--quick` does less, `--chains`
//! and `--networks` one of the two.

use std::sync::Arc;
use std::time::Instant;

use leaps::Result;
use leaps::device::{Device, Gpu, Precision};
use leaps::job::{Chains, Context};
use leaps::mcmc::{KernelName, Move};
use leaps::net::cuda::CudaEvaluator;
use leaps::net::{
    Evaluator, HollowGraphSpec, HollowSpec, Inputs, LeaSpec, LecSpec, MlpSpec, Net, NetSpec,
};
use leaps::prelude::Ising;
use leaps::target::{Boundary, Lattice, Pairwise};

const SIDE: usize = 15;
const SITES: usize = SIDE * SIDE;

/// Random states of two values.
fn states(n: usize) -> Vec<u8> {
    let mut bits = 0x9E37_79B9_7F4A_7C15u64;
    let mut value = || {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        (bits >> 40) as u8 & 1
    };
    (0..n * SITES).map(|_| value()).collect()
}

/// Seconds of one piece of work, the best of several tries after a warm-up.
fn seconds(
    net: &mut CudaEvaluator,
    quick: bool,
    work: impl Fn(&mut CudaEvaluator) -> Result<()>,
) -> Result<f64> {
    let (tries, repeats) = if quick { (3, 3) } else { (7, 10) };
    for _ in 0..2 {
        work(net)?;
    }
    net.wait()?;
    let mut best = f64::INFINITY;
    for _ in 0..tries {
        let start = Instant::now();
        for _ in 0..repeats {
            work(net)?;
        }
        net.wait()?;
        best = best.min(start.elapsed().as_secs_f64() / repeats as f64);
    }
    Ok(best)
}

/// Print the speeds of a network.
fn speeds(
    gpu: &Arc<Gpu>,
    name: &str,
    net: &Net,
    precision: Precision,
    trained: usize,
    quick: bool,
) -> Result<()> {
    let parameters = net.initial(1);
    print!("{name:<14}{:<9}{trained:>6}", precision.name());
    for slots in [trained, 4096, 16384] {
        let mut on_gpu = CudaEvaluator::new(net, gpu, slots, precision)?;
        on_gpu.load(&parameters)?;
        let times: Vec<f64> = (0..slots).map(|k| (k as f64 + 0.5) / slots as f64).collect();
        on_gpu.place(Inputs { states: &states(slots), times: &times, ..Inputs::default() })?;
        let forward = seconds(&mut on_gpu, quick, CudaEvaluator::start_forward)?;
        print!("{:>12.0}", slots as f64 / forward);
        if slots == trained {
            let both = seconds(&mut on_gpu, quick, CudaEvaluator::start_gradient)?;
            print!("{:>10.3} ms{:>10.3} ms", 1e3 * forward, 1e3 * both);
        }
    }
    println!();
    Ok(())
}

/// Updates and effective samples a second of some chains.
fn chain_speeds(label: &str, job: &Chains, context: &Context<'_>) -> Result<f64> {
    let run = job.run_in(context)?;
    let steps = job.chains.burn_in + run.steps;
    let rungs = run.tempering.as_ref().map_or(1, |ladder| ladder.betas.len());
    let updates = (job.chains.chains * steps * SITES * rungs) as f64;
    println!(
        "{label:<34}{:>10} chains{:>9.2} s{:>9.2} G updates/s{:>14.0} effective samples/s",
        job.chains.chains,
        run.seconds,
        1e-9 * updates / run.seconds,
        run.effective_samples_per_second
    );
    Ok(run.effective_samples_per_second)
}

/// Print the speeds of chains on the GPU and on two cores.
fn chains(quick: bool) -> Result<()> {
    let problem = Ising::square(SIDE).beta(0.5 * (1.0 + 2f64.sqrt()).ln())?;
    let two_cores = Context { device: Device::Cpu, threads: Some(2), ..Context::default() };
    let on_gpu = Context { device: Device::Cuda(0), ..Context::default() };
    println!("Markov chains, critical Ising {SIDE}x{SIDE}, measured every 20 sweeps after 200");
    let many: &[usize] = if quick { &[1 << 17] } else { &[1 << 17, 1 << 19] };
    for kernel in KernelName::ON_GPU {
        let mut job = Chains::new(problem.clone()).kernel(kernel).burn_in(200).steps(2000);
        job.chains.thin = 20;
        let label = format!("{kernel}, two cores");
        let slow = chain_speeds(&label, &job.clone().chains(1 << 13), &two_cores)?;
        // Kernels are compiled when they are first needed.
        job.clone().chains(64).steps(40).run_in(&on_gpu)?;
        for &chains in many {
            let label = format!("{kernel}, GPU");
            let fast = chain_speeds(&label, &job.clone().chains(chains), &on_gpu)?;
            println!("{:<34}{:>10.1} times two cores", "", fast / slow);
        }
    }
    for kernel in [Move::ParallelTempering, Move::Ladder] {
        let mut job = Chains::new(problem.clone()).tempering(8).burn_in(100).steps(1000);
        job.kernel.kernel = kernel;
        job.chains.thin = 10;
        let label = format!("{kernel}, two cores");
        let slow = chain_speeds(&label, &job.clone().chains(1 << 7), &two_cores)?;
        job.clone().chains(64).steps(40).run_in(&on_gpu)?;
        let label = format!("{kernel}, GPU");
        let fast = chain_speeds(&label, &job.chains(1 << 14), &on_gpu)?;
        println!("{:<34}{:>10.1} times two cores", "", fast / slow);
    }
    Ok(())
}

fn main() -> Result<()> {
    let asked = |flag: &str| std::env::args().any(|a| a == flag);
    let quick = asked("--quick");
    let gpu = match Gpu::open(0) {
        Ok(gpu) => gpu,
        Err(error) => {
            println!("skipped: no GPU ({error})");
            return Ok(());
        }
    };
    if !asked("--networks") {
        chains(quick)?;
    }
    if asked("--chains") {
        return Ok(());
    }
    let lattice = Lattice::new(&[SIDE, SIDE], Boundary::Periodic)?;
    let target = Pairwise::ising(lattice, 1.0, 0.0)?;
    println!("{}, Ising {SIDE}x{SIDE}; configurations/s forward at three batch sizes,", gpu.name());
    println!("and at the first the time of forward, and of forward and backward");
    println!(
        "{:<23}{:>6}{:>12}{:>13}{:>13}{:>12}{:>12}",
        "", "batch", "", "forward", "both", 4096, 16384
    );
    use Precision::{Bf16, Float32, Tf32};
    let lec = LecSpec { imported: true, ..LecSpec::default() };
    let paper = LeaSpec { heads: 40, width: 40, embedding: 40 };
    let hollow = |channels| {
        NetSpec::Hollow(HollowSpec { channels, depth: Some(6), ..HollowSpec::default() })
    };
    for (name, spec, trained, precisions) in [
        ("lec (authors)", NetSpec::Lec(lec), 400, &[Float32, Tf32][..]),
        ("hollow 24x6", hollow(24), 1024, &[Bf16]),
        ("hollow 48x6", hollow(48), 1024, &[Bf16, Float32]),
        ("mlp", NetSpec::Mlp(MlpSpec::default()), 400, &[Float32]),
        ("lea", NetSpec::Lea(LeaSpec::default()), 400, &[Float32]),
        ("lea 40x40", NetSpec::Lea(paper), 400, &[Float32]),
        ("hollow-graph", NetSpec::HollowGraph(HollowGraphSpec::default()), 400, &[Float32]),
    ] {
        let net = Net::new(&spec, &target)?;
        for &precision in precisions {
            if let Err(error) = speeds(&gpu, name, &net, precision, trained, quick) {
                println!("{error}");
            }
        }
    }
    Ok(())
}
