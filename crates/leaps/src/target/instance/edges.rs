//! Our own format: edges and fields, one a line.
//!
//! `#` starts a comment, sites are numbered from 0:
//! ```text
//! interaction potts       # or ising (the default)
//! q 3                     # values per site (ising: 2)
//! sites 4                 # optional: allows sites that no line names
//! lattice 2x2 free        # optional: the sites are those of a lattice, row by row
//! constant 0.5            # optional: added to the energy
//! 0 1 1.0                 # coupling J between sites 0 and 1
//! 1 2 -0.5
//! 0 1 2 0.8               # the same of three sites and more
//! field 3 0.25            # field h at site 3
//! ```
//! The energy is `-sum J s_i s_j - sum J s_i s_j s_k + sum h_i s_i` for Ising and `-sum J [x_i = x_j] - sum J [x_i = x_j = x_k]
//! + sum h_i [x_i = 0]` for Potts.

use std::fmt::Write;

use super::lines::{Source, Word, each, short};
use super::{Instance, MAX_SITES, Variables, too_many};
use crate::Result;
use crate::target::{Boundary, Lattice, LatticeModel};

/// Sites of a cluster that are read on at most; values of two allow fewer.
const MOST_PLACES: usize = 64;

/// What the lines say once.
#[derive(Default)]
struct Head {
    potts: Option<bool>,
    q: Option<u64>,
    sites: Option<u64>,
    lattice: Option<Lattice>,
    constant: Option<f64>,
}

/// Parse a text.
pub(super) fn parse(text: &str, source: &Source<'_>) -> Result<Instance> {
    let mut head = Head::default();
    let mut edges: Vec<(u32, u32, f64)> = Vec::new();
    let mut clusters: Vec<(Vec<u32>, f64)> = Vec::new();
    let mut largest = (0, 0);
    let mut fields: Vec<(u32, f64)> = Vec::new();
    let mut named = 0;
    let site = |word, line| source.variable(word, line, (0, MAX_SITES));
    each(text, |line, words| match *words {
        [word @ (_, "interaction"), (column, value)] => {
            let potts = match value {
                "ising" => false,
                "potts" => true,
                _ => {
                    let reason =
                        format!("interaction is '{}', expected 'ising' or 'potts'", short(value));
                    return Err(source.fail(line, column, reason));
                }
            };
            set(&mut head.potts, potts, word, line, source)
        }
        [word @ (_, "q"), value] => {
            set(&mut head.q, source.whole(value, line)?, word, line, source)
        }
        [word @ (_, "sites"), value] => {
            set(&mut head.sites, source.whole(value, line)?, word, line, source)
        }
        [word @ (_, "constant"), value] => {
            set(&mut head.constant, source.number(value, line)?, word, line, source)
        }
        [word @ (_, "lattice"), size, how] => {
            set(&mut head.lattice, lattice(size, how, line, source)?, word, line, source)
        }
        [(_, "field"), i, h] => {
            let i = site(i, line)?;
            fields.push((i, source.number(h, line)?));
            named = named.max(u64::from(i) + 1);
            Ok(())
        }
        [i, j, coupling] => {
            let column = i.0;
            let (i, j) = (site(i, line)?, site(j, line)?);
            if i == j {
                let reason = format!(
                    "edge from site {i} to itself; if this is a COO file of dimod without a line '# vartype=SPIN' or BINARY, \
                         target.format must say coo-spin or coo-binary"
                );
                return Err(source.fail(line, column, reason));
            }
            edges.push((i, j, 0.0 - source.number(coupling, line)?));
            named = named.max(u64::from(i.max(j)) + 1);
            Ok(())
        }
        [.., strength] if words.len() > 3 && sites_and_strength(words) => {
            let own = cluster(&words[..words.len() - 1], line, source)?;
            named = own.iter().fold(named, |most, &i| most.max(u64::from(i) + 1));
            largest = largest.max((own.len(), line));
            clusters.push((own, 0.0 - source.number(strength, line)?));
            Ok(())
        }
        [(column, _), ..] => {
            let shown: Vec<&str> = words.iter().map(|word| word.1).collect();
            let reason = format!(
                "'{}': expected 'i j J' (an edge with its coupling), 'i j k J', 'field i h', 'interaction ising|potts', 'q 3', 'sites n', 'constant c' or \
                     'lattice 8x8 periodic|free'",
                short(&shown.join(" "))
            );
            Err(source.fail(line, column, reason))
        }
        [] => Ok(()),
    })?;
    let sites = match (head.sites, &head.lattice) {
        (Some(sites), Some(lattice)) if sites != lattice.sites() as u64 => {
            let reason = format!("'sites {sites}' but the lattice has {}", lattice.sites());
            return Err(source.fail(1, 1, reason));
        }
        (_, Some(lattice)) => Some(lattice.sites() as u64),
        (sites, None) => sites,
    };
    if let Some(sites) = sites
        && sites < named
    {
        let reason = format!("'sites {sites}' but the edges name site {}", named - 1);
        return Err(source.fail(1, 1, reason));
    }
    let declared = sites.is_some();
    let sites = sites.unwrap_or(named);
    if sites == 0 {
        return Err(source.fail(1, 1, "no edge and no field"));
    }
    if let Some(reason) = too_many(sites, source.bytes) {
        return Err(source.fail(1, 1, reason));
    }
    let sites = sites as usize;
    if !declared {
        let pairs = edges.iter().flat_map(|&(i, j, _)| [i, j]);
        let others = clusters.iter().flat_map(|(own, _)| own.iter().copied());
        let all = pairs.chain(others).chain(fields.iter().map(|&(i, _)| i));
        all_named(sites, all, source)?;
    }
    let q = head.q.unwrap_or(2);
    let variables = match head.potts {
        Some(true) => Variables::Potts(q.min(1 << 16) as usize),
        _ if q == 2 => Variables::Spins,
        _ => {
            return Err(source.fail(1, 1, format!("q = {q} must be 2 for Ising spins; use potts")));
        }
    };
    if !(2..=255).contains(&q) {
        return Err(source.fail(1, 1, format!("q = {q} must be from 2 to 255")));
    }
    let most = LatticeModel::most_places(q as usize);
    if largest.0 > most {
        let reason = format!("a term of {} sites; at most {most} with {q} values", largest.0);
        return Err(source.fail(largest.1, 1, reason));
    }
    let mut full = if fields.is_empty() { Vec::new() } else { vec![0.0; sites] };
    for (site, field) in fields {
        full[site as usize] += field;
    }
    Ok(Instance {
        variables,
        sites,
        pairs: edges,
        clusters,
        fields: full,
        constant: head.constant.unwrap_or(0.0),
        lattice: head.lattice,
    })
}

