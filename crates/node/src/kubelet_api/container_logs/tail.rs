//! Finds where the last lines of a file start, without reading all of it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// The file is read in blocks of this size, from the end.
const BLOCK_BYTES: usize = 16 * 1024;

/// The offset of the last `lines` lines. A last line without a newline counts.
pub(super) fn start(file: &File, lines: u64) -> io::Result<u64> {
    let length = file.metadata()?.len();
    if lines == 0 {
        return Ok(length);
    }
    let (mut end, mut found) = (length, 0);
    let mut block = vec![0; BLOCK_BYTES];
    while end > 0 {
        let size = usize::try_from(end).unwrap_or(BLOCK_BYTES).min(BLOCK_BYTES);
        let block_start = end - size as u64;
        let part = &mut block[..size];
        file.read_exact_at(part, block_start)?;
        for (at, _) in part
            .iter()
            .enumerate()
            .rev()
            .filter(|(_, byte)| **byte == b'\n')
        {
            let after = block_start + at as u64 + 1;
            // The newline at the end of the file starts no line.
            found += u64::from(after < length);
            if found == lines {
                return Ok(after);
            }
        }
        end = block_start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn check(text: &str, lines: u64, expected: &str) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let at = usize::try_from(start(&file, lines).unwrap()).unwrap();
        assert_eq!(&text[at..], expected, "{lines}");
    }

    #[test]
    fn the_last_lines_are_found() {
        check("a\nb\nc\n", 0, "");
        check("a\nb\nc\n", 1, "c\n");
        check("a\nb\nc\n", 2, "b\nc\n");
        check("a\nb\nc\n", 3, "a\nb\nc\n");
        check("a\nb\nc\n", 9, "a\nb\nc\n");
        check("a\nb\nc", 1, "c");
        check("", 1, "");
        check("\n\n\n", 2, "\n\n");
    }

    #[test]
    fn lines_longer_than_a_block_are_found() {
        let long = "x".repeat(BLOCK_BYTES * 2 + 7);
        let text = format!("{long}\n{long}y\nz\n");
        check(&text, 2, &format!("{long}y\nz\n"));
        let blocks = "0123456\n".repeat(BLOCK_BYTES / 2);
        check(&blocks, 5000, &"0123456\n".repeat(5000));
    }
}
