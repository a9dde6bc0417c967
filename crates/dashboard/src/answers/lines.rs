//! Cuts the bytes of a log into lines of bounded length.

use std::collections::VecDeque;

/// What is longer is cut: a page shows no line of a megabyte.
const LINE_BYTES_MAX: usize = 4096;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Splitter {
    lines: VecDeque<String>,
    /// The beginning of a line whose end has not come.
    rest: Vec<u8>,
}

impl Splitter {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = part.strip_suffix(b"\n");
            let room = LINE_BYTES_MAX.saturating_sub(self.rest.len());
            let part = text.unwrap_or(part);
            // One byte too many is kept as the sign that something is missing.
            self.rest
                .extend_from_slice(&part[..part.len().min(room + 1)]);
            if text.is_some() {
                self.finish_line();
            }
        }
    }

    /// What has come is all.
    pub(super) fn finish(&mut self) {
        if !self.rest.is_empty() {
            self.finish_line();
        }
    }

    pub(super) fn take(&mut self, max: usize) -> Vec<String> {
        let count = self.lines.len().min(max);
        self.lines.drain(..count).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    fn finish_line(&mut self) {
        let is_cut = self.rest.len() > LINE_BYTES_MAX;
        self.rest.truncate(LINE_BYTES_MAX);
        let text = self.rest.strip_suffix(b"\r").unwrap_or(&self.rest);
        let mut line = String::from_utf8_lossy(text).into_owned();
        if is_cut {
            line.push('…');
        }
        self.rest.clear();
        self.lines.push_back(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(chunks: &[&[u8]]) -> Vec<String> {
        let mut splitter = Splitter::default();
        for chunk in chunks {
            splitter.add(chunk);
        }
        splitter.finish();
        splitter.take(usize::MAX)
    }

    #[test]
    fn lines_are_found_in_any_chunks() {
        assert_eq!(split(&[b"a\nb", b"c\n\r\n", b"d"]), ["a", "bc", "", "d"]);
        assert_eq!(split(&[b"a\xff\n"]), ["a\u{fffd}"]);
        assert!(split(&[]).is_empty());
    }

    #[test]
    fn long_lines_are_cut() {
        let long = [b'x'; 3 * LINE_BYTES_MAX];
        let lines = split(&[&long, &long, b"\nshort\n", &long[..LINE_BYTES_MAX], b"\n"]);
        assert_eq!(lines[0].len(), LINE_BYTES_MAX + '…'.len_utf8());
        assert!(lines[0].ends_with('…'));
        assert_eq!(lines[1], "short");
        assert_eq!(lines[2].len(), LINE_BYTES_MAX);
    }
}
