//! Every model with pair interactions and single-site energies, in one form.
//!
//! $$E_k(x) = c_k - \sum_{\langle ij\rangle} A^k_{ij}\,[x_i = x_j] + \sum_i f^k_i(x_i)$$
//!
//! Potts models have $A = J$. Ising spins are the values 0 (spin -1) and 1 (spin +1), and
//! $-J s_i s_j = J - 2J\,[x_i = x_j]$, so that $A = 2J$ and $c = \sum J$. Everything downstream (energy changes,
//! tables, cluster moves, transfer matrices) is written once for this form.

use super::{Bond, Boundary, Lattice, Target};
use crate::{Error, Result, finite};

/// What the values mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Interaction {
    /// Two values, spins -1 and +1; pair energy `-J s_i s_j`, field energy `+h s_i`.
    Ising,
    /// `q` equivalent values; pair energy `-J [x_i = x_j]`, field energy `+h [x_i = 0]`.
    Potts,
}

/// One energy term.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// Its name in outputs and configurations.
    pub name: String,
    /// `A` for every directed bond, in the order of [`Pairwise::directed`]; empty if it has none.
    pub couplings: Vec<f64>,
    /// `f[site * q + site_value]`; empty if it has none.
    pub fields: Vec<f64>,
    /// `c`.
    pub constant: f64,
}

/// A pairwise model on any graph, with several energy terms. See the [module](super) for the form.
#[derive(Clone, Debug, PartialEq)]
pub struct Pairwise {
    interaction: Interaction,
    sites: usize,
    q: usize,
    /// Directed bonds of site `i` are `starts[i]..starts[i + 1]`.
    starts: Vec<u32>,
    /// The far end of every directed bond.
    ends: Vec<u32>,
    terms: Vec<Term>,
    lattice: Option<Lattice>,
    /// Bonds of every site by offset, where they are not those of the hypercubic lattice.
    offsets: Vec<Bond>,
}

impl Pairwise {
    /// A model from an edge list, each edge `(i, j, J)`, without fields.
    ///
    /// The single term is called `bonds`. Parallel edges add up; an edge from a site to itself is
    /// refused.
    pub fn from_edges(
        interaction: Interaction,
        sites: usize,
        q: usize,
        edges: &[(u32, u32, f64)],
    ) -> Result<Self> {
        if sites < 1 || sites > u32::MAX as usize {
            return Err(Error::invalid(
                "sites",
                sites,
                "from 1 to 2^32 - 1",
                "give the graph sites",
            ));
        }
        if !(2..=255).contains(&q) {
            return Err(Error::invalid("q", q, "from 2 to 255", "a site needs a choice"));
        }
        if interaction == Interaction::Ising && q != 2 {
            return Err(Error::invalid("q", q, "2 for Ising spins", "use potts"));
        }
        let scale = match interaction {
            Interaction::Ising => 2.0,
            Interaction::Potts => 1.0,
        };
        let strength: f64 = edges.iter().map(|edge| edge.2.abs()).sum();
        overflow("coupling", strength)?;
        let mut starts = vec![0u32; sites + 1];
        let mut constant = 0.0;
        for &(i, j, coupling) in edges {
            if i == j || i as usize >= sites || j as usize >= sites {
                return Err(Error::invalid(
                    "edge",
                    format!("({i}, {j})"),
                    format!("between two different sites below {sites}"),
                    "sites are numbered from 0",
                ));
            }
            finite("coupling", coupling)?;
            starts[i as usize + 1] += 1;
            starts[j as usize + 1] += 1;
            if interaction == Interaction::Ising {
                constant += coupling;
            }
        }
        for site in 0..sites {
            starts[site + 1] += starts[site];
        }
        let mut next = starts.clone();
        let mut ends = vec![0u32; 2 * edges.len()];
        let mut couplings = vec![0.0; 2 * edges.len()];
        for &(i, j, coupling) in edges {
            for (from, to) in [(i, j), (j, i)] {
                let entry = next[from as usize] as usize;
                ends[entry] = to;
                couplings[entry] = scale * coupling;
                next[from as usize] += 1;
            }
        }
        let bonds = Term { name: "bonds".into(), couplings, fields: Vec::new(), constant };
        Ok(Pairwise {
            interaction,
            sites,
            q,
            starts,
            ends,
            terms: vec![bonds],
            lattice: None,
            offsets: Vec::new(),
        })
    }

