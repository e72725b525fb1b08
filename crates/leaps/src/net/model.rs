//! A network for a target, checked, and its passes on the CPU.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::glass::{self, Glass, GlassSpec};
use super::graph::{HollowGraph, HollowGraphSpec};
use super::hollow::{Counted, Hollow, HollowSpec};
use super::layout::{self, Tensor};
use super::lea::{Lea, LeaSpec};
use super::lec::{Lec, LecSpec};
use super::mlp::{Mlp, MlpSpec};
use super::network::{Group, Network};
use super::time_features::features_with;
use super::worker::Worker;
use crate::device::level::dispatch;
use crate::device::vector::{Array, Floats, WIDTH, cast, cast_mut};
use crate::device::{Bytes, Draw, Placement, Precision, Purpose, SimdLevel, Stream, free_memory};
use crate::target::{Pairwise, Target};
use crate::{Error, Result};

/// Which network, and how large.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[non_exhaustive]
pub enum NetSpec {
    /// A hidden layer over all other sites.
    Mlp(MlpSpec),
    /// Attention over all other sites.
    Lea(LeaSpec),
    /// State-dependent convolutions on a lattice.
    Lec(LecSpec),
    /// Convolutions over the half-spaces around a site of a lattice.
    Hollow(HollowSpec),
    /// Messages along orders of the sites, on any graph.
    #[serde(rename = "hollow-graph")]
    HollowGraph(HollowGraphSpec),
    /// Convolutions over the bonds of a spin glass, one for all instances.
    Glass(GlassSpec),
}

macro_rules! networks {
    ($($name:ident),*) => {
        /// Any of the networks.
        #[derive(Clone, Debug)]
        #[allow(clippy::large_enum_variant)] // there is one of them in a run
        pub(super) enum AnyNetwork { $($name($name),)* }

        impl AnyNetwork {
            fn tensors(&self) -> Vec<Tensor> {
                match self { $(AnyNetwork::$name(n) => n.tensors(),)* }
            }
            fn packed(&self) -> usize {
                match self { $(AnyNetwork::$name(n) => n.packed(),)* }
            }
            fn pack(&self, parameters: &[f32], out: &mut [f32]) {
                match self { $(AnyNetwork::$name(n) => n.pack(parameters, out),)* }
            }
            fn unpack(&self, packed: &[f32], out: &mut [f32]) {
                match self { $(AnyNetwork::$name(n) => n.unpack(packed, out),)* }
            }
            fn couplings(&self) -> usize {
                match self { $(AnyNetwork::$name(n) => n.couplings(),)* }
            }
            fn scratch(&self) -> usize {
                match self { $(AnyNetwork::$name(n) => n.scratch(),)* }
            }
            fn forward_scratch(&self) -> usize {
                match self { $(AnyNetwork::$name(n) => n.forward_scratch(),)* }
            }
            fn forward(&self, level: SimdLevel, packed: &[f32], worker: &mut Worker) {
                match self {
                    $(AnyNetwork::$name(network) => {
                        #[inline(always)]
                        unsafe fn pass<L: Floats>(network: &$name, packed: &[f32], w: &mut Worker) {
                            // SAFETY: the caller has the instructions of the level.
                            unsafe {
                                let Worker { x, t, features, couplings, scratch, out, saves, .. } = w;
                                let group = group::<L>((x, couplings), t, features);
                                let (scratch, out) = (cast_mut::<L>(scratch), cast_mut::<L>(out));
                                match saves {
                                    true => network.forward_train(packed, &group, scratch, out),
                                    false => network.forward(packed, &group, scratch, out),
                                }
                            }
                        }
                        dispatch!(level, pass, (network: &$name, packed: &[f32], worker: &mut Worker))
                    })*
                }
            }
            fn backward(&self, level: SimdLevel, packed: &[f32], worker: &mut Worker, grad: &mut [f32]) {
                match self {
                    $(AnyNetwork::$name(network) => {
                        #[inline(always)]
                        unsafe fn pass<L: Floats>(
                            network: &$name,
                            packed: &[f32],
                            w: &mut Worker,
                            grad: &mut [f32],
                        ) {
                            // SAFETY: the caller has the instructions of the level.
                            unsafe {
                                let Worker { x, t, features, couplings, scratch, d_out, .. } = w;
                                let group = group::<L>((x, couplings), t, features);
                                network.backward(packed, &group, cast_mut::<L>(scratch), cast::<L>(d_out), grad);
                            }
                        }
                        dispatch!(level, pass, (
                            network: &$name,
                            packed: &[f32],
                            worker: &mut Worker,
                            grad: &mut [f32],
                        ))
                    })*
                }
            }
        }
    };
}
networks!(Mlp, Lea, Lec, Hollow, HollowGraph, Glass);

