//! Time the authors' Ising network: forward passes, and the loss with its gradient.
//!
//! `cargo bench -p leaps --bench lec`, then `python3 crates/leaps/benches/peers/lec_torch.py` for the same in PyTorch, both on two
//! threads. Speeds depend on sizes only, so the parameters are fresh ones. `--quick` does a quarter of the work.

use std::hint::black_box;
use std::time::Instant;

use leaps::net::{FreeEnergy, FreeEnergySpec, LecSpec, Net, NetSpec, Worker};
use leaps::target::{Boundary, Lattice, Pairwise};
use rayon::prelude::*;

const SIDE: usize = 15;
const SITES: usize = SIDE * SIDE;
const BATCH: usize = 400;
const LANES: usize = 16;
const BETA: f64 = 0.4407;

struct Workload {
    net: Net,
    packed: Vec<f32>,
    free_energy: FreeEnergy,
    curve: Vec<f32>,
    states: Vec<Vec<u8>>,
    times: Vec<f64>,
}

/// Work space and gradients of one thread.
struct Space {
    worker: Worker,
    gradient: Vec<f32>,
    curve: Vec<f32>,
    loss: f64,
}

impl Workload {
    fn new() -> Self {
        let lattice = Lattice::new(&[SIDE, SIDE], Boundary::Periodic).unwrap();
        let target = Pairwise::ising(lattice, 1.0, 0.0).unwrap();
        let spec = LecSpec { imported: true, ..LecSpec::default() };
        let net = Net::new(&NetSpec::Lec(spec), &target).unwrap();
        let packed = net.pack(&net.initial(1));
        let free_energy =
            FreeEnergy::new(&FreeEnergySpec::Mlp { hidden: vec![200; 4] }, SITES).unwrap();
        let curve = free_energy.initial(1);
        let mut bits = 0x9E37_79B9_7F4A_7C15u64;
        let mut value = move || {
            bits ^= bits << 13;
            bits ^= bits >> 7;
            bits ^= bits << 17;
            (bits >> 40) as u8 & 1
        };
        let states = (0..BATCH).map(|_| (0..SITES).map(|_| value()).collect()).collect();
        let times = (0..BATCH).map(|k| (k as f64 + 0.5) / BATCH as f64).collect();
        Workload { net, packed, free_energy, curve, states, times }
    }

    fn space(&self) -> Space {
        Space {
            worker: self.net.worker(),
            gradient: vec![0.0; self.packed.len()],
            curve: vec![0.0; self.curve.len()],
            loss: 0.0,
        }
    }

    /// The outputs of a group of 16.
    fn forward(&self, worker: &mut Worker, group: usize) {
        for lane in 0..LANES {
            let k = group * LANES + lane;
            worker.set(lane, &self.states[k], self.times[k]);
        }
        self.net.forward(&self.packed, worker);
    }

    /// The loss `mean |K + dF/dt|^2` of a group, with the paper's relu rates, and its gradient.
    fn loss(&self, space: &mut Space, group: usize) {
        self.forward(&mut space.worker, group);
        let times = &self.times[group * LANES..][..LANES];
        let rates = self.free_energy.rates(&self.curve, times);
        let mut weights = [0.0; LANES];
        for lane in 0..LANES {
            let x = &self.states[group * LANES + lane];
            let spin = |i: usize, j: usize| 2.0 * f64::from(x[i % SIDE * SIDE + j % SIDE]) - 1.0;
            let (mut residual, mut slopes) = (f64::from(rates[lane]), [0.0; SITES]);
            for site in 0..SITES {
                let (i, j) = (site / SIDE, site % SIDE);
                let (own, ahead) = (spin(i, j), spin(i + 1, j) + spin(i, j + 1));
                let field = ahead + spin(i + SIDE - 1, j) + spin(i, j + SIDE - 1);
                let flux = own * f64::from(space.worker.output(lane, site));
                let back = (-2.0 * BETA * times[lane] * own * field).exp();
                let slope = if flux > 0.0 { 1.0 } else { back };
                residual += BETA * own * ahead + slope * flux;
                slopes[site] = own * slope;
            }
            space.loss += residual * residual / BATCH as f64;
            let scale = 2.0 * residual / BATCH as f64;
            weights[lane] = scale as f32;
            for site in 0..SITES {
                space.worker.set_slope(lane, site, (scale * slopes[site]) as f32);
            }
        }
        self.net.backward(&self.packed, &mut space.worker, &mut space.gradient);
        self.free_energy.gradient(&self.curve, times, &weights, &mut space.curve);
    }

    fn all_forward(&self) {
        (0..BATCH / LANES).into_par_iter().for_each_init(
            || self.net.worker(),
            |worker, group| {
                self.forward(worker, group);
                black_box(&worker);
            },
        );
    }

    fn all_losses(&self) -> f64 {
        let spaces = (0..BATCH / LANES).into_par_iter().fold(
            || self.space(),
            |mut space, group| {
                self.loss(&mut space, group);
                space
            },
        );
        let total = spaces.reduce_with(|mut a, b| {
            for (a, b) in a.gradient.iter_mut().zip(&b.gradient) {
                *a += b;
            }
            for (a, b) in a.curve.iter_mut().zip(&b.curve) {
                *a += b;
            }
            a.loss += b.loss;
            a
        });
        let total = black_box(total.unwrap());
        let mut gradient = vec![0.0; self.net.parameters()];
        self.net.unpack(&total.gradient, &mut gradient);
        black_box(gradient);
        total.loss
    }
}

/// Seconds of CPU time that this process has used so far, where the system says so.
fn cpu_time() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks: f64 = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
    Some(ticks / 100.0)
}

/// Print configurations a second: the median, the best, and per second of CPU time.
fn speed(name: &str, times: usize, mut work: impl FnMut()) {
    let (mut speeds, before) = (Vec::new(), cpu_time());
    for _ in 0..times {
        let start = Instant::now();
        work();
        speeds.push(BATCH as f64 / start.elapsed().as_secs_f64());
    }
    let used = cpu_time().zip(before).map(|(after, before)| after - before);
    let per_core = used.map_or(f64::NAN, |used| (BATCH * times) as f64 / used);
    speeds.sort_by(f64::total_cmp);
    let (median, best) = (speeds[times / 2], speeds[times - 1]);
    println!("{name:<18}{median:>10.0}{best:>10.0}{per_core:>16.0}");
}

fn main() {
    let times = if std::env::args().any(|a| a == "--quick") { 3 } else { 11 };
    rayon::ThreadPoolBuilder::new().num_threads(2).build_global().unwrap();
    let workload = Workload::new();
    println!(
        "the authors' Ising network, {} parameters, batch {BATCH}, two threads, {:?}",
        workload.net.parameters(),
        leaps::device::SimdLevel::detect()
    );
    println!("{:<18}{:>10}{:>10}{:>16}", "configurations/s", "median", "best", "per core-second");
    speed("forward", times, || workload.all_forward());
    speed("loss + backward", times, || {
        black_box(workload.all_losses());
    });
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("");
        println!("{peak}");
    }
}