    /// A model with coupling `J` on every bond of a lattice.
    pub fn uniform(
        interaction: Interaction,
        lattice: Lattice,
        q: usize,
        coupling: f64,
    ) -> Result<Self> {
        let edges: Vec<_> = lattice.bonds().into_iter().map(|(i, j)| (i, j, coupling)).collect();
        let model = Self::from_edges(interaction, lattice.sites(), q, &edges)?;
        Ok(model.on_lattice(lattice))
    }

    /// Ising spins on a lattice: `E = -J sum_<ij> s_i s_j + h sum_i s_i`, the field as a term of its
    /// own if it is not 0.
    pub fn ising(lattice: Lattice, coupling: f64, field: f64) -> Result<Self> {
        Self::uniform(Interaction::Ising, lattice, 2, coupling)?.with_uniform_field(field)
    }

    /// Potts values on a lattice: `E = -J sum_<ij> [x_i = x_j] + h sum_i [x_i = 0]`.
    pub fn potts(lattice: Lattice, q: usize, coupling: f64, field: f64) -> Result<Self> {
        Self::uniform(Interaction::Potts, lattice, q, coupling)?.with_uniform_field(field)
    }

    /// The model with a uniform field added, as the term `field`; unchanged if `field` is 0.
    pub fn with_uniform_field(self, field: f64) -> Result<Self> {
        if field == 0.0 {
            return Ok(self);
        }
        let fields = vec![field; self.sites];
        self.with_fields(&fields)
    }

    /// The model with the field `fields[i]` at site `i`, as the term `field`.
    pub fn with_fields(self, fields: &[f64]) -> Result<Self> {
        if fields.len() != self.sites {
            return Err(Error::invalid(
                "field",
                format!("{} values", fields.len()),
                format!("one number, or one for each of the {} sites", self.sites),
                "give the full list",
            ));
        }
        overflow("field", fields.iter().map(|field| field.abs()).sum())?;
        let mut energies = vec![0.0; self.sites * self.q];
        for (site, &field) in fields.iter().enumerate() {
            finite("field", field)?;
            let row = &mut energies[site * self.q..][..self.q];
            match self.interaction {
                Interaction::Ising => row.copy_from_slice(&[-field, field]),
                Interaction::Potts => row[0] = field,
            }
        }
        Ok(self.with_term(Term {
            name: "field".into(),
            couplings: Vec::new(),
            fields: energies,
            constant: 0.0,
        }))
    }

    /// The model with another energy term; its arrays must be empty or of full length.
    pub fn with_term(mut self, term: Term) -> Self {
        assert!(term.couplings.is_empty() || term.couplings.len() == self.ends.len());
        assert!(term.fields.is_empty() || term.fields.len() == self.sites * self.q);
        self.terms.push(term);
        self
    }

    /// Numbers of the edges that the model was made from, in the order of [`directed`](Self::directed).
    pub(super) fn in_order(
        &self,
        edges: &[(u32, u32, f64)],
        number: impl Fn(usize) -> f64,
    ) -> Vec<f64> {
        let mut next = self.starts.clone();
        let mut numbers = vec![0.0; self.ends.len()];
        for (edge, &(i, j, _)) in edges.iter().enumerate() {
            for from in [i, j] {
                numbers[next[from as usize] as usize] = number(edge);
                next[from as usize] += 1;
            }
        }
        numbers
    }

    /// The model with other energy terms, whose arrays must be empty or of full length.
    pub(super) fn with_terms(mut self, terms: Vec<Term>) -> Self {
        self.terms.clear();
        terms.into_iter().fold(self, Self::with_term)
    }

    /// Whether the bonds are those between neighbours along the axes of the lattice.
    fn joins_neighbours(&self, lattice: &Lattice) -> bool {
        let mut wanted = vec![Vec::new(); self.sites];
        for (i, j) in lattice.bonds() {
            wanted[i as usize].push(j);
            wanted[j as usize].push(i);
        }
        wanted.iter_mut().enumerate().all(|(site, wanted)| {
            let mut own = self.neighbours(site).to_vec();
            own.sort_unstable();
            wanted.sort_unstable();
            own == *wanted
        })
    }

    /// The model with its sites placed on `lattice`.
    pub(super) fn on_lattice(mut self, lattice: Lattice) -> Self {
        assert_eq!(lattice.sites(), self.sites);
        self.lattice = Some(lattice);
        self
    }

    /// The model as one of these bonds at every site of its lattice.
    pub(super) fn with_offsets(mut self, bonds: Vec<Bond>) -> Self {
        self.offsets = bonds;
        self
    }

    /// The bonds of every site by offset; empty unless there are others than those to the next sites along the axes of the lattice, or
    /// these differ in strength from axis to axis.
    pub fn offsets(&self) -> &[Bond] {
        &self.offsets
    }

