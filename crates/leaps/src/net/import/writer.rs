//! A writer of small checkpoints as PyTorch makes them, for tests.

/// Builds a pickle, instruction by instruction.
#[derive(Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn op(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.op(b"X").op(&(text.len() as u32).to_le_bytes()).op(text.as_bytes())
    }

    pub(super) fn int(&mut self, value: usize) -> &mut Self {
        self.op(b"J").op(&(value as i32).to_le_bytes())
    }

    pub(super) fn float(&mut self, value: f64) -> &mut Self {
        self.op(b"G").op(&value.to_be_bytes())
    }

    pub(super) fn ints(&mut self, values: &[usize]) -> &mut Self {
        self.op(b"(");
        for &value in values {
            self.int(value);
        }
        self.op(b"t")
    }

    /// A tensor in storage `key`.
    pub(super) fn tensor(
        &mut self,
        kind: &str,
        key: usize,
        length: usize,
        offset: usize,
        shape: &[usize],
        strides: &[usize],
    ) -> &mut Self {
        self.op(b"ctorch._utils\n_rebuild_tensor_v2\n((");
        self.text("storage").op(format!("ctorch\n{kind}\n").as_bytes());
        self.text(&key.to_string()).text("cuda:0").int(length).op(b"tQ");
        self.int(offset).ints(shape).ints(strides).op(b"\x89ccollections\nOrderedDict\n)RtR")
    }
}

/// A zip archive with entries stored as they are.
pub(super) fn zip(entries: &[(String, Vec<u8>)]) -> Vec<u8> {
    let (mut file, mut list) = (Vec::new(), Vec::new());
    for (name, contents) in entries {
        let mut common = vec![0u8, 0, 8, 8, 0, 0, 0, 0, 0, 0];
        common.extend(crc32fast::hash(contents).to_le_bytes());
        common.extend((contents.len() as u32).to_le_bytes());
        common.extend((contents.len() as u32).to_le_bytes());
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        list.extend(b"PK\x01\x02\0\0");
        list.extend(&common);
        list.extend([0; 10]);
        list.extend((file.len() as u32).to_le_bytes());
        list.extend(name.as_bytes());
        file.extend(b"PK\x03\x04");
        file.extend(&common);
        file.extend(name.as_bytes());
        file.extend(contents);
    }
    let (start, count) = (file.len() as u32, entries.len() as u16);
    file.extend(&list);
    file.extend(b"PK\x05\x06\0\0\0\0");
    file.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
    file.extend((list.len() as u32).to_le_bytes());
    file.extend(start.to_le_bytes());
    file.extend([0, 0]);
    file
}

/// Names and shapes of a network with kernels 3, 3 and 2 channels.
pub(super) fn shapes(q: usize) -> Vec<(String, Vec<usize>)> {
    let net = |name: &str, shape: &[usize]| (format!("net.network.{name}"), shape.to_vec());
    let mut all = vec![
        net("initial_conv.weight", &[2, if q == 2 { 1 } else { 2 }, 3, 3]),
        net("initial_conv.mask", &[2, 1, 3, 3]),
        net("convs.0.A", &[2, 9, 2]),
        net("convs.0.b1", &[2, 9]),
        net("convs.0.b2", &[2, 9]),
        net("convs.0.mlp.mlp.0.weight", &[3, 1]),
        net("convs.0.mlp.mlp.0.bias", &[3]),
        net("convs.0.mlp.mlp.2.weight", &[3, 3]),
        net("convs.0.mlp.mlp.2.bias", &[3]),
        net("convs.0.mlp.mlp.4.weight", &[9, 3]),
        net("convs.0.mlp.mlp.4.bias", &[9]),
    ];
    all.push(if q == 2 { net("linear", &[2]) } else { net("projector.weight", &[q, 2]) });
    if q > 2 {
        all.push(net("emb.embedding.weight", &[q, 2]));
    }
    for (name, shape) in
        [("0.weight", &[4, 1][..]), ("0.bias", &[4]), ("2.weight", &[1, 4]), ("2.bias", &[1])]
    {
        all.push((format!("F_t_net.net.{name}"), shape.to_vec()));
    }
    all
}

/// Number `i` of the tensor `k`.
pub(super) fn number(k: usize, i: usize) -> f32 {
    (k * 1000 + i) as f32 / 1024.0
}

/// The pickle and the storages of a checkpoint, with the settings of `edit`.
pub(super) fn checkpoint(q: usize, edit: &[(&str, f64)]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let mut w = Writer::default();
    let mut storages = Vec::new();
    w.op(b"\x80\x02}q\0(").text("epoch").int(0).text("state_dict");
    w.op(b"ccollections\nOrderedDict\n)Rq\x01(");
    for (k, (name, shape)) in shapes(q).iter().enumerate() {
        let n: usize = shape.iter().product();
        let strides: Vec<usize> =
            (0..shape.len()).map(|a| shape[a + 1..].iter().product()).collect();
        w.text(name).tensor("FloatStorage", k, n, 0, shape, &strides);
        storages.push((0..n).flat_map(|i| number(k, i).to_le_bytes()).collect());
    }
    w.op(b"u}").text("_metadata").op(b"}sb");
    w.text("hyper_parameters").op(b"}").text("config").op(b"cargparse\nNamespace\n)\x81}(");
    let name = if q == 2 { "ising" } else { "potts" };
    w.text("target").text(name).text("path").text("linear").text("L").int(4);
    for (key, value) in
        [("J_0", 0.0), ("J_1", 1.5), ("beta_0", 0.4), ("beta_1", 0.4), ("mu_1", 0.0)]
    {
        let value = edit.iter().find(|(k, _)| *k == key).map_or(value, |(_, value)| *value);
        w.text(key).float(value);
    }
    w.op(b"ubsu.");
    (w.0, storages)
}

pub(super) fn archive_of(pickle: &[u8], storages: &[Vec<u8>]) -> Vec<u8> {
    let mut entries = vec![("archive/data.pkl".to_owned(), pickle.to_vec())];
    entries.push(("archive/byteorder".to_owned(), b"little".to_vec()));
    for (k, storage) in storages.iter().enumerate() {
        entries.push((format!("archive/data/{k}"), storage.clone()));
    }
    zip(&entries)
}

pub(super) fn whole(q: usize) -> Vec<u8> {
    let (pickle, storages) = checkpoint(q, &[]);
    archive_of(&pickle, &storages)
}
