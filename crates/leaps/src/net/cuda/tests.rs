//! Networks on a GPU against the same on the CPU.

mod jumps;

use std::sync::Arc;

use cudarc::driver::CudaSlice;

use super::*;
use crate::device::{Draw, Gpu, Placement, Precision, Purpose, Stream};
use crate::net::evaluator::tests::{check_evaluator, error, parameters};
use crate::net::*;
use crate::target::{Bond, Boundary, Disorder, Interaction, Lattice, Pairwise, Target};

fn on_lattice(shape: &[usize], boundary: Boundary, q: usize) -> Pairwise {
    let lattice = Lattice::new(shape, boundary).unwrap();
    match q {
        2 => Pairwise::ising(lattice, 1.0, 0.1).unwrap(),
        _ => Pairwise::potts(lattice, q, 1.0, 0.1).unwrap(),
    }
}

/// A glass on a ring with some chords: sites of different degree.
fn on_graph(sites: u32) -> Pairwise {
    let ring = (0..sites).map(|i| (i, (i + 1) % sites, 0.5));
    let chords = (0..sites / 3).map(|i| (i, i + sites / 2, -0.7));
    let edges: Vec<_> = ring.chain(chords).collect();
    Pairwise::from_edges(Interaction::Ising, sites as usize, 2, &edges).unwrap()
}

/// States of several rows, and slots that read them in another order at mixed times.
struct Batch {
    states: Vec<Vec<u8>>,
    rows: Vec<u32>,
    time_indices: Vec<u32>,
    times: Vec<f64>,
    /// What the network is conditioned on at every time.
    conditions: Vec<Vec<f64>>,
    /// Couplings of instances, and rows of each.
    instances: Vec<Vec<f32>>,
    rows_of_instance: u32,
    d_out: Vec<f32>,
}

impl Batch {
    fn new(net: &Net, q: usize, slots: usize, seed: u64) -> Self {
        let mut stream = Stream::new(seed, Purpose::Statistic, 2, 0);
        let sites = net.sites();
        let state = |stream: &mut Stream| (0..sites).map(|_| stream.below(q) as u8).collect();
        let states = (0..slots + 3).map(|_| state(&mut stream)).collect();
        let times: Vec<f64> = (0..4).map(|_| stream.uniform()).collect();
        let condition = |stream: &mut Stream| -> Vec<f64> {
            (0..net.conditions()).map(|_| 2.0 * stream.uniform() - 1.0).collect()
        };
        // Signs for every other instance, for the others normal numbers.
        let rows_of_instance = 4;
        let instances = (0..(slots + 3).div_ceil(rows_of_instance as usize)).map(|instance| {
            let normal = |_| stream.normal() as f32;
            let all: Vec<f32> = (0..net.couplings()).map(normal).collect();
            if instance % 2 == 0 { all.iter().map(|j| j.signum()).collect() } else { all }
        });
        let instances = instances.collect();
        Batch {
            instances,
            rows_of_instance,
            states,
            rows: (0..slots).map(|slot| ((slot * 5 + 2) % (slots + 3)) as u32).collect(),
            time_indices: (0..slots).map(|_| stream.below(times.len()) as u32).collect(),
            d_out: (0..slots * sites * net.outputs()).map(|_| stream.normal() as f32).collect(),
            conditions: times.iter().map(|_| condition(&mut stream)).collect(),
            times,
        }
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    /// Couplings of a slot.
    fn couplings(&self, slot: usize) -> Vec<f32> {
        self.instances[(self.rows[slot] / self.rows_of_instance) as usize].clone()
    }

    /// Outputs and gradient as the CPU computes them.
    fn on_cpu(&self, net: &Net, parameters: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let mut evaluator = net.evaluator(&Placement::Cpu, self.len()).unwrap();
        evaluator.load(parameters).unwrap();
        let states: Vec<u8> =
            self.rows.iter().flat_map(|&row| self.states[row as usize].clone()).collect();
        let times: Vec<f64> = self.time_indices.iter().map(|&at| self.times[at as usize]).collect();
        let conditions: Vec<f64> =
            self.time_indices.iter().flat_map(|&at| self.conditions[at as usize].clone()).collect();
        let x =
            Inputs { states: &states, times: &times, conditions: &conditions, ..Inputs::default() };
        let couplings: Vec<f32> = (0..self.len()).flat_map(|slot| self.couplings(slot)).collect();
        let x = Inputs { couplings: &couplings, ..x };
        let mut out = vec![0.0; self.d_out.len()];
        evaluator.forward(x, &mut out).unwrap();
        let mut gradient = vec![0.0; parameters.len()];
        evaluator.gradient(x, &self.d_out, &mut gradient).unwrap();
        (out, gradient)
    }
}

/// A network on a GPU with its parameters.
struct Harness<'a> {
    gpu: &'a Arc<Gpu>,
    network: Box<dyn CudaNetwork>,
    parameters: usize,
    size: usize,
}

