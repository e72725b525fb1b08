//! Commands of README and docs/, in the shell they are written for.
//!
//! A block of `sh` or `console` that calls leaps is run, all blocks of a page in order in one folder. One below
//! `*Not run by the tests: REASON.*` is not: the program then only reads its flags, and so it does with commands in running text.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::markdown::{Block, Page, below};
use crate::{common, root};

const MARK: &str = "*Not run";

/// README and docs/.
fn pages() -> Vec<Page> {
    let root = root();
    let mut paths = vec![root.join("README.md")];
    below(&root.join("docs"), &mut paths);
    paths.iter().map(|path| Page::read(&root, path)).collect()
}

/// The commands of a block: all of a script, and of a console what stands behind the prompt; none if leaps is not called.
fn commands(block: &Block) -> Option<String> {
    let code: Vec<String> = match block.language.as_str() {
        "sh" => block.code.clone(),
        "console" => {
            block.code.iter().filter_map(|l| l.strip_prefix("$ ")).map(str::to_owned).collect()
        }
        _ => return None,
    };
    let script = code.join("\n").replace("cargo run --release -- ", "leaps ");
    let calls = script.split(['\n', ';', '|', '&', '(']).any(|part| {
        let part = part.trim_start();
        part.strip_prefix("do ").unwrap_or(part).starts_with("leaps ")
    });
    calls.then_some(script)
}

/// Why a block is not run.
fn reason(page: &Page, block: &Block) -> Option<String> {
    let rest = block.before.strip_prefix(MARK)?;
    let reason = rest.strip_prefix(" by the tests: ").and_then(|r| r.strip_suffix(".*"));
    let reason = reason.map(str::trim).filter(|reason| !reason.is_empty());
    let words = || panic!("{}:{}: '{}' gives no reason", page.name, block.line, block.before);
    Some(reason.unwrap_or_else(words).to_owned())
}

/// A command with something in the place of what readers are to fill in.
fn filled_in(command: &str) -> String {
    let mut before = "";
    let word = |word| {
        let after = std::mem::replace(&mut before, word);
        match word {
            "TARGET" => "ising",
            "SHELL" => "bash",
            "N" => "1",
            "A,B" => "0.2,0.44",
            "NAME" if after == "--kernel" => "wolff",
            "NAME" => "ising-15-critical",
            word => word,
        }
    };
    command.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Whether the program reads a command; a flag that ends it may wait for its value.
fn is_read(output: &Output) -> bool {
    output.status.success() || String::from_utf8_lossy(&output.stderr).contains("needs a value")
}

/// Run `script` in `folder`, with the program first of all.
fn shell(script: &str, folder: &Path) -> Output {
    let program = common::program();
    let mut path = vec![program.parent().unwrap().to_owned()];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    Command::new("/bin/sh")
        .args(["-ec", script])
        .env("PATH", std::env::join_paths(path).unwrap())
        .env("HOME", folder)
        .env_remove("LEAPS_MODELS")
        .current_dir(folder)
        .output()
        .unwrap()
}

/// Run the blocks of a page; what went wrong, and how many were run.
fn run(page: &Page) -> (Vec<String>, usize) {
    let folder = tempfile::tempdir().unwrap();
    let (mut wrong, mut done) = (Vec::new(), 0);
    for block in &page.blocks {
        let Some(script) = commands(block).filter(|_| reason(page, block).is_none()) else {
            continue;
        };
        let output = shell(&script, folder.path());
        done += 1;
        let place = format!("{}:{}", page.name, block.line);
        if !output.status.success() {
            let talk = String::from_utf8_lossy(&output.stderr);
            wrong.push(format!("{place}: {script}\n{talk}"));
        } else if script.starts_with("leaps exact") && block.language == "console" {
            // What is shown is what is printed.
            let printed = String::from_utf8_lossy(&output.stdout);
            if !page.text.contains(printed.trim_end()) {
                wrong.push(format!("{place}: prints\n{printed}"));
            }
        }
    }
    (wrong, done)
}

#[test]
fn every_command_runs() {
    let pages = pages();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(page) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let clock = std::time::Instant::now();
                    let (found, run) = run(page);
                    if run > 0 {
                        println!("{}: {run} blocks, {:.1?}", page.name, clock.elapsed());
                    }
                    done.fetch_add(run, Ordering::Relaxed);
                    wrong.lock().unwrap().extend(found);
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(done.into_inner() >= 20, "too few blocks were found");
}

#[test]
fn commands_that_are_not_run_say_why_and_have_flags_that_exist() {
    let (pages, folder) = (pages(), tempfile::tempdir().unwrap());
    let (mut wrong, mut blocks) = (Vec::new(), 0);
    for page in &pages {
        let marks = page.lines.iter().filter(|(_, line)| line.contains(MARK)).count();
        let mut used = 0;
        for block in &page.blocks {
            let Some(reason) = reason(page, block) else { continue };
            let Some(script) = commands(block) else { continue };
            (used, blocks) = (used + 1, blocks + 1);
            println!("{}:{} is not run: {reason}", page.name, block.line);
            for line in script.replace("\\\n", " ").lines().filter(|l| l.starts_with("leaps ")) {
                let command = filled_in(line.split(" #").next().unwrap());
                let output = shell(&format!("{command} --help"), folder.path());
                if !is_read(&output) {
                    let talk = String::from_utf8_lossy(&output.stderr);
                    wrong.push(format!("{}:{}: {line}\n{talk}", page.name, block.line));
                }
            }
        }
        assert_eq!(marks, used, "{}: a mark that belongs to no block with leaps in it", page.name);
    }
    println!("{blocks} blocks are not run");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn commands_in_the_text_have_flags_that_exist() {
    let (mut wrong, mut checked) = (Vec::new(), 0);
    // Decisions, results and lab notes record how something was made on its day.
    let now = |page: &&Page| page.name.matches('/').count() < 2;
    for page in pages().iter().filter(now) {
        for span in page.spans() {
            let Some(rest) = span.strip_prefix("leaps ") else { continue };
            // Choices, outlines and other programs in one line are not commands.
            let outline = rest.contains(['|', '$', '>', ';', '[']) || rest.contains("...");
            if outline || rest.starts_with(char::is_uppercase) || rest.starts_with("help") {
                continue;
            }
            checked += 1;
            let output = common::run_line(&format!("{} --help", filled_in(rest)));
            if !is_read(&output) {
                let talk = String::from_utf8_lossy(&output.stderr);
                wrong.push(format!("{}: {span}: {talk}", page.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 40, "only {checked} commands were found");
}

#[test]
fn a_mark_without_a_reason_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("page.md");
    for (mark, fails) in [
        ("*Not run by the tests: needs a GPU.*", false),
        ("*Not run by the tests: .*", true),
        ("*Not run.*", true),
    ] {
        std::fs::write(&path, format!("{mark}\n\n```sh\nleaps demo\n```\n")).unwrap();
        let page = Page::read(folder.path(), &path);
        let found = std::panic::catch_unwind(|| reason(&page, &page.blocks[0]));
        assert_eq!(found.is_err(), fails, "{mark}");
    }
}
