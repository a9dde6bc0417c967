//! What is said over a shim's socket: a line that asks, then an answer, or frames both ways.
//!
//! ```text
//!   reopen\n          the log was renamed: go on in a new file  ─▶ ok\n
//!   attach\n          ok\n, then frames: output to us, input and sizes to the shim
//!   frame             1 byte what, 4 bytes how long (big-endian), the bytes
//! ```

/// The longest frame that is written, and read.
pub const FRAME: usize = 16 << 10;
/// What goes before the bytes of a frame.
const HEAD: usize = 5;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Bytes for its input; none ends it.
    Input = 0,
    /// Its output.
    Output = 1,
    /// Its errors.
    Errors = 2,
    /// Columns and rows.
    Size = 3,
    /// It has ended, with this.
    Exit = 4,
}

impl What {
    fn of(byte: u8) -> Option<Self> {
        let all = [
            Self::Input,
            Self::Output,
            Self::Errors,
            Self::Size,
            Self::Exit,
        ];
        all.into_iter().find(|what| *what as u8 == byte)
    }
}

/// Writes one.
pub fn put(to: &mut Vec<u8>, what: What, bytes: &[u8]) {
    for chunk in bytes.chunks(FRAME) {
        put_whole(to, what, chunk);
    }
    if bytes.is_empty() {
        put_whole(to, what, &[]);
    }
}

fn put_whole(to: &mut Vec<u8>, what: What, bytes: &[u8]) {
    to.push(what as u8);
    to.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    to.extend(bytes);
}

/// Nobody of ours wrote that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strange;

/// Takes the first whole frame out. `None`: more is to come.
pub fn take(from: &mut Vec<u8>) -> Result<Option<(What, Vec<u8>)>, Strange> {
    let Some((head, _)) = from.split_first_chunk::<HEAD>() else {
        return Ok(None);
    };
    let [what, length @ ..] = *head;
    let what = What::of(what).ok_or(Strange)?;
    let length = usize::try_from(u32::from_be_bytes(length)).map_err(|_| Strange)?;
    if length > FRAME {
        return Err(Strange);
    }
    if from.len() < HEAD + length {
        return Ok(None);
    }
    let bytes = from[HEAD..HEAD + length].to_vec();
    from.drain(..HEAD + length);
    Ok(Some((what, bytes)))
}

/// Columns and rows in a frame.
pub fn size(bytes: &[u8]) -> Option<(u16, u16)> {
    let [a, b, c, d] = *bytes.first_chunk()?;
    Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_being_cut_anywhere() {
        let long = vec![7; FRAME + 3];
        let mut whole = Vec::new();
        put(&mut whole, What::Output, b"hello");
        put(&mut whole, What::Errors, &long);
        put(&mut whole, What::Input, b"");
        let expected = [
            (What::Output, b"hello".to_vec()),
            (What::Errors, vec![7; FRAME]),
            (What::Errors, vec![7; 3]),
            (What::Input, vec![]),
        ];
        for cut in [1, 4, 5, 9, FRAME, whole.len() - 1] {
            let mut buffer = Vec::new();
            let mut found = Vec::new();
            for part in [&whole[..cut], &whole[cut..]] {
                buffer.extend(part);
                while let Some(frame) = take(&mut buffer).unwrap() {
                    found.push(frame);
                }
            }
            assert_eq!(found, expected, "cut at {cut}");
        }
    }

    #[test]
    fn strangers_are_recognised() {
        assert_eq!(take(&mut b"GET / HTTP/1.1\r\n".to_vec()), Err(Strange));
        assert_eq!(take(&mut vec![0, 255, 0, 0, 0]), Err(Strange));
    }
}
