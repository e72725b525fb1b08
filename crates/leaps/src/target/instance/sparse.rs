//! Sparse matrices as `scipy.sparse.save_npz` writes them: `coo`, `csr` or `csc`, stored or deflated.
//!
//! Of spins the matrix has the couplings, $E = -\sum_{i<j} J_{ij} s_i s_j$: it is symmetric or has every pair once, and its diagonal is zero.
//! As a QUBO it is $E = x^T Q x$, all entries as they stand. Arrays `field` and `offset`, which SciPy does not look at, are ours: a field $+h_i s_i$ for
//! every spin, and a constant.

use std::path::Path;

use super::lines::Source;
use super::{Format, Instance, Variables, too_many};
use crate::Result;
use crate::file::npy::Npy;
use crate::file::zip::{Fault, Zip};

/// The array of fields.
pub(crate) const FIELD: &str = "field";
/// The array of the constant.
pub(crate) const OFFSET: &str = "offset";

/// Rows, columns and values of a matrix, and how many rows it has.
struct Entries {
    rows: Vec<u64>,
    columns: Vec<u64>,
    values: Vec<f64>,
    sites: u64,
}

/// An archive and where it comes from.
struct Arrays<'a> {
    zip: Zip<'a>,
    source: &'a Source<'a>,
}

impl Arrays<'_> {
    /// Read an array, by one of the ways that [`Npy`] has.
    fn read<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Npy<'_>) -> std::result::Result<T, String>,
    ) -> Result<T> {
        let wrong = |fault: Fault| self.source.corrupt(&fault.what, fault.reason);
        let bytes = self.zip.contents(&format!("{name}.npy")).map_err(wrong)?;
        let found = Npy::parse(&bytes).and_then(|array| read(&array));
        found.map_err(|reason| self.source.corrupt(name, reason))
    }

    fn indices(&self, name: &str) -> Result<Vec<u64>> {
        self.read(name, |array| array.indices())
    }

    fn numbers(&self, name: &str) -> Result<Vec<f64>> {
        self.read(name, |array| array.numbers())
    }

    fn has(&self, name: &str) -> bool {
        self.zip.entry(&format!("{name}.npy")).is_some()
    }

    /// What the matrix has.
    fn entries(&self) -> Result<Entries> {
        let source = self.source;
        if !self.has("format") {
            let reason = "the array is missing; is this a file of scipy.sparse.save_npz?";
            return Err(source.corrupt("format", reason));
        }
        let format = self.read("format", |array| array.text().ok_or("it is no text".into()))?;
        let shape = self.indices("shape")?;
        let &[sites, columns] = &shape[..] else {
            return Err(source.corrupt("shape", "it is not that of a matrix"));
        };
        if sites != columns {
            return Err(source.corrupt("shape", format!("{sites} x {columns} is no square")));
        }
        let values = self.numbers("data")?;
        let (rows, columns) = match format.as_str() {
            "coo" => (self.indices("row")?, self.indices("col")?),
            "csr" | "csc" => {
                let inner = self.indices("indices")?;
                let starts = self.indices("indptr")?;
                let outer = outer(&starts, sites, inner.len()).ok_or_else(|| {
                    source.corrupt("indptr", "it does not rise from 0 to the number of entries")
                })?;
                if format == "csr" { (outer, inner) } else { (inner, outer) }
            }
            other => {
                let reason = format!("'{other}' is not read; use coo, csr or csc");
                return Err(source.corrupt("format", reason));
            }
        };
        if rows.len() != values.len() || columns.len() != values.len() {
            return Err(source.corrupt("data", "it has not one value for every entry"));
        }
        if let Some(at) = rows.iter().chain(&columns).find(|at| **at >= sites) {
            return Err(source.corrupt("indices", format!("{at} is not below {sites}")));
        }
        if let Some(value) = values.iter().find(|value| !value.is_finite()) {
            return Err(source.corrupt("data", format!("{value} is not finite")));
        }
        Ok(Entries { rows, columns, values, sites })
    }
}

