//! Files of instances that were damaged at random: no panic, and memory on the scale of the file.
//!
//! `LEAPS_FUZZ_SECONDS=60 cargo test --release -p leaps --test fuzz_files -- --ignored --nocapture` gives every format a minute, with
//! `LEAPS_FUZZ_FORMAT=rudy` one of them alone, by the name that `--format` has for it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use leaps::device::{Draw, Purpose, Stream};
use leaps::store::write_instance;
use leaps::target::{Boundary, Format, Instance, Lattice, Variables};

/// The system's allocator, and how much it has given out.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is handed to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Relaxed) + layout.size();
        MOST.fetch_max(now, Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the pointer came from `System.alloc` with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Longest file, and most memory for it.
const LONGEST: usize = 1 << 16;
const MEMORY: usize = 256 << 20;

/// Pieces that files are damaged with.
const PIECES: [&str; 32] = [
    "0",
    "1",
    "2",
    "-1",
    "1e308",
    "1e999",
    "nan",
    "inf",
    "18446744073709551615",
    "4294967296",
    "1000000000000",
    "16777216",
    "0.5",
    "\n",
    " ",
    "#",
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "p qubo 0 ",
    "# vartype=SPIN\n",
    "lattice 4096x4096 free\n",
    "sites 16777216\n",
    "field ",
    "q 255\n",
    "interaction potts\n",
    "0 1 2 1.5\n",
    "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 1\n",
];

type Pairs = Vec<(u32, u32, f64)>;

/// Files of a format: a random graph, a lattice, and one of few sites.
fn seeds(format: Format) -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seed");
    let torus = Lattice::new(&[3, 4], Boundary::Periodic).unwrap();
    let bonds = torus.bonds().into_iter().map(|(i, j)| (i, j, -1.0)).collect();
    let lists: [(usize, Pairs, Option<Lattice>); 3] = [
        (40, (0..39).map(|i| (i, (i * i + 7) % 39 + 1, f64::from(i) - 17.5)).collect(), None),
        (12, bonds, Some(torus)),
        (3, vec![(0, 1, 0.25), (1, 2, -3.0)], None),
    ];
    let torus = Lattice::new(&[4, 5], Boundary::Periodic).unwrap();
    let further = torus.bonds().into_iter().map(|(i, j)| (i, j, -1.0));
    let second = (0..20u32).map(|i| (i, (i / 5 + 1) % 4 * 5 + (i % 5 + 1) % 5, 0.5));
    let further: (usize, Pairs, Option<Lattice>) = (20, further.chain(second).collect(), None);
    let made = lists.into_iter().chain([further]).map(|(sites, pairs, lattice)| {
        let pairs: Vec<_> = pairs.into_iter().filter(|pair| pair.0 != pair.1).collect();
        let plain = matches!(format, Format::Rudy) || lattice.is_some();
        let fields = if plain { Vec::new() } else { (0..sites).map(|i| i as f64 - 1.5).collect() };
        let constant = if sites == 3 { 0.5 } else { 0.0 };
        let variables = Variables::Spins;
        let clusters = match format {
            Format::Edges if sites != 12 => vec![(vec![0, 2, 1], 0.75), (vec![2, 1, 0], -0.5)],
            _ => Vec::new(),
        };
        let instance = Instance { variables, sites, pairs, clusters, fields, constant, lattice };
        write_instance(&instance, &path, format).unwrap();
        std::fs::read(&path).unwrap()
    });
    made.collect()
}

/// One to eight random changes of a file.
fn damage(bytes: &mut Vec<u8>, stream: &mut Stream) {
    for _ in 0..=stream.below(8) {
        let at = stream.below(bytes.len() + 1);
        let end = (at + stream.below(24)).min(bytes.len());
        match stream.below(7) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] ^= 1 << stream.below(8),
            2 if at < bytes.len() => bytes[at] = stream.below(256) as u8,
            3 => drop(bytes.drain(at..end)),
            4 => {
                let copy = bytes[at..end].to_vec();
                let to = stream.below(bytes.len() + 1);
                bytes.splice(to..to, copy);
            }
            _ => {
                let piece = PIECES[stream.below(PIECES.len())].bytes();
                bytes.splice(at..end.min(at + stream.below(4)), piece);
            }
        }
    }
    bytes.truncate(LONGEST);
}

