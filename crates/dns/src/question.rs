//! What a packet asks. Read by hand rather than by the codec, so that questions of types it does not know
//! can be forwarded, and nothing a stranger sends is more than a few comparisons.

/// A, AAAA and so on, as far as we answer them ourselves.
pub(crate) mod kind {
    pub(crate) const A: u16 = 1;
    pub(crate) const NS: u16 = 2;
    pub(crate) const CNAME: u16 = 5;
    pub(crate) const SOA: u16 = 6;
    pub(crate) const PTR: u16 = 12;
    pub(crate) const TXT: u16 = 16;
    pub(crate) const AAAA: u16 = 28;
    pub(crate) const SRV: u16 = 33;
    pub(crate) const OPT: u16 = 41;
    pub(crate) const ANY: u16 = 255;
}

/// The Internet.
pub(crate) const INTERNET: u16 = 1;
/// The length of a header.
pub(crate) const HEADER: usize = 12;

const LABEL_MAX: usize = 63;
const NAME_MAX: usize = 255;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) id: u16,
    /// Whether others may be asked.
    pub(crate) recursion: bool,
    /// The labels as they were sent.
    pub(crate) labels: Vec<Vec<u8>>,
    pub(crate) kind: u16,
    pub(crate) class: u16,
    /// What the asker knows beyond the old protocol.
    pub(crate) extension: Option<Extension>,
    /// Where the question ends in its packet.
    pub(crate) end: usize,
}

/// What an asker knows beyond the old protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extension {
    /// The longest packet it takes.
    pub(crate) size: u16,
    pub(crate) version: u8,
}

/// Why a packet is no question that could be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// Not even an answer would make sense.
    Silence,
    /// It makes no sense.
    Malformed,
    /// It asks for something that is no question.
    Unknown,
}

impl Question {
    /// Reads a packet.
    pub(crate) fn read(packet: &[u8]) -> Result<Self, Unfit> {
        let mut reader = Reader { packet, at: 0 };
        let mut header = [0; 6];
        for field in &mut header {
            *field = reader.number().ok_or(Unfit::Silence)?;
        }
        let [id, flags, questions, answers, authorities, others] = header;
        if flags & 0x8000 != 0 {
            // An answer, which nobody asked for.
            return Err(Unfit::Silence);
        }
        if flags & 0x7800 != 0 {
            return Err(Unfit::Unknown);
        }
        if questions != 1 {
            return Err(Unfit::Malformed);
        }
        let labels = reader.name().ok_or(Unfit::Malformed)?;
        let kind = reader.number().ok_or(Unfit::Malformed)?;
        let class = reader.number().ok_or(Unfit::Malformed)?;
        let end = reader.at;
        let records = usize::from(answers) + usize::from(authorities) + usize::from(others);
        let extension = reader.extension(records).ok_or(Unfit::Malformed)?;
        Ok(Self {
            id,
            recursion: flags & 0x0100 != 0,
            labels,
            kind,
            class,
            extension,
            end,
        })
    }

    /// The labels as they are compared: in lower case. What no name of ours contains becomes a mark that
    /// none of them has.
    pub(crate) fn name(&self) -> Vec<String> {
        let plain = |byte: &u8| match byte {
            b'.' => char::REPLACEMENT_CHARACTER,
            byte if byte.is_ascii_graphic() => char::from(byte.to_ascii_lowercase()),
            _ => char::REPLACEMENT_CHARACTER,
        };
        let label = |label: &Vec<u8>| label.iter().map(plain).collect();
        self.labels.iter().map(label).collect()
    }
}

/// A domain's labels, in lower case.
pub(crate) fn domain(text: &str) -> Result<Vec<String>, String> {
    let text = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let fits = |label: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        !label.is_empty() && label.len() <= LABEL_MAX && label.chars().all(plain)
    };
    if !text.split('.').all(fits) {
        return Err("labels are letters, digits and dashes, with dots between them".to_owned());
    }
    if text.len() > NAME_MAX / 2 {
        return Err("it is too long for names to be below it".to_owned());
    }
    Ok(text.split('.').map(str::to_owned).collect())
}

