//! Instances: energies as files have them, in one form for all formats.

mod bqm;
mod coo;
mod edges;
mod format;
mod lines;
mod offsets;
mod place;
mod qubo;
mod rudy;
mod sparse;
#[cfg(test)]
mod tests;
mod words;

use std::path::Path;
use std::sync::Arc;

use super::{Interaction, Lattice, LatticeModel, Pairwise, Target};
use crate::file::{self, TEXT};
use crate::{Error, Result};

pub use format::Format;
pub use place::PlacedBonds;
pub(crate) use sparse::{FIELD, OFFSET};

/// What the variables of an instance are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Variables {
    /// -1 and +1.
    Spins,
    /// 0 and 1.
    Bits,
    /// One of so many values.
    Potts(usize),
}

/// An energy of pairs, and of clusters of more variables where a file has such.
///
/// $$E(v) = c + \sum_i h_i v_i + \sum_{ij} w_{ij} v_i v_j + \sum_{ijk} w_{ijk} v_i v_j v_k + \dots$$
///
/// with spins $v = \pm 1$ or bits $v \in \\{0, 1\\}$; for Potts values $v_i v_j$ stands for $[x_i = x_j]$, $v_i v_j v_k$ for
/// $[x_i = x_j = x_k]$ and $v_i$ for $[x_i = 0]$. The constant is kept, so that energies and log Z are those of the file's own Hamiltonian.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    /// What the variables are.
    pub variables: Variables,
    /// How many there are.
    pub sites: usize,
    /// Pairs of different variables and their weights; those of one pair add up.
    pub pairs: Vec<(u32, u32, f64)>,
    /// Clusters of three and more different variables and their weights; only our own format has them.
    pub clusters: Vec<(Vec<u32>, f64)>,
    /// One for each variable, or none at all.
    pub fields: Vec<f64>,
    /// The same for all states.
    pub constant: f64,
    /// The lattice that a file names.
    pub lattice: Option<Lattice>,
}

/// Most variables of a file.
const MAX_SITES: u64 = 1 << 24;
/// Variables that a file of any length may have; beyond them it needs a byte for each.
const ALWAYS: u64 = 4096;

/// Whether a file of so many bytes may have so many variables, else why not: bounds the memory that a hostile one can ask for.
fn too_many(sites: u64, bytes: usize) -> Option<String> {
    let most = MAX_SITES.min(ALWAYS + bytes as u64);
    match sites {
        0 => Some("no variable".to_owned()),
        _ if sites > most => {
            Some(format!("{sites} variables are more than a file of {bytes} bytes can have"))
        }
        _ => None,
    }
}

impl Instance {
    /// Read a file of any format, recognised by its contents unless it is given; the format is returned too.
    ///
    /// # Errors
    /// A file that cannot be read, or [`Error::Parse`] and [`Error::Corrupt`] with the name of the format and the place.
    pub fn read(path: &Path, format: Option<Format>) -> Result<(Self, Format)> {
        Self::parse(file::read(path, TEXT)?, path, format)
    }

    /// Parse the bytes of a file; `path` is for messages.
    ///
    /// # Errors
    /// As [`read`](Self::read) has them.
    pub fn parse(bytes: Vec<u8>, path: &Path, format: Option<Format>) -> Result<(Self, Format)> {
        let format = match format {
            Some(format) => format,
            None => format::recognise(&bytes, path)?,
        };
        let mut instance = match format {
            Format::Npz | Format::NpzQubo => sparse::parse(&bytes, path, format),
            _ => {
                let source = lines::Source { path, format, bytes: bytes.len() };
                let text = file::text(bytes, path)?;
                let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
                match format {
                    Format::Rudy => rudy::parse(text, &source),
                    Format::MqlibQubo => rudy::parse_qubo(text, &source),
                    Format::Coo | Format::CooSpin | Format::CooBinary => coo::parse(text, &source),
                    Format::Bqm => bqm::parse(text, &source),
                    Format::Qubo => qubo::parse(text, &source),
                    _ => edges::parse(text, &source),
                }
            }
        }?;
        if instance.fields.iter().all(|&h| h == 0.0) {
            instance.fields.clear();
        }
        Ok((instance, format))
    }

    /// The text of a file of some format; [`Format::Npz`] and [`Format::NpzQubo`] have none, see
    /// [`write_instance`](crate::store::write_instance).
    ///
    /// # Errors
    /// What the format cannot say: fields in a graph's file, more than two values.
    pub fn to_text(&self, format: Format) -> Result<String> {
        self.check_format(format)?;
        match format {
            Format::Edges => Ok(edges::to_text(self)),
            Format::Rudy => rudy::to_text(self),
            Format::MqlibQubo => rudy::qubo_to_text(self),
            Format::Coo | Format::CooSpin | Format::CooBinary => coo::to_text(self, format),
            Format::Bqm => bqm::to_text(self),
            Format::Qubo => qubo::to_text(self),
            Format::Npz | Format::NpzQubo => {
                Err(Error::not_applicable(format.title(), "it is no text but an archive of arrays"))
            }
        }
    }