/// The input of a pass, seen as vectors of the level.
#[inline(always)]
fn group<'a, L: Floats>(
    (x, couplings): (&'a [Array<f32>], &'a [Array<f32>]),
    t: &Array<f32>,
    features: &'a [Array<f32>],
) -> Group<'a, L::V> {
    let t = cast::<L>(std::slice::from_ref(t))[0];
    Group { x: cast::<L>(x), t, features: cast::<L>(features), couplings: cast::<L>(couplings) }
}

/// A network for a target.
#[derive(Clone, Debug)]
pub struct Net {
    spec: NetSpec,
    pub(super) network: AnyNetwork,
    sites: usize,
    pub(super) q: usize,
    /// Numbers that it is conditioned on beside the time.
    pub(super) conditions: usize,
    /// Couplings of the target that it was built for, as far as it is shown them.
    instance: Arc<[f32]>,
    pub(super) level: SimdLevel,
}

impl Net {
    /// The network `spec` for `target`, checked for local equivariance.
    pub fn new(spec: &NetSpec, target: &dyn Target) -> Result<Self> {
        Self::conditioned_on(spec, target, 0)
    }

    /// The network `spec` for a [family](crate::train::Family) of targets: it is conditioned on `conditions` numbers about the one at hand, beside the time.
    pub fn conditioned_on(spec: &NetSpec, target: &dyn Target, conditions: usize) -> Result<Self> {
        let (sites, q) = (target.sites(), target.q());
        spec.check_sizes()?;
        spec.check_weights(sites)?;
        let (inputs, outputs) = (Self::channels(q), Self::channels(q));
        let mut instance = Vec::new().into();
        let network = match spec {
            NetSpec::Mlp(spec) => {
                if spec.hidden == 0 {
                    return Err(Error::invalid("network.hidden", 0, "at least 1", "16 is usual"));
                }
                AnyNetwork::Mlp(Mlp::new(spec, sites, inputs, outputs).conditioned_on(conditions))
            }
            NetSpec::Lea(spec) => {
                let sizes =
                    [("heads", spec.heads), ("width", spec.width), ("embedding", spec.embedding)];
                if let Some((key, _)) = sizes.iter().find(|(_, size)| *size == 0) {
                    let (key, advice) = (format!("network.{key}"), "leave it out for the default");
                    return Err(Error::invalid(key, 0, "at least 1", advice));
                }
                if sites < 2 {
                    return Err(Error::not_applicable(
                        "the network lea",
                        "it looks at other sites, and there is none; use network.kind = mlp",
                    ));
                }
                AnyNetwork::Lea(Lea::new(spec, sites, inputs, outputs).conditioned_on(conditions))
            }
            NetSpec::Lec(_) if conditions > 0 => {
                return Err(Error::not_applicable(
                    "the network lec",
                    "it is conditioned on the time alone; use network.kind = hollow for a family of targets",
                ));
            }
            NetSpec::Lec(spec) => AnyNetwork::Lec(Lec::new(spec, target)?),
            NetSpec::Hollow(spec) => {
                let lattice = target.lattice().ok_or_else(|| {
                    Error::not_applicable(
                        "the hollow convolution",
                        "the target has no lattice; use network.kind = hollow-graph",
                    )
                })?;
                let counted = match (target.pairwise(), target.lattice_model()) {
                    (None, Some(model)) => Counted::Tables(model),
                    (model, _) => Counted::Bonds(model.map_or(&[][..], Pairwise::offsets)),
                };
                let hollow = Hollow::new(spec, lattice, counted, inputs, outputs)?;
                AnyNetwork::Hollow(hollow.conditioned_on(conditions))
            }
            NetSpec::HollowGraph(spec) => {
                let graph = HollowGraph::new(spec, target, inputs, outputs)?;
                AnyNetwork::HollowGraph(graph.conditioned_on(conditions))
            }
            NetSpec::Glass(spec) => {
                let (lattice, couplings) = glass::couplings(target)?;
                instance = couplings;
                AnyNetwork::Glass(Glass::new(spec, lattice)?.conditioned_on(conditions))
            }
        };
        let spec = match (spec, &network) {
            // The sizes that were chosen belong to the network, wherever it is used.
            (NetSpec::Hollow(_), AnyNetwork::Hollow(hollow)) => NetSpec::Hollow(hollow.spec()),
            (NetSpec::Glass(_), AnyNetwork::Glass(glass)) => NetSpec::Glass(glass.spec()),
            _ => spec.clone(),
        };
        let level = SimdLevel::detect();
        let net = Net { spec, network, sites, q, conditions, instance, level };
        net.check_memory()?;
        net.check(&checked_sites(target))?;
        Ok(net)
    }

