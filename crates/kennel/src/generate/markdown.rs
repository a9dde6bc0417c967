//! Converts plain text to Markdown.

/// Escapes everything but text in backticks.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (number, piece) in text.split('`').enumerate() {
        if number > 0 {
            out.push('`');
        }
        let in_code = number % 2 == 1;
        for letter in piece.chars() {
            // A bar ends a table cell even inside code.
            let special = match letter {
                '|' => true,
                '*' | '<' | '>' | '[' | ']' | '_' => !in_code,
                _ => false,
            };
            if special {
                out.push('\\');
            }
            out.push(letter);
        }
    }
    out
}

/// Text with several paragraphs as one table cell.
pub(super) fn cell(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|paragraph| {
        let lines: Vec<&str> = paragraph.lines().map(str::trim).collect();
        linked(&escape(&lines.join(" ")))
    });
    paragraphs.collect::<Vec<_>>().join("<br>")
}

/// Help text: indented lines become code blocks.
pub(super) fn prose(text: &str) -> String {
    let mut blocks: Vec<(bool, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        let code = line.starts_with("  ");
        match blocks.last_mut() {
            // A blank line does not end a block.
            Some((before, lines)) if *before == code || line.is_empty() => lines.push(line),
            _ => blocks.push((code, vec![line])),
        }
    }
    let blocks = blocks.iter().map(|(code, lines)| block(*code, lines));
    blocks.collect::<Vec<_>>().join("\n")
}

fn block(is_code: bool, lines: &[&str]) -> String {
    let text = lines.join("\n");
    if !is_code {
        return format!("{}\n", linked(&escape(text.trim())));
    }
    let bare = |line: &&str| line.strip_prefix("  ").unwrap_or(line).to_owned();
    let code: Vec<String> = lines.iter().map(bare).collect();
    let code = code.join("\n");
    let language = if code.contains("kennel ") {
        "sh"
    } else {
        "text"
    };
    format!("```{language}\n{}\n```\n", code.trim_end())
}

/// Turns paths in `docs` into links, for a page in `docs/reference`.
fn linked(text: &str) -> String {
    let word = |word: &str| {
        let name = word.trim_end_matches(['.', ',', ';']);
        match name.strip_prefix("docs/") {
            Some(path) => format!("[{name}](../{path}){}", &word[name.len()..]),
            None => word.to_owned(),
        }
    };
    let lines = text.split('\n').map(|line| {
        let words: Vec<String> = line.split(' ').map(word).collect();
        words.join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped_outside_of_code() {
        let check = |text: &str, expected: &str| assert_eq!(escape(text), expected);
        check("'*' for all", "'\\*' for all");
        check("see `a*b`, <c>", "see `a*b`, \\<c\\>");
        check("a|b `c|d`", "a\\|b `c\\|d`");
    }

    #[test]
    fn a_cell_is_one_line() {
        assert_eq!(cell("One\n  two.\n\nThree."), "One two.<br>Three.");
        let expected = "see [docs/guides/a.md](../guides/a.md); b";
        assert_eq!(cell("see docs/guides/a.md; b"), expected);
    }

    #[test]
    fn examples_are_fenced() {
        let text = "Do it. Try:\n\n  kennel up &\n  kubectl get pods\n\nThen <stop>.";
        let expected =
            "Do it. Try:\n\n```sh\nkennel up &\nkubectl get pods\n```\n\nThen \\<stop\\>.\n";
        assert_eq!(prose(text), expected);
        assert_eq!(prose("Try:\n\n  a"), "Try:\n\n```text\na\n```\n");
    }
}
