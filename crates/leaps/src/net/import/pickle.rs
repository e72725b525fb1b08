//! An interpreter of pickles that hold nothing but data.

use std::collections::HashMap;

use super::objects::find;
use super::value::{Id, Pickle, Value};
use super::{Damage, damage};

/// Longer pickles hold more than the names of tensors and a few settings.
const MAX_BYTES: usize = 1 << 24;

/// Read a pickle.
///
/// Every instruction makes at most one value, and none copies a container, so memory is in proportion to `bytes`; nothing
/// recurses.
pub(super) fn read(bytes: &[u8]) -> Result<Pickle, Damage> {
    if bytes.len() > MAX_BYTES {
        return damage("data.pkl", format!("it has more than {MAX_BYTES} bytes"));
    }
    let mut machine = Machine {
        bytes,
        at: 0,
        values: Vec::new(),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: HashMap::new(),
    };
    loop {
        let start = machine.at;
        match machine.step() {
            Ok(None) => {}
            Ok(Some(root)) => return Ok(Pickle { values: machine.values, root }),
            Err(reason) => return damage(format!("data.pkl, byte {start}"), reason),
        }
    }
}

pub(super) struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    pub(super) values: Vec<Value>,
    stack: Vec<Id>,
    marks: Vec<usize>,
    memo: HashMap<u32, Id>,
}

/// What an instruction gives, or what is wrong with it.
pub(super) type Step<T> = Result<T, String>;

