//! Values that a pickle can hold here: plain data, and tensors that point into storages.

/// A value's number in the [`Pickle`].
pub(super) type Id = u32;

/// Kinds of numbers in a storage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Element {
    F16,
    BF16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    Bool,
}

/// Names that may be called.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Name {
    OrderedDict,
    Namespace,
    /// `torch.Size`, `torch.device`: kept as their arguments.
    Plain,
    Tensor,
    Parameter,
    Storage(Element),
}

impl Name {
    /// The name, if it is one of those that checkpoints are made of.
    pub(super) fn find(module: &str, name: &str) -> Option<Name> {
        let storage = |element| Some(Name::Storage(element));
        match (module, name) {
            ("collections", "OrderedDict") => Some(Name::OrderedDict),
            ("argparse", "Namespace") | ("types", "SimpleNamespace") => Some(Name::Namespace),
            ("torch", "Size" | "device") => Some(Name::Plain),
            ("torch._utils", "_rebuild_tensor_v2") => Some(Name::Tensor),
            ("torch._utils", "_rebuild_parameter") => Some(Name::Parameter),
            ("torch", "HalfStorage") => storage(Element::F16),
            ("torch", "BFloat16Storage") => storage(Element::BF16),
            ("torch", "FloatStorage") => storage(Element::F32),
            ("torch", "DoubleStorage") => storage(Element::F64),
            ("torch", "CharStorage") => storage(Element::I8),
            ("torch", "ShortStorage") => storage(Element::I16),
            ("torch", "IntStorage") => storage(Element::I32),
            ("torch", "LongStorage") => storage(Element::I64),
            ("torch", "ByteStorage") => storage(Element::U8),
            ("torch", "BoolStorage") => storage(Element::Bool),
            _ => None,
        }
    }
}

/// A value. Containers refer to others by number, so that shared and even circular ones cost nothing.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Id>),
    Tuple(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    /// An object, and the dictionary of its attributes.
    Namespace(Option<Id>),
    Name(Name),
    Storage(Box<StorageRef>),
    Tensor(Box<TensorRef>),
}

/// A file of numbers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StorageRef {
    pub(super) element: Element,
    pub(super) key: String,
    pub(super) length: usize,
}

/// A tensor as a view of a storage.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TensorRef {
    pub(super) storage: Id,
    pub(super) offset: usize,
    pub(super) shape: Vec<usize>,
    pub(super) strides: Vec<usize>,
}

/// A pickle that has been read.
#[derive(Debug)]
pub(super) struct Pickle {
    pub(super) values: Vec<Value>,
    pub(super) root: Id,
}

impl Pickle {
    pub(super) fn value(&self, id: Id) -> &Value {
        &self.values[id as usize]
    }

    /// The entries of a dictionary or of an object whose keys are texts.
    pub(super) fn entries(&self, id: Id) -> Option<impl Iterator<Item = (&str, Id)>> {
        let id = match self.value(id) {
            Value::Namespace(attributes) => (*attributes)?,
            _ => id,
        };
        let Value::Dict(entries) = self.value(id) else { return None };
        Some(entries.iter().filter_map(|&(key, value)| match self.value(key) {
            Value::Text(key) => Some((key.as_str(), value)),
            _ => None,
        }))
    }

    /// The entry `key` of a dictionary or of an object; the last one if there are several.
    pub(super) fn get(&self, id: Id, key: &str) -> Option<Id> {
        self.entries(id)?.filter(|(name, _)| *name == key).last().map(|(_, value)| value)
    }
}
