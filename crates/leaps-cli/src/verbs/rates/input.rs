//! States and times from safetensors, of any type of number.

use std::path::Path;

use leaps::target::Target;
use leaps::{Error, Result};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

/// Checked states and times.
#[derive(Debug)]
pub struct Input {
    /// `[state * sites + site]`.
    pub states: Vec<u8>,
    pub times: Vec<f64>,
    /// The shape of one state in the file.
    pub shape: Vec<usize>,
}

impl Input {
    /// Read `x` and `t` for states of `target`.
    pub fn read(path: &Path, target: &dyn Target) -> Result<Self> {
        Self::decode(path, &leaps::file::read(path, leaps::file::DATA)?, target)
    }

    fn decode(path: &Path, bytes: &[u8], target: &dyn Target) -> Result<Self> {
        let corrupt = |what: &str, reason: String| Error::Corrupt {
            path: path.into(),
            what: what.into(),
            reason,
        };
        let file = SafeTensors::deserialize(bytes)
            .map_err(|error| corrupt("safetensors header", error.to_string()))?;
        let tensor = |name: &str| {
            let view = file.tensor(name).map_err(|_| invalid(path, name, "is missing", NEEDED))?;
            let numbers = numbers(&view).ok_or_else(|| {
                invalid(path, name, &format!("holds {:?}", view.dtype()), "use uint8 or float32")
            })?;
            Result::Ok((view.shape().to_vec(), numbers))
        };
        let named = |what: &str| format!("{}: {what}", path.display());
        let (shape, values) = tensor("x")?;
        let (time_shape, times) = tensor("t")?;
        let n = shape.first().copied().unwrap_or(0);
        let flat = vec![target.sites()];
        let lattice = target.lattice().map_or(flat.clone(), |lattice| lattice.shape().to_vec());
        if shape.len() < 2 || (shape[1..] != flat && shape[1..] != lattice) {
            let condition = format!("of shape [n, {}] or [n, {}]", target.sites(), list(&lattice));
            let advice = "give states of the model's target";
            return Err(Error::invalid(
                named("x"),
                format!("of shape [{}]", list(&shape)),
                condition,
                advice,
            ));
        }
        if time_shape != [n] {
            let shown = format!("of shape [{}]", list(&time_shape));
            let (condition, advice) = (format!("of shape [{n}]"), "one time for each state");
            return Err(Error::invalid(named("t"), shown, condition, advice));
        }
        if let Some(at) = times.iter().position(|t| !(0.0..=1.0).contains(t)) {
            let key = named(&format!("t[{at}]"));
            return Err(Error::invalid(key, times[at], "from 0 to 1", "a time along the path"));
        }
        let states = states(&values, target.q()).map_err(|(at, condition)| {
            let key = named(&format!("x[{}]", list(&indices(at, &shape))));
            Error::invalid(key, values[at], condition, "values are numbered from 0")
        })?;
        Ok(Input { states, times, shape: shape[1..].to_vec() })
    }
}

const NEEDED: &str = "the file needs x [n, sites...] and t [n]";

fn invalid(path: &Path, name: &str, reason: &str, advice: &str) -> Error {
    let what = format!("tensor {name}");
    Error::Corrupt { path: path.into(), what, reason: format!("{reason}; {advice}") }
}

fn list(shape: &[usize]) -> String {
    shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

/// The indices of a number of a tensor.
fn indices(mut at: usize, shape: &[usize]) -> Vec<usize> {
    let mut all: Vec<usize> = Vec::new();
    for &side in shape.iter().rev() {
        all.insert(0, at % side.max(1));
        at /= side.max(1);
    }
    all
}

/// Values from numbers. With two values -1 stands for the first as well, unless there is a 0. The error is the place of a
/// number that is none, and the condition it violates.
fn states(numbers: &[f64], values: usize) -> std::result::Result<Vec<u8>, (usize, String)> {
    let spins = values == 2 && numbers.contains(&-1.0);
    let value = |(at, &number): (usize, &f64)| match number {
        -1.0 if spins => Ok(0),
        0.0 if spins => Err(at),
        number if number.fract() == 0.0 && (0.0..values as f64).contains(&number) => {
            Ok(number as u8)
        }
        _ => Err(at),
    };
    let condition = match (values, spins) {
        (2, true) => "-1 or +1".to_owned(),
        (2, false) => "0 or 1, or -1 or +1".to_owned(),
        _ => format!("a whole number from 0 to {}", values - 1),
    };
    let states: std::result::Result<Vec<u8>, usize> =
        numbers.iter().enumerate().map(value).collect();
    states.map_err(|at| (at, condition))
}

/// The numbers of a tensor; `None` for kinds that are no states or times.
fn numbers(view: &TensorView<'_>) -> Option<Vec<f64>> {
    macro_rules! read {
        ($($kind:ident $type:ty),*) => {
            match view.dtype() {
                $(Dtype::$kind => Some(
                    view.data()
                        .chunks_exact(size_of::<$type>())
                        .map(|bytes| {
                            let mut word = [0; size_of::<$type>()];
                            word.copy_from_slice(bytes);
                            <$type>::from_le_bytes(word) as f64
                        })
                        .collect(),
                ),)*
                _ => None,
            }
        };
    }
    read!(U8 u8, I8 i8, I32 i32, I64 i64, F32 f32, F64 f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spins_and_values_are_told_apart() {
        assert_eq!(states(&[-1.0, 1.0], 2).unwrap(), [0, 1]);
        assert_eq!(states(&[0.0, 1.0], 2).unwrap(), [0, 1]);
        assert_eq!(states(&[1.0, 1.0], 2).unwrap(), [1, 1]);
        assert_eq!(states(&[2.0, 0.0], 3).unwrap(), [2, 0]);
        for (numbers, values) in
            [(&[-1.0, 0.0][..], 2), (&[0.5], 2), (&[2.0], 2), (&[-1.0], 3), (&[f64::NAN], 2)]
        {
            assert!(states(numbers, values).is_err(), "{numbers:?}");
        }
        assert_eq!(states(&[1.0, 0.0, -1.0], 2).unwrap_err().0, 1);
        assert_eq!(indices(17, &[2, 3, 3]), [1, 2, 2]);
    }
}