    /// The energy of a state, whose values are 0 (spin -1, bit 0) to `q - 1`.
    pub fn energy(&self, x: &[u8]) -> f64 {
        let pair = |&(i, j, w): &(u32, u32, f64)| {
            let (a, b) = (x[i as usize], x[j as usize]);
            w * match self.variables {
                Variables::Spins => spin(a) * spin(b),
                Variables::Bits => f64::from(a * b),
                Variables::Potts(_) => f64::from(a == b),
            }
        };
        let field = |(&h, &a): (&f64, &u8)| {
            h * match self.variables {
                Variables::Spins => spin(a),
                Variables::Bits => f64::from(a),
                Variables::Potts(_) => f64::from(a == 0),
            }
        };
        let cluster = |(own, w): &(Vec<u32>, f64)| {
            let values = own.iter().map(|&i| x[i as usize]);
            w * match self.variables {
                Variables::Spins => values.map(spin).product(),
                Variables::Bits => values.map(f64::from).product(),
                Variables::Potts(_) => {
                    let first = own.first().map(|&i| x[i as usize]);
                    f64::from(values.map(Some).all(|value| value == first))
                }
            }
        };
        let fields: f64 = self.fields.iter().zip(x).map(field).sum();
        let clusters: f64 = self.clusters.iter().map(cluster).sum();
        self.constant + fields + self.pairs.iter().map(pair).sum::<f64>() + clusters
    }

    /// Values of a variable.
    pub fn q(&self) -> usize {
        match self.variables {
            Variables::Potts(q) => q,
            _ => 2,
        }
    }

    /// The fields, zeros if there are none.
    pub(crate) fn all_fields(&self) -> Vec<f64> {
        if self.fields.is_empty() { vec![0.0; self.sites] } else { self.fields.clone() }
    }

    /// Every pair once, the smaller site first, in order.
    pub(crate) fn merged(&self) -> Vec<(u32, u32, f64)> {
        let mut pairs: Vec<_> =
            self.pairs.iter().map(|&(i, j, w)| (i.min(j), i.max(j), w)).collect();
        pairs.sort_by_key(|pair| (pair.0, pair.1));
        pairs.dedup_by(|next, kept| {
            let same = (next.0, next.1) == (kept.0, kept.1);
            if same {
                kept.2 += next.2;
            }
            same
        });
        pairs
    }

    /// The same with the sites of clusters in order, every cluster once.
    pub(crate) fn merged_clusters(&self) -> Vec<(Vec<u32>, f64)> {
        let mut all = self.clusters.clone();
        all.iter_mut().for_each(|(own, _)| own.sort_unstable());
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
        all
    }

    /// Refuse clusters where a format has pairs alone.
    ///
    /// # Errors
    /// Clusters of three and more variables in any format but our own.
    pub(crate) fn check_format(&self, format: Format) -> Result<()> {
        match (self.clusters.first(), format) {
            (None, _) | (_, Format::Edges) => Ok(()),
            (Some((own, _)), _) => Err(not_pairs(format.title(), own.len())),
        }
    }

    /// The same energy of spins.
    ///
    /// # Errors
    /// More than two values, and clusters that are not of spins already.
    pub fn spins(&self) -> Result<Self> {
        // v = a + b s for fields, and v v' = a + b (s + s') + c s s' for pairs.
        let ((f0, f1), (p0, p1, p2)) = match self.variables {
            Variables::Spins => return Ok(self.clone()),
            Variables::Bits => ((0.5, 0.5), (0.25, 0.25, 0.25)),
            Variables::Potts(2) => ((0.5, -0.5), (0.5, 0.0, 0.5)),
            Variables::Potts(_) => return Err(self.not_binary()),
        };
        self.changed(Variables::Spins, (f0, f1), (p0, p1, p2))
    }

    /// The same energy of bits.
    ///
    /// # Errors
    /// More than two values, and clusters that are not of bits already.
    pub fn bits(&self) -> Result<Self> {
        match self.variables {
            Variables::Bits => Ok(self.clone()),
            Variables::Spins => self.changed(Variables::Bits, (-1.0, 2.0), (1.0, -2.0, 4.0)),
            Variables::Potts(_) => self.spins()?.bits(),
        }
    }

    fn not_binary(&self) -> Error {
        let reason = format!("the variables have {} values; only edges can say that", self.q());
        Error::not_applicable("a format of spins and bits", reason)
    }