    /// One channel for two values, else one per value.
    fn channels(q: usize) -> usize {
        if q == 2 { 1 } else { q }
    }

    /// What the network was built from.
    pub fn spec(&self) -> &NetSpec {
        &self.spec
    }

    /// Numbers that the network is conditioned on beside the time; 0 unless it is one for a family of targets.
    pub fn conditions(&self) -> usize {
        self.conditions
    }

    /// Couplings of an instance that the network is shown beside the values; 0 unless it is one for all instances of a disorder.
    pub fn couplings(&self) -> usize {
        self.network.couplings()
    }

    /// The couplings of the target that the network was built for; empty unless it is [shown](Net::couplings) any.
    pub fn instance(&self) -> &Arc<[f32]> {
        &self.instance
    }

    /// Outputs per site: 1 for two values (`J` is spin times output), else one per value
    /// (`J(s) = o_s - o_{x_i}`).
    pub fn outputs(&self) -> usize {
        Self::channels(self.q)
    }

    /// The parameters by name.
    pub fn tensors(&self) -> Vec<Tensor> {
        self.network.tensors()
    }

    /// Number of parameters.
    pub fn parameters(&self) -> usize {
        layout::total(&self.tensors())
    }

    /// Fresh parameters.
    pub fn initial(&self, seed: u64) -> Vec<f32> {
        layout::initialise(&self.tensors(), seed)
    }

    /// Parameters in the order the passes want them.
    pub fn pack(&self, parameters: &[f32]) -> Vec<f32> {
        let mut packed = vec![0.0; self.network.packed()];
        self.network.pack(parameters, &mut packed);
        packed
    }

    /// Number of packed parameters.
    pub fn packed(&self) -> usize {
        self.network.packed()
    }

    /// Add a gradient with respect to packed parameters to one with respect to parameters.
    pub fn unpack(&self, packed: &[f32], gradient: &mut [f32]) {
        self.network.unpack(packed, gradient);
    }

    /// Space for forward and backward passes of 16 configurations.
    pub fn worker(&self) -> Worker {
        self.space(true)
    }

    /// Space for forward passes alone: less of it, and passes are faster, with the same outputs to the bit.
    pub fn forward_worker(&self) -> Worker {
        self.space(false)
    }

    fn space(&self, saves: bool) -> Worker {
        let inputs = Self::channels(self.q);
        let zeros = |n: usize| vec![Array([0.0; WIDTH]); n];
        Worker {
            inputs,
            q: self.q,
            x: zeros(self.sites * inputs),
            t: Array([0.0; WIDTH]),
            features: zeros(features_with(self.conditions)),
            conditions: std::array::from_fn(|_| vec![0.0; self.conditions]),
            couplings: self.instance.iter().map(|&coupling| Array([coupling; WIDTH])).collect(),
            scratch: zeros(match saves {
                true => self.network.scratch(),
                false => self.network.forward_scratch(),
            }),
            out: zeros(self.sites * self.outputs()),
            d_out: zeros(if saves { self.sites * self.outputs() } else { 0 }),
            saves,
        }
    }

    /// Bytes of a [`worker`](Self::worker).
    pub fn workspace(&self) -> usize {
        let sites = self.sites * (Self::channels(self.q) + 2 * self.outputs());
        let given = 1 + features_with(self.conditions) + self.couplings();
        (sites + given + self.network.scratch()) * size_of::<Array<f32>>()
    }

    /// Compute the outputs of the configurations in `worker`.
    pub fn forward(&self, packed: &[f32], worker: &mut Worker) {
        self.network.forward(self.level, packed, worker);
    }

    /// After [`forward`](Self::forward): add the gradient of `sum d_out * out` to `grad` (packed).
    /// Set `d_out` with [`Worker::set_slope`].
    ///
    /// # Panics
    /// If the worker is a [`forward_worker`](Self::forward_worker).
    pub fn backward(&self, packed: &[f32], worker: &mut Worker, grad: &mut [f32]) {
        assert!(worker.saves, "a worker for forward passes has saved no activations");
        self.network.backward(self.level, packed, worker, grad);
    }

