//! Reduce a state to a row of basic observables, of which all others are functions of the averages.

use super::modes;
use super::momenta::Momenta;
use super::order::{OrderParameter, counts};
use super::waves::{WaveVector, Waves};
use crate::target::{Boundary, SiteMean, Target};
use crate::{Error, Result};

/// Lattices with more sites than this have their correlations measured up to [`FAR`] only.
const LARGE: usize = 1 << 16;
/// The largest distance on large lattices.
const FAR: usize = 64;

/// Which basic observable is in which column of a row.
///
/// | column | observable |
/// |---|---|
/// | [`ENERGY`](Self::ENERGY), [`ENERGY_SQUARED`](Self::ENERGY_SQUARED) | $H = \sum_k E_k$ and $H^2$ |
/// | [`POTENTIAL`](Self::POTENTIAL), [`POTENTIAL_SQUARED`](Self::POTENTIAL_SQUARED) | $U = \sum_k \lambda_k E_k$ and $U^2$ |
/// | [`M`](Self::M), [`ABS_M`](Self::ABS_M), [`M_SQUARED`](Self::M_SQUARED), [`M_FOURTH`](Self::M_FOURTH) | [`Order`](super::Order) |
/// | [`correlation(r)`](Self::correlation) | $G(r) = \frac{q \langle [x_i = x_{i+r}] \rangle - 1}{q - 1}$, averaged over sites and axes (two values: $\langle s_i s_{i+r} \rangle$) |
/// | [`structure(a)`](Self::structure) | $S(k_a) = \frac{q}{(q-1)N} \sum_s \lvert\sum_i [x_i = s]\, e^{2\pi i\, c_a(i)/L_a}\rvert^2$, the smallest momentum along axis $a$ (two values: $\lvert\sum_i s_i e^{ikx}\rvert^2/N$) |
/// | [`mode(s)`](Self::mode) | 1 if value $s$ is on more sites than any other, shared evenly by values that tie |
/// | [`site_mean(k)`](Self::site_mean) | a mean over the sites that users of the model look at, such as a density |
/// | [`wave(k)`](Self::wave) | $S(k)$ at a wave vector of commensurate order; NaN for states that were [reduced](Reduced) elsewhere |
/// | [`momentum(k)`](Self::momentum), [`offset(k)`](Self::offset) | $S$ and $G$ at one of all wave vectors and offsets, where they are [asked for](Measure::everywhere); NaN as well |
///
/// Where the [order parameter](OrderParameter) is a sum of vectors, $G(r) = \langle v_i \cdot v_{i+r} \rangle$ and $S(k) =
/// \lvert\sum_i v_i e^{ikx}\rvert^2/N$.
/// At momentum 0 the structure factor is $N m^2$. Correlations need a lattice: distances go to half the
/// shortest side (periodic) or to one less than it (free), and stop at 64 on lattices of more than
/// 65,536 sites. Structure factors need a periodic one, and wave vectors sides that are multiples of 2 or 3 and at most 32 values.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// Number of sites, $N$.
    pub sites: usize,
    /// $\beta$ of the susceptibility: the weight of the first energy term, the bonds.
    pub beta: f64,
    /// Number of distances at which correlations are measured; 0 without a lattice.
    pub distances: usize,
    /// Sides of the lattice if it is periodic, else empty.
    pub sides: Vec<usize>,
    /// Number of values.
    pub q: usize,
    /// Number of modes whose masses are measured: one for every value, 0 for very many values.
    pub modes: usize,
    /// Whether no value is preferred anywhere ([`symmetric`]), so that $\langle m \rangle$ vanishes for two values.
    pub symmetric: bool,
    /// Whether all values are equivalent, so that their modes have equal masses.
    pub equivalent: bool,
    /// Means over the sites that users of the model look at.
    pub site_means: Vec<SiteMean>,
    /// Wave vectors of order that repeats every two or three sites, but 0.
    pub waves: Vec<WaveVector>,
    /// Steps along the axes of all wave vectors, in units of $2\pi$ over the side, and of all offsets, one of each and its opposite; empty unless they are
    /// measured.
    pub steps: Vec<Vec<i64>>,
}

