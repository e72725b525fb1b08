//! Comparison with numbers computed by the authors' code, which lie where `LEAPS_FIXTURES` says.

use std::path::PathBuf;

use safetensors::{Dtype, SafeTensors};

use super::free_energy::FreeEnergy;
use super::import::{Mapped, StateDict, Stored, map};
use super::layout::Tensor;
use super::lec::Lec;
use super::model::{Net, NetSpec};
use super::network::{Group, Network};
use super::time_features::FEATURES;
use crate::device::vector::{Array, WIDTH};
use crate::target::{Boundary, Lattice, Pairwise};

type D = Array<f64>;

const BETA: f64 = 0.4407;

/// The folder of the fixtures.
pub(crate) fn fixtures(kind: &str) -> PathBuf {
    let root = std::env::var_os("LEAPS_FIXTURES").expect("LEAPS_FIXTURES names the fixtures");
    PathBuf::from(root).join("authors").join(kind)
}

/// All tensors of a file, in double precision.
fn tensors(folder: &std::path::Path, name: &str) -> StateDict<f64> {
    let path = folder.join(name);
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let stored = file.iter().map(|(name, view)| {
        let values = match view.dtype() {
            Dtype::F32 => view
                .data()
                .as_chunks::<4>()
                .0
                .iter()
                .map(|&b| f32::from_le_bytes(b).into())
                .collect(),
            Dtype::F64 => {
                view.data().as_chunks::<8>().0.iter().map(|&b| f64::from_le_bytes(b)).collect()
            }
            other => panic!("{name}: {other:?}"),
        };
        (name.to_owned(), Stored { shape: view.shape().to_vec(), values })
    });
    stored.collect()
}

/// The authors' weights.
pub(crate) fn weights(folder: &std::path::Path) -> Mapped<f64> {
    map(&tensors(folder, "weights.safetensors")).unwrap()
}

fn target() -> Pairwise {
    Pairwise::ising(Lattice::new(&[15, 15], Boundary::Periodic).unwrap(), 1.0, 0.0).unwrap()
}

/// The largest difference, relative to the largest number.
fn error(got: &[f64], want: &[f64]) -> f64 {
    assert_eq!(got.len(), want.len());
    let scale = want.iter().fold(0.0, |m: f64, w| m.max(w.abs()));
    got.iter().zip(want).fold(0.0, |m: f64, (g, w)| m.max((g - w).abs())) / scale
}

/// `[batch][n]` as groups of 16 lanes.
fn lanes(values: &[f64], n: usize) -> Vec<Vec<D>> {
    let group = |rows: &[f64]| {
        (0..n).map(|i| Array(std::array::from_fn(|lane| rows[lane * n + i]))).collect()
    };
    values.chunks_exact(n * WIDTH).map(group).collect()
}

/// Groups of 16 lanes as `[batch][n]`.
fn rows(groups: &[Vec<D>]) -> Vec<f64> {
    let mut out = Vec::new();
    for group in groups {
        for lane in 0..WIDTH {
            out.extend(group.iter().map(|v| v.0[lane]));
        }
    }
    out
}

/// `d loss / d J` of every site: the loss is the mean of `residual^2`, with the relu rates of the paper.
fn flux_gradient(x: &[f64], t: f64, flux: &[f64], residual: f64, batch: usize) -> Vec<f64> {
    let at = |i: usize, j: usize| x[(i % 15) * 15 + j % 15];
    let site = |(k, &flux): (usize, &f64)| {
        let (i, j) = (k / 15, k % 15);
        let field = at(i + 1, j) + at(i + 14, j) + at(i, j + 1) + at(i, j + 14);
        let change = 2.0 * BETA * t * x[k] * field;
        let slope = if flux > 0.0 { 1.0 } else { (-change).exp() };
        2.0 * residual / batch as f64 * slope
    };
    flux.iter().enumerate().map(site).collect()
}

/// Assert that every tensor of a gradient is within `allowed` of the authors'.
fn compare(tensors: &[Tensor], got: &[f64], want: &[f64], allowed: f64) {
    let mut start = 0;
    for tensor in tensors {
        let range = start..start + tensor.len();
        let error = error(&got[range.clone()], &want[range]);
        assert!(error < allowed, "{}: gradient off by {error:e}", tensor.name);
        start += tensor.len();
    }
    assert_eq!((start, start), (got.len(), want.len()));
}

