//! Commands of README and docs/, in the shell they are written for.
//!
//! Every block of `sh` or `console` is run, all blocks of a page in order in one folder, and with them those of `python` that need NumPy
//! alone. One below `*Not run by the tests: REASON.*` is not: the program then only reads its flags, and so it does with commands in running
//! text. Commands in blocks of another language would escape all of this, and are refused.

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

/// Languages of commands that are not run, and have to be written as one that is.
const OTHER_SHELLS: [&str; 6] = ["bash", "shell", "zsh", "fish", "powershell", "bat"];

/// The commands of a block: all of a script, and of a console what stands behind the prompt.
///
/// The program that cargo would install is the one that is tested, so that installing only looks for what it is made of.
fn commands(block: &Block) -> Option<String> {
    let code: Vec<String> = match block.language.as_str() {
        "sh" => block.code.clone(),
        "console" => {
            block.code.iter().filter_map(|l| l.strip_prefix("$ ")).map(str::to_owned).collect()
        }
        _ => return None,
    };
    let command = |line: &String| {
        let root = root().display().to_string();
        if let Some(folder) = line.strip_prefix("cargo install --path ") {
            return format!("test -f '{root}/{folder}/src/main.rs'");
        }
        match line.strip_prefix("scripts/") {
            Some(rest) => format!("'{root}'/scripts/{rest}"),
            None => line.replace("cargo run --release -- ", "leaps "),
        }
    };
    Some(code.iter().map(command).collect::<Vec<_>>().join("\n"))
}

/// The code of a block of Python that needs nothing but NumPy; what needs the package `leaps` is run by the tests of the package.
fn python(block: &Block) -> Option<String> {
    let own = block.language == "python" && !is_of_the_package(block);
    own.then(|| block.code.join("\n"))
}

/// Whether code is about the Python package.
fn is_of_the_package(block: &Block) -> bool {
    block.code.iter().any(|line| line.contains("leaps.") || line.starts_with("import leaps"))
}

/// The Python with NumPy that there is for tests.
fn interpreter() -> Option<std::ffi::OsString> {
    std::env::var_os("LEAPS_PYTHON")
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
    for block in page.blocks.iter().filter(|block| reason(page, block).is_none()) {
        let place = format!("{}:{}", page.name, block.line);
        if let (Some(code), Some(interpreter)) = (python(block), interpreter()) {
            let mut command = Command::new(interpreter);
            let output = command.args(["-c", &code]).current_dir(folder.path()).output().unwrap();
            if !output.status.success() {
                let talk = String::from_utf8_lossy(&output.stderr);
                wrong.push(format!("{place}: {code}\n{talk}"));
            }
            done += 1;
        }
        let Some(script) = commands(block) else { continue };
        let output = shell(&script, folder.path());
        done += 1;
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

/// Whether a page has code that is for a Python with NumPy.
fn needs_python(page: &Page) -> bool {
    page.blocks.iter().any(|block| python(block).is_some() && reason(page, block).is_none())
}

#[test]
fn every_command_runs() {
    // Those with code in Python have a test of their own, where there is one.
    let mut pages = pages();
    pages.retain(|page| interpreter().is_none() || !needs_python(page));
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
#[cfg_attr(not(has_python), ignore = "needs Python and NumPy: set LEAPS_PYTHON to a program")]
fn code_in_python_runs_after_the_commands_of_its_page() {
    assert!(interpreter().is_some(), "LEAPS_PYTHON is set, as when this was built");
    let mut done = 0;
    for page in pages().iter().filter(|page| needs_python(page)) {
        let (wrong, run) = run(page);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        println!("{}: {run} blocks", page.name);
        done += 1;
    }
    assert!(done >= 2, "README.md and docs/first-run.md have some");
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
            if !matches!(&*block.language, "sh" | "console") {
                continue;
            }
            // Of other programs than ours there is nothing to check.
            let script = commands(block).unwrap_or_default();
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
        assert_eq!(marks, used, "{}: a mark that belongs to no block of commands", page.name);
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

/// A line of a block that is a command and that nothing runs.
fn escapes<'p>(page: &Page, block: &'p Block) -> Option<&'p str> {
    let calls = ["leaps ", "cargo ", "python ", "python3 ", "pip "];
    let command =
        |line: &&String| calls.iter().any(|call| line.trim_start_matches("$ ").starts_with(call));
    let first = block.code.first().map_or("", |line| line.as_str());
    match &*block.language {
        "" | "text" => block.code.iter().find(command).map(|line| line.as_str()),
        "console" => Some(first).filter(|_| commands(block).is_none_or(|script| script.is_empty())),
        // crates/leaps-python/tests/test_guide.py runs these two.
        "python" => {
            let run = ["README.md", "docs/python.md"].contains(&&*page.name);
            Some(first).filter(|_| is_of_the_package(block) && !run)
        }
        language => Some(first).filter(|_| OTHER_SHELLS.contains(&language)),
    }
}

#[test]
fn no_command_escapes() {
    let pages = pages();
    let hidden = |page: &Page| -> Vec<String> {
        let found = page.blocks.iter().filter_map(|block| Some((block, escapes(page, block)?)));
        found.map(|(block, line)| format!("{}:{}: {line}", page.name, block.line)).collect()
    };
    let all: Vec<String> = pages.iter().flat_map(hidden).collect();
    assert!(all.is_empty(), "a command that nothing runs; make it a block of sh: {all:#?}");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.md");
    for (language, line, refused) in [
        ("text", "cargo run --release", true),
        ("", "leaps demo", true),
        ("text", "leaps: Ising 4x4", false),
        ("sh", "cargo run --release", false),
        ("bash", "ls", true),
        ("console", "$ ls", false),
        ("console", "ls", true),
        ("python", "import numpy", false),
        ("python", "import leaps", true),
    ] {
        std::fs::write(&path, format!("```{language}\n{line}\n```\n")).unwrap();
        let page = Page::read(folder.path(), &path);
        assert_eq!(!hidden(&page).is_empty(), refused, "{language} {line}");
    }
}

/// Blocks that nobody would have run before: without the program, and of Python.
#[test]
fn commands_of_other_programs_are_run_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.md");
    for (language, code, wrong) in [
        ("sh", "true", 0),
        ("sh", "false", 1),
        ("sh", "scripts/release --help", 0),
        ("sh", "scripts/nothing --help", 1),
        ("sh", "cargo install --path crates/leaps-cli", 0),
        ("sh", "cargo install --path crates/leaps", 1),
        ("python", "import no_such_module", usize::from(interpreter().is_some())),
    ] {
        std::fs::write(&path, format!("```{language}\n{code}\n```\n")).unwrap();
        let found = run(&Page::read(folder.path(), &path)).0;
        assert_eq!(found.len(), wrong, "{code}: {found:?}");
    }
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
