//! Lattice models: tables of energies over clusters of sites, the same all over a lattice.
//!
//! A cluster is a list of offsets $r$ from a site: one (a site energy), two (a pair, whose table need not be symmetric), three, a
//! plaquette. Blume and Capel's model, clocks, Baxter and Wu's, lattice gases and Ashkin and Teller's are such models; see
//! [`LatticeModel`]'s constructors. Clusters that differ from site to site, as files have them, are models of the same type. Models
//! whose tables are those of Ising or Potts pairs are [`Pairwise`] as well, and have all that those have.

mod energy;
mod graph;
mod named;
mod reduce;
mod symmetry;
#[cfg(test)]
mod tests;

pub(super) use named::ISING;

use super::{Boundary, Lattice, Pairwise};
use crate::{Error, Result, finite};

/// The key that errors name.
pub(super) const KEY: &str = "target.interactions";
/// Sites of all clusters together: their lists would fill the memory.
const MAX_MEMBERS: usize = 1 << 28;
/// Energies of one table.
const MAX_TABLE: usize = 1 << 20;

/// Energies of a cluster of sites, one for every combination of their values.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterTable {
    /// The energy term that it is a part of.
    pub term: String,
    /// The places of the cluster's sites from any site of the lattice, a coordinate for each axis.
    pub offsets: Vec<Vec<i64>>,
    /// The energies; the value at the first place varies slowest: $V(s, s')$ is `energies[s * q + s']`.
    pub energies: Vec<f64>,
}

impl ClusterTable {
    /// Any energies.
    pub fn new(term: impl Into<String>, offsets: &[Vec<i64>], energies: Vec<f64>) -> Self {
        ClusterTable { term: term.into(), offsets: offsets.to_vec(), energies }
    }

    /// The energy `-strength` times the product of the spins, where value `x` is the spin `spins[x]`.
    pub fn product(
        term: impl Into<String>,
        offsets: &[Vec<i64>],
        strength: f64,
        spins: &[f64],
    ) -> Self {
        let mut energies = vec![-strength];
        for _ in offsets {
            energies = energies.iter().flat_map(|e| spins.iter().map(move |s| e * s)).collect();
        }
        Self::new(term, offsets, energies)
    }
}

/// What stands at one place of a cluster, seen from there.
#[derive(Clone, Debug, PartialEq)]
struct View {
    /// The table of its energies.
    table: u32,
    /// The term that the table is a part of.
    term: u32,
    /// Which of the cluster's places this is.
    place: usize,
    /// How far apart energies of two values at this place are in the table.
    stride: usize,
    /// The same for the other places.
    others: Vec<usize>,
}

/// A cluster through a site.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Link {
    view: u32,
    /// Where the list of its other sites begins.
    first: u32,
    /// What the energies of the table are multiplied by.
    scale: f64,
}

/// Sites with `q` values on a lattice, and tables of energies over clusters of them.
///
/// $$E_k(x) = \sum_{c \in k} \sum_i V_c(x_{i+r_1}, \dots, x_{i+r_n}) + \sum_i f^k_i(x_i)$$
///
/// # Example
/// A chain in which a 1 to the right of a 0 costs energy, and a 0 to the right of a 1 does not:
/// ```
/// use leaps::target::{Boundary, ClusterTable, Lattice, LatticeModel, Target};
///
/// let chain = Lattice::new(&[4], Boundary::Free)?;
/// let pair = ClusterTable::new("bonds", &[vec![0], vec![1]], vec![0.0, 1.5, 0.0, 0.0]);
/// let model = LatticeModel::new(chain, 2, vec![pair])?;
/// assert_eq!(model.energy(0, &[0, 1, 0, 1]), 3.0);
/// assert_eq!(model.energy(0, &[1, 1, 0, 0]), 0.0);
/// # Ok::<(), leaps::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct LatticeModel {
    name: String,
    sites: usize,
    /// None if the clusters are those of a graph without one.
    lattice: Option<Lattice>,
    q: usize,
    terms: Vec<String>,
    tables: Vec<ClusterTable>,
    /// Of every term, `[site * q + value]`; empty if it has none.
    site_energies: Vec<Vec<f64>>,
    /// Places of clusters of two and more sites, first places first.
    views: Vec<View>,
    /// Links of site `i` are `starts[i]..starts[i + 1]`, in the order of the views.
    starts: Vec<u32>,
    links: Vec<Link>,
    /// The other sites of the links.
    others: Vec<u32>,
    /// What values are in the order parameter, if that is not Ising's or Potts's.
    vectors: Option<Vec<[f64; 2]>>,
    /// Further averages over sites that users look at.
    site_means: Vec<SiteMean>,
    pairwise: Option<Pairwise>,
}