/// Whether no site of a pairwise model prefers a value: there are no fields; or a
/// [symmetry](crate::target::LatticeModel::symmetric) makes the order parameter vanish. Other targets count as not symmetric.
pub fn symmetric(target: &dyn Target, lambda: &[f64]) -> bool {
    match target.lattice_model().filter(|model| model.vectors().is_some()) {
        Some(model) => model.symmetric(),
        None => without_fields(target, lambda),
    }
}

/// Whether values can be turned into each other: for pairwise models there are no fields.
fn equivalent(target: &dyn Target, lambda: &[f64]) -> bool {
    match target.lattice_model().filter(|model| model.vectors().is_some()) {
        Some(model) => model.equivalent(),
        None => without_fields(target, lambda),
    }
}

fn without_fields(target: &dyn Target, lambda: &[f64]) -> bool {
    target.pairwise().is_some_and(|model| {
        let fields = model.total_fields(lambda);
        fields.chunks_exact(target.q()).all(|site| site.iter().all(|f| *f == site[0]))
    })
}

impl Layout {
    /// Column of $H$.
    pub const ENERGY: usize = 0;
    /// Column of $H^2$.
    pub const ENERGY_SQUARED: usize = 1;
    /// Column of $U$.
    pub const POTENTIAL: usize = 2;
    /// Column of $U^2$.
    pub const POTENTIAL_SQUARED: usize = 3;
    /// Column of $m$.
    pub const M: usize = 4;
    /// Column of $|m|$.
    pub const ABS_M: usize = 5;
    /// Column of $m^2$.
    pub const M_SQUARED: usize = 6;
    /// Column of $m^4$.
    pub const M_FOURTH: usize = 7;
    pub(super) const FIXED: usize = 8;

    /// Column of $G(r)$, `r < distances`.
    pub fn correlation(&self, r: usize) -> usize {
        Self::FIXED + r
    }

    /// Column of $S(k)$ along `axis < sides.len()`.
    pub fn structure(&self, axis: usize) -> usize {
        Self::FIXED + self.distances + axis
    }

    /// Column of the mode of `site_value < modes`.
    pub fn mode(&self, site_value: usize) -> usize {
        Self::FIXED + self.distances + self.sides.len() + site_value
    }

    /// Column of the mean of `site_means[k]`.
    pub fn site_mean(&self, k: usize) -> usize {
        self.mode(self.modes) + k
    }

    /// Column of $S(k)$ at `waves[k]`.
    pub fn wave(&self, k: usize) -> usize {
        self.site_mean(self.site_means.len()) + k
    }

    /// Column of $S(k)$ at the wave vector of `steps[k]`.
    pub fn momentum(&self, k: usize) -> usize {
        self.wave(self.waves.len()) + k
    }

    /// Column of $G(r)$ at the offset `steps[k]`.
    pub fn offset(&self, k: usize) -> usize {
        self.momentum(self.steps.len()) + k
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.offset(self.steps.len())
    }
}

/// What a row is made of, from a state that lies elsewhere, such as on a GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reduced<'a> {
    /// The energy of every term.
    pub energies: &'a [f64],
    /// The number of sites in every value.
    pub counts: &'a [usize],
    /// Equal pairs at every distance that is measured, along all axes.
    pub equal_pairs: &'a [usize],
    /// The structure factor along every axis of a periodic lattice.
    pub structure: &'a [f64],
    /// The distance to the state that all chains of a run share.
    pub distance: u64,
}

/// Measures states of one target at one set of weights.
#[derive(Clone)]
pub struct Measure<'a> {
    target: &'a dyn Target,
    lambda: Vec<f64>,
    layout: Layout,
    order: OrderParameter,
    pub(super) axes: Vec<Axis>,
    pub(super) periodic: bool,
    waves: Option<Waves>,
    momenta: Option<Momenta>,
}

