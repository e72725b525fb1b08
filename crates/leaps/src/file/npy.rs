//! Arrays of numbers as NumPy writes them (`.npy`), small enough to be read whole.

/// An array: its type, its shape and its bytes.
pub(crate) struct Npy<'a> {
    /// `<`, `>`, `|` or `=`: the order of bytes.
    order: char,
    /// `i`, `u`, `f`, `b`, `S` or `U`.
    kind: char,
    /// Bytes of an item (`U`: characters of four bytes).
    width: usize,
    /// Sizes of the axes.
    pub(crate) shape: Vec<usize>,
    data: &'a [u8],
}

/// The value of a key in the header, which is a dictionary of Python.
fn after<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let at = header.find(&format!("'{key}'"))?;
    header[at + key.len() + 2..].trim_start().strip_prefix(':').map(str::trim_start)
}

impl<'a> Npy<'a> {
    /// Parse the bytes of a file; the second is what is wrong with them.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        let wrong = || "it is no array of NumPy".to_owned();
        let rest = bytes.strip_prefix(b"\x93NUMPY").ok_or_else(wrong)?;
        let (length, rest) = match rest {
            [1, _, a, b, rest @ ..] => (usize::from(u16::from_le_bytes([*a, *b])), rest),
            [2 | 3, _, a, b, c, d, rest @ ..] => {
                (u32::from_le_bytes([*a, *b, *c, *d]) as usize, rest)
            }
            _ => return Err(wrong()),
        };
        let header = rest.get(..length).ok_or_else(wrong)?;
        let header = std::str::from_utf8(header).map_err(|_| wrong())?;
        let kind = after(header, "descr").and_then(|text| text.strip_prefix('\''));
        let kind = kind.and_then(|text| text.split('\'').next());
        let kind = kind.ok_or("it has fields of its own, or no type")?;
        let mut letters = kind.chars();
        let (Some(order), Some(letter)) = (letters.next(), letters.next()) else {
            return Err(wrong());
        };
        let width: usize = letters.as_str().parse().map_err(|_| format!("its type is '{kind}'"))?;
        let shape = after(header, "shape").and_then(|text| text.strip_prefix('('));
        let shape = shape.and_then(|text| text.split(')').next()).ok_or_else(wrong)?;
        let sides = shape.split(',').map(str::trim).filter(|side| !side.is_empty());
        let shape: Result<Vec<usize>, _> = sides.map(str::parse).collect();
        let shape = shape.map_err(|_| wrong())?;
        let array = Npy { order, kind: letter, width, shape, data: &rest[length..] };
        let unit = if letter == 'U' { 4 } else { 1 };
        let size = array.shape.iter().try_fold(width.max(1), |n, &side| n.checked_mul(side));
        if size.and_then(|size| size.checked_mul(unit)) != Some(array.data.len()) {
            return Err("it has other bytes than its shape asks for".to_owned());
        }
        Ok(array)
    }

    /// Its items, the bytes of each in little-endian order.
    fn items(&self) -> impl Iterator<Item = [u8; 8]> {
        self.data.chunks_exact(self.width.max(1)).map(|item| {
            let mut bytes = [0; 8];
            let own = &mut bytes[..item.len().min(8)];
            own.copy_from_slice(&item[..own.len()]);
            if self.order == '>' {
                own.reverse();
            }
            bytes
        })
    }

    /// Its items as numbers.
    pub(crate) fn numbers(&self) -> Result<Vec<f64>, String> {
        let bits = 8 * self.width.min(8) as u32;
        let convert: fn([u8; 8], u32) -> f64 = match (self.kind, self.width) {
            ('f', 8) => |item, _| f64::from_le_bytes(item),
            ('f', 4) => |[a, b, c, d, ..], _| f64::from(f32::from_le_bytes([a, b, c, d])),
            ('i', 1 | 2 | 4 | 8) => {
                |item, bits| (i64::from_le_bytes(item) << (64 - bits) >> (64 - bits)) as f64
            }
            ('u' | 'b', 1 | 2 | 4 | 8) => |item, _| u64::from_le_bytes(item) as f64,
            (kind, width) => return Err(format!("numbers of type '{kind}{width}' are not read")),
        };
        Ok(self.items().map(|item| convert(item, bits)).collect())
    }

    /// Its items as whole numbers from 0.
    pub(crate) fn indices(&self) -> Result<Vec<u64>, String> {
        if !matches!((self.kind, self.width), ('i' | 'u', 1 | 2 | 4 | 8)) {
            return Err(format!("its type '{}{}' is not whole", self.kind, self.width));
        }
        let sign = 8 * self.width as u32 - 1;
        let read = |item| match u64::from_le_bytes(item) {
            value if self.kind == 'i' && value >> sign != 0 => Err("it has a negative item".into()),
            value => Ok(value),
        };
        self.items().map(read).collect()
    }

    /// Its only item as text.
    pub(crate) fn text(&self) -> Option<String> {
        let codes: Vec<u8> = match self.kind {
            'S' => self.data.to_vec(),
            'U' if self.order == '>' => self.data.iter().skip(3).step_by(4).copied().collect(),
            'U' => self.data.iter().step_by(4).copied().collect(),
            _ => return None,
        };
        let text = String::from_utf8(codes).ok()?;
        Some(text.trim_end_matches('\0').to_owned())
    }
}