/// An average over the sites of a number for every value, such as the density of a lattice gas.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteMean {
    /// What it is called in results.
    pub name: &'static str,
    /// The number of every value.
    pub values: Vec<f64>,
}

impl LatticeModel {
    /// The model with these tables at every site. Terms come in the order in which tables name them. On free edges, clusters that do
    /// not fit into the lattice are left out.
    ///
    /// # Errors
    /// Tables of another length than `q` to the number of places, offsets of another number of axes, places that fall on the same site
    /// of a short periodic axis, and energies that are not finite.
    pub fn new(lattice: Lattice, q: usize, tables: Vec<ClusterTable>) -> Result<Self> {
        if !(2..=255).contains(&q) {
            return Err(Error::invalid("target.q", q, "from 2 to 255", "a site needs a choice"));
        }
        let mut model = LatticeModel {
            name: "lattice model".to_owned(),
            sites: lattice.sites(),
            lattice: None,
            q,
            terms: Vec::new(),
            tables: Vec::new(),
            site_energies: Vec::new(),
            views: Vec::new(),
            starts: vec![0; lattice.sites() + 1],
            links: Vec::new(),
            others: Vec::new(),
            vectors: None,
            site_means: Vec::new(),
            pairwise: None,
        };
        if tables.is_empty() {
            let advice = "give at least one, such as offsets [[0, 0], [0, 1]] with strength 1";
            return Err(Error::invalid(KEY, "(none)", "a list of interactions", advice));
        }
        for table in &tables {
            model.check(&lattice, table)?;
        }
        for table in tables {
            let term = model.term(&table.term);
            if let [place] = &table.offsets[..] {
                let mut energies = vec![0.0; model.sites * q];
                for site in 0..model.sites {
                    if let Some(at) = lattice.at(site, place) {
                        energies[at * q..][..q].copy_from_slice(&table.energies);
                    }
                }
                model.add_site_energies(term, &energies);
            }
            model.tables.push(table);
        }
        model.link(&lattice)?;
        model.lattice = Some(lattice);
        model.pairwise = model.reduced();
        Ok(model)
    }

    /// The model under another name, for results.
    pub fn named(self, name: impl Into<String>) -> Self {
        LatticeModel { name: name.into(), ..self }
    }

    /// The model with an energy for every site and value, `[site * q + value]`, as the term `term` or a part of it.
    ///
    /// # Errors
    /// Another number of energies, or such that are not finite.
    pub fn with_site_energies(mut self, term: &str, energies: &[f64]) -> Result<Self> {
        let all = self.sites * self.q;
        if energies.len() != all {
            let condition = format!("{all}: one for every value of every site");
            let shown = format!("{} energies", energies.len());
            return Err(Error::invalid(term, shown, condition, "give the full list"));
        }
        energies.iter().try_for_each(|&energy| finite(term, energy).map(drop))?;
        let term = self.term(term);
        self.add_site_energies(term, energies);
        self.pairwise = self.reduced();
        Ok(self)
    }

    /// The model with an order parameter: the mean over the sites of a vector for every value, whose second components are 0 if it is a
    /// plain number.
    ///
    /// # Panics
    /// Unless there is one vector for every value.
    pub fn with_vectors(self, vectors: Vec<[f64; 2]>) -> Self {
        assert_eq!(vectors.len(), self.q, "one vector for every value");
        LatticeModel { vectors: Some(vectors), ..self }
    }