/// A batch on a GPU.
struct OnGpu {
    states: CudaSlice<u8>,
    rows: CudaSlice<u32>,
    time_indices: CudaSlice<u32>,
    table: CudaSlice<f32>,
    couplings: CudaSlice<f32>,
    rows_of_instance: u32,
}

impl<'a> Harness<'a> {
    fn new(
        gpu: &'a Arc<Gpu>,
        net: &Net,
        parameters: &[f32],
        slots: usize,
        precision: Precision,
    ) -> Self {
        let mut network = net.on_gpu(gpu, slots, precision).unwrap();
        let mut given = parameters.to_vec();
        given.extend([f32::NAN; 5]); // what follows the parameters is not theirs
        network.refresh(&gpu.upload(&given).unwrap()).unwrap();
        Harness { gpu, network, parameters: parameters.len(), size: net.sites() * net.outputs() }
    }

    fn place(&self, batch: &Batch) -> OnGpu {
        let times = batch.times.iter().zip(&batch.conditions);
        let table: Vec<f32> =
            times.flat_map(|(&t, condition)| time_features(t, condition)).collect();
        OnGpu {
            states: self.gpu.upload(&batch.states.concat()).unwrap(),
            rows: self.gpu.upload(&batch.rows).unwrap(),
            time_indices: self.gpu.upload(&batch.time_indices).unwrap(),
            table: self.gpu.upload(&table).unwrap(),
            couplings: self.gpu.upload(&batch.instances.concat()).unwrap(),
            rows_of_instance: batch.rows_of_instance,
        }
    }

    fn forward(&mut self, batch: &Batch) -> Vec<f32> {
        let (on_gpu, slots) = (self.place(batch), batch.len());
        let mut out = self.gpu.upload(&vec![f32::NAN; slots * self.size]).unwrap();
        self.network.forward(&on_gpu.batch(slots), &mut out).unwrap();
        self.gpu.download(&out).unwrap()
    }

    fn both(&mut self, batch: &Batch) -> (Vec<f32>, Vec<f32>) {
        let (on_gpu, slots) = (self.place(batch), batch.len());
        let mut out = self.gpu.upload(&vec![f32::NAN; slots * self.size]).unwrap();
        let mut gradient = self.gpu.upload(&vec![f32::NAN; self.parameters + 3]).unwrap();
        let d_out = self.gpu.upload(&batch.d_out).unwrap();
        self.network.forward_train(&on_gpu.batch(slots), &mut out).unwrap();
        let mut view = gradient.slice_mut(2..2 + self.parameters);
        self.network.backward(&on_gpu.batch(slots), &d_out, &mut view).unwrap();
        let gradient = self.gpu.download(&gradient).unwrap();
        let outside = [gradient[0], gradient[1], gradient[self.parameters + 2]];
        assert!(outside.iter().all(|g| g.is_nan()), "wrote outside of the gradient");
        let gradient = gradient[2..2 + self.parameters].to_vec();
        (self.gpu.download(&out).unwrap(), gradient)
    }
}

