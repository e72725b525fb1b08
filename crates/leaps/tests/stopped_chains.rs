//! Stop chains on the way: what they have is what shorter chains have.

use std::sync::atomic::{AtomicU64, Ordering};

use leaps::Error;
use leaps::device::{NoProgress, Progress};
use leaps::mcmc::lanes::{Plan, Rule, Scan, run_lane_chains};
use leaps::mcmc::{
    AnyKernel, ChainSettings, KernelName, TemperingSettings, run_chains, run_tempering,
};
use leaps::observe::Recorder;
use leaps::target::{Boundary, Density, Lattice, Pairwise};

/// Asks for a stop once it has been asked so often.
struct After(AtomicU64);

impl Progress for After {
    fn stopped(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_err()
    }
}

/// Keeps all states.
#[derive(Clone, Debug, Default, PartialEq)]
struct States(Vec<Vec<u8>>);

impl Recorder for States {
    fn record(&mut self, x: &[u8]) {
        self.0.push(x.to_vec());
    }
}

/// Steps made, and everything else that an outcome says.
type Said = (u64, String);

/// Run with `settings`, stopped after so many questions or never.
type Run<'a> = &'a dyn Fn(&ChainSettings, &dyn Progress) -> leaps::Result<Vec<Said>>;

#[test]
fn a_stop_leaves_chains_of_fewer_steps() {
    let lattice = Lattice::new(&[4, 4], Boundary::Periodic).unwrap();
    let target = Pairwise::ising(lattice, 1.0, 0.2).unwrap();
    let lambda = vec![0.3; 2];
    let model = Density::new(&target, &lambda);
    // Adapts its steps in burn-in, and remembers the sites it looked at.
    let kernel = AnyKernel::new(KernelName::PathAuxiliary, &target, &lambda).unwrap();
    let chains = |settings: &ChainSettings, progress: &dyn Progress| {
        let all = run_chains(&model, &kernel, settings, |_| States::default(), progress)?;
        Ok(all.into_iter().map(|chain| (chain.steps, format!("{chain:?}"))).collect())
    };
    let plan = Plan::new(&target, Rule::Metropolis, Scan::Systematic).unwrap();
    let lanes = |settings: &ChainSettings, progress: &dyn Progress| {
        let all = run_lane_chains(&model, &plan, settings, |_| States::default(), progress)?;
        Ok(all.into_iter().map(|chain| (chain.steps, format!("{chain:?}"))).collect())
    };
    let ladders = |settings: &ChainSettings, progress: &dyn Progress| {
        let make = |_, _| States::default();
        let ladder = vec![vec![0.1; 2], lambda.clone()];
        let tempering = TemperingSettings {
            ladder,
            houdayer: true,
            exchange: true,
            table: None,
            chains: *settings,
        };
        let all = run_tempering(&target, &kernel, &tempering, make, progress)?;
        Ok(all.into_iter().map(|ladder| (ladder.steps, format!("{ladder:?}"))).collect())
    };
    let runs: [(&str, usize, Run); 3] =
        [("chains", 3, &chains), ("lanes", 70, &lanes), ("ladders", 3, &ladders)];
    for (name, chains, run) in runs {
        let settings = ChainSettings { chains, burn_in: 5, steps: 1 << 40, thin: 3, seed: 7 };
        // Nobody has a state to keep yet: the first rounds have 1, 2 and 4 steps, and ask every chain.
        let early = run(&settings, &After(2.into()));
        assert!(matches!(early, Err(Error::Interrupted)), "{name}: {early:?}");
        let stopped = run(&settings, &After(18.into())).unwrap();
        let steps = stopped[0].0;
        assert!(steps >= settings.thin && steps < settings.steps, "{name}: {steps}");
        assert_eq!(stopped.len(), chains);
        let whole = run(&ChainSettings { steps, ..settings }, &NoProgress).unwrap();
        assert!(stopped == whole, "{name}: {steps} steps are not {steps} steps");
    }
}
