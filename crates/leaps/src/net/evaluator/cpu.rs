//! Evaluation of a network on the CPU, 16 configurations in SIMD lanes, groups of them on all cores.

use rayon::prelude::*;

use super::{Evaluator, Inputs, Shape};
use crate::Result;
use crate::device::vector::WIDTH;
use crate::net::{Net, Worker};

/// Accumulators of the gradient: groups go to them in turn and they are added up in order, so that the bits do
/// not depend on the number of threads.
const ACCUMULATORS: usize = 16;

/// See the [module](self).
pub(super) struct CpuEvaluator {
    net: Net,
    shape: Shape,
    packed: Vec<f32>,
    /// Accumulators that a batch fills.
    most: usize,
    accumulators: Vec<(Worker, Vec<f32>)>,
}

impl CpuEvaluator {
    pub(super) fn new(net: &Net, batch: usize) -> Self {
        CpuEvaluator {
            shape: Shape::new(net),
            packed: net.pack(&vec![0.0; net.parameters()]),
            most: batch.div_ceil(WIDTH).min(ACCUMULATORS),
            accumulators: Vec::new(),
            net: net.clone(),
        }
    }
}

/// Put up to 16 configurations into the lanes of a worker.
fn place(worker: &mut Worker, net: &Net, shape: Shape, x: Inputs<'_>) {
    let zeros = vec![0.0; shape.conditions];
    for (lane, one) in shape.chunks(x, 1).enumerate() {
        let condition = if one.conditions.is_empty() { &zeros } else { one.conditions };
        worker.set_condition(lane, condition);
        let couplings = if one.couplings.is_empty() { net.instance() } else { one.couplings };
        worker.set_couplings(lane, couplings);
        worker.set(lane, one.states, one.times[0]);
    }
}

impl Evaluator for CpuEvaluator {
    fn load(&mut self, parameters: &[f32]) -> Result<()> {
        self.shape.check_parameters(parameters)?;
        self.packed = self.net.pack(parameters);
        Ok(())
    }

    fn forward(&mut self, x: Inputs<'_>, out: &mut [f32]) -> Result<()> {
        let shape = self.shape;
        shape.check(&x, out)?;
        let groups: Vec<Inputs<'_>> = shape.chunks(x, WIDTH).collect();
        groups.par_iter().zip(out.par_chunks_mut(WIDTH * shape.outputs)).for_each_init(
            || self.net.forward_worker(),
            |worker, (group, out)| {
                place(worker, &self.net, shape, *group);
                self.net.forward(&self.packed, worker);
                for (lane, out) in out.chunks_exact_mut(shape.outputs).enumerate() {
                    for (index, out) in out.iter_mut().enumerate() {
                        *out = worker.output(lane, index);
                    }
                }
            },
        );
        Ok(())
    }

    fn gradient(&mut self, x: Inputs<'_>, d_out: &[f32], grad: &mut [f32]) -> Result<()> {
        let (shape, net, packed) = (self.shape, &self.net, &self.packed);
        shape.check(&x, d_out)?;
        shape.check_parameters(grad)?;
        let fresh = || (net.worker(), vec![0.0; packed.len()]);
        self.accumulators.resize_with(self.most, fresh);
        let slopes = d_out.chunks(WIDTH * shape.outputs);
        let groups: Vec<_> = shape.chunks(x, WIDTH).zip(slopes).collect();
        let turns = self.accumulators.len();
        self.accumulators.par_iter_mut().enumerate().for_each(|(turn, (worker, sums))| {
            sums.fill(0.0);
            for (group, slopes) in groups.iter().skip(turn).step_by(turns) {
                place(worker, net, shape, *group);
                net.forward(packed, worker);
                let mut slopes = slopes.iter();
                // Lanes without a configuration add nothing.
                for lane in 0..WIDTH {
                    for index in 0..shape.outputs {
                        worker.set_slope(lane, index, slopes.next().copied().unwrap_or(0.0));
                    }
                }
                net.backward(packed, worker, sums);
            }
        });
        grad.fill(0.0);
        for (_, sums) in &self.accumulators {
            net.unpack(sums, grad);
        }
        Ok(())
    }
}
