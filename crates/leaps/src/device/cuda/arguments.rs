//! Arguments of kernels: structures that Rust and CUDA share, described once.

use std::marker::PhantomData;

use cudarc::driver::DevicePtr;

use super::{Gpu, address};

/// Where an array lies on a GPU that a kernel reads.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Input<T>(u64, PhantomData<T>);

impl<T> Input<T> {
    pub(crate) fn of(gpu: &Gpu, array: &impl DevicePtr<T>) -> Self {
        Input(address(gpu, array), PhantomData)
    }

    /// No array, for kernels that ask whether there is one.
    pub(crate) fn none() -> Self {
        Input(0, PhantomData)
    }

    /// An array of something else on the CPU, which the kernel reads as `T`s.
    pub(crate) fn cast<U>(gpu: &Gpu, array: &impl DevicePtr<U>) -> Self {
        Input(address(gpu, array), PhantomData)
    }
}

/// Where an array lies on a GPU that a kernel writes.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Output<T>(u64, PhantomData<T>);

impl<T> Output<T> {
    pub(crate) fn of(gpu: &Gpu, array: &impl DevicePtr<T>) -> Self {
        Output(address(gpu, array), PhantomData)
    }

    /// An array of something else on the CPU, which the kernel writes as `T`s.
    pub(crate) fn cast<U>(gpu: &Gpu, array: &impl DevicePtr<U>) -> Self {
        Output(address(gpu, array), PhantomData)
    }

    /// No array, for kernels that write none.
    pub(crate) fn none() -> Self {
        Output(0, PhantomData)
    }
}

/// A type that Rust and CUDA share, as CUDA writes it: before, name and after, and what follows the field.
pub(crate) trait Shared {
    const BEFORE: &'static str = "";
    const NAME: &'static str;
    const AFTER: &'static str = " ";
    const END: &'static str = "";
}

macro_rules! shared {
    ($($rust:ty => $cuda:literal),*) => { $(impl Shared for $rust { const NAME: &'static str = $cuda; })* };
}
shared!(u8 => "u8", u16 => "u16", u32 => "u32", u64 => "u64", f32 => "float", f64 => "double");

impl<T: Shared> Shared for Input<T> {
    const BEFORE: &'static str = "const ";
    const NAME: &'static str = T::NAME;
    const AFTER: &'static str = "* ";
}

impl<T: Shared> Shared for Output<T> {
    const NAME: &'static str = T::NAME;
    const AFTER: &'static str = "* ";
}

/// Types that only CUDA has: `elements! { struct Name = "what CUDA calls it"; }`, for [`Input`]s and [`Output`]s of them.
macro_rules! elements {
    ($($(#[$meta:meta])* $visibility:vis struct $name:ident = $cuda:literal;)+) => { $(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        $visibility struct $name;

        impl $crate::device::cuda::arguments::Shared for $name {
            const NAME: &'static str = $cuda;
        }
    )+ };
}
pub(crate) use elements;

impl<T: Shared> Shared for [T; 4] {
    const BEFORE: &'static str = T::BEFORE;
    const NAME: &'static str = T::NAME;
    const AFTER: &'static str = T::AFTER;
    const END: &'static str = "[4]";
}

/// Bytes of all pieces.
pub(crate) const fn length(pieces: &[&str]) -> usize {
    let (mut sum, mut k) = (0, 0);
    while k < pieces.len() {
        sum += pieces[k].len();
        k += 1;
    }
    sum
}

/// All pieces, one after the other; `N` is their [`length`].
pub(crate) const fn joined<const N: usize>(pieces: &[&str]) -> [u8; N] {
    let (mut out, mut at, mut k) = ([0; N], 0, 0);
    while k < pieces.len() {
        let (piece, mut i) = (pieces[k].as_bytes(), 0);
        while i < piece.len() {
            out[at] = piece[i];
            at += 1;
            i += 1;
        }
        k += 1;
    }
    out
}

/// `concat!` for constants.
macro_rules! join {
    ($($piece:expr),* $(,)?) => {{
        use $crate::device::cuda::arguments::{joined, length};
        const PIECES: &[&str] = &[$($piece),*];
        const BYTES: [u8; length(PIECES)] = joined(PIECES);
        match std::str::from_utf8(&BYTES) {
            Ok(text) => text,
            Err(_) => panic!("pieces of text are text"),
        }
    }};
}
pub(crate) use join;

/// A structure that kernels take by value: its fields are numbers, [`Input`]s and [`Output`]s. `SOURCE` declares it to CUDA.
macro_rules! arguments {
    ($(#[$meta:meta])* $visibility:vis struct $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        #[repr(C)]
        $visibility struct $name { $($(#[$doc])* $visibility $field: $type,)+ }

        impl $crate::device::cuda::arguments::Shared for $name {
            const NAME: &'static str = stringify!($name);
        }

        impl $name {
            /// The same structure in CUDA.
            $visibility const SOURCE: &'static str = {
                use $crate::device::cuda::arguments::Shared;
                $crate::device::cuda::arguments::join!(
                    "struct ", stringify!($name), " {",
                    $(
                        <$type as Shared>::BEFORE, <$type as Shared>::NAME, <$type as Shared>::AFTER,
                        stringify!($field), <$type as Shared>::END, "; ",
                    )+
                    "};\n",
                )
            };
        }

        // SAFETY: numbers and addresses of the GPU, laid out as in C.
        unsafe impl cudarc::driver::DeviceRepr for $name {}
    };
}
pub(crate) use arguments;

#[cfg(test)]
mod tests {
    use super::*;

    arguments! {
        /// An example.
        struct Example {
            states: Output<u8>,
            weights: Input<f64>,
            /// How many.
            count: u32,
            seed: u64,
            carried: [Output<u8>; 4],
        }
    }

    #[test]
    fn structures_are_the_same_in_both_languages() {
        let wanted = "struct Example {u8* states; const double* weights; u32 count; u64 seed; \
                      u8* carried[4]; };\n";
        assert_eq!(Example::SOURCE, wanted);
        assert_eq!(size_of::<Example>(), 64);
        let [states, weights] = [Output(1, PhantomData), Output(2, PhantomData)];
        let weights = Input(weights.0, PhantomData::<f64>);
        let carried = [Output::none(); 4];
        let example = Example { states, weights, count: 3, seed: 4, carried };
        assert_eq!((example.states.0, example.weights.0, example.count), (1, 2, 3));
        assert_eq!((example.seed, example.carried[3].0), (4, 0));
    }
}
