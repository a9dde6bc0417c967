//! Checks `docs/conformance.md` against the sources: every test it names exists, every test named after a rule is in
//! it, and every rule has a test or a reason.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that reads the sources"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The rows of both tables: rule, tests, remarks.
fn all_rows() -> Vec<Row> {
    let text = fs::read_to_string(root().join("docs/conformance.md")).unwrap();
    let is_rule = |rule: &str| rule.starts_with(|c: char| c.is_ascii_digit());
    let rows = text.lines().filter(|line| {
        let rule = line.strip_prefix("| ").unwrap_or_default();
        is_rule(rule.strip_prefix(['R', 'N']).unwrap_or(rule))
    });
    rows.map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [rule, _, tests, remarks] = cells[..] else {
            panic!("not four cells: {line}");
        };
        let names = tests
            .split_whitespace()
            .map(|name| name.trim_matches('`').to_owned());
        (rule.to_owned(), names.collect(), remarks.to_owned())
    })
    .collect()
}

type Row = (String, BTreeSet<String>, String);

/// The rules of DaemonSets.
fn rows() -> Vec<Row> {
    let rows = all_rows().into_iter();
    rows.filter(|(rule, ..)| !rule.starts_with(['R', 'N']))
        .collect()
}

/// The rules of safe rollouts.
fn rollout_rows() -> Vec<Row> {
    let rows = all_rows().into_iter();
    rows.filter(|(rule, ..)| rule.starts_with('R')).collect()
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// All functions whose names begin like those of tests of rules: `s3_4_2_…`, `r3_…` of safe rollouts, or `n1_2_…` of networks.
fn tests_of_rules() -> BTreeSet<String> {
    let mut names = numbered_functions("s", 2);
    names.extend(numbered_functions("n", 1));
    names.extend(numbered_functions("r", 1));
    names
}

/// All functions whose names begin with this letter and at least so many numbers.
fn numbered_functions(letter: &str, numbers: usize) -> BTreeSet<String> {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    let mut names = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(file).unwrap();
        for part in text.split(&format!("fn {letter}")).skip(1) {
            let name: String = part
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                .collect();
            let parts = name.split('_');
            let found = parts.take_while(|part| part.parse::<u8>().is_ok());
            // Helpers such as `n1` are no tests.
            if found.count() >= numbers && name.contains('_') {
                names.insert(format!("{letter}{name}"));
            }
        }
    }
    names
}

/// The section of a rule or test: the first number in it.
fn section(name: &str) -> u8 {
    let digits: String = name
        .chars()
        .skip_while(char::is_ascii_alphabetic)
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().unwrap()
}

#[test]
fn every_test_that_is_named_exists_and_every_rule_has_a_test_or_a_reason() {
    let known = tests_of_rules();
    for (rule, tests, remarks) in all_rows() {
        assert!(
            !tests.is_empty() || !remarks.is_empty(),
            "rule {rule} has neither"
        );
        for test in tests {
            assert!(
                known.contains(&test),
                "rule {rule}: there is no test {test}"
            );
        }
    }
}

#[test]
fn every_test_of_a_rule_is_in_the_table() {
    let listed: BTreeSet<String> = rows().into_iter().flat_map(|(_, tests, _)| tests).collect();
    for test in numbered_functions("s", 2) {
        if (2..=8).contains(&section(&test)) {
            assert!(
                listed.contains(&test),
                "{test} is not in docs/conformance.md"
            );
        }
    }
}

#[test]
fn every_test_of_a_network_rule_is_in_the_table() {
    let rows = all_rows()
        .into_iter()
        .filter(|(rule, ..)| rule.starts_with('N'));
    let listed: BTreeSet<String> = rows.flat_map(|(_, tests, _)| tests).collect();
    let missing: Vec<String> = numbered_functions("n", 1)
        .difference(&listed)
        .cloned()
        .collect();
    assert!(
        missing.is_empty(),
        "not in docs/conformance.md: {missing:?}"
    );
}

#[test]
fn no_rule_is_missing() {
    // Section, and how many numbered rules each of its parts has.
    let parts: [(&str, u8); 37] = [
        ("2.1", 2),
        ("2.2", 6),
        ("2.3", 4),
        ("2.4", 6),
        ("2.5", 5),
        ("2.6", 2),
        ("3.1", 11),
        ("3.2", 7),
        ("3.3", 2),
        ("3.4", 4),
        ("3.5", 6),
        ("3.6", 2),
        ("3.7", 8),
        ("3.8", 4),
        ("3.9", 5),
        ("3.10", 2),
        ("3.11", 1),
        ("3.12", 5),
        ("4", 10),
        ("4.6", 2),
        ("5.1", 5),
        ("5.2", 2),
        ("5.3", 1),
        ("5.4", 5),
        ("5.5", 7),
        ("5.6", 5),
        ("6.1", 2),
        ("6.2", 4),
        ("6.3", 3),
        ("6.4", 3),
        ("7", 12),
        ("8", 10),
        ("3.4", 0),
        ("3.10", 0),
        ("6.1", 0),
        ("5.4", 0),
        ("5.5", 0),
    ];
    let listed: BTreeSet<String> = rows().into_iter().map(|(rule, ..)| rule).collect();
    for (part, count) in parts {
        for number in 1..=count {
            let rule = format!("{part}.{number}");
            assert!(listed.contains(&rule), "rule {rule} is missing");
        }
        if count == 0 {
            assert!(listed.contains(part), "rule {part} is missing");
        }
    }
}

#[test]
fn every_test_of_a_rollout_rule_is_in_the_table() {
    let rows = rollout_rows().into_iter();
    let listed: BTreeSet<String> = rows.flat_map(|(_, tests, _)| tests).collect();
    let mut missing: Vec<String> = numbered_functions("r", 1).into_iter().collect();
    missing.retain(|test| !listed.contains(test));
    assert!(
        missing.is_empty(),
        "not in docs/conformance.md: {missing:?}"
    );
}

/// The rules that a specification names, such as `R3.2`.
fn ruled(letter: char, text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    let words = words.map(|word| word.trim_end_matches('.'));
    let numbers = |word: &&str| {
        let rest = word.strip_prefix(letter).unwrap_or_default();
        let mut parts = rest.split('.');
        !rest.is_empty() && parts.all(|part| part.parse::<u8>().is_ok())
    };
    words.filter(numbers).collect()
}

/// Each rule of a specification has a row, or rows for its parts. `least` is how many rules it has, at least.
fn every_rule_is_listed(specification: &str, letter: char, least: usize) {
    let text = fs::read_to_string(root().join(specification)).unwrap();
    let ruled = ruled(letter, &text);
    assert!(ruled.len() >= least, "{ruled:?}");
    let rows = all_rows().into_iter().map(|(rule, ..)| rule);
    let listed: BTreeSet<String> = rows.collect();
    for rule in ruled {
        let of_it = format!("{rule}.");
        let found = listed
            .iter()
            .any(|row| row == rule || row.starts_with(&of_it));
        assert!(found, "rule {rule} is missing in docs/conformance.md");
    }
}

#[test]
fn no_rollout_rule_is_missing() {
    every_rule_is_listed("docs/spec/rollouts.md", 'R', 41);
}

#[test]
fn no_network_rule_is_missing() {
    every_rule_is_listed("docs/spec/services.md", 'N', 19);
}
