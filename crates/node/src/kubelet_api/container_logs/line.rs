//! One line in the CRI log format: `<time> <stream> <F or P> <text>`.

use kennel_types::Timestamp;

/// See the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// RFC 3339, as written.
    pub(super) time: &'a str,
    /// `stdout` or `stderr`.
    pub(super) stream: &'a str,
    /// The next line of the same stream continues this one.
    pub(super) partial: bool,
    /// Without the newline.
    pub(super) text: &'a [u8],
}

impl<'a> Line<'a> {
    /// Parses a line, with or without a newline. `None` for anything else: a killed runtime may leave an incomplete
    /// line.
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

    pub(super) fn timestamp(&self) -> Option<Timestamp> {
        Timestamp::parse(self.time)
    }
}

/// Splits at the first space.
fn word(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b' ')?;
    let word = std::str::from_utf8(&bytes[..end]).ok()?;
    Some((word, &bytes[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed() {
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
