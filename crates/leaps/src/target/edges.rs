//! Read a pairwise model from a text file of edges and fields.
//!
//! One item a line, `#` starts a comment, sites are numbered from 0:
//! ```text
//! interaction potts   # or ising (the default)
//! q 3                 # values per site (ising: 2)
//! sites 4             # optional: allows sites that no line names
//! 0 1 1.0             # coupling J between sites 0 and 1
//! 1 2 -0.5
//! field 3 0.25        # field h at site 3
//! ```
//! The energy is `-sum J s_i s_j + sum h_i s_i` for Ising and `-sum J [x_i = x_j] + sum h_i [x_i = 0]`
//! for Potts.

use std::path::Path;
use std::str::FromStr;

use super::{Interaction, Pairwise, foreign};
use crate::file::{self, TEXT};
use crate::{Error, Result};

/// Most sites a file may name: bounds the memory a hostile file can ask for.
const MAX_SITES: usize = 1 << 24;

/// Read a model from `path`; see the format above.
pub fn read_edges(path: &Path) -> Result<Pairwise> {
    parse_edges(file::read(path, TEXT)?, path)
}

/// Parse the bytes of a file of edges; `path` is for messages.
pub(crate) fn parse_edges(bytes: Vec<u8>, path: &Path) -> Result<Pairwise> {
    let fail = |line: usize, column: usize, reason: String| Error::Parse {
        path: path.into(),
        line,
        column,
        reason,
    };
    let text = file::text(bytes, path)?;
    // Some editors begin a text with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    if let Some((line, reason)) = foreign::recognised(text) {
        return Err(fail(line, 1, reason));
    }
    let (mut interaction, mut q, mut declared) = (None, None, None);
    let mut edges: Vec<(u32, u32, f64)> = Vec::new();
    let mut fields: Vec<(u32, f64)> = Vec::new();
    let mut sites = 0;
    for (number, line) in text.lines().enumerate() {
        let number = number + 1;
        let content = line.split('#').next().unwrap_or("");
        let words: Vec<(usize, &str)> = content
            .split_whitespace()
            .map(|word| (word.as_ptr() as usize - line.as_ptr() as usize + 1, word))
            .collect();
        match words[..] {
            [] => {}
            [(_, "interaction"), (column, word)] => {
                let named = match word {
                    "ising" => Interaction::Ising,
                    "potts" => Interaction::Potts,
                    _ => {
                        return Err(fail(
                            number,
                            column,
                            format!("interaction is '{word}', expected 'ising' or 'potts'"),
                        ));
                    }
                };
                set(&mut interaction, named, words[0], number, &fail)?;
            }
            [word @ (_, "q"), value] => {
                set(&mut q, number_at::<usize>(value, number, &fail)?, word, number, &fail)?;
            }
            [word @ (_, "sites"), value] => {
                set(&mut declared, number_at::<usize>(value, number, &fail)?, word, number, &fail)?;
            }
            [(_, "field"), i, h] => {
                let i = site_at(i, number, &fail)?;
                fields.push((i, finite_at(h, number, &fail)?));
                sites = sites.max(i as usize + 1);
            }
            [i, j, coupling] => {
                let column = i.0;
                let (i, j) = (site_at(i, number, &fail)?, site_at(j, number, &fail)?);
                if i == j {
                    let reason = format!("edge from site {i} to itself: {}", foreign::COO);
                    return Err(fail(number, column, reason));
                }
                edges.push((i, j, finite_at(coupling, number, &fail)?));
                sites = sites.max(i.max(j) as usize + 1);
            }
            [(column, _), ..] => {
                return Err(fail(
                    number,
                    column,
                    format!(
                        "'{}': expected 'i j J' (an edge with its coupling), 'field i h', 'interaction ising|potts', 'q 3' or 'sites n'",
                        content.trim().chars().take(40).collect::<String>()
                    ),
                ));
            }
        }
    }
    if let Some(declared) = declared {
        if declared < sites || declared > MAX_SITES {
            return Err(fail(
                1,
                1,
                format!("'sites {declared}' but the edges name site {}", sites.max(1) - 1),
            ));
        }
        sites = declared;
    }
    if sites == 0 {
        return Err(fail(1, 1, "no edge and no field".into()));
    }
    if declared.is_none() {
        let mut named = vec![false; sites];
        for &(i, j, _) in &edges {
            (named[i as usize], named[j as usize]) = (true, true);
        }
        for &(i, _) in &fields {
            named[i as usize] = true;
        }
        if let Some(alone) = named.iter().position(|&n| !n) {
            let reason = format!(
                "site {alone} is named by no line: sites are numbered from 0; write 'sites {sites}' if it is meant to stand alone"
            );
            return Err(fail(1, 1, reason));
        }
    }
    let (interaction, q) = (interaction.unwrap_or(Interaction::Ising), q.unwrap_or(2));
    let model = Pairwise::from_edges(interaction, sites, q, &edges)
        .map_err(|error| fail(1, 1, error.to_string()))?;
    if fields.is_empty() {
        return Ok(model);
    }
    let mut full = vec![0.0; sites];
    for (site, field) in fields {
        full[site as usize] += field;
    }
    model.with_fields(&full).map_err(|error| fail(1, 1, error.to_string()))
}

