//! Archives read back: with a reader of our own, and with Python where there is one.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::*;

/// A directory of its own for a test, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("leaps-npz-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn number(bytes: &[u8], at: usize, width: usize) -> u64 {
    (0..width).map(|i| u64::from(bytes[at + i]) << (8 * i)).sum()
}

/// Members by name: (npy header, data). Follows zip64 records, checks checksums and local headers.
fn read(path: &Path) -> BTreeMap<String, (String, Vec<u8>)> {
    let bytes = fs::read(path).unwrap();
    let end = bytes.len() - 22;
    assert_eq!(&bytes[end..end + 4], b"PK\x05\x06");
    let (mut count, mut at) = (number(&bytes, end + 10, 2), number(&bytes, end + 16, 4));
    if at == ZIP64 {
        assert_eq!(&bytes[end - 20..end - 16], b"PK\x06\x07");
        let record = number(&bytes, end - 12, 8) as usize;
        assert_eq!(&bytes[record..record + 4], b"PK\x06\x06");
        (count, at) = (number(&bytes, record + 32, 8), number(&bytes, record + 48, 8));
    }
    let mut at = at as usize;
    let mut members = BTreeMap::new();
    for _ in 0..count {
        assert_eq!(&bytes[at..at + 4], b"PK\x01\x02");
        let (name, extra) =
            (number(&bytes, at + 28, 2) as usize, number(&bytes, at + 30, 2) as usize);
        let (mut size, mut offset) = (number(&bytes, at + 24, 4), number(&bytes, at + 42, 4));
        let mut wide = at + 46 + name + 4;
        for value in [&mut size, &mut offset] {
            if *value == ZIP64 {
                *value = number(&bytes, wide, 8);
                wide += if wide == at + 46 + name + 4 { 16 } else { 8 };
            }
        }
        let text = String::from_utf8(bytes[at + 46..at + 46 + name].to_vec()).unwrap();
        let (local, size) = (offset as usize, size as usize);
        assert_eq!(&bytes[local..local + 4], b"PK\x03\x04");
        assert_eq!(
            bytes[local + 4..local + 26][10..14],
            bytes[at + 16..at + 20],
            "checksums differ"
        );
        let skip = 30 + number(&bytes, local + 26, 2) + number(&bytes, local + 28, 2);
        let data = &bytes[local + skip as usize..][..size];
        assert_eq!(u64::from(crc32fast::hash(data)), number(&bytes, at + 16, 4));
        assert_eq!(&data[..8], b"\x93NUMPY\x01\x00");
        let header = 10 + number(data, 8, 2) as usize;
        assert_eq!(header % 64, 0);
        let dict = String::from_utf8(data[10..header].to_vec()).unwrap();
        members.insert(text, (dict.trim_end().to_string(), data[header..].to_vec()));
        at += 46 + name + extra;
    }
    members
}

fn write(path: &Path, zip64: u64) {
    let mut writer = NpzWriter::create(path).unwrap();
    writer.zip64 = zip64;
    let x: Vec<u8> = (0..5 * 6).map(|i| i % 3).collect();
    let log_weight = [0.5, -1.0, f64::NEG_INFINITY, 3e300, 0.1];
    let energy = [1.0, 2.0, 3.0, 4.0, -5.5];
    let meta = serde_json::json!({ "target": "Potts, λ", "walkers": 5 });
    writer.samples(&[2, 3], &x, &log_weight, &energy, &meta).unwrap();
    writer.finish().unwrap();
}

/// What a script of the Python that `LEAPS_PYTHON` names prints of a file.
fn python(script: &str, path: &Path) -> String {
    let program =
        std::env::var_os("LEAPS_PYTHON").expect("LEAPS_PYTHON is set, as when this was built");
    let output = Command::new(program).arg("-c").arg(script).arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_string()
}