/// One axis of a lattice.
#[derive(Clone)]
pub(super) struct Axis {
    pub(super) side: usize,
    pub(super) stride: usize,
    /// `e^{2 pi i c / side}` for every coordinate `c`.
    pub(super) wave: Vec<(f64, f64)>,
}

impl<'a> Measure<'a> {
    /// Measure states of `rho(x) ~ exp(-sum_k lambda_k E_k(x))`. Panics unless there is one weight per
    /// energy term.
    pub fn new(target: &'a dyn Target, lambda: &[f64]) -> Self {
        assert_eq!(lambda.len(), target.terms(), "one weight per energy term");
        // A target of the user's may claim a lattice that does not fit.
        let lattice = target.lattice().filter(|lattice| lattice.sites() == target.sites());
        let periodic = lattice.is_some_and(|l| l.boundary() == Boundary::Periodic);
        let (mut axes, mut distances, mut sides) = (Vec::new(), 0, Vec::new());
        if let Some(lattice) = lattice {
            let wave = |side: usize| {
                let angle = move |c: usize| std::f64::consts::TAU * c as f64 / side as f64;
                (0..side).map(|c| (angle(c).cos(), angle(c).sin())).collect()
            };
            axes = lattice
                .shape()
                .iter()
                .enumerate()
                .map(|(axis, &side)| Axis { side, stride: lattice.stride(axis), wave: wave(side) })
                .collect();
            let shortest = lattice.shape().iter().copied().min().unwrap_or(1);
            distances = if periodic { shortest / 2 + 1 } else { shortest };
            if lattice.sites() > LARGE {
                distances = distances.min(FAR + 1);
            }
            if periodic {
                sides = lattice.shape().to_vec();
            }
        }
        let beta = lambda.first().copied().unwrap_or(0.0);
        let (sites, q) = (target.sites(), target.q());
        let symmetric = symmetric(target, lambda);
        let modes = modes::count(q);
        let site_means = target.lattice_model().map_or(Vec::new(), |m| m.site_means().to_vec());
        let waves = lattice.filter(|_| periodic).map(|lattice| Waves::new(lattice, q));
        let layout = Layout {
            sites,
            beta,
            distances,
            sides,
            q,
            modes,
            symmetric,
            equivalent: equivalent(target, lambda),
            site_means,
            waves: waves.as_ref().map_or(Vec::new(), |waves| waves.vectors().to_vec()),
            steps: Vec::new(),
        };
        let order = OrderParameter::of(target);
        let (lambda, momenta) = (lambda.to_vec(), None);
        Measure { target, lambda, layout, order, axes, periodic, waves, momenta }
    }

    /// The same with structure factors at all wave vectors and correlations at all offsets.
    ///
    /// # Errors
    /// Targets that are not on a periodic lattice.
    pub fn everywhere(mut self) -> Result<Self> {
        let lattice = self.target.lattice().filter(|_| self.periodic);
        let Some(lattice) = lattice.filter(|lattice| lattice.sites() == self.layout.sites) else {
            return Err(Error::invalid(
                "sample.structure_factor",
                true,
                "left out where the target is not on a periodic lattice, which alone has wave vectors",
                "use periodic boundaries, or leave it out",
            ));
        };
        let momenta = Momenta::new(lattice);
        self.layout.steps = momenta.steps().to_vec();
        self.momenta = Some(momenta);
        Ok(self)
    }

