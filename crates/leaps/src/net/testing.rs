//! Checks of any network in double precision: gradients against finite differences, hollowness exactly.

use super::layout::{Init, total};
use super::network::{Group, Network};
use super::time_features::{conditioned_features, features_with};
use crate::device::vector::{Array, WIDTH};
use crate::device::{Draw, Purpose, Stream};

type D = Array<f64>;

/// Random values of 16 configurations, `[site * 16 + lane]`.
fn random_values(sites: usize, values: usize, stream: &mut Stream) -> Vec<usize> {
    (0..sites * WIDTH).map(|_| stream.below(values)).collect()
}

fn encode(values: &[usize], inputs: usize) -> Vec<D> {
    let mut x = Vec::new();
    for lanes in values.chunks_exact(WIDTH) {
        for c in 0..inputs {
            x.push(Array(std::array::from_fn(|l| {
                if inputs == 1 { 2.0 * lanes[l] as f64 - 1.0 } else { f64::from(lanes[l] == c) }
            })));
        }
    }
    x
}

/// A network with random parameters and 16 random configurations.
pub(crate) struct Harness<'a, N> {
    network: &'a N,
    inputs: usize,
    outputs: usize,
    sites: usize,
    values: Vec<usize>,
    t: D,
    features: Vec<D>,
    couplings: Vec<D>,
}

impl<'a, N: Network> Harness<'a, N> {
    pub(crate) fn new(
        network: &'a N,
        sites: usize,
        inputs: usize,
        outputs: usize,
        seed: u64,
    ) -> Self {
        Self::conditioned_on(network, sites, inputs, outputs, 0, seed)
    }

    /// The same for a network that is conditioned on so many numbers beside the time.
    pub(crate) fn conditioned_on(
        network: &'a N,
        sites: usize,
        inputs: usize,
        outputs: usize,
        conditions: usize,
        seed: u64,
    ) -> Self {
        let mut stream = Stream::new(seed, Purpose::Statistic, 0, 0);
        let values = random_values(sites, inputs.max(2), &mut stream);
        let t: [f64; WIDTH] = std::array::from_fn(|_| stream.uniform());
        let mut rows = vec![Array([0.0; WIDTH]); features_with(conditions)];
        for (lane, &t) in t.iter().enumerate() {
            let condition: Vec<f64> =
                (0..conditions).map(|_| 2.0 * stream.uniform() - 1.0).collect();
            for (row, feature) in rows.iter_mut().zip(conditioned_features(t, &condition)) {
                row.0[lane] = feature;
            }
        }
        let normal = |stream: &mut Stream| Array(std::array::from_fn(|_| stream.normal()));
        let couplings = (0..network.couplings()).map(|_| normal(&mut stream)).collect();
        let t = Array(t);
        Harness { network, inputs, outputs, sites, values, t, features: rows, couplings }
    }

    /// Random parameters, none of them zero, so that no part of a network is asleep.
    pub(crate) fn parameters(&self, seed: u64) -> Vec<f64> {
        let mut stream = Stream::new(seed, Purpose::Parameters, 1, 0);
        let mut out = Vec::new();
        for tensor in self.network.tensors() {
            let scale = match tensor.init {
                Init::Zero => 0.3,
                Init::Normal(deviation) => 1.5 * deviation,
            };
            out.extend((0..tensor.len()).map(|_| scale * stream.normal()));
        }
        out
    }

    fn run(&self, parameters: &[f64], values: &[usize], scratch: &mut [D]) -> Vec<D> {
        let mut packed = vec![0.0; self.network.packed()];
        self.network.pack(parameters, &mut packed);
        let x = encode(values, self.inputs);
        let group =
            Group { x: &x, t: self.t, features: &self.features, couplings: &self.couplings };
        let mut out = vec![Array([f64::NAN; WIDTH]); self.sites * self.outputs];
        // SAFETY: plain arrays need no special instructions.
        unsafe { self.network.forward_train(&packed, &group, scratch, &mut out) };
        assert!(out.iter().all(|o| o.0.iter().all(|v| v.is_finite())), "an output was not written");
        out
    }

    fn scratch(&self) -> Vec<D> {
        vec![Array([f64::NAN; WIDTH]); self.network.scratch()]
    }

    /// The outputs of the random configurations.
    pub(crate) fn outputs(&self, parameters: &[f64]) -> Vec<D> {
        self.run(parameters, &self.values, &mut self.scratch())
    }

