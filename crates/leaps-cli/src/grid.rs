//! Ranges of temperatures and fields, or what stands in their place, on the command line: `--beta 0.2:0.6:9`.
//!
//! Flags of a target hold one value. Where a range stands in its place it is taken out before the words are parsed: the flag keeps the value where
//! a path through all of them ends, and the verb is given the others beside it.

use std::ffi::OsString;

use anyhow::Result;
use leaps::parse::numbers;
use leaps::path::Strength;

use crate::error::usage;

/// The values of flags that were given more than one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grid {
    /// Inverse temperatures.
    pub betas: Vec<f64>,
    /// Uniform fields, or values of another strength.
    pub fields: Vec<f64>,
    /// Which one.
    pub of: Strength,
}

/// Flags that take ranges, and the strengths that they are.
const FLAGS: [(&str, Option<Strength>); 6] = [
    ("--beta", None),
    ("--temperature", None),
    ("--field", Some(Strength::Field)),
    ("--chemical-potential", Some(Strength::ChemicalPotential)),
    ("--mu", Some(Strength::ChemicalPotential)),
    ("--crystal-field", Some(Strength::CrystalField)),
];

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
            if !FLAGS.iter().any(|(known, _)| *known == flag) {
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
        // A field with commas alone is a list of one for every site, and a file may have a colon in its name.
        let ranged = match flag {
            "--field" => {
                let first = value.split([':', ',']).next().unwrap_or_default();
                first.trim().parse::<f64>().is_ok() && value.contains(':')
            }
            _ => value.contains([':', ',']),
        };
        if !ranged {
            return Ok(None);
        }
        let mut all =
            numbers(value).map_err(|must| usage(format!("{flag} = {value}: must be {must}")))?;
        if let Some(of) = FLAGS.iter().find(|(known, _)| *known == flag).and_then(|known| known.1) {
            if !self.fields.is_empty() && self.of != of {
                let other = self.of.name().replace('_', "-");
                return Err(usage(format!(
                    "{flag} = {value}: must be one number beside a range of --{other}"
                )));
            }
            (self.fields, self.of) = (all, of);
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

    /// Refuse ranges for a verb that takes one value, and say what does what is probably meant.
    pub fn refuse(&self, verb: &str) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let name = self.of.name();
        let field = format!("--{}", name.replace('_', "-"));
        let (flag, range) = match self.betas.is_empty() {
            true => (field.as_str(), name),
            false => ("--beta", "beta"),
        };
        let advice = match verb {
            "train" => format!(
                "--{}-range A,B trains one network for all of a range, and single values train one each",
                range.replace('_', "-")
            ),
            "init" => format!(
                "train.{range}_range = [A, B] in the file trains one network for all of a range"
            ),
            "minimize" if range != "beta" => "give one value after the other".to_owned(),
            "minimize" => {
                "it is where annealing ends, and the lowest energy has no temperature".to_owned()
            }
            _ => "'leaps free-energy' takes ranges of both".to_owned(),
        };
        Err(usage(format!("{flag}: 'leaps {verb}' takes one value, not a range; {advice}")))
    }

    /// Every beta with every field; `None` is the target's own.
    pub fn places(betas: &[f64], fields: &[f64]) -> Vec<(Option<f64>, Option<f64>)> {
        let each = |values: &[f64]| match values {
            [] => vec![None],
            values => values.iter().copied().map(Some).collect::<Vec<_>>(),
        };
        let betas = each(betas);
        each(fields).into_iter().flat_map(|h| betas.iter().map(move |&beta| (beta, h))).collect()
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
        assert_eq!(grid, Grid { betas: vec![0.2, 0.3, 0.4], ..Grid::default() });
        let (rest, grid) = take("leaps free-energy ising --temperature=2:4:2 --field=-1:1:3");
        assert_eq!(rest, "leaps free-energy ising --temperature=2 --field=-1");
        let fields = vec![-1.0, 0.0, 1.0];
        assert_eq!(grid, Grid { betas: vec![0.5, 0.25], fields, of: Strength::Field });
        let (rest, grid) = take("leaps exact lattice-gas --mu -2:0:3");
        assert_eq!(rest, "leaps exact lattice-gas --mu=-2");
        assert_eq!((grid.fields, grid.of), (vec![-2.0, -1.0, 0.0], Strength::ChemicalPotential));
        let (_, grid) = take("leaps exact blume-capel --crystal-field=1,2 --field 0.1");
        assert_eq!((grid.fields, grid.of), (vec![1.0, 2.0], Strength::CrystalField));
        let (rest, grid) = take("leaps exact ising --field -0.5,0:1:3");
        assert_eq!(rest, "leaps exact ising --field=-0.5");
        assert_eq!(grid.fields, vec![-0.5, 0.0, 0.5, 1.0]);
        let two = "leaps exact blume-capel --crystal-field 0:1:2 --field 0:1:2";
        assert!(Grid::take(two.split(' ').map(Into::into).collect()).is_err());
        for line in
            ["leaps exact ising --beta 0.3 --field 0.1,0.2", "leaps exact file a:b:c --beta"]
        {
            assert_eq!(take(line), (line.to_owned(), Grid::default()));
        }
        for (flag, wrong) in [("--beta", "1:2"), ("--field", "0:0.3:1"), ("--field", "0.1:x:3")] {
            let error = Grid::take(vec![flag.into(), wrong.into()]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{flag} = {wrong}: must be ")), "{error}");
        }
        let both = Grid::places(&[0.1, 0.2], &[0.0, 1.0]);
        let wanted = [(0.1, 0.0), (0.2, 0.0), (0.1, 1.0), (0.2, 1.0)];
        assert_eq!(both, wanted.map(|(beta, h)| (Some(beta), Some(h))));
        assert_eq!(Grid::places(&[], &[0.5]), [(None, Some(0.5))]);
    }
}
