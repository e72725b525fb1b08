//! Graphs of rudy, the G-set and MQLib, whose maximum cut is meant, and MQLib's QUBOs, which have the same lines.
//!
//! `n m`, then `m` lines `i j w`, numbered from 1. Both problems are maximised, so that the energy is minus what they ask for:
//! $E = -\sum w_{ij} [s_i \ne s_j]$, and $E = -x^T Q x$, where a line stands for $Q_{ij}$ and for $Q_{ji}$.

use std::fmt::Write;

use super::lines::{Source, each, offset, offset_comment};
use super::{Instance, Variables, too_many};
use crate::target::Graph;
use crate::{Error, Result};

/// Parse a graph.
pub(super) fn parse(text: &str, source: &Source<'_>) -> Result<Instance> {
    let graph = Graph::parse(text.as_bytes().to_vec(), source.path)?;
    if let Some(reason) = too_many(graph.vertices as u64, source.bytes) {
        return Err(source.fail(1, 1, reason));
    }
    let half: f64 = graph.edges.iter().map(|edge| 0.5 * edge.2).sum();
    Ok(Instance {
        variables: Variables::Spins,
        sites: graph.vertices,
        pairs: graph.edges.into_iter().map(|(i, j, w)| (i, j, 0.5 * w)).collect(),
        clusters: Vec::new(),
        fields: Vec::new(),
        constant: offset(text, '#') - half,
        lattice: None,
    })
}

/// The text of a graph.
pub(super) fn to_text(instance: &Instance) -> Result<String> {
    let spins = instance.spins()?;
    if spins.fields.iter().any(|&h| h != 0.0) {
        let reason =
            "the instance has fields, which a maximum cut has not; use mqlib-qubo or edges";
        return Err(Error::not_applicable("rudy (G-set)", reason));
    }
    let edges: Vec<_> = spins.merged().into_iter().map(|(i, j, w)| (i, j, 2.0 * w)).collect();
    let half: f64 = edges.iter().map(|edge| 0.5 * edge.2).sum();
    let text = Graph { vertices: spins.sites, edges }.to_text();
    // Readers that know no comments have stopped before the last line.
    Ok(text + &offset_comment(spins.constant + half, '#'))
}

/// Parse a QUBO of MQLib.
pub(super) fn parse_qubo(text: &str, source: &Source<'_>) -> Result<Instance> {
    let mut head: Option<(usize, u64, u64)> = None;
    let (mut pairs, mut fields) = (Vec::new(), Vec::new());
    let mut lines = 0;
    each(text, |line, words| {
        match (words, head) {
            (&[n, m], None) => {
                let (sites, entries) = (source.whole(n, line)?, source.whole(m, line)?);
                if let Some(reason) = too_many(sites, source.bytes) {
                    return Err(source.fail(line, n.0, reason));
                }
                fields = vec![0.0; sites as usize];
                head = Some((line, sites, entries));
            }
            (&[i, j, w], Some((_, sites, _))) => {
                let (i, j) =
                    (source.variable(i, line, (1, sites))?, source.variable(j, line, (1, sites))?);
                let w = source.number(w, line)?;
                match i == j {
                    true => fields[i as usize] -= w,
                    false => pairs.push((i, j, -2.0 * w)),
                }
                lines += 1;
            }
            ([first, ..], None) => {
                return Err(source.fail(line, first.0, "expected 'n m', variables and entries"));
            }
            ([first, ..], Some(_)) => {
                return Err(source.fail(line, first.0, "expected 'i j Q', an entry of the matrix"));
            }
            ([], _) => {}
        }
        Ok(())
    })?;
    let Some((line, sites, entries)) = head else {
        return Err(source.fail(1, 1, "no line 'n m'"));
    };
    if lines != entries {
        let reason = format!("this line promises {entries} entries, and {lines} follow");
        return Err(source.fail(line, 1, reason));
    }
    Ok(Instance {
        variables: Variables::Bits,
        sites: sites as usize,
        pairs,
        clusters: Vec::new(),
        fields,
        constant: offset(text, '#'),
        lattice: None,
    })
}

/// The text of a QUBO of MQLib. Its first entry is on the diagonal, so that it is told from a graph.
pub(super) fn qubo_to_text(instance: &Instance) -> Result<String> {
    let bits = instance.bits()?;
    let mut lines = String::new();
    let mut count = 0;
    for (site, h) in bits.all_fields().into_iter().enumerate() {
        if site == 0 || h != 0.0 {
            // Writing to a text cannot fail.
            let _ = writeln!(lines, "{0} {0} {1}", site + 1, 0.0 - h);
            count += 1;
        }
    }
    for (i, j, w) in bits.merged() {
        let _ = writeln!(lines, "{} {} {}", i + 1, j + 1, 0.0 - 0.5 * w);
        count += 1;
    }
    Ok(format!("{} {count}\n{lines}{}", bits.sites, offset_comment(bits.constant, '#')))
}
