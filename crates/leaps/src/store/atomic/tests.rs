//! Tests of files and directories that appear whole or not at all.

use super::*;

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_file_appears_whole_or_not_at_all() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("a");
    write(&path, b"first").unwrap();
    let mut file = AtomicFile::create(&path).unwrap();
    file.write_all(b"second").unwrap();
    file.flush().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"first");
    drop(file);
    assert_eq!(
        (fs::read(&path).unwrap(), names(scratch.path())),
        (b"first".into(), vec!["a".into()])
    );
    write(&path, b"second").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"second");
}

#[test]
fn a_directory_appears_whole_and_replaces_another() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("d");
    for text in [b"one", b"two"] {
        let directory = AtomicDirectory::create(&path).unwrap();
        directory.write("x", text).unwrap();
        assert_ne!(fs::read(path.join("x")).ok().as_deref(), Some(&text[..]));
        directory.finish().unwrap();
        assert_eq!(fs::read(path.join("x")).unwrap(), text);
    }
    drop(AtomicDirectory::create(&path).unwrap());
    assert_eq!(names(scratch.path()), ["d"]);
    remove_directory(&path).unwrap();
    assert!(names(scratch.path()).is_empty());
}

#[test]
fn what_killed_processes_left_is_removed_and_nothing_else() {
    let scratch = tempfile::tempdir().unwrap();
    for name in [".a.1.0.part", "b.part", ".c"] {
        fs::write(scratch.path().join(name), b"").unwrap();
    }
    fs::create_dir_all(scratch.path().join(".d.7.3.part/inner")).unwrap();
    remove_leftovers(scratch.path()).unwrap();
    assert_eq!(names(scratch.path()), [".c", "b.part"]);
}

#[test]
fn failures_name_the_final_path() {
    let scratch = tempfile::tempdir().unwrap();
    let inside_a_file = scratch.path().join("file/inside");
    fs::write(scratch.path().join("file"), b"").unwrap();
    for path in [inside_a_file, scratch.path().join("missing/a"), "/".into(), "..".into()] {
        let named = |error| matches!(error, Error::Io { path: named, .. } if named == path);
        assert!(named(write(&path, b"").unwrap_err()), "{path:?}");
        assert!(named(AtomicDirectory::create(&path).unwrap_err()), "{path:?}");
    }
}

#[cfg(unix)]
#[test]
fn permissions_are_those_of_any_new_file() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = tempfile::tempdir().unwrap();
    let mode = |name: &str| fs::metadata(scratch.path().join(name)).unwrap().permissions().mode();
    fs::write(scratch.path().join("plain"), b"").unwrap();
    fs::create_dir(scratch.path().join("folder")).unwrap();
    write(scratch.path().join("ours"), b"").unwrap();
    let directory = AtomicDirectory::create(scratch.path().join("made")).unwrap();
    directory.write("x", b"").unwrap();
    directory.finish().unwrap();
    assert_eq!((mode("ours"), mode("made/x")), (mode("plain"), mode("plain")));
    assert_eq!(mode("made"), mode("folder"));
}

#[test]
fn what_a_killed_process_left_goes_with_the_next_write_of_its_name() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("x.npz");
    let hour_ago = std::time::SystemTime::now() - 60 * STALE;
    let leave = |name: &str, old: bool| {
        let file = File::create(scratch.path().join(name)).unwrap();
        if old {
            file.set_modified(hour_ago).unwrap();
        }
        file
    };
    leave(".x.npz.123.0.part", true);
    leave(".x.npz.124.7.part", true);
    // Young; locked by somebody who lives; of another file; not ours.
    leave(".x.npz.125.0.part", false);
    let alive = leave(".x.npz.126.0.part", true);
    alive.lock().unwrap();
    leave(".y.npz.123.0.part", true);
    leave(".x.npz.mine.part", true);
    write(&path, b"new").unwrap();
    let left = [
        ".x.npz.125.0.part",
        ".x.npz.126.0.part",
        ".x.npz.mine.part",
        ".y.npz.123.0.part",
        "x.npz",
    ];
    assert_eq!(names(scratch.path()), left);
    // Our own file is locked while we write it.
    let file = AtomicFile::create(&path).unwrap();
    File::open(&file.temporary).unwrap().set_modified(hour_ago).ok();
    write(&path, b"newer").unwrap();
    assert!(file.temporary.exists());
    file.finish().unwrap();
}

#[test]
fn names_of_a_directory_can_be_flushed() {
    let scratch = tempfile::tempdir().unwrap();
    flush_names(scratch.path()).unwrap();
    assert!(flush_names(&scratch.path().join("missing")).is_err());
}

/// On Windows a lock of the writer under the final name would be an error of the reader.
#[test]
fn readers_see_whole_files_while_these_are_replaced() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("a");
    let contents = |n: u8| vec![n; 100_000];
    write(&path, &contents(0)).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| (1..=100).for_each(|n| write(&path, &contents(n)).unwrap()));
        while !writer.is_finished() {
            let read = fs::read(&path).unwrap();
            assert_eq!(read, contents(read[0]));
        }
    });
    assert_eq!(fs::read(&path).unwrap(), contents(100));
}
