//! The formats of instance files: their names, and how to tell them apart.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::file;
use crate::{Error, Result};

/// How a file says which pairs interact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Format {
    /// Edges and fields of spins or Potts values, our own: "i j J", "field i h"
    Edges,
    /// A graph of rudy, the G-set or MQLib: its maximum cut
    #[serde(alias = "gset", alias = "mqlib-maxcut")]
    #[cfg_attr(feature = "clap", value(aliases = ["gset", "mqlib-maxcut"]))]
    Rudy,
    /// Coordinates of dimod with a line "# vartype=SPIN" or BINARY
    Coo,
    /// Coordinates of dimod for spins
    CooSpin,
    /// Coordinates of dimod for bits
    CooBinary,
    /// A binary quadratic model of dimod as JSON
    Bqm,
    /// A QUBO of qbsolv
    Qubo,
    /// A QUBO of MQLib, which is maximised
    MqlibQubo,
    /// A sparse matrix of SciPy: couplings of spins
    Npz,
    /// A sparse matrix of SciPy: a QUBO
    NpzQubo,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 10] = [
        Format::Edges,
        Format::Rudy,
        Format::Coo,
        Format::CooSpin,
        Format::CooBinary,
        Format::Bqm,
        Format::Qubo,
        Format::MqlibQubo,
        Format::Npz,
        Format::NpzQubo,
    ];

    /// The name users write.
    pub fn name(self) -> &'static str {
        match self {
            Format::Edges => "edges",
            Format::Rudy => "rudy",
            Format::Coo => "coo",
            Format::CooSpin => "coo-spin",
            Format::CooBinary => "coo-binary",
            Format::Bqm => "bqm",
            Format::Qubo => "qubo",
            Format::MqlibQubo => "mqlib-qubo",
            Format::Npz => "npz",
            Format::NpzQubo => "npz-qubo",
        }
    }

    /// What it is called in messages.
    pub fn title(self) -> &'static str {
        match self {
            Format::Edges => "edge list",
            Format::Rudy => "rudy (G-set)",
            Format::Coo => "COO (dimod)",
            Format::CooSpin => "COO (dimod), SPIN",
            Format::CooBinary => "COO (dimod), BINARY",
            Format::Bqm => "BQM (dimod, JSON)",
            Format::Qubo => "QUBO (qbsolv)",
            Format::MqlibQubo => "QUBO (MQLib)",
            Format::Npz => "sparse matrix (SciPy)",
            Format::NpzQubo => "sparse matrix (SciPy), QUBO",
        }
    }

    /// The format that the end of a file's name stands for.
    pub fn of_name(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()? {
            "txt" | "edges" => Some(Format::Edges),
            "rud" | "rudy" | "gset" | "mc" => Some(Format::Rudy),
            "coo" => Some(Format::Coo),
            "json" => Some(Format::Bqm),
            "qubo" => Some(Format::Qubo),
            "npz" => Some(Format::Npz),
            _ => None,
        }
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Format {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self> {
        Format::ALL.into_iter().find(|format| format.name() == word).ok_or_else(|| {
            let names = Format::ALL.map(Format::name).join(", ");
            let advice = "leave it out, and it is recognised by its contents";
            Error::invalid("target.format", word, format!("one of {names}"), advice)
        })
    }
}

/// The format that some bytes are in, by what they begin with. What nothing else begins with is a list of edges.
pub(super) fn recognise(bytes: &[u8], path: &Path) -> Result<Format> {
    if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06") {
        return Ok(Format::Npz);
    }
    // What is no text is refused by whoever reads it.
    let valid = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => return file::text(bytes.to_vec(), path).map(|_| Format::Edges),
    };
    let text = valid.strip_prefix('\u{feff}').unwrap_or(valid);
    if text.trim_start().starts_with('{') {
        return Ok(Format::Bqm);
    }
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let head = loop {
        let Some((number, line)) = lines.next() else { return Ok(Format::Edges) };
        let start = line.trim_start();
        if start.starts_with("%%MatrixMarket") {
            let reason = "this looks like a Matrix Market file, which is not read: scipy.io.mmread and \
                          scipy.sparse.save_npz make a file of it that is";
            let (line, column) = (number + 1, 1);
            return Err(Error::Parse { path: path.into(), line, column, reason: reason.into() });
        }
        match start.strip_prefix('#') {
            Some(comment) if vartype(comment).is_some() => return Ok(Format::Coo),
            Some(_) => {}
            None => break words(line),
        }
    };
    if matches!(head.first(), Some(&("p" | "c"))) {
        let program = std::iter::once(head).chain(lines.map(|(_, line)| words(line)));
        let program = program.into_iter().find(|words| words.first() != Some(&"c"));
        let qubo = program.is_some_and(|words| words.first() == Some(&"p"));
        return Ok(if qubo { Format::Qubo } else { Format::Edges });
    }
    let counts: Option<Vec<u64>> = head.iter().map(|word| word.parse().ok()).collect();
    let Some(&[vertices, edges]) = counts.as_deref() else { return Ok(Format::Edges) };
    // A graph, unless there is an entry on the diagonal; a list of pairs without couplings is neither.
    let (mut found, mut triples, mut diagonal) = (0, false, false);
    for words in lines.map(|(_, line)| words(line)).filter(|words| !words.is_empty()) {
        found += 1;
        triples |= words.len() == 3;
        diagonal |= words.len() == 3 && words[0] == words[1];
    }
    Ok(match diagonal {
        true => Format::MqlibQubo,
        false if vertices > 0 && (triples || found == edges) => Format::Rudy,
        false => Format::Edges,
    })
}

/// What a comment says of the type of variables, as dimod writes it: `vartype=SPIN`.
pub(super) fn vartype(comment: &str) -> Option<&str> {
    let at = comment.find("vartype=").or_else(|| comment.find("vartype:"))?;
    let rest = comment[at + "vartype=".len()..].trim_start();
    rest.split(|c: char| !c.is_alphanumeric()).next().filter(|word| !word.is_empty())
}

/// The words of a line before any comment.
fn words(line: &str) -> Vec<&str> {
    line.split('#').next().unwrap_or("").split_whitespace().collect()
}