impl<'a> Machine<'a> {
    fn take(&mut self, n: usize) -> Step<&'a [u8]> {
        let found = self.bytes[self.at..].get(..n).ok_or("it ends too early")?;
        self.at += n;
        Ok(found)
    }

    fn array<const N: usize>(&mut self) -> Step<[u8; N]> {
        let bytes = self.take(N)?;
        bytes.try_into().map_err(|_| String::from("it ends too early"))
    }

    fn line(&mut self) -> Step<&'a str> {
        let rest = &self.bytes[self.at..];
        let n = rest.iter().position(|&b| b == b'\n').ok_or("it ends too early")?;
        self.at += n + 1;
        std::str::from_utf8(&rest[..n]).map_err(|_| "a name is not text".into())
    }

    fn text(&mut self, n: usize) -> Step<()> {
        let bytes = self.take(n)?;
        let text = std::str::from_utf8(bytes).map_err(|_| "a text is not UTF-8")?;
        self.push(Value::Text(text.to_owned()))
    }

    fn push(&mut self, value: Value) -> Step<()> {
        let id = Id::try_from(self.values.len()).map_err(|_| "it has too many values")?;
        self.values.push(value);
        self.stack.push(id);
        Ok(())
    }

    fn pop(&mut self) -> Step<Id> {
        // What lies below a mark belongs to a container that is still open.
        if self.stack.len() <= self.marks.last().copied().unwrap_or(0) {
            return Err("a value is missing".into());
        }
        self.stack.pop().ok_or_else(|| "a value is missing".into())
    }

    pub(super) fn top(&self) -> Step<Id> {
        self.stack.last().copied().ok_or_else(|| "a value is missing".into())
    }

    pub(super) fn value(&self, id: Id) -> &Value {
        &self.values[id as usize]
    }

    fn pop_to_mark(&mut self) -> Step<Vec<Id>> {
        let mark = self.marks.pop().ok_or("a mark is missing")?;
        Ok(self.stack.split_off(mark.min(self.stack.len())))
    }

    fn pop_many(&mut self, n: usize) -> Step<Vec<Id>> {
        let mut items = Vec::with_capacity(n);
        for _ in 0..n {
            items.push(self.pop()?);
        }
        items.reverse();
        Ok(items)
    }

    fn get(&mut self, key: u32) -> Step<()> {
        let id = *self.memo.get(&key).ok_or("it refers to a value that was never kept")?;
        self.stack.push(id);
        Ok(())
    }

    fn put(&mut self, key: u32) -> Step<()> {
        let top = self.top()?;
        self.memo.insert(key, top);
        Ok(())
    }

    /// Add to the container on top of the stack.
    fn append(&mut self, items: Vec<Id>) -> Step<()> {
        let top = self.top()?;
        match &mut self.values[top as usize] {
            Value::List(list) => list.extend(items),
            _ => return Err("it appends to something that is not a list".into()),
        }
        Ok(())
    }

    fn set_items(&mut self, items: Vec<Id>) -> Step<()> {
        let top = self.top()?;
        if !items.len().is_multiple_of(2) {
            return Err("a key has no value".into());
        }
        match &mut self.values[top as usize] {
            Value::Dict(entries) => entries.extend(items.chunks_exact(2).map(|c| (c[0], c[1]))),
            _ => return Err("it sets items of something that is not a dictionary".into()),
        }
        Ok(())
    }

    fn global(&mut self, module: &str, name: &str) -> Step<()> {
        let name = find(module, name)?;
        self.push(Value::Name(name))
    }

    /// Do one instruction; the value that was read, at the end.
    fn step(&mut self) -> Step<Option<Id>> {
        let [code] = self.array()?;
        match code {
            b'\x80' => match self.array()? {
                [2..=5] => {}
                [other] => return Err(format!("its version is {other} instead of 2 to 5")),
            },
            b'\x95' => drop(self.take(8)?), // a frame says only how much to read at once
            b'.' => return self.pop().map(Some),
            b'(' => self.marks.push(self.stack.len()),
            b'N' => self.push(Value::None)?,
            b'\x88' => self.push(Value::Bool(true))?,
            b'\x89' => self.push(Value::Bool(false))?,
            b'J' => {
                let value = i32::from_le_bytes(self.array()?);
                self.push(Value::Int(value.into()))?;
            }
            b'K' => {
                let [value] = self.array()?;
                self.push(Value::Int(value.into()))?;
            }
            b'M' => {
                let value = u16::from_le_bytes(self.array()?);
                self.push(Value::Int(value.into()))?;
            }
            b'\x8a' => {
                let [n] = self.array()?;
                let bytes = self.take(n.into())?;
                self.push(Value::Int(long(bytes)?))?;
            }
            b'G' => {
                let value = f64::from_be_bytes(self.array()?);
                self.push(Value::Float(value))?;
            }
            b'X' => {
                let n = u32::from_le_bytes(self.array()?);
                self.text(n as usize)?;
            }
            b'\x8c' => {
                let [n] = self.array()?;
                self.text(n.into())?;
            }
            b']' => self.push(Value::List(Vec::new()))?,
            b'}' => self.push(Value::Dict(Vec::new()))?,
            b')' => self.push(Value::Tuple(Vec::new()))?,
            b'\x85'..=b'\x87' => {
                let items = self.pop_many(usize::from(code - b'\x84'))?;
                self.push(Value::Tuple(items))?;
            }
            b't' => {
                let items = self.pop_to_mark()?;
                self.push(Value::Tuple(items))?;
            }
            b'a' => {
                let item = self.pop()?;
                self.append(vec![item])?;
            }
            b'e' => {
                let items = self.pop_to_mark()?;
                self.append(items)?;
            }
            b's' => {
                let items = self.pop_many(2)?;
                self.set_items(items)?;
            }
            b'u' => {
                let items = self.pop_to_mark()?;
                self.set_items(items)?;
            }
            b'h' => {
                let [key] = self.array()?;
                self.get(key.into())?;
            }
            b'j' => {
                let key = u32::from_le_bytes(self.array()?);
                self.get(key)?;
            }
            b'q' => {
                let [key] = self.array()?;
                self.put(key.into())?;
            }
            b'r' => {
                let key = u32::from_le_bytes(self.array()?);
                self.put(key)?;
            }
            b'\x94' => self.put(self.memo.len() as u32)?,
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                self.global(module, name)?;
            }
            b'\x93' => {
                let (name, module) = (self.pop()?, self.pop()?);
                let name = match (self.value(module), self.value(name)) {
                    (Value::Text(module), Value::Text(name)) => find(module, name)?,
                    _ => return Err("a name is not text".into()),
                };
                self.push(Value::Name(name))?;
            }
            b'R' | b'\x81' => {
                let (arguments, callee) = (self.pop()?, self.pop()?);
                let value = self.call(callee, arguments)?;
                self.push(value)?;
            }
            b'b' => {
                let state = self.pop()?;
                self.build(state)?;
            }
            b'Q' => {
                let id = self.pop()?;
                let value = self.storage(id)?;
                self.push(value)?;
            }
            other => return Err(format!("the instruction {other:#04x} is not one of plain data")),
        }
        Ok(None)
    }
}

/// A whole number of up to 8 bytes, the lowest first, in two's complement.
fn long(bytes: &[u8]) -> Step<i64> {
    if bytes.len() > 8 {
        return Err("a whole number has more than 64 bits".into());
    }
    let negative = bytes.last().is_some_and(|&top| top >= 0x80);
    let mut all = [if negative { 0xFF } else { 0 }; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    Ok(i64::from_le_bytes(all))
}
