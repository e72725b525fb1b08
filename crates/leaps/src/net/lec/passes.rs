//! The forward pass through all layers and, in reverse, the backward pass.

use std::f64::consts::LN_2;

use super::ends::{activate, activate_backward, read_out, read_out_backward};
use super::layer::{self, Input};
use super::packing::Parts;
use super::stencil::BLOCK;
use super::{Layer, Lec, gradient};
use crate::device::vector::{Real, Vector};
use crate::net::layout::{Tensor, layout, take, take_mut};
use crate::net::network::{Group, Network};

layout! {
    /// Scratch space.
    pub(super) struct Space(lec: &Lec) {
        /// The input's planes and their gradients.
        planes: lec.planes() * (lec.sites + 1),
        d_planes: lec.planes() * (lec.sites + 1),
        /// Outputs of the first convolution and of every layer.
        u: (lec.layers.len() + 1) * lec.cells(),
        /// Activations that a layer reads, the gradient of its outputs and of its inputs.
        h: lec.cells(),
        d: lec.cells(),
        d_h: lec.cells(),
        /// Saved activations of the functions of time and their outputs, layer by layer.
        time: lec.layers.iter().map(Time::len).sum(),
        /// The gradient of a layer's function of time.
        d_theta: lec.layers.iter().map(Layer::theta).max().unwrap_or(0),
        spare: lec.spare(),
    }
}

layout! {
    /// What is saved of a layer's function of time: its activations and its outputs.
    pub(super) struct Time(layer: &Layer) {
        saved: layer.time.scratch(),
        theta: layer.theta(),
    }
}

impl Layer {
    /// Outputs of the function of time, filled up to whole blocks of taps.
    pub(super) fn theta(&self) -> usize {
        (self.stencil.blocks() * BLOCK).max(self.time.outputs)
    }

    /// The number that scales the network, if this layer has it.
    fn scale(&self) -> Option<usize> {
        (self.time.outputs > self.stencil.taps()).then(|| self.stencil.taps())
    }
}

impl Lec {
    /// Numbers in one layer's outputs.
    pub(super) fn cells(&self) -> usize {
        self.sites * self.channels
    }

    /// Vectors that the gradient of a layer needs beside the others.
    fn spare(&self) -> usize {
        let times = self.layers.iter().map(|layer| layer.time.spare());
        times.max().unwrap_or(0).max(gradient::spare(self.channels))
    }

    /// Factors of the first convolution and of the outputs.
    #[inline(always)]
    pub(super) unsafe fn scales<V: Vector>(&self, t: V, time: &[V]) -> (V, V) {
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            let one = V::constant(1.0);
            if self.imported {
                let later = one.add(t);
                return (later, if self.inputs == 1 { later } else { one });
            }
            let (mut ends, mut rest) = ((one, one), time);
            for (l, layer) in self.layers.iter().enumerate() {
                let own = Time::cut(layer, take(&mut rest, Time::len(layer)));
                if let Some(at) = layer.scale() {
                    let factor = one.add(own.theta[at]);
                    if l == 0 {
                        ends.0 = factor;
                    }
                    ends.1 = factor;
                }
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
        Space::len(self)
    }

    #[inline(always)]
    unsafe fn forward_train<V: Vector>(
        &self,
        packed: &[V::Scalar],
        group: &Group<'_, V>,
        scratch: &mut [V],
        out: &mut [V],
    ) {
        let (c, q, cells) = (self.channels, self.inputs, self.cells());
        let space = Space::cut_mut(self, scratch);
        let mut p = packed;
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            let embedding = take(&mut p, if q == 1 { 0 } else { q * c });
            self.embed(embedding, group.x, space.planes);
            self.first_forward(take(&mut p, self.first_size()), space.planes, space.u);
            let mut rest = &mut *space.time;
            let mut layers = p;
            for layer in &self.layers {
                let packed = layer.packed(c, &mut layers);
                let own = Time::cut_mut(layer, take_mut(&mut rest, Time::len(layer)));
                for value in own.theta.iter_mut() {
                    *value = V::zero();
                }
                layer.time.forward(packed.time, group.t, own.saved, own.theta);
            }
            let (mut scale, last) = self.scales(group.t, space.time);
            let mut time = &*space.time;
            for (l, layer) in self.layers.iter().enumerate() {
                let packed = layer.packed(c, &mut p);
                let Time { theta, .. } = Time::cut(layer, take(&mut time, Time::len(layer)));
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
            read_out(p, c, u, last, out);
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
        let space = Space::cut_mut(self, scratch);
        let (body, weight) = packed.split_at(packed.len() - q * c);
        let (g_body, g_weight) = grad.split_at_mut(packed.len() - q * c);
        // SAFETY: the caller has the instructions of the vector.
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
                let g = Parts::cut_mut(layer, c, &mut g_body[start..end]);
                end = start;
                time_end -= Time::len(layer);
                let Time { saved, theta } = Time::cut(layer, &space.time[time_end..]);
                let scale = if l == 0 { first_scale } else { V::constant(1.0) };
                let u = &space.u[l * cells..][..cells];
                activate(u, scale, space.h);
                for d in space.d.iter_mut() {
                    *d = d.mul(V::constant(-LN_2));
                }
                let d_theta = &mut space.d_theta[..layer.theta()];
                let to = gradient::Output {
                    h: space.d_h,
                    planes: space.d_planes,
                    theta: d_theta,
                    a: g.a.as_chunks_mut().0,
                    inner: g.inner.as_chunks_mut().0,
                    outer: g.outer.as_chunks_mut().0,
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
                layer.time.backward(p.time, group.t, saved, space.spare, d_theta, g.time);
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