impl OnGpu {
    fn batch(&self, slots: usize) -> CudaBatch<'_> {
        let OnGpu { states, rows, time_indices, table, .. } = self;
        let couplings = Couplings { numbers: &self.couplings, rows: self.rows_of_instance };
        CudaBatch { slots, states, rows, time_indices, table, couplings }
    }
}

fn same_bits(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}

/// Everything a network on a GPU must do. What is wrong is said for all cases before it fails.
fn check(gpu: &Arc<Gpu>, spec: &NetSpec, target: &dyn Target, precisions: &[Precision]) -> bool {
    check_conditioned(gpu, spec, target, precisions, 0)
}

/// The same for a network that is conditioned on so many numbers beside the time.
fn check_conditioned(
    gpu: &Arc<Gpu>,
    spec: &NetSpec,
    target: &dyn Target,
    precisions: &[Precision],
    conditions: usize,
) -> bool {
    let net = Net::conditioned_on(spec, target, conditions).unwrap();
    let (q, parameters, mut good) = (target.q(), parameters(&net), true);
    let mut claim = |holds: bool, what: String| {
        if !holds {
            let sites = target.sites();
            eprintln!("WRONG {spec:?}, {conditions} conditions, {sites} sites, {q} values: {what}");
            good = false;
        }
    };
    for &precision in precisions {
        let allowed = if precision == Precision::Float32 { 1e-5 } else { 3e-2 };
        let mut harness = Harness::new(gpu, &net, &parameters, 33, precision);
        for slots in [1, 5, 33] {
            let batch = Batch::new(&net, q, slots, slots as u64);
            let (want, want_gradient) = batch.on_cpu(&net, &parameters);
            let got = harness.forward(&batch);
            let wrong = error(&got, &want);
            claim(
                wrong < allowed,
                format!("{precision:?}, {slots} slots: outputs off by {wrong:e}"),
            );
            let (saved, gradient) = harness.both(&batch);
            claim(same_bits(&got, &saved), format!("{precision:?}: training outputs differ"));
            let mut start = 0;
            let largest = want_gradient.iter().fold(0.0f32, |m, g| m.max(g.abs()));
            for tensor in net.tensors() {
                let range = start..start + tensor.len();
                start = range.end;
                let (got, want) = (&gradient[range.clone()], &want_gradient[range]);
                let own = want.iter().fold(0.0f32, |m, g| m.max(g.abs()));
                let wrong = error(got, want) * own / largest;
                claim(
                    wrong < allowed || tensor.is_empty(),
                    format!(
                        "{precision:?}, {slots} slots: gradient of {} off by {wrong:e}",
                        tensor.name
                    ),
                );
            }
            let wrong = error(&gradient, &want_gradient);
            println!(
                "{precision:?} {slots} slots: outputs {:.1e}, gradient {wrong:.1e}",
                error(&got, &want)
            );
            let again = harness.both(&batch);
            claim(same_bits(&gradient, &again.1), format!("{precision:?}: another gradient"));
            if slots < 33 {
                continue;
            }
            // The same slots in another order, and with other neighbours.
            let mut other =
                Batch { rows: vec![], time_indices: vec![], ..Batch::new(&net, q, slots, 33) };
            let order: Vec<usize> = (0..slots - 4).map(|slot| (slot * 7 + 3) % slots).collect();
            for &slot in &order {
                other.rows.push(batch.rows[slot]);
                other.time_indices.push(batch.time_indices[slot]);
            }
            let (moved, n) = (harness.forward(&other), harness.size);
            let stays = order
                .iter()
                .enumerate()
                .all(|(to, &from)| same_bits(&moved[to * n..][..n], &got[from * n..][..n]));
            claim(stays, format!("{precision:?}: outputs depend on the place in the batch"));
            for c in 0..conditions {
                let mut other = Batch::new(&net, q, slots, 33);
                other.conditions.iter_mut().for_each(|condition| condition[c] += 0.5);
                let deaf = same_bits(&harness.forward(&other), &got);
                claim(!deaf, format!("{precision:?}: outputs do not see condition {c}"));
            }
            // Other values at a site of every slot.
            for round in 0..3 {
                let site = |slot: usize| (slot * 3 + round * 11) % net.sites();
                let mut flipped = Batch::new(&net, q, slots, 33);
                flipped.states = (0..slots)
                    .map(|slot| {
                        let mut state = batch.states[batch.rows[slot] as usize].clone();
                        state[site(slot)] = (state[site(slot)] + 1) % q as u8;
                        state
                    })
                    .collect();
                flipped.instances = (0..slots).map(|slot| batch.couplings(slot)).collect();
                flipped.rows_of_instance = 1;
                flipped.rows = (0..slots as u32).collect();
                let (out, m) = (harness.forward(&flipped), net.outputs());
                let hollow = (0..slots).all(|slot| {
                    let at = slot * n + site(slot) * m;
                    same_bits(&out[at..at + m], &got[at..at + m])
                });
                claim(hollow, format!("{precision:?}: outputs depend on the own value"));
                claim(!same_bits(&out, &got), format!("{precision:?}: outputs see no values"));
            }
        }
    }
    good
}

