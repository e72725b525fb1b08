//! Put the layers together: the forward pass and, in reverse, the backward pass.

use std::f64::consts::LN_2;

use super::layer::{self, Input};
use super::stencil::BLOCK;
use super::{Layer, Lec, gradient};
use crate::device::vector::{Real, Vector};
use crate::net::layout::{Tensor, take, take_mut};
use crate::net::network::{Group, Network};

/// The scratch space, cut into what it holds.
struct Space<'a, V> {
    /// The input's planes and their gradients.
    planes: &'a mut [V],
    d_planes: &'a mut [V],
    /// Outputs of the first convolution and of every layer.
    u: &'a mut [V],
    /// Activations that a layer reads, the gradient of its outputs and of its inputs.
    h: &'a mut [V],
    d: &'a mut [V],
    d_h: &'a mut [V],
    /// What the functions of time keep and their outputs, layer by layer.
    time: &'a mut [V],
    /// The gradient of a layer's function of time.
    d_theta: &'a mut [V],
    spare: &'a mut [V],
}

impl Layer {
    /// Outputs of the function of time, filled up to whole blocks of taps.
    fn theta(&self) -> usize {
        (self.stencil.blocks() * BLOCK).max(self.time.outputs)
    }

    /// The number that scales the network, if this layer has it.
    fn scale(&self) -> Option<usize> {
        (self.time.outputs > self.stencil.taps()).then(|| self.stencil.taps())
    }
}

impl Lec {
    /// Numbers in one layer's outputs.
    fn cells(&self) -> usize {
        self.sites * self.channels
    }

    /// Sizes of the parts of [`Space`].
    fn parts(&self) -> [usize; 9] {
        let (planes, cells) = (self.planes() * (self.sites + 1), self.cells());
        let (mut time, mut theta, mut units) = (0, 0, 0);
        for layer in &self.layers {
            time += layer.time.scratch() + layer.theta();
            theta = theta.max(layer.theta());
            units = units.max(layer.time.units);
        }
        let spare = gradient::spare(self.channels).max(2 * units);
        let u = (self.layers.len() + 1) * cells;
        [planes, planes, u, cells, cells, cells, time, theta, spare]
    }

    #[inline(always)]
    fn space<'a, V>(&self, mut scratch: &'a mut [V]) -> Space<'a, V> {
        let [planes, d_planes, u, h, d, d_h, time, d_theta, spare] = self.parts();
        let mut next = |n| take_mut(&mut scratch, n);
        Space {
            planes: next(planes),
            d_planes: next(d_planes),
            u: next(u),
            h: next(h),
            d: next(d),
            d_h: next(d_h),
            time: next(time),
            d_theta: next(d_theta),
            spare: next(spare),
        }
    }

    /// Factors of the first convolution and of the outputs.
    #[inline(always)]
    unsafe fn scales<V: Vector>(&self, t: V, time: &[V]) -> (V, V) {
        unsafe {
            let one = V::constant(1.0);
            if self.imported {
                let later = one.add(t);
                return (later, if self.inputs == 1 { later } else { one });
            }
            let (mut ends, mut start) = ((one, one), 0);
            for (l, layer) in self.layers.iter().enumerate() {
                let theta = start + layer.time.scratch();
                if let Some(at) = layer.scale() {
                    let factor = one.add(time[theta + at]);
                    if l == 0 {
                        ends.0 = factor;
                    }
                    ends.1 = factor;
                }
                start = theta + layer.theta();
            }
            ends
        }
    }
}

impl Network for Lec {
    fn tensors(&self) -> Vec<Tensor> {
        self.parameters()
    }

    fn packed(&self) -> usize {
        self.packed_size()
    }

    fn pack<S: Real>(&self, parameters: &[S], out: &mut [S]) {
        out.fill(S::default());
        self.walk(|from, to, factor| out[to] = S::from_f64(parameters[from].to_f64() * factor));
    }

    fn unpack<S: Real>(&self, packed: &[S], out: &mut [S]) {
        self.walk(|from, to, factor| out[from] += S::from_f64(packed[to].to_f64() * factor));
    }

    fn scratch(&self) -> usize {
        self.parts().iter().sum()
    }

