//! Named arrays as safetensors, written and read.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use safetensors::tensor::{SafeTensors, View};
use safetensors::{Dtype, serialize};

use super::sealed;
use crate::{Error, Result};

/// The numbers of an array, last axis fastest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Data<'a> {
    F32(Cow<'a, [f32]>),
    F64(Cow<'a, [f64]>),
    U8(Cow<'a, [u8]>),
    U64(Cow<'a, [u64]>),
}

/// An array.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Array<'a> {
    pub(crate) shape: Vec<usize>,
    pub(crate) data: Data<'a>,
}

macro_rules! kinds {
    ($($kind:ident $type:ty),*) => { $(
        impl<'a> From<&'a [$type]> for Data<'a> {
            fn from(data: &'a [$type]) -> Self {
                Data::$kind(data.into())
            }
        }
        impl From<Vec<$type>> for Data<'_> {
            fn from(data: Vec<$type>) -> Self {
                Data::$kind(data.into())
            }
        }
        impl<'a> TryFrom<&'a Data<'_>> for &'a [$type] {
            type Error = ();
            fn try_from(data: &'a Data<'_>) -> std::result::Result<Self, ()> {
                match data {
                    Data::$kind(data) => Ok(data),
                    _ => Err(()),
                }
            }
        }
    )*

        impl Data<'_> {
            fn dtype(&self) -> Dtype {
                match self { $(Data::$kind(_) => Dtype::$kind,)* }
            }

            fn bytes(&self) -> Cow<'_, [u8]> {
                match self {
                    Data::U8(data) => data.as_ref().into(),
                    $(#[allow(unreachable_patterns)] // bytes are bytes
                    Data::$kind(data) => {
                        data.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>().into()
                    })*
                }
            }

            fn len(&self) -> usize {
                match self { $(Data::$kind(data) => size_of_val(data.as_ref()),)* }
            }

            fn decode(dtype: Dtype, bytes: &[u8]) -> Option<Data<'static>> {
                match dtype {
                    $(Dtype::$kind => {
                        let (chunks, _) = bytes.as_chunks::<{ size_of::<$type>() }>();
                        let values: Vec<$type> =
                            chunks.iter().map(|chunk| <$type>::from_le_bytes(*chunk)).collect();
                        Some(Data::$kind(values.into()))
                    })*
                    _ => None,
                }
            }
        }
    };
}
kinds!(F32 f32, F64 f64, U8 u8, U64 u64);

impl View for &Array<'_> {
    fn dtype(&self) -> Dtype {
        self.data.dtype()
    }
    fn shape(&self) -> &[usize] {
        &self.shape
    }
    fn data(&self) -> Cow<'_, [u8]> {
        self.data.bytes()
    }
    fn data_len(&self) -> usize {
        self.data.len()
    }
}

/// Arrays by name, and the file they belong to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tensors<'a> {
    pub(crate) path: PathBuf,
    arrays: BTreeMap<String, Array<'a>>,
}

impl<'a> Tensors<'a> {
    /// No arrays yet, for the file `path`.
    pub(crate) fn new(path: impl Into<PathBuf>) -> Self {
        Tensors { path: path.into(), arrays: BTreeMap::new() }
    }

    /// Add an array.
    pub(crate) fn put(
        &mut self,
        name: impl Into<String>,
        shape: &[usize],
        data: impl Into<Data<'a>>,
    ) {
        let array = Array { shape: shape.to_vec(), data: data.into() };
        self.arrays.insert(name.into(), array);
    }

    /// Keep the arrays whose names are wanted.
    pub(crate) fn retain(&mut self, wanted: impl Fn(&str) -> bool) {
        self.arrays.retain(|name, _| wanted(name));
    }

    /// The names, sorted.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.arrays.keys().map(String::as_str)
    }

    /// The shape of the array `name`, if there is one.
    pub(crate) fn shape(&self, name: &str) -> Option<&[usize]> {
        self.arrays.get(name).map(|array| &array.shape[..])
    }

    /// The bytes of a file with these arrays, the same for the same arrays.
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        serialize(self.arrays.iter(), None).map_err(|e| self.corrupt("tensors", e.to_string()))
    }

    /// The same with notes in its header.
    pub(crate) fn encode_with(&self, notes: &[(&str, &str)]) -> Result<Vec<u8>> {
        let notes = notes.iter().map(|(key, text)| ((*key).into(), (*text).into())).collect();
        serialize(self.arrays.iter(), Some(notes))
            .map_err(|e| self.corrupt("tensors", e.to_string()))
    }

    /// The arrays in a file's bytes.
    pub(crate) fn decode(path: &Path, bytes: &[u8]) -> Result<Tensors<'static>> {
        let mut tensors = Tensors::new(path);
        let file = match SafeTensors::deserialize(bytes) {
            Ok(file) => file,
            Err(error) => return Err(tensors.corrupt("safetensors header", error.to_string())),
        };
        for (name, view) in file.iter() {
            let Some(data) = Data::decode(view.dtype(), view.data()) else {
                let reason = format!("numbers of kind {:?} are not used here", view.dtype());
                return Err(tensors.corrupt(&format!("tensor {name}"), reason));
            };
            tensors.arrays.insert(name.into(), Array { shape: view.shape().to_vec(), data });
        }
        Ok(tensors)
    }

    /// The arrays of a file whose checksum is known.
    pub(crate) fn read(path: &Path, checksum: &str) -> Result<Tensors<'static>> {
        Self::decode(path, &sealed::read_checked(path, checksum)?)
    }

    /// The array `name`, which must be there with this kind of numbers.
    pub(crate) fn get<'s, T>(&'s self, name: &str) -> Result<(&'s [usize], &'s [T])>
    where
        &'s [T]: TryFrom<&'s Data<'a>>,
    {
        let what = format!("tensor {name}");
        let Some(array) = self.arrays.get(name) else {
            return Err(self.corrupt(&what, "is missing"));
        };
        match <&[T]>::try_from(&array.data) {
            Ok(data) => Ok((&array.shape, data)),
            Err(_) => {
                let kind = std::any::type_name::<T>();
                Err(self.corrupt(&what, format!("holds {:?}, not {kind}", array.data.dtype())))
            }
        }
    }

    /// The single number `name`.
    pub(crate) fn number<'s, T: Copy + 's>(&'s self, name: &str) -> Result<T>
    where
        &'s [T]: TryFrom<&'s Data<'a>>,
    {
        match self.get(name)? {
            (_, &[value]) => Ok(value),
            (shape, _) => {
                let reason = format!("has shape {shape:?} instead of one number");
                Err(self.corrupt(&format!("tensor {name}"), reason))
            }
        }
    }

    /// An [`Error::Corrupt`] of this file.
    pub(crate) fn corrupt(&self, what: &str, reason: impl Into<String>) -> Error {
        Error::Corrupt { path: self.path.clone(), what: what.into(), reason: reason.into() }
    }
}
