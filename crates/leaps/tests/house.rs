//! Rules of the house that are counted: modules use only those before them, so that every room can be read without the
//! ones that stand on it; code asks for the feature `cuda` in few places; public functions take at most five arguments;
//! kernels at most six; messages of the library name settings, not flags; lines of Markdown have at most 120 columns.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The rooms from the ground up. Those of one line stand side by side and do not use each other, but for the first line.
const ROOMS: [&[&str]; 13] = [
    &["error", "device", "file", "parse"],
    &["target", "path"],
    &["problem"],
    &["observe"],
    &["exact", "mcmc", "rates"],
    &["net"],
    &["sampler"],
    &["train"],
    &["spec"],
    &["results"],
    &["store"],
    &["job"],
    &["prelude"],
];

fn floor(room: &str) -> Option<usize> {
    ROOMS.iter().position(|rooms| rooms.contains(&room))
}

/// Arguments of a public function beside `self`, at most.
const MOST: usize = 5;

/// Files below a folder whose names end so.
fn files(folder: &Path, end: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        match entry.is_dir() {
            true => files(&entry, end, found),
            false if entry.extension().is_some_and(|own| own == end) => found.push(entry),
            false => {}
        }
    }
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    files(folder, "rs", found);
}

/// Names and numbers of arguments of the public functions in a source, methods of public traits included.
fn public_functions(text: &str) -> Vec<(String, usize)> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join("\n");
    let traits: Vec<_> = code.match_indices("pub trait ").map(|(at, _)| block(&code, at)).collect();
    let starts = code.match_indices("fn ").filter(|(at, _)| {
        let line = code[..*at].rsplit('\n').next().unwrap_or_default();
        let own = ["", "unsafe "].contains(&line.trim_start());
        let method = own && traits.iter().any(|inside| inside.contains(at));
        method || line.trim_start().starts_with("pub ") && !line.contains('(')
    });
    starts.filter_map(|(at, _)| arguments(&code[at + 3..])).collect()
}

/// The place of the block in braces that begins behind `from`.
fn block(code: &str, from: usize) -> Range<usize> {
    let mut depth = 0;
    let closes = |(_, c): &(usize, char)| {
        depth += i32::from(*c == '{') - i32::from(*c == '}');
        *c == '}' && depth == 0
    };
    from..from + code[from..].char_indices().find(closes).map_or(0, |(end, _)| end)
}

/// The name and the number of arguments of a function, from its name on.
fn arguments(code: &str) -> Option<(String, usize)> {
    let name: String = code.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    let (mut depth, mut angle, mut inside) = (0, 0, false);
    let (mut parts, mut before) = (vec![String::new()], ' ');
    for c in code[name.len()..].chars() {
        match c {
            '(' | '[' | '{' if inside => depth += 1,
            '(' if angle == 0 => (inside, depth) = (true, 1),
            ')' | ']' | '}' if inside => depth -= 1,
            '<' => angle += 1,
            '>' if before != '-' && before != '=' => angle -= 1,
            _ => {}
        }
        before = c;
        match c {
            _ if !inside => {}
            _ if depth == 0 => break,
            ',' if depth == 1 && angle == 0 => parts.push(String::new()),
            _ => parts.last_mut()?.push(c),
        }
    }
    let own = |part: &String| part.split(':').next().is_some_and(|name| name.contains("self"));
    let count = parts.iter().filter(|part| {
        let part = part.trim_start_matches('(').trim();
        !part.is_empty() && !own(&part.to_owned())
    });
    Some((name, count.count()))
}

#[test]
fn arguments_are_counted() {
    let text = "
        pub fn a() {}
        pub fn b(&self, x: [u8; 3], y: Map<u8, u8>) -> Vec<u8> {}
        pub(crate) fn hidden(a: u8, b: u8) {}
        pub fn c<F: Fn(u8, u8) -> u8>((a, b): (u8, u8), f: F, g: impl Fn(u8, u8) -> u8,) {}
        pub const fn d(
            &mut self,
            x: u8,
        ) {}
        pub trait Any {
            fn e(&self, x: u8, y: u8, z: u8) -> u8 { x }
        }
        trait Hidden {
            fn f(a: u8);
        }";
    let found = public_functions(text);
    let names: Vec<(&str, usize)> = found.iter().map(|(name, n)| (name.as_str(), *n)).collect();
    assert_eq!(names, [("a", 0), ("b", 2), ("c", 3), ("d", 1), ("e", 3)]);
}

