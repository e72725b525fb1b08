//! Time networks on a GPU: forward passes, and forward and backward passes of a training batch.
//!
//! `cargo bench -p leaps --bench cuda`. Speeds depend on sizes only, so the parameters are fresh ones. `--quick` does less.

use std::sync::Arc;
use std::time::Instant;

use leaps::Result;
use leaps::device::{Gpu, Precision};
use leaps::net::cuda::CudaEvaluator;
use leaps::net::{
    Evaluator, HollowGraphSpec, HollowSpec, Inputs, LeaSpec, LecSpec, MlpSpec, Net, NetSpec,
};
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
    for lanes in [trained, 4096, 16384] {
        let mut on_gpu = CudaEvaluator::new(net, gpu, lanes, precision)?;
        on_gpu.load(&parameters)?;
        let times: Vec<f64> = (0..lanes).map(|k| (k as f64 + 0.5) / lanes as f64).collect();
        on_gpu.place(Inputs { states: &states(lanes), times: &times, ..Inputs::default() })?;
        let forward = seconds(&mut on_gpu, quick, CudaEvaluator::start_forward)?;
        print!("{:>12.0}", lanes as f64 / forward);
        if lanes == trained {
            let both = seconds(&mut on_gpu, quick, CudaEvaluator::start_gradient)?;
            print!("{:>10.3} ms{:>10.3} ms", 1e3 * forward, 1e3 * both);
        }
    }
    println!();
    Ok(())
}

fn main() -> Result<()> {
    let quick = std::env::args().any(|a| a == "--quick");
    let gpu = match Gpu::open(0) {
        Ok(gpu) => gpu,
        Err(error) => {
            println!("skipped: no GPU ({error})");
            return Ok(());
        }
    };
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
