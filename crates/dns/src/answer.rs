//! From a packet to the packet that answers it: from memory if the name is ours, from other resolvers if not.

use std::net::SocketAddr;
use std::sync::{PoisonError, RwLock};

use crate::forward::{Forwarder, Over};
use crate::question::{INTERNET, Question, Unfit, kind};
use crate::reply::{self, Answer, Code};
use crate::zone::{Found, Record, Zone};

/// How many aliases are followed, one after the other.
const ALIASES: usize = 8;
/// The longest packet that is sent over UDP: what passes everywhere in one piece.
pub(crate) const UDP_MAX: u16 = 1232;
/// The longest that every asker takes over UDP.
const UDP_MIN: u16 = 512;

/// What all answers share.
pub(crate) struct State {
    pub(crate) zone: RwLock<Zone>,
    domain: String,
    forwarder: Forwarder,
}

/// What to do with a packet.
pub(crate) enum Step {
    /// Send this.
    Send(Vec<u8>),
    /// Ask others first.
    Ask(Question),
    /// Nothing.
    Drop,
}

impl State {
    pub(crate) fn new(domain: Vec<String>, upstreams: Vec<SocketAddr>) -> Self {
        Self {
            domain: domain.join("."),
            zone: RwLock::new(Zone::new(domain)),
            forwarder: Forwarder::new(upstreams),
        }
    }

    pub(crate) fn domain(&self) -> &str {
        &self.domain
    }

    /// Answers at once what can be answered from memory.
    pub(crate) fn step(&self, packet: &[u8], over: Over) -> Step {
        let question = match Question::read(packet) {
            Ok(question) => question,
            Err(Unfit::Silence) => return Step::Drop,
            Err(Unfit::Malformed) => return Step::Send(reply::refusal(packet, Code::Malformed)),
            Err(Unfit::Unknown) => return Step::Send(reply::refusal(packet, Code::Unknown)),
        };
        if question.extension.is_some_and(|e| e.version != 0) {
            return Step::Send(self.reply(&question, over, &Answer::bare(Code::Version)));
        }
        if question.class != INTERNET {
            return Step::Ask(question);
        }
        match self.find(&question.name(), question.kind) {
            None => Step::Send(self.reply(&question, over, &Answer::bare(Code::Failure))),
            Some(Found::Foreign | Found::Alias(_)) => Step::Ask(question),
            Some(found) => {
                let answer = Answer::ours(found);
                Step::Send(self.reply(&question, over, &answer))
            }
        }
    }

    /// What a name leads to; nothing, if that is not known yet.
    fn find(&self, name: &[String], kind: u16) -> Option<Found> {
        let zone = self.zone.read().unwrap_or_else(PoisonError::into_inner);
        let found = zone.find(name, kind);
        (zone.is_synced() || found == Found::Foreign).then_some(found)
    }

    /// Answers what needs others.
    pub(crate) async fn ask(&self, packet: &[u8], question: &Question, over: Over) -> Vec<u8> {
        let name = question.name();
        let answer = match self.find(&name, question.kind) {
            Some(Found::Alias(alias)) if question.class == INTERNET => {
                self.follow(question, alias).await
            }
            _ => {
                let answered = self.forwarder.ask(packet, question.end, over).await;
                if let Some(answered) = answered {
                    return answered;
                }
                Answer::bare(Code::Failure)
            }
        };
        self.reply(question, over, &answer)
    }

    /// Follows aliases until they lead to something.
    async fn follow(&self, question: &Question, first: String) -> Answer {
        let mut answer = Answer::ours(Found::Nothing);
        let mut next = first;
        for _ in 0..ALIASES {
            answer.aliases.push(next.clone());
            if question.kind == kind::CNAME {
                return answer;
            }
            let text = next.trim_end_matches('.').to_ascii_lowercase();
            let name: Vec<String> = text.split('.').map(str::to_owned).collect();
            match self.find(&name, question.kind) {
                Some(Found::Alias(alias)) => next = alias,
                Some(Found::Foreign) => {
                    match self.forwarder.addresses(&text, question.kind).await {
                        Some(known) => {
                            let records = known.addresses.into_iter().map(Record::Address);
                            answer.records.extend(records);
                            if known.missing {
                                answer.code = Code::Missing;
                            }
                        }
                        None => answer.code = Code::Failure,
                    }
                    return answer;
                }
                Some(Found::Records(records)) => {
                    answer.records = records;
                    return answer;
                }
                Some(Found::Nothing) => return answer,
                Some(Found::Missing) => {
                    answer.code = Code::Missing;
                    return answer;
                }
                None => break,
            }
        }
        Answer::bare(Code::Failure)
    }

    fn reply(&self, question: &Question, over: Over, answer: &Answer) -> Vec<u8> {
        let asked = question.extension.map_or(UDP_MIN, |e| e.size);
        let room = match over {
            Over::Udp => usize::from(asked.clamp(UDP_MIN, UDP_MAX)),
            Over::Tcp => usize::from(u16::MAX),
        };
        reply::packet(question, answer, &self.domain, (over, room))
    }
}
