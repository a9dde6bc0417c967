//! Packets that make no sense: they get silence or a refusal, never a panic.

use fastrand::Rng;
use simple_dns::Packet;

use super::state;
use crate::answer::{State, Step};
use crate::forward::{Over, read_addresses};
use crate::question::Question;
use crate::question::kind::{A, ANY, PTR, SRV};
use crate::question::tests::packet;

/// Whatever comes, an answer has the question's id and says that it is one.
fn answer(state: &State, bytes: &[u8], over: Over) {
    let Step::Send(answer) = state.step(bytes, over) else {
        return;
    };
    assert!(answer.len() >= 12, "{bytes:?}");
    assert_eq!(answer[..2], bytes[..2], "{bytes:?}");
    assert_ne!(answer[2] & 0x80, 0, "{bytes:?}");
    if over == Over::Udp {
        assert!(answer.len() <= 1232, "{bytes:?}");
    }
    // The codec reads no question of a type that it does not know.
    let known = |question: Question| [A, SRV, ANY, PTR].contains(&question.kind);
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
fn mutated_questions_never_hurt() {
    let state = state(40, Vec::new());
    let good = [
        packet("web.ns.svc.cluster.local", A, None),
        packet("agent.ns.svc.cluster.local", ANY, Some(4096)),
        packet("_http._tcp.web.ns.svc.cluster.local", SRV, Some(512)),
        packet("9.0.96.10.in-addr.arpa", PTR, None),
    ];
    let mut rng = Rng::with_seed(1);
    for _ in 0..20_000 {
        let mut bytes = rng.choice(&good).unwrap().clone();
        mutate(&mut rng, &mut bytes);
        for over in [Over::Udp, Over::Tcp] {
            answer(&state, &bytes, over);
        }
    }
}

#[test]
fn noise_never_hurts() {
    let state = state(1, Vec::new());
    let mut rng = Rng::with_seed(2);
    for _ in 0..5_000 {
        let length = rng.usize(..80);
        let bytes: Vec<u8> = (0..length).map(|_| rng.u8(..)).collect();
        answer(&state, &bytes, Over::Udp);
    }
    for length in 0..12 {
        assert!(matches!(
            state.step(&vec![0; length], Over::Udp),
            Step::Drop
        ));
    }
}

#[test]
fn mutated_answers_of_others_never_hurt() {
    let state = state(5, Vec::new());
    let question = packet("agent.ns.svc.cluster.local", A, Some(1232));
    let Step::Send(good) = state.step(&question, Over::Udp) else {
        panic!("it is answered");
    };
    assert_eq!(read_addresses(&good).unwrap().len(), 5);
    let mut rng = Rng::with_seed(3);
    for _ in 0..20_000 {
        let mut bytes = good.clone();
        mutate(&mut rng, &mut bytes);
        // The codec may refuse, but must come back.
        drop(read_addresses(&bytes));
    }
}