#[test]
fn public_functions_take_at_most_five_arguments() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for member in fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path().join("src")) {
        if member.is_dir() {
            sources(&member, &mut files);
        }
    }
    assert!(files.len() > 150, "{}", files.len());
    let mut wrong = Vec::new();
    for file in &files {
        for (name, count) in public_functions(&fs::read_to_string(file).unwrap()) {
            if count > MOST {
                wrong.push(format!("{}: {name} takes {count}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Arguments of a kernel, at most; what needs more takes a structure that Rust describes.
const MOST_OF_A_KERNEL: usize = 6;

/// Names and numbers of arguments of the kernels in a CUDA source.
fn kernels(text: &str) -> Vec<(String, usize)> {
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let code = lines.collect::<Vec<_>>().join("\n");
    let found = code.split("__global__").skip(1).map(|rest| {
        let rest = rest.trim_start().strip_prefix("void").unwrap().trim_start();
        let mut depth = 0;
        let closes = |c: char| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            c == ')' && depth == 0
        };
        let name = match rest.starts_with("__launch_bounds__") {
            true => rest[rest.find(closes).unwrap() + 1..].trim_start(),
            false => rest,
        };
        arguments(name).unwrap()
    });
    found.collect()
}

#[test]
fn kernels_take_at_most_six_arguments() {
    let text = "
        extern \"C\" __global__ void a(const float* x, u32 n) {} // __global__
        extern \"C\" __global__ void __launch_bounds__(WARPS * (2 + 3), 2)
        b(A a,
          u32) {}
        __global__ void c(u32 a, u32 b, u32 c, u32 d, u32 e, u32 f, u32 g) {}";
    let found = kernels(text);
    let names: Vec<(&str, usize)> = found.iter().map(|(name, n)| (name.as_str(), *n)).collect();
    assert_eq!(names, [("a", 2), ("b", 2), ("c", 7)]);
    let mut sources = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "cu", &mut sources);
    let (mut all, mut wrong) = (0, Vec::new());
    for file in &sources {
        for (name, count) in kernels(&fs::read_to_string(file).unwrap()) {
            all += 1;
            if count > MOST_OF_A_KERNEL {
                wrong.push(format!("{}: {name} takes {count}", file.display()));
            }
        }
    }
    assert!(all > 100 && wrong.is_empty(), "{all} kernels; {}", wrong.join("\n"));
}

/// Rooms that a source names after `crate::`, tests left out.
fn named(text: &str) -> BTreeSet<String> {
    let code = text.split("#[cfg(test)]\nmod").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let words = lines.flat_map(|line| line.split("crate::").skip(1));
    words
        .map(|rest| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
        .collect()
}

#[test]
fn arrows_point_one_way() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let (mut seen, mut wrong) = (BTreeSet::new(), Vec::new());
    for file in &files {
        let inside = file.strip_prefix(&root).unwrap();
        let room = inside.iter().next().unwrap().to_string_lossy().replace(".rs", "");
        let test = inside.iter().any(|part| part.to_string_lossy().contains("test"));
        let Some(own) = floor(&room).filter(|_| !test) else { continue };
        seen.insert(room.clone());
        for other in named(&fs::read_to_string(file).unwrap()) {
            let above = floor(&other).is_some_and(|other| other > own || own > 0 && other == own);
            if above && other != room {
                wrong.push(format!("{} uses {other}", inside.display()));
            }
        }
    }
    assert_eq!(seen.len(), ROOMS.iter().map(|rooms| rooms.len()).sum::<usize>(), "{seen:?}");
    assert!(wrong.is_empty(), "against the arrows:\n{}", wrong.join("\n"));
}

#[test]
fn the_feature_cuda_is_asked_for_in_device_and_in_modules_named_cuda() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for member in fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path().join("src")) {
        if member.is_dir() {
            sources(&member, &mut files);
        }
    }
    assert!(files.iter().any(|file| file.starts_with(root.join("leaps-cli"))), "{files:?}");
    let asks = |file: &&PathBuf| fs::read_to_string(file).unwrap().contains("feature = \"cuda\"");
    let elsewhere: Vec<String> = files
        .iter()
        .filter(asks)
        .map(|file| file.strip_prefix(root).unwrap())
        .filter(|file| {
            !file.starts_with("leaps/src/device") && !file.iter().any(|part| part == "cuda")
        })
        .filter(|file| file.file_name().is_none_or(|name| name != "cuda.rs"))
        .map(|file| file.display().to_string().replace('\\', "/"))
        .collect();
    assert!(elsewhere.is_empty(), "these ask for the feature cuda: {elsewhere:?}");
}

/// Whether a line of code has a flag in a text: dashes and a letter after a blank, a quotation mark or a bracket.
fn names_a_flag(line: &str) -> bool {
    let code = !["//", "#["].iter().any(|start| line.trim_start().starts_with(start));
    let flag = |(at, dashes): (usize, &str)| {
        let before = line[..at].chars().next_back();
        let after = line[at + dashes.len()..].chars().next();
        before.is_none_or(|c| " \"'`(".contains(c)) && after.is_some_and(|c| c.is_ascii_lowercase())
    };
    code && line.match_indices("--").any(flag)
}

/// Whether a line of code has a command of the program in a text.
fn names_a_verb(line: &str) -> bool {
    let code = !["//", "#["].iter().any(|start| line.trim_start().starts_with(start));
    code && ["'leaps ", "the verb "].iter().any(|words| line.contains(words))
}

/// Help of flags, and options of the compiler of kernels.
const WITH_FLAGS: [&str; 2] = ["mcmc/spec.rs", "device/cuda/mod.rs"];

#[test]
fn messages_of_the_library_name_settings_not_flags() {
    assert!(names_a_flag("    \"use --scheme events\"") && names_a_flag("f(\"--out\")"));
    assert!(!names_a_flag("/// as `--json` prints it") && !names_a_flag("a -- b"));
    assert!(names_a_verb("\"see 'leaps models'\"") && !names_a_verb("// as 'leaps train' does"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut wrong = Vec::new();
    for file in &files {
        let inside = file.strip_prefix(&root).unwrap().display().to_string().replace('\\', "/");
        let text = fs::read_to_string(file).unwrap();
        let code = text.split("#[cfg(test)]\nmod").next().unwrap_or_default();
        let lines = code.lines().enumerate();
        let lines = lines.filter(|(_, line)| names_a_flag(line) || names_a_verb(line));
        if !WITH_FLAGS.contains(&inside.as_str()) {
            wrong.extend(lines.map(|(number, line)| format!("{inside}:{}: {line}", number + 1)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Columns of a line of Markdown, at most; tables and code are as wide as they are.
const COLUMNS: usize = 120;

#[test]
fn lines_of_markdown_have_at_most_120_columns() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages: Vec<PathBuf> =
        ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"].map(|name| root.join(name)).to_vec();
    for folder in ["docs", "crates"] {
        files(&root.join(folder), "md", &mut pages);
    }
    let mut long = Vec::new();
    for page in &pages {
        let (text, mut code) = (fs::read_to_string(page).unwrap(), false);
        for (number, line) in text.lines().enumerate() {
            let fence = line.trim_start().starts_with("```");
            code ^= fence;
            let exempt = code || fence || line.trim_start().starts_with('|');
            if !exempt && line.chars().count() > COLUMNS {
                long.push(format!("{}:{}", page.display(), number + 1));
            }
        }
    }
    assert!(pages.len() > 30 && long.is_empty(), "{long:#?}");
}
