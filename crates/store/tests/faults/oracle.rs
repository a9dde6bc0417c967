//! What a store may hold after a fault: everything that it acknowledged or showed, nothing that it rejected, and perhaps what it
//! did not answer.

use std::collections::{BTreeMap, BTreeSet};

use kennel_store::{Revision, Store};

use crate::workload::{TestStore, whole};

/// The value of a key, or none.
type State = Option<String>;

#[derive(Clone, Debug, Default)]
struct Expectation {
    /// The last state that is certainly on disk.
    durable: State,
    /// The state that readers see.
    live: State,
    /// Other states that a crash may leave.
    possible: Vec<State>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Oracle {
    keys: BTreeMap<String, Expectation>,
    /// The greatest revision that was shown.
    shown: Revision,
    acknowledged: BTreeSet<Revision>,
}

/// One thing that happened, in the order in which it did.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A write was begun.
    Tried { key: String, state: State },
    /// It was acknowledged after its sync.
    Stored {
        key: String,
        state: State,
        revision: Revision,
    },
    /// It was acknowledged, and may be lost.
    Renewed {
        key: String,
        state: State,
        revision: Revision,
    },
    /// It was rejected: nothing of it may be stored.
    Rejected { key: String, state: State },
    /// The store was opened, and shows this.
    Shown {
        keys: BTreeMap<String, String>,
        revision: Revision,
    },
}

impl Event {
    /// That was assigned, if one was.
    pub(crate) fn revision(&self) -> Option<Revision> {
        match self {
            Self::Stored { revision, .. } | Self::Renewed { revision, .. } => Some(*revision),
            _ => None,
        }
    }
}

impl Oracle {
    pub(crate) fn add(&mut self, event: &Event) {
        match event {
            Event::Tried { key, state } => self.at(key).possible.push(state.clone()),
            Event::Rejected { key, state } => {
                let possible = &mut self.at(key).possible;
                let tried = possible.iter().rposition(|other| other == state);
                possible.remove(tried.expect("it was tried"));
            }
            Event::Stored {
                key,
                state,
                revision,
            } => {
                self.assign(*revision);
                *self.at(key) = Expectation {
                    durable: state.clone(),
                    live: state.clone(),
                    possible: vec![],
                };
            }
            Event::Renewed {
                key,
                state,
                revision,
            } => {
                self.assign(*revision);
                self.at(key).live.clone_from(state);
            }
            Event::Shown { keys, revision } => {
                self.shown = self.shown.max(*revision);
                for (key, expectation) in &mut self.keys {
                    let state = keys.get(key).cloned();
                    *expectation = Expectation {
                        durable: state.clone(),
                        live: state,
                        possible: vec![],
                    };
                }
            }
        }
    }

    /// Whether nothing was tried.
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// A commit has succeeded: what failed before it is certainly not stored.
    pub(crate) fn forget_failed(&mut self) {
        for expectation in self.keys.values_mut() {
            let live = expectation.live.clone();
            expectation.possible.retain(|state| *state == live);
        }
    }

    fn at(&mut self, key: &str) -> &mut Expectation {
        self.keys.entry(key.to_owned()).or_default()
    }

    fn assign(&mut self, revision: Revision) {
        assert!(
            revision > self.shown,
            "revision {revision} after {}",
            self.shown
        );
        assert!(
            self.acknowledged.insert(revision),
            "{revision} was assigned twice"
        );
        self.shown = revision;
    }

    /// What is wrong with a store that goes on where this left off, after a crash; its event if nothing is.
    pub(crate) fn compare(&self, store: &TestStore) -> Result<Event, String> {
        if let Some(damaged) = store.damaged().first() {
            return Err(format!("{} is damaged: {}", damaged.key, damaged.reason));
        }
        self.compare_revision(store)?;
        let revision = store.revision();
        let mut keys = BTreeMap::new();
        for record in store.range("", None, None).records {
            let text = String::from_utf8_lossy(&record.value).into_owned();
            whole(&record.key, &text)?;
            if record.modified > revision {
                return Err(format!("{} is from the future", record.key));
            }
            keys.insert(record.key.to_string(), text);
        }
        if let Some(unknown) = keys.keys().find(|key| !self.keys.contains_key(*key)) {
            return Err(format!("{unknown} was never written"));
        }
        for (key, expectation) in &self.keys {
            let state = keys.get(key).cloned();
            if state != expectation.durable && !expectation.possible.contains(&state) {
                let expected = expectation.outline();
                return Err(format!(
                    "{key} is {}, expected {expected}",
                    outline(state.as_deref())
                ));
            }
        }
        Ok(Event::Shown { keys, revision })
    }

    /// What is wrong with the revision of a store that goes on where this left off.
    pub(crate) fn compare_revision(&self, store: &TestStore) -> Result<(), String> {
        let revision = store.revision();
        if revision < self.shown {
            return Err(format!("revision {revision} after {}", self.shown));
        }
        Ok(())
    }

    /// What is wrong with what a store shows that has not been closed.
    pub(crate) fn compare_live(&self, store: &TestStore) -> Result<(), String> {
        for (key, expectation) in &self.keys {
            let record = store.get(key);
            let state = record.map(|record| String::from_utf8_lossy(&record.value).into_owned());
            if state != expectation.live {
                let (seen, live) = (
                    outline(state.as_deref()),
                    outline(expectation.live.as_deref()),
                );
                return Err(format!("{key} reads {seen}, and should read {live}"));
            }
        }
        Ok(())
    }
}

impl Expectation {
    fn outline(&self) -> String {
        let possible: Vec<String> = self
            .possible
            .iter()
            .map(|state| outline(state.as_deref()))
            .collect();
        format!(
            "{} or one of {possible:?}",
            outline(self.durable.as_deref())
        )
    }
}

fn outline(state: Option<&str>) -> String {
    let begin = |text: &str| text.split(' ').next().unwrap_or_default().to_owned();
    state.map_or_else(|| "absent".to_owned(), begin)
}