    /// Whether [`offsets`](Self::offsets) say nothing: a hypercubic lattice with bonds to nearest neighbours, or another graph.
    pub fn is_plain(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Add the fields and the constant of `other` to the first term, and take its name.
    pub(super) fn absorb(&mut self, other: Term) {
        let first = &mut self.terms[0];
        first.name = other.name;
        first.fields = other.fields;
        first.constant += other.constant;
    }

    /// The model with a constant added to its energy, in the first term.
    pub fn with_constant(mut self, constant: f64) -> Result<Self> {
        overflow("constant", constant.abs())?;
        self.terms[0].constant += finite("constant", constant)?;
        Ok(self)
    }

    /// What the values mean.
    pub fn interaction(&self) -> Interaction {
        self.interaction
    }

    /// The energy terms.
    pub fn energy_terms(&self) -> &[Term] {
        &self.terms
    }

    /// The far ends of the bonds of `site`, with repetition for parallel bonds.
    pub fn neighbours(&self, site: usize) -> &[u32] {
        &self.ends[self.directed(site)]
    }

    /// Indices of the directed bonds that leave `site`.
    pub fn directed(&self, site: usize) -> std::ops::Range<usize> {
        self.starts[site] as usize..self.starts[site + 1] as usize
    }

    /// The largest number of bonds at a site.
    pub fn max_degree(&self) -> usize {
        (0..self.sites).map(|site| self.directed(site).len()).max().unwrap_or(0)
    }

    /// `sum_k lambda_k A^k` of every directed bond, in the order of [`Pairwise::directed`].
    pub fn total_couplings(&self, lambda: &[f64]) -> Vec<f64> {
        self.total(lambda, self.ends.len(), |term| &term.couplings)
    }

    /// `sum_k lambda_k f^k`, as `[site * q + site_value]`.
    pub fn total_fields(&self, lambda: &[f64]) -> Vec<f64> {
        self.total(lambda, self.sites * self.q, |term| &term.fields)
    }

    fn total(&self, lambda: &[f64], len: usize, part: impl Fn(&Term) -> &Vec<f64>) -> Vec<f64> {
        let mut sum = vec![0.0; len];
        for (term, &weight) in self.terms.iter().zip(lambda) {
            for (sum, value) in sum.iter_mut().zip(part(term)) {
                *sum += weight * value;
            }
        }
        sum
    }

    /// Whether no state pleases every bond at these weights: of two values, if some loop has an odd number of couplings that favour different ones; of
    /// more, if any coupling does, since "different" ties no two values together.
    pub fn frustrated(&self, lambda: &[f64]) -> bool {
        let couplings = self.total_couplings(lambda);
        if self.q > 2 {
            return couplings.iter().any(|&coupling| coupling < 0.0);
        }
        // A spanning forest of pleased bonds says which sites differ from its roots; every other bond closes a loop.
        let mut differs: Vec<Option<bool>> = vec![None; self.sites];
        let mut waiting = Vec::new();
        for root in 0..self.sites {
            if differs[root].is_some() {
                continue;
            }
            differs[root] = Some(false);
            waiting.push((root, false));
            while let Some((site, own)) = waiting.pop() {
                for bond in self.directed(site).filter(|&bond| couplings[bond] != 0.0) {
                    let (end, wanted) = (self.ends[bond] as usize, own != (couplings[bond] < 0.0));
                    match differs[end] {
                        Some(there) if there != wanted => return true,
                        Some(_) => {}
                        None => {
                            differs[end] = Some(wanted);
                            waiting.push((end, wanted));
                        }
                    }
                }
            }
        }
        false
    }

    /// Whether this is a lattice on which all sites are alike: nearest neighbours with one coupling, or bonds by [offset](Self::offsets).
    pub fn is_uniform(&self) -> bool {
        let fields =
            |term: &Term| term.fields.chunks_exact(self.q).all(|row| row == &term.fields[..self.q]);
        let couplings = |term: &Term| term.couplings.windows(2).all(|pair| pair[0] == pair[1]);
        let Some(lattice) = &self.lattice else { return false };
        let bonds = || self.terms.iter().all(couplings) && self.joins_neighbours(lattice);
        self.terms.iter().all(fields) && (!self.is_plain() || bonds())
    }

    /// Whether this is a uniform zero-field Ising model on a periodic two-dimensional lattice, and
    /// with which coupling: Kaufman's case.
    pub fn uniform_torus(&self) -> Option<(usize, usize, f64)> {
        let lattice = self.lattice.as_ref().filter(|_| self.is_plain())?;
        let &[rows, columns] = lattice.shape() else { return None };
        let [bonds] = &self.terms[..] else { return None };
        let uniform = self.interaction == Interaction::Ising
            && lattice.boundary() == Boundary::Periodic
            && bonds.fields.is_empty()
            && bonds.couplings.windows(2).all(|pair| pair[0] == pair[1])
            && self.joins_neighbours(lattice);
        uniform.then(|| (rows, columns, bonds.couplings[0] / 2.0))
    }

    /// `h[site_value] = sum_k lambda_k (f(site_value) - sum_{j: x_j = site_value} A_ij)` for every value of a site.
    #[inline]
    fn local_energies(&self, lambda: &[f64], x: &[u8], site: usize, h: &mut [f64]) {
        h.fill(0.0);
        for (term, &weight) in self.terms.iter().zip(lambda) {
            if !term.fields.is_empty() {
                let fields = &term.fields[site * self.q..][..self.q];
                for (h, field) in h.iter_mut().zip(fields) {
                    *h += weight * field;
                }
            }
            if !term.couplings.is_empty() {
                let range = self.directed(site);
                for (&end, coupling) in self.ends[range.clone()].iter().zip(&term.couplings[range])
                {
                    h[x[end as usize] as usize] -= weight * coupling;
                }
            }
        }
    }

    /// What every value of a site changes.
    #[inline]
    fn changes_at(&self, lambda: &[f64], x: &[u8], site: usize, row: &mut [f64]) {
        self.local_energies(lambda, x, site, row);
        let own = row[x[site] as usize];
        row.iter_mut().for_each(|h| *h -= own);
    }
}

/// Refuse strengths that add up to more than energies can hold.
fn overflow(key: &str, sum: f64) -> Result<()> {
    if sum.is_nan() || sum <= 1e290 {
        return Ok(()); // what is not a number is refused one by one
    }
    Err(Error::invalid(key, sum, "at most 1e290, all sites together", "use smaller numbers"))
}

impl Target for Pairwise {
    fn sites(&self) -> usize {
        self.sites
    }