    /// Number of sites.
    pub fn sites(&self) -> usize {
        self.sites
    }

    /// Refuse a network that GPUs do not compute.
    pub(super) fn gpu_has(&self) -> Result<()> {
        match &self.network {
            AnyNetwork::Hollow(hollow) if hollow.counts_tables() => Err(Error::not_applicable(
                "this network on a GPU",
                "its global features are energies of tables; use device = cpu, or network.bond_features = false",
            )),
            _ => Ok(()),
        }
    }

    /// Where the network is computed, in words: the CPU, or a GPU and how exactly the network is computed there.
    pub fn computed_on(&self, placement: &Placement) -> String {
        match self.precision_on(placement) {
            Some(precision) => format!("{}, {}", placement.machine(), precision.name()),
            None => placement.machine().to_owned(),
        }
    }

    /// How exactly the network is computed on a GPU, which may be more exact than what was asked for.
    pub fn precision_on(&self, placement: &Placement) -> Option<Precision> {
        match placement {
            Placement::Cpu => None,
            Placement::Cuda(gpu, asked) => Some(self.cuda_precision(gpu, *asked)),
        }
    }

    /// The same network, computed with the instructions of `level`.
    #[cfg(test)]
    pub(crate) fn at_level(mut self, level: SimdLevel) -> Self {
        self.level = level;
        self
    }

    /// Refuse a network that does not fit into memory.
    fn check_memory(&self) -> Result<()> {
        let needed = (4 * self.packed()).saturating_add(self.workspace());
        let free = free_memory().is_none_or(|free| needed as u64 <= free);
        if free && Vec::<u8>::new().try_reserve_exact(needed).is_ok() {
            return Ok(());
        }
        let needed = Bytes(needed as f64);
        Err(Error::not_applicable(
            "this network",
            format!("it needs {needed} of memory, more than are free; use a smaller one"),
        ))
    }

    /// Refuse a network whose outputs at one of `sites` depend on the value there.
    fn check(&self, sites: &[usize]) -> Result<()> {
        let mut stream = Stream::new(0, Purpose::Parameters, u32::MAX, 0);
        let packed: Vec<f32> = (0..self.packed()).map(|_| 0.3 * stream.normal() as f32).collect();
        let mut worker = self.forward_worker();
        let state: Vec<u8> = (0..self.sites).map(|_| stream.below(self.q) as u8).collect();
        for lane in 0..WIDTH {
            worker.set(lane, &state, 0.4);
        }
        self.forward(&packed, &mut worker);
        let (outputs, before) = (self.outputs(), worker.out.clone());
        // Every lane changes another site.
        for sites in sites.chunks(WIDTH) {
            for (lane, &site) in sites.iter().enumerate() {
                worker.set_value(lane, site, (state[site] + 1) % self.q as u8);
            }
            self.forward(&packed, &mut worker);
            for (lane, &site) in sites.iter().enumerate() {
                for s in 0..outputs {
                    let index = site * outputs + s;
                    let (a, b) = (before[index].0[lane], worker.out[index].0[lane]);
                    if a.to_bits() != b.to_bits() {
                        return Err(Error::not_applicable(
                            "this network",
                            format!(
                                "its output at site {site} depends on the value there ({a} and {b})"
                            ),
                        ));
                    }
                }
                worker.set_value(lane, site, state[site]);
            }
        }
        Ok(())
    }
}

/// Sites looked at when a network is built: all of them up to this number.
const CHECKED_SITES: usize = 64;

