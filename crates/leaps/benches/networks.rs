//! Time the networks on one core and on all threads, next to the CPU's fused multiplications and additions.
//!
//! `cargo bench -p leaps --bench networks`. Best of many short runs, since other work on the machine only ever slows a
//! run down. `--quick` makes fewer runs; `--json` prints one line for `crates/leaps/benches/peers/hollow_torch.py`.
//!
//! "direct" is what a convolution costs tap by tap, two operations a weight, site and direction, as PyTorch
//! counts; the fraction of the peak is of that number, and Winograd's transforms can bring it above one.
//!
//! `--sizes 8,15,64` times forward passes on square lattices instead, with and without keeping what a backward pass
//! needs, in microseconds a configuration and site.

#[path = "support/clock.rs"]
mod clock;

#[cfg(target_arch = "x86_64")]
use std::hint::black_box;

use clock::{cpu_time, wall_time};
use leaps::net::{HollowSpec, Net, NetSpec, Worker};
use leaps::target::{Boundary, Lattice, Pairwise};
use rayon::prelude::*;

/// Billions of operations a second in a loop of nothing but fused multiplications and additions.
fn peak() -> f64 {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;

        #[target_feature(enable = "avx512f")]
        fn wide(rounds: usize) -> f32 {
            let (a, b) = (_mm512_set1_ps(black_box(0.999)), _mm512_set1_ps(black_box(1e-3)));
            let mut sums = [_mm512_set1_ps(black_box(1.0)); 24];
            for _ in 0..rounds {
                for sum in &mut sums {
                    *sum = _mm512_fmadd_ps(*sum, a, b);
                }
            }
            let mut all = _mm512_setzero_ps();
            for sum in sums {
                all = _mm512_add_ps(all, sum);
            }
            _mm512_reduce_add_ps(all)
        }

        #[target_feature(enable = "avx2,fma")]
        fn narrow(rounds: usize) -> f32 {
            let (a, b) = (_mm256_set1_ps(black_box(0.999)), _mm256_set1_ps(black_box(1e-3)));
            let mut sums = [_mm256_set1_ps(black_box(1.0)); 12];
            for _ in 0..rounds {
                for sum in &mut sums {
                    *sum = _mm256_fmadd_ps(*sum, a, b);
                }
            }
            let mut all = _mm256_setzero_ps();
            for sum in sums {
                all = _mm256_add_ps(all, sum);
            }
            _mm256_cvtss_f32(all)
        }

        let rounds = 100_000;
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the CPU has the instructions.
            let seconds = best(50, cpu_time, || _ = black_box(unsafe { wide(rounds) }));
            return (rounds * 24 * 16 * 2) as f64 / seconds / 1e9;
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the CPU has the instructions.
            let seconds = best(50, cpu_time, || _ = black_box(unsafe { narrow(rounds) }));
            return (rounds * 12 * 8 * 2) as f64 / seconds / 1e9;
        }
    }
    f64::NAN
}

/// The shortest of several runs by this clock, in seconds.
fn best(runs: usize, clock: fn() -> f64, mut work: impl FnMut()) -> f64 {
    let mut shortest = f64::INFINITY;
    for _ in 0..runs {
        let start = clock();
        work();
        shortest = shortest.min(clock() - start);
    }
    shortest
}

struct Case {
    name: &'static str,
    side: usize,
    q: usize,
    channels: usize,
    depth: usize,
}

/// Configurations that a worker carries.
const WIDTH: usize = 16;

impl Case {
    fn net(&self) -> Net {
        let lattice = Lattice::new(&[self.side, self.side], Boundary::Periodic).unwrap();
        let model = if self.q == 2 {
            Pairwise::ising(lattice, 1.0, 0.0)
        } else {
            Pairwise::potts(lattice, self.q, 1.0, 0.0)
        };
        let spec = HollowSpec {
            channels: self.channels,
            depth: Some(self.depth),
            ..HollowSpec::default()
        };
        Net::new(&NetSpec::Hollow(spec), &model.unwrap()).unwrap()
    }

    /// Operations of a forward pass tap by tap.
    fn operations(&self) -> f64 {
        let (c, io) = (self.channels, if self.q == 2 { 1 } else { self.q });
        let stack = 4 * 9 * (io * c + (self.depth - 1) * c * c);
        let head = 4 * c * 2 * c + 2 * c * 2 * c + 2 * c * io;
        2.0 * (self.side * self.side * (stack + head)) as f64
    }

    fn worker(&self, net: &Net, seed: usize) -> Worker {
        let mut worker = self.fill(net.worker(), seed);
        for lane in 0..WIDTH {
            for index in 0..self.side * self.side * net.outputs() {
                worker.set_slope(lane, index, ((index + lane) % 5) as f32 - 2.0);
            }
        }
        worker
    }

