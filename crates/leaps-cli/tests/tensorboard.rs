//! `train.tensorboard`: event files, read by a reader of their own and held against metrics.jsonl.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use common::{fails, files, stdout, train};
use serde_json::Value;

/// The scalars of a step by tag.
type Step = BTreeMap<String, f32>;

/// CRC-32C by a table of bytes, and masked as records have it.
fn masked_crc(bytes: &[u8]) -> u32 {
    let table: Vec<u32> = (0..256_u32)
        .map(|byte| {
            (0..8).fold(byte, |c, _| if c & 1 == 1 { c >> 1 ^ 0x82f6_3b78 } else { c >> 1 })
        })
        .collect();
    let crc =
        bytes.iter().fold(u32::MAX, |c, b| table[usize::from(c as u8 ^ b)] ^ c >> 8) ^ u32::MAX;
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// The fields of a message: their numbers, and their bytes or numbers.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>, u64)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (first, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            number |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                break;
            }
        }
        number
    }
    fn take(bytes: &mut &[u8], n: usize) -> Vec<u8> {
        let (first, rest) = bytes.split_at(n);
        *bytes = rest;
        first.to_vec()
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let field = key >> 3;
        found.push(match key & 7 {
            0 => (field, Vec::new(), varint(&mut bytes)),
            1 => (field, take(&mut bytes, 8), 0),
            2 => {
                let length = varint(&mut bytes) as usize;
                (field, take(&mut bytes, length), 0)
            }
            5 => (field, take(&mut bytes, 4), 0),
            other => panic!("wire type {other}"),
        });
    }
    found
}

/// Every step of a file with its scalars, in order; all checksums must hold.
fn read(path: &Path) -> Vec<(u64, Step)> {
    let bytes = fs::read(path).unwrap();
    let (mut at, mut steps, mut records, mut time) = (0, Vec::new(), 0, 0.0);
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    while at < bytes.len() {
        let length = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
        assert_eq!(number(at + 8), masked_crc(&bytes[at..at + 8]), "length at {at}");
        let record = &bytes[at + 12..at + 12 + length];
        assert_eq!(number(at + 12 + length), masked_crc(record), "record at {at}");
        at += 16 + length;
        let event = fields(record);
        let (wall, step) = (&event[0], &event[1]);
        assert_eq!((wall.0, step.0), (1, 2));
        let wall = f64::from_le_bytes(wall.1.as_slice().try_into().unwrap());
        assert!(wall >= time && wall > 1.7e9, "time goes on");
        time = wall;
        match records {
            0 => assert_eq!((event[2].0, &event[2].1[..]), (3, &b"brain.Event:2"[..])),
            1 => assert_eq!((event[2].0, &event[2].1[..]), (7, &[8, 1][..]), "a session starts"),
            _ => {
                assert_eq!(event[2].0, 5);
                let values = fields(&event[2].1);
                let value = |(field, value, _): &(u64, Vec<u8>, u64)| {
                    assert_eq!(*field, 1);
                    let entry = fields(value);
                    assert_eq!((entry[0].0, entry[1].0), (1, 2));
                    let tag = String::from_utf8(entry[0].1.clone()).unwrap();
                    (tag, f32::from_le_bytes(entry[1].1.as_slice().try_into().unwrap()))
                };
                steps.push((step.2, values.iter().map(value).collect()));
            }
        }
        records += 1;
    }
    steps
}

/// The only event file of a run.
fn event_file(run: &Path) -> PathBuf {
    let mut all = files(&run.join("tb")).into_keys();
    let file = all.next().unwrap();
    assert_eq!(all.next(), None);
    assert!(file.to_str().unwrap().contains("events.out.tfevents."), "{file:?}");
    file
}

/// The event file says what the metrics say, each step once.
fn check(run: &Path, steps: usize) {
    let metrics = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let lines: Vec<Value> = metrics.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let found = read(&event_file(run));
    assert_eq!((lines.len(), found.len()), (steps, steps));
    for (line, (step, scalars)) in lines.iter().zip(&found) {
        assert_eq!(line["step"].as_u64(), Some(*step));
        let mut wanted = Step::new();
        for key in ["loss", "norm", "lr", "ess"] {
            wanted.extend(line[key].as_f64().map(|value| (key.to_owned(), value as f32)));
        }
        for (tag, key) in [("log_z", "mean"), ("log_z_error", "error")] {
            wanted.extend(line["log_z"][key].as_f64().map(|value| (tag.to_owned(), value as f32)));
        }
        assert_eq!(*scalars, wanted, "step {step}");
        assert!(wanted.len() == 3 || wanted.len() == 6);
    }
    assert_eq!(found.last().unwrap().1.len(), 6, "the last step is validated");
}

#[test]
fn event_files_say_what_the_metrics_say_and_go_on() {
    let scratch = tempfile::tempdir().unwrap();
    let run = scratch.path().join("a");
    let flags = "--decay none --tensorboard --checkpoint-every 10";
    stdout(&train(&run, &format!("--steps 30 {flags}")));
    check(&run, 30);
    let first = event_file(&run);
    // As a process leaves them that is killed behind its last checkpoint, in the middle of a record.
    let metrics = run.join("metrics.jsonl");
    let text = fs::read_to_string(&metrics).unwrap();
    let more = text.lines().last().unwrap().replace("\"step\":30", "\"step\":31");
    fs::write(&metrics, format!("{text}{more}\n")).unwrap();
    let mut bytes = fs::read(&first).unwrap();
    bytes.extend([42; 7]);
    fs::write(&first, bytes).unwrap();
    stdout(&train(&run, &format!("--steps 50 {flags}")));
    check(&run, 50);
    assert!(event_file(&run) > first, "whoever reads on finds the new file behind the old one");
}

#[test]
fn it_changes_nothing_else_and_may_be_asked_for_later() {
    let scratch = tempfile::tempdir().unwrap();
    let [with, without] = ["with", "without"].map(|name| scratch.path().join(name));
    stdout(&train(&with, "--steps 20 --decay none --tensorboard"));
    stdout(&train(&without, "--steps 20 --decay none"));
    assert!(!without.join("tb").exists());
    for (name, bytes) in files(&without.join("checkpoints")) {
        let other = with.join(name.strip_prefix(&without).unwrap());
        if name.extension().is_some_and(|end| end == "safetensors") {
            assert_eq!(fs::read(other).unwrap(), bytes, "{name:?}");
        } else {
            let text = String::from_utf8(bytes).unwrap();
            assert!(!text.contains("tensorboard"), "{name:?}");
        }
    }
    stdout(&train(&without, "--steps 40 --decay none --tensorboard"));
    check(&without, 40);
    // And left out again: what is there stays.
    stdout(&train(&with, "--steps 40 --decay none --set train.tensorboard=false"));
    assert_eq!(read(&event_file(&with)).len(), 20);
    let run = with.to_str().unwrap();
    fails(&["train", run, "--set", "train.tensorboard=3"], 2, &["train.tensorboard"]);
}
