//! Coordinates of dimod: `i j bias` a line, `i i bias` for a linear bias, and `# vartype=SPIN` or BINARY.
//!
//! $E = \sum h_i v_i + \sum J_{ij} v_i v_j$. Variables are those that a line names, in the order of their numbers.

use std::fmt::Write;

use super::format::vartype;
use super::lines::{Source, each, offset, offset_comment};
use super::{Format, Instance, Variables, too_many};
use crate::Result;

/// Parse a text.
pub(super) fn parse(text: &str, source: &Source<'_>) -> Result<Instance> {
    let mut variables = match source.format {
        Format::CooSpin => Some(Variables::Spins),
        Format::CooBinary => Some(Variables::Bits),
        _ => None,
    };
    for (number, line) in text.lines().enumerate() {
        let Some(word) = line.trim_start().strip_prefix('#').and_then(vartype) else { continue };
        let said = match word {
            "SPIN" => Variables::Spins,
            "BINARY" => Variables::Bits,
            _ => {
                let reason = format!("vartype '{word}' is neither SPIN nor BINARY");
                return Err(source.fail(number + 1, 1, reason));
            }
        };
        if variables.is_some_and(|known| known != said) {
            let reason = format!("vartype '{word}' is not what was said before");
            return Err(source.fail(number + 1, 1, reason));
        }
        variables = Some(said);
    }
    let Some(variables) = variables else {
        let reason = "no line '# vartype=SPIN' or BINARY; target.format may say coo-spin or coo-binary instead";
        return Err(source.fail(1, 1, reason));
    };
    let mut entries: Vec<(u64, u64, f64)> = Vec::new();
    each(text, |line, words| match *words {
        [i, j, bias] => {
            let ends = (source.whole(i, line)?, source.whole(j, line)?);
            entries.push((ends.0, ends.1, source.number(bias, line)?));
            Ok(())
        }
        _ => Err(source.fail(line, words[0].0, "expected 'i j bias' or 'i i bias'")),
    })?;
    let mut labels: Vec<u64> = entries.iter().flat_map(|entry| [entry.0, entry.1]).collect();
    labels.sort_unstable();
    labels.dedup();
    if let Some(reason) = too_many(labels.len() as u64, source.bytes) {
        return Err(source.fail(1, 1, reason));
    }
    let place = |label: u64| labels.binary_search(&label).unwrap_or(0) as u32;
    let (mut pairs, mut fields) = (Vec::new(), vec![0.0; labels.len()]);
    for (i, j, bias) in entries {
        match i == j {
            true => fields[place(i) as usize] += bias,
            false => pairs.push((place(i), place(j), bias)),
        }
    }
    let (sites, constant) = (labels.len(), offset(text, '#'));
    Ok(Instance { variables, sites, pairs, clusters: Vec::new(), fields, constant, lattice: None })
}

/// The text of a file. Numbers have no exponents, which dimod would not read.
pub(super) fn to_text(instance: &Instance, format: Format) -> Result<String> {
    let own = match (format, instance.variables) {
        (Format::CooSpin, _) | (Format::Coo, Variables::Spins | Variables::Potts(_)) => {
            instance.spins()?
        }
        _ => instance.bits()?,
    };
    let kind = if own.variables == Variables::Spins { "SPIN" } else { "BINARY" };
    let mut text = format!("# vartype={kind}\n{}", offset_comment(own.constant, '#'));
    let pairs = own.merged();
    let mut named = vec![false; own.sites];
    for &(i, j, _) in &pairs {
        (named[i as usize], named[j as usize]) = (true, true);
    }
    for (site, h) in own.all_fields().into_iter().enumerate() {
        // A variable is there because a line names it.
        if h != 0.0 || !named[site] {
            // Writing to a text cannot fail.
            let _ = writeln!(text, "{site} {site} {h}");
        }
    }
    for (i, j, w) in pairs {
        let _ = writeln!(text, "{i} {j} {w}");
    }
    Ok(text)
}
