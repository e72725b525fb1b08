//! Every kernel: its exact transition matrix leaves the distribution invariant, and more.

mod chains;
mod exchanges;
#[path = "../support/mod.rs"]
mod support;
mod tempering;

use leaps::device::{Draw, Purpose, Stream};
use leaps::mcmc::*;
use leaps::target::{Boundary, Density, Disorder, Interaction, Lattice, Pairwise, Target, Term};
use support::*;

/// A target of the user's own, with three-site terms: no pairwise form, only the required methods.
struct Triples;

impl Target for Triples {
    fn sites(&self) -> usize {
        4
    }
    fn q(&self) -> usize {
        3
    }
    fn energy(&self, _term: usize, x: &[u8]) -> f64 {
        let triples = x.windows(3).map(|w| f64::from((w[0] * w[1] + w[2]) % 3)).sum::<f64>();
        triples - 0.4 * f64::from(x[0]) + 0.7 * f64::from(x[3] == 1)
    }
}

fn lattice(shape: &[usize], boundary: Boundary) -> Lattice {
    Lattice::new(shape, boundary).unwrap()
}

fn ising(shape: &[usize]) -> Pairwise {
    Pairwise::ising(lattice(shape, Boundary::Periodic), 1.0, 0.3).unwrap()
}

fn potts(shape: &[usize], boundary: Boundary) -> Pairwise {
    Pairwise::potts(lattice(shape, boundary), 3, 1.0, 0.4).unwrap()
}

/// A glass with a different field on every site.
fn glass(shape: &[usize], boundary: Boundary) -> Pairwise {
    let glass =
        Pairwise::edwards_anderson(lattice(shape, boundary), Disorder::Gaussian, 3).unwrap();
    let fields: Vec<f64> = (0..glass.sites()).map(|i| 0.7 - 0.3 * i as f64).collect();
    glass.with_fields(&fields).unwrap()
}

/// Five values on a ring of three sites with unequal bonds; every value has its own energy.
fn five() -> Pairwise {
    let edges = [(0, 1, 0.9), (1, 2, 0.3), (2, 0, 1.4)];
    let model = Pairwise::from_edges(Interaction::Potts, 3, 5, &edges).unwrap();
    let fields = (0..15).map(|k| 0.1 * ((k * 7) % 11) as f64).collect();
    let name = "field".into();
    model.with_term(Term { name, couplings: Vec::new(), fields, constant: 0.2 })
}

fn check<K: Kernel>(what: &str, model: &Density<'_>, kernel: &K) -> Vec<f64> {
    let rho = law(model);
    let p = matrix(model, kernel);
    assert!(row_error(&p, rho.len()) < 1e-12, "{what}: {:e}", row_error(&p, rho.len()));
    let error = invariance_error(&rho, &p);
    assert!(error < 1e-13, "{what} is not invariant: {error:e}");
    if kernel.reversible() {
        let error = balance_error(&rho, &p);
        assert!(error < 1e-13, "{what} is not reversible: {error:e}");
    }
    p
}

/// The kernel after `steps` steps: systematic kernels stand elsewhere then.
fn moved<K: Kernel>(model: &Density<'_>, kernel: &K, steps: usize) -> K {
    struct First;
    impl Draw for First {
        fn below(&mut self, _n: usize) -> usize {
            0
        }
        fn chance(&mut self, _p: f64) -> bool {
            false
        }
        fn pick(&mut self, weights: &[f64]) -> usize {
            weights.iter().position(|&w| w > 0.0).unwrap()
        }
    }
    let mut kernel = kernel.clone();
    let mut x = vec![0; model.sites()];
    for _ in 0..steps {
        kernel.step(model, &mut x, &mut First);
    }
    kernel
}

/// The targets on which kernels with sweeps or proposals at all sites are affordable.
fn small() -> Vec<(&'static str, Box<dyn Target>)> {
    vec![
        ("potts 2x2", Box::new(potts(&[2, 2], Boundary::Periodic))),
        ("glass 2x3", Box::new(glass(&[2, 3], Boundary::Periodic))),
        ("five", Box::new(five())),
        ("triples", Box::new(Triples)),
    ]
}

