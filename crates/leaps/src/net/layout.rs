//! Name the parameters of a network and say how they start.

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
pub(crate) fn take<'a, T>(rest: &mut &'a [T], n: usize) -> &'a [T] {
    let (head, tail) = rest.split_at(n);
    *rest = tail;
    head
}

/// Take the next `n` numbers off a mutable slice.
pub(crate) fn take_mut<'a, T>(rest: &mut &'a mut [T], n: usize) -> &'a mut [T] {
    let (head, tail) = std::mem::take(rest).split_at_mut(n);
    *rest = tail;
    head
}
