//! Answers queries: from the zone if the name is in it, from upstream resolvers otherwise.

use std::net::{IpAddr, SocketAddr};
use std::sync::{PoisonError, RwLock};

use kennel_core::network::Network;
use simple_dns::RCODE;

use crate::forward::{Forwarder, Transport};
use crate::question::{INTERNET, Question, QuestionError, record_type};
use crate::reply::{self, Answer};
use crate::sources::Sources;
use crate::zone::{Lookup, Record, Zone};

/// The longest chain of CNAMEs that is followed.
const CNAME_CHAIN_MAX: usize = 8;
/// The longest packet sent over UDP: fits every network without fragmentation.
pub(crate) const UDP_MAX: u16 = 1232;
/// The longest that every client accepts over UDP.
const UDP_MIN: u16 = 512;

pub(crate) struct Resolver {
    pub(crate) zone: RwLock<Zone>,
    pub(crate) sources: Sources,
    domain: String,
    forwarder: Forwarder,
}

pub(crate) enum Action {
    Reply(Vec<u8>),
    /// Needs an upstream resolver.
    Forward(Question),
    Drop,
}

impl Resolver {
    /// `recursion_for` is [`Settings::recursion_for`](crate::Settings::recursion_for).
    pub(crate) fn new(
        domain: Vec<String>,
        upstreams: Vec<SocketAddr>,
        recursion_for: Vec<Network>,
    ) -> Self {
        Self {
            sources: Sources::new(recursion_for),
            domain: domain.join("."),
            zone: RwLock::new(Zone::new(domain)),
            forwarder: Forwarder::new(upstreams),
        }
    }

    pub(crate) fn domain(&self) -> &str {
        &self.domain
    }

    /// Answers a client from memory if that is possible.
    pub(crate) fn handle(&self, packet: &[u8], transport: Transport, client: IpAddr) -> Action {
        let question = match Question::read(packet) {
            Ok(question) => question,
            Err(QuestionError::Ignore) => return Action::Drop,
            Err(QuestionError::Malformed) => {
                return Action::Reply(reply::error(packet, RCODE::FormatError));
            }
            Err(QuestionError::NotImplemented) => {
                return Action::Reply(reply::error(packet, RCODE::NotImplemented));
            }
        };
        if question.edns.is_some_and(|e| e.version != 0) {
            return Action::Reply(self.reply(&question, transport, &Answer::empty(RCODE::BADVERS)));
        }
        let forward = |question| {
            if self.sources.allow(client) {
                return Action::Forward(question);
            }
            let refused = Answer::empty(RCODE::Refused);
            Action::Reply(self.reply(&question, transport, &refused))
        };
        if question.class != INTERNET {
            return forward(question);
        }
        match self.lookup(&question.name(), question.qtype) {
            None => Action::Reply(self.reply(
                &question,
                transport,
                &Answer::empty(RCODE::ServerFailure),
            )),
            Some(Lookup::OutOfZone | Lookup::Cname(_)) => forward(question),
            Some(found) => {
                let answer = Answer::from_zone(found);
                Action::Reply(self.reply(&question, transport, &answer))
            }
        }
    }

    /// Nothing while the zone is not synced.
    fn lookup(&self, name: &[String], qtype: u16) -> Option<Lookup> {
        let zone = self.zone.read().unwrap_or_else(PoisonError::into_inner);
        let found = zone.lookup(name, qtype);
        (zone.is_synced() || found == Lookup::OutOfZone).then_some(found)
    }

    /// Answers with the help of upstream resolvers.
    pub(crate) async fn resolve(
        &self,
        packet: &[u8],
        question: &Question,
        transport: Transport,
    ) -> Vec<u8> {
        let name = question.name();
        let answer = match self.lookup(&name, question.qtype) {
            Some(Lookup::Cname(alias)) if question.class == INTERNET => {
                self.follow_cname(question, alias).await
            }
            _ => {
                let answered = self
                    .forwarder
                    .forward(packet, question.end, transport)
                    .await;
                if let Some(answered) = answered {
                    return answered;
                }
                Answer::empty(RCODE::ServerFailure)
            }
        };
        self.reply(question, transport, &answer)
    }

    async fn follow_cname(&self, question: &Question, target: String) -> Answer {
        let mut answer = Answer::from_zone(Lookup::NoData);
        let mut next = target;
        for _ in 0..CNAME_CHAIN_MAX {
            answer.cnames.push(next.clone());
            if question.qtype == record_type::CNAME {
                return answer;
            }
            let text = next.trim_end_matches('.').to_ascii_lowercase();
            let name: Vec<String> = text.split('.').map(str::to_owned).collect();
            match self.lookup(&name, question.qtype) {
                Some(Lookup::Cname(alias)) => next = alias,
                Some(Lookup::OutOfZone) => {
                    match self.forwarder.addresses(&text, question.qtype).await {
                        Some(known) => {
                            let records = known.addresses.into_iter().map(Record::Address);
                            answer.records.extend(records);
                            if known.nxdomain {
                                answer.code = RCODE::NameError;
                            }
                        }
                        None => answer.code = RCODE::ServerFailure,
                    }
                    return answer;
                }
                Some(Lookup::Records(records)) => {
                    answer.records = records;
                    return answer;
                }
                Some(Lookup::NoData) => return answer,
                Some(Lookup::NxDomain) => {
                    answer.code = RCODE::NameError;
                    return answer;
                }
                None => break,
            }
        }
        Answer::empty(RCODE::ServerFailure)
    }

    fn reply(&self, question: &Question, transport: Transport, answer: &Answer) -> Vec<u8> {
        let size = question.edns.map_or(UDP_MIN, |edns| edns.size);
        let max_bytes = match transport {
            Transport::Udp => usize::from(size.clamp(UDP_MIN, UDP_MAX)),
            Transport::Tcp => usize::from(u16::MAX),
        };
        reply::packet(question, answer, &self.domain, (transport, max_bytes))
    }
}
