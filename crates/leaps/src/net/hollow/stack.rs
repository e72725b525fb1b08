//! CPU forward and backward passes of the hollow convolution, along every direction.

use super::Sizes;
use super::activate::{activate, deactivate, look_ahead, look_back};
use super::conv::Convolution;
use super::entering::Entering;
use super::geometry::Geometry;
use crate::device::vector::{Real, Vector};
use crate::net::dense::TimeEmbedding;
use crate::net::layout::{Init, Tensor, layout, take, take_mut};
use crate::net::network::Group;
use crate::net::product::add_columns;

/// A first convolution of what enters and residual convolutions of channels.
#[derive(Clone, Debug)]
pub(super) struct Stack {
    pub(super) channels: usize,
    pub(super) depth: usize,
    pub(super) first: Convolution,
    pub(super) next: Convolution,
    pub(super) time: TimeEmbedding,
    /// What enters, and what sites see beside the context.
    pub(super) entering: Entering,
}

layout! {
    /// Scratch space.
    struct Planes(stack: &Stack, geometry: &Geometry) {
        /// What enters along a direction, with a row of zeros for no site.
        x: (geometry.sites + 1) * stack.first.matrix.inputs,
        /// Channels after every layer: `[layer][direction][site or none][channel]`.
        h: stack.depth * geometry.directions.len() * stack.plane(geometry),
        /// Their gradient: `[direction][site or none][channel]`.
        d_h: geometry.directions.len() * stack.plane(geometry),
        /// The context of every site, after the activation, and its gradient: `[site][direction][channel]`,
        /// followed by the global features of the site.
        context: geometry.sites * stack.context_width(geometry),
        d_context: geometry.sites * stack.context_width(geometry),
        /// Channels after the activation, and their gradient, of one direction.
        active: stack.plane(geometry),
        d_active: stack.plane(geometry),
        /// Scales, then shifts, of every residual layer; their gradients; saved activations of the embeddings.
        time: (stack.depth - 1) * stack.time.outputs,
        d_time: (stack.depth - 1) * stack.time.outputs,
        embeddings: (stack.depth - 1) * stack.time.scratch(),
        /// Transformed inputs, products and sums of the weights' gradient.
        read: stack.first.read_len().max(stack.next.read_len()),
        products: stack.next.write_len(),
        sums: stack.first.packed().max(stack.next.packed()),
    }
}

impl Stack {
    pub(super) fn new(geometry: &Geometry, entering: Entering, sizes: &Sizes) -> Self {
        let channels = sizes.channels;
        Stack {
            channels,
            depth: sizes.depth,
            first: Convolution::new(geometry, entering.inputs(), channels),
            next: Convolution::new(geometry, channels, channels),
            time: TimeEmbedding::new(2 * channels),
            entering,
        }
    }

    pub(super) fn channels(&self) -> usize {
        self.channels
    }

    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Global features: numbers that sites have beside what the stack gives them.
    pub(super) fn global_features(&self) -> usize {
        self.entering.beside()
    }

    /// Numbers of the context of a site: channels of all directions, and global features.
    pub(super) fn context_width(&self, geometry: &Geometry) -> usize {
        geometry.directions.len() * self.channels + self.global_features()
    }

    pub(super) fn tensors(&self, geometry: &Geometry) -> Vec<Tensor> {
        let (c, d) = (self.channels, geometry.dimensions());
        let mut all = Vec::new();
        for layer in 0..self.depth {
            let inputs = if layer == 0 { self.first.matrix.inputs } else { c };
            let prefix = format!("layer{layer}");
            let mut shape = vec![c, inputs, geometry.behind + 1];
            shape.resize(d + 2, 3);
            // The variance of the uniform numbers that PyTorch starts from.
            let deviation = 1.0 / (3.0 * (inputs * geometry.taps()) as f64).sqrt();
            let shrink = if layer == 0 { 1.0 } else { 0.7 };
            let weight = Init::Normal(shrink * deviation);
            all.push(Tensor::new("weight", &shape, weight).within(&prefix));
            all.push(Tensor::new("bias", &[c], Init::Normal(deviation)).within(&prefix));
            if layer > 0 {
                all.extend(self.time.tensors(&format!("{prefix}.time"), 0.3));
            }
        }
        all
    }