/// Check `make(target)` on the 512 states of the 3x3 torus with a field and on the small targets.
fn everywhere<K: Kernel>(what: &str, make: impl Fn(&dyn Target) -> K, positions: usize) {
    let torus = ising(&[3, 3]);
    let model = Density::new(&torus, &[0.6, 0.6]);
    let kernel = make(&torus);
    for position in 0..positions {
        check(
            &format!("{what} on ising 3x3 at {position}"),
            &model,
            &moved(&model, &kernel, position),
        );
    }
    on_small(what, make, positions);
}

fn on_small<K: Kernel>(what: &str, make: impl Fn(&dyn Target) -> K, positions: usize) {
    for (name, target) in small() {
        let lambda = vec![0.8; target.terms()];
        let model = Density::new(&*target, &lambda);
        let kernel = make(&*target);
        for position in 0..positions {
            let what = format!("{what} on {name} at {position}");
            check(&what, &model, &moved(&model, &kernel, position));
        }
    }
}

#[test]
fn sweeps_are_invariant() {
    everywhere("metropolis", |target| Metropolis::new(target).unwrap(), 1);
    everywhere("heat-bath", |target| HeatBath::new(target).unwrap(), 1);
}

#[test]
fn conditional_draws_are_invariant_at_every_position() {
    everywhere("gibbs", |target| Gibbs::new(target).unwrap(), 9);
    for block in [1, 2, 3] {
        everywhere("block-gibbs", |target| BlockGibbs::new(target, block).unwrap(), 5);
    }
}

#[test]
fn hamming_balls_are_invariant_at_every_position() {
    everywhere("hamming-ball", |target| HammingBall::new(target, 10, 1).unwrap(), 2);
    on_small("hamming-ball 2 of 3", |target| HammingBall::new(target, 3, 2).unwrap(), 1);
    on_small("hamming-ball 5 of 2", |target| HammingBall::new(target, 2, 5).unwrap(), 3);
    let potts = potts(&[2, 3], Boundary::Free);
    let model = Density::new(&potts, &[0.6, 0.6]);
    check("hamming-ball on potts 2x3", &model, &HammingBall::new(&potts, 4, 1).unwrap());
}

#[test]
fn random_walks_are_invariant() {
    for radius in [1.0, 2.0, 2.3] {
        everywhere("random-walk", |target| RandomWalk::new(target, radius).unwrap(), 1);
    }
}

#[test]
fn informed_flips_are_invariant() {
    for balance in [Balance::Sqrt, Balance::Barker, Balance::Metropolis, Balance::Max] {
        everywhere("locally-balanced", |target| LocallyBalanced::new(target, balance).unwrap(), 1);
    }
    everywhere("gwg", |target| GibbsWithGradients::new(target).unwrap(), 1);
    let potts = potts(&[2, 3], Boundary::Free);
    let model = Density::new(&potts, &[0.6, 0.6]);
    check("gwg on potts 2x3", &model, &GibbsWithGradients::new(&potts).unwrap());
}

#[test]
fn paths_are_invariant() {
    everywhere("path-auxiliary", |target| PathAuxiliary::new(target, 2.0).unwrap(), 1);
    on_small("path-auxiliary 1", |target| PathAuxiliary::new(target, 1.0).unwrap(), 1);
    let ring = five();
    let model = Density::new(&ring, &[1.0, 1.5]);
    check("path-auxiliary 2.6", &model, &PathAuxiliary::new(&ring, 2.6).unwrap());
}

#[test]
fn langevin_steps_are_invariant() {
    everywhere("dmala", |target| DiscreteMala::new(target, None).unwrap(), 1);
    everywhere("dlmc", |target| DiscreteLangevin::new(target, None).unwrap(), 1);
    for step in [0.1, 0.77, 40.0] {
        on_small("dmala", |target| DiscreteMala::new(target, Some(step)).unwrap(), 1);
        on_small("dlmc", |target| DiscreteLangevin::new(target, Some(step)).unwrap(), 1);
    }
}

