//! The last log lines of a crash, as text.

use kennel_core::why::LogAnswer;

/// Characters shown of a line.
const WIDTH_MAX: usize = 200;

/// The lines to show; none if the log was not read.
pub(super) fn lines(log: Option<&LogAnswer>) -> Vec<String> {
    let Some(log) = log else {
        return Vec::new();
    };
    match (&log.lines, &log.error) {
        (_, Some(error)) => vec![format!("its log cannot be read: {}", printable(error))],
        (Some(lines), None) if lines.iter().all(|line| line.trim().is_empty()) => {
            vec!["its log is empty".to_owned()]
        }
        (Some(lines), None) => {
            let title = "its last log lines:".to_owned();
            let lines = lines.iter().map(|line| format!("| {}", printable(line)));
            std::iter::once(title).chain(lines).collect()
        }
        (None, None) => Vec::new(),
    }
}

/// Without what would move the cursor or change colours, and not too long.
fn printable(line: &str) -> String {
    let mut text = String::new();
    let mut chars = line.trim_end().chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            // A control sequence ends with a letter.
            '\x1b' if chars.next_if_eq(&'[').is_some() => {
                while chars.next_if(|c| !c.is_ascii_alphabetic()).is_some() {}
                chars.next();
            }
            '\t' => text.push(' '),
            char if char.is_control() => {}
            char => text.push(char),
        }
    }
    match text.char_indices().nth(WIDTH_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let shown = printable("\x1b[1;31merror\x1b[0m:\tno\x07 disk\r\n");
        assert_eq!(shown, "error: no disk");
        assert_eq!(printable(&"x".repeat(500)).chars().count(), 201);
    }
}
