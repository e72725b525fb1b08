//! Time sweeps over many walkers against a plain scalar loop, and the paper's AIS run.
//!
//! `cargo bench -p leaps --bench sweeps`. Every line alternates the contestants and reports medians, so
//! the ratios survive a noisy machine. `--quick` does a tenth of the work, `--tables` the models of tables and of several
//! couplings alone, in CPU time where the system tells it.

#[path = "support/clock.rs"]
#[allow(dead_code)]
mod clock;

use std::hint::black_box;
use std::time::Instant;

use clock::cpu_time;
use leaps::device::{NoProgress, Purpose, SimdLevel, Stream};
use leaps::mcmc::lanes::{Plan, Rule, Scan, Tables, Tile, Updates};
use leaps::mcmc::{HeatBath, Kernel, Metropolis};
use leaps::path::{Path, Schedule};
use leaps::sampler::{Grid, LaneWalkers, Population, Protocol, Resampling, anneal};
use leaps::target::{
    Bond, Boundary, Bravais, Density, Disorder, Interaction, Lattice, LatticeModel, Pairwise,
    Target,
};

/// What anyone would write first: one walker, exp for every update, a fast generator.
struct Plain {
    values: Vec<u8>,
    neighbours: Vec<[usize; 4]>,
    q: u8,
    beta: f64,
    state: u64,
}

impl Plain {
    fn new(side: usize, q: u8, beta: f64) -> Self {
        let neighbours = (0..side * side)
            .map(|i| {
                let (r, c) = (i / side, i % side);
                let at = |r: usize, c: usize| (r % side) * side + c % side;
                [at(r, c + 1), at(r, c + side - 1), at(r + 1, c), at(r + side - 1, c)]
            })
            .collect();
        let values = (0..side * side).map(|i| (i % q as usize) as u8).collect();
        Plain { values, neighbours, q, beta, state: 0x9E37_79B9_7F4A_7C15 }
    }

