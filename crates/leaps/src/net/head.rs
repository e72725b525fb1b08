//! The head of hollow networks: from the context of a site to its outputs, site by site.
//!
//! $$u = M_1\,H_i + c_1,\quad v = \sigma\big((1 + a(t))\,u + s(t)\big),\quad o(i) = M_3\,\sigma(v + M_2 v + c_2) + c_3$$

use super::dense::TimeEmbedding;
use super::layout::{Init, Tensor, layout, take, take_mut};
use super::network::Group;
use super::product::{Matrix, add_columns, add_sums};
use crate::device::vector::{Real, Vector};

/// Sites mixed at a time where nothing is saved: their rows stay close to the core.
const BLOCK: usize = 16;

/// Three layers that act on every site alone.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    mix: Matrix,
    hidden: Matrix,
    pub(super) out: Matrix,
    pub(super) time: TimeEmbedding,
}

layout! {
    /// Packed parameters: weights `[input][output]` and biases of the three layers.
    struct Parameters(head: &Head) {
        mix: head.mix.len(),
        mix_bias: head.mix.outputs,
        hidden: head.hidden.len(),
        hidden_bias: head.hidden.outputs,
        out: head.out.len(),
        out_bias: head.out.outputs,
        time: head.time.parameters(),
    }
}

layout! {
    /// Scratch space; rows are sites.
    struct Rows(head: &Head, sites: usize) {
        /// Before and after the first activation; before and after the second.
        u: sites * head.mix.outputs,
        v: sites * head.mix.outputs,
        w: sites * head.mix.outputs,
        r: sites * head.mix.outputs,
        d_v: sites * head.mix.outputs,
        /// Scale and shift, their gradient, saved activations of the embedding.
        time: head.time.outputs,
        d_time: head.time.outputs,
        embedding: head.time.scratch(),
        sums: head.mix.len().max(head.hidden.len()).max(head.out.len()),
    }
}

impl Head {
    pub(crate) fn new(context: usize, width: usize, outputs: usize) -> Self {
        Head {
            mix: Matrix { inputs: context, outputs: width },
            hidden: Matrix { inputs: width, outputs: width },
            out: Matrix { inputs: width, outputs },
            time: TimeEmbedding::new(2 * width),
        }
    }

    /// The same, conditioned on so many numbers beside the time.
    pub(crate) fn conditioned_on(mut self, conditions: usize) -> Self {
        self.time = self.time.conditioned_on(conditions);
        self
    }

    /// Channels of its layers.
    pub(crate) fn width(&self) -> usize {
        self.mix.outputs
    }

