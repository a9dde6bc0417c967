//! Encodes answers as packets, truncated to what the client accepts.

use simple_dns::rdata::{A, AAAA, CNAME, NS, OPT, PTR, RData, SOA, SRV, TXT};
use simple_dns::{
    CLASS, Label, Name, Packet, PacketFlag, QCLASS, QTYPE, RCODE, ResourceRecord, TYPE,
};

use crate::forward::Transport;
use crate::question::{HEADER, INTERNET, Question};
use crate::resolver::UDP_MAX;
use crate::zone::{Lookup, Record};

/// Seconds. Short, since pods come and go.
const TTL: u32 = 5;
/// The size of the shortest record in bytes.
const RECORD_MIN: usize = 16;

#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) code: RCODE,
    authoritative: bool,
    /// The chain from the name in the question to the owner of the records.
    pub(crate) cnames: Vec<String>,
    pub(crate) records: Vec<Record>,
}

impl Answer {
    /// Without records.
    pub(crate) fn empty(code: RCODE) -> Self {
        Self {
            code,
            authoritative: false,
            cnames: Vec::new(),
            records: Vec::new(),
        }
    }

    pub(crate) fn from_zone(found: Lookup) -> Self {
        let (code, records) = match found {
            Lookup::Records(records) => (RCODE::NoError, records),
            Lookup::NxDomain => (RCODE::NameError, Vec::new()),
            Lookup::NoData | Lookup::Cname(_) | Lookup::OutOfZone => (RCODE::NoError, Vec::new()),
        };
        Self {
            authoritative: true,
            records,
            ..Self::empty(code)
        }
    }
}

/// The reply to a packet whose question could not be parsed.
pub(crate) fn error(packet: &[u8], code: RCODE) -> Vec<u8> {
    let id = packet.get(..2).map_or([0, 0], |id| [id[0], id[1]]);
    let operation = packet.get(2).map_or(0, |flags| flags & 0x79);
    let code = match code {
        RCODE::NotImplemented => 4,
        _ => 1,
    };
    let mut reply = vec![0; HEADER];
    reply[..2].copy_from_slice(&id);
    reply[2] = 0x80 | operation;
    reply[3] = code;
    reply
}

pub(crate) fn packet(
    question: &Question,
    answer: &Answer,
    domain: &str,
    (transport, max_bytes): (Transport, usize),
) -> Vec<u8> {
    let mut records: Vec<&Record> = answer.records.iter().collect();
    // Shuffled, so that clients that use the first record are spread, and truncation drops no record always.
    fastrand::shuffle(&mut records);
    let mut truncated = records.len() > max_bytes / RECORD_MIN;
    records.truncate(max_bytes / RECORD_MIN);
    loop {
        let bytes = build(
            question,
            answer,
            &records,
            domain,
            truncated && transport == Transport::Udp,
        );
        if bytes.len() <= max_bytes || records.is_empty() {
            return bytes;
        }
        truncated = true;
        let fit = records.len() * max_bytes / bytes.len();
        records.truncate(fit.min(records.len() - 1));
    }
}

fn build(
    question: &Question,
    answer: &Answer,
    records: &[&Record],
    domain: &str,
    truncated: bool,
) -> Vec<u8> {
    let labels = question
        .labels
        .iter()
        .map(|label| Label::new_unchecked(label.as_slice()));
    let labels: Vec<Label<'_>> = labels.collect();
    let question_name = Name::new_with_labels(&labels);
    let mut packet = Packet::new_reply(question.id);
    *packet.rcode_mut() = answer.code;
    packet.set_flags(PacketFlag::RECURSION_AVAILABLE);
    let flags = [
        (question.recursion, PacketFlag::RECURSION_DESIRED),
        (answer.authoritative, PacketFlag::AUTHORITATIVE_ANSWER),
        (truncated, PacketFlag::TRUNCATION),
    ];
    for (_, flag) in flags.into_iter().filter(|(set, _)| *set) {
        packet.set_flags(flag);
    }
    if question.edns.is_some() {
        *packet.opt_mut() = Some(OPT {
            opt_codes: Vec::new(),
            udp_packet_size: UDP_MAX,
            version: 0,
        });
    }
    packet.questions.push(simple_dns::Question::new(
        question_name.clone(),
        QTYPE::TYPE(TYPE::from(question.qtype)),
        QCLASS::CLASS(CLASS::IN),
        false,
    ));
    let mut owner = question_name;
    for cname in &answer.cnames {
        let target = name(cname);
        packet
            .answers
            .push(record(owner, RData::CNAME(CNAME(target.clone()))));
        owner = target;
    }
    let found = records
        .iter()
        .map(|r| record(owner.clone(), data(r, domain)));
    packet.answers.extend(found);
    // No SOA after a CNAME: the missing target is not ours.
    if answer.authoritative && answer.records.is_empty() && answer.cnames.is_empty() {
        packet
            .name_servers
            .push(record(name(domain), authority(domain)));
    }
    let mut bytes = packet.build_bytes_vec_compressed().unwrap_or_default();
    restore_class(question, &mut bytes);
    bytes
}

/// The codec only writes the class `IN`: copies the class of the question back.
fn restore_class(question: &Question, bytes: &mut [u8]) {
    if question.class != INTERNET
        && let Some(class) = bytes.get_mut(question.end - 2..question.end)
    {
        class.copy_from_slice(&question.class.to_be_bytes());
    }
}

fn record<'a>(owner: Name<'a>, data: RData<'a>) -> ResourceRecord<'a> {
    ResourceRecord::new(owner, CLASS::IN, TTL, data)
}

/// The root if the name is invalid.
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
