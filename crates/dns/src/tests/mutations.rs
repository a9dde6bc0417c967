//! Mutated and random packets: they get an error reply or none, and never cause a panic.

use std::net::{IpAddr, Ipv4Addr};

use fastrand::Rng;
use kennel_test_support::with_seeds;
use simple_dns::Packet;

use super::resolver;
use crate::forward::{Transport, read_addresses};
use crate::question::record_type::{A, ANY, PTR, SRV};
use crate::question::tests::packet;
use crate::question::{INTERNET, Question};
use crate::resolver::{Action, Resolver};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Every reply has the id of the question and the response flag.
fn check_reply(resolver: &Resolver, bytes: &[u8], transport: Transport) {
    let Action::Reply(answer) = resolver.handle(bytes, transport, HERE) else {
        return;
    };
    assert!(answer.len() >= 12, "{bytes:?}");
    assert_eq!(answer[..2], bytes[..2], "{bytes:?}");
    assert_ne!(answer[2] & 0x80, 0, "{bytes:?}");
    if transport == Transport::Udp {
        assert!(answer.len() <= 1232, "{bytes:?}");
    }
    // The codec cannot parse questions of types and classes that it does not know.
    let known = |question: Question| {
        [A, SRV, ANY, PTR].contains(&question.qtype) && question.class == INTERNET
    };
    if Question::read(bytes).is_ok_and(known) {
        assert!(Packet::parse(&answer).is_ok(), "{bytes:?} gave {answer:?}");
    }
}

fn mutate(rng: &mut Rng, bytes: &mut Vec<u8>) {
    for _ in 0..rng.usize(1..6) {
        let at = rng.usize(..=bytes.len());
        match rng.u8(0..6) {
            0 if at < bytes.len() => bytes[at] = rng.u8(..),
            1 if at < bytes.len() => bytes[at] ^= 1 << rng.u8(0..8),
            2 => bytes.truncate(at),
            3 => bytes.insert(at, rng.u8(..)),
            4 => bytes.extend((0..rng.usize(..20)).map(|_| rng.u8(..))),
            5 if at < bytes.len() => bytes[at] = 0xc0,
            _ => {}
        }
    }
}

#[test]
fn mutated_questions_never_panic() {
    let resolver = resolver(40, Vec::new());
    let good = [
        packet("web.ns.svc.cluster.local", A, None),
        packet("agent.ns.svc.cluster.local", ANY, Some(4096)),
        packet("_http._tcp.web.ns.svc.cluster.local", SRV, Some(512)),
        packet("9.0.96.10.in-addr.arpa", PTR, None),
    ];
    with_seeds([1], |seed| {
        let mut rng = Rng::with_seed(seed);
        for _ in 0..20_000 {
            let mut bytes = rng.choice(&good).unwrap().clone();
            mutate(&mut rng, &mut bytes);
            for transport in [Transport::Udp, Transport::Tcp] {
                check_reply(&resolver, &bytes, transport);
            }
        }
    });
}

#[test]
fn random_packets_never_panic() {
    let resolver = resolver(1, Vec::new());
    with_seeds([2], |seed| {
        let mut rng = Rng::with_seed(seed);
        for _ in 0..5_000 {
            let length = rng.usize(..80);
            let bytes: Vec<u8> = (0..length).map(|_| rng.u8(..)).collect();
            check_reply(&resolver, &bytes, Transport::Udp);
        }
    });
    for length in 0..12 {
        assert!(matches!(
            resolver.handle(&vec![0; length], Transport::Udp, HERE),
            Action::Drop
        ));
    }
}

#[test]
fn mutated_upstream_answers_never_panic() {
    let resolver = resolver(5, Vec::new());
    let question = packet("agent.ns.svc.cluster.local", A, Some(1232));
    let Action::Reply(good) = resolver.handle(&question, Transport::Udp, HERE) else {
        panic!("it is answered");
    };
    assert_eq!(read_addresses(&good).unwrap().len(), 5);
    with_seeds([3], |seed| {
        let mut rng = Rng::with_seed(seed);
        for _ in 0..20_000 {
            let mut bytes = good.clone();
            mutate(&mut rng, &mut bytes);
            // The codec may fail, but must return.
            drop(read_addresses(&bytes));
        }
    });
}
