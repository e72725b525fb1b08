//! Free energies of ladders and of grids against the sum over all states.

use leaps::path::Strength;
use leaps::prelude::*;
use leaps::results::ThermoPoint;

/// No symmetry hides a wrong sign: a field, and couplings of both signs.
fn glass(beta: f64) -> Problem {
    SpinGlass::lattice(&[3, 4], 3).field(0.3).beta(beta).unwrap()
}

fn assert_near(points: &[ThermoPoint]) {
    for point in points {
        for (name, estimate) in point.named() {
            let z = estimate.z().unwrap_or_else(|| panic!("{name} has no exact value"));
            assert!(z.abs() < 5.0, "{name} at beta {}: {estimate}, {z} sigmas", point.beta);
        }
    }
}

#[test]
fn every_rung_of_a_ladder_has_its_free_energy() {
    for (kernel, seed) in [(Move::ParallelTempering, 1), (Move::Ladder, 2), (Move::Houdayer, 3)] {
        let mut job = Chains::new(glass(0.8)).chains(32).steps(800).burn_in(100).seed(seed);
        job.kernel.kernel = kernel;
        job.at_beta = vec![0.33, 0.71];
        let run = job.run().unwrap();
        let tempering = run.tempering.as_ref().unwrap();
        assert_eq!(tempering.rungs.len(), 8);
        assert_eq!(tempering.overlaps.len(), 8);
        assert!(tempering.overlaps.iter().all(|overlap| *overlap > 0.03));
        assert_near(&tempering.rungs);
        assert_near(&tempering.at_beta);
        let integrated = tempering.log_z_by_integration.unwrap();
        assert!(integrated.z().unwrap().abs() < 5.0, "{kernel}: {integrated}");
        assert_eq!(run.log_z, Some(tempering.rungs[7].log_z));
        assert!(run.log_z_merit.unwrap() > 0.0);
        let swaps = tempering.swap_rates.iter().sum::<f64>();
        assert_eq!(swaps > 0.0, kernel != Move::Ladder, "{kernel} exchanges");
    }
}

#[test]
fn a_ladder_does_not_depend_on_the_others() {
    let kept = |chains: usize| {
        let mut job = Chains::new(glass(0.8)).tempering(5).chains(chains).steps(20).burn_in(3);
        job.keep = true;
        job.run().unwrap().samples.states
    };
    let (few, many) = (kept(3), kept(70));
    assert_eq!(few.len(), 3 * 20 * 12);
    assert_eq!(few, many[..few.len()]);
}

#[test]
fn sweeps_of_one_ladder_or_of_many_say_the_same() {
    // Metropolis by tables, and by a kernel that has none.
    for kernel in [KernelName::Metropolis, KernelName::Gibbs] {
        let mut job = Chains::new(glass(0.6)).tempering(5).chains(64).steps(600).burn_in(50);
        job.chains.tempering_kernel = kernel;
        let run = job.run().unwrap();
        assert_near(&run.tempering.as_ref().unwrap().rungs);
        let swaps = &run.tempering.as_ref().unwrap().swap_rates;
        assert!(swaps.iter().all(|rate| *rate > 0.3), "{kernel}: {swaps:?}");
    }
}

#[test]
fn integration_over_few_temperatures_does_not_claim_to_be_right() {
    for (temperatures, sure) in [(2, false), (3, false), (5, true), (10, true)] {
        let problem = Ising::square(4).field(0.1).beta(0.6).unwrap();
        let run = Chains::new(problem).tempering(temperatures).chains(32).steps(500).run().unwrap();
        let found = run.tempering.as_ref().unwrap().log_z_by_integration.unwrap();
        assert_eq!(found.error.is_finite(), sure, "{temperatures}: {found}");
        assert!(found.z().unwrap().abs() < 5.0, "{temperatures}: {found}");
    }
}

#[test]
fn ladders_with_gaps_are_doubted() {
    let problem = Ising::square(16).field(0.1).beta(0.6).unwrap();
    let mut job = Chains::new(problem).tempering(2).chains(20).steps(50).burn_in(10);
    job.at_beta = vec![0.5];
    let run = job.run().unwrap();
    let said = run.warnings.iter().map(ToString::to_string).collect::<String>();
    assert!(said.contains("overlap by"), "{said}");
    let few = Chains::new(glass(0.5)).tempering(4).chains(3).steps(50).run().unwrap();
    let said = few.warnings.iter().map(ToString::to_string).collect::<String>();
    assert!(said.contains("3 ladders"), "{said}");
}

