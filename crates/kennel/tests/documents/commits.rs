//! Subjects of commits are as CONTRIBUTING.md asks for.

use std::process::Command;

use super::words::root;

/// Commits after this one are checked; earlier ones stay as they are.
const BASE: &str = "eb458c3356589f210d6046be0e8283d7c16d3201";
const CHARS_MAX: usize = 72;

/// What is wrong with a subject.
fn fault(subject: &str) -> Option<&'static str> {
    if subject.chars().count() > CHARS_MAX {
        return Some("it has more than 72 characters");
    }
    let unfinished = ["fixup!", "squash!", "amend!"];
    if unfinished.iter().any(|word| subject.starts_with(word)) {
        return Some("it is to be squashed into another commit");
    }
    None
}

/// The subjects of the commits since the base; `None` without the history.
fn subjects() -> Option<Vec<String>> {
    let output = Command::new("git")
        .args(["-c", "safe.directory=*", "log", "--format=%s"])
        .arg(format!("{BASE}..HEAD"))
        .current_dir(root())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let lines = text.lines().map(str::to_owned);
    output.status.success().then(|| lines.collect())
}

#[test]
fn subjects_of_commits_are_short_and_final() {
    let Some(subjects) = subjects() else {
        return kennel_test_support::skip("the clone has no history since the base commit");
    };
    for subject in subjects {
        assert_eq!(fault(&subject), None, "{subject}");
    }
}

#[test]
fn long_and_unfinished_subjects_are_found() {
    assert_eq!(
        fault("Return 410 for watches from a future resourceVersion"),
        None
    );
    assert!(fault(&"é".repeat(CHARS_MAX)).is_none());
    assert!(fault(&"e".repeat(CHARS_MAX + 1)).is_some());
    assert!(fault("fixup! Return 410").is_some());
}
