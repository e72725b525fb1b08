//! Tensors, copied out of their storages.

use std::collections::BTreeMap;

use super::archive::Archive;
use super::value::{Element, Pickle, StorageRef, TensorRef, Value};
use super::{Damage, damage};

/// A tensor as read; the last axis varies fastest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stored<T> {
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<T>,
}

/// Tensors by name.
pub(crate) type StateDict<T> = BTreeMap<String, Stored<T>>;

/// The parameters of a checkpoint. Tensors may overlap, but together they have at most `limit` numbers.
pub(super) fn state_dict(
    pickle: &Pickle,
    archive: &Archive<'_>,
    limit: usize,
) -> Result<StateDict<f32>, Damage> {
    let Some(entries) =
        pickle.get(pickle.root, "state_dict").and_then(|state| pickle.entries(state))
    else {
        return damage("state_dict", "the entry is missing; is this a Lightning checkpoint?");
    };
    let (mut state, mut left) = (StateDict::new(), limit);
    let mut files = BTreeMap::new(); // checked once, however many tensors share them
    for (name, id) in entries {
        let Value::Tensor(tensor) = pickle.value(id) else {
            return damage(name, "it is not a tensor");
        };
        let Some(count) = tensor.count().filter(|&count| count <= left) else {
            return damage(name, "it has more numbers than the file can hold");
        };
        left -= count;
        let Value::Storage(storage) = pickle.value(tensor.storage) else {
            return damage(name, "it has no storage");
        };
        let bytes = match files.get(storage.key.as_str()) {
            Some(&bytes) => bytes,
            None => {
                let bytes = archive.entry(&format!("data/{}", storage.key))?;
                files.insert(storage.key.as_str(), bytes);
                bytes
            }
        };
        let values = copy(name, tensor, storage, bytes, count)?;
        state.insert(name.to_owned(), Stored { shape: tensor.shape.clone(), values });
    }
    Ok(state)
}

impl TensorRef {
    fn count(&self) -> Option<usize> {
        self.shape.iter().try_fold(1usize, |n, &side| n.checked_mul(side))
    }

    /// The largest place of the storage that it reads.
    fn last(&self) -> Option<usize> {
        let mut last = self.offset;
        for (&side, &stride) in self.shape.iter().zip(&self.strides) {
            last = last.checked_add(side.checked_sub(1)?.checked_mul(stride)?)?;
        }
        Some(last)
    }
}

/// The numbers of a tensor, the last axis fastest.
fn copy(
    name: &str,
    tensor: &TensorRef,
    storage: &StorageRef,
    bytes: &[u8],
    count: usize,
) -> Result<Vec<f32>, Damage> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let StorageRef { element, key, length } = storage;
    if tensor.last().is_none_or(|last| last >= *length) {
        return damage(name, format!("it reaches beyond its storage of {length} numbers"));
    }
    let size = element.size();
    if length.checked_mul(size).is_none_or(|n| n > bytes.len()) {
        let reason = format!("{} bytes do not hold {length} numbers of {size}", bytes.len());
        return damage(format!("data/{key}"), reason);
    }
    let mut values = Vec::with_capacity(count);
    let (mut index, mut place) = (vec![0; tensor.shape.len()], tensor.offset);
    loop {
        values.push(element.read(&bytes[place * size..][..size]));
        // Count up, the last axis fastest.
        let mut axis = tensor.shape.len();
        loop {
            if axis == 0 {
                return Ok(values);
            }
            axis -= 1;
            index[axis] += 1;
            place += tensor.strides[axis];
            if index[axis] < tensor.shape[axis] {
                break;
            }
            place -= tensor.strides[axis] * tensor.shape[axis];
            index[axis] = 0;
        }
    }
}

impl Element {
    fn size(self) -> usize {
        match self {
            Element::I8 | Element::U8 | Element::Bool => 1,
            Element::F16 | Element::BF16 | Element::I16 => 2,
            Element::F32 | Element::I32 => 4,
            Element::F64 | Element::I64 => 8,
        }
    }

    /// A number from as many bytes as it has.
    fn read(self, bytes: &[u8]) -> f32 {
        let mut all = [0; 8];
        all[..bytes.len()].copy_from_slice(bytes);
        let bits = u64::from_le_bytes(all);
        match self {
            Element::F16 => half(bits as u16),
            Element::BF16 => f32::from_bits((bits as u32) << 16),
            Element::F32 => f32::from_bits(bits as u32),
            Element::F64 => f64::from_bits(bits) as f32,
            Element::I8 => bits as u8 as i8 as f32,
            Element::I16 => bits as u16 as i16 as f32,
            Element::I32 => bits as u32 as i32 as f32,
            Element::I64 => bits as i64 as f32,
            Element::U8 | Element::Bool => bits as f32,
        }
    }
}

/// A half-precision number: 1 bit of sign, 5 of exponent, 10 of fraction.
fn half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f32::from(bits & 1023));
    sign * match exponent {
        0 => fraction * 2f32.powi(-24),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1024.0 + fraction) * 2f32.powi(exponent - 25),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_kind_are_read() {
        for (bits, value) in [
            (0x3C00, 1.0),
            (0xC000, -2.0),
            (0x3555, 0.333_251_95),
            (0x0001, 5.960_464_5e-8),
            (0x7BFF, 65_504.0),
            (0xFC00, f32::NEG_INFINITY),
        ] {
            assert_eq!(Element::F16.read(&u16::to_le_bytes(bits)), value);
        }
        assert!(half(0x7E00).is_nan());
        assert_eq!(Element::BF16.read(&[0xC0, 0xBF]), -1.5);
        assert_eq!(Element::F64.read(&(-0.1f64).to_le_bytes()), -0.1);
        assert_eq!(Element::I64.read(&(-3i64).to_le_bytes()), -3.0);
        assert_eq!(Element::I32.read(&(-3i32).to_le_bytes()), -3.0);
        assert_eq!(Element::I16.read(&(-3i16).to_le_bytes()), -3.0);
        assert_eq!((Element::I8.read(&[0xFD]), Element::U8.read(&[0xFD])), (-3.0, 253.0));
    }
}