    /// What the columns of a row are.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The target.
    pub fn target(&self) -> &'a dyn Target {
        self.target
    }

    /// Write the row of `x`; `row.len() == layout().width()` and `x.len() == layout().sites`.
    pub fn row(&self, x: &[u8], row: &mut [f64]) {
        self.row_by(x, |term| self.target.energy(term, x), row);
    }

    /// The same for a state whose energy terms are known.
    pub fn row_with(&self, x: &[u8], energies: &[f64], row: &mut [f64]) {
        self.row_by(x, |term| energies[term], row);
    }

    fn row_by(&self, x: &[u8], energy: impl Fn(usize) -> f64, row: &mut [f64]) {
        assert_eq!(x.len(), self.layout.sites, "one value per site");
        let counts = &counts(x)[..self.target.q()];
        if let Some(waves) = &self.waves {
            let own = self.layout.wave(0)..self.layout.momentum(0);
            waves.write(x, self.order.vectors(), &mut row[own]);
        }
        if let Some(momenta) = &self.momenta {
            let own = &mut row[self.layout.momentum(0)..];
            momenta.write(x, self.target.q(), self.order.vectors(), own);
        }
        match self.order.vectors() {
            None => {
                let correlation = |r| self.excess(self.equal_pairs(x, r), r);
                let structure = |axis: usize| self.axes[axis].structure(x, self.target.q());
                self.assemble(counts, energy, correlation, structure, row);
            }
            Some(vectors) => {
                let correlation = |r| self.products(x, vectors, r);
                let structure = |axis: usize| self.axes[axis].vector_structure(x, vectors);
                self.assemble(counts, energy, correlation, structure, row);
            }
        }
    }

    /// Write the row of a state that was reduced elsewhere.
    pub(super) fn row_of(&self, state: &Reduced<'_>, row: &mut [f64]) {
        let Reduced { energies, counts, equal_pairs, structure, .. } = *state;
        assert_eq!(energies.len(), self.lambda.len(), "one energy per term");
        assert_eq!(counts.len(), self.target.q(), "one count per value");
        row[self.layout.wave(0)..].fill(f64::NAN);
        let correlation = |r: usize| self.excess(equal_pairs[r], r);
        self.assemble(counts, |term| energies[term], correlation, |a| structure[a], row);
    }

    /// Write a row but for the waves, given the parts that depend on more than the numbers of sites in every value.
    fn assemble(
        &self,
        counts: &[usize],
        energy_of: impl Fn(usize) -> f64,
        correlation_at: impl Fn(usize) -> f64,
        structure_along: impl Fn(usize) -> f64,
        row: &mut [f64],
    ) {
        assert_eq!(row.len(), self.layout.width(), "one number per column");
        let (mut energy, mut potential) = (0.0, 0.0);
        for (term, &weight) in self.lambda.iter().enumerate() {
            let value = energy_of(term);
            energy += value;
            if weight != 0.0 {
                potential += weight * value;
            }
        }
        let order = self.order.of_counts(counts);
        let (fixed, rest) = row.split_at_mut(Layout::FIXED);
        fixed[Layout::ENERGY] = energy;
        fixed[Layout::ENERGY_SQUARED] = energy * energy;
        fixed[Layout::POTENTIAL] = potential;
        fixed[Layout::POTENTIAL_SQUARED] = potential * potential;
        fixed[Layout::M] = order.m;
        fixed[Layout::ABS_M] = order.abs;
        fixed[Layout::M_SQUARED] = order.squared;
        fixed[Layout::M_FOURTH] = order.fourth;
        let (correlation, rest) = rest.split_at_mut(self.layout.distances);
        let (structure, rest) = rest.split_at_mut(self.layout.sides.len());
        let (share, rest) = rest.split_at_mut(self.layout.modes);
        let (means, _) = rest.split_at_mut(self.layout.site_means.len());
        modes::shares(counts, share);
        for (value, mean) in means.iter_mut().zip(&self.layout.site_means) {
            let parts = counts.iter().zip(&mean.values).map(|(&count, own)| count as f64 * own);
            *value = parts.sum::<f64>() / self.layout.sites as f64;
        }
        for (r, value) in correlation.iter_mut().enumerate() {
            *value = correlation_at(r);
        }
        for (axis, value) in structure.iter_mut().enumerate() {
            *value = structure_along(axis);
        }
    }

    /// How much more often than by chance pairs at distance `r` are equal, 1 where all are.
    fn excess(&self, equal: usize, r: usize) -> f64 {
        let q = self.target.q() as f64;
        (q * equal as f64 / self.pairs(r) as f64 - 1.0) / (q - 1.0)
    }

    /// The mean product of vectors at distance `r` along the axes.
    fn products(&self, x: &[u8], vectors: &[[f64; 2]], r: usize) -> f64 {
        let dot = |(a, b): (&u8, &u8)| {
            let (a, b) = (vectors[*a as usize], vectors[*b as usize]);
            a[0] * b[0] + a[1] * b[1]
        };
        let mut sum = 0.0;
        for axis in &self.axes {
            let shift = r * axis.stride;
            for plane in x.chunks_exact(axis.side * axis.stride) {
                let cut = plane.len() - shift;
                sum += plane[..cut].iter().zip(&plane[shift..]).map(dot).sum::<f64>();
                if self.periodic {
                    sum += plane[cut..].iter().zip(&plane[..shift]).map(dot).sum::<f64>();
                }
            }
        }
        sum / self.pairs(r) as f64
    }

    /// Equal pairs at distance `r` along the axes.
    fn equal_pairs(&self, x: &[u8], r: usize) -> usize {
        let mut equal = 0;
        for axis in &self.axes {
            let shift = r * axis.stride;
            for plane in x.chunks_exact(axis.side * axis.stride) {
                let cut = plane.len() - shift;
                equal += matches(&plane[..cut], &plane[shift..]);
                if self.periodic {
                    equal += matches(&plane[cut..], &plane[..shift]);
                }
            }
        }
        equal
    }

    /// All pairs at distance `r` along the axes.
    pub(super) fn pairs(&self, r: usize) -> usize {
        let sites = self.layout.sites;
        let along = |axis: &Axis| match self.periodic {
            true => sites,
            false => sites - sites / axis.side * r,
        };
        self.axes.iter().map(along).sum()
    }
}