    fn changed(
        &self,
        variables: Variables,
        field: (f64, f64),
        pair: (f64, f64, f64),
    ) -> Result<Self> {
        if let Some((own, _)) = self.clusters.first() {
            return Err(not_pairs("a change between spins and bits", own.len()));
        }
        let mut constant = self.constant;
        let mut fields = self.all_fields();
        for h in &mut fields {
            constant += field.0 * *h;
            *h *= field.1;
        }
        let mut pairs = self.pairs.clone();
        for (i, j, w) in &mut pairs {
            constant += pair.0 * *w;
            fields[*i as usize] += pair.1 * *w;
            fields[*j as usize] += pair.1 * *w;
            *w *= pair.2;
        }
        if fields.iter().all(|&h| h == 0.0) {
            fields.clear();
        }
        Ok(Instance {
            variables,
            sites: self.sites,
            pairs,
            clusters: Vec::new(),
            fields,
            constant,
            lattice: self.lattice.clone(),
        })
    }

    /// The target that the instance is: a pairwise model, or one of clusters.
    ///
    /// # Errors
    /// Those of [`model`](Self::model), and clusters of too many variables.
    pub fn target(&self) -> Result<Arc<dyn Target>> {
        if self.clusters.is_empty() {
            return Ok(Arc::new(self.model()?));
        }
        let interaction = match self.variables {
            Variables::Spins => Interaction::Ising,
            Variables::Potts(_) => Interaction::Potts,
            Variables::Bits => return Err(not_pairs("bits", self.clusters[0].0.len())),
        };
        let pairs = self.merged().into_iter().map(|(i, j, w)| (vec![i, j], 0.0 - w));
        let clusters = self.merged_clusters().into_iter().map(|(own, w)| (own, 0.0 - w));
        let all: Vec<_> = pairs.chain(clusters).collect();
        let q = self.q();
        let mut model = LatticeModel::on_graph(interaction, self.sites, q, &all)?;
        if let Some(lattice) = &self.lattice {
            model = model.placed_on(lattice.clone());
        }
        if self.constant != 0.0 {
            // What no value changes is an energy of any site.
            let mut everywhere = vec![0.0; self.sites * q];
            everywhere[..q].fill(self.constant);
            model = model.with_site_energies("bonds", &everywhere)?;
        }
        if !self.fields.is_empty() {
            let of = |h: f64, value: usize| match interaction {
                Interaction::Ising => h * (2.0 * value as f64 - 1.0),
                Interaction::Potts => h * f64::from(value == 0),
            };
            let energies = self.fields.iter().flat_map(|&h| (0..q).map(move |value| of(h, value)));
            model = model.with_site_energies("field", &energies.collect::<Vec<_>>())?;
        }
        Ok(Arc::new(model))
    }

    /// The pairwise model that the instance is, on a lattice if it is one: see [`recognised`](Self::recognised).
    ///
    /// # Errors
    /// Weights that are not finite or add up to too much, numbers of values outside 2 to 255, and clusters of more than two variables.
    pub fn model(&self) -> Result<Pairwise> {
        if let Some((own, _)) = self.clusters.first() {
            return Err(not_pairs("a pairwise model", own.len()));
        }
        let own = match self.variables {
            Variables::Bits => self.spins()?.with_even_fields(),
            _ => self.clone(),
        };
        let interaction = match own.variables {
            Variables::Potts(_) => Interaction::Potts,
            _ => Interaction::Ising,
        };
        let (sites, q) = (own.sites, own.q());
        let build = |edges: &[_]| Pairwise::from_edges(interaction, sites, q, edges);
        let listed: Vec<_> = own.pairs.iter().map(|&(i, j, w)| (i, j, 0.0 - w)).collect();
        let mut model = match own.recognised() {
            None => build(&listed)?,
            Some((lattice, PlacedBonds::Others)) => build(&listed)?.on_lattice(lattice),
            Some((lattice, PlacedBonds::Offsets(bonds))) => {
                Pairwise::from_bonds(interaction, lattice, q, &bonds)?
            }
            Some((lattice, PlacedBonds::Nearest(couplings))) => {
                let bonds = lattice.bonds().into_iter().zip(couplings);
                let edges: Vec<_> = bonds.map(|((i, j), coupling)| (i, j, coupling)).collect();
                build(&edges)?.on_lattice(lattice)
            }
        };
        model = model.with_constant(own.constant)?;
        if own.fields.is_empty() { Ok(model) } else { model.with_fields(&own.fields) }
    }
}

/// A cluster of so many variables where only pairs have a place.
fn not_pairs(what: &str, variables: usize) -> Error {
    let reason =
        format!("the instance has a term of {variables} variables; only edges can say that");
    Error::not_applicable(what, reason)
}

fn spin(value: u8) -> f64 {
    2.0 * f64::from(value) - 1.0
}