/// Pairwise targets for the cluster kernels: signs and fields of every kind.
fn clustered() -> Vec<(&'static str, Pairwise)> {
    vec![
        ("ising 2x2", ising(&[2, 2])),
        (
            "ising 2x3 without field",
            Pairwise::ising(lattice(&[2, 3], Boundary::Free), 1.0, 0.0).unwrap(),
        ),
        ("antiferromagnet", Pairwise::ising(lattice(&[5], Boundary::Periodic), -1.0, 0.2).unwrap()),
        ("glass", glass(&[2, 3], Boundary::Free)),
        ("frustrated glass", {
            let edges = [(0, 1, 1.0), (1, 2, 1.0), (2, 0, -1.0), (2, 3, 0.5), (3, 0, -0.2)];
            Pairwise::from_edges(Interaction::Ising, 4, 2, &edges).unwrap()
        }),
        ("boltzmann machine", Pairwise::random_boltzmann_machine(3, 2, 1.0, 3).unwrap()),
        ("potts 2x2", potts(&[2, 2], Boundary::Free)),
        ("potts without field", {
            Pairwise::potts(lattice(&[2, 2], Boundary::Periodic), 3, 1.0, 0.0).unwrap()
        }),
        ("five", five()),
        ("potts of two values", {
            Pairwise::potts(lattice(&[2, 2], Boundary::Free), 2, -1.0, 0.3).unwrap()
        }),
    ]
}

#[test]
fn clusters_are_invariant() {
    for (name, target) in clustered() {
        let lambda = vec![0.8; target.terms()];
        let model = Density::new(&target, &lambda);
        check(&format!("wolff on {name}"), &model, &Wolff::new(&target, &lambda).unwrap());
        let kernel = SwendsenWang::new(&target, &lambda).unwrap();
        check(&format!("swendsen-wang on {name}"), &model, &kernel);
    }
}

#[test]
fn wolff_is_invariant_on_512_states() {
    for field in [0.3, 0.0] {
        let torus = Pairwise::ising(lattice(&[3, 3], Boundary::Periodic), 1.0, field).unwrap();
        let lambda = vec![0.6; torus.terms()];
        let model = Density::new(&torus, &lambda);
        check("wolff on ising 3x3", &model, &Wolff::new(&torus, &lambda).unwrap());
    }
}

#[test]
fn clusters_of_equal_values_stay_where_couplings_turn_round() {
    let target = Pairwise::potts(lattice(&[2, 2], Boundary::Free), 3, -1.0, 0.0).unwrap();
    assert!(Houdayer::new(&Triples).is_err());
    // Made at a weight where clusters exist and used where they do not, the state stays: invariant.
    let kernel = Wolff::new(&target, &[-1.0]).unwrap();
    check("wolff", &Density::new(&target, &[1.0]), &kernel);
    let kernel = SwendsenWang::new(&target, &[-1.0]).unwrap();
    check("swendsen-wang", &Density::new(&target, &[1.0]), &kernel);
}

#[test]
fn cluster_kernels_follow_the_weights() {
    let target = glass(&[2, 2], Boundary::Free);
    let (first, second) = ([0.2, 0.9], [1.1, -0.4]);
    let wolff = Wolff::new(&target, &first).unwrap();
    let model = Density::new(&target, &second);
    check("wolff at new weights", &model, &moved(&model, &wolff, 1));
    let swendsen_wang = SwendsenWang::new(&target, &first).unwrap();
    check("swendsen-wang at new weights", &model, &moved(&model, &swendsen_wang, 1));
}

#[test]
fn swendsen_wang_is_invariant_on_512_states() {
    let square = Pairwise::ising(lattice(&[3, 3], Boundary::Free), 1.0, 0.3).unwrap();
    let model = Density::new(&square, &[0.6, 0.6]);
    let kernel = SwendsenWang::new(&square, &[0.6, 0.6]).unwrap();
    check("swendsen-wang on ising 3x3", &model, &kernel);
}

/// The Metropolis kernel with the sign of the last term, the field, turned round.
#[derive(Clone)]
struct WrongField(Metropolis);

impl Kernel for WrongField {
    fn step<D: Draw>(&mut self, model: &Density<'_>, x: &mut [u8], draw: &mut D) -> Info {
        let mut lambda = model.lambda.to_vec();
        *lambda.last_mut().unwrap() *= -1.0;
        self.0.step(&Density::new(model.target, &lambda), x, draw)
    }
    fn energy_calls(&self, q: usize) -> f64 {
        self.0.energy_calls(q)
    }
}

