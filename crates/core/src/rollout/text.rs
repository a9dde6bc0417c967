//! Words for people that status, plan and history share.

use std::fmt;

/// How many nodes a line names.
const NAMED: usize = 8;

/// Names with commas: all of them, or the first and a count.
pub(super) struct Names<'a>(pub(super) &'a [String], pub(super) bool);

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(names, all) = self;
        // One more name is no longer than the words that stand for it.
        let shown = if *all || names.len() <= NAMED + 1 {
            names.len()
        } else {
            NAMED
        };
        f.write_str(&names[..shown].join(", "))?;
        match names.len() - shown {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

pub(super) fn nodes_text(count: usize) -> String {
    plural(count, "node")
}

pub(super) fn plural(count: usize, word: &str) -> String {
    match count {
        1 => format!("1 {word}"),
        count => format!("{count} {word}s"),
    }
}

/// `47th`.
pub fn ordinal(number: usize) -> String {
    let suffix = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{suffix}")
}

/// `ds/NAME`, with the namespace unless it is the default one.
pub(super) fn reference(namespace: &str, name: &str) -> String {
    match namespace {
        "default" => format!("ds/{name}"),
        namespace => format!("ds/{name} -n {namespace}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinals() {
        let found = [1, 2, 3, 4, 11, 12, 13, 21, 47, 102, 111].map(ordinal);
        let expected = [
            "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "47th", "102nd", "111th",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn long_lists_of_names_are_cut() {
        let names: Vec<String> = (1..=11).map(|n| format!("n{n}")).collect();
        assert_eq!(Names(&names[..2], false).to_string(), "n1, n2");
        assert_eq!(Names(&names[..9], false).to_string(), names[..9].join(", "));
        let text = "n1, n2, n3, n4, n5, n6, n7, n8 and 3 more";
        assert_eq!(Names(&names, false).to_string(), text);
        assert_eq!(Names(&names, true).to_string(), names.join(", "));
    }
}