    fn fill(&self, mut worker: Worker, seed: usize) -> Worker {
        let sites = self.side * self.side;
        for lane in 0..WIDTH {
            let state: Vec<u8> = (0..sites)
                .map(|i| ((i * 7919 + lane * 104_729 + seed * 31) / 5 % self.q) as u8)
                .collect();
            worker.set(lane, &state, lane as f64 / 16.0);
        }
        worker
    }
}

/// What a configuration costs a site in a forward pass on one core, by side.
fn against_sites(sides: &str, runs: usize) {
    println!("{:>6}{:>10}{:>10}   microseconds a configuration and site", "side", "keeping", "not");
    for side in sides.split(',').map(|side| side.parse().unwrap()) {
        let case = Case { name: "", side, q: 2, channels: 24, depth: 3 };
        let net = case.net();
        let packed = net.pack(&net.initial(1));
        let mut workers = [net.worker(), net.forward_worker()].map(|w| case.fill(w, 0));
        // About as long for every side, both kinds in turn.
        let repeats = 1 + 4096 / (side * side);
        let mut shortest = [f64::INFINITY; 2];
        for _ in 0..runs {
            for (worker, shortest) in workers.iter_mut().zip(&mut shortest) {
                let pass = || (0..repeats).for_each(|_| net.forward(&packed, worker));
                *shortest = shortest.min(best(1, cpu_time, pass));
            }
        }
        let [keeping, not] = shortest.map(|s| 1e6 * s / (repeats * WIDTH * side * side) as f64);
        println!("{side:>6}{keeping:>10.3}{not:>10.3}");
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let quick = arguments.iter().any(|a| a == "--quick");
    let json = arguments.iter().any(|a| a == "--json");
    let runs = if quick { 5 } else { 40 };
    if let Some(at) = arguments.iter().position(|a| a == "--sizes") {
        return against_sites(&arguments[at + 1], runs / 2);
    }
    let peak = peak();
    let cases = [
        Case { name: "hollow 24x6, Ising 15x15", side: 15, q: 2, channels: 24, depth: 6 },
        Case { name: "hollow 24x6, Potts 3 15x15", side: 15, q: 3, channels: 24, depth: 6 },
        Case { name: "hollow 48x6, Ising 15x15", side: 15, q: 2, channels: 48, depth: 6 },
        Case { name: "hollow 16x3, Ising 8x8", side: 8, q: 2, channels: 16, depth: 3 },
    ];
    if !json {
        println!("{peak:.0} GFLOP/s of fused operations on one core; configurations/s");
        println!(
            "{:<28}{:>10}{:>10}{:>10}{:>10}{:>12}{:>12}",
            "", "forward", "of peak", "+ back", "of peak", "forward all", "+ back all"
        );
    }
    let mut lines = Vec::new();
    for case in cases {
        let net = case.net();
        let packed = net.pack(&net.initial(1));
        let mut worker = case.worker(&net, 0);
        let mut lean = case.fill(net.forward_worker(), 0);
        let mut grad = vec![0.0; packed.len()];
        let forward = best(runs, cpu_time, || net.forward(&packed, &mut lean));
        let both = best(runs, cpu_time, || {
            net.forward(&packed, &mut worker);
            net.backward(&packed, &mut worker, &mut grad);
        });
        // A batch of 256, as groups spread over the threads.
        let mut workers: Vec<(Worker, Vec<f32>)> = (0..rayon::current_num_threads())
            .map(|k| (case.worker(&net, k), vec![0.0; packed.len()]))
            .collect();
        let groups = 16 / workers.len();
        let batch = (groups * workers.len() * WIDTH) as f64;
        let runs = runs / 5;
        let mut leans: Vec<Worker> =
            (0..rayon::current_num_threads()).map(|k| case.fill(net.forward_worker(), k)).collect();
        let forward_all = best(runs, wall_time, || {
            leans.par_iter_mut().for_each(|worker| {
                (0..groups).for_each(|_| net.forward(&packed, worker));
            })
        });
        let both_all = best(runs, wall_time, || {
            workers.par_iter_mut().for_each(|(worker, grad)| {
                grad.fill(0.0);
                for _ in 0..groups {
                    net.forward(&packed, worker);
                    net.backward(&packed, worker, grad);
                }
            })
        });
        let rate = |n: f64, seconds: f64| n / seconds;
        let (forward, both) = (rate(16.0, forward), rate(16.0, both));
        let (forward_all, both_all) = (rate(batch, forward_all), rate(batch, both_all));
        let of_peak = case.operations() / peak / 1e9;
        if json {
            lines.push(format!(
                r#"{{"channels": {}, "depth": {}, "side": {}, "q": {}, "forward": {forward_all}, "both": {both_all}, "forward_core": {forward}, "both_core": {both}}}"#,
                case.channels, case.depth, case.side, case.q
            ));
        } else {
            println!(
                "{:<28}{forward:>10.0}{:>10.2}{both:>10.0}{:>10.2}{forward_all:>12.0}{both_all:>12.0}",
                case.name,
                forward * of_peak,
                3.0 * both * of_peak
            );
        }
    }
    if json {
        println!("[{}]", lines.join(", "));
    }
}