fn matches(a: &[u8], b: &[u8]) -> usize {
    // Counting in bytes lets sixteen or more sites be compared at once.
    let count = |(a, b): (&[u8], &[u8])| {
        let equal = a.iter().zip(b).map(|(a, b)| u8::from(a == b));
        equal.fold(0u8, u8::wrapping_add) as usize
    };
    a.chunks(255).zip(b.chunks(255)).map(count).sum()
}

impl Axis {
    /// The same where the order parameter is a sum of vectors.
    fn vector_structure(&self, x: &[u8], vectors: &[[f64; 2]]) -> f64 {
        let mut sums = [(0.0, 0.0); 2];
        for plane in x.chunks_exact(self.side * self.stride) {
            for (line, &(cos, sin)) in plane.chunks_exact(self.stride).zip(&self.wave) {
                for &site_value in line {
                    for (sum, part) in sums.iter_mut().zip(vectors[site_value as usize]) {
                        sum.0 += part * cos;
                        sum.1 += part * sin;
                    }
                }
            }
        }
        sums.iter().map(|(re, im)| re * re + im * im).sum::<f64>() / x.len() as f64
    }

    /// `S(k)` at the smallest momentum along the axis.
    fn structure(&self, x: &[u8], q: usize) -> f64 {
        let mut sums = [(0.0, 0.0); 256];
        for plane in x.chunks_exact(self.side * self.stride) {
            for (line, &(cos, sin)) in plane.chunks_exact(self.stride).zip(&self.wave) {
                for &site_value in line {
                    let sum = &mut sums[site_value as usize];
                    sum.0 += cos;
                    sum.1 += sin;
                }
            }
        }
        let square: f64 = sums[..q].iter().map(|(re, im)| re * re + im * im).sum();
        let q = q as f64;
        q / (q - 1.0) * square / x.len() as f64
    }
}
