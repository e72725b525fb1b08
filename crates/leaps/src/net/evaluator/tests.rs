//! Tests of evaluators, one for all devices.

use crate::device::{Draw, Placement, Purpose, Stream};
use crate::net::layout::Init;
use crate::net::{GlassSpec, Inputs, LeaSpec, MlpSpec, Net, NetSpec};
use crate::target::{Boundary, Disorder, Lattice, Pairwise};

/// Random parameters, none of them zero, so that no part of a network is asleep.
pub(in crate::net) fn parameters(net: &Net) -> Vec<f32> {
    let mut stream = Stream::new(4, Purpose::Parameters, 1, 0);
    let mut out = Vec::new();
    for tensor in net.tensors() {
        let scale = match tensor.init {
            Init::Zero => 0.3,
            Init::Normal(deviation) => 1.5 * deviation,
        };
        out.extend((0..tensor.len()).map(|_| (scale * stream.normal()) as f32));
    }
    out
}

/// The largest difference, relative to the largest number; infinite if a number is not finite.
pub(in crate::net) fn error(got: &[f32], want: &[f32]) -> f32 {
    assert_eq!(got.len(), want.len());
    let largest = want.iter().fold(0.0f32, |m, w| m.max(w.abs()));
    let worst = got
        .iter()
        .zip(want)
        .fold(0.0f32, |m, (g, w)| if g.is_finite() { m.max((g - w).abs()) } else { f32::INFINITY });
    worst / largest.max(1e-30)
}

/// Outputs and gradient, one configuration at a time.
fn one_by_one(net: &Net, packed: &[f32], x: Inputs<'_>, d_out: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let (sites, n) = (net.sites(), net.sites() * net.outputs());
    let (mut out, mut sums) = (Vec::new(), vec![0.0; packed.len()]);
    for (k, &t) in x.times.iter().enumerate() {
        let mut worker = net.worker();
        if net.conditions() > 0 {
            worker.set_condition(0, &x.conditions[k * net.conditions()..][..net.conditions()]);
        }
        worker.set(0, &x.states[k * sites..][..sites], t);
        for index in 0..n {
            worker.set_slope(0, index, d_out[k * n + index]);
        }
        net.forward(packed, &mut worker);
        out.extend((0..n).map(|index| worker.output(0, index)));
        net.backward(packed, &mut worker, &mut sums);
    }
    let mut gradient = vec![0.0; net.parameters()];
    net.unpack(&sums, &mut gradient);
    (out, gradient)
}

/// Outputs and gradients of batches of several lengths, and refusal of arrays that are too short or too long.
pub(in crate::net) fn check_evaluator(placement: &Placement, conditions: usize) {
    let lattice = Lattice::new(&[3, 5], Boundary::Periodic).unwrap();
    let target = Pairwise::potts(lattice, 3, 1.0, 0.1).unwrap();
    for spec in [
        NetSpec::Mlp(MlpSpec { hidden: 3 }),
        NetSpec::Lea(LeaSpec { heads: 2, width: 3, embedding: 5 }),
    ] {
        let net = Net::conditioned_on(&spec, &target, conditions).unwrap();
        let parameters = parameters(&net);
        let mut evaluator = net.evaluator(placement, 20).unwrap();
        assert!(evaluator.load(&parameters[1..]).is_err());
        evaluator.load(&parameters).unwrap();
        for n in [0usize, 1, 6, 20, 53] {
            let mut stream = Stream::new(n as u64, Purpose::Statistic, 2, 0);
            let states: Vec<u8> = (0..n * 15).map(|_| stream.below(3) as u8).collect();
            let times: Vec<f64> = (0..n).map(|_| stream.uniform()).collect();
            let conditions: Vec<f64> = (0..n * conditions).map(|_| stream.uniform()).collect();
            let d_out: Vec<f32> = (0..n * 45).map(|_| stream.normal() as f32).collect();
            let x = Inputs {
                states: &states,
                times: &times,
                conditions: &conditions,
                ..Inputs::default()
            };
            let (want, want_gradient) = one_by_one(&net, &net.pack(&parameters), x, &d_out);
            let mut out = vec![f32::NAN; n * 45];
            evaluator.forward(x, &mut out).unwrap();
            assert!(error(&out, &want) < 1e-5, "{spec:?}, {n}: outputs");
            let mut gradient = vec![f32::NAN; net.parameters()];
            evaluator.gradient(x, &d_out, &mut gradient).unwrap();
            assert!(error(&gradient, &want_gradient) < 1e-5, "{spec:?}, {n}: gradient");
            if n > 0 {
                assert!(evaluator.forward(Inputs { states: &states[1..], ..x }, &mut out).is_err());
                assert!(evaluator.forward(x, &mut out[1..]).is_err());
                assert!(evaluator.gradient(x, &d_out[1..], &mut gradient).is_err());
                assert!(evaluator.gradient(x, &d_out, &mut gradient[1..]).is_err());
                let few = Inputs { conditions: &[0.5; 7], ..x };
                assert!(evaluator.forward(few, &mut out).is_err());
            }
        }
        assert!(net.evaluator(placement, 0).is_err());
    }
}

#[test]
fn configurations_may_be_of_different_instances() {
    let lattice = Lattice::new(&[3, 4], Boundary::Periodic).unwrap();
    let target = Pairwise::edwards_anderson(lattice, Disorder::Gaussian, 1).unwrap();
    let net = Net::new(&NetSpec::Glass(GlassSpec { channels: 4, ..Default::default() }), &target);
    let (net, n, mut stream) = (net.unwrap(), 19, Stream::new(2, Purpose::Statistic, 2, 0));
    let parameters = parameters(&net);
    let states: Vec<u8> = (0..n * 12).map(|_| stream.below(2) as u8).collect();
    let times: Vec<f64> = (0..n).map(|_| stream.uniform()).collect();
    let couplings: Vec<f32> = (0..n * 24).map(|_| stream.normal() as f32).collect();
    let mut evaluator = net.evaluator(&Placement::Cpu, n).unwrap();
    evaluator.load(&parameters).unwrap();
    let x = Inputs { states: &states, times: &times, couplings: &couplings, ..Inputs::default() };
    let own = Inputs { couplings: &[], ..x };
    let (mut out, mut plain) = (vec![0.0; n * 12], vec![0.0; n * 12]);
    evaluator.forward(x, &mut out).unwrap();
    evaluator.forward(own, &mut plain).unwrap();
    let packed = net.pack(&parameters);
    let mut worker = net.worker();
    for k in 0..n {
        for (couplings, out) in [(&couplings[k * 24..][..24], &out), (net.instance(), &plain)] {
            worker.set_couplings(3, couplings);
            worker.set(3, &states[k * 12..][..12], times[k]);
            net.forward(&packed, &mut worker);
            assert!((0..12).all(|site| worker.output(3, site) == out[k * 12 + site]));
        }
    }
    assert!(out.iter().zip(&plain).all(|(a, b)| a != b), "couplings are not read");
    assert!(evaluator.forward(Inputs { couplings: &couplings[1..], ..x }, &mut out).is_err());
}

#[test]
fn networks_are_evaluated_on_the_cpu() {
    check_evaluator(&Placement::Cpu, 0);
    check_evaluator(&Placement::Cpu, 2);
}
