//! Our parameters among the authors' tensors.
//!
//! Their kernels have a centre that nothing reads; ours do not. The constant of their free energy is left out too.

use std::collections::BTreeMap;

use super::state::{StateDict, Stored};
use super::{Damage, damage};
use crate::net::{FreeEnergySpec, LecSpec};

/// A network and its parameters.
#[derive(Clone, Debug)]
pub(crate) struct Mapped<T> {
    pub(crate) spec: LecSpec,
    /// Number of values.
    pub(crate) q: usize,
    pub(crate) parameters: Vec<T>,
    pub(crate) free_energy: FreeEnergySpec,
    pub(crate) free_energy_parameters: Vec<T>,
}

/// Hands out tensors and remembers which.
struct Reader<'a, T> {
    left: BTreeMap<&'a str, &'a Stored<T>>,
}

impl<'a, T: Copy> Reader<'a, T> {
    fn take(&mut self, name: &str) -> Result<&'a Stored<T>, Damage> {
        match self.left.remove(name) {
            Some(tensor) => Ok(tensor),
            None => damage(name, "the tensor is missing"),
        }
    }

    /// The tensor, if it has this shape.
    fn shaped(&mut self, name: &str, shape: &[usize]) -> Result<&'a Stored<T>, Damage> {
        let tensor = self.take(name)?;
        if tensor.shape != shape {
            return damage(name, format!("its shape is {:?} instead of {shape:?}", tensor.shape));
        }
        Ok(tensor)
    }
}

/// Add `values`, of shape `[.., axis, inner]`, without the middle of the axis.
fn without_centre<T: Copy>(values: &[T], axis: usize, inner: usize, to: &mut Vec<T>) {
    for plane in values.chunks_exact(axis * inner) {
        let centre = axis / 2 * inner;
        to.extend_from_slice(&plane[..centre]);
        to.extend_from_slice(&plane[centre + inner..]);
    }
}

/// Take a state dict apart.
pub(crate) fn map<T: Copy>(state: &StateDict<T>) -> Result<Mapped<T>, Damage> {
    let left = state.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let mut reader = Reader { left };
    let (free_energy, free_energy_parameters) = free_energy(&mut reader)?;
    let (spec, q, parameters) = network(&mut reader)?;
    // Masks only say that the centre is left out.
    reader.left.retain(|name, _| !name.ends_with(".mask"));
    if let Some((name, _)) = reader.left.first_key_value() {
        return damage(*name, "no part of a network of this kind has such a tensor");
    }
    Ok(Mapped { spec, q, parameters, free_energy, free_energy_parameters })
}

fn network<T: Copy>(reader: &mut Reader<'_, T>) -> Result<(LecSpec, usize, Vec<T>), Damage> {
    let name = |rest: &str| format!("net.network.{rest}");
    let first = reader.take(&name("initial_conv.weight"))?;
    let &[channels, planes, width, height] = first.shape.as_slice() else {
        return damage(name("initial_conv.weight"), "it is not a convolution in two dimensions");
    };
    if width != height || width % 2 == 0 || channels == 0 || planes == 0 {
        return damage(name("initial_conv.weight"), "its kernel is not an odd square");
    }
    let mut parameters = Vec::new();
    let embedding = name("emb.embedding.weight");
    let q = match reader.left.get(embedding.as_str()).map(|t| t.shape.as_slice()) {
        None => 2,
        Some(&[q, _]) if (3..=255).contains(&q) => {
            parameters.extend(&reader.shaped(&embedding, &[q, channels])?.values);
            q
        }
        Some(_) => return damage(embedding, "it is not a table of 3 to 255 values"),
    };
    let expected = if q == 2 { 1 } else { channels };
    if planes != expected {
        let reason = format!("it reads {planes} channels where the input has {expected}");
        return damage(name("initial_conv.weight"), reason);
    }
    without_centre(&first.values, width * width, 1, &mut parameters);
    let (mut kernels, mut time_units) = (vec![width], None);
    loop {
        let prefix = name(&format!("convs.{}.", kernels.len() - 1));
        if !reader.left.contains_key(format!("{prefix}A").as_str()) {
            break;
        }
        let (kernel, units) = layer(reader, &prefix, channels, &mut parameters)?;
        if *time_units.get_or_insert(units) != units {
            return damage(prefix, "its function of time has another size than the one before");
        }
        kernels.push(kernel);
    }
    let Some(time_units) = time_units else {
        return damage(name("convs.0.A"), "the tensor is missing");
    };
    parameters.extend(&read_out(reader, q, channels)?.values);
    Ok((LecSpec { kernels, channels, time_units, imported: true }, q, parameters))
}

