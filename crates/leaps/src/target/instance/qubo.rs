//! QUBOs of qbsolv: `p qubo 0 maxNodes nNodes nCouplers`, then `i i weight` and `i j weight` a line, numbered from 0; `c` starts
//! a comment.
//!
//! $E = \sum a_i x_i + \sum b_{ij} x_i x_j$ over bits, of which there are `maxNodes`.

use std::fmt::Write;

use super::lines::{Source, Word, offset, offset_comment, short};
use super::{Instance, Variables, too_many};
use crate::Result;

/// The program line: its place and its three numbers.
struct Program {
    line: usize,
    sites: u64,
    nodes: u64,
    couplers: u64,
}

/// Parse a text.
pub(super) fn parse(text: &str, source: &Source<'_>) -> Result<Instance> {
    let mut program: Option<Program> = None;
    let (mut pairs, mut fields) = (Vec::new(), Vec::new());
    // Which node or coupler stood on which line: none may stand twice.
    let mut places: Vec<(u32, u32, usize)> = Vec::new();
    let mut words: Vec<Word<'_>> = Vec::new();
    for (number, content) in text.lines().enumerate() {
        let line = number + 1;
        words.clear();
        let column = |word: &str| word.as_ptr() as usize - content.as_ptr() as usize + 1;
        words.extend(content.split_whitespace().map(|word| (column(word), word)));
        match (&words[..], &program) {
            ([], _) => {}
            ([(_, first), ..], _) if first.starts_with('c') => {}
            (&[(_, "p"), (column, kind), _, sites, nodes, couplers], None) => {
                if kind != "qubo" {
                    let reason = format!("'{}' is not 'qubo'", short(kind));
                    return Err(source.fail(line, column, reason));
                }
                let count = source.whole(sites, line)?;
                if let Some(reason) = too_many(count, source.bytes) {
                    return Err(source.fail(line, sites.0, reason));
                }
                fields = vec![0.0; count as usize];
                let (nodes, couplers) = (source.whole(nodes, line)?, source.whole(couplers, line)?);
                program = Some(Program { line, sites: count, nodes, couplers });
            }
            (&[i, j, weight], Some(program)) => {
                let range = (0, program.sites);
                let (a, b) = (source.variable(i, line, range)?, source.variable(j, line, range)?);
                let weight = source.number(weight, line)?;
                places.push((a.min(b), a.max(b), line));
                match a == b {
                    true => fields[a as usize] += weight,
                    false => pairs.push((a, b, weight)),
                }
            }
            (words, None) => {
                let reason = "expected 'p qubo 0 maxNodes nNodes nCouplers'";
                return Err(source.fail(line, words[0].0, reason));
            }
            (words, Some(_)) => {
                return Err(source.fail(line, words[0].0, "expected 'i j weight'"));
            }
        }
    }
    let Some(program) = program else {
        return Err(source.fail(1, 1, "no line 'p qubo 0 maxNodes nNodes nCouplers'"));
    };
    let (couplers, nodes) = (pairs.len() as u64, (places.len() - pairs.len()) as u64);
    if (nodes, couplers) != (program.nodes, program.couplers) {
        let reason = format!(
            "this line promises {} nodes and {} couplers, and {nodes} and {couplers} follow",
            program.nodes, program.couplers
        );
        return Err(source.fail(program.line, 1, reason));
    }
    places.sort_unstable();
    if let Some(twice) = places.windows(2).find(|two| (two[0].0, two[0].1) == (two[1].0, two[1].1))
    {
        let (i, j, line) = twice[1];
        return Err(source.fail(line, 1, format!("{i} {j} stands on line {} already", twice[0].2)));
    }
    Ok(Instance {
        variables: Variables::Bits,
        sites: program.sites as usize,
        pairs,
        clusters: Vec::new(),
        fields,
        constant: offset(text, 'c'),
        lattice: None,
    })
}

/// The text of a file.
pub(super) fn to_text(instance: &Instance) -> Result<String> {
    let bits = instance.bits()?;
    let pairs = bits.merged();
    let (n, m) = (bits.sites, pairs.len());
    let mut text = format!("{}p qubo 0 {n} {n} {m}\n", offset_comment(bits.constant, 'c'));
    for (site, h) in bits.all_fields().into_iter().enumerate() {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{site} {site} {h}");
    }
    for (i, j, w) in pairs {
        let _ = writeln!(text, "{i} {j} {w}");
    }
    Ok(text)
}