const ALL: [Precision; 2] = [Precision::Float32, Precision::Tf32];

fn lec(kernels: &[usize], channels: usize, imported: bool, time_units: usize) -> NetSpec {
    NetSpec::Lec(LecSpec { kernels: kernels.to_vec(), channels, imported, time_units })
}

/// Lattices and LEC networks: odd sizes, all kinds of boundaries and values.
fn lec_cases() -> Vec<(Pairwise, NetSpec)> {
    use Boundary::{Free, Periodic};
    vec![
        (on_lattice(&[5, 7], Periodic, 2), lec(&[3, 5, 3], 5, true, 3)),
        (on_lattice(&[5, 7], Periodic, 2), lec(&[3, 5, 3], 20, false, 9)),
        (on_lattice(&[6, 5], Free, 2), lec(&[5, 7], 7, false, 5)),
        (on_lattice(&[5, 5], Periodic, 3), lec(&[3, 3, 5], 4, true, 3)),
        (on_lattice(&[4, 5], Free, 3), lec(&[3, 3, 5], 21, false, 4)),
        (on_lattice(&[5, 3], Periodic, 5), lec(&[3, 3], 9, true, 3)),
        (on_lattice(&[9], Periodic, 2), lec(&[3, 7, 5], 1, false, 70)),
        (on_lattice(&[3, 3, 4], Periodic, 2), lec(&[3, 3], 26, false, 3)),
        (on_lattice(&[4, 4], Periodic, 3), lec(&[3, 3], 1, false, 3)),
    ]
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
fn lec_on_a_gpu_computes_what_the_cpu_does() {
    let gpu = Gpu::open(0).unwrap();
    let cases = lec_cases();
    let good = cases.iter().filter(|(target, spec)| check(&gpu, spec, target, &ALL)).count();
    assert_eq!(good, cases.len());
}

/// The authors' network, and the same as we build it.
fn large_cases() -> Vec<(Pairwise, NetSpec)> {
    let case = |imported| {
        let target = on_lattice(&[15, 15], Boundary::Periodic, 2);
        (target, lec(&[3, 5, 7, 9, 15], 20, imported, 64))
    };
    vec![case(true), case(false)]
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
fn the_authors_lec_on_a_gpu_computes_what_the_cpu_does() {
    let gpu = Gpu::open(0).unwrap();
    for (target, spec) in large_cases() {
        assert!(check(&gpu, &spec, &target, &ALL));
    }
}

/// MLP, LEA and hollow graph networks, for lattices and graphs.
fn dense_cases() -> Vec<(Pairwise, NetSpec)> {
    use Boundary::Periodic;
    let mlp = |hidden| NetSpec::Mlp(MlpSpec { hidden });
    let lea = |heads, width, embedding| NetSpec::Lea(LeaSpec { heads, width, embedding });
    let graph =
        |channels, orders, head| NetSpec::HollowGraph(HollowGraphSpec { channels, orders, head });
    vec![
        (on_lattice(&[5, 7], Periodic, 2), mlp(16)),
        (on_lattice(&[3, 5], Periodic, 3), mlp(3)),
        (on_lattice(&[4, 3], Periodic, 5), mlp(40)),
        (on_graph(43), mlp(2)),
        (on_lattice(&[5, 7], Periodic, 2), lea(4, 8, 32)),
        (on_lattice(&[3, 5], Periodic, 3), lea(1, 3, 5)),
        (on_lattice(&[4, 3], Periodic, 5), lea(3, 4, 7)),
        (on_graph(17), lea(2, 1, 1)),
        // Several threads for a row; more sites than a tile or a block has.
        (on_lattice(&[15, 15], Periodic, 2), lea(2, 40, 40)),
        (on_lattice(&[3, 5], Periodic, 3), lea(3, 19, 70)),
        (on_graph(41), lea(1, 200, 6)),
        (on_lattice(&[5, 7], Periodic, 2), graph(16, 2, None)),
        (on_lattice(&[3, 5], Periodic, 3), graph(3, 1, Some(5))),
        (on_lattice(&[4, 3], Periodic, 5), graph(5, 3, Some(4))),
        (on_graph(29), graph(9, 1, None)),
    ]
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
fn other_networks_on_a_gpu_compute_what_the_cpu_does() {
    let gpu = Gpu::open(0).unwrap();
    let cases = dense_cases();
    let float = [Precision::Float32];
    let good = cases.iter().filter(|(target, spec)| check(&gpu, spec, target, &float)).count();
    assert_eq!(good, cases.len());
}

/// Bonds of models beyond nearest neighbours, with their strengths.
type Bonds<'a> = &'a [(&'a [i64], f64)];

const JAY: [(&[i64], f64); 4] = [(&[1, 0], 1.0), (&[0, 1], 1.0), (&[1, 1], -0.6), (&[1, -1], -0.6)];
const TRIANGULAR: [(&[i64], f64); 3] = [(&[1, 0], -1.0), (&[0, 1], -1.0), (&[1, 1], -1.0)];
const FCC: [(&[i64], f64); 6] = [
    (&[1, 0, 0], -1.0),
    (&[0, 1, 0], -1.0),
    (&[0, 0, 1], -1.0),
    (&[1, -1, 0], -1.0),
    (&[1, 0, -1], -1.0),
    (&[0, 1, -1], -0.5),
];

/// A model with these bonds at every site, in a field.
fn bonded(shape: &[usize], boundary: Boundary, q: usize, bonds: Bonds<'_>) -> Pairwise {
    let kind = if q == 2 { Interaction::Ising } else { Interaction::Potts };
    let lattice = Lattice::new(shape, boundary).unwrap();
    let bond =
        |(offset, strength): &(&[i64], f64)| Bond { offset: offset.to_vec(), strength: *strength };
    let bonds: Vec<Bond> = bonds.iter().map(bond).collect();
    Pairwise::from_bonds(kind, lattice, q, &bonds).unwrap().with_uniform_field(0.1).unwrap()
}

/// Hollow convolutions of one to three dimensions, some too large for tensor cores.
fn hollow_cases() -> Vec<(Pairwise, NetSpec)> {
    use Boundary::{Free, Periodic};
    // One of them, of 24 channels, has no global features.
    let hollow = |channels, depth, rows, head| {
        let (depth, rows, head) = (Some(depth), Some(rows), Some(head));
        NetSpec::Hollow(HollowSpec {
            channels,
            depth,
            rows,
            head,
            global_features: channels != 24,
            bond_features: true,
        })
    };
    vec![
        (on_lattice(&[8, 8], Periodic, 2), hollow(16, 3, 3, 32)),
        (on_lattice(&[7], Periodic, 3), hollow(5, 2, 3, 9)),
        (on_lattice(&[6], Free, 2), hollow(13, 3, 3, 4)),
        (on_lattice(&[9, 8], Periodic, 2), hollow(24, 3, 3, 48)),
        (on_lattice(&[5, 7], Periodic, 5), hollow(11, 1, 3, 10)),
        (on_lattice(&[3, 5], Periodic, 2), hollow(6, 1, 2, 7)),
        (on_lattice(&[2, 4], Periodic, 2), hollow(6, 3, 1, 7)),
        (on_lattice(&[3, 5], Free, 3), hollow(10, 3, 3, 7)),
        (on_lattice(&[4, 5, 4], Periodic, 2), hollow(7, 1, 3, 8)),
        (on_lattice(&[5, 6, 7], Free, 3), hollow(16, 2, 3, 32)),
        (on_lattice(&[5, 5], Periodic, 12), hollow(8, 1, 3, 16)),
        // Bonds of several strengths, and orders of alternating signs.
        (bonded(&[8, 8], Periodic, 2, &JAY), hollow(16, 3, 3, 32)),
        (bonded(&[6, 5], Free, 3, &JAY), hollow(9, 2, 3, 10)),
        (bonded(&[12, 16], Periodic, 2, &JAY), hollow(32, 4, 3, 64)),
        (bonded(&[6, 6], Periodic, 2, &TRIANGULAR), hollow(8, 2, 3, 16)),
        (bonded(&[4, 4, 5], Periodic, 2, &FCC), hollow(7, 1, 3, 8)),
        (bonded(&[5, 6], Periodic, 4, &TRIANGULAR), hollow(11, 1, 3, 10)),
        (on_lattice(&[15, 15], Periodic, 2), hollow(48, 6, 3, 96)),
        (on_lattice(&[24, 24], Periodic, 2), hollow(48, 9, 3, 96)),
        (on_lattice(&[32, 32], Periodic, 2), hollow(32, 2, 3, 64)),
    ]
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
fn hollow_convolutions_on_a_gpu_compute_what_the_cpu_does() {
    let gpu = Gpu::open(0).unwrap();
    let cases = hollow_cases();
    let both = [Precision::Float32, Precision::Bf16];
    let good = cases.iter().filter(|(target, spec)| check(&gpu, spec, target, &both)).count();
    assert_eq!(good, cases.len());
}

/// Networks for spin glasses of one to three dimensions, some with fewer channels than numbers that enter.
fn glass_cases() -> Vec<(Pairwise, NetSpec)> {
    use Boundary::{Free, Periodic};
    let glass = |channels, depth, rows, head| {
        let (depth, rows, head) = (Some(depth), Some(rows), Some(head));
        NetSpec::Glass(GlassSpec { channels, depth, rows, head })
    };
    let on = |shape: &[usize], boundary| {
        let lattice = Lattice::new(shape, boundary).unwrap();
        Pairwise::edwards_anderson(lattice, Disorder::Pm1, 3).unwrap()
    };
    vec![
        (on(&[8, 8], Periodic), glass(16, 2, 3, 32)),
        (on(&[7], Periodic), glass(5, 2, 3, 9)),
        (on(&[6, 5], Free), glass(13, 3, 3, 4)),
        (on(&[9, 8], Periodic), glass(24, 2, 3, 48)),
        (on(&[4, 5], Periodic), glass(6, 1, 2, 7)),
        (on(&[3, 4], Periodic), glass(6, 3, 1, 7)),
        (on(&[5, 5, 5], Periodic), glass(16, 1, 3, 32)),
        (on(&[3, 4, 3], Free), glass(7, 2, 3, 8)),
        (on(&[5, 4, 6], Periodic), glass(11, 1, 2, 10)),
        (on(&[16, 16], Periodic), glass(32, 6, 3, 64)),
        (on(&[8, 8, 8], Periodic), glass(32, 2, 3, 64)),
    ]
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
fn networks_for_glasses_on_a_gpu_compute_what_the_cpu_does() {
    let gpu = Gpu::open(0).unwrap();
    let cases = glass_cases();
    let both = [Precision::Float32, Precision::Bf16];
    let good = cases.iter().filter(|(target, spec)| check(&gpu, spec, target, &both)).count();
    assert_eq!(good, cases.len());
    let (target, spec) = &cases[0];
    assert!(check_conditioned(&gpu, spec, target, &both, 2));
    // A network alone is on tensor cores, and a batch without couplings is of its own instance.
    let net = Net::new(spec, target).unwrap();
    assert_eq!(net.cuda_precision(&gpu, Precision::Bf16), Precision::Bf16);
    let parameters = parameters(&net);
    let states: Vec<u8> = (0..5 * net.sites()).map(|i| (i * i % 7 % 2) as u8).collect();
    let x = Inputs { states: &states, times: &[0.1, 0.9, 0.4, 0.7, 0.2], ..Inputs::default() };
    let outputs = [Placement::Cpu, Placement::Cuda(gpu, Precision::Float32)].map(|placement| {
        let mut evaluator = net.evaluator(&placement, 4).unwrap();
        evaluator.load(&parameters).unwrap();
        let mut out = vec![f32::NAN; states.len()];
        evaluator.forward(x, &mut out).unwrap();
        out
    });
    assert!(error(&outputs[1], &outputs[0]) < 1e-5);
}

/// One network of every kind that can be conditioned, and how many numbers it is conditioned on.
fn conditioned_cases() -> Vec<(Pairwise, NetSpec, usize)> {
    let torus = |shape: &[usize], q| on_lattice(shape, Boundary::Periodic, q);
    let hollow = |channels, depth| {
        let (depth, rows, head) = (Some(depth), Some(3), Some(2 * channels));
        NetSpec::Hollow(HollowSpec {
            channels,
            depth,
            rows,
            head,
            global_features: true,
            bond_features: true,
        })
    };
    let graph = NetSpec::HollowGraph(HollowGraphSpec { channels: 5, orders: 2, head: None });
    vec![
        (torus(&[3, 5], 3), NetSpec::Mlp(MlpSpec { hidden: 3 }), 1),
        (on_graph(17), NetSpec::Mlp(MlpSpec { hidden: 6 }), 2),
        (torus(&[3, 5], 3), NetSpec::Lea(LeaSpec { heads: 2, width: 3, embedding: 5 }), 2),
        (on_graph(17), graph.clone(), 1),
        (torus(&[3, 5], 3), graph, 2),
        (torus(&[8, 8], 2), hollow(16, 3), 1),
        (torus(&[8, 8], 2), hollow(16, 3), 2),
        (torus(&[5, 7], 3), hollow(11, 1), 2),
    ]
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
fn conditioned_networks_on_a_gpu_compute_what_the_cpu_does() {
    let gpu = Gpu::open(0).unwrap();
    let mut good = true;
    for (target, spec, conditions) in conditioned_cases() {
        let all = [Precision::Float32, Precision::Bf16];
        let precisions = if matches!(spec, NetSpec::Hollow(_)) { &all[..] } else { &all[..1] };
        good &= check_conditioned(&gpu, &spec, &target, precisions, conditions);
    }
    assert!(good);
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
fn networks_are_evaluated_on_a_gpu() {
    let gpu = Gpu::open(0).unwrap();
    for conditions in [0, 2] {
        check_evaluator(&Placement::Cuda(gpu.clone(), Precision::Float32), conditions);
    }
}

#[test]
#[cfg_attr(not(has_nvrtc), ignore = "needs NVRTC: set LEAPS_NVRTC to its folder")]
fn kernels_compile() {
    let wide = (on_lattice(&[3, 3, 3], Boundary::Periodic, 2), lec(&[3, 3], 96, false, 5));
    for (target, spec) in
        large_cases().into_iter().chain(lec_cases()).chain(dense_cases()).chain([wide])
    {
        Net::new(&spec, &target).unwrap().compiles();
    }
    for (target, spec, conditions) in conditioned_cases() {
        Net::conditioned_on(&spec, &target, conditions).unwrap().compiles();
    }
}