/// The sites that a network is checked at: all of a small target. Of a large one the corners of its lattice, the middles of edges and faces and the
/// centre, where tables that wrap or end are most likely wrong, and others at random.
fn checked_sites(target: &dyn Target) -> Vec<usize> {
    let sites = target.sites();
    if sites <= CHECKED_SITES {
        return (0..sites).collect();
    }
    let mut chosen = vec![0, sites - 1];
    if let Some(lattice) = target.lattice().filter(|lattice| lattice.shape().len() <= 3) {
        let mut special = vec![0];
        for (axis, &side) in lattice.shape().iter().enumerate() {
            let along = [0, side / 2, side - 1].map(|place| place * lattice.stride(axis));
            special = special.iter().flat_map(|site| along.map(|step| site + step)).collect();
        }
        chosen.extend(special);
    }
    chosen.sort_unstable();
    chosen.dedup();
    let mut stream = Stream::new(0, Purpose::Parameters, u32::MAX, 1);
    while chosen.len() < CHECKED_SITES {
        let site = stream.below(sites);
        if !chosen.contains(&site) {
            chosen.push(site);
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::HollowGraphSpec;
    use crate::target::{Bond, Boundary, Interaction, Lattice, Pairwise};

    #[test]
    fn messages_that_return_on_a_graph_are_caught() {
        let bonds: Vec<(u32, u32, f64)> =
            (0..9).flat_map(|i| [(i, (i + 1) % 9, 1.0), (i, (i + 3) % 9, -1.0)]).collect();
        for q in [2, 3] {
            let interaction = if q == 2 { Interaction::Ising } else { Interaction::Potts };
            let target = Pairwise::from_edges(interaction, 9, q, &bonds).unwrap();
            let spec = NetSpec::HollowGraph(HollowGraphSpec::default());
            let mut net = Net::new(&spec, &target).unwrap();
            let AnyNetwork::HollowGraph(network) = &mut net.network else { unreachable!() };
            network.let_a_message_return();
            let error = net.check(&checked_sites(&target)).unwrap_err().to_string();
            assert!(error.contains("depends on the value there"), "{error}");
        }
    }

    #[test]
    fn large_lattices_are_checked_at_their_corners_and_in_between() {
        let lattice = Lattice::new(&[40, 31], Boundary::Periodic).unwrap();
        let sites = checked_sites(&Pairwise::ising(lattice, 1.0, 0.0).unwrap());
        for (row, column) in [(0, 0), (0, 30), (39, 0), (39, 30), (20, 15), (0, 15), (20, 30)] {
            assert!(sites.contains(&(row * 31 + column)), "{row} {column}");
        }
        let different = |place: fn(usize) -> usize| {
            let places: std::collections::BTreeSet<usize> =
                sites.iter().map(|&s| place(s)).collect();
            places.len()
        };
        assert_eq!(different(|site| site), CHECKED_SITES);
        assert!(different(|site| site / 31) > 20 && different(|site| site % 31) > 20);
    }

    #[test]
    fn all_levels_agree_for_every_network() {
        let lattice = Lattice::new(&[5, 5], Boundary::Periodic).unwrap();
        let plain = Pairwise::potts(lattice.clone(), 3, 1.0, 0.1).unwrap();
        // With bonds to second neighbours, J1-J2.
        let bonds = [([1, 0], 1.0), ([0, 1], 1.0), ([1, 1], -0.6), ([1, -1], -0.6)]
            .map(|(offset, strength)| Bond { offset: offset.to_vec(), strength });
        let further = Pairwise::from_bonds(Interaction::Potts, lattice, 3, &bonds).unwrap();
        let lec = LecSpec { kernels: vec![3, 5], ..LecSpec::default() };
        let all = [
            NetSpec::Mlp(MlpSpec::default()),
            NetSpec::Lea(LeaSpec::default()),
            NetSpec::Lec(lec),
            NetSpec::Hollow(HollowSpec::default()),
            NetSpec::HollowGraph(HollowGraphSpec { channels: 11, ..Default::default() }),
        ];
        for (spec, target) in all.iter().flat_map(|spec| [(spec, &plain), (spec, &further)]) {
            let mut net = Net::new(spec, target).unwrap();
            let packed = net.pack(&net.initial(2));
            let mut worker = net.worker();
            let mut stream = Stream::new(3, Purpose::Statistic, 0, 0);
            for lane in 0..WIDTH {
                let state: Vec<u8> = (0..25).map(|_| stream.below(3) as u8).collect();
                worker.set(lane, &state, stream.uniform());
                for index in 0..worker.out.len() {
                    worker.set_slope(lane, index, stream.normal() as f32);
                }
            }
            let mut run = |level: SimdLevel| {
                net.level = level;
                let mut grad = vec![0.0; packed.len()];
                net.forward(&packed, &mut worker);
                net.backward(&packed, &mut worker, &mut grad);
                (worker.out.iter().flat_map(|o| o.0).collect::<Vec<f32>>(), grad)
            };
            let close = |a: &[f32], b: &[f32]| {
                let largest = a.iter().fold(0.0f32, |m, a| m.max(a.abs()));
                let worst = a.iter().zip(b).fold(0.0f32, |m, (a, b)| m.max((a - b).abs()));
                worst < 2e-5 * largest
            };
            let plain = run(SimdLevel::Portable);
            for level in SimdLevel::available() {
                let got = run(level);
                assert!(close(&plain.0, &got.0), "{spec:?} {level:?}: outputs");
                assert!(close(&plain.1, &got.1), "{spec:?} {level:?}: gradients");
            }
        }
    }
}
