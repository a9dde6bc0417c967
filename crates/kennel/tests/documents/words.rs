//! Help and messages use the words that people search for: see "Language" in CONTRIBUTING.md.

use std::path::{Path, PathBuf};

/// Finds "is no …" where "is not a …" is meant. "There is no …" and "is no longer …" are fine.
fn is_no(text: &str) -> Option<&str> {
    let mut rest = text;
    while let Some(at) = rest.find(" is no ") {
        let (before, after) = (&rest[..at], &rest[at + " is no ".len()..]);
        let there = before.to_lowercase().ends_with("there");
        let idiom = ["longer", "more", "such"];
        let idiom = idiom.iter().any(|word| after.starts_with(word));
        if !there && !idiom {
            return Some(&rest[at..]);
        }
        rest = after;
    }
    None
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn messages_say_is_not_a() {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap().flatten() {
        sources(&entry.path().join("src"), &mut found);
    }
    assert!(found.len() > 300, "the sources were found");
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        // A line of a message that goes over several has no quotation mark of its own.
        for line in code.filter(|line| line.contains('"') || line.trim_end().ends_with('\\')) {
            assert_eq!(is_no(line), None, "{}: {line}", path.display());
        }
    }
}

#[test]
fn help_says_rejected_and_is_not_a() {
    let help = std::fs::read_to_string(root().join("docs/reference/commands.md")).unwrap();
    for line in help.lines() {
        assert_eq!(is_no(line), None, "{line}");
        assert!(!line.contains("refuse"), "{line}");
    }
}
