//! Chains: autocorrelation times, block errors, and warnings, on processes that are known exactly.

use leaps::device::{Draw, Purpose, Stream};
use leaps::observe::LogWeights;
use leaps::observe::{
    Autocorrelation, Bins, ChainRecorder, ChainSummary, ChainWarning, Families, Recorder,
    WeightedSamples, discs_ess, split_r_hat,
};
use leaps::target::{Boundary, Lattice, Pairwise, Target};

use super::{mean_and_rms, stream};

/// 24 binary digits whose energy is the number they spell, from -8 to 8 in steps of 2^-20: lets a chain
/// carry any series.
struct Digits;

impl Target for Digits {
    fn sites(&self) -> usize {
        24
    }
    fn q(&self) -> usize {
        2
    }
    fn energy(&self, _term: usize, x: &[u8]) -> f64 {
        let number = x.iter().fold(0u32, |n, &digit| 2 * n + u32::from(digit));
        f64::from(number) / f64::from(1 << 20) - 8.0
    }
}

fn digits(value: f64) -> [u8; 24] {
    let number = ((value + 8.0) * f64::from(1 << 20)).round().clamp(0.0, 16_777_215.0) as u32;
    std::array::from_fn(|i| (number >> (23 - i) & 1) as u8)
}

/// A stationary autoregressive series of variance 1: rho(t) = memory^t.
fn autoregressive(s: &mut Stream, memory: f64, n: usize) -> Vec<f64> {
    let mut value = s.normal();
    (0..n)
        .map(|_| {
            value = memory * value + (1.0 - memory * memory).sqrt() * s.normal();
            value
        })
        .collect()
}

fn time_of(memory: f64) -> f64 {
    0.5 * (1.0 + memory) / (1.0 - memory)
}

fn summary(s: &mut Stream, chains: usize, states: usize, memory: f64) -> ChainSummary<'static> {
    let record = |_| {
        let mut recorder = ChainRecorder::new(&Digits, &[1.0], 1);
        let series = autoregressive(s, memory, states);
        series.into_iter().for_each(|value| recorder.record(&digits(value)));
        recorder
    };
    ChainSummary::new((0..chains).map(record).collect()).unwrap()
}

/// Groups of two copies that change places with probability 1/2 at every step: alone each remembers half as much, `rho(t) = memory^t / 2`,
/// as together, `memory^t`.
fn exchanging(s: &mut Stream, groups: usize, states: usize, memory: f64) -> ChainSummary<'static> {
    let record = |_| {
        let mut group = [0, 1].map(|_| ChainRecorder::new(&Digits, &[1.0], 1));
        let [mut a, mut b] = [0, 1].map(|_| autoregressive(s, memory, states));
        for i in 0..states {
            if s.chance(0.5) {
                a[i..].swap_with_slice(&mut b[i..]);
            }
            group[0].record(&digits(a[i]));
            group[1].record(&digits(b[i]));
        }
        group.into()
    };
    ChainSummary::of_groups((0..groups).map(record).collect()).unwrap()
}

/// Over 300 replications each the errors of copies that exchange parts cover; counted as independent they would be too small by 1.34.
/// Times, effective samples and R-hat are those of the group: |z| < 5 would show an error of 10 % of the time.
#[test]
fn copies_that_exchange_parts_are_one_unit() {
    let memory = 0.8;
    for (case, groups, states) in [("a block for each", 32, 100), ("blocks of 10 times", 2, 2000)] {
        let mut z = Vec::new();
        for r in 0..300 {
            let summary = exchanging(&mut stream(9000 + r), groups, states, memory);
            z.push(summary.observables().energy_per_site.with_exact(0.0).z().unwrap());
        }
        let (mean, rms) = mean_and_rms(&z);
        assert!((0.85..1.15).contains(&rms) && mean.abs() < 0.3, "{case}: {mean} {rms}");
    }
    let summary = exchanging(&mut stream(81), 16, 4000, memory);
    let ours = &summary.autocorrelations().energy_per_site;
    let exact = time_of(memory);
    assert!(ours.time.error < 0.05 * exact, "{ours:?}");
    assert!((ours.time.mean - exact).abs() < 5.0 * ours.time.error, "{:?}", ours.time);
    assert_eq!((summary.groups(), summary.states()), (16, 128_000));
    assert!((ours.effective_samples * 2.0 * ours.time.mean / 128_000.0 - 1.0).abs() < 1e-12);
    assert!(!ours.short && ours.r_hat < 1.01, "{ours:?}");
    // Groups that stay apart are seen, whatever their copies exchange.
    let apart = |group: usize| {
        let mut pair = [0, 1].map(|_| ChainRecorder::new(&Digits, &[1.0], 1));
        let mut s = stream(82 + group as u32);
        for _ in 0..200 {
            pair.iter_mut().for_each(|r| r.record(&digits(s.normal() + 3.0 * group as f64)));
        }
        pair.into()
    };
    let apart = ChainSummary::of_groups((0..2).map(apart).collect()).unwrap();
    assert!(apart.autocorrelations().energy_per_site.r_hat > 1.5);
}

