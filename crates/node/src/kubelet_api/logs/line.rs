//! One line of a log file: `<time> <stream> <F or P> <text>`.

use jiff::Timestamp;

/// See the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// When it was written, as it stands there.
    pub(super) time: &'a str,
    /// `stdout` or `stderr`.
    pub(super) stream: &'a str,
    /// The line goes on with the next one of the same stream.
    pub(super) partial: bool,
    /// What was written, without the end of the line.
    pub(super) text: &'a [u8],
}

impl<'a> Line<'a> {
    /// Reads a line, with or without its end. None for what is none: a runtime that was killed may leave
    /// half a line behind.
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let (time, rest) = word(line)?;
        let (stream, rest) = word(rest)?;
        let (tags, text) =
            word(rest).or_else(|| Some((std::str::from_utf8(rest).ok()?, &b""[..])))?;
        let partial = match tags.split(':').next()? {
            "P" => true,
            "F" => false,
            _ => return None,
        };
        matches!(stream, "stdout" | "stderr").then_some(Self {
            time,
            stream,
            partial,
            text,
        })
    }

    /// When it was written.
    pub(super) fn timestamp(&self) -> Option<Timestamp> {
        self.time.parse().ok()
    }
}

/// What comes before the first space, and after it.
fn word(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b' ')?;
    let word = std::str::from_utf8(&bytes[..end]).ok()?;
    Some((word, &bytes[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let check = |line: &str, expected: Option<(&str, &str, bool, &str)>| {
            let parsed = Line::parse(line.as_bytes());
            let parsed = parsed.map(|line| {
                let text = std::str::from_utf8(line.text).unwrap();
                (line.time, line.stream, line.partial, text)
            });
            assert_eq!(parsed, expected, "{line:?}");
        };
        check(
            "T stdout F hello  world\n",
            Some(("T", "stdout", false, "hello  world")),
        );
        check("T stderr P part", Some(("T", "stderr", true, "part")));
        check("T stdout F \n", Some(("T", "stdout", false, "")));
        check("T stdout F\n", Some(("T", "stdout", false, "")));
        check("T stdout P:x part", Some(("T", "stdout", true, "part")));
        for line in [
            "",
            "T",
            "T stdout",
            "T stdin F x",
            "T stdout X x",
            "hello world",
        ] {
            check(line, None);
        }
    }

    #[test]
    fn times_of_all_zones_are_compared() {
        let time = |text: &str| Line::parse(text.as_bytes()).unwrap().timestamp();
        let local = time("2026-01-02T05:04:05.000000001+02:00 stdout F x");
        assert_eq!(local, time("2026-01-02T03:04:05.000000001Z stdout F x"));
        assert!(local.is_some());
    }
}
