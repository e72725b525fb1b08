//! The keys of a configuration, by section.

use serde::de::value::Error as Refusal;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;
use strsim::levenshtein;

use crate::Error;
use crate::mcmc::{ChainSpec, KernelSpec};
use crate::net::NetworkOptions;
use crate::observe::MeasureSpec;
use crate::path::PathSpec;
use crate::sampler::{ResampleSpec, SchemeSpec, UpdateSpec, WalkerSpec};
use crate::target::TargetSpec;
use crate::train::{StartSpec, TrainSpec};

/// The sections of a configuration, in the order in which they are printed.
pub const SECTIONS: [&str; 5] = ["target", "path", "network", "train", "sample"];

/// Hears which fields a group of settings asks for.
struct Fields<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Fields<'_> {
    type Error = Refusal;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Refusal> {
        *self.0 = fields;
        Err(Refusal::custom("only the names were wanted"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Refusal> {
        Err(Refusal::custom("not a group of settings"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq tuple
        tuple_struct map enum identifier ignored_any
    }
}

/// The keys of a group of settings.
pub(super) fn keys<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut fields: &'static [&'static str] = &[];
    let _ = T::deserialize(Fields(&mut fields));
    fields
}

/// The keys of a section.
pub fn keys_of(section: &str) -> Vec<&'static str> {
    match section {
        "target" => keys::<TargetSpec>().to_vec(),
        "path" => keys::<PathSpec>().to_vec(),
        "network" => keys::<NetworkOptions>().to_vec(),
        "train" => [keys::<TrainSpec>(), keys::<StartSpec>()].concat(),
        "sample" => [
            keys::<SchemeSpec>(),
            keys::<WalkerSpec>(),
            keys::<ResampleSpec>(),
            keys::<KernelSpec>(),
            keys::<UpdateSpec>(),
            keys::<ChainSpec>(),
            keys::<MeasureSpec>(),
        ]
        .concat(),
        _ => Vec::new(),
    }
}

/// Whether a key exists. `path.terms` has a key for each energy term of whatever target.
pub fn is_known(key: &str) -> bool {
    match key.split_once('.') {
        None => key == "seed",
        Some(("path", rest)) if rest.starts_with("terms.") => !rest["terms.".len()..].contains('.'),
        Some((section, name)) => keys_of(section).contains(&name),
    }
}

/// The refusal of a key that does not exist, with the one that was probably meant.
pub fn unknown(key: &str) -> Error {
    let advice = match nearest(key) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("sections are {}", SECTIONS.join(", ")),
    };
    Error::UnknownKey { key: key.to_owned(), advice }
}

/// The key that was probably meant.
fn nearest(key: &str) -> Option<String> {
    let wanted = key.replace('-', "_");
    let last = |path: &str| path.rsplit('.').next().unwrap_or(path).to_owned();
    let within = |section: &'static str| {
        keys_of(section).into_iter().map(move |name| format!("{section}.{name}"))
    };
    let all: Vec<String> =
        std::iter::once("seed".to_owned()).chain(SECTIONS.into_iter().flat_map(within)).collect();
    if let Some(same) = all.iter().find(|known| last(known) == last(&wanted)) {
        return Some(same.clone());
    }
    let close =
        |known: &str| levenshtein(known, &wanted).min(levenshtein(&last(known), &last(&wanted)));
    let best = all.into_iter().min_by_key(|known| close(known))?;
    (close(&best) <= 1 + last(&wanted).len() / 4).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_known_by_section() {
        for key in
            ["seed", "target.beta", "path.terms", "path.terms.field", "train.from", "sample.chains"]
        {
            assert!(is_known(key), "{key}");
        }
        for key in ["beta", "target", "sample.beta", "path.terms.a.b", "paths.ratio", ""] {
            assert!(!is_known(key), "{key}");
        }
        assert!(unknown("sample.walkrs").to_string().contains("did you mean sample.walkers?"));
        assert!(unknown("zzzzzzzz").to_string().contains("sections are target"));
    }
}