struct Authors {
    input: StateDict<f64>,
    exact: StateDict<f64>,
    network: Mapped<f64>,
    gradient: Mapped<f64>,
}

impl Authors {
    fn read() -> Self {
        let folder = fixtures("ising");
        Authors {
            input: tensors(&folder, "random.safetensors"),
            exact: tensors(&folder, "random_f64.safetensors"),
            network: weights(&folder),
            gradient: map(&tensors(&folder, "random_grads_f64.safetensors")).unwrap(),
        }
    }

    fn exact(&self, name: &str) -> &[f64] {
        &self.exact[name].values
    }

    /// The gradient with respect to the hollow output, spin times flux.
    fn d_out(&self) -> Vec<f64> {
        let (x, t) = (&self.input["x"].values, &self.input["t"].values);
        let mut out = Vec::new();
        for (k, x) in x.chunks_exact(225).enumerate() {
            let flux = &self.exact("G")[k * 225..][..225];
            let d = flux_gradient(x, t[k], flux, self.exact("residual")[k], t.len());
            out.extend(d.iter().zip(x).map(|(d, x)| d * x));
        }
        out
    }
}

#[test]
#[cfg_attr(not(has_fixtures), ignore = "needs the authors' numbers: set LEAPS_FIXTURES")]
fn double_precision_agrees_with_the_authors_network() {
    let authors = Authors::read();
    assert_eq!(authors.network.spec.kernels, [3, 5, 7, 9, 15]);
    let network = Lec::new(&authors.network.spec, &target()).unwrap();
    let mut packed = vec![0.0; network.packed()];
    network.pack(&authors.network.parameters, &mut packed);
    let (x, t) = (lanes(&authors.input["x"].values, 225), lanes(&authors.input["t"].values, 1));
    let d_out = lanes(&authors.d_out(), 225);
    let (mut outputs, mut hidden, mut theta) = (vec![], vec![vec![]; 5], vec![vec![]; 4]);
    let mut gradient = vec![0.0; packed.len()];
    for g in 0..x.len() {
        let mut scratch = vec![Array([f64::NAN; WIDTH]); network.scratch()];
        let mut out = vec![Array([0.0; WIDTH]); 225];
        let features = [Array([f64::NAN; WIDTH]); FEATURES]; // the authors' network reads none
        let group = Group { x: &x[g], t: t[g][0], features: &features, couplings: &[] };
        // SAFETY: plain arrays need no special instructions.
        unsafe {
            network.forward_train(&packed, &group, &mut scratch, &mut out);
            for l in 0..5 {
                hidden[l].push(network.hidden(&group, &scratch, l));
            }
            for l in 0..4 {
                theta[l].push(network.theta(&scratch, l));
            }
            network.backward(&packed, &group, &mut scratch, &d_out[g], &mut gradient);
        }
        outputs.push(out);
    }
    for l in 0..5 {
        let error = error(&rows(&hidden[l]), &by_site(authors.exact(&format!("h{l}"))));
        assert!(error < 1e-9, "h{l} off by {error:e}");
    }
    for (l, theta) in theta.iter().enumerate() {
        let want = authors.exact(&format!("temb{l}"));
        let n = want.len() / 32;
        let taps: Vec<f64> =
            want.iter().enumerate().filter(|(i, _)| i % n != n / 2).map(|(_, v)| *v).collect();
        let error = error(&rows(theta), &taps);
        assert!(error < 1e-9, "temb{l} off by {error:e}");
    }
    let x = &authors.input["x"].values;
    let flux: Vec<f64> = rows(&outputs).iter().zip(x).map(|(o, x)| o * x).collect();
    assert!(error(&flux, authors.exact("G")) < 1e-9);
    let mut unpacked = vec![0.0; authors.network.parameters.len()];
    network.unpack(&gradient, &mut unpacked);
    compare(&network.tensors(), &unpacked, &authors.gradient.parameters, 1e-9);
}

/// `[batch][channel][site]` as `[batch][site][channel]`.
fn by_site(values: &[f64]) -> Vec<f64> {
    let mut out = Vec::new();
    for values in values.chunks_exact(20 * 225) {
        for site in 0..225 {
            out.extend((0..20).map(|c| values[c * 225 + site]));
        }
    }
    out
}

