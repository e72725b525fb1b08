//! Names, shapes and initial values of parameters, and layouts of slices.

use crate::device::{Purpose, Stream};

/// How the numbers of a tensor start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Init {
    /// 0.
    Zero,
    /// Normal with this standard deviation.
    Normal(f64),
}

/// A named block of parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Its name in files.
    pub name: String,
    /// Its shape; the last axis varies fastest.
    pub shape: Vec<usize>,
    pub(crate) init: Init,
}

impl Tensor {
    pub(crate) fn new(name: impl Into<String>, shape: &[usize], init: Init) -> Self {
        Tensor { name: name.into(), shape: shape.to_vec(), init }
    }

    /// Number of parameters.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it holds no parameter.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same with a prefix to its name.
    pub(crate) fn within(mut self, prefix: &str) -> Self {
        self.name = format!("{prefix}.{}", self.name);
        self
    }
}

/// Number of parameters in all.
pub(crate) fn total(tensors: &[Tensor]) -> usize {
    tensors.iter().map(Tensor::len).sum()
}

/// Fresh parameters from a seed; tensor `k` draws from a stream of its own.
pub(crate) fn initialise(tensors: &[Tensor], seed: u64) -> Vec<f32> {
    let mut out = Vec::with_capacity(total(tensors));
    for (k, tensor) in tensors.iter().enumerate() {
        let mut stream = Stream::new(seed, Purpose::Parameters, k as u32, 0);
        out.extend((0..tensor.len()).map(|_| match tensor.init {
            Init::Zero => 0.0,
            Init::Normal(deviation) => (deviation * stream.normal()) as f32,
        }));
    }
    out
}

/// Take the next `n` numbers off a slice.
#[inline(always)]
pub(crate) fn take<'a, T>(rest: &mut &'a [T], n: usize) -> &'a [T] {
    let (head, tail) = rest.split_at(n);
    *rest = tail;
    head
}

/// Take the next `n` numbers off a mutable slice.
#[inline(always)]
pub(crate) fn take_mut<'a, T>(rest: &mut &'a mut [T], n: usize) -> &'a mut [T] {
    let (head, tail) = std::mem::take(rest).split_at_mut(n);
    *rest = tail;
    head
}

/// A layout: named parts of one slice, each described once by its name and its length.
///
/// `layout! { struct Parts(owner: &Owner) { part: owner.length(), ... } }` is a structure `Parts<T>` with a field for every
/// part; `Parts::len` is the length of the whole, `Parts::cut` and `Parts::cut_mut` take a slice apart.
/// `Parts::starts` tells kernels where the parts start.
macro_rules! layout {
    (
        $(#[$meta:meta])*
        $visibility:vis struct $name:ident($($argument:ident: $type:ty),+) {
            $($(#[$doc:meta])* $part:ident: $length:expr,)+
        }
    ) => {
        $(#[$meta])*
        $visibility struct $name<T> { $($(#[$doc])* $visibility $part: T,)+ }

        #[allow(dead_code)] // not every layout is cut in every way
        impl $name<()> {
            /// The lengths of the parts.
            #[inline(always)]
            $visibility fn lengths($($argument: $type),+) -> $name<usize> {
                $name { $($part: $length,)+ }
            }

            /// The length of the whole.
            #[inline(always)]
            $visibility fn len($($argument: $type),+) -> usize {
                let lengths = Self::lengths($($argument),+);
                0 $(+ lengths.$part)+
            }

            /// `#define`s of where the parts start and, at last, of where the whole ends, with these names.
            $visibility fn starts(
                $($argument: $type,)+
                names: [&'static str; [$(stringify!($part)),+].len() + 1],
            ) -> impl Iterator<Item = (&'static str, usize)> {
                let lengths = Self::lengths($($argument),+);
                let mut at = 0;
                let ends = [$({ at += lengths.$part; at }),+];
                names.into_iter().zip(std::iter::once(0).chain(ends))
            }

            #[inline(always)]
            $visibility fn cut<'s, V>($($argument: $type,)+ mut whole: &'s [V]) -> $name<&'s [V]> {
                let lengths = Self::lengths($($argument),+);
                $name { $($part: $crate::net::layout::take(&mut whole, lengths.$part),)+ }
            }

            #[inline(always)]
            $visibility fn cut_mut<'s, V>(
                $($argument: $type,)+
                mut whole: &'s mut [V],
            ) -> $name<&'s mut [V]> {
                let lengths = Self::lengths($($argument),+);
                $name { $($part: $crate::net::layout::take_mut(&mut whole, lengths.$part),)+ }
            }
        }
    };
}
pub(crate) use layout;