    #[inline(always)]
    unsafe fn forward<V: Vector>(
        &self,
        packed: &[V::Scalar],
        group: &Group<'_, V>,
        scratch: &mut [V],
        out: &mut [V],
    ) {
        let (c, q, cells) = (self.channels, self.inputs, self.cells());
        let space = self.space(scratch);
        let mut p = packed;
        unsafe {
            let embedding = take(&mut p, if q == 1 { 0 } else { q * c });
            self.embed(embedding, group.x, space.planes);
            self.first_forward(take(&mut p, self.first_size()), space.planes, space.u);
            let mut rest = &mut *space.time;
            let mut layers = p;
            for layer in &self.layers {
                let packed = layer.packed(c, &mut layers);
                let kept = take_mut(&mut rest, layer.time.scratch());
                let theta = take_mut(&mut rest, layer.theta());
                for value in theta.iter_mut() {
                    *value = V::zero();
                }
                layer.time.forward(packed.time, group.t, kept, theta);
            }
            let (mut scale, last) = self.scales(group.t, space.time);
            let mut time = &*space.time;
            for (l, layer) in self.layers.iter().enumerate() {
                let packed = layer.packed(c, &mut p);
                take(&mut time, layer.time.scratch());
                let theta = take(&mut time, layer.theta());
                let (before, after) = space.u.split_at_mut((l + 1) * cells);
                activate(&before[l * cells..], scale, space.h);
                scale = V::constant(1.0);
                let (planes, h) = (&*space.planes, &*space.h);
                let input = Input { stencil: &layer.stencil, channels: c, h, planes, theta };
                if q == 1 {
                    layer::forward::<V, false>(&packed, input, self.sites, after);
                } else {
                    layer::forward::<V, true>(&packed, input, self.sites, after);
                }
            }
            let u = &space.u[self.layers.len() * cells..];
            for (out, u) in out.chunks_exact_mut(q).zip(u.chunks_exact(c)) {
                for (out, weight) in out.iter_mut().zip(p.chunks_exact(c)) {
                    *out = dot(weight, u).mul(last);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn backward<V: Vector>(
        &self,
        packed: &[V::Scalar],
        group: &Group<'_, V>,
        scratch: &mut [V],
        d_out: &[V],
        grad: &mut [V::Scalar],
    ) {
        let (c, q, cells, depth) = (self.channels, self.inputs, self.cells(), self.layers.len());
        let space = self.space(scratch);
        let (body, weight) = packed.split_at(packed.len() - q * c);
        let (g_body, g_weight) = grad.split_at_mut(packed.len() - q * c);
        unsafe {
            let (first_scale, last_scale) = self.scales(group.t, space.time);
            let u = &space.u[depth * cells..][..cells];
            let mut d_last = read_out_backward(weight, c, u, d_out, last_scale, g_weight, space.d);
            for value in space.d_planes.iter_mut() {
                *value = V::zero();
            }
            let (mut end, mut time_end) = (body.len(), space.time.len());
            for (l, layer) in self.layers.iter().enumerate().rev() {
                let start = end - layer.size(c);
                let p = layer.packed(c, &mut &body[start..end]);
                let mut g = &mut g_body[start..end];
                end = start;
                let theta = &space.time[time_end - layer.theta()..time_end];
                time_end -= layer.theta();
                let kept = &space.time[time_end - layer.time.scratch()..time_end];
                time_end -= layer.time.scratch();
                let scale = if l == 0 { first_scale } else { V::constant(1.0) };
                let u = &space.u[l * cells..][..cells];
                activate(u, scale, space.h);
                for d in space.d.iter_mut() {
                    *d = d.mul(V::constant(-LN_2));
                }
                let rows = c * layer.stencil.blocks() * BLOCK;
                let d_theta = &mut space.d_theta[..layer.theta()];
                let to = gradient::Output {
                    h: space.d_h,
                    planes: space.d_planes,
                    theta: d_theta,
                    a: take_mut(&mut g, rows * c).as_chunks_mut().0,
                    inner: take_mut(&mut g, rows).as_chunks_mut().0,
                    outer: take_mut(&mut g, rows).as_chunks_mut().0,
                };
                let (planes, h) = (&*space.planes, &*space.h);
                let input = Input { stencil: &layer.stencil, channels: c, h, planes, theta };
                if q == 1 {
                    gradient::backward::<V, false>(&p, input, self.sites, space.d, to, space.spare);
                } else {
                    gradient::backward::<V, true>(&p, input, self.sites, space.d, to, space.spare);
                }
                let d_scale = activate_backward(u, scale, space.d_h, space.d);
                if let Some(at) = layer.scale() {
                    let mut sum = V::zero();
                    if l + 1 == depth {
                        sum = sum.add(d_last);
                        d_last = V::zero();
                    }
                    if l == 0 {
                        sum = sum.add(d_scale);
                    }
                    d_theta[at] = sum;
                }
                layer.time.backward(p.time, group.t, kept, space.spare, d_theta, g);
            }
            let start = end - self.first_size();
            let (first, g_first) = (&body[start..end], &mut g_body[start..end]);
            self.first_backward(first, space.planes, space.d, g_first, space.d_planes);
            if q > 1 {
                let (embedding, g) = (&body[..start], &mut g_body[..start]);
                self.embed_backward(embedding, group.x, space.d_planes, space.spare, g);
            }
        }
    }
}

/// `sum_c weight[c] u[c]`.
#[inline(always)]
unsafe fn dot<V: Vector>(weight: &[V::Scalar], u: &[V]) -> V {
    unsafe {
        let mut sum = V::zero();
        for (&weight, &u) in weight.iter().zip(u) {
            sum = V::splat(weight).fma(u, sum);
        }
        sum
    }
}

/// `h = silu(scale u)`.
#[inline(always)]
unsafe fn activate<V: Vector>(u: &[V], scale: V, h: &mut [V]) {
    unsafe {
        for (h, u) in h.iter_mut().zip(u) {
            *h = u.mul(scale).silu();
        }
    }
}

/// Write the gradient of `u`, and give back that of `scale`.
#[inline(always)]
unsafe fn activate_backward<V: Vector>(u: &[V], scale: V, d_h: &[V], d: &mut [V]) -> V {
    unsafe {
        let mut d_scale = V::zero();
        for ((d, &d_h), &u) in d.iter_mut().zip(d_h).zip(u) {
            let slope = d_h.mul(u.mul(scale).silu_slope());
            d_scale = slope.fma(u, d_scale);
            *d = slope.mul(scale);
        }
        d_scale
    }
}

/// Write the gradient of the last layer, add that of the weights, and give back that of the scale.
#[inline(always)]
unsafe fn read_out_backward<V: Vector>(
    weight: &[V::Scalar],
    channels: usize,
    u: &[V],
    d_out: &[V],
    scale: V,
    grad: &mut [V::Scalar],
    d: &mut [V],
) -> V {
    let q = weight.len() / channels;
    unsafe {
        let mut d_scale = V::zero();
        for ((d, u), d_out) in
            d.chunks_exact_mut(channels).zip(u.chunks_exact(channels)).zip(d_out.chunks_exact(q))
        {
            for d in d.iter_mut() {
                *d = V::zero();
            }
            for (weight, &d_out) in weight.chunks_exact(channels).zip(d_out) {
                d_scale = dot(weight, u).fma(d_out, d_scale);
                for (d, &weight) in d.iter_mut().zip(weight) {
                    *d = V::splat(weight).fma(d_out.mul(scale), *d);
                }
            }
        }
        for s in 0..q {
            for c in 0..channels {
                let mut sum = V::zero();
                for (u, d_out) in u.chunks_exact(channels).zip(d_out.chunks_exact(q)) {
                    sum = u[c].fma(d_out[s], sum);
                }
                grad[s * channels + c] += sum.mul(scale).sum();
            }
        }
        d_scale
    }
}

#[cfg(test)]
impl Lec {
    /// The outputs of the first convolution (`l = 0`) or of a layer, as the forward pass left them.
    pub(crate) unsafe fn hidden<V: Vector>(
        &self,
        group: &Group<'_, V>,
        scratch: &[V],
        l: usize,
    ) -> Vec<V> {
        let [planes, _, _, _, _, _, time, _, _] = self.parts();
        let start = 2 * planes + l * self.cells();
        let rest = &scratch[self.parts()[..6].iter().sum()..][..time];
        unsafe {
            let scale = if l == 0 { self.scales(group.t, rest).0 } else { V::constant(1.0) };
            scratch[start..][..self.cells()].iter().map(|u| u.mul(scale)).collect()
        }
    }

    /// The function of time of layer `l`, by tap.
    pub(crate) unsafe fn theta<V: Vector>(&self, scratch: &[V], l: usize) -> Vec<V> {
        let mut start: usize = self.parts()[..6].iter().sum();
        for layer in &self.layers[..l] {
            start += layer.time.scratch() + layer.theta();
        }
        let layer = &self.layers[l];
        let theta = &scratch[start + layer.time.scratch()..][..layer.stencil.taps()];
        unsafe { theta.iter().map(|theta| theta.mul(V::constant(-LN_2))).collect() }
    }
}
