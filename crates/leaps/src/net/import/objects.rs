//! Objects that a pickle's calls stand for: dictionaries, objects, storages, tensors.

use super::pickle::{Machine, Step};
use super::value::{Id, Name, StorageRef, TensorRef, Value};

/// Axes that a tensor may have.
const MAX_AXES: usize = 8;

/// The longest name of a storage, or of something refused, that is kept.
const MAX_NAME: usize = 80;

impl Machine<'_> {
    /// The value that a call gives. None of them copies a container of any length.
    pub(super) fn call(&self, callee: Id, arguments: Id) -> Step<Value> {
        let (Value::Name(name), Value::Tuple(arguments)) =
            (self.value(callee), self.value(arguments))
        else {
            return Err("it calls something that has no name".into());
        };
        match (name, arguments.as_slice()) {
            (Name::OrderedDict, []) => Ok(Value::Dict(Vec::new())),
            (Name::Namespace, []) => Ok(Value::Namespace(None)),
            (Name::Plain, arguments) if arguments.len() <= MAX_AXES => {
                Ok(Value::Tuple(arguments.to_vec()))
            }
            (Name::Parameter, &[tensor, ..]) => match self.value(tensor) {
                Value::Tensor(tensor) => Ok(Value::Tensor(tensor.clone())),
                _ => Err("a parameter is not a tensor".into()),
            },
            (Name::Tensor, &[storage, offset, shape, strides, ..]) => {
                if !matches!(self.value(storage), Value::Storage(_)) {
                    return Err("a tensor has no storage".into());
                }
                let (shape, strides) = (self.sizes(shape)?, self.sizes(strides)?);
                if shape.len() != strides.len() {
                    return Err("a tensor's strides do not fit its shape".into());
                }
                let offset = self.size(offset)?;
                Ok(Value::Tensor(Box::new(TensorRef { storage, offset, shape, strides })))
            }
            _ => Err(format!("it calls {name:?} with {} arguments", arguments.len())),
        }
    }

    fn size(&self, id: Id) -> Step<usize> {
        match self.value(id) {
            Value::Int(value) => usize::try_from(*value).map_err(|_| format!("a size is {value}")),
            _ => Err("a size is not a whole number".into()),
        }
    }

    fn sizes(&self, id: Id) -> Step<Vec<usize>> {
        match self.value(id) {
            Value::Tuple(sizes) if sizes.len() <= MAX_AXES => {
                sizes.iter().map(|&size| self.size(size)).collect()
            }
            _ => Err(format!("a shape is not a list of at most {MAX_AXES} sizes")),
        }
    }

    /// Give an object its attributes. Those of a dictionary (PyTorch keeps versions there) are dropped.
    pub(super) fn build(&mut self, state: Id) -> Step<()> {
        let top = self.top()?;
        if !matches!(self.value(state), Value::Dict(_)) {
            return Err("an object's attributes are not a dictionary".into());
        }
        match &mut self.values[top as usize] {
            Value::Namespace(attributes) => *attributes = Some(state),
            Value::Dict(_) => {}
            _ => return Err("it gives attributes to plain data".into()),
        }
        Ok(())
    }

    /// A storage from its address `("storage", kind, key, device, length)`.
    pub(super) fn storage(&self, id: Id) -> Step<Value> {
        let wrong = || String::from("the address of a storage is damaged");
        let Value::Tuple(parts) = self.value(id) else { return Err(wrong()) };
        let &[tag, kind, key, _device, length] = parts.as_slice() else { return Err(wrong()) };
        match (self.value(tag), self.value(kind), self.value(key)) {
            (Value::Text(tag), &Value::Name(Name::Storage(element)), Value::Text(key))
                if tag == "storage" && key.len() <= MAX_NAME =>
            {
                let (key, length) = (key.clone(), self.size(length)?);
                Ok(Value::Storage(Box::new(StorageRef { element, key, length })))
            }
            _ => Err(wrong()),
        }
    }
}

/// The name, or a refusal that says which it was.
pub(super) fn find(module: &str, name: &str) -> Step<Name> {
    match Name::find(module, name) {
        Some(name) => Ok(name),
        None => {
            let asked: String = format!("{module}.{name}").escape_debug().take(MAX_NAME).collect();
            Err(format!("it asks for {asked}, which no checkpoint needs: refused"))
        }
    }
}
