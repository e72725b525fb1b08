//! Temporary.
use super::dense::TimeEmbedding;
use super::features::{FEATURES, features};
use super::layout::{Tensor, initialise};
use crate::Result;
use crate::device::vector::{Array, Vector, WIDTH};
/// Which function of time.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum FreeEnergySpec {
    /// `dF/dt` itself, times the number of sites: a hidden layer over features of time.
    Rate,
}
/// x
#[derive(Clone, Debug)]
pub struct FreeEnergy {
    spec: FreeEnergySpec,
    time: TimeEmbedding,
    sites: f64,
}
impl FreeEnergy {
    /// x
    pub fn new(spec: &FreeEnergySpec, sites: usize) -> Result<Self> {
        let time = TimeEmbedding { outputs: 1 };
        Ok(FreeEnergy { spec: spec.clone(), time, sites: sites as f64 })
    }
    /// What the function was built from.
    pub fn spec(&self) -> &FreeEnergySpec {
        &self.spec
    }
    /// x
    pub fn tensors(&self) -> Vec<Tensor> {
        self.time.tensors("rate", 1.0)
    }
    /// x
    pub fn parameters(&self) -> usize {
        self.time.parameters()
    }
    /// x
    pub fn initial(&self, seed: u64) -> Vec<f32> {
        initialise(&self.tensors(), seed ^ 77)
    }
    fn run(
        &self,
        p: &[f32],
        t: &[f64],
        mut f: impl FnMut(usize, &[Array<f32>; FEATURES], &mut [Array<f32>], &mut [Array<f32>]),
    ) {
        let _ = p;
        for (g, ts) in t.chunks(WIDTH).enumerate() {
            let mut rows = [Array([0.0f32; WIDTH]); FEATURES];
            for lane in 0..WIDTH {
                for (r, v) in rows.iter_mut().zip(features(ts[lane.min(ts.len() - 1)])) {
                    r.0[lane] = v as f32;
                }
            }
            let mut sc = vec![Array([0.0f32; WIDTH]); self.time.scratch()];
            let mut out = [Array([0.0f32; WIDTH])];
            f(g, &rows, &mut sc, &mut out);
        }
    }
    /// x
    pub fn rates(&self, p: &[f32], t: &[f64]) -> Vec<f64> {
        let mut all = Vec::new();
        self.run(p, t, |_, rows, sc, out| {
            unsafe { self.time.forward::<Array<f32>>(p, rows, sc, out) };
            all.extend(out[0].0.iter().map(|&v| f64::from(v) * self.sites));
        });
        all.truncate(t.len());
        all
    }
    /// x
    pub fn gradient(&self, p: &[f32], t: &[f64], d: &[f64], grad: &mut [f32]) {
        self.run(p, t, |g, rows, sc, out| unsafe {
            self.time.forward::<Array<f32>>(p, rows, sc, out);
            let mut dd = Array([0.0f32; WIDTH]);
            for lane in 0..WIDTH {
                if let Some(v) = d.get(g * WIDTH + lane) {
                    dd.0[lane] = (*v * self.sites) as f32;
                }
            }
            self.time.backward::<Array<f32>>(p, rows, sc, &[dd], grad);
        });
        let _ = <Array<f32> as Vector>::splat;
    }
}
