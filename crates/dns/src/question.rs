//! Parses the question of a packet. Not done by the codec, so that questions of types that it does not know can be
//! forwarded, and so that untrusted packets cost no more than a few comparisons.

/// The record types that this server answers itself.
pub(crate) mod record_type {
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

/// The class `IN`.
pub(crate) const INTERNET: u16 = 1;
pub(crate) const HEADER: usize = 12;

const LABEL_MAX: usize = 63;
const NAME_MAX: usize = 255;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) id: u16,
    /// Recursion desired.
    pub(crate) recursion: bool,
    /// The labels as they were sent.
    pub(crate) labels: Vec<Vec<u8>>,
    pub(crate) qtype: u16,
    pub(crate) class: u16,
    pub(crate) edns: Option<Edns>,
    /// The end of the question in its packet.
    pub(crate) end: usize,
}

/// The client's EDNS parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edns {
    /// The longest UDP packet that the client accepts.
    pub(crate) size: u16,
    pub(crate) version: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuestionError {
    /// Too short, or a response: sends no reply.
    Ignore,
    Malformed,
    /// Not a query.
    NotImplemented,
}

impl Question {
    pub(crate) fn read(packet: &[u8]) -> Result<Self, QuestionError> {
        let mut reader = Reader { packet, at: 0 };
        let mut header = [0; 6];
        for field in &mut header {
            *field = reader.number().ok_or(QuestionError::Ignore)?;
        }
        let [id, flags, questions, answers, authorities, others] = header;
        if flags & 0x8000 != 0 {
            // A response.
            return Err(QuestionError::Ignore);
        }
        if flags & 0x7800 != 0 {
            return Err(QuestionError::NotImplemented);
        }
        if questions != 1 {
            return Err(QuestionError::Malformed);
        }
        let labels = reader.name().ok_or(QuestionError::Malformed)?;
        let qtype = reader.number().ok_or(QuestionError::Malformed)?;
        let class = reader.number().ok_or(QuestionError::Malformed)?;
        let end = reader.at;
        let records = usize::from(answers) + usize::from(authorities) + usize::from(others);
        let edns = reader.edns(records).ok_or(QuestionError::Malformed)?;
        Ok(Self {
            id,
            recursion: flags & 0x0100 != 0,
            labels,
            qtype,
            class,
            edns,
            end,
        })
    }

    /// The labels in lower case, for comparison. Bytes that no name in the zone contains are replaced.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DomainError {
    #[error("labels are letters, digits and dashes, with dots between them")]
    Label,
    #[error("it is too long for names to be below it")]
    TooLong,
}

/// The labels of a domain, in lower case.
pub(crate) fn domain(text: &str) -> Result<Vec<String>, DomainError> {
    let text = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let fits = |label: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        !label.is_empty() && label.len() <= LABEL_MAX && label.chars().all(plain)
    };
    if !text.split('.').all(fits) {
        return Err(DomainError::Label);
    }
    if text.len() > NAME_MAX / 2 {
        return Err(DomainError::TooLong);
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

    /// An uncompressed name: nothing precedes the question that a compressed one could refer to.
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

    /// Skips a name, which may end in a compression pointer.
    fn skip_name(&mut self) -> Option<()> {
        loop {
            match usize::from(self.byte()?) {
                0 => return Some(()),
                pointer if pointer >= 0xc0 => {
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

    /// Searches the records for an OPT record. The outer `None` means malformed.
    #[expect(clippy::option_option, reason = "malformed, or no OPT record")]
    fn edns(&mut self, records: usize) -> Option<Option<Edns>> {
        let mut found = None;
        for _ in 0..records {
            self.skip_name()?;
            let qtype = self.number()?;
            let class = self.number()?;
            let time = self.take(4)?;
            let version = time[1];
            let length = self.number()?;
            self.take(usize::from(length))?;
            if qtype == record_type::OPT {
                let size = class;
                found = Some(Edns { size, version });
            }
        }
        Some(found)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A packet that asks for a name, with an edns if a size is given.
    pub(crate) fn packet(name: &str, qtype: u16, size: Option<u16>) -> Vec<u8> {
        let others = u8::from(size.is_some());
        let mut packet = vec![0x12, 0x34, 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, others];
        for label in name.split('.').filter(|label| !label.is_empty()) {
            packet.push(u8::try_from(label.len()).unwrap());
            packet.extend(label.as_bytes());
        }
        packet.push(0);
        packet.extend(qtype.to_be_bytes());
        packet.extend(INTERNET.to_be_bytes());
        if let Some(size) = size {
            packet.extend([0, 0, 41]);
            packet.extend(size.to_be_bytes());
            packet.extend([0; 6]);
        }
        packet
    }

    #[test]
    fn a_question_is_parsed() {
        let read = Question::read(&packet("Web.NS.svc", record_type::A, Some(4096))).unwrap();
        assert_eq!(
            (read.id, read.recursion, read.qtype),
            (0x1234, true, record_type::A)
        );
        assert_eq!(read.labels[0], b"Web");
        assert_eq!(read.name(), ["web", "ns", "svc"]);
        let edns = Edns {
            size: 4096,
            version: 0,
        };
        assert_eq!(read.edns, Some(edns));
        assert_eq!(read.end, HEADER + 12 + 4);
        let root = Question::read(&packet("", record_type::NS, None)).unwrap();
        assert!(root.labels.is_empty() && root.edns.is_none());
    }

    #[test]
    fn packets_that_are_not_questions_are_classified() {
        let good = packet("web", record_type::A, None);
        let with = |at: usize, byte: u8| {
            let mut packet = good.clone();
            packet[at] = byte;
            Question::read(&packet)
        };
        assert_eq!(Question::read(&good[..11]), Err(QuestionError::Ignore));
        assert_eq!(with(2, 0x81), Err(QuestionError::Ignore), "a response");
        assert_eq!(
            with(2, 0x29),
            Err(QuestionError::NotImplemented),
            "an update"
        );
        assert_eq!(with(5, 2), Err(QuestionError::Malformed), "two questions");
        assert_eq!(
            with(12, 0xc0),
            Err(QuestionError::Malformed),
            "a compression pointer"
        );
        assert_eq!(
            with(11, 1),
            Err(QuestionError::Malformed),
            "a record that is missing"
        );
        assert_eq!(Question::read(&good[..14]), Err(QuestionError::Malformed));
        let long = vec!["a"; 130].join(".");
        let long = packet(&long, record_type::A, None);
        assert_eq!(Question::read(&long), Err(QuestionError::Malformed));
    }

    #[test]
    fn a_dot_within_a_label_does_not_split_it() {
        let mut packet = packet("a-b", record_type::A, None);
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
