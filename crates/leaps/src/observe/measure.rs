//! Reduce a state to a row of basic observables, of which all others are functions of the averages.

use super::modes;
use super::order::{Order, counts};
use crate::target::{Boundary, Target};

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
/// | [`M`](Self::M), [`ABS_M`](Self::ABS_M), [`M_SQUARED`](Self::M_SQUARED), [`M_FOURTH`](Self::M_FOURTH) | [`Order`] |
/// | [`correlation(r)`](Self::correlation) | $G(r) = \frac{q \langle [x_i = x_{i+r}] \rangle - 1}{q - 1}$, averaged over sites and axes (two values: $\langle s_i s_{i+r} \rangle$) |
/// | [`structure(a)`](Self::structure) | $S(k_a) = \frac{q}{(q-1)N} \sum_s \lvert\sum_i [x_i = s]\, e^{2\pi i\, c_a(i)/L_a}\rvert^2$, the smallest momentum along axis $a$ (two values: $\lvert\sum_i s_i e^{ikx}\rvert^2/N$) |
/// | [`mode(s)`](Self::mode) | 1 if value $s$ is on more sites than any other, shared evenly by values that tie |
///
/// At momentum 0 the structure factor is $N m^2$. Correlations need a lattice: distances go to half the
/// shortest side (periodic) or to one less than it (free), and stop at 64 on lattices of more than
/// 65,536 sites. Structure factors need a periodic one.
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
}

/// Whether no site of a pairwise model prefers a value: there are no fields. Other targets count as not
/// symmetric.
pub fn symmetric(target: &dyn Target, lambda: &[f64]) -> bool {
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

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.mode(self.modes)
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
    pub(super) axes: Vec<Axis>,
    pub(super) periodic: bool,
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
        let layout = Layout { sites, beta, distances, sides, q, modes, symmetric };
        Measure { target, lambda: lambda.to_vec(), layout, axes, periodic }
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
        let equal = |r| self.equal_pairs(x, r);
        let structure = |axis: usize| self.axes[axis].structure(x, self.target.q());
        self.assemble(counts, energy, equal, structure, row);
    }

    /// Write the row of a state that was reduced elsewhere.
    pub(super) fn row_of(&self, state: &Reduced<'_>, row: &mut [f64]) {
        let Reduced { energies, counts, equal_pairs, structure, .. } = *state;
        assert_eq!(energies.len(), self.lambda.len(), "one energy per term");
        assert_eq!(counts.len(), self.target.q(), "one count per value");
        self.assemble(counts, |term| energies[term], |r| equal_pairs[r], |a| structure[a], row);
    }

    /// Write a row, given the parts that depend on more than the numbers of sites in every value.
    fn assemble(
        &self,
        counts: &[usize],
        energy_of: impl Fn(usize) -> f64,
        equal_pairs: impl Fn(usize) -> usize,
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
        let order = Order::of_counts(counts);
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
        let (structure, share) = rest.split_at_mut(self.layout.sides.len());
        modes::shares(counts, share);
        let q = self.target.q() as f64;
        for (r, value) in correlation.iter_mut().enumerate() {
            let (equal, pairs) = (equal_pairs(r), self.pairs(r));
            *value = (q * equal as f64 / pairs as f64 - 1.0) / (q - 1.0);
        }
        for (axis, value) in structure.iter_mut().enumerate() {
            *value = structure_along(axis);
        }
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
