//! Mix what a site has seen of the others into its outputs, site by site.
//!
//! $$u = M_1\,H_i + c_1,\quad v = \sigma\big((1 + a(t))\,u + s(t)\big),\quad o(i) = M_3\,\sigma(v + M_2 v + c_2) + c_3$$

use super::dense::TimeEmbedding;
use super::layout::{Init, Tensor, take, take_mut};
use super::network::Group;
use super::product::{Matrix, add_columns, add_sums};
use crate::device::vector::{Real, Vector};

/// Sites mixed at a time where nothing is kept: their rows stay close to the core.
const BLOCK: usize = 16;

/// Three layers that act on every site alone.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    mix: Matrix,
    hidden: Matrix,
    out: Matrix,
    time: TimeEmbedding,
}

/// Packed parameters, cut up.
struct Parameters<'a, S> {
    /// Weights `[input][output]` and biases of the three layers.
    mix: (&'a [S], &'a [S]),
    hidden: (&'a [S], &'a [S]),
    out: (&'a [S], &'a [S]),
    time: &'a [S],
}

/// Scratch space, cut up; rows are sites.
struct Rows<'a, V> {
    /// Before and after the first activation; before and after the second.
    u: &'a mut [V],
    v: &'a mut [V],
    w: &'a mut [V],
    r: &'a mut [V],
    d_v: &'a mut [V],
    /// Scale and shift, their gradient, what the embedding keeps.
    time: &'a mut [V],
    d_time: &'a mut [V],
    embedding: &'a mut [V],
    sums: &'a mut [V],
}

impl Head {
    pub(crate) fn new(seen: usize, width: usize, outputs: usize) -> Self {
        Head {
            mix: Matrix { inputs: seen, outputs: width },
            hidden: Matrix { inputs: width, outputs: width },
            out: Matrix { inputs: width, outputs },
            time: TimeEmbedding::new(2 * width),
        }
    }

    /// The same, told so many numbers beside the time.
    pub(crate) fn conditioned_on(mut self, conditions: usize) -> Self {
        self.time = self.time.conditioned_on(conditions);
        self
    }

    /// Channels of its layers.
    pub(crate) fn width(&self) -> usize {
        self.mix.outputs
    }

    /// Outputs of a site.
    #[cfg(feature = "cuda")]
    pub(crate) fn outputs(&self) -> usize {
        self.out.outputs
    }