    /// The model with another average over sites that results show.
    ///
    /// # Panics
    /// Unless it has one number for every value.
    pub fn with_site_mean(mut self, mean: SiteMean) -> Self {
        assert_eq!(mean.values.len(), self.q, "one number for every value");
        self.site_means.push(mean);
        self
    }

    /// The tables, as they were given.
    pub fn tables(&self) -> &[ClusterTable] {
        &self.tables
    }

    /// The number of clusters through a site, at most.
    pub fn max_degree(&self) -> usize {
        self.starts.windows(2).map(|pair| (pair[1] - pair[0]) as usize).max().unwrap_or(0)
    }

    /// The number of clusters of two and more sites.
    pub fn clusters(&self) -> usize {
        self.heads().count()
    }

    /// The other sites of the clusters through a site, with repetition.
    pub fn neighbours(&self, site: usize) -> impl Iterator<Item = u32> {
        self.links(site).iter().flat_map(|link| self.others(link).1).copied()
    }

    /// A number that no energy of the model is below: every cluster and every site at its best.
    pub fn energy_bound(&self) -> f64 {
        let lowest = |row: &[f64], scale: f64| {
            row.iter().map(|energy| scale * energy).fold(f64::INFINITY, f64::min)
        };
        let clusters: f64 =
            self.heads().map(|(link, view)| lowest(self.energies_of(view), link.scale)).sum();
        let rows = self.site_energies.iter().flat_map(|term| term.chunks_exact(self.q));
        clusters + rows.map(|row| lowest(row, 1.0)).sum::<f64>()
    }

    /// Every number that energies are sums of, without its sign, once for every cluster and site.
    pub(crate) fn sizes(&self) -> Vec<f64> {
        let largest =
            |row: &[f64]| row.iter().fold(0.0, |most: f64, e| most.max((e - row[0]).abs()));
        let size =
            |(link, view): (&Link, &View)| largest(self.energies_of(view)) * link.scale.abs();
        let mut sizes: Vec<f64> = self.heads().map(size).collect();
        let rows = self.site_energies.iter().flat_map(|term| term.chunks_exact(self.q));
        sizes.extend(rows.map(largest));
        sizes
    }

    /// Every cluster once, as seen from its first site.
    fn heads(&self) -> impl Iterator<Item = (&Link, &View)> {
        let seen = self.links.iter().map(|link| (link, &self.views[link.view as usize]));
        seen.filter(|(_, view)| view.place == 0)
    }

    fn energies_of(&self, view: &View) -> &[f64] {
        &self.tables[view.table as usize].energies
    }

    /// The number of a term, which is a new one if it has a new name.
    fn term(&mut self, name: &str) -> usize {
        if let Some(term) = self.terms.iter().position(|own| own == name) {
            return term;
        }
        self.terms.push(name.to_owned());
        self.site_energies.push(Vec::new());
        self.terms.len() - 1
    }

    fn add_site_energies(&mut self, term: usize, energies: &[f64]) {
        let own = &mut self.site_energies[term];
        own.resize(energies.len(), 0.0);
        own.iter_mut().zip(energies).for_each(|(own, more)| *own += more);
    }

