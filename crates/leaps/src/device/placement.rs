//! Devices and placements: the device that was asked for, and the CPU or GPU that it became. Why a GPU was not used is recorded by
//! [`Context::place`](crate::job::Context::place).

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::{Gpu, Precision};
use crate::{Error, Result};

/// What was asked for: `auto`, `cpu`, `cuda`, or `cuda:1` for the second GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Device {
    /// A GPU if there is one that can do the work, else the CPU.
    #[default]
    Auto,
    /// All cores of the CPU.
    Cpu,
    /// The NVIDIA GPU of this number.
    Cuda(usize),
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "auto" => Ok(Device::Auto),
            "cpu" => Ok(Device::Cpu),
            "cuda" => Ok(Device::Cuda(0)),
            _ => {
                let number = text.strip_prefix("cuda:").and_then(|number| number.parse().ok());
                number.map(Device::Cuda).ok_or_else(|| {
                    let all = "auto, cpu, cuda or, of several GPUs, cuda:0, cuda:1, ...";
                    Error::invalid("device", text, format!("one of {all}"), "leave it out")
                })
            }
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Auto => f.write_str("auto"),
            Device::Cpu => f.write_str("cpu"),
            Device::Cuda(0) => f.write_str("cuda"),
            Device::Cuda(number) => write!(f, "cuda:{number}"),
        }
    }
}

impl Device {
    /// Turn what was asked for into a place, once, before work starts. `able` says whether a GPU can do the work at all. Where `auto` becomes
    /// the CPU the reason comes along.
    pub fn place(
        self,
        precision: Precision,
        able: Result<()>,
    ) -> Result<(Placement, Option<Error>)> {
        let gpu = |number| able.and_then(|()| Placement::cuda(number, precision));
        match self {
            Device::Cpu => Ok((Placement::Cpu, None)),
            Device::Cuda(number) => Ok((gpu(number)?, None)),
            Device::Auto => match gpu(0) {
                Ok(placement) => Ok((placement, None)),
                Err(reason) => Ok((Placement::Cpu, Some(reason))),
            },
        }
    }
}

/// The CPU, or one GPU.
#[derive(Clone, Default)]
pub enum Placement {
    /// All cores of the CPU.
    #[default]
    Cpu,
    /// An NVIDIA GPU, computing networks with some precision.
    Cuda(Arc<Gpu>, Precision),
}

impl Placement {
    /// A GPU of this machine, with a compiler for its kernels.
    pub fn cuda(number: usize, precision: Precision) -> Result<Self> {
        Ok(Placement::Cuda(Gpu::ready(number)?, precision))
    }

    /// Its short name: `cpu` or `cuda`.
    pub fn name(&self) -> &'static str {
        match self {
            Placement::Cpu => "cpu",
            Placement::Cuda(..) => "cuda",
        }
    }

    /// Which machine it is.
    pub fn machine(&self) -> &str {
        match self {
            Placement::Cpu => "the CPU",
            Placement::Cuda(gpu, _) => gpu.name(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_as_they_are_written() {
        for device in [Device::Auto, Device::Cpu, Device::Cuda(0), Device::Cuda(3)] {
            assert_eq!(device.to_string().parse::<Device>().unwrap(), device);
        }
        for wrong in ["", "gpu", "cuda:", "cuda:-1", "CPU", "cuda:1x"] {
            assert!(wrong.parse::<Device>().unwrap_err().to_string().contains("cuda:1"), "{wrong}");
        }
    }

    #[test]
    fn what_no_gpu_can_do_is_refused_or_done_by_the_cpu_with_a_reason() {
        let unable =
            || Err(Error::invalid("kernel", "wolff", "one that GPUs have", "choose another"));
        let place = |device: Device| device.place(Precision::Float32, unable());
        assert!(matches!(place(Device::Cpu), Ok((Placement::Cpu, None))));
        let Ok((Placement::Cpu, Some(reason))) = place(Device::Auto) else { panic!("no reason") };
        assert!(reason.to_string().contains("wolff"));
        assert!(place(Device::Cuda(0)).is_err());
    }
}