/// Set what a file says once. A second line, even with the same value, is more likely of another file that was pasted in.
fn set<T>(
    place: &mut Option<T>,
    value: T,
    (column, word): (usize, &str),
    line: usize,
    fail: &impl Fn(usize, usize, String) -> Error,
) -> Result<()> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => {
            let reason = format!("'{word}' for the second time; leave one of the lines out");
            Err(fail(line, column, reason))
        }
    }
}

fn number_at<T: FromStr>(
    (column, word): (usize, &str),
    line: usize,
    fail: &impl Fn(usize, usize, String) -> Error,
) -> Result<T> {
    word.parse().map_err(|_| {
        let shown: String = word.chars().take(40).collect();
        fail(line, column, format!("'{shown}' is not {}", kind_of::<T>()))
    })
}

/// What a word should have been.
fn kind_of<T>() -> &'static str {
    if std::any::type_name::<T>() == "f64" { "a number" } else { "a whole number from 0" }
}

fn finite_at(
    word: (usize, &str),
    line: usize,
    fail: &impl Fn(usize, usize, String) -> Error,
) -> Result<f64> {
    let value: f64 = number_at(word, line, fail)?;
    if value.is_finite() {
        Ok(value)
    } else {
        Err(fail(line, word.0, format!("'{}' is not finite", word.1)))
    }
}

fn site_at(
    word: (usize, &str),
    line: usize,
    fail: &impl Fn(usize, usize, String) -> Error,
) -> Result<u32> {
    let site: usize = number_at(word, line, fail)?;
    if site < MAX_SITES {
        Ok(site as u32)
    } else {
        Err(fail(line, word.0, format!("site {site} is not below {MAX_SITES}")))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Target;
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Pairwise> {
        parse_edges(text.as_bytes().to_vec(), Path::new("model.txt"))
    }

    #[test]
    fn reads_edges_and_fields() {
        let model = parse("# ring\n0 1 1.0\n1 2 -0.5 # weak\n2 0 2\n\nfield 1 0.25\n").unwrap();
        assert_eq!((model.sites(), model.q(), model.terms()), (3, 2, 2));
        assert_eq!(model.energy(0, &[1, 1, 1]), -2.5);
        assert_eq!(model.energy(1, &[1, 0, 1]), -0.25);
        let potts = parse("interaction potts\nq 3\nsites 9\n0 1 1\n").unwrap();
        assert_eq!((potts.sites(), potts.q()), (9, 3));
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        assert_eq!(parse("\u{feff}0 1 1.0\n").unwrap().energy(0, &[1, 1]), -1.0);
    }

    #[test]
    fn rudy_files_are_told_to_count_from_0_unless_they_do() {
        let said = |text| parse(text).unwrap_err().to_string();
        assert!(said("2 1\n1 2 -1\n").contains("subtract 1"));
        let from_0 = said("3 2\n1 2 -1\n0 1 1\n");
        assert!(from_0.contains("'sites 3'") && !from_0.contains("subtract"), "{from_0}");
    }

    #[test]
    fn errors_name_line_and_column() {
        for (text, line, column) in [
            ("0 1 x", 1, 5),
            ("0 1 1\n  0 -3 1", 2, 5),
            ("0 0 1", 1, 1),
            ("0 1 nan", 1, 5),
            ("0 1 2 3", 1, 1),
            ("interaction clock", 1, 13),
            ("99999999999 0 1", 1, 1),
            ("", 1, 1),
            ("0 1", 1, 1),
            ("1 2 1.0\n2 3 1.0", 1, 1),
            ("sites 2\n0 1 1\n  sites 3", 3, 3),
            ("q 2\nq 2\n0 1 1", 2, 1),
            ("interaction ising\n0 1 1\ninteraction potts", 3, 1),
        ] {
            match parse(text) {
                Err(Error::Parse { line: l, column: c, .. }) => {
                    assert_eq!((l, c), (line, column), "{text}")
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_edges(bytes, Path::new("x"));
        }

        #[test]
        fn never_panics_on_almost_valid_text(text in "([0-9a-z .#-]{0,12}\n){0,8}") {
            let _ = parse(&text);
        }
    }
}