#[test]
fn what_is_written_is_read_back_with_and_without_zip64() {
    let scratch = Scratch::new("read");
    // Limits at which nothing, only later offsets, sizes and offsets, and everything is large.
    for zip64 in [ZIP64, 400, 170, 0] {
        let path = scratch.0.join("samples.npz");
        write(&path, zip64);
        let members = read(&path);
        let names: Vec<&str> = members.keys().map(String::as_str).collect();
        assert_eq!(names, ["energy.npy", "log_weight.npy", "meta.npy", "x.npy"]);
        let (header, x) = &members["x.npy"];
        assert_eq!(header, "{'descr': '|u1', 'fortran_order': False, 'shape': (5, 2, 3), }");
        assert_eq!(*x, (0..30).map(|i| i % 3).collect::<Vec<u8>>());
        let (header, weights) = &members["log_weight.npy"];
        assert_eq!(header, "{'descr': '<f8', 'fortran_order': False, 'shape': (5,), }");
        let values: Vec<f64> =
            weights.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect();
        assert_eq!(values, [0.5, -1.0, f64::NEG_INFINITY, 3e300, 0.1]);
        let (header, meta) = &members["meta.npy"];
        let text: String = meta
            .as_chunks::<4>()
            .0
            .iter()
            .map(|b| char::from_u32(u32::from_le_bytes(*b)).unwrap())
            .collect();
        assert!(
            header.contains(&format!("'<U{}'", text.chars().count()))
                && header.contains("'shape': ()")
        );
        assert_eq!(text, r#"{"target":"Potts, λ","walkers":5}"#);
    }
    assert_eq!(scratch.names(), ["samples.npz"]);
}

#[test]
fn the_bytes_of_a_file_are_known() {
    let scratch = Scratch::new("bytes");
    let path = scratch.0.join("samples.npz");
    write(&path, ZIP64);
    let known = "6a6952220ae36c93e2d3a40ca960bb7fc51a9bf227641d39ce9ed369675fe1f3";
    assert_eq!(blake3::hash(&fs::read(&path).unwrap()).to_string(), known);
}

#[test]
#[cfg_attr(not(has_python), ignore = "needs Python and NumPy: set LEAPS_PYTHON to a program")]
fn pythons_zipfile_finds_no_fault() {
    let scratch = Scratch::new("zipfile");
    let path = scratch.0.join("samples.npz");
    let check = "import sys, zipfile\nz = zipfile.ZipFile(sys.argv[1])\nprint(z.testzip(), len(z.namelist()))";
    for zip64 in [ZIP64, 0] {
        write(&path, zip64);
        assert_eq!(python(check, &path), "None 4", "zip64 limit {zip64}");
    }
}

#[test]
#[cfg_attr(not(has_python), ignore = "needs Python and NumPy: set LEAPS_PYTHON to a program")]
fn numpy_reads_it_without_pickle() {
    let scratch = Scratch::new("numpy");
    let path = scratch.0.join("samples.npz");
    write(&path, ZIP64);
    let script = "
import sys, json, numpy
z = numpy.load(sys.argv[1], allow_pickle=False)
meta = json.loads(str(z['meta']))
print(z['x'].dtype, z['x'].shape, z['x'].sum(), z['log_weight'].dtype, z['energy'].tolist(), meta['walkers'])";
    let text = python(script, &path);
    assert_eq!(text, "uint8 (5, 2, 3) 30 float64 [1.0, 2.0, 3.0, 4.0, -5.5] 5");
}

#[test]
fn nothing_appears_before_the_end_and_nothing_stays_without_it() {
    let scratch = Scratch::new("drop");
    let path = scratch.0.join("a.npz");
    fs::write(&path, b"old").unwrap();
    let mut writer = NpzWriter::create(&path).unwrap();
    writer.floats("energy", &[2], &[1.0, 2.0]).unwrap();
    let second = NpzWriter::create(&path).unwrap(); // another writer does not disturb
    assert_eq!(scratch.names().len(), 3);
    drop(second);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    drop(writer);
    assert_eq!(
        (scratch.names(), fs::read(&path).unwrap()),
        (vec!["a.npz".into()], b"old".to_vec())
    );
    let mut writer = NpzWriter::create(&path).unwrap();
    assert!(writer.floats("energy", &[3], &[1.0, 2.0]).is_err());
    assert!(writer.bytes("x", &[usize::MAX, 3], &[1]).is_err());
    writer.text("meta", "").unwrap();
    writer.bytes("x", &[0, 4], &[]).unwrap();
    writer.finish().unwrap();
    assert_eq!(scratch.names(), ["a.npz"]);
    assert_eq!(read(&path)["meta.npy"].1, [0; 4]);
}

#[test]
fn unwritable_paths_fail_at_once_and_are_named() {
    let scratch = Scratch::new("fail");
    for path in [scratch.0.join("missing/a.npz"), scratch.0.clone(), "/".into(), "".into()] {
        match NpzWriter::create(&path) {
            Err(Error::Io { path: named, .. }) => assert_eq!(named, path),
            Err(other) => panic!("{other:?}"),
            Ok(_) => panic!("{path:?} can be written"),
        }
    }
    assert!(scratch.names().is_empty());
}

#[cfg(unix)]
#[test]
fn permissions_are_the_ordinary_ones_and_links_are_followed() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new("link");
    let (plain, real, link) =
        (scratch.0.join("plain"), scratch.0.join("real.npz"), scratch.0.join("link.npz"));
    fs::write(&plain, b"").unwrap();
    fs::write(&real, b"").unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    write(&link, ZIP64);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(read(&real).len(), 4);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&real), mode(&plain));
    assert!(NpzWriter::create("/dev/null").is_err());
}