    pub(super) fn convolution(&self, layer: usize) -> &Convolution {
        if layer == 0 { &self.first } else { &self.next }
    }

    /// Packed parameters of a layer: weights, biases, time.
    fn layer_packed(&self, layer: usize) -> usize {
        let time = if layer == 0 { 0 } else { self.time.parameters() };
        self.convolution(layer).packed() + self.channels + time
    }

    pub(super) fn packed(&self) -> usize {
        (0..self.depth).map(|layer| self.layer_packed(layer)).sum()
    }

    /// The packed parameters of a layer among all.
    #[inline(always)]
    pub(super) fn layer_range(&self, layer: usize) -> std::ops::Range<usize> {
        let first = self.layer_packed(0);
        let start = if layer == 0 { 0 } else { first + (layer - 1) * self.layer_packed(1) };
        start..start + self.layer_packed(layer)
    }

    pub(super) fn pack<S: Real>(&self, mut from: &[S], out: &mut [S]) {
        for layer in 0..self.depth {
            let conv = self.convolution(layer);
            let (weights, rest) = out[self.layer_range(layer)].split_at_mut(conv.packed());
            conv.pack(take(&mut from, conv.weights()), weights);
            rest.copy_from_slice(take(&mut from, rest.len()));
        }
    }

    pub(super) fn unpack<S: Real>(&self, packed: &[S], mut out: &mut [S]) {
        for layer in 0..self.depth {
            let conv = self.convolution(layer);
            let (weights, rest) = packed[self.layer_range(layer)].split_at(conv.packed());
            conv.unpack(weights, take_mut(&mut out, conv.weights()));
            for (out, &value) in take_mut(&mut out, rest.len()).iter_mut().zip(rest) {
                *out += value;
            }
        }
    }

    /// Vectors of one direction after one layer.
    fn plane(&self, geometry: &Geometry) -> usize {
        (geometry.sites + 1) * self.channels
    }

    pub(super) fn scratch(&self, geometry: &Geometry) -> usize {
        Planes::len(self, geometry)
    }