    fn layers(&self) -> [(&'static str, Matrix, f64); 3] {
        [("mix", self.mix, 1.0), ("hidden", self.hidden, 1.0), ("out", self.out, 0.1)]
    }

    pub(crate) fn tensors(&self) -> Vec<Tensor> {
        let mut all = Vec::new();
        for (name, matrix, shrink) in self.layers() {
            let deviation = 1.0 / (3.0 * matrix.inputs as f64).sqrt();
            let weight = Init::Normal(shrink * deviation);
            let bias = if name == "out" { Init::Zero } else { Init::Normal(deviation) };
            let shape = [matrix.outputs, matrix.inputs];
            all.push(Tensor::new("weight", &shape, weight).within(name));
            all.push(Tensor::new("bias", &[matrix.outputs], bias).within(name));
        }
        all.extend(self.time.tensors("mix.time", 0.3));
        all
    }

    pub(crate) fn packed(&self) -> usize {
        Parameters::len(self)
    }

    /// Turn `[output][input]` into `[input][output]`.
    pub(crate) fn pack<S: Real>(&self, mut from: &[S], mut out: &mut [S]) {
        for (_, matrix, _) in self.layers() {
            let Matrix { inputs, outputs } = matrix;
            let (weights, to) = (take(&mut from, matrix.len()), take_mut(&mut out, matrix.len()));
            for o in 0..outputs {
                for k in 0..inputs {
                    to[k * outputs + o] = weights[o * inputs + k];
                }
            }
            take_mut(&mut out, outputs).copy_from_slice(take(&mut from, outputs));
        }
        out.copy_from_slice(from);
    }

    /// The transpose of [`pack`](Self::pack), added.
    pub(crate) fn unpack<S: Real>(&self, mut packed: &[S], mut out: &mut [S]) {
        for (_, matrix, _) in self.layers() {
            let Matrix { inputs, outputs } = matrix;
            let (from, to) = (take(&mut packed, matrix.len()), take_mut(&mut out, matrix.len()));
            for o in 0..outputs {
                for k in 0..inputs {
                    to[o * inputs + k] += from[k * outputs + o];
                }
            }
            let (bias, to) = (take(&mut packed, outputs), take_mut(&mut out, outputs));
            for (to, &bias) in to.iter_mut().zip(bias) {
                *to += bias;
            }
        }
        for (out, &value) in out.iter_mut().zip(packed) {
            *out += value;
        }
    }

    pub(crate) fn scratch(&self, sites: usize) -> usize {
        Rows::len(self, sites)
    }

    /// Scratch space of [`forward`](Self::forward).
    pub(crate) fn forward_scratch(&self) -> usize {
        self.scratch(BLOCK)
    }

    /// [`forward_train`](Self::forward_train) for a few sites at a time, which saves no activations.
    #[inline(always)]
    pub(crate) unsafe fn forward<V: Vector>(
        &self,
        packed: &[V::Scalar],
        group: &Group<'_, V>,
        context: &[V],
        scratch: &mut [V],
        out: &mut [V],
    ) {
        // SAFETY: the caller has the instructions of the vector.
        unsafe { self.blocks(packed, group, context, (BLOCK, scratch), out) }
    }

    /// Write the outputs from `context`, a row for every site.
    #[inline(always)]
    pub(crate) unsafe fn forward_train<V: Vector>(
        &self,
        packed: &[V::Scalar],
        group: &Group<'_, V>,
        context: &[V],
        scratch: &mut [V],
        out: &mut [V],
    ) {
        let sites = context.len() / self.mix.inputs;
        // SAFETY: the caller has the instructions of the vector.
        unsafe { self.blocks(packed, group, context, (sites, scratch), out) }
    }

    /// The outputs of all sites, so many at a time in the same scratch space.
    #[inline(always)]
    unsafe fn blocks<V: Vector>(
        &self,
        packed: &[V::Scalar],
        group: &Group<'_, V>,
        context: &[V],
        (sites, scratch): (usize, &mut [V]),
        out: &mut [V],
    ) {
        let p = Parameters::cut(self, packed);
        let mut s = Rows::cut_mut(self, sites, scratch);
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            self.time.forward(p.time, group.features, s.embedding, s.time);
            let blocks = out.chunks_mut(sites * self.out.outputs);
            for (context, out) in context.chunks(sites * self.mix.inputs).zip(blocks) {
                self.rows(&p, context, &mut s, out);
            }
        }
    }