#[test]
fn chains_at_one_temperature_have_no_other() {
    let mut job = Chains::new(glass(0.8)).chains(4).steps(50);
    job.at_beta = vec![0.4];
    assert!(job.run().unwrap_err().to_string().contains("parallel-tempering"));
    let mut ladder = Chains::new(glass(0.8)).tempering(4);
    ladder.at_beta = vec![0.9];
    assert!(ladder.run().unwrap_err().to_string().contains("between 0 and 0.8"));
}

#[test]
fn grids_agree_with_the_sum_over_states() {
    for method in [FreeEnergyMethod::Auto, FreeEnergyMethod::Ais, FreeEnergyMethod::Smc] {
        let mut job = FreeEnergies::new(glass(0.8)).betas([0.5, 0.2]).fields([0.2, -0.4]);
        job.spec.chains.steps = 500;
        job.spec.chains.chains = 32;
        let run = job.method(method).run().unwrap();
        let places: Vec<_> = run.points.iter().map(|p| (p.field.unwrap(), p.beta)).collect();
        assert_eq!(places, [(-0.4, 0.2), (-0.4, 0.5), (0.2, 0.2), (0.2, 0.5)]);
        assert_near(&run.points);
        let lowest = run.lowest.as_ref().unwrap();
        assert_eq!(lowest.state.len(), 12);
        let kinds =
            if method == FreeEnergyMethod::Auto { "tempering" } else { &method.to_string() };
        assert_eq!(run.method, kinds);
    }
}

#[test]
fn grids_that_are_none_are_refused() {
    let refused = |job: FreeEnergies| job.run().unwrap_err().to_string();
    let job = || FreeEnergies::new(glass(0.8));
    assert!(refused(job().betas([0.0, 0.3])).contains("other than 0"));
    assert!(refused(job().betas([0.3, -0.3])).contains("one sign"));
    assert!(refused(job().betas([f64::NAN])).contains("target.beta"));
    assert!(refused(job().method(FreeEnergyMethod::Network)).contains("model"));
}

/// log Z from both sides, for every kind of walkers that can be sent back.
#[test]
fn both_ways_agree_with_the_sum_over_states() {
    let ferromagnet = || Ising::square(4).field(0.2).beta(0.5).unwrap();
    for (kernel, problem) in [
        (KernelName::HeatBath, glass(0.8)),
        (KernelName::Metropolis, glass(0.8)),
        (KernelName::Gibbs, glass(0.8)),
        (KernelName::SwendsenWang, ferromagnet()),
    ] {
        // Few intervals, so that each side alone has large errors.
        let mut job = Annealing::ais(problem).walkers(2000).intervals(4).kernel(kernel);
        job.walkers.two_sided = true;
        let run = job.run().unwrap();
        let found = run.two_sided.as_ref().unwrap();
        let (z, error) = (found.log_z.z().unwrap(), found.log_z.error);
        assert!(z.abs() < 5.0, "{kernel}: {} is {z} sigmas off", found.log_z);
        assert!(error < run.log_z.error, "{kernel}: {error} of both, {} of one", run.log_z.error);
        assert!(found.starts.starts_with("exact samples"), "{}", found.starts);
        assert!(found.overlap > 0.03 && found.warnings.is_empty());
    }
}

/// A sweep in the same order on the way back is not the reversal, and the estimate would be biased: this is what the other order is for.
#[test]
fn sweeps_are_reversed_on_the_way_back() {
    // On a lattice whose sites are alike both orders would do.
    let fields = [0.9, -0.4, 0.3, 1.4, -1.1, 0.2];
    let problem = Ising::lattice(&[2, 3]).fields(&fields).boundary(Boundary::Free);
    let problem = problem.beta(1.5).unwrap();
    let mut sum = 0.0;
    for seed in 1..=20 {
        let mut job = Annealing::ais(problem.clone()).walkers(20_000).intervals(2).seed(seed);
        job.walkers.two_sided = true;
        sum += job.run().unwrap().result.two_sided.unwrap().log_z.z().unwrap();
    }
    let mean = sum / 20.0;
    assert!(mean.abs() < 4.0 / 20f64.sqrt(), "mean of 20 z is {mean}");
}

#[test]
fn what_cannot_be_sent_back_is_refused() {
    let mut smc = Annealing::smc(glass(0.8)).walkers(100);
    smc.walkers.two_sided = true;
    assert!(smc.run().unwrap_err().to_string().contains("resampling has no reversal"));
    let mut updates = Annealing::ais(glass(0.8)).walkers(100);
    updates.walkers.two_sided = true;
    updates.updates.updates = 3;
    assert!(updates.run().unwrap_err().to_string().contains("two-sided"));
}

