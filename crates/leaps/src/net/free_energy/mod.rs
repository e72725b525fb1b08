//! The free energy along the path as a small function of time: `dF/dt`, which the loss adds to `K_t`.

mod curve;
mod rate;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::layout::{self, Tensor};
use super::time_features::{conditioned_features, features_with};
use crate::device::SimdLevel;
use crate::device::level::dispatch;
use crate::device::vector::{Array, Floats, Vector, WIDTH, cast, cast_mut};
use crate::{Error, Result};
use curve::Curve;
use rate::Rate;

/// Which function of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
#[non_exhaustive]
pub enum FreeEnergySpec {
    /// `dF/dt` itself, times the number of sites: a hidden layer over features of time.
    Rate,
    /// None: walkers that share a target and a time stand for it by their mean, as in training over
    /// [random instances](crate::train::Instances).
    None,
    /// `F(t)` by a multilayer perceptron with silu units, differentiated exactly; as in the authors'
    /// checkpoints.
    Mlp {
        /// Units of each hidden layer.
        hidden: Vec<usize>,
    },
}

/// A function of time for the free energy of a target.
///
/// Parameters are a flat slice in the order of [`tensors`](FreeEnergy::tensors).
#[derive(Clone, Debug)]
pub struct FreeEnergy {
    spec: FreeEnergySpec,
    kind: Kind,
    /// Numbers that it is conditioned on beside the time.
    conditions: usize,
    level: SimdLevel,
}

#[derive(Clone, Debug)]
enum Kind {
    Rate(Rate),
    None,
    Curve(Curve),
}

/// Sixteen times on their way through the function.
struct Space {
    t: Array<f32>,
    features: Vec<Array<f32>>,
    d: Array<f32>,
    out: Array<f32>,
    scratch: Vec<Array<f32>>,
}

impl FreeEnergy {
    /// The function `spec` for a target with `sites` sites.
    pub fn new(spec: &FreeEnergySpec, sites: usize) -> Result<Self> {
        spec.check_sizes()?;
        let kind = match spec {
            FreeEnergySpec::Rate => Kind::Rate(Rate::new(sites)),
            FreeEnergySpec::None => Kind::None,
            FreeEnergySpec::Mlp { hidden } => {
                if hidden.is_empty() || hidden.contains(&0) {
                    return Err(Error::invalid(
                        "free_energy.hidden",
                        format!("{hidden:?}"),
                        "a list of layer sizes, each at least 1",
                        "[64, 64] is usual",
                    ));
                }
                Kind::Curve(Curve::new(hidden))
            }
        };
        Ok(FreeEnergy { spec: spec.clone(), kind, conditions: 0, level: SimdLevel::detect() })
    }

    /// The same as a function of so many numbers beside the time, for a [family](crate::train::Family) of targets.
    pub fn conditioned_on(self, conditions: usize) -> Result<Self> {
        let kind = match self.kind {
            Kind::Rate(rate) => Kind::Rate(rate.conditioned_on(conditions)),
            Kind::Curve(_) if conditions > 0 => {
                return Err(Error::not_applicable(
                    "the free energy mlp",
                    "it is a function of time alone; use rate for a family of targets",
                ));
            }
            kind => kind,
        };
        Ok(FreeEnergy { kind, conditions, ..self })
    }

    /// Numbers that the function is conditioned on beside the time.
    pub fn conditions(&self) -> usize {
        self.conditions
    }

    /// What the function was built from.
    pub fn spec(&self) -> &FreeEnergySpec {
        &self.spec
    }

    /// The parameters by name.
    pub fn tensors(&self) -> Vec<Tensor> {
        match &self.kind {
            Kind::Rate(rate) => rate.tensors(),
            Kind::None => Vec::new(),
            Kind::Curve(curve) => curve.tensors(),
        }
    }

    /// Number of parameters.
    pub fn parameters(&self) -> usize {
        layout::total(&self.tensors())
    }

    /// Fresh parameters.
    pub fn initial(&self, seed: u64) -> Vec<f32> {
        // Streams beyond those of a network's tensors.
        layout::initialise(&self.tensors(), seed ^ 0xF4EE_E4E4_61E5)
    }

    /// `dF/dt` at every time.
    pub fn rates(&self, parameters: &[f32], times: &[f64]) -> Vec<f32> {
        self.rates_at(parameters, times, |_| &[])
    }