    /// The outputs of some sites, once the time is embedded.
    #[inline(always)]
    unsafe fn rows<V: Vector>(
        &self,
        p: &Parameters<&[V::Scalar]>,
        context: &[V],
        s: &mut Rows<&mut [V]>,
        out: &mut [V],
    ) {
        let rows = context.len() / self.mix.inputs;
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            let u = &mut s.u[..rows * self.mix.outputs];
            self.mix.forward(p.mix, p.mix_bias, context, u);
            self.after_mix(p, rows, s, out);
        }
    }

    /// The outputs of some rows from their first product.
    #[inline(always)]
    unsafe fn after_mix<V: Vector>(
        &self,
        p: &Parameters<&[V::Scalar]>,
        rows: usize,
        s: &mut Rows<&mut [V]>,
        out: &mut [V],
    ) {
        let width = self.mix.outputs;
        let (u, v) = (&s.u[..rows * width], &mut s.v[..rows * width]);
        let (w, r) = (&mut s.w[..rows * width], &mut s.r[..rows * width]);
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            let (scale, shift) = s.time.split_at(width);
            for (u, v) in u.chunks_exact(width).zip(v.chunks_exact_mut(width)) {
                for c in 0..width {
                    let slope = V::constant(1.0).add(scale[c]);
                    v[c] = u[c].fma(slope, shift[c]).silu();
                }
            }
            self.hidden.forward(p.hidden, p.hidden_bias, v, w);
            for ((w, &v), r) in w.iter_mut().zip(v.iter()).zip(r.iter_mut()) {
                *w = w.add(v);
                *r = w.silu();
            }
            self.out.forward(p.out, p.out_bias, r, out);
        }
    }

    /// Weights and biases of the first product.
    pub(crate) fn first_product<'a, S>(&self, packed: &'a [S]) -> (&'a [S], &'a [S]) {
        let p = Parameters::cut(self, packed);
        (p.mix, p.mix_bias)
    }

    /// Embed the time into the scratch space of [`forward`](Self::forward), for [`finish`](Self::finish).
    #[inline(always)]
    pub(crate) unsafe fn embed<V: Vector>(
        &self,
        packed: &[V::Scalar],
        features: &[V],
        scratch: &mut [V],
    ) {
        let p = Parameters::cut(self, packed);
        let s = Rows::cut_mut(self, BLOCK, scratch);
        // SAFETY: the caller has the instructions of the vector.
        unsafe { self.time.forward(p.time, features, s.embedding, s.time) }
    }

    /// The outputs of rows from their first products over all inputs but the last ones, and these last inputs, once the time is [embedded](Self::embed).
    #[inline(always)]
    pub(crate) unsafe fn finish<V: Vector>(
        &self,
        packed: &[V::Scalar],
        (first, last): (&[V], &[V]),
        scratch: &mut [V],
        out: &mut [V],
    ) {
        let p = Parameters::cut(self, packed);
        let mut s = Rows::cut_mut(self, BLOCK, scratch);
        let (width, outputs) = (self.mix.outputs, self.out.outputs);
        let inputs = last.len() / (first.len() / width);
        let matrix = Matrix { inputs, outputs: width };
        let w = &p.mix[p.mix.len() - matrix.len()..];
        let blocks = out.chunks_mut(BLOCK * outputs).zip(first.chunks(BLOCK * width));
        for (k, (out, first)) in blocks.enumerate() {
            let rows = first.len() / width;
            s.u[..first.len()].copy_from_slice(first);
            // SAFETY: the caller has the instructions of the vector.
            unsafe {
                if inputs > 0 {
                    let last = &last[k * BLOCK * inputs..][..rows * inputs];
                    matrix.go_on(w, last, &mut s.u[..first.len()]);
                }
                self.after_mix(&p, rows, &mut s, out);
            }
        }
    }

    /// Add the gradient of the parameters and write that of `context`.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // slices of one scratch, which the caller cuts
    pub(crate) unsafe fn backward<V: Vector>(
        &self,
        packed: &[V::Scalar],
        group: &Group<'_, V>,
        context: &[V],
        scratch: &mut [V],
        d_out: &[V],
        d_context: &mut [V],
        grad: &mut [V::Scalar],
    ) {
        let (p, g) = (Parameters::cut(self, packed), Parameters::cut_mut(self, grad));
        let sites = context.len() / self.mix.inputs;
        let s = Rows::cut_mut(self, sites, scratch);
        let width = self.mix.outputs;
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            add_columns(d_out, g.out_bias);
            self.out.gradient(s.r, d_out, true, &mut s.sums[..self.out.len()]);
            add_sums(&s.sums[..self.out.len()], g.out);
            // From here on r holds the gradient of w.
            self.out.transposed(p.out, d_out, s.r);
            for (d, &w) in s.r.iter_mut().zip(s.w.iter()) {
                *d = d.mul(w.silu_slope());
            }
            add_columns(s.r, g.hidden_bias);
            self.hidden.gradient(s.v, s.r, true, &mut s.sums[..self.hidden.len()]);
            add_sums(&s.sums[..self.hidden.len()], g.hidden);
            self.hidden.transposed(p.hidden, s.r, s.d_v);
            let (scale, shift) = s.time.split_at(width);
            s.d_time.fill(V::zero());
            let (d_scale, d_shift) = s.d_time.split_at_mut(width);
            for i in 0..sites {
                for c in 0..width {
                    let (at, slope) = (i * width + c, V::constant(1.0).add(scale[c]));
                    let u = s.u[at];
                    let d_z = s.d_v[at].add(s.r[at]).mul(u.fma(slope, shift[c]).silu_slope());
                    d_scale[c] = d_z.fma(u, d_scale[c]);
                    d_shift[c] = d_shift[c].add(d_z);
                    s.d_v[at] = d_z.mul(slope);
                }
            }
            add_columns(s.d_v, g.mix_bias);
            self.mix.gradient(context, s.d_v, true, &mut s.sums[..self.mix.len()]);
            add_sums(&s.sums[..self.mix.len()], g.mix);
            self.mix.transposed(p.mix, s.d_v, d_context);
            self.time.backward(p.time, group.features, s.embedding, s.d_time, g.time);
        }
    }
}
