//! A watcher: reads the state, follows it over the ends of watches and servers, and records each step.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kennel_testkit::history::{List, Revision, Seen, Step, Stream};
use kennel_testkit::{Deadline, Wire};
use serde_json::Value;

use super::answers::{self, CONFIGMAPS};
use super::round::{Shared, key};

/// A watch ends after so many seconds, with a bookmark.
const WATCH_SECONDS: std::ops::Range<u64> = 1..4;
/// After a server that did not answer.
const PAUSE: Duration = Duration::from_millis(20);
/// From the end of all writes to the last event.
const DELIVERY_SECONDS: u64 = 60;

/// How it reads the state.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begin {
    List,
    InitialEvents,
}

pub(super) struct Watcher {
    shared: Arc<Shared>,
    random: fastrand::Rng,
    begin: Begin,
    /// None while it has no state.
    position: Option<Revision>,
    stream: Stream,
}

/// Why a connection is of no more use: it ended, or it said that the state is too old.
struct Ended;

impl Watcher {
    /// One that lists, one that asks for initial events, and one of a single object.
    pub(super) fn several(shared: &Arc<Shared>, seed: u64) -> Vec<Self> {
        let kinds = [
            (Begin::List, None),
            (Begin::InitialEvents, None),
            (Begin::List, Some(key(0))),
        ];
        let watchers = kinds.into_iter().zip(0..);
        let watchers = watchers.map(|((begin, only), number)| Self {
            shared: Arc::clone(shared),
            random: fastrand::Rng::with_seed(seed.wrapping_sub(number << 32)),
            begin,
            position: None,
            stream: Stream {
                watcher: usize::try_from(number).expect("a small number"),
                only,
                steps: Vec::new(),
            },
        });
        watchers.collect()
    }

    /// Follows until it has seen the last write.
    pub(super) fn run(mut self) -> Stream {
        let mut deadline = None;
        while !self.is_done() {
            if self.shared.last.load(Ordering::SeqCst) != u64::MAX {
                let deadline = *deadline.get_or_insert(Deadline::seconds(DELIVERY_SECONDS));
                let (watcher, at) = (self.stream.watcher, self.position);
                assert!(!deadline.passed(), "watcher {watcher} is stuck at {at:?}");
            }
            self.shared.gate.wait();
            let Ok(mut wire) = self.shared.access.open() else {
                std::thread::sleep(PAUSE);
                continue;
            };
            let Err(Ended) = self.follow(&mut wire);
        }
        self.stream
    }

    fn is_done(&self) -> bool {
        let last = self.shared.last.load(Ordering::SeqCst);
        self.position.is_some_and(|position| position >= last)
    }

    /// Reads what one connection gives.
    fn follow(&mut self, wire: &mut Wire) -> Result<std::convert::Infallible, Ended> {
        let mut rest = Vec::new();
        if self.position.is_none() && self.begin == Begin::InitialEvents {
            self.initial_events(wire, &mut rest)?;
        } else {
            if self.position.is_none() {
                self.list(wire)?;
            }
            let after = self.position.ok_or(Ended)?;
            self.ask(wire, &format!("resourceVersion={after}"))?;
            self.stream.steps.push(Step::Connected { after });
        }
        loop {
            for event in lines(wire, &mut rest)? {
                self.take(&event)?;
            }
        }
    }

    fn filter(&self) -> String {
        let only = self.stream.only.as_ref();
        only.map_or_else(String::new, |name| {
            format!("&fieldSelector=metadata.name%3D{name}")
        })
    }

    fn list(&mut self, wire: &mut Wire) -> Result<(), Ended> {
        let path = format!("{CONFIGMAPS}?{}", self.filter().trim_start_matches('&'));
        let invoked = self.shared.clock.now();
        let reply = wire.ask("GET", &path, "application/json", b"");
        let reply = reply.map_err(|_| Ended)?;
        if reply.code != 200 {
            let may_fail = reply.code == 429 || reply.code >= 500;
            assert!(may_fail, "{path}: {} {}", reply.code, reply.text());
            std::thread::sleep(PAUSE);
            return Err(Ended);
        }
        let list = reply.json();
        self.listed(invoked, answers::revision(&list), answers::objects(&list));
        Ok(())
    }