/// One state-dependent convolution: its width and the units of its function of time.
fn layer<T: Copy>(
    reader: &mut Reader<'_, T>,
    prefix: &str,
    channels: usize,
    to: &mut Vec<T>,
) -> Result<(usize, usize), Damage> {
    let name = |rest: &str| format!("{prefix}{rest}");
    let a = reader.take(&name("A"))?;
    let taps = match a.shape.as_slice() {
        &[c, taps, b] if c == channels && b == channels => taps,
        _ => return damage(name("A"), format!("its shape is {:?}", a.shape)),
    };
    let width = taps.isqrt();
    if width * width != taps || width % 2 == 0 {
        return damage(name("A"), format!("{taps} taps are not an odd square"));
    }
    without_centre(&a.values, taps, channels, to);
    for bias in ["b1", "b2"] {
        let bias = reader.shaped(&name(bias), &[channels, taps])?;
        without_centre(&bias.values, taps, 1, to);
    }
    let first = reader.take(&name("mlp.mlp.0.weight"))?;
    let &[units, 1] = first.shape.as_slice() else {
        return damage(name("mlp.mlp.0.weight"), "it is not a function of one time");
    };
    to.extend(&first.values);
    to.extend(&reader.shaped(&name("mlp.mlp.0.bias"), &[units])?.values);
    to.extend(&reader.shaped(&name("mlp.mlp.2.weight"), &[units, units])?.values);
    to.extend(&reader.shaped(&name("mlp.mlp.2.bias"), &[units])?.values);
    let last = reader.shaped(&name("mlp.mlp.4.weight"), &[taps, units])?;
    without_centre(&last.values, taps, units, to);
    let bias = reader.shaped(&name("mlp.mlp.4.bias"), &[taps])?;
    without_centre(&bias.values, taps, 1, to);
    Ok((width, units))
}

/// The matrix that turns channels into outputs; for more than two values, whatever its name is.
fn read_out<'a, T: Copy>(
    reader: &mut Reader<'a, T>,
    q: usize,
    channels: usize,
) -> Result<&'a Stored<T>, Damage> {
    if q == 2 {
        return reader.shaped("net.network.linear", &[channels]);
    }
    let fits = |tensor: &Stored<T>| tensor.shape == [q, channels];
    let mut found = reader.left.iter().filter(|(_, tensor)| fits(tensor)).map(|(name, _)| *name);
    match (found.next(), found.next()) {
        (Some(name), None) => reader.take(name),
        (None, _) => damage("net.network", format!("no tensor [{q}, {channels}] is left")),
        (Some(a), Some(b)) => {
            damage(a, format!("this and {b} could both be the matrix of the outputs"))
        }
    }
}

fn free_energy<T: Copy>(reader: &mut Reader<'_, T>) -> Result<(FreeEnergySpec, Vec<T>), Damage> {
    let (mut hidden, mut parameters, mut inputs) = (Vec::new(), Vec::new(), 1);
    for l in 0.. {
        let weight_name = format!("F_t_net.net.{}.weight", 2 * l);
        let weight = reader.take(&weight_name)?;
        let outputs = match weight.shape.as_slice() {
            &[outputs, n] if n == inputs && outputs > 0 => outputs,
            shape => return damage(weight_name, format!("{inputs} inputs, but a shape {shape:?}")),
        };
        parameters.extend(&weight.values);
        let bias = reader.shaped(&format!("F_t_net.net.{}.bias", 2 * l), &[outputs])?;
        let next = format!("F_t_net.net.{}.weight", 2 * l + 2);
        if !reader.left.contains_key(next.as_str()) {
            if outputs != 1 || hidden.is_empty() {
                return damage(
                    weight_name,
                    "the last layer must follow others and give one number",
                );
            }
            break;
        }
        parameters.extend(&bias.values);
        hidden.push(outputs);
        inputs = outputs;
    }
    Ok((FreeEnergySpec::Mlp { hidden }, parameters))
}