struct Reader<'a> {
    packet: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let end = self.at.checked_add(count)?;
        let bytes = self.packet.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn number(&mut self) -> Option<u16> {
        let bytes = self.take(2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// A name that is written out: nothing comes before the question that it could refer to.
    fn name(&mut self) -> Option<Vec<Vec<u8>>> {
        let (mut labels, mut length) = (Vec::new(), 1);
        loop {
            let count = usize::from(self.byte()?);
            if count == 0 {
                return Some(labels);
            }
            length += count + 1;
            if count > LABEL_MAX || length > NAME_MAX {
                return None;
            }
            labels.push(self.take(count)?.to_vec());
        }
    }

    /// Steps over a name, which may end in a reference.
    fn skip_name(&mut self) -> Option<()> {
        loop {
            match usize::from(self.byte()?) {
                0 => return Some(()),
                reference if reference >= 0xc0 => {
                    self.byte()?;
                    return Some(());
                }
                count if count > LABEL_MAX => return None,
                count => {
                    self.take(count)?;
                }
            }
        }
    }

    /// Looks through the records for what extends the protocol. The outer nothing: they make no sense.
    #[expect(clippy::option_option, reason = "no sense, and no extension")]
    fn extension(&mut self, records: usize) -> Option<Option<Extension>> {
        let mut found = None;
        for _ in 0..records {
            self.skip_name()?;
            let kind = self.number()?;
            let class = self.number()?;
            let time = self.take(4)?;
            let version = time[1];
            let length = self.number()?;
            self.take(usize::from(length))?;
            if kind == kind::OPT {
                let size = class;
                found = Some(Extension { size, version });
            }
        }
        Some(found)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A packet that asks for a name, with an extension if a size is given.
    pub(crate) fn packet(name: &str, kind: u16, size: Option<u16>) -> Vec<u8> {
        let others = u8::from(size.is_some());
        let mut packet = vec![0x12, 0x34, 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, others];
        for label in name.split('.').filter(|label| !label.is_empty()) {
            packet.push(u8::try_from(label.len()).unwrap());
            packet.extend(label.as_bytes());
        }
        packet.push(0);
        packet.extend(kind.to_be_bytes());
        packet.extend(INTERNET.to_be_bytes());
        if let Some(size) = size {
            packet.extend([0, 0, 41]);
            packet.extend(size.to_be_bytes());
            packet.extend([0; 6]);
        }
        packet
    }

    #[test]
    fn a_question_is_read_as_it_was_asked() {
        let read = Question::read(&packet("Web.NS.svc", kind::A, Some(4096))).unwrap();
        assert_eq!(
            (read.id, read.recursion, read.kind),
            (0x1234, true, kind::A)
        );
        assert_eq!(read.labels[0], b"Web");
        assert_eq!(read.name(), ["web", "ns", "svc"]);
        let extension = Extension {
            size: 4096,
            version: 0,
        };
        assert_eq!(read.extension, Some(extension));
        assert_eq!(read.end, HEADER + 12 + 4);
        let root = Question::read(&packet("", kind::NS, None)).unwrap();
        assert!(root.labels.is_empty() && root.extension.is_none());
    }

    #[test]
    fn what_is_no_question_is_told_from_what_is_none_of_ours() {
        let good = packet("web", kind::A, None);
        let with = |at: usize, byte: u8| {
            let mut packet = good.clone();
            packet[at] = byte;
            Question::read(&packet)
        };
        assert_eq!(Question::read(&good[..11]), Err(Unfit::Silence));
        assert_eq!(with(2, 0x81), Err(Unfit::Silence), "an answer");
        assert_eq!(with(2, 0x29), Err(Unfit::Unknown), "an update");
        assert_eq!(with(5, 2), Err(Unfit::Malformed), "two questions");
        assert_eq!(with(12, 0xc0), Err(Unfit::Malformed), "a reference");
        assert_eq!(
            with(11, 1),
            Err(Unfit::Malformed),
            "a record that is missing"
        );
        assert_eq!(Question::read(&good[..14]), Err(Unfit::Malformed));
        let long = vec!["a"; 130].join(".");
        let long = packet(&long, kind::A, None);
        assert_eq!(Question::read(&long), Err(Unfit::Malformed));
    }

    #[test]
    fn a_dot_within_a_label_is_no_border() {
        let mut packet = packet("a-b", kind::A, None);
        packet[14] = b'.';
        let name = Question::read(&packet).unwrap().name();
        assert_eq!(name, ["a\u{fffd}b"]);
    }

    #[test]
    fn domains() {
        assert_eq!(domain("Cluster.Local.").unwrap(), ["cluster", "local"]);
        for wrong in ["", "a..b", "a b", &"x".repeat(64)] {
            assert!(domain(wrong).is_err(), "{wrong:?}");
        }
    }
}