/// Names and contents of a stored archive, one after the other.
fn members(archive: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (mut at, mut all) = (0, Vec::new());
    while archive[at..].starts_with(b"PK\x03\x04") {
        let number = |at: usize, width: usize| {
            (0..width).map(|i| usize::from(archive[at + i]) << (8 * i)).sum::<usize>()
        };
        let (size, name, extra) = (number(at + 18, 4), number(at + 26, 2), number(at + 28, 2));
        let start = at + 30 + name + extra;
        all.push((archive[at + 30..][..name].to_vec(), archive[start..][..size].to_vec()));
        at = start + size;
    }
    all
}

fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

/// A stored archive of such contents, with right checksums.
fn archive(members: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let (mut out, mut list) = (Vec::new(), Vec::new());
    for (name, data) in members {
        let (size, offset) = ((data.len() as u32).to_le_bytes(), (out.len() as u32).to_le_bytes());
        let mut head = [20, 0, 0, 0, 0, 0, 0, 0, 0, 0].to_vec();
        head.extend([crc(data).to_le_bytes(), size, size].concat());
        head.extend([(name.len() as u16).to_le_bytes(), [0, 0]].concat());
        out.extend([&b"PK\x03\x04"[..], &head, name, data].concat());
        list.extend([&b"PK\x01\x02\x14\0"[..], &head, &[0; 10], &offset, name].concat());
    }
    let count = (members.len() as u16).to_le_bytes();
    let (size, offset) = ((list.len() as u32).to_le_bytes(), (out.len() as u32).to_le_bytes());
    out.extend(list);
    out.extend([&b"PK\x05\x06\0\0\0\0"[..], &count, &count, &size, &offset, &[0, 0]].concat());
    out
}

/// Damage files of a format until a time is over; how many were tried and how many could still be read.
fn fuzz(format: Format, time: Duration, seed: u64) -> (u64, u64) {
    let seeds = seeds(format);
    let mut stream = Stream::new(seed, Purpose::Disorder, format as u32, 0);
    let (start, mut tried, mut read) = (Instant::now(), 0, 0);
    while start.elapsed() < time {
        let mut bytes = seeds[stream.below(seeds.len())].clone();
        // Checksums hide what lies behind them: arrays are damaged on their own, too.
        let mut arrays = if bytes.starts_with(b"PK") { members(&bytes) } else { Vec::new() };
        if !arrays.is_empty() && stream.below(4) != 0 {
            let array = stream.below(arrays.len());
            damage(&mut arrays[array].1, &mut stream);
            bytes = archive(&arrays);
        } else {
            damage(&mut bytes, &mut stream);
        }
        let given = [Some(format), None][stream.below(2)];
        MOST.store(NOW.load(Relaxed), Relaxed);
        let before = NOW.load(Relaxed);
        let shown = bytes.clone();
        if let Ok((instance, _)) = Instance::parse(bytes, Path::new("damaged"), given) {
            // What was read can be used, and written again.
            let _ = instance.target();
            let _ = instance.describe_lattice();
            let _ =
                instance.to_text(if format == Format::Npz { Format::Edges } else { Format::Bqm });
            read += 1;
        }
        let most = MOST.load(Relaxed) - before;
        let shown = String::from_utf8_lossy(&shown);
        assert!(most < MEMORY, "{format}: {most} bytes of memory for {shown:?}");
        tried += 1;
    }
    (tried, read)
}

/// The formats that are asked for by name, all of them without one.
fn formats() -> Vec<Format> {
    match std::env::var("LEAPS_FUZZ_FORMAT") {
        Ok(name) => vec![name.parse().expect("LEAPS_FUZZ_FORMAT is the name of a format")],
        Err(_) => Format::ALL.to_vec(),
    }
}

fn seconds() -> f64 {
    std::env::var("LEAPS_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(60.0)
}

/// Both in one test: memory is counted for the whole process.
#[test]
fn damaged_files_are_refused_or_read() {
    for format in Format::ALL {
        let (tried, read) = fuzz(format, Duration::from_millis(300), 1);
        assert!(tried > 50 && read > 0, "{format}: {read} of {tried}");
    }
}

#[test]
#[ignore = "as long as LEAPS_FUZZ_SECONDS for each format, a minute without it; LEAPS_FUZZ_FORMAT names one"]
fn damaged_files_are_refused_or_read_for_long() {
    for format in formats() {
        let (tried, read) = fuzz(format, Duration::from_secs_f64(seconds()), 2);
        println!("{format}: {tried} files, {read} of them could be read");
    }
}