    fn bits(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn equal(&self, site: usize, value: u8) -> f64 {
        self.neighbours[site].iter().filter(|&&j| self.values[j] == value).count() as f64
    }

    fn sweep(&mut self, rule: Rule) {
        for site in 0..self.values.len() {
            match rule {
                Rule::Metropolis => {
                    let own = self.values[site];
                    let other = (self.bits() >> 33) % (u64::from(self.q) - 1);
                    let new = (u64::from(own) + 1 + other) as u8 % self.q;
                    let change = self.beta * (self.equal(site, own) - self.equal(site, new));
                    if change <= 0.0 || self.uniform() < (-change).exp() {
                        self.values[site] = new;
                    }
                }
                Rule::HeatBath => {
                    let mut weights = [0.0; 8];
                    let mut total = 0.0;
                    for value in 0..self.q {
                        weights[value as usize] = (self.beta * self.equal(site, value)).exp();
                        total += weights[value as usize];
                    }
                    let mut left = self.uniform() * total;
                    let mut value = 0;
                    while value + 1 < self.q && left >= weights[value as usize] {
                        left -= weights[value as usize];
                        value += 1;
                    }
                    self.values[site] = value;
                }
            }
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Million site updates a second.
fn rate(updates: u64, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    updates as f64 / start.elapsed().as_secs_f64() / 1e6
}

/// Pairs with a coupling for each of the first shells of neighbours.
fn shells(interaction: Interaction, q: usize, shape: &[usize], strengths: &[f64]) -> Pairwise {
    let kind = (shape[0] == 12).then_some(Bravais::Triangular);
    let bonds: Vec<Bond> = strengths
        .iter()
        .enumerate()
        .flat_map(|(k, &strength)| {
            let shell = Bravais::shell(kind, shape.len(), k + 1).into_iter();
            shell.map(move |offset| Bond { offset, strength })
        })
        .collect();
    let torus = Lattice::new(shape, Boundary::Periodic).unwrap();
    Pairwise::from_bonds(interaction, torus, q, &bonds).unwrap()
}

/// Sweeps of one walker by its kernel against those of 64 in lanes, in million updates a CPU second.
fn tables(scale: u64) {
    let torus = || Lattice::new(&[12, 12], Boundary::Periodic).unwrap();
    let models: Vec<(&str, Box<dyn Target>, f64)> = vec![
        ("Ising 15x15", Box::new(shells(Interaction::Ising, 2, &[15, 15], &[1.0])), 0.44),
        ("Blume-Capel", Box::new(LatticeModel::blume_capel(torus(), 1.0, 0.5).unwrap()), 0.8),
        ("clock q=6", Box::new(LatticeModel::clock(torus(), 6, 1.0).unwrap()), 1.0),
        ("Ashkin-Teller", Box::new(LatticeModel::ashkin_teller(torus(), 1.0, 0.4).unwrap()), 0.4),
        ("Baxter-Wu", Box::new(LatticeModel::baxter_wu(torus(), 1.0).unwrap()), 0.44),
        (
            "J1-J2-J3 triangular",
            Box::new(shells(Interaction::Ising, 2, &[12, 12], &[1.0, -0.6, 0.3])),
            0.5,
        ),
        ("J1-J2 cubic", Box::new(shells(Interaction::Ising, 2, &[6, 6, 6], &[1.0, -0.3])), 0.3),
        ("q=4 J1-J2", Box::new(shells(Interaction::Potts, 4, &[10, 10], &[1.0, -0.6])), 1.0),
    ];
    println!("million site updates a CPU second, {:?}, medians of 5", SimdLevel::detect());
    println!("{:<34}{:>9}{:>9}{:>8}{:>12}", "", "one", "64", "ratio", "64, new T");
    for (name, target, beta) in &models {
        for rule in [Rule::HeatBath, Rule::Metropolis] {
            let (target, lambda) = (&**target, vec![*beta; target.terms()]);
            let (n, density) = (target.sites() as u64, Density::new(target, &lambda));
            let (mut bath, mut metropolis) =
                (HeatBath::new(target).unwrap(), Metropolis::new(target).unwrap());
            let mut x = vec![0; target.sites()];
            let plan = Plan::of(target, rule, Scan::Systematic).unwrap();
            let mut weights = Tables::new(&plan, &lambda);
            let mut tile = Tile::new(plan.sites(), 1, 0);
            let (mut one, mut many, mut anew, mut made) = (vec![], vec![], vec![], 0);
            for round in 0..5u64 {
                let sweeps = 100 * scale;
                let time = |updates: u64, work: &mut dyn FnMut()| {
                    let start = cpu_time();
                    work();
                    updates as f64 / (cpu_time() - start) / 1e6
                };
                one.push(time(sweeps * n, &mut || {
                    for step in 0..sweeps {
                        let mut stream = Stream::new(1, Purpose::Move, 0, round * sweeps + step);
                        match rule {
                            Rule::HeatBath => bath.step(&density, &mut x, &mut stream),
                            Rule::Metropolis => metropolis.step(&density, &mut x, &mut stream),
                        };
                    }
                    black_box(&x);
                }));
                let level = SimdLevel::detect();
                many.push(time(sweeps * n * 64, &mut || {
                    tile.update(&plan, &weights, level, Updates { from: made, count: sweeps * n });
                }));
                made += sweeps * n;
                // As annealing has it: 1,024 walkers make a sweep at every temperature.
                anew.push(time(sweeps * n * 64, &mut || {
                    for sweep in 0..sweeps {
                        if sweep % 16 == 0 {
                            weights.set(&plan, &lambda);
                        }
                        tile.update(&plan, &weights, level, Updates { from: made, count: n });
                        made += n;
                    }
                }));
            }
            let (one, many, anew) = (median(one), median(many), median(anew));
            println!(
                "{:<34}{one:>9.1}{many:>9.0}{:>8.0}{anew:>12.0}",
                format!("{name} {rule:?}"),
                many / one
            );
        }
    }
}

fn main() {
    let asked = |flag: &str| std::env::args().any(|a| a == flag);
    let scale = if asked("--quick") { 1 } else { 10 };
    tables(scale);
    if asked("--tables") {
        return;
    }
    let level = SimdLevel::detect();
    let square = |side| Lattice::new(&[side, side], Boundary::Periodic).unwrap();
    println!("one core, million site updates/s, {level:?}, medians of 7");
    println!("{:<34}{:>9}{:>9}{:>8}", "", "plain", "tile", "ratio");
    for (name, q, model, beta) in [
        ("Ising 15x15", 2, Pairwise::ising(square(15), 1.0, 0.0).unwrap(), 0.4407),
        ("Potts q=3 15x15", 3, Pairwise::potts(square(15), 3, 1.0, 0.0).unwrap(), 1.001),
        ("Potts q=5 15x15", 5, Pairwise::potts(square(15), 5, 1.0, 0.0).unwrap(), 1.0),
        (
            "Edwards-Anderson normal 15x15",
            2,
            Pairwise::edwards_anderson(square(15), Disorder::Gaussian, 1).unwrap(),
            1.0,
        ),
    ] {
        for rule in [Rule::HeatBath, Rule::Metropolis] {
            // Ising's J s s' is 2J [x = x'].
            let mut plain = Plain::new(15, q, if q == 2 { 2.0 * beta } else { beta });
            let plan = Plan::new(&model, rule, Scan::Systematic).unwrap();
            let tables = Tables::new(&plan, &vec![beta; plan.terms()]);
            let mut tile = Tile::new(plan.sites(), 1, 0);
            let n = plan.sites() as u64;
            let (mut slow, mut fast, mut made) = (Vec::new(), Vec::new(), 0);
            for _ in 0..7 {
                let sweeps = 200 * scale;
                slow.push(rate(sweeps * n, || (0..sweeps).for_each(|_| plain.sweep(rule))));
                black_box(&plain.values);
                fast.push(rate(sweeps * n * Tile::WALKERS as u64, || {
                    tile.update(&plan, &tables, level, Updates { from: made, count: sweeps * n })
                }));
                made += sweeps * n;
            }
            let (slow, fast) = (median(slow), median(fast));
            println!(
                "{:<34}{slow:>9.0}{fast:>9.0}{:>8.1}",
                format!("{name} {rule:?}"),
                fast / slow
            );
        }
    }
    let (intervals, walkers) = (100_000 * scale as usize, 1000);
    println!(
        "\nAIS, 15x15, {intervals} single-site Metropolis steps, {walkers} walkers, all threads"
    );
    for (name, model, beta) in [
        ("Ising", Pairwise::ising(square(15), 1.0, 0.0).unwrap(), 0.4407),
        ("Potts q=3", Pairwise::potts(square(15), 3, 1.0, 0.0).unwrap(), 1.001),
    ] {
        let start = Instant::now();
        let path = Path::new(&vec![beta; model.terms()], Schedule::Linear).unwrap();
        let grid = Grid::uniform(&path, intervals).unwrap();
        let plan = Plan::new(&model, Rule::Metropolis, Scan::Systematic).unwrap();
        let mut population = LaneWalkers::new(&model, plan, 1, Population::new(walkers, 1));
        let resampling = Resampling::NEVER;
        let protocol = Protocol { grid: &grid, resampling, trace_points: 20, seed: 1 };
        let ensemble = anneal(&model, &mut population, protocol, &NoProgress).unwrap();
        let (log_z, ess) = (ensemble.log_z(), ensemble.ess());
        println!(
            "{name:<12}{:>7.2} s   log Z {:.3} +- {:.3}   ESS {:.3}",
            start.elapsed().as_secs_f64(),
            log_z.mean,
            log_z.error,
            ess.mean
        );
    }
}
