//! Ranges of temperatures and fields on the command line: `--beta 0.2:0.6:9`.
//!
//! Flags of a target hold one value. Where a range stands in its place it is taken out before the words are parsed: the flag keeps the value where
//! a path through all of them ends, and the verb is given the others beside it.

use std::ffi::OsString;

use anyhow::Result;
use leaps::parse::numbers;

use crate::error::usage;

/// The values of flags that were given more than one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grid {
    /// Inverse temperatures.
    pub betas: Vec<f64>,
    /// Uniform fields.
    pub fields: Vec<f64>,
}

impl Grid {
    /// Whether every flag has one value.
    pub fn is_empty(&self) -> bool {
        self.betas.is_empty() && self.fields.is_empty()
    }

    /// Take ranges out of the words of a command line.
    pub fn take(words: Vec<OsString>) -> Result<(Vec<OsString>, Self)> {
        let (mut grid, mut rest) = (Grid::default(), Vec::with_capacity(words.len()));
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let text = word.to_str().unwrap_or("").to_owned();
            let (flag, joined) = match text.split_once('=') {
                Some((flag, value)) => (flag, Some(value.to_owned())),
                None => (text.as_str(), None),
            };
            if !["--beta", "--temperature", "--field"].contains(&flag) {
                rest.push(word);
                continue;
            }
            let (value, next) = match joined {
                Some(value) => (value, None),
                None => match words.next() {
                    Some(next) => (next.to_str().unwrap_or("").to_owned(), Some(next)),
                    None => {
                        rest.push(word);
                        break;
                    }
                },
            };
            match grid.one_of(flag, &value)? {
                Some(end) => rest.push(format!("{flag}={end}").into()),
                None => {
                    rest.push(word);
                    rest.extend(next);
                }
            }
        }
        Ok((rest, grid))
    }

    /// The value that stands for a range; `None` if it is none.
    fn one_of(&mut self, flag: &str, value: &str) -> Result<Option<f64>> {
        // A field with commas is a list of one for every site, and a file may have a colon in its name.
        let ranged = match flag {
            "--field" => numbers(value).is_ok() && value.contains(':') && !value.contains(','),
            _ => value.contains([':', ',']),
        };
        if !ranged {
            return Ok(None);
        }
        let mut all =
            numbers(value).map_err(|must| usage(format!("{flag} = {value}: must be {must}")))?;
        if flag == "--field" {
            self.fields = all;
            return Ok(self.fields.first().copied());
        }
        if flag == "--temperature" {
            if all.contains(&0.0) {
                return Err(usage(format!("{flag} = {value}: must be other than 0")));
            }
            all.iter_mut().for_each(|t| *t = t.recip());
        }
        let coldest = all.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs()));
        self.betas = all;
        // Temperatures are given as they were.
        Ok(coldest.map(|beta| if flag == "--temperature" { beta.recip() } else { beta }))
    }

    /// Refuse ranges for a verb that takes one value.
    pub fn refuse(&self, verb: &str) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let flag = if self.betas.is_empty() { "--field" } else { "--beta" };
        Err(usage(format!(
            "{flag}: 'leaps {verb}' takes one value, not a range; 'leaps free-energy' takes ranges of both"
        )))
    }

    /// Refuse ranges of fields.
    pub fn refuse_fields(&self, verb: &str) -> Result<()> {
        Grid { betas: Vec::new(), fields: self.fields.clone() }.refuse(verb)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(line: &str) -> (String, Grid) {
        let words = line.split_whitespace().map(Into::into).collect();
        let (rest, grid) = Grid::take(words).unwrap();
        let rest: Vec<String> = rest.iter().map(|w| w.to_string_lossy().into_owned()).collect();
        (rest.join(" "), grid)
    }

    #[test]
    fn ranges_are_taken_out_and_single_values_stay() {
        let (rest, grid) = take("leaps ais ising --beta 0.2:0.4:3 --field -0.1 --size 4");
        assert_eq!(rest, "leaps ais ising --beta=0.4 --field -0.1 --size 4");
        assert_eq!(grid, Grid { betas: vec![0.2, 0.3, 0.4], fields: vec![] });
        let (rest, grid) = take("leaps free-energy ising --temperature=2:4:2 --field=-1:1:3");
        assert_eq!(rest, "leaps free-energy ising --temperature=2 --field=-1");
        assert_eq!(grid, Grid { betas: vec![0.5, 0.25], fields: vec![-1.0, 0.0, 1.0] });
        for line in
            ["leaps exact ising --beta 0.3 --field 0.1,0.2", "leaps exact file a:b:c --beta"]
        {
            assert_eq!(take(line), (line.to_owned(), Grid::default()));
        }
        assert!(Grid::take(vec!["--beta".into(), "1:2".into()]).is_err());
    }
}