/// The row of every entry, by the places where rows start.
fn outer(starts: &[u64], rows: u64, entries: usize) -> Option<Vec<u64>> {
    let rising = starts.windows(2).all(|two| two[0] <= two[1]);
    let ends = starts.first() == Some(&0) && starts.last() == Some(&(entries as u64));
    (rising && ends && starts.len() as u64 == rows.checked_add(1)?).then_some(())?;
    let lengths = starts.windows(2).map(|two| (two[1] - two[0]) as usize);
    Some(lengths.enumerate().flat_map(|(row, n)| std::iter::repeat_n(row as u64, n)).collect())
}

/// Parse the bytes of a file.
pub(super) fn parse(bytes: &[u8], path: &Path, format: Format) -> Result<Instance> {
    let source = Source { path, format, bytes: bytes.len() };
    let zip = Zip::new(bytes).map_err(|fault| source.corrupt(&fault.what, fault.reason))?;
    let arrays = Arrays { zip, source: &source };
    let Entries { rows, columns, values, sites } = arrays.entries()?;
    // Entries may be deflated to much less.
    let room = bytes.len().saturating_add(16 * values.len());
    if let Some(reason) = too_many(sites, room) {
        return Err(source.corrupt("shape", reason));
    }
    let sites = sites as usize;
    let entries = rows.into_iter().zip(columns).zip(values);
    let entries = entries.map(|((i, j), value)| (i as u32, j as u32, value));
    let mut constant = 0.0;
    if arrays.has(OFFSET) {
        constant = arrays.numbers(OFFSET)?.iter().sum();
    }
    let mut fields = Vec::new();
    if arrays.has(FIELD) {
        fields = arrays.numbers(FIELD)?;
        if fields.len() != sites {
            return Err(
                source.corrupt(FIELD, format!("it has not one value for each of {sites} sites"))
            );
        }
    }
    if fields.iter().chain([&constant]).any(|value| !value.is_finite()) {
        return Err(source.corrupt(FIELD, "fields and offset must be finite"));
    }
    if format == Format::NpzQubo {
        let mut linear = if fields.is_empty() { vec![0.0; sites] } else { fields };
        let mut pairs = Vec::new();
        for (i, j, value) in entries {
            match i == j {
                true => linear[i as usize] += value,
                false => pairs.push((i, j, value)),
            }
        }
        let variables = Variables::Bits;
        return Ok(Instance {
            variables,
            sites,
            pairs,
            clusters: Vec::new(),
            fields: linear,
            constant,
            lattice: None,
        });
    }
    let pairs = couplings(entries, &source)?;
    Ok(Instance {
        variables: Variables::Spins,
        sites,
        pairs,
        clusters: Vec::new(),
        fields,
        constant,
        lattice: None,
    })
}

/// The pairs of a symmetric matrix, or of one that has every pair once, with `w = -J`.
fn couplings(
    entries: impl Iterator<Item = (u32, u32, f64)>,
    source: &Source<'_>,
) -> Result<Vec<(u32, u32, f64)>> {
    let mut all = Vec::new();
    for (i, j, value) in entries.filter(|entry| entry.2 != 0.0) {
        if i == j {
            let reason = format!(
                "{i} {i} has {value}, and couplings of spins have a diagonal of zeros; target.format is npz-qubo if this is a QUBO"
            );
            return Err(source.corrupt("data", reason));
        }
        all.push((i.min(j), i.max(j), i < j, value));
    }
    all.sort_by_key(|entry| (entry.0, entry.1, entry.2));
    // Entries of one place add up, as SciPy has it.
    all.dedup_by(|next, kept| {
        let same = (next.0, next.1, next.2) == (kept.0, kept.1, kept.2);
        if same {
            kept.3 += next.3;
        }
        same
    });
    let mut pairs: Vec<(u32, u32, f64)> = Vec::with_capacity(all.len());
    let mut both = 0;
    for (i, j, _, value) in all {
        match pairs.last() {
            Some(&(a, b, other)) if (a, b) == (i, j) => {
                if other != 0.0 - value {
                    let reason = format!(
                        "{i} {j} and {j} {i} differ; the matrix must be symmetric or have every pair once"
                    );
                    return Err(source.corrupt("data", reason));
                }
                both += 1;
            }
            _ => pairs.push((i, j, 0.0 - value)),
        }
    }
    if both != 0 && both != pairs.len() {
        let reason = "some pairs stand twice and some once; the matrix must be symmetric or have every pair once";
        return Err(source.corrupt("data", reason));
    }
    Ok(pairs)
}
