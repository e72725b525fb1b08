//! State-dependent convolutions on a lattice: the paper's locally equivariant convolutional network (LEC).
//!
//! With $x$ the spins (two values) or the learned embeddings of the values (more), a masked convolution and then layers
//! whose kernels are computed from what came before, at the same site:
//!
//! $$u^0 = s_0(t)\; w * x, \qquad
//! K^l_{c\delta}(i) = \sigma\Big(\sum_b A^l_{c\delta b}\,\sigma(u^l_b(i)) + b^l_{c\delta}\Big) + c^l_{c\delta} + \theta^l_\delta(t),$$
//! $$u^{l+1}_c(i) = \sum_{\delta \ne 0} K^l_{c\delta}(i)\, x_c(i + \delta), \qquad
//! o_\tau(i) = s_1(t) \sum_c \omega_{\tau c}\, u^L_c(i),$$
//!
//! with $\sigma$ the silu function and $\theta^l$ a small function of time. The centre $\delta = 0$ is not stored, so a site's
//! outputs cannot depend on its own value. Spins have one channel, which all $c$ share; embeddings have one for each.
//!
//! The scales $s$ are read off the first and the last function of time. Imported networks have the quirks of the
//! authors' code instead: $s_0 = 1 + t$; $s_1 = 1 + t$ for spins and 1 for embeddings; a first
//! convolution that does not wrap around the torus; embeddings shortened to length 1.

mod cuda;
mod embed;
mod ends;
mod first;
mod gradient;
mod layer;
mod packing;
mod passes;
#[cfg(test)]
mod plain;
mod stencil;
#[cfg(test)]
mod tests;
mod time;

use serde::{Deserialize, Serialize};

use super::layout::{Init, Tensor};
use crate::target::{Boundary, Lattice, Target};
use crate::{Error, Result};
use stencil::Stencil;
use time::TimeMlp;

/// Settings of a LEC network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LecSpec {
    /// Widths of the kernels, odd: the first convolution's, then one for each state-dependent layer.
    pub kernels: Vec<usize>,
    /// Channels of every layer.
    pub channels: usize,
    /// Units in each of the two hidden layers of the functions of time.
    pub time_units: usize,
    /// Whether to compute as the authors' code does, for their checkpoints.
    pub imported: bool,
}

impl Default for LecSpec {
    fn default() -> Self {
        LecSpec { kernels: vec![3, 5, 7, 9, 15], channels: 20, time_units: 64, imported: false }
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Lec {
    sites: usize,
    channels: usize,
    /// Number of values if they are embedded, 1 for spins.
    inputs: usize,
    imported: bool,
    first: Stencil,
    layers: Vec<Layer>,
}

/// A state-dependent convolution.
#[derive(Clone, Debug)]
struct Layer {
    stencil: Stencil,
    time: TimeMlp,
}

impl Lec {
    /// The network for a target on a lattice.
    pub(crate) fn new(spec: &LecSpec, target: &dyn Target) -> Result<Self> {
        let Some(lattice) = target.lattice() else {
            return Err(Error::not_applicable(
                "the network lec",
                "it convolves over a lattice and this target has none; use mlp",
            ));
        };
        spec.check(lattice)?;
        let wraps = lattice.boundary() == Boundary::Periodic;
        let first = Stencil::new(lattice, spec.kernels[0], wraps && !spec.imported);
        let depth = spec.kernels.len() - 1;
        let layers = spec.kernels[1..].iter().enumerate().map(|(l, &kernel)| {
            let stencil = Stencil::new(lattice, kernel, wraps);
            let scales = !spec.imported && (l == 0 || l + 1 == depth);
            let outputs = stencil.taps() + usize::from(scales);
            Layer { stencil, time: TimeMlp { units: spec.time_units, outputs } }
        });
        let layers = layers.collect();
        Ok(Lec {
            sites: lattice.sites(),
            channels: spec.channels,
            inputs: if target.q() == 2 { 1 } else { target.q() },
            imported: spec.imported,
            first,
            layers,
        })
    }

    /// Channels of the input: 1 for spins, all for embeddings.
    fn planes(&self) -> usize {
        if self.inputs == 1 { 1 } else { self.channels }
    }

    fn parameters(&self) -> Vec<Tensor> {
        let (c, planes) = (self.channels, self.planes());
        let normal = |variance: f64| Init::Normal(variance.sqrt());
        let mut all = Vec::new();
        if self.inputs > 1 {
            all.push(Tensor::new("embedding", &[self.inputs, c], Init::Normal(1.0)));
        }
        let taps = self.first.taps();
        let fan = (planes * taps) as f64;
        all.push(Tensor::new("first.weight", &[c, planes, taps], normal(1.0 / fan)));
        for (l, layer) in self.layers.iter().enumerate() {
            let taps = layer.stencil.taps();
            // silu halves small numbers: with these sizes every layer's output stays of order 1.
            let fan = taps as f64;
            let prefix = format!("layers.{l}");
            all.extend(
                [
                    Tensor::new("weight", &[c, taps, c], normal(4.0 / (fan * c as f64))),
                    Tensor::new("inner", &[c, taps], Init::Zero),
                    Tensor::new("outer", &[c, taps], normal(1.0 / fan)),
                ]
                .map(|tensor| tensor.within(&prefix)),
            );
            all.extend(layer.time.tensors(&format!("{prefix}.time"), 0.3 / fan.sqrt()));
        }
        all.push(Tensor::new("out", &[self.inputs, c], normal(0.01 / c as f64)));
        all
    }
}

impl LecSpec {
    fn check(&self, lattice: &Lattice) -> Result<()> {
        let kernels = format!("{:?}", self.kernels);
        let bad = |condition: String, advice: &str| {
            Err(Error::invalid("network.kernels", &kernels, condition, advice))
        };
        if self.kernels.len() < 2 {
            let advice = "give one for the first convolution and one for each layer, as [3, 5, 7]";
            return bad("at least two widths".into(), advice);
        }
        if self.kernels.iter().any(|k| k % 2 == 0 || *k < 3) {
            return bad("odd widths from 3 on".into(), "a kernel is centred on its site: 3, 5, 7");
        }
        let side = lattice.shape().iter().copied().min().unwrap_or(0);
        let (limit, why) = match lattice.boundary() {
            Boundary::Periodic => (side, "a wider one sees its own site around the torus"),
            Boundary::Free => (2 * side - 1, "a wider one sees nothing more"),
        };
        if self.kernels.iter().any(|&k| k > limit) {
            let widest = (limit - 1) / 2 * 2 + 1;
            return bad(
                format!("at most {limit} wide on a lattice with a side of {side} ({why})"),
                &format!("use widths up to {widest}, or a larger lattice"),
            );
        }
        if self.channels == 0 {
            return Err(Error::invalid("network.channels", 0, "at least 1", "20 is usual"));
        }
        if self.time_units == 0 {
            return Err(Error::invalid("network.time_units", 0, "at least 1", "64 is usual"));
        }
        Ok(())
    }
}