/// log Z of a lattice gas on a 3x4 torus, written out.
fn gas(beta: f64, mu: f64) -> f64 {
    let mut z = 0.0;
    for code in 0..1usize << 12 {
        let n = |row: usize, column: usize| (code >> (row % 3 * 4 + column % 4) & 1) as f64;
        let mut energy = 0.0;
        for (row, column) in (0..12).map(|site| (site / 4, site % 4)) {
            energy -= 1.2 * n(row, column) * (n(row + 1, column) + n(row, column + 1));
            energy -= mu * n(row, column);
        }
        z += f64::exp(-beta * energy);
    }
    z.ln()
}

#[test]
fn a_lattice_gas_over_chemical_potentials() {
    let target = LatticeGas::lattice(&[3, 4]).coupling(1.2);
    let problem = target.chemical_potential(-2.0).beta(0.9).unwrap();
    for method in [FreeEnergyMethod::Tempering, FreeEnergyMethod::Smc] {
        let job = FreeEnergies::new(problem.clone()).betas([0.5, 0.9]).method(method);
        let mut job = job.strengths(Strength::ChemicalPotential, [-3.0, 0.0, -1.5]).seed(4);
        (job.spec.chains.chains, job.spec.chains.steps, job.spec.chains.burn_in) = (16, 600, 60);
        let run = job.run().unwrap();
        assert_eq!(run.of, Strength::ChemicalPotential);
        assert_near(&run.points);
        let places: Vec<_> = run.points.iter().map(|p| (p.beta, p.field.unwrap())).collect();
        let wanted = [-3.0, -1.5, 0.0].map(|mu| [(0.5, mu), (0.9, mu)]).concat();
        assert_eq!(places, wanted);
        for point in &run.points {
            let log_z = gas(point.beta, point.field.unwrap());
            assert!((point.log_z.exact.unwrap() - log_z).abs() < 1e-10, "{method}");
        }
    }
    let other = FreeEnergies::new(problem).strengths(Strength::CrystalField, [0.1]);
    let error = other.check().unwrap_err().to_string();
    assert!(error.contains("target.crystal_field") && error.contains("blume-capel"), "{error}");
}

/// One network for a range of temperatures and of what stands in the place of fields, at members that it was not trained on.
#[test]
fn families_over_other_strengths_than_fields() {
    let gas = LatticeGas::lattice(&[3, 4]).coupling(1.2).chemical_potential(-2.0).beta(0.8);
    let capel = BlumeCapel::square(3).crystal_field(0.4).field(0.2).beta(0.6);
    for (problem, of, range, value) in [
        (gas.unwrap(), Strength::ChemicalPotential, [-3.0, -1.0], -1.4),
        (capel.unwrap(), Strength::CrystalField, [-0.5, 1.0], 0.8),
    ] {
        let mut training = Training::new(problem.clone()).steps(100).batch(32);
        training.settings.walkers.walkers = 200;
        let train = &mut training.settings.train;
        train.beta_range = Some([0.4, 0.9]);
        match of {
            Strength::CrystalField => train.crystal_field_range = Some(range),
            _ => train.chemical_potential_range = Some(range),
        }
        let model = training.run().unwrap().model.clone();
        assert_eq!(model.family.map(|family| (family.of, family.field)), Some((of, Some(range))));
        let job = FreeEnergies::new(problem.clone()).betas([0.5, 0.7]).model(model.clone(), "own");
        let mut job = job.strengths(of, [range[0], value]).seed(3);
        (job.spec.walkers.walkers, job.spec.walkers.intervals) = (500, 30);
        let run = job.run().unwrap();
        assert_eq!((run.method.as_str(), run.points.len()), ("network", 4));
        for point in &run.points {
            let z = point.log_z.z().unwrap();
            assert!(z.abs() < 5.0, "{of:?} {:?}: {}, ESS {}", point.field, point.log_z, point.ess);
        }
        // Beyond what it was trained for, and in fields, it is refused.
        let mut far = job.clone();
        far.fields = vec![5.0];
        assert!(far.run().unwrap_err().to_string().contains(of.name()));
        let fields = FreeEnergies { of: Strength::Field, ..job };
        assert!(fields.check().is_err());
        let mut two = Training::new(problem).steps(1);
        two.settings.train.field_range = Some([0.0, 0.1]);
        two.settings.train.crystal_field_range = Some([0.0, 0.1]);
        let error = two.run().map(drop).unwrap_err().to_string();
        assert!(error.contains("the only range beside train.beta_range"), "{error}");
    }
}