    fn q(&self) -> usize {
        self.q
    }

    fn terms(&self) -> usize {
        self.terms.len()
    }

    fn term_name(&self, term: usize) -> String {
        self.terms[term].name.clone()
    }

    fn energy(&self, term: usize, x: &[u8]) -> f64 {
        let term = &self.terms[term];
        let mut energy = term.constant;
        if !term.fields.is_empty() {
            for (row, &site_value) in term.fields.chunks_exact(self.q).zip(x) {
                energy += row[site_value as usize];
            }
        }
        if !term.couplings.is_empty() {
            // Every bond appears twice; halving is exact.
            let mut twice = 0.0;
            for site in 0..self.sites {
                let site_value = x[site];
                let range = self.directed(site);
                for (&end, coupling) in self.ends[range.clone()].iter().zip(&term.couplings[range])
                {
                    if x[end as usize] == site_value {
                        twice += coupling;
                    }
                }
            }
            energy -= 0.5 * twice;
        }
        energy
    }

    fn change(&self, lambda: &[f64], x: &mut [u8], site: usize, site_value: u8) -> f64 {
        let old = x[site];
        let mut change = 0.0;
        for (term, &weight) in self.terms.iter().zip(lambda) {
            if !term.fields.is_empty() {
                let fields = &term.fields[site * self.q..][..self.q];
                change += weight * (fields[site_value as usize] - fields[old as usize]);
            }
            if !term.couplings.is_empty() {
                let range = self.directed(site);
                for (&end, coupling) in self.ends[range.clone()].iter().zip(&term.couplings[range])
                {
                    let neighbour = x[end as usize];
                    let lost = f64::from(neighbour == old) - f64::from(neighbour == site_value);
                    change += weight * coupling * lost;
                }
            }
        }
        change
    }

    fn changes(&self, lambda: &[f64], x: &mut [u8], out: &mut [f64]) {
        for (site, row) in out.chunks_exact_mut(self.q).enumerate() {
            self.changes_at(lambda, x, site, row);
        }
    }

    fn changes_after(&self, lambda: &[f64], x: &mut [u8], site: usize, out: &mut [f64]) {
        let ends = self.ends[self.directed(site)].iter().map(|&end| end as usize);
        for site in ends.chain([site]) {
            self.changes_at(lambda, x, site, &mut out[site * self.q..][..self.q]);
        }
    }

    fn lattice(&self) -> Option<&Lattice> {
        self.lattice.as_ref()
    }

    fn pairwise(&self) -> Option<&Pairwise> {
        Some(self)
    }
}