    /// Its function of time.
    #[cfg(feature = "cuda")]
    pub(crate) fn time(&self) -> TimeEmbedding {
        self.time
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
        let layers: usize = self.layers().iter().map(|(_, m, _)| m.len() + m.outputs).sum();
        layers + self.time.parameters()
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

    #[inline(always)]
    fn parameters<'a, S>(&self, mut p: &'a [S]) -> Parameters<'a, S> {
        let rest = &mut p;
        Parameters {
            mix: (take(rest, self.mix.len()), take(rest, self.mix.outputs)),
            hidden: (take(rest, self.hidden.len()), take(rest, self.hidden.outputs)),
            out: (take(rest, self.out.len()), take(rest, self.out.outputs)),
            time: p,
        }
    }

    /// Lengths of the parts of the scratch space, in the order of [`Rows`].
    fn lengths(&self, sites: usize) -> [usize; 9] {
        let rows = sites * self.mix.outputs;
        let (time, kept) = (self.time.outputs, self.time.scratch());
        let sums = self.mix.len().max(self.hidden.len()).max(self.out.len());
        [rows, rows, rows, rows, rows, time, time, kept, sums]
    }

    pub(crate) fn scratch(&self, sites: usize) -> usize {
        self.lengths(sites).iter().sum()
    }

    #[inline(always)]
    fn cut<'a, V>(&self, sites: usize, mut scratch: &'a mut [V]) -> Rows<'a, V> {
        let lengths = self.lengths(sites);
        let rest = &mut scratch;
        Rows {
            u: take_mut(rest, lengths[0]),
            v: take_mut(rest, lengths[1]),
            w: take_mut(rest, lengths[2]),
            r: take_mut(rest, lengths[3]),
            d_v: take_mut(rest, lengths[4]),
            time: take_mut(rest, lengths[5]),
            d_time: take_mut(rest, lengths[6]),
            embedding: take_mut(rest, lengths[7]),
            sums: take_mut(rest, lengths[8]),
        }
    }

    /// Scratch space of [`infer`](Self::infer).
    pub(crate) fn infer_scratch(&self) -> usize {
        self.scratch(BLOCK)
    }

    /// [`forward`](Self::forward) for a few sites at a time, which keeps nothing.
    #[inline(always)]
    pub(crate) unsafe fn infer<V: Vector>(
        &self,
        packed: &[V::Scalar],
        group: &Group<'_, V>,
        seen: &[V],
        scratch: &mut [V],
        out: &mut [V],
    ) {
        let p = self.parameters(packed);
        let mut s = self.cut(BLOCK, scratch);
        unsafe {
            self.time.forward(p.time, group.features, s.embedding, s.time);
            let blocks = out.chunks_mut(BLOCK * self.out.outputs);
            for (seen, out) in seen.chunks(BLOCK * self.mix.inputs).zip(blocks) {
                self.rows(&p, seen, &mut s, out);
            }
        }
    }

    /// Write the outputs from `seen`, a row for every site.
    #[inline(always)]
    pub(crate) unsafe fn forward<V: Vector>(
        &self,
        packed: &[V::Scalar],
        group: &Group<'_, V>,
        seen: &[V],
        scratch: &mut [V],
        out: &mut [V],
    ) {
        let p = self.parameters(packed);
        let mut s = self.cut(seen.len() / self.mix.inputs, scratch);
        unsafe {
            self.time.forward(p.time, group.features, s.embedding, s.time);
            self.rows(&p, seen, &mut s, out);
        }
    }

    /// The outputs of some sites, once the time is embedded.
    #[inline(always)]
    unsafe fn rows<V: Vector>(
        &self,
        p: &Parameters<'_, V::Scalar>,
        seen: &[V],
        s: &mut Rows<'_, V>,
        out: &mut [V],
    ) {
        let width = self.mix.outputs;
        let rows = seen.len() / self.mix.inputs * width;
        let (u, v) = (&mut s.u[..rows], &mut s.v[..rows]);
        let (w, r) = (&mut s.w[..rows], &mut s.r[..rows]);
        unsafe {
            self.mix.forward(p.mix.0, p.mix.1, seen, u);
            let (scale, shift) = s.time.split_at(width);
            for (u, v) in u.chunks_exact(width).zip(v.chunks_exact_mut(width)) {
                for c in 0..width {
                    let slope = V::constant(1.0).add(scale[c]);
                    v[c] = u[c].fma(slope, shift[c]).silu();
                }
            }
            self.hidden.forward(p.hidden.0, p.hidden.1, v, w);
            for ((w, &v), r) in w.iter_mut().zip(v.iter()).zip(r.iter_mut()) {
                *w = w.add(v);
                *r = w.silu();
            }
            self.out.forward(p.out.0, p.out.1, r, out);
        }
    }

    /// Add the gradient of the parameters and write that of `seen`.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // slices of one scratch, which the caller cuts
    pub(crate) unsafe fn backward<V: Vector>(
        &self,
        packed: &[V::Scalar],
        group: &Group<'_, V>,
        seen: &[V],
        scratch: &mut [V],
        d_out: &[V],
        d_seen: &mut [V],
        mut grad: &mut [V::Scalar],
    ) {
        let p = self.parameters(packed);
        let sites = seen.len() / self.mix.inputs;
        let s = self.cut(sites, scratch);
        let width = self.mix.outputs;
        let g = &mut grad;
        let (g_mix, g_mix_bias) = (take_mut(g, self.mix.len()), take_mut(g, width));
        let (g_hidden, g_hidden_bias) = (take_mut(g, self.hidden.len()), take_mut(g, width));
        let (g_out, g_out_bias) = (take_mut(g, self.out.len()), take_mut(g, self.out.outputs));
        unsafe {
            add_columns(d_out, g_out_bias);
            self.out.gradient(s.r, d_out, true, &mut s.sums[..self.out.len()]);
            add_sums(&s.sums[..self.out.len()], g_out);
            // From here on r holds the gradient of w.
            self.out.transposed(p.out.0, d_out, s.r);
            for (d, &w) in s.r.iter_mut().zip(s.w.iter()) {
                *d = d.mul(w.silu_slope());
            }
            add_columns(s.r, g_hidden_bias);
            self.hidden.gradient(s.v, s.r, true, &mut s.sums[..self.hidden.len()]);
            add_sums(&s.sums[..self.hidden.len()], g_hidden);
            self.hidden.transposed(p.hidden.0, s.r, s.d_v);
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
            add_columns(s.d_v, g_mix_bias);
            self.mix.gradient(seen, s.d_v, true, &mut s.sums[..self.mix.len()]);
            add_sums(&s.sums[..self.mix.len()], g_mix);
            self.mix.transposed(p.mix.0, s.d_v, d_seen);
            self.time.backward(p.time, group.features, s.embedding, s.d_time, grad);
        }
    }
}