#[test]
fn a_wrong_kernel_is_caught() {
    // One spin in the field h: it leaves -1 with probability 1 instead of exp(-2h), so that
    // rho(+1) is off by rho(-1) - rho(+1) exp(-2h).
    let h: f64 = 0.3;
    let spin = Pairwise::from_edges(Interaction::Ising, 1, 2, &[]).unwrap();
    let spin = spin.with_fields(&[h]).unwrap();
    let model = Density::new(&spin, &[1.0, 1.0]);
    let p = matrix(&model, &WrongField(Metropolis::new(&spin).unwrap()));
    let expected = (h.exp() - (-3.0 * h).exp()) / (2.0 * h.cosh());
    let error = invariance_error(&law(&model), &p);
    assert!((error - expected).abs() < 1e-14, "{error} {expected}");
    let torus = ising(&[3, 3]);
    let model = Density::new(&torus, &[0.6, 0.6]);
    let p = matrix(&model, &WrongField(Metropolis::new(&torus).unwrap()));
    assert!(invariance_error(&law(&model), &p) > 1e-3);
}

/// Whether every state can follow every other after a number of rounds of `steps` steps.
fn mixes<K: Kernel>(model: &Density<'_>, kernel: &K, steps: usize) -> bool {
    let n = count(model);
    let reach = |a: &[bool], b: &[bool]| {
        let mut c = vec![false; n * n];
        for (row, from) in c.chunks_exact_mut(n).zip(a.chunks_exact(n)) {
            for (via, _) in from.iter().enumerate().filter(|(_, reached)| **reached) {
                for (to, reached) in row.iter_mut().zip(&b[via * n..]) {
                    *to |= reached;
                }
            }
        }
        c
    };
    let support = |position| -> Vec<bool> {
        matrix(model, &moved(model, kernel, position)).iter().map(|&p| p > 0.0).collect()
    };
    let mut round = support(0);
    for position in 1..steps {
        round = reach(&round, &support(position));
    }
    for _ in 0..7 {
        round = reach(&round, &round);
    }
    round.iter().all(|&reached| reached)
}

#[test]
fn every_kernel_reaches_every_state() {
    let (ising, potts) = (ising(&[2, 3]), potts(&[2, 2], Boundary::Free));
    for name in KernelName::ALL {
        for target in [&ising, &potts] {
            let lambda = [0.6, 0.6];
            let model = Density::new(target, &lambda);
            let kernel = AnyKernel::new(name, target, &lambda).unwrap();
            let steps = if name == KernelName::Gibbs { target.sites() } else { 3 };
            assert!(mixes(&model, &kernel, steps), "{name}");
        }
    }
    // Half a round of single sites does not.
    let kernel = Gibbs::new(&ising).unwrap();
    assert!(!mixes(&Density::new(&ising, &[0.6, 0.6]), &kernel, 3));
}

#[test]
fn what_a_kernel_remembers_never_changes_a_step() {
    use KernelName::*;
    let target = potts(&[3, 3], Boundary::Periodic);
    for name in [LocallyBalanced, Gwg, PathAuxiliary, Dmala, Dlmc, Wolff, SwendsenWang] {
        let fresh = AnyKernel::new(name, &target, &[0.5, 0.5]).unwrap();
        let mut kernel = fresh.clone();
        let mut x = vec![0u8; 9];
        for step in 0..400 {
            let lambda = [0.5, 0.1 * (step / 7 % 3) as f64];
            let model = Density::new(&target, &lambda);
            if step % 11 == 0 {
                x[step % 9] = (x[step % 9] + 1) % 3;
            }
            let stream = || Stream::new(3, Purpose::Move, 0, step as u64);
            let mut y = x.clone();
            let expected = fresh.clone().step(&model, &mut y, &mut stream());
            assert_eq!(kernel.step(&model, &mut x, &mut stream()), expected, "{name}");
            assert_eq!(x, y, "{name}");
        }
    }
}

#[test]
fn steps_report_what_changed() {
    let target = potts(&[3, 3], Boundary::Periodic);
    for name in KernelName::ALL {
        let lambda = [0.5, 0.5];
        let model = Density::new(&target, &lambda);
        let mut kernel = AnyKernel::new(name, &target, &lambda).unwrap();
        let mut x = vec![0u8; 9];
        for step in 0..200 {
            let before = x.clone();
            let info = kernel.step(&model, &mut x, &mut Stream::new(3, Purpose::Move, 0, step));
            let changed = x.iter().zip(&before).filter(|(a, b)| a != b).count();
            assert_eq!(info.changed, changed, "{name}");
            assert!((0.0..=1.0).contains(&info.acceptance), "{name}");
        }
    }
}
