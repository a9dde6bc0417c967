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

/// Names of modules that say nothing to a Kubernetes or Rust engineer. The terms that replaced them are in the code map of
/// ARCHITECTURE.md.
const MODULES: [&str; 33] = [
    "album",
    "bell",
    "carried",
    "desk",
    "dice",
    "door",
    "fate",
    "flight",
    "household",
    "keep",
    "keeper",
    "law",
    "lean",
    "leniency",
    "look",
    "noise",
    "opinion",
    "parts",
    "patience",
    "plain",
    "seen",
    "shape",
    "showcase",
    "strangers",
    "surroundings",
    "tell",
    "trail",
    "turn",
    "upkeep",
    "voice",
    "witness",
    "witnesses",
    "world",
];

/// How comments began or ended that named no actor.
const PHRASES: [&str; 8] = [
    "goes on on",
    "has shown nothing",
    "in their favour",
    "lets it be",
    "of what is gone",
    "was said before of",
    "who does not know it",
    "whose turn it becomes",
];

/// The names of the modules that a file is or declares.
fn modules(path: &Path, text: &str) -> Vec<String> {
    let declared = text.lines().filter_map(|line| {
        let (visibility, rest) = line.trim_start().split_once("mod ")?;
        let is_declaration = visibility.is_empty() || visibility.starts_with("pub");
        let name = rest.trim_end_matches(['{', ';', ' ']);
        is_declaration.then(|| name.to_owned())
    });
    let own = path.with_extension("");
    let own = own
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    declared.chain(own).collect()
}

/// What is wrong with a comment: a subject that is nobody, or one of the phrases.
fn riddle(line: &str) -> Option<&str> {
    let comment = line.trim_start().strip_prefix("//")?;
    let comment = comment.trim_start_matches(['/', '!', ' ']);
    let found = PHRASES
        .into_iter()
        .find(|phrase| comment.to_lowercase().contains(phrase));
    let subject = ["Who ", "Whose ", "Whom "];
    let subject = subject.into_iter().find(|word| comment.starts_with(word));
    found.or(subject)
}

#[test]
fn modules_and_comments_use_the_terms_of_the_field() {
    let mut found = Vec::new();
    for dir in ["crates", "xtask", "fuzz"] {
        sources(&root().join(dir), &mut found);
    }
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap();
        for module in modules(&path, &text) {
            let is_banned = MODULES.contains(&module.as_str());
            assert!(!is_banned, "{}: module {module}", path.display());
        }
        // This file names the phrases.
        if path.ends_with("documents/words.rs") {
            continue;
        }
        for line in text.lines() {
            assert_eq!(riddle(line), None, "{}: {line}", path.display());
        }
    }
}

#[test]
fn riddles_in_comments_and_names_are_found() {
    assert_eq!(
        riddle("    /// Who has run for so long begins with a short rest again."),
        Some("Who ")
    );
    assert_eq!(
        riddle("// Nobody cares: it lets it be."),
        Some("lets it be")
    );
    assert_eq!(riddle("let who = 1; // Who"), None);
    assert_eq!(
        riddle("//! The client of a request, who is anonymous."),
        None
    );
    let path = Path::new("src/node/voice.rs");
    let text = "pub(crate) mod keeper;\nmod tests {\n// mod door;\n";
    assert_eq!(modules(path, text), ["keeper", "tests", "voice"]);
}

#[test]
fn the_index_of_the_documentation_names_topics() {
    let index = std::fs::read_to_string(root().join("docs/README.md")).unwrap();
    for line in index.lines() {
        let words = line.to_lowercase();
        let mut words = words.split(|c: char| !c.is_alphanumeric());
        let person = words.find(|word| ["who", "whose", "somebody", "nobody"].contains(word));
        assert_eq!(person, None, "{line}");
    }
}
