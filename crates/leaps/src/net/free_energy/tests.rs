//! Tests of `dF/dt` and its gradient against finite differences in double precision.

use super::*;
use crate::device::{Purpose, Stream};

type D = Array<f64>;

fn functions() -> Vec<FreeEnergy> {
    [
        FreeEnergySpec::Rate,
        FreeEnergySpec::Mlp { hidden: vec![5] },
        FreeEnergySpec::Mlp { hidden: vec![4, 7, 3] },
    ]
    .iter()
    .map(|spec| FreeEnergy::new(spec, 9).unwrap())
    .chain([FreeEnergy::new(&FreeEnergySpec::Rate, 9).unwrap().conditioned_on(2).unwrap()])
    .collect()
}

fn parameters(function: &FreeEnergy) -> Vec<f64> {
    let mut stream = Stream::new(3, Purpose::Parameters, 0, 0);
    (0..function.parameters()).map(|_| 0.7 * stream.normal()).collect()
}

fn times() -> D {
    Array(std::array::from_fn(|lane| (lane as f64 + 0.5) / 16.0))
}

/// What a function is conditioned on beside a time.
const CONDITIONS: [f64; 2] = [0.4, -0.9];

fn feature_rows(function: &FreeEnergy, t: D) -> Vec<D> {
    let mut rows = vec![Array([0.0; WIDTH]); features_with(function.conditions())];
    for (lane, t) in t.0.into_iter().enumerate() {
        for (row, value) in rows.iter_mut().zip(conditioned_features(t, &CONDITIONS)) {
            row.0[lane] = value;
        }
    }
    rows
}

fn rates(function: &FreeEnergy, p: &[f64], t: D) -> (D, Vec<D>) {
    let mut scratch = vec![Array([f64::NAN; WIDTH]); function.scratch()];
    // SAFETY: plain arrays need no special instructions.
    let rate = unsafe { function.rate(p, t, &feature_rows(function, t), &mut scratch) };
    (rate, scratch)
}

#[test]
fn gradients_are_finite_differences() {
    let weight = Array(std::array::from_fn(|lane| 0.3 - 0.1 * lane as f64));
    for function in functions() {
        let p = parameters(&function);
        let (_, mut scratch) = rates(&function, &p, times());
        let mut gradient = vec![0.0; p.len()];
        let rows = feature_rows(&function, times());
        // SAFETY: plain arrays need no special instructions.
        unsafe { function.backward(&p, times(), &rows, &mut scratch, weight, &mut gradient) };
        let value = |p: &[f64]| -> f64 {
            rates(&function, p, times()).0.0.iter().zip(weight.0).map(|(r, w)| r * w).sum()
        };
        let scale = gradient.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
        for i in 0..p.len() {
            let (mut moved, h) = (p.clone(), 1e-5);
            moved[i] += h;
            let up = value(&moved);
            moved[i] -= 2.0 * h;
            let difference = (up - value(&moved)) / (2.0 * h);
            assert!((gradient[i] - difference).abs() < 1e-7 * scale, "{:?} {i}", function.spec());
            assert!(gradient[i] != 0.0, "{:?}: {i} is asleep", function.spec());
        }
    }
}

#[test]
fn the_rate_of_a_curve_is_its_slope() {
    let curve = Curve::new(&[6, 5]);
    let function = FreeEnergy::new(&FreeEnergySpec::Mlp { hidden: vec![6, 5] }, 1).unwrap();
    let p = parameters(&function);
    let mut scratch = vec![Array([0.0; WIDTH]); curve.scratch()];
    let mut at =
        // SAFETY: plain arrays need no special instructions.
        |shift: f64| unsafe { curve.forward(&p, times().add(Array([shift; WIDTH])), &mut scratch) };
    let ((up, _), (down, _), (_, slope)) = (at(1e-5), at(-1e-5), at(0.0));
    for lane in 0..WIDTH {
        let difference = (up.0[lane] - down.0[lane]) / 2e-5;
        assert!((difference - slope.0[lane]).abs() < 1e-8 * (1.0 + slope.0[lane].abs()));
    }
}

#[test]
fn any_number_of_times_is_served_in_single_precision() {
    for function in functions() {
        let p64 = parameters(&function);
        let p: Vec<f32> = p64.iter().map(|&p| p as f32).collect();
        let times: Vec<f64> = (0..21).map(|i| f64::from(i) / 20.0).collect();
        let all = function.rates_at(&p, &times, |_| &CONDITIONS);
        for (i, &t) in times.iter().enumerate() {
            let (exact, _) = rates(&function, &p64, Array([t; WIDTH]));
            assert!((f64::from(all[i]) - exact.0[0]).abs() < 1e-5 * (1.0 + exact.0[0].abs()));
        }
        let (mut whole, mut parts) = (vec![0.0; p.len()], vec![0.0; p.len()]);
        let weights: Vec<f32> = (0..21).map(|i| 1.0 - 0.1 * i as f32).collect();
        function.gradient_conditioned_on(&p, &times, |_| &CONDITIONS, &weights, &mut whole);
        for (t, w) in times.iter().zip(&weights) {
            function.gradient_conditioned_on(&p, &[*t], |_| &CONDITIONS, &[*w], &mut parts);
        }
        let scale = whole.iter().fold(0.0, |m: f32, g| m.max(g.abs()));
        assert!(whole.iter().zip(&parts).all(|(a, b)| (a - b).abs() < 1e-5 * scale));
        assert!(function.rates(&p, &[]).is_empty());
    }
}

#[test]
fn every_time_has_its_own_condition() {
    let function = FreeEnergy::new(&FreeEnergySpec::Rate, 9).unwrap().conditioned_on(1).unwrap();
    let p: Vec<f32> = parameters(&function).iter().map(|&p| p as f32).collect();
    let conditions: Vec<[f64; 1]> = (0..40).map(|k| [f64::from(k) / 20.0 - 1.0]).collect();
    let all = function.rates_at(&p, &[0.3; 40], |k| &conditions[k]);
    for (k, &rate) in all.iter().enumerate() {
        assert_eq!(rate, function.rates_at(&p, &[0.3], |_| &conditions[k])[0]);
        assert!(k == 0 || rate != all[k - 1]);
    }
    let curve = FreeEnergy::new(&FreeEnergySpec::Mlp { hidden: vec![3] }, 9).unwrap();
    assert!(curve.conditioned_on(1).unwrap_err().to_string().contains("use rate"));
}

#[test]
fn empty_layers_are_refused() {
    for hidden in [vec![], vec![3, 0]] {
        assert!(FreeEnergy::new(&FreeEnergySpec::Mlp { hidden }, 4).is_err());
    }
}

#[test]
fn specifications_are_read_back_as_written() {
    for spec in [FreeEnergySpec::Rate, FreeEnergySpec::Mlp { hidden: vec![3, 4] }] {
        let text = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<FreeEnergySpec>(&text).unwrap(), spec);
    }
    assert!(serde_json::from_str::<FreeEnergySpec>(r#"{"kind":"mlp","hiden":[3]}"#).is_err());
}