    /// The context of every site, and space for its gradient.
    #[inline(always)]
    pub(super) fn context<'a, V>(
        &self,
        geometry: &Geometry,
        scratch: &'a mut [V],
    ) -> (&'a [V], &'a mut [V]) {
        let Planes { context, d_context, .. } = Planes::cut_mut(self, geometry, scratch);
        (context, d_context)
    }

    /// Embed the times for every residual layer.
    #[inline(always)]
    pub(super) unsafe fn prepare<V: Vector>(
        &self,
        packed: &[V::Scalar],
        group: &Group<'_, V>,
        embeddings: &mut [V],
        times: &mut [V],
    ) {
        let outputs = self.time.outputs;
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            for layer in 1..self.depth {
                let parameters = &packed[self.layer_range(layer)];
                let p = &parameters[self.next.packed() + self.channels..];
                let saved = &mut embeddings[(layer - 1) * self.time.scratch()..];
                let time = &mut times[(layer - 1) * outputs..][..outputs];
                self.time.forward(p, group.features, saved, time);
            }
        }
    }

    #[inline(always)]
    pub(super) unsafe fn forward_train<V: Vector>(
        &self,
        packed: &[V::Scalar],
        geometry: &Geometry,
        group: &Group<'_, V>,
        scratch: &mut [V],
    ) {
        let (plane, outputs) = (self.plane(geometry), self.time.outputs);
        let all = geometry.directions.len() * plane;
        let s = Planes::cut_mut(self, geometry, scratch);
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            self.prepare(packed, group, s.embeddings, s.time);
            // One direction after the other, so that its channels are still near when the next layer reads them.
            for (k, direction) in geometry.directions.iter().enumerate() {
                self.entering.enter(k, group, s.x);
                for layer in 0..self.depth {
                    let conv = self.convolution(layer);
                    let (weights, rest) = packed[self.layer_range(layer)].split_at(conv.packed());
                    let bias = &rest[..self.channels];
                    let (done, next) = s.h.split_at_mut(layer * all);
                    let out = &mut next[k * plane..][..plane];
                    let buffers = (&mut *s.read, &mut *s.products);
                    if layer == 0 {
                        conv.forward((weights, bias), direction, s.x, &[], out, buffers);
                        continue;
                    }
                    let h = &done[(layer - 1) * all + k * plane..][..plane];
                    let time = &s.time[(layer - 1) * outputs..][..outputs];
                    activate(self.channels, time, h, s.active);
                    conv.forward((weights, bias), direction, s.active, h, out, buffers);
                }
                let h = &s.h[(self.depth - 1) * all + k * plane..][..plane];
                look_back(self.channels, k, &direction.before, h, s.context);
            }
            self.entering.write(group, s.x, s.context);
        }
    }

    /// Add the gradient of the parameters, given that of the contexts of sites.
    #[inline(always)]
    pub(super) unsafe fn backward<V: Vector>(
        &self,
        packed: &[V::Scalar],
        geometry: &Geometry,
        group: &Group<'_, V>,
        scratch: &mut [V],
        grad: &mut [V::Scalar],
    ) {
        let (plane, outputs) = (self.plane(geometry), self.time.outputs);
        let all = geometry.directions.len() * plane;
        let s = Planes::cut_mut(self, geometry, scratch);
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            s.d_time.fill(V::zero());
            for (k, direction) in geometry.directions.iter().enumerate() {
                let h = &s.h[(self.depth - 1) * all + k * plane..][..plane];
                let d_h = &mut s.d_h[k * plane..][..plane];
                look_ahead(self.channels, k, &direction.after, h, s.d_context, d_h);
            }
            for layer in (0..self.depth).rev() {
                let conv = self.convolution(layer);
                let (weights, rest) = packed[self.layer_range(layer)].split_at(conv.packed());
                let (g_weights, g_rest) = grad[self.layer_range(layer)].split_at_mut(conv.packed());
                let (g_bias, g_time) = g_rest.split_at_mut(self.channels);
                for (k, direction) in geometry.directions.iter().enumerate() {
                    let d_h = &mut s.d_h[k * plane..][..plane];
                    add_columns(d_h, g_bias);
                    let buffers = (&mut *s.read, &mut *s.products);
                    let sums = (k == 0, &mut s.sums[..conv.packed()]);
                    if layer == 0 {
                        self.entering.enter(k, group, s.x);
                        conv.backward(weights, direction, s.x, d_h, &mut [], sums, buffers);
                        continue;
                    }
                    let h = &s.h[(layer - 1) * all + k * plane..][..plane];
                    let range = (layer - 1) * outputs..layer * outputs;
                    let (time, d_time) = (&s.time[range.clone()], &mut s.d_time[range]);
                    activate(self.channels, time, h, s.active);
                    conv.backward(weights, direction, s.active, d_h, s.d_active, sums, buffers);
                    deactivate(self.channels, time, h, s.d_active, d_time, d_h);
                }
                conv.add_gradient(s.sums, g_weights);
                if layer > 0 {
                    let saved = &mut s.embeddings[(layer - 1) * self.time.scratch()..];
                    let d_time = &s.d_time[(layer - 1) * outputs..][..outputs];
                    let p = &rest[self.channels..];
                    self.time.backward(p, group.features, saved, d_time, g_time);
                }
            }
        }
    }
}
