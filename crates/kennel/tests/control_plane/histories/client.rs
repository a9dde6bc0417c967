//! A client: one request after another, each recorded with its instants.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kennel_testkit::Wire;
use kennel_testkit::history::{Answer, Call, List, NEVER, Operation, Token};

use super::answers::{self, CONFIGMAPS, answer, request};
use super::round::{Shared, key};

/// Tokens of a client begin at its number times this.
const TOKENS: Token = 1_000_000_000;
/// After an answer that says that the server cannot.
const PAUSE: Duration = Duration::from_millis(20);

pub(super) struct Client {
    number: usize,
    shared: Arc<Shared>,
    random: fastrand::Rng,
    /// A connection, and to which server.
    wire: Option<(usize, Wire)>,
    token: Token,
    /// Each with the server that it was sent to.
    pub(super) operations: Vec<(usize, Operation)>,
    pub(super) lists: Vec<List>,
}

impl Client {
    pub(super) fn new(number: usize, seed: u64, shared: &Arc<Shared>) -> Self {
        let place = number as u64 + 1;
        Self {
            number,
            shared: Arc::clone(shared),
            random: fastrand::Rng::with_seed(seed.wrapping_add(place << 32)),
            wire: None,
            token: place * TOKENS,
            operations: Vec::new(),
            lists: Vec::new(),
        }
    }

    /// Asks until the round is over.
    pub(super) fn run(mut self, objects: usize) -> Self {
        while !self.shared.is_over.load(Ordering::SeqCst) {
            let object = self.random.usize(..objects);
            match self.random.u8(..100) {
                0..8 => self.list(),
                8..12 => self.paged_list(),
                choice => self.random_call(object, choice),
            }
        }
        self.wire = None;
        self
    }

    fn random_call(&mut self, object: usize, choice: u8) {
        let known = self.shared.newest(object);
        let (uid, revision) = match &known {
            Some(seen) => (Some(seen.uid.clone()), Some(seen.revision)),
            None => (None, None),
        };
        match (choice, known) {
            (12..35, _) => self.call(object, |_| Call::Get),
            (35..62, Some(known)) => self.call(object, |token| Call::Update {
                token,
                uid: known.uid,
                revision: known.revision,
            }),
            (62..70, Some(_)) => self.call(object, |token| Call::Patch { token, revision }),
            (70..82, _) => self.call(object, |token| Call::Patch {
                token,
                revision: None,
            }),
            (82..86, _) => self.call(object, |_| Call::Delete { uid, revision }),
            (86..89, _) => self.call(object, |_| Call::Delete {
                uid: None,
                revision: None,
            }),
            _ => self.call(object, |token| Call::Create { token }),
        }
    }

    /// Makes one call about an object, and records it unless it has no meaning.
    pub(super) fn call(&mut self, object: usize, call: impl FnOnce(Token) -> Call) {
        self.token += 1;
        let (call, key) = (call(self.token), key(object));
        let asked = request(&key, &call);
        let server = self.connect();
        let invoked = self.shared.clock.now();
        let reply = self
            .wire
            .as_mut()
            .map(|(_, wire)| wire.ask(asked.method, &asked.path, asked.content_type, &asked.body));
        let returned = self.shared.clock.now();
        let answer = match reply {
            // It was never sent.
            None => None,
            Some(Ok(reply)) => {
                if reply.code >= 429 {
                    std::thread::sleep(PAUSE);
                }
                answer(&call, &reply)
            }
            Some(Err(_)) => {
                self.wire = None;
                (call != Call::Get).then_some(Answer::Unknown)
            }
        };
        let Some(answer) = answer else {
            return;
        };
        if let Answer::Shown(seen) = &answer {
            self.shared.remember(object, seen);
        }
        let returned = match answer {
            Answer::Unknown => NEVER,
            _ => returned,
        };
        let operation = Operation {
            client: self.number,
            key,
            call,
            answer,
            invoked,
            returned,
        };
        self.operations.push((server, operation));
    }

    /// Lists all objects.
    pub(super) fn list(&mut self) {
        self.connect();
        let invoked = self.shared.clock.now();
        if let Some(list) = self.page(CONFIGMAPS) {
            let objects = answers::objects(&list);
            self.record_list(invoked, answers::revision(&list), objects);
        }
    }

    /// Lists all objects in pages, which show one revision. A page may be refused after a restart.
    fn paged_list(&mut self) {
        self.connect();
        let invoked = self.shared.clock.now();
        let (mut objects, mut revision) = (BTreeMap::new(), None);
        let mut path = format!("{CONFIGMAPS}?limit=2");
        while let Some(page) = self.page(&path) {
            let at = answers::revision(&page);
            assert_eq!(at, *revision.get_or_insert(at), "pages are of one revision");
            objects.extend(answers::objects(&page));
            match page["metadata"]["continue"].as_str() {
                Some(token) => path = format!("{CONFIGMAPS}?limit=2&continue={token}"),
                None => return self.record_list(invoked, at, objects),
            }
        }
    }

    fn record_list(
        &mut self,
        invoked: kennel_testkit::history::Instant,
        revision: u64,
        objects: BTreeMap<String, kennel_testkit::history::Seen>,
    ) {
        self.lists.push(List {
            client: self.number,
            invoked,
            returned: self.shared.clock.now(),
            revision,
            objects,
        });
    }

    fn page(&mut self, path: &str) -> Option<serde_json::Value> {
        let (_, wire) = self.wire.as_mut()?;
        match wire.ask("GET", path, "application/json", b"") {
            Ok(reply) if reply.code == 200 => Some(reply.json()),
            Ok(reply) => {
                let may_fail = reply.code == 410 || reply.code == 429 || reply.code >= 500;
                assert!(may_fail, "{path}: {} {}", reply.code, reply.text());
                std::thread::sleep(PAUSE);
                None
            }
            Err(_) => {
                self.wire = None;
                None
            }
        }
    }

    /// Connects if it is not; returns to which server.
    fn connect(&mut self) -> usize {
        if self.wire.is_none() {
            let server = self.shared.gate.wait();
            let opened = self.shared.access.open();
            self.wire = opened.ok().map(|wire| (server, wire));
        }
        self.wire.as_ref().map_or(0, |(server, _)| *server)
    }
}
