//! Filters and formats the lines of a log file for a reader. Pure.

use super::line::Line;
use super::options::Options;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Printer {
    options: Options,
    /// The previous line was partial: this one continues it.
    continues: bool,
    printed: u64,
}

impl Printer {
    pub(super) fn new(options: Options) -> Self {
        Self {
            options,
            continues: false,
            printed: 0,
        }
    }

    /// Whether the byte limit is reached.
    pub(super) fn limit_reached(&self) -> bool {
        self.options
            .limit
            .is_some_and(|limit| self.printed >= limit)
    }

    /// Appends a line of the file to `out`, if it is requested.
    pub(super) fn print(&mut self, raw: &[u8], out: &mut Vec<u8>) {
        let Some(line) = Line::parse(raw) else {
            return;
        };
        if self
            .options
            .stream
            .is_some_and(|wanted| wanted != line.stream)
            || self.is_too_old(&line)
        {
            return;
        }
        let before = out.len();
        if self.options.timestamps && !self.continues {
            out.extend_from_slice(line.time.as_bytes());
            out.push(b' ');
        }
        out.extend_from_slice(line.text);
        if !line.partial {
            out.push(b'\n');
        }
        self.continues = line.partial;
        self.apply_limit(before, out);
    }

    /// After the first line that is recent enough, all lines count as recent, so that a clock that jumps back hides
    /// nothing.
    fn is_too_old(&mut self, line: &Line<'_>) -> bool {
        let Some(since) = self.options.since else {
            return false;
        };
        let old = line.timestamp().is_some_and(|time| time < since);
        if !old {
            self.options.since = None;
        }
        old
    }

    fn apply_limit(&mut self, before: usize, out: &mut Vec<u8>) {
        let new = out.len() - before;
        let left = self.options.limit.map(|limit| limit - self.printed);
        let left = left.map_or(new, |left| usize::try_from(left).unwrap_or(new));
        let kept = new.min(left);
        out.truncate(before + kept);
        self.printed += kept as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubelet_api::route::Query;

    const LOG: &str = "\
2026-01-01T00:00:01Z stdout F one
2026-01-01T00:00:02Z stderr P tw
2026-01-01T00:00:02Z stderr F o
half a line
2026-01-01T00:00:03Z stdout F three
";

    fn check(query: &str, expected: &str) {
        let now = "2026-01-01T00:01:00Z".parse().unwrap();
        let mut printer = Printer::new(Options::parse(&Query::parse(query), now).unwrap());
        let mut out = Vec::new();
        for line in LOG.split_inclusive('\n') {
            if !printer.limit_reached() {
                printer.print(line.as_bytes(), &mut out);
            }
        }
        assert_eq!(String::from_utf8(out).unwrap(), expected, "{query}");
    }

    #[test]
    fn requested_lines_are_printed() {
        check("", "one\ntwo\nthree\n");
        check("stream=Stderr", "two\n");
        check("sinceTime=2026-01-01T00%3A00%3A02Z", "two\nthree\n");
        check("sinceSeconds=57", "three\n");
        check("limitBytes=5", "one\nt");
        check("limitBytes=4", "one\n");
        check(
            "timestamps=true",
            "2026-01-01T00:00:01Z one\n2026-01-01T00:00:02Z two\n2026-01-01T00:00:03Z three\n",
        );
    }
}