    fn listed(&mut self, invoked: u64, revision: Revision, objects: BTreeMap<String, Seen>) {
        self.position = Some(revision);
        self.stream.steps.push(Step::Listed(List {
            client: usize::MAX - self.stream.watcher,
            invoked,
            returned: self.shared.clock.now(),
            revision,
            objects,
        }));
    }

    /// Opens a watch with the state as events, and reads until the bookmark that ends it; the watch goes on behind it.
    fn initial_events(&mut self, wire: &mut Wire, rest: &mut Vec<u8>) -> Result<(), Ended> {
        let invoked = self.shared.clock.now();
        self.ask(
            wire,
            "sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
        )?;
        let mut objects = BTreeMap::new();
        loop {
            let mut events = lines(wire, rest)?.into_iter();
            while let Some(event) = events.next() {
                let object = &event["object"];
                match event["type"].as_str() {
                    Some("ADDED") => {
                        let ours = answers::key(object);
                        objects.extend(ours.map(|key| (key, answers::seen(object))));
                    }
                    Some("BOOKMARK") => {
                        let marks = &object["metadata"]["annotations"];
                        assert_eq!(marks["k8s.io/initial-events-end"], "true", "{event}");
                        let after = answers::revision(object);
                        self.listed(invoked, after, objects);
                        self.stream.steps.push(Step::Connected { after });
                        // Live events may come in the same chunk.
                        return events.try_for_each(|event| self.take(&event));
                    }
                    _ => return Err(Ended),
                }
            }
        }
    }

    fn ask(&mut self, wire: &mut Wire, query: &str) -> Result<(), Ended> {
        let seconds = self.random.u64(WATCH_SECONDS);
        let filter = self.filter();
        let path = format!(
            "{CONFIGMAPS}?watch=true&allowWatchBookmarks=true&timeoutSeconds={seconds}&{query}{filter}"
        );
        let request = format!("GET {path} HTTP/1.1\r\nHost: kennel\r\n\r\n");
        wire.send(request.as_bytes()).map_err(|_| Ended)?;
        let (code, head) = wire.head().map_err(|_| Ended)?;
        if code != 200 {
            assert!(code == 429 || code >= 500, "{path}: {head}");
            std::thread::sleep(PAUSE);
            return Err(Ended);
        }
        Ok(())
    }

    /// Records an event; an error means that the state is too old.
    fn take(&mut self, event: &Value) -> Result<(), Ended> {
        let (object, at) = (&event["object"], self.shared.clock.now());
        let word = event["type"].as_str().unwrap_or_default();
        if word == "BOOKMARK" {
            let revision = answers::revision(object);
            self.position = self.position.max(Some(revision));
            self.stream.steps.push(Step::Bookmark { revision, at });
        } else if let Some(kind) = answers::kind(word) {
            let Some(key) = answers::key(object) else {
                return Ok(());
            };
            let seen = answers::seen(object);
            self.position = self.position.max(Some(seen.revision));
            let step = Step::Event {
                kind,
                key,
                seen,
                at,
            };
            self.stream.steps.push(step);
        } else {
            let code = object["code"].as_u64();
            assert!(word == "ERROR" && code >= Some(410), "{event}");
            if code == Some(410) {
                self.position = None;
            }
            return Err(Ended);
        }
        if self.is_done() { Err(Ended) } else { Ok(()) }
    }
}

/// The whole lines of the next chunk.
fn lines(wire: &mut Wire, rest: &mut Vec<u8>) -> Result<Vec<Value>, Ended> {
    let chunk = wire.chunk().map_err(|_| Ended)?.ok_or(Ended)?;
    rest.extend(chunk);
    let mut events = Vec::new();
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let line: Vec<u8> = rest.drain(..=end).collect();
        events.push(serde_json::from_slice(&line).expect("a line of a watch is JSON"));
    }
    Ok(events)
}
