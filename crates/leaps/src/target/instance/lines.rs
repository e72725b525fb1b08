//! Lines of words with their places, for the formats that are texts.

use std::path::Path;

use super::Format;
use crate::{Error, Result};

/// A word and its column, from 1.
pub(super) type Word<'a> = (usize, &'a str);

/// Where a text comes from, for messages.
pub(super) struct Source<'a> {
    pub(super) path: &'a Path,
    pub(super) format: Format,
    /// Length of the file.
    pub(super) bytes: usize,
}

impl Source<'_> {
    /// An error at a place, with the name of the format.
    pub(super) fn fail(&self, line: usize, column: usize, reason: impl Into<String>) -> Error {
        let reason = format!("{}: {}", self.format.title(), reason.into());
        Error::Parse { path: self.path.into(), line, column, reason }
    }

    /// An error in a part of the file.
    pub(super) fn corrupt(&self, what: &str, reason: impl Into<String>) -> Error {
        let what = format!("{}, {what}", self.format.title());
        Error::Corrupt { path: self.path.into(), what, reason: reason.into() }
    }

    /// A whole number from 0.
    pub(super) fn whole(&self, (column, word): Word<'_>, line: usize) -> Result<u64> {
        word.parse().map_err(|_| {
            self.fail(line, column, format!("'{}' is not a whole number from 0", short(word)))
        })
    }

    /// A finite number.
    pub(super) fn number(&self, (column, word): Word<'_>, line: usize) -> Result<f64> {
        let value: f64 = word
            .parse()
            .map_err(|_| self.fail(line, column, format!("'{}' is not a number", short(word))))?;
        match value.is_finite() {
            true => Ok(value),
            false => Err(self.fail(line, column, format!("'{}' is not finite", short(word)))),
        }
    }

    /// A variable numbered from `first` to below `first + count`: its place.
    pub(super) fn variable(
        &self,
        word: Word<'_>,
        line: usize,
        (first, count): (u64, u64),
    ) -> Result<u32> {
        let given = self.whole(word, line)?;
        match given.checked_sub(first) {
            Some(place) if place < count => Ok(place as u32),
            _ => {
                let last = first + count - 1;
                let reason = format!("variable {given} is not from {first} to {last}");
                Err(self.fail(line, word.0, reason))
            }
        }
    }
}

/// The beginning of a word.
pub(super) fn short(word: &str) -> String {
    word.chars().take(40).collect()
}

/// Go through the lines that have words before a comment, which `#` starts.
pub(super) fn each<'a>(
    text: &'a str,
    mut visit: impl FnMut(usize, &[Word<'a>]) -> Result<()>,
) -> Result<()> {
    let mut words: Vec<Word<'a>> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let content = line.split('#').next().unwrap_or("");
        words.clear();
        let column = |word: &str| word.as_ptr() as usize - line.as_ptr() as usize + 1;
        words.extend(content.split_whitespace().map(|word| (column(word), word)));
        if !words.is_empty() {
            visit(number + 1, &words)?;
        }
    }
    Ok(())
}

/// The constant in a comment `# offset=1.5`, which we write where a format has no place for it.
pub(super) fn offset(text: &str, mark: char) -> f64 {
    let comments = text.lines().filter_map(|line| line.trim_start().strip_prefix(mark));
    let words = comments.filter_map(|comment| comment.trim().strip_prefix("offset="));
    let values = words.filter_map(|word| word.parse().ok()).filter(|value: &f64| value.is_finite());
    values.sum()
}

/// Such a comment, if there is a constant.
pub(super) fn offset_comment(constant: f64, mark: char) -> String {
    if constant == 0.0 { String::new() } else { format!("{mark} offset={constant}\n") }
}
