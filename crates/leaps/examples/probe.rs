//! probe
use leaps::device::Unwatched;
use leaps::exact;
use leaps::net::*;
use leaps::path::*;
use leaps::rates::*;
use leaps::target::*;
use leaps::train::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let side: usize = a[1].parse().unwrap();
    let beta: f64 = a[2].parse().unwrap();
    let steps: u64 = a[3].parse().unwrap();
    let lr: f64 = a[4].parse().unwrap();
    let hidden: usize = a[5].parse().unwrap();
    let batch: usize = a[6].parse().unwrap();
    let target =
        Pairwise::ising(Lattice::new(&[side, side], Boundary::Periodic).unwrap(), 1.0, 0.0)
            .unwrap();
    let path = Path::new(&[beta], Schedule::Linear).unwrap();
    let depth: usize = a[7].parse().unwrap();
    let spec0 = if depth == 0 {
        NetSpec::Mlp(MlpSpec { hidden })
    } else {
        serde_json::from_value(serde_json::json!({"kind":"hollow","channels":hidden,"depth":depth}))
            .unwrap()
    };
    let net = Net::new(&spec0, &target).unwrap();
    let free = FreeEnergy::new(&FreeEnergySpec::Rate, side * side).unwrap();
    let spec = TrainSpec { steps, lr, batch, ..TrainSpec::default() };
    let mut tr =
        Trainer::new(&target, &path, &net, &free, Parametrisation::Barker, &spec, 1).unwrap();
    println!(
        "params {} exact {}",
        net.parameters(),
        exact::solve(&target, &[beta], None, &Unwatched).unwrap().log_z
    );
    let s = std::time::Instant::now();
    let mut avg = 0.0;
    for i in 0..steps {
        let p = tr.step().unwrap();
        avg = if i == 0 { p.loss } else { 0.98 * avg + 0.02 * p.loss };
        if (i + 1) % (steps / 8) == 0 {
            let e = tr.validate(500, 50, &Unwatched).unwrap();
            let z = e.log_z();
            println!(
                "{:.1}s step {} loss {avg:.3} norm {:.2} ess {:.4} logz {:.3}+-{:.3}",
                s.elapsed().as_secs_f64(),
                p.step,
                p.norm,
                e.weights.ess(),
                z.mean,
                z.error
            );
        }
    }
}