#[test]
#[cfg_attr(not(has_fixtures), ignore = "needs the authors' numbers: set LEAPS_FIXTURES")]
fn single_precision_agrees_with_the_authors_network() {
    let authors = Authors::read();
    let net = Net::new(&NetSpec::Lec(authors.network.spec.clone()), &target()).unwrap();
    let parameters: Vec<f32> = authors.network.parameters.iter().map(|&p| p as f32).collect();
    let packed = net.pack(&parameters);
    let (x, t) = (&authors.input["x"].values, &authors.input["t"].values);
    let d_out = authors.d_out();
    let (mut flux, mut gradient) = (Vec::new(), vec![0.0; packed.len()]);
    let mut worker = net.worker();
    for start in (0..t.len()).step_by(WIDTH) {
        for lane in 0..WIDTH {
            let k = start + lane;
            let values: Vec<u8> = x[k * 225..][..225].iter().map(|&x| u8::from(x > 0.0)).collect();
            worker.set(lane, &values, t[k]);
            for site in 0..225 {
                worker.d_out[site].0[lane] = d_out[k * 225 + site] as f32;
            }
        }
        net.forward(&packed, &mut worker);
        for lane in 0..WIDTH {
            let x = &x[(start + lane) * 225..][..225];
            flux.extend((0..225).map(|site| f64::from(worker.output(lane, site)) * x[site]));
        }
        net.backward(&packed, &mut worker, &mut gradient);
    }
    let wrong = error(&flux, authors.exact("G"));
    assert!(wrong < 2e-5, "G off by {wrong:e}");
    let mut unpacked = vec![0.0; parameters.len()];
    net.unpack(&gradient, &mut unpacked);
    let unpacked: Vec<f64> = unpacked.iter().map(|&g| g.into()).collect();
    compare(&net.tensors(), &unpacked, &authors.gradient.parameters, 2e-5);
}

#[test]
#[cfg_attr(not(has_fixtures), ignore = "needs the authors' numbers: set LEAPS_FIXTURES")]
fn free_energies_agree_with_the_authors() {
    let authors = Authors::read();
    let function = FreeEnergy::new(&authors.network.free_energy, 225).unwrap();
    let p = &authors.network.free_energy_parameters;
    let features = [Array([f64::NAN; WIDTH]); FEATURES]; // the authors' function reads none
    let weights: Vec<f64> = authors.exact("residual").iter().map(|r| 2.0 * r / 32.0).collect();
    let (mut values, mut rates, mut gradient) = (vec![], vec![], vec![0.0; p.len()]);
    for (t, d) in lanes(&authors.input["t"].values, 1).iter().zip(lanes(&weights, 1)) {
        let mut scratch = vec![Array([f64::NAN; WIDTH]); function.scratch()];
        // SAFETY: plain arrays need no special instructions.
        unsafe {
            values.push(vec![function.value(p, t[0], &mut scratch).unwrap()]);
            rates.push(vec![function.rate(p, t[0], &features, &mut scratch)]);
            function.backward(p, t[0], &features, &mut scratch, d[0], &mut gradient);
        }
    }
    // Ours leaves a constant out, which the first value fixes.
    let (values, want) = (rows(&values), authors.exact("F"));
    let constant = want[0] - values[0];
    let values: Vec<f64> = values.iter().map(|v| v + constant).collect();
    assert!(error(&values, want) < 1e-9 && error(&rows(&rates), authors.exact("dF_dt")) < 1e-9);
    let want = &authors.gradient.free_energy_parameters;
    compare(&function.tensors(), &gradient, want, 1e-9);

    let p: Vec<f32> = p.iter().map(|&p| p as f32).collect();
    let weights: Vec<f32> = weights.iter().map(|&w| w as f32).collect();
    let times = &authors.input["t"].values;
    let rates: Vec<f64> = function.rates(&p, times).iter().map(|&r| r.into()).collect();
    assert!(error(&rates, authors.exact("dF_dt")) < 2e-5);
    let mut gradient = vec![0.0; p.len()];
    function.gradient(&p, times, &weights, &mut gradient);
    let gradient: Vec<f64> = gradient.iter().map(|&g| g.into()).collect();
    compare(&function.tensors(), &gradient, want, 2e-5);
}
