//! Global features of models of tables: the energies of the interactions between all other sites.
//!
//! The energies of all clusters with one table are a class, $n_c = \sum_{c \not\ni i} (\max V - V_c)$ without those through the site $i$ itself. They are counted
//! in whole numbers, which are exact in any order, so that they do not depend on $x_i$ to the last bit: multiples of the smallest energy where all energies are
//! (Blume and Capel's, clocks of six hours, Baxter and Wu's), else multiples of $2^{-22}$ of what all clusters can gain together.

use super::global_features::{FUNCTIONS, Scale, functions};
use crate::device::vector::{Job, Vector};
use crate::target::{ClusterTable, LatticeModel, Target};

/// Counts are at most this: whole numbers up to four times as many are exact in single precision.
const STEPS: f64 = (1 << 22) as f64;

/// What counts as rounding of an energy, in units.
const ROUNDING: f64 = 1e-9;

/// Sums that are kept while the energy of a cluster is looked up: tables of more are left out.
const MOST: usize = 256;

/// Clusters whose energies are counted together: those with one table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TableClass {
    /// By how many units every combination of values is below the highest energy; the value at the first place varies slowest.
    gains: Vec<u32>,
    q: usize,
    /// Sites of a cluster.
    places: usize,
    /// The sites of all clusters, `[cluster * places + place]`.
    members: Vec<u32>,
    /// The clusters through site `i` are `through[starts[i]..starts[i + 1]]`.
    starts: Vec<u32>,
    through: Vec<u32>,
    pub(super) scale: Scale,
}

/// The classes of a model, in the order of its tables.
pub(super) fn classes(model: &LatticeModel, q: usize) -> Vec<TableClass> {
    let mut kinds: Vec<(&ClusterTable, Vec<Vec<usize>>)> = Vec::new();
    for table in model.tables().iter().filter(|table| table.offsets.len() > 1) {
        let own = model.placed(table);
        let same = |kind: &&mut (&ClusterTable, Vec<_>)| {
            kind.0.offsets.len() == table.offsets.len() && kind.0.energies == table.energies
        };
        match kinds.iter_mut().find(same) {
            Some((_, all)) => all.extend(own),
            None => kinds.push((table, own.collect())),
        }
    }
    let sites = model.sites();
    kinds.into_iter().filter_map(|(table, all)| TableClass::new(table, &all, q, sites)).collect()
}

/// The energy that all gains are multiples of, up to rounding of which the sum stays small.
fn unit(gains: &[f64], clusters: f64) -> f64 {
    let most = gains.iter().copied().fold(0.0, f64::max);
    // What is next to nothing is the rounding of 0.
    let least = gains.iter().copied().filter(|&gain| gain > ROUNDING * most);
    let least = least.fold(f64::INFINITY, f64::min);
    let whole =
        |gain: &f64| (gain / least - (gain / least).round()).abs() < ROUNDING * most / least;
    match gains.iter().all(whole) && most / least * clusters <= STEPS {
        true => least,
        false => most * clusters / STEPS,
    }
}

impl TableClass {
    fn new(table: &ClusterTable, all: &[Vec<usize>], q: usize, sites: usize) -> Option<Self> {
        let (energies, places) = (&table.energies, table.offsets.len());
        let highest = energies.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let gains: Vec<f64> = energies.iter().map(|energy| highest - energy).collect();
        let (clusters, number) = (all.len().max(1) as f64, gains.len() as f64);
        let mean = gains.iter().sum::<f64>() / number;
        let far = gains.iter().map(|gain| (gain - mean).abs()).fold(0.0, f64::max);
        if far == 0.0 || gains.len() / q > MOST {
            return None;
        }
        let unit = unit(&gains, clusters);
        let mut through = vec![Vec::new(); sites];
        for (cluster, members) in all.iter().enumerate() {
            members.iter().for_each(|&site| through[site].push(cluster as u32));
        }
        let starts = std::iter::once(0).chain(through.iter().scan(0, |sum, own| {
            *sum += own.len() as u32;
            Some(*sum)
        }));
        Some(TableClass {
            gains: gains.iter().map(|gain| (gain / unit).round() as u32).collect(),
            q,
            places,
            members: all.iter().flatten().map(|&site| site as u32).collect(),
            starts: starts.collect(),
            through: through.concat(),
            // 0 for independent values, 1 at most.
            scale: (unit / (far * clusters), -mean / far),
        })
    }