    fn check(&self, lattice: &Lattice, table: &ClusterTable) -> Result<()> {
        let axes = lattice.shape().len();
        let shown = || format!("offsets {:?}", table.offsets);
        if table.offsets.is_empty() || table.offsets.iter().any(|offset| offset.len() != axes) {
            let condition = format!("places of {axes} coordinates each, one for every axis");
            return Err(Error::invalid(KEY, shown(), condition, "the first is usually all zeros"));
        }
        let far = |coordinate: &i64| coordinate.unsigned_abs() > u64::from(u32::MAX);
        if table.offsets.iter().flatten().any(far) {
            let condition = "coordinates within the lattice";
            return Err(Error::invalid(KEY, shown(), condition, "use smaller offsets"));
        }
        let places = table.offsets.len();
        let wanted = u32::try_from(places).ok().and_then(|n| self.q.checked_pow(n));
        let Some(wanted) = wanted.filter(|&wanted| wanted <= MAX_TABLE) else {
            let condition = format!("at most {MAX_TABLE} energies, q to the number of places");
            return Err(Error::invalid(KEY, shown(), condition, "use smaller clusters"));
        };
        if table.energies.len() != wanted {
            let condition = format!(
                "{wanted} energies: one for every combination of {} values at {places} places",
                self.q
            );
            let given = format!("{} energies", table.energies.len());
            return Err(Error::invalid(KEY, given, condition, "give the full table"));
        }
        table.energies.iter().try_for_each(|&energy| finite(KEY, energy).map(drop))?;
        let sum = table.energies.iter().fold(0.0, |most: f64, e| most.max(e.abs()));
        if sum * self.sites as f64 > 1e290 {
            return Err(Error::invalid(
                KEY,
                sum,
                "at most 1e290, all sites together",
                "use smaller numbers",
            ));
        }
        let apart = |a: &Vec<i64>, b: &Vec<i64>| match lattice.boundary() {
            Boundary::Free => a != b,
            Boundary::Periodic => {
                let sides = lattice.shape().iter();
                a.iter().zip(b).zip(sides).any(|((a, b), &side)| (a - b) % side as i64 != 0)
            }
        };
        let pairs = (0..places).flat_map(|j| (0..j).map(move |i| (i, j)));
        if let Some((i, j)) =
            pairs.into_iter().find(|&(i, j)| !apart(&table.offsets[i], &table.offsets[j]))
        {
            let condition = format!(
                "places on different sites, which {:?} and {:?} are not",
                table.offsets[i], table.offsets[j]
            );
            return Err(Error::invalid(KEY, shown(), condition, "use a larger lattice"));
        }
        Ok(())
    }

    /// The sites of every cluster of a table; none without a lattice.
    pub(crate) fn placed<'a>(
        &'a self,
        table: &'a ClusterTable,
    ) -> impl Iterator<Item = Vec<usize>> + 'a {
        let clusters = move |lattice: &'a Lattice| {
            let cluster = move |site| table.offsets.iter().map(|r| lattice.at(site, r)).collect();
            (0..self.sites).filter_map(cluster)
        };
        self.lattice.as_ref().into_iter().flat_map(clusters)
    }

    /// Find the clusters through every site.
    fn link(&mut self, lattice: &Lattice) -> Result<()> {
        let members: usize = self.tables.iter().map(|table| table.offsets.len().pow(2)).sum();
        if members.saturating_mul(self.sites) > MAX_MEMBERS {
            let condition = format!("at most {MAX_MEMBERS} places of clusters on the lattice");
            let given = format!("{members} for each of {} sites", self.sites);
            return Err(Error::invalid(KEY, given, condition, "use a smaller lattice"));
        }
        self.see();
        for site in 0..self.sites {
            for (number, view) in self.views.iter().enumerate() {
                let offsets = &self.tables[view.table as usize].offsets;
                let back: Vec<i64> = offsets[view.place].iter().map(|step| -step).collect();
                let Some(cluster) = lattice.at(site, &back).and_then(|base| {
                    let places = offsets.iter().map(|offset| lattice.at(base, offset));
                    places.collect::<Option<Vec<usize>>>()
                }) else {
                    continue;
                };
                let first = self.others.len() as u32;
                self.links.push(Link { view: number as u32, first, scale: 1.0 });
                let others = cluster.iter().enumerate().filter(|(place, _)| *place != view.place);
                self.others.extend(others.map(|(_, &other)| other as u32));
            }
            self.starts[site + 1] = self.links.len() as u32;
        }
        Ok(())
    }

    /// Find what stands at the places of the tables, first places first.
    fn see(&mut self) {
        let most = self.tables.iter().map(|table| table.offsets.len()).max().unwrap_or(0);
        for place in 0..most {
            for (number, table) in self.tables.iter().enumerate() {
                let places = table.offsets.len();
                if places < 2 || place >= places {
                    continue;
                }
                let stride = |place: usize| self.q.pow((places - 1 - place) as u32);
                let term = self.terms.iter().position(|name| *name == table.term);
                self.views.push(View {
                    table: number as u32,
                    term: term.unwrap_or(0) as u32,
                    place,
                    stride: stride(place),
                    others: (0..places).filter(|&other| other != place).map(stride).collect(),
                });
            }
        }
    }
}
