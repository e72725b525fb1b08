//! The precision with which networks are computed on a GPU.

/// How exactly networks are computed on a GPU.
///
/// Whatever it is, a network's outputs at a site do not depend on the value there, and out and back rates come from the
/// same outputs: sampling stays exact. A lower precision costs a little of the quality of the rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Precision {
    /// 24 bits: agrees with the CPU to about 1e-6.
    Float32,
    /// Products of numbers with 11 bits, added up in float32.
    Tf32,
    /// Products of numbers with 8 bits, added up in float32. Networks without it take tf32.
    #[default]
    Bf16,
}

impl Precision {
    /// Its short name.
    pub fn name(self) -> &'static str {
        match self {
            Precision::Float32 => "float32",
            Precision::Tf32 => "tf32",
            Precision::Bf16 => "bf16",
        }
    }
}