    /// The outputs of passes that save no activations.
    fn plain_outputs(&self, parameters: &[f64]) -> Vec<D> {
        let mut packed = vec![0.0; self.network.packed()];
        self.network.pack(parameters, &mut packed);
        let x = encode(&self.values, self.inputs);
        let group =
            Group { x: &x, t: self.t, features: &self.features, couplings: &self.couplings };
        let mut out = vec![Array([f64::NAN; WIDTH]); self.sites * self.outputs];
        let mut scratch = vec![Array([f64::NAN; WIDTH]); self.network.forward_scratch()];
        // SAFETY: plain arrays need no special instructions.
        unsafe { self.network.forward(&packed, &group, &mut scratch, &mut out) };
        out
    }

    /// The first site whose outputs change, by a single bit, with its own value.
    pub(crate) fn first_leak(&self, parameters: &[f64]) -> Option<usize> {
        let values = self.inputs.max(2);
        let before = self.outputs(parameters);
        (0..self.sites).find(|&site| {
            let mut moved = self.values.clone();
            for site_value in &mut moved[site * WIDTH..(site + 1) * WIDTH] {
                *site_value = (*site_value + 1) % values;
            }
            let after = self.run(parameters, &moved, &mut self.scratch());
            let range = site * self.outputs..(site + 1) * self.outputs;
            before[range.clone()].iter().zip(&after[range]).any(|(a, b)| a.0 != b.0)
        })
    }

    /// The largest relative error of the gradient against central differences, over up to 40 parameters of
    /// every tensor.
    pub(crate) fn gradient_error(&self, parameters: &[f64]) -> f64 {
        let mut stream = Stream::new(5, Purpose::Statistic, 1, 0);
        let d_out: Vec<D> = (0..self.sites * self.outputs)
            .map(|_| Array(std::array::from_fn(|_| stream.normal())))
            .collect();
        let value = |parameters: &[f64]| -> f64 {
            let out = self.outputs(parameters);
            out.iter().zip(&d_out).flat_map(|(o, d)| o.0.iter().zip(d.0)).map(|(o, d)| o * d).sum()
        };
        let mut scratch = self.scratch();
        self.run(parameters, &self.values, &mut scratch);
        let mut packed = vec![0.0; self.network.packed()];
        self.network.pack(parameters, &mut packed);
        let x = encode(&self.values, self.inputs);
        let group =
            Group { x: &x, t: self.t, features: &self.features, couplings: &self.couplings };
        let mut g = vec![0.0; self.network.packed()];
        // SAFETY: plain arrays need no special instructions.
        unsafe { self.network.backward(&packed, &group, &mut scratch, &d_out, &mut g) };
        let mut gradient = vec![0.0; parameters.len()];
        self.network.unpack(&g, &mut gradient);
        let scale = gradient.iter().map(|g| g.abs()).fold(0.0, f64::max);
        assert!(scale > 0.0);
        let (mut worst, mut start) = (0.0f64, 0);
        for tensor in self.network.tensors() {
            let n = tensor.len();
            let picked: Vec<usize> =
                if n <= 40 { (0..n).collect() } else { (0..40).map(|_| stream.below(n)).collect() };
            let largest = gradient[start..start + n].iter().map(|g| g.abs()).fold(0.0, f64::max);
            assert!(n == 0 || largest > 0.0, "no gradient reaches {}", tensor.name);
            for i in picked {
                let mut moved = parameters.to_vec();
                let h = 1e-5;
                moved[start + i] += h;
                let up = value(&moved);
                moved[start + i] -= 2.0 * h;
                let difference = (up - value(&moved)) / (2.0 * h);
                let error = (gradient[start + i] - difference).abs() / (largest + 1e-3 * scale);
                if error > 1e-6 {
                    eprintln!("{} [{i}]: {} {difference}", tensor.name, gradient[start + i]);
                }
                worst = worst.max(error);
            }
            start += n;
        }
        worst
    }
}

/// All checks of a network.
pub(crate) fn check_network(network: &impl Network, sites: usize, inputs: usize, outputs: usize) {
    check_conditioned(network, sites, inputs, outputs, 0);
}

/// All checks of a network that is conditioned on so many numbers beside the time.
pub(crate) fn check_conditioned(
    network: &impl Network,
    sites: usize,
    inputs: usize,
    outputs: usize,
    conditions: usize,
) {
    for seed in 0..2 {
        let harness = Harness::conditioned_on(network, sites, inputs, outputs, conditions, seed);
        let parameters = harness.parameters(seed);
        assert_eq!(parameters.len(), total(&network.tensors()));
        assert_eq!(harness.first_leak(&parameters), None, "outputs depend on the site's own value");
        let same = |(a, b): (&D, &D)| a.0.map(f64::to_bits) == b.0.map(f64::to_bits);
        let (saved, lean) = (harness.outputs(&parameters), harness.plain_outputs(&parameters));
        assert!(saved.iter().zip(&lean).all(same), "a pass that saves nothing differs");
        if sites > 1 {
            let error = harness.gradient_error(&parameters);
            assert!(error < 1e-6, "gradient off by {error}");
        }
    }
}