    /// `dF/dt` at every time, the function being conditioned on `condition(k)` beside `times[k]`.
    pub fn rates_at<'c>(
        &self,
        parameters: &[f32],
        times: &[f64],
        condition: impl Fn(usize) -> &'c [f64],
    ) -> Vec<f32> {
        let mut space = self.space();
        let mut out = Vec::with_capacity(times.len());
        for (group, times) in times.chunks(WIDTH).enumerate() {
            space.set(times, |k| condition(group * WIDTH + k));
            self.run(parameters, &mut space);
            out.extend_from_slice(&space.out.0[..times.len()]);
        }
        out
    }

    /// Add the gradient of `sum_k weights[k] dF/dt(times[k])` to `grad`.
    pub fn gradient(&self, parameters: &[f32], times: &[f64], weights: &[f32], grad: &mut [f32]) {
        self.gradient_conditioned_on(parameters, times, |_| &[], weights, grad);
    }

    /// The same for [`rates_at`](Self::rates_at).
    pub fn gradient_conditioned_on<'c>(
        &self,
        parameters: &[f32],
        times: &[f64],
        condition: impl Fn(usize) -> &'c [f64],
        weights: &[f32],
        grad: &mut [f32],
    ) {
        assert_eq!(times.len(), weights.len(), "one weight per time");
        let mut space = self.space();
        for (group, (times, weights)) in times.chunks(WIDTH).zip(weights.chunks(WIDTH)).enumerate()
        {
            space.set(times, |k| condition(group * WIDTH + k));
            space.d = Array([0.0; WIDTH]);
            space.d.0[..weights.len()].copy_from_slice(weights);
            self.run(parameters, &mut space);
            self.run_backward(parameters, &mut space, grad);
        }
    }

    fn space(&self) -> Space {
        let zero = Array([0.0; WIDTH]);
        let scratch = vec![zero; self.scratch()];
        let features = vec![zero; features_with(self.conditions)];
        Space { t: zero, features, d: zero, out: zero, scratch }
    }

    fn run(&self, parameters: &[f32], space: &mut Space) {
        #[inline(always)]
        unsafe fn pass<L: Floats>(this: &FreeEnergy, p: &[f32], space: &mut Space) {
            // SAFETY: the caller has the instructions of the level.
            unsafe {
                let Space { t, features, scratch, out, .. } = space;
                let (t, features) = (cast::<L>(std::slice::from_ref(t))[0], cast::<L>(features));
                let rate = this.rate(p, t, features, cast_mut::<L>(scratch));
                cast_mut::<L>(std::slice::from_mut(out))[0] = rate;
            }
        }
        let this = self;
        dispatch!(self.level, pass, (this: &FreeEnergy, parameters: &[f32], space: &mut Space));
    }

    fn run_backward(&self, parameters: &[f32], space: &mut Space, grad: &mut [f32]) {
        #[inline(always)]
        unsafe fn pass<L: Floats>(
            this: &FreeEnergy,
            p: &[f32],
            space: &mut Space,
            grad: &mut [f32],
        ) {
            // SAFETY: the caller has the instructions of the level.
            unsafe {
                let Space { t, features, scratch, d, .. } = space;
                let (t, features) = (cast::<L>(std::slice::from_ref(t))[0], cast::<L>(features));
                let d = cast::<L>(std::slice::from_ref(d))[0];
                this.backward(p, t, features, cast_mut::<L>(scratch), d, grad);
            }
        }
        let this = self;
        dispatch!(self.level, pass, (
            this: &FreeEnergy,
            parameters: &[f32],
            space: &mut Space,
            grad: &mut [f32],
        ));
    }

    /// Vectors of scratch that [`rate`](Self::rate) followed by [`backward`](Self::backward) needs.
    pub(crate) fn scratch(&self) -> usize {
        match &self.kind {
            Kind::Rate(rate) => rate.scratch(),
            Kind::None => 0,
            Kind::Curve(curve) => curve.scratch(),
        }
    }

    /// `dF/dt` of 16 times.
    #[inline(always)]
    pub(crate) unsafe fn rate<V: Vector>(
        &self,
        p: &[V::Scalar],
        t: V,
        features: &[V],
        scratch: &mut [V],
    ) -> V {
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            match &self.kind {
                Kind::Rate(rate) => rate.forward(p, features, scratch),
                Kind::None => V::zero(),
                Kind::Curve(curve) => curve.forward(p, t, scratch).1,
            }
        }
    }

    /// `F` of 16 times up to a constant, if the function has it.
    #[cfg(test)]
    pub(crate) unsafe fn value<V: Vector>(
        &self,
        p: &[V::Scalar],
        t: V,
        scratch: &mut [V],
    ) -> Option<V> {
        match &self.kind {
            Kind::Rate(_) | Kind::None => None,
            // SAFETY: the caller has the instructions of the vector.
            Kind::Curve(curve) => Some(unsafe { curve.forward(p, t, scratch).0 }),
        }
    }

    /// After [`rate`](Self::rate): add the gradient of `d dF/dt`, over all lanes, to `grad`.
    #[inline(always)]
    pub(crate) unsafe fn backward<V: Vector>(
        &self,
        p: &[V::Scalar],
        t: V,
        features: &[V],
        scratch: &mut [V],
        d: V,
        grad: &mut [V::Scalar],
    ) {
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            match &self.kind {
                Kind::Rate(rate) => rate.backward(p, features, scratch, d, grad),
                Kind::None => {}
                Kind::Curve(curve) => curve.backward(p, t, scratch, d, grad),
            }
        }
    }
}

impl Space {
    fn set<'c>(&mut self, times: &[f64], condition: impl Fn(usize) -> &'c [f64]) {
        // Lanes left over repeat the last time: any finite number would do.
        for lane in 0..WIDTH {
            let k = lane.min(times.len() - 1);
            self.t.0[lane] = times[k] as f32;
            for (row, value) in
                self.features.iter_mut().zip(conditioned_features(times[k], condition(k)))
            {
                row.0[lane] = value as f32;
            }
        }
    }
}
