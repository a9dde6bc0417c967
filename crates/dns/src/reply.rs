//! Answers as packets, no longer than the asker takes. Decides nothing about names.

use simple_dns::rdata::{A, AAAA, CNAME, NS, OPT, PTR, RData, SOA, SRV, TXT};
use simple_dns::{
    CLASS, Label, Name, Packet, PacketFlag, QCLASS, QTYPE, RCODE, ResourceRecord, TYPE,
};

use crate::answer::UDP_MAX;
use crate::forward::Over;
use crate::question::{HEADER, INTERNET, Question};
use crate::zone::{Found, Record};

/// How long answers may be remembered, in seconds: pods come and go.
const TTL: u32 = 5;
/// The shortest that a record can be.
const RECORD_MIN: usize = 16;

/// How a question ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    Fine,
    Malformed,
    Failure,
    Missing,
    Unknown,
    Version,
}

impl Code {
    fn wire(self) -> RCODE {
        match self {
            Self::Fine => RCODE::NoError,
            Self::Malformed => RCODE::FormatError,
            Self::Failure => RCODE::ServerFailure,
            Self::Missing => RCODE::NameError,
            Self::Unknown => RCODE::NotImplemented,
            Self::Version => RCODE::BADVERS,
        }
    }
}

/// What is answered.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) code: Code,
    /// Ours to say.
    authoritative: bool,
    /// Names that lead from the one that was asked for to the one that the records are of.
    pub(crate) aliases: Vec<String>,
    pub(crate) records: Vec<Record>,
}

impl Answer {
    /// Nothing but how it ended.
    pub(crate) fn bare(code: Code) -> Self {
        Self {
            code,
            authoritative: false,
            aliases: Vec::new(),
            records: Vec::new(),
        }
    }

    /// What was found among our own names.
    pub(crate) fn ours(found: Found) -> Self {
        let (code, records) = match found {
            Found::Records(records) => (Code::Fine, records),
            Found::Missing => (Code::Missing, Vec::new()),
            Found::Nothing | Found::Alias(_) | Found::Foreign => (Code::Fine, Vec::new()),
        };
        Self {
            authoritative: true,
            records,
            ..Self::bare(code)
        }
    }
}

/// The answer to what is no question.
pub(crate) fn refusal(packet: &[u8], code: Code) -> Vec<u8> {
    let id = packet.get(..2).map_or([0, 0], |id| [id[0], id[1]]);
    let operation = packet.get(2).map_or(0, |flags| flags & 0x79);
    let code = match code {
        Code::Unknown => 4,
        _ => 1,
    };
    let mut reply = vec![0; HEADER];
    reply[..2].copy_from_slice(&id);
    reply[2] = 0x80 | operation;
    reply[3] = code;
    reply
}

/// The answer to a question.
pub(crate) fn packet(
    question: &Question,
    answer: &Answer,
    domain: &str,
    (over, room): (Over, usize),
) -> Vec<u8> {
    let mut records: Vec<&Record> = answer.records.iter().collect();
    // Who takes the first gets another each time, and if not all fit, nobody is always left out.
    fastrand::shuffle(&mut records);
    let mut cut = records.len() > room / RECORD_MIN;
    records.truncate(room / RECORD_MIN);
    loop {
        let bytes = build(question, answer, &records, domain, cut && over == Over::Udp);
        if bytes.len() <= room || records.is_empty() {
            return bytes;
        }
        cut = true;
        let fit = records.len() * room / bytes.len();
        records.truncate(fit.min(records.len() - 1));
    }
}

fn build(
    question: &Question,
    answer: &Answer,
    records: &[&Record],
    domain: &str,
    cut: bool,
) -> Vec<u8> {
    let labels = question
        .labels
        .iter()
        .map(|label| Label::new_unchecked(label.as_slice()));
    let labels: Vec<Label<'_>> = labels.collect();
    let asked = Name::new_with_labels(&labels);
    let mut packet = Packet::new_reply(question.id);
    *packet.rcode_mut() = answer.code.wire();
    packet.set_flags(PacketFlag::RECURSION_AVAILABLE);
    let flags = [
        (question.recursion, PacketFlag::RECURSION_DESIRED),
        (answer.authoritative, PacketFlag::AUTHORITATIVE_ANSWER),
        (cut, PacketFlag::TRUNCATION),
    ];
    for (_, flag) in flags.into_iter().filter(|(set, _)| *set) {
        packet.set_flags(flag);
    }
    if question.extension.is_some() {
        *packet.opt_mut() = Some(OPT {
            opt_codes: Vec::new(),
            udp_packet_size: UDP_MAX,
            version: 0,
        });
    }
    packet.questions.push(simple_dns::Question::new(
        asked.clone(),
        QTYPE::TYPE(TYPE::from(question.kind)),
        QCLASS::CLASS(CLASS::IN),
        false,
    ));
    let mut owner = asked;
    for alias in &answer.aliases {
        let target = name(alias);
        packet
            .answers
            .push(record(owner, RData::CNAME(CNAME(target.clone()))));
        owner = target;
    }
    let found = records
        .iter()
        .map(|r| record(owner.clone(), data(r, domain)));
    packet.answers.extend(found);
    // An alias is something; what is not behind it, others may say.
    if answer.authoritative && answer.records.is_empty() && answer.aliases.is_empty() {
        packet
            .name_servers
            .push(record(name(domain), authority(domain)));
    }
    let mut bytes = packet.build_bytes_vec_compressed().unwrap_or_default();
    echo(question, &mut bytes);
    bytes
}

/// Types and classes that the codec does not know are echoed as they came.
fn echo(question: &Question, bytes: &mut [u8]) {
    if question.class != INTERNET
        && let Some(class) = bytes.get_mut(question.end - 2..question.end)
    {
        class.copy_from_slice(&question.class.to_be_bytes());
    }
}

fn record<'a>(owner: Name<'a>, data: RData<'a>) -> ResourceRecord<'a> {
    ResourceRecord::new(owner, CLASS::IN, TTL, data)
}

/// A name; the root, if it is none.
fn name(text: &str) -> Name<'_> {
    let text = text.strip_suffix('.').unwrap_or(text);
    Name::new(text).unwrap_or_else(|_| Name::new_with_labels(&[]))
}

fn data<'a>(record: &'a Record, domain: &str) -> RData<'a> {
    match record {
        Record::Address(std::net::IpAddr::V4(address)) => RData::A(A::from(*address)),
        Record::Address(std::net::IpAddr::V6(address)) => RData::AAAA(AAAA::from(*address)),
        Record::Service(port, target) => RData::SRV(SRV {
            priority: 0,
            weight: 100,
            port: *port,
            target: name(target),
        }),
        Record::Pointer(target) => RData::PTR(PTR(name(target))),
        Record::Text(text) => RData::TXT(TXT::new().with_string(text).unwrap_or_default()),
        Record::Authority => authority(domain),
        Record::NameServer => {
            let server = format!("ns.dns.{domain}");
            RData::NS(NS(name(&server).into_owned()))
        }
    }
}

fn authority<'a>(domain: &str) -> RData<'a> {
    let below = |label: &str| name(&format!("{label}.{domain}")).into_owned();
    RData::SOA(SOA {
        mname: below("ns.dns"),
        rname: below("hostmaster"),
        serial: 1,
        refresh: 7200,
        retry: 1800,
        expire: 86_400,
        minimum: TTL,
    })
}