/// Whether all words but the last are sites, and that is a number.
fn sites_and_strength(words: &[Word<'_>]) -> bool {
    let Some(((_, last), sites)) = words.split_last() else { return false };
    last.parse::<f64>().is_ok() && sites.iter().all(|(_, word)| word.parse::<u64>().is_ok())
}

/// The sites of a cluster.
fn cluster(words: &[Word<'_>], line: usize, source: &Source<'_>) -> Result<Vec<u32>> {
    let mut own = Vec::with_capacity(words.len());
    for &word in words {
        let site = source.variable(word, line, (0, MAX_SITES))?;
        if own.contains(&site) {
            let reason = format!("site {site} for the second time in one term");
            return Err(source.fail(line, word.0, reason));
        }
        own.push(site);
        if own.len() > MOST_PLACES {
            let reason = format!("a term of more than {MOST_PLACES} sites");
            return Err(source.fail(line, word.0, reason));
        }
    }
    Ok(own)
}

fn lattice(size: Word<'_>, how: Word<'_>, line: usize, source: &Source<'_>) -> Result<Lattice> {
    let boundary = match how.1 {
        "periodic" => Boundary::Periodic,
        "free" => Boundary::Free,
        other => {
            let reason = format!("'{}' is neither 'periodic' nor 'free'", short(other));
            return Err(source.fail(line, how.0, reason));
        }
    };
    let sides: std::result::Result<Vec<usize>, _> = size.1.split('x').map(str::parse).collect();
    let sides = sides.map_err(|_| {
        source.fail(line, size.0, format!("'{}' is no size such as 8x8", short(size.1)))
    })?;
    Lattice::new(&sides, boundary).map_err(|error| source.fail(line, size.0, error.to_string()))
}

/// Refuse gaps in the numbers of sites: files that count from 1 have one at 0.
fn all_named(sites: usize, all: impl Iterator<Item = u32>, source: &Source<'_>) -> Result<()> {
    let mut named = vec![false; sites];
    all.for_each(|site| named[site as usize] = true);
    match named.iter().position(|&named| !named) {
        Some(alone) => {
            let reason = format!(
                "site {alone} is named by no line: sites are numbered from 0; write 'sites {sites}' if it is meant to stand alone"
            );
            Err(source.fail(1, 1, reason))
        }
        None => Ok(()),
    }
}

/// Set what a file says once. A second line, even with the same value, is more likely of another file that was pasted in.
fn set<T>(
    place: &mut Option<T>,
    value: T,
    (column, word): Word<'_>,
    line: usize,
    source: &Source<'_>,
) -> Result<()> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => {
            let reason = format!("'{word}' for the second time; leave one of the lines out");
            Err(source.fail(line, column, reason))
        }
    }
}

/// The text of a file.
pub(super) fn to_text(instance: &Instance) -> String {
    let own = match instance.variables {
        Variables::Bits => instance.spins().unwrap_or_else(|_| instance.clone()),
        _ => instance.clone(),
    };
    let mut text = String::new();
    // Writing to a text cannot fail.
    if let Variables::Potts(q) = own.variables {
        let _ = writeln!(text, "interaction potts\nq {q}");
    }
    match &own.lattice {
        Some(lattice) => {
            let sides: Vec<String> = lattice.shape().iter().map(usize::to_string).collect();
            let how = match lattice.boundary() {
                Boundary::Periodic => "periodic",
                Boundary::Free => "free",
            };
            let _ = writeln!(text, "lattice {} {how}", sides.join("x"));
        }
        None => {
            let _ = writeln!(text, "sites {}", own.sites);
        }
    }
    if own.constant != 0.0 {
        let _ = writeln!(text, "constant {}", own.constant);
    }
    for (i, j, w) in own.merged() {
        let _ = writeln!(text, "{i} {j} {}", 0.0 - w);
    }
    for (sites, w) in own.merged_clusters() {
        let sites: Vec<String> = sites.iter().map(u32::to_string).collect();
        let _ = writeln!(text, "{} {}", sites.join(" "), 0.0 - w);
    }
    for (site, h) in own.fields.iter().enumerate().filter(|(_, h)| **h != 0.0) {
        let _ = writeln!(text, "field {site} {h}");
    }
    text
}