    fn through(&self, site: usize) -> impl Iterator<Item = &[u32]> {
        let own = &self.through[self.starts[site] as usize..self.starts[site + 1] as usize];
        own.iter().map(|&cluster| &self.members[cluster as usize * self.places..][..self.places])
    }

    /// The gain of a cluster of a state.
    fn gain(&self, members: &[u32], x: &[u8]) -> f32 {
        let at = members.iter().fold(0, |at, &site| at * self.q + usize::from(x[site as usize]));
        self.gains[at] as f32
    }

    /// The gain of all clusters of a state.
    pub(super) fn all(&self, x: &[u8]) -> f32 {
        self.members.chunks_exact(self.places).map(|members| self.gain(members, x)).sum()
    }

    /// The gain of the clusters through a site.
    pub(super) fn own(&self, site: usize, x: &[u8]) -> f32 {
        self.through(site).map(|members| self.gain(members, x)).sum()
    }

    /// The sites of the clusters through a site, itself included, with repetition.
    pub(super) fn around(&self, site: usize) -> impl Iterator<Item = usize> {
        self.through(site).flatten().map(|&site| site as usize)
    }
}

/// Write the functions of the gain of all clusters but those through the site into every row of `context`, from a column on.
pub(super) struct WriteGains<'a, V> {
    pub(super) class: &'a TableClass,
    /// Spins for two values, else one number for every value that is 1 or 0.
    pub(super) x: &'a [V],
    pub(super) inputs: usize,
    pub(super) root: f64,
    pub(super) context: &'a mut [V],
    pub(super) width: usize,
    pub(super) column: usize,
}

impl<V: Vector> Job<V> for WriteGains<'_, V> {
    #[inline(always)]
    unsafe fn run(self) {
        let WriteGains { class, x, inputs, root, context, width, column } = self;
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            let (mut all, mut gains) = (V::zero(), Vec::new());
            let mut sums = vec![V::zero(); class.gains.len() / class.q];
            for members in class.members.chunks_exact(class.places) {
                let gain = gain((class, members), (x, inputs), &mut sums);
                all = all.add(gain);
                gains.push(gain);
            }
            for (i, row) in context.chunks_exact_mut(width).enumerate() {
                let mut others = all;
                for &cluster in
                    &class.through[class.starts[i] as usize..class.starts[i + 1] as usize]
                {
                    others = others.sub(gains[cluster as usize]);
                }
                functions(others, class.scale, root, &mut row[column..][..FUNCTIONS]);
            }
        }
    }
}

/// The gain of a cluster in every lane: its table, summed over the values place by place in `sums`.
#[inline(always)]
unsafe fn gain<V: Vector>(
    (class, members): (&TableClass, &[u32]),
    (x, inputs): (&[V], usize),
    sums: &mut [V],
) -> V {
    let q = class.q;
    // SAFETY: the caller has the instructions of the vector.
    unsafe {
        let last = members[class.places - 1] as usize;
        for (sum, gains) in sums.iter_mut().zip(class.gains.chunks_exact(q)) {
            *sum = V::zero();
            for (value, &gain) in gains.iter().enumerate().filter(|(_, gain)| **gain > 0) {
                *sum = is(x, inputs, last, value).fma(V::constant(f64::from(gain)), *sum);
            }
        }
        let mut left = class.gains.len() / q;
        for &site in members[..class.places - 1].iter().rev() {
            left /= q;
            for at in 0..left {
                let mut sum = V::zero();
                for value in 0..q {
                    sum = is(x, inputs, site as usize, value).fma(sums[at * q + value], sum);
                }
                sums[at] = sum;
            }
        }
        sums[0]
    }
}

/// 1 in lanes where a site has a value, 0 in others.
#[inline(always)]
unsafe fn is<V: Vector>(x: &[V], inputs: usize, site: usize, value: usize) -> V {
    // SAFETY: the caller has the instructions of the vector.
    unsafe {
        match (inputs, value) {
            (1, 0) => V::constant(0.5).sub(x[site].mul(V::constant(0.5))),
            (1, _) => x[site].fma(V::constant(0.5), V::constant(0.5)),
            _ => x[site * inputs + value],
        }
    }
}
