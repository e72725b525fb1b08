//! Temporary.
use super::dense::TimeEmbedding;
use super::features::{FEATURES, features};
use super::layout::{Tensor, initialise};
use crate::device::vector::{Array, Vector, WIDTH};
/// x
#[derive(Clone, Debug)]
pub struct FreeEnergy {
    time: TimeEmbedding,
    sites: f64,
}
impl FreeEnergy {
    /// x
    pub fn new(sites: usize) -> Self {
        FreeEnergy { time: TimeEmbedding { outputs: 1 }, sites: sites as f64 }
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
