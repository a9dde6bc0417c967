//! Tests of swapping files.

use super::*;

fn files(files: &[(&str, &str)]) -> Files {
    let file = |content: &str| File {
        content: content.into(),
        mode: 0o640,
        owner: None,
    };
    let files = files.iter();
    files
        .map(|(path, content)| (path.into(), file(content)))
        .collect()
}

/// What readers see.
fn seen(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if name.starts_with("..") {
            continue;
        }
        if entry.path().is_dir() {
            let below = seen(&entry.path());
            found.extend(below.into_iter().map(|path| format!("{name}/{path}")));
        } else {
            found.push(format!(
                "{name}={}",
                fs::read_to_string(entry.path()).unwrap()
            ));
        }
    }
    found.sort();
    found
}

fn versions(dir: &Path) -> usize {
    let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
    entries
        .filter(|entry| entry.file_type().unwrap().is_dir())
        .count()
}

#[test]
fn files_change_as_a_whole() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write(dir, &files(&[("a", "1"), ("sub/b", "2")]), None).unwrap();
    assert_eq!(seen(dir), ["a=1", "sub/b=2"]);
    let mode = fs::metadata(dir.join("a")).unwrap().mode();
    assert_eq!(mode & 0o777, 0o640);
    let before = fs::read_link(dir.join(DATA)).unwrap();
    write(dir, &files(&[("a", "1"), ("sub/b", "2")]), None).unwrap();
    assert_eq!(
        fs::read_link(dir.join(DATA)).unwrap(),
        before,
        "nothing changed"
    );
    write(dir, &files(&[("a", "3"), ("c", "4")]), None).unwrap();
    assert_eq!(seen(dir), ["a=3", "c=4"]);
    assert_eq!(versions(dir), 1);
    write(dir, &files(&[]), None).unwrap();
    assert!(seen(dir).is_empty());
}

#[test]
fn who_holds_the_old_directory_open_reads_old_files_only() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write(dir, &files(&[("a", "1"), ("b", "1")]), None).unwrap();
    let current = fs::canonicalize(dir.join(DATA)).unwrap();
    let (mut one, mut other) = (String::new(), String::new());
    let mut open = fs::File::open(current.join("a")).unwrap();
    let mut open_b = fs::File::open(current.join("b")).unwrap();
    write(dir, &files(&[("a", "2"), ("b", "2")]), None).unwrap();
    io::Read::read_to_string(&mut open, &mut one).unwrap();
    io::Read::read_to_string(&mut open_b, &mut other).unwrap();
    assert_eq!((&*one, &*other), ("1", "1"));
}

#[test]
fn what_a_crash_left_is_cleared_away() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write(dir, &files(&[("a", "1")]), None).unwrap();
    // Cut short before the swap, and before the links.
    fs::create_dir(dir.join("..2020_01_01T00_00_00Z.1")).unwrap();
    symlink("..2020_01_01T00_00_00Z.1", dir.join(DATA_TMP)).unwrap();
    fs::remove_file(dir.join("a")).unwrap();
    symlink("..data/gone", dir.join("gone")).unwrap();
    write(dir, &files(&[("a", "1")]), None).unwrap();
    assert_eq!(seen(dir), ["a=1"]);
    assert_eq!(versions(dir), 1);
    assert!(!dir.join("gone").is_symlink());
    write(dir, &files(&[("a", "2")]), None).unwrap();
    assert_eq!(seen(dir), ["a=2"]);
}

#[test]
fn a_mode_that_changed_is_a_change() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let mut files = files(&[("a", "1")]);
    write(dir, &files, None).unwrap();
    files.get_mut(Path::new("a")).unwrap().mode = 0o400;
    write(dir, &files, None).unwrap();
    let mode = fs::metadata(dir.join("a")).unwrap().mode();
    assert_eq!(mode & 0o777, 0o400);
}

#[test]
fn paths_that_lead_out_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for path in ["../x", "/etc/x", "a/../../x", "..data", "..", ""] {
        let error = write(dir.path(), &files(&[(path, "1")]), None);
        assert!(error.is_err(), "{path}");
    }
}
