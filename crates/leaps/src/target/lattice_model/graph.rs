//! Clusters of a graph: products of any number of spins or agreements of any number of values, each with a strength of its own.

use super::{ClusterTable, LatticeModel, Link, MAX_MEMBERS, MAX_TABLE};
use crate::target::lattice_model::ISING;
use crate::target::{Interaction, Lattice};
use crate::{Error, Result, finite};

/// The sites of a cluster and its strength.
pub type Product = (Vec<u32>, f64);

impl LatticeModel {
    /// The most sites of a cluster of sites with `q` values.
    pub fn most_places(q: usize) -> usize {
        (1..).take_while(|&n| q.checked_pow(n).is_some_and(|table| table <= MAX_TABLE)).count()
    }

    /// A model on any graph: the energy `-J` times the product of the spins of a cluster, or `-J` if all its values are equal, for clusters of two and
    /// more different sites.
    ///
    /// # Errors
    /// Clusters of one site, of too many or of one twice, sites that are not there, and strengths that are not finite.
    ///
    /// # Example
    /// ```
    /// use leaps::target::{Interaction, LatticeModel, Target};
    ///
    /// let clusters = [(vec![0, 1, 2], 1.0), (vec![2, 3], -0.5)];
    /// let model = LatticeModel::on_graph(Interaction::Ising, 4, 2, &clusters)?;
    /// assert_eq!(model.energy(0, &[1, 0, 0, 1]), -1.0 - 0.5);
    /// # Ok::<(), leaps::Error>(())
    /// ```
    pub fn on_graph(
        interaction: Interaction,
        sites: usize,
        q: usize,
        clusters: &[Product],
    ) -> Result<Self> {
        if interaction == Interaction::Ising && q != 2 {
            return Err(Error::invalid("q", q, "2 for Ising spins", "use potts"));
        }
        check(sites, q, clusters)?;
        let mut places: Vec<usize> = clusters.iter().map(|(own, _)| own.len()).collect();
        places.sort_unstable();
        places.dedup();
        let table = |&places: &usize| {
            let offsets = vec![Vec::new(); places];
            match interaction {
                Interaction::Ising => ClusterTable::product("bonds", &offsets, 1.0, &ISING),
                Interaction::Potts => {
                    let all = q.pow(places as u32);
                    // The codes of states of one value are multiples of 1 + q + q^2 + ...
                    let step = (all - 1) / (q - 1);
                    let equal = |code: usize| if code.is_multiple_of(step) { -1.0 } else { 0.0 };
                    ClusterTable::new("bonds", &offsets, (0..all).map(equal).collect())
                }
            }
        };
        let mut model = LatticeModel {
            name: "model of clusters".to_owned(),
            sites,
            lattice: None,
            q,
            terms: vec!["bonds".to_owned()],
            tables: places.iter().map(table).collect(),
            site_energies: vec![Vec::new()],
            views: Vec::new(),
            starts: vec![0; sites + 1],
            links: Vec::new(),
            others: Vec::new(),
            vectors: None,
            site_means: Vec::new(),
            pairwise: None,
        };
        model.see();
        let view = |places: usize, place: usize| {
            let same = |view: &super::View| (view.place, view.others.len() + 1) == (place, places);
            model.views.iter().position(same).unwrap_or(0) as u32
        };
        // Of a site's clusters those come first that have it at their first place.
        let mut met: Vec<(u32, u32, u32)> = Vec::new();
        for (number, (own, _)) in clusters.iter().enumerate() {
            let seen = own.iter().enumerate();
            met.extend(seen.map(|(place, &site)| (site, view(own.len(), place), number as u32)));
        }
        met.sort_unstable();
        for (site, view, number) in met {
            let (own, scale) = &clusters[number as usize];
            let first = model.others.len() as u32;
            model.links.push(Link { view, first, scale: *scale });
            model.others.extend(own.iter().filter(|&&other| other != site));
            model.starts[site as usize + 1] += 1;
        }
        for site in 0..sites {
            model.starts[site + 1] += model.starts[site];
        }
        Ok(model)
    }

    /// The model with its sites placed on a lattice of as many, for correlation functions.
    ///
    /// # Panics
    /// If the lattice has another number of sites.
    pub(in crate::target) fn placed_on(self, lattice: Lattice) -> Self {
        assert_eq!(lattice.sites(), self.sites);
        LatticeModel { lattice: Some(lattice), ..self }
    }
}

fn check(sites: usize, q: usize, clusters: &[Product]) -> Result<()> {
    let refuse = |shown: String, condition: String| {
        Err(Error::invalid("cluster", shown, condition, "sites are numbered from 0"))
    };
    if !(2..=255).contains(&q) {
        return refuse(format!("q = {q}"), "from 2 to 255".to_owned());
    }
    let most = LatticeModel::most_places(q);
    let mut members = 0;
    for (own, strength) in clusters {
        let shown = || format!("{:?}", &own[..own.len().min(8)]);
        if !(2..=most).contains(&own.len()) {
            return refuse(shown(), format!("of 2 to {most} sites with {q} values each"));
        }
        let mut sorted = own.clone();
        sorted.sort_unstable();
        let twice = sorted.windows(2).any(|pair| pair[0] == pair[1]);
        if twice || own.iter().any(|&site| site as usize >= sites) {
            return refuse(shown(), format!("of different sites below {sites}"));
        }
        finite("coupling", *strength)?;
        members += own.len().pow(2);
    }
    if members > MAX_MEMBERS {
        return refuse(format!("{members} places"), format!("at most {MAX_MEMBERS} in all"));
    }
    let sum: f64 = clusters.iter().map(|(_, strength)| strength.abs()).sum();
    match sum <= 1e290 {
        true => Ok(()),
        false => refuse(format!("strengths of {sum}"), "at most 1e290 in all".to_owned()),
    }
}
