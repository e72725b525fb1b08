//! Name the parameters of a network and a free energy in a file, and find them again.

use super::tensors::Tensors;
use crate::net::{FreeEnergy, Net, Tensor};
use crate::{Error, Result};

/// Add `parameters`, those of `net` followed by those of `free`, as `PREFIXnet.NAME` and `PREFIXfree.NAME`.
pub(crate) fn put(
    tensors: &mut Tensors<'_>,
    prefix: &str,
    net: &Net,
    free: &FreeEnergy,
    parameters: &[f32],
) -> Result<()> {
    let expected = net.parameters() + free.parameters();
    if parameters.len() != expected {
        return Err(Error::invalid(
            "parameters",
            parameters.len(),
            format!("{expected} numbers"),
            "give those of the network, then those of the free energy",
        ));
    }
    let mut rest = parameters;
    for (part, list) in [("net", net.tensors()), ("free", free.tensors())] {
        for tensor in list {
            let (own, others) = rest.split_at(tensor.len());
            tensors.put(format!("{prefix}{part}.{}", tensor.name), &tensor.shape, own.to_vec());
            rest = others;
        }
    }
    Ok(())
}

/// The numbers of the tensors `expected`, in order: exactly these under `prefix`, in these shapes, all finite.
pub(crate) fn collect(
    tensors: &Tensors<'_>,
    prefix: &str,
    expected: &[Tensor],
) -> Result<Vec<f32>> {
    let mut all = Vec::new();
    for tensor in expected {
        all.extend_from_slice(numbers(tensors, prefix, tensor)?);
    }
    let known = |name: &str| expected.iter().any(|tensor| tensor.name == name[prefix.len()..]);
    if let Some(extra) = tensors.names().find(|name| name.starts_with(prefix) && !known(name)) {
        return Err(tensors.corrupt(&format!("tensor {extra}"), "is no part of this network"));
    }
    Ok(all)
}

/// The numbers of one tensor: there, in its shape, all finite.
pub(crate) fn numbers<'t>(
    tensors: &'t Tensors<'_>,
    prefix: &str,
    tensor: &Tensor,
) -> Result<&'t [f32]> {
    let name = format!("{prefix}{}", tensor.name);
    let (shape, data) = tensors.get::<f32>(&name)?;
    let what = format!("tensor {name}");
    if shape != tensor.shape {
        let needed = &tensor.shape;
        let reason = format!("has shape {shape:?}, this network on this target needs {needed:?}");
        return Err(tensors.corrupt(&what, reason));
    }
    if let Some(at) = data.iter().position(|value| !value.is_finite()) {
        return Err(tensors.corrupt(&what, format!("number {at} is {}", data[at])));
    }
    Ok(data)
}