#[test]
fn groups_are_of_one_size() {
    let record = |states: usize| {
        let mut recorder = ChainRecorder::new(&Digits, &[1.0], 1);
        (0..states).for_each(|_| recorder.record(&digits(0.0)));
        recorder
    };
    for groups in [
        vec![vec![record(3), record(4)]],
        vec![vec![record(3)], vec![record(3), record(3)]],
        vec![vec![]],
    ] {
        assert!(ChainSummary::of_groups(groups).is_err());
    }
}

/// |z| < 5 against the exact time, with errors that would show 2 % (memory 0) to 25 % (memory 0.9).
#[test]
fn autocorrelation_times_are_the_known_ones() {
    for memory in [0.0, 0.5, 0.9] {
        let mut s = stream(80);
        let chains: Vec<Vec<f32>> = (0..21)
            .map(|_| autoregressive(&mut s, memory, 5000).iter().map(|&v| v as f32 + 1e3).collect())
            .collect();
        let ours = Autocorrelation::new(&chains.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let exact = time_of(memory);
        assert!(ours.time.error < 0.05 * exact, "{ours:?}");
        assert!(
            (ours.time.mean - exact).abs() < 5.0 * ours.time.error,
            "{memory}: {:?}",
            ours.time
        );
        assert_eq!(ours.effective_samples, 105_000.0 / (2.0 * ours.time.mean));
        assert!(!ours.short && !ours.constant && ours.r_hat < 1.02, "{ours:?}");
    }
}

#[test]
fn odd_series_have_sensible_times() {
    let alternating: Vec<f32> = (0..400).map(|i| (i % 2) as f32).collect();
    assert_eq!(Autocorrelation::new(&[&alternating]).time.mean, 0.5);
    let ramp: Vec<f32> = (0..400).map(|i| i as f32).collect();
    let ramp = Autocorrelation::new(&[&ramp]);
    assert!(ramp.short && ramp.r_hat > 1.5);
    let frozen = Autocorrelation::new(&[&[0.1; 64], &[0.1; 64]]);
    assert!(frozen.constant && frozen.time.mean == 32.0 && frozen.effective_samples == 2.0);
    let single = Autocorrelation::new(&[&[3.0]]);
    assert!(single.constant && single.r_hat.is_nan());
    assert!(Autocorrelation::new(&[]).constant);
}

#[test]
fn the_benchmark_ess_by_hand() {
    // Deviations -1.5 -0.5 0.5 1.5; lagged products 5, 1.25, then negative: 4 / (2 (1 + 0.25) - 1).
    assert!((discs_ess(&[1.0, 2.0, 3.0, 4.0]) - 4.0 / 1.5).abs() < 1e-12);
    // The first lag is negative at once: as many samples as states.
    assert!((discs_ess(&[0.0, 1.0, 0.0, 1.0]) - 4.0).abs() < 1e-12);
    assert_eq!((discs_ess(&[2.0; 9]), discs_ess(&[2.0])), (1.0, 1.0));
}

#[test]
fn r_hat_by_hand() {
    // Halves (0 1), (2 3): means 0.5 and 2.5, variances 0.5; sqrt(1/2 + 2 / 0.5).
    assert!((split_r_hat(&[&[0.0, 1.0, 2.0, 3.0]]) - 4.5f64.sqrt()).abs() < 1e-12);
    assert_eq!(split_r_hat(&[&[1.0; 8], &[2.0; 8]]), f64::INFINITY);
    assert_eq!(split_r_hat(&[&[1.0; 8], &[1.0; 8]]), 1.0);
    assert!(split_r_hat(&[&[1.0, 2.0, 3.0]]).is_nan());
}

/// Over 300 replications each (standard deviation known to 4 %), mean and variance of a correlated
/// series scatter as the errors say; the means of z detect a bias of 0.3 errors.
#[test]
fn block_errors_cover() {
    for (case, chains, states, memory, highest) in [
        ("blocks of 10 times", 2, 2000, 0.8, 1.15),
        ("one block per chain", 16, 60, 0.9, 1.25), // Student with 15 degrees: 1.07
        ("blocks of 2 times", 2, 200, 0.8, 1.25),   // noisy times, widened blocks
    ] {
        let (mut means, mut variances) = (Vec::new(), Vec::new());
        for r in 0..300 {
            let summary = summary(&mut stream(5000 + r), chains, states, memory);
            let observables = summary.observables();
            means.push(observables.energy_per_site.with_exact(0.0).z().unwrap());
            let capacity = observables.heat_capacity_per_site.with_exact(1.0 / 24.0);
            variances.push(capacity.z().unwrap());
        }
        let (mean, rms) = mean_and_rms(&means);
        assert!((0.85..highest).contains(&rms) && mean.abs() < 0.3, "{case}: {mean} {rms}");
        if states == 2000 {
            let (mean, rms) = mean_and_rms(&variances);
            assert!((0.85..1.2).contains(&rms) && mean.abs() < 0.5, "{case}: {mean} {rms}");
        }
    }
}

/// 16 binary digits as above and eight spins that flip together, with a small part in the energy.
struct SlowSpins;

impl Target for SlowSpins {
    fn sites(&self) -> usize {
        24
    }
    fn q(&self) -> usize {
        2
    }
    fn energy(&self, _term: usize, x: &[u8]) -> f64 {
        let number = x[..16].iter().fold(0u32, |n, &digit| 2 * n + u32::from(digit));
        f64::from(number) / 8192.0 - 4.0 + 0.6 * (f64::from(x[23]) - 0.5)
    }
}

/// The energy has 8 % of its variance from spins that flip every 100 steps: its own window ends before that matters, and errors would be too small
/// by 2. The order parameter shows how slow the chains are. Over 150 replications the root mean square is known to 6 %.
#[test]
fn slow_motions_that_others_show_are_in_every_error() {
    let (mut z, mut times) = (Vec::new(), Vec::new());
    for r in 0..150 {
        let mut s = stream(12_000 + r);
        let record = |_| {
            let mut recorder = ChainRecorder::new(&SlowSpins, &[1.0], 1);
            let mut spin = s.below(2) as u8;
            for _ in 0..4000 {
                spin ^= u8::from(s.chance(0.01));
                let number = ((s.normal() + 4.0) * 8192.0).clamp(0.0, 65_535.0) as u32;
                let digit = |i: usize| if i < 16 { (number >> (15 - i) & 1) as u8 } else { spin };
                recorder.record(&std::array::from_fn::<u8, 24, _>(digit));
            }
            recorder
        };
        let summary = ChainSummary::new((0..4).map(record).collect()).unwrap();
        // Numbers are cut off below: half a step.
        let exact = -0.5 / 8192.0 / 24.0;
        let energy = summary.observables().energy_per_site.with_exact(exact);
        z.push(energy.z().unwrap());
        times.push(summary.autocorrelations().energy_per_site.time.mean);
    }
    let (mean, rms) = mean_and_rms(&z);
    assert!((0.8..1.25).contains(&rms) && mean.abs() < 0.4, "{mean} {rms}");
    let time = times.iter().sum::<f64>() / 150.0;
    let exact = 0.5 + 0.0826 * 49.0;
    assert!((0.75..1.25).contains(&(time / exact)), "{time} {exact}");
}

#[test]
fn block_sums_lose_nothing_at_any_length() {
    let lattice = Lattice::new(&[3, 3], Boundary::Periodic).unwrap();
    let model = Pairwise::potts(lattice, 3, 1.0, 0.2).unwrap();
    for states in [1, 2, 511, 512, 513, 1024, 1025, 3000] {
        let mut s = stream(90);
        let lengths = [states, states + 77];
        let mut kept = Vec::new();
        let mut distances = Vec::new();
        let mut reference = Stream::new(7, Purpose::Statistic, 0, 0);
        let reference: Vec<u8> = (0..9).map(|_| reference.below(3) as u8).collect();
        let mut record = |n: usize| {
            let mut recorder = ChainRecorder::new(&model, &[0.4, 0.4], 7);
            let mut series = Vec::new();
            for _ in 0..n {
                let x: Vec<u8> = (0..9).map(|_| s.below(3) as u8).collect();
                recorder.record(&x);
                let apart = x.iter().zip(&reference).map(|(&a, &b)| a.abs_diff(b));
                series.push(f32::from(apart.sum::<u8>()));
                kept.extend(x);
            }
            distances.push(discs_ess(&series));
            assert_eq!(recorder.len(), n);
            recorder
        };
        let summary = ChainSummary::new(lengths.map(&mut record).into()).unwrap();
        assert_eq!((summary.groups(), summary.states()), (2, 2 * states + 77));
        assert!((summary.discs_ess() - 0.5 * (distances[0] + distances[1])).abs() < 1e-9);
        // The same states as independent walkers of equal weight.
        let n = kept.len() / 9;
        let weights = LogWeights::new(vec![0.0; n]).unwrap();
        let walkers =
            WeightedSamples::new(&model, &[0.4, 0.4], &kept, &weights, &Families::separate(n))
                .unwrap();
        let (chains, walkers_means) = (summary.jackknife().means(), walkers.jackknife().means());
        for (a, b) in chains.iter().zip(&walkers_means) {
            assert!((a - b).abs() < 1e-10 * b.abs().max(1.0), "{states}: {a} {b}");
        }
        let bins = Bins::new(-3.0, 1.0, 8).unwrap();
        let (a, b) = (summary.energy_histogram(bins), walkers.energy_histogram(bins));
        assert!(a.distance(&b).unwrap().l1 < 1e-9);
        if states == 3000 {
            // Independent states: block errors agree with walker errors to their own noise.
            let (a, b) = (summary.observables(), walkers.observables());
            assert!((a.binder.error / b.binder.error - 1.0).abs() < 0.25);
            assert!(
                (a.correlation[1].value.error / b.correlation[1].value.error - 1.0).abs() < 0.25
            );
            assert_eq!(a.correlation[0].value.error, 0.0);
        }
    }
}

#[test]
fn stuck_modes_are_flagged() {
    let lattice = Lattice::new(&[4, 4], Boundary::Periodic).unwrap();
    let model = Pairwise::ising(lattice, 1.0, 0.0).unwrap();
    let run = |stuck: bool| {
        let mut s = stream(95);
        let mut record = |chain: usize| {
            let mut recorder = ChainRecorder::new(&model, &[1.0], 3);
            for _ in 0..1000 {
                // Ordered states with one flipped site, in one of two modes.
                let mode = if stuck { chain % 2 } else { s.below(2) } as u8;
                let mut x = vec![mode; 16];
                if s.chance(0.5) {
                    x[s.below(16)] ^= 1;
                }
                recorder.record(&x);
            }
            recorder
        };
        ChainSummary::new((0..4).map(&mut record).collect()).unwrap()
    };
    assert_eq!(run(false).warnings(), []);
    let stuck = run(true);
    let flagged = |name: &str| {
        stuck.warnings().iter().any(
            |w| matches!(w, ChainWarning::Disagreement { observable, .. } if *observable == name),
        )
    };
    assert!(
        flagged("magnetization") && !flagged("abs_magnetization") && !flagged("energy_per_site")
    );
    // m is not known, |m| and the energy are.
    let observables = stuck.observables();
    assert!(observables.magnetization.error > 0.3, "{:?}", observables.magnetization);
    assert!(observables.abs_magnetization.error < 0.01);
    let text = stuck.warnings()[0].to_string();
    assert!(text.contains("magnetization") || text.contains("distance"), "{text}");
}

#[test]
fn frozen_and_empty_chains_are_not_believed() {
    assert!(ChainSummary::new(Vec::new()).is_err());
    assert!(ChainSummary::new(vec![ChainRecorder::new(&Digits, &[1.0], 1)]).is_err());
    let mut recorder = ChainRecorder::new(&Digits, &[1.0], 1);
    (0..1000).for_each(|_| recorder.record(&digits(0.7)));
    let frozen = ChainSummary::new(vec![recorder]).unwrap();
    assert_eq!(frozen.observables().energy_per_site.error, f64::INFINITY);
    assert!(
        frozen
            .warnings()
            .contains(&ChainWarning::Constant { observable: "energy_per_site".into() })
    );
    let other = ChainRecorder::new(&Digits, &[2.0], 1);
    let mut pair = [ChainRecorder::new(&Digits, &[1.0], 1), other];
    pair.iter_mut().for_each(|r| r.record(&digits(0.0)));
    assert!(ChainSummary::new(pair.into()).is_err());
}
