//! An API that keeps slices and Endpoints, for tests: it carries out writes and tells of them, if asked to.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::super::facts::strings;
use super::super::*;

/// See the [module](self). Objects by kind and name, all in one namespace.
#[derive(Default)]
pub(super) struct Api {
    pub(super) objects: BTreeMap<(bool, Arc<str>), Value>,
    version: u64,
    names: u32,
    /// Changes that the tracker has not been told of yet: what, and gone or not.
    events: Vec<(bool, Value, bool)>,
}

impl Api {
    pub(super) fn slices(&self) -> Vec<&Value> {
        self.of(true)
    }

    pub(super) fn endpoints(&self) -> Vec<&Value> {
        self.of(false)
    }

    fn of(&self, slices: bool) -> Vec<&Value> {
        let all = self.objects.iter();
        all.filter(|((slice, _), _)| *slice == slices)
            .map(|(_, object)| object)
            .collect()
    }

    /// Stores an object, as somebody else.
    pub(super) fn put(&mut self, slice: bool, mut object: Value) -> Outcome {
        self.version += 1;
        let name: Arc<str> = object["metadata"]["name"].as_str().unwrap().into();
        let before = self.objects.get(&(slice, name.clone()));
        let uid = before.map_or(format!("o{}", self.version).into(), |before| {
            before["metadata"]["uid"].clone()
        });
        object["metadata"]["uid"] = uid.clone();
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.events.push((slice, object.clone(), false));
        self.objects.insert((slice, name), object);
        Outcome::Done {
            uid: uid.as_str().unwrap().into(),
            version: self.version,
        }
    }

    /// Deletes an object, as somebody else.
    pub(super) fn delete(&mut self, slice: bool, name: &str) {
        if let Some(object) = self.objects.remove(&(slice, name.into())) {
            self.version += 1;
            self.events.push((slice, object, true));
        }
    }

    /// Carries out a write.
    pub(super) fn carry_out(&mut self, write: &Write) -> Outcome {
        let (slice, body) = match &write.what {
            What::CreateSlice(body) | What::UpdateSlice(body) => (true, Some(body)),
            What::CreateEndpoints(body) | What::UpdateEndpoints(body) => (false, Some(body)),
            What::DeleteSlice { .. } => (true, None),
            What::DeleteEndpoints { .. } => (false, None),
        };
        let stored = self.objects.get(&(slice, write.name.clone()));
        let stored = stored.map(|object| object["metadata"].clone());
        let (what, Some(stored)) = (&write.what, stored) else {
            return match &write.what {
                What::CreateSlice(body) | What::CreateEndpoints(body) => {
                    self.put(slice, body.clone())
                }
                _ => Outcome::Gone,
            };
        };
        match (what, body) {
            (What::CreateSlice(_) | What::CreateEndpoints(_), _) => Outcome::Taken,
            (_, Some(body)) if body["metadata"]["resourceVersion"] != stored["resourceVersion"] => {
                Outcome::Stale
            }
            (_, Some(body)) => self.put(slice, body.clone()),
            (What::DeleteSlice { uid } | What::DeleteEndpoints { uid }, _)
                if stored["uid"] != **uid =>
            {
                Outcome::Gone
            }
            _ => {
                self.delete(slice, &write.name);
                let uid = "".into();
                Outcome::Done { uid, version: 0 }
            }
        }
    }

    /// Tells of the next `count` changes.
    pub(super) fn tell(&mut self, now: i64, tracker: &mut Tracker, count: usize) {
        let count = count.min(self.events.len());
        for (slice, object, gone) in self.events.drain(..count) {
            let stored = stored(&object);
            let (namespace, name, uid) = (&stored.namespace, &stored.name, &*stored.uid);
            match (slice, gone) {
                (true, true) => tracker.slice_gone(now, namespace, name, uid),
                (false, true) => tracker.endpoints_gone(now, namespace, name, uid),
                (true, false) => tracker.slice(now, stored),
                (false, false) => tracker.endpoints(now, stored),
            }
        }
    }

    /// What the tracker wants to be written now.
    pub(super) fn asked(&mut self, now: i64, tracker: &mut Tracker) -> Vec<Write> {
        let names = &mut self.names;
        let mut shell = Shell {
            name: &mut |prefix| {
                *names += 1;
                format!("{prefix}{names:05}")
            },
            time: |seconds| format!("t{seconds}"),
        };
        tracker.take(now, &mut shell)
    }

    /// Carries out all that is wanted, and tells of it, until nothing is wanted any more. Returns the writes.
    pub(super) fn settle(&mut self, now: &mut i64, tracker: &mut Tracker) -> Vec<Write> {
        let mut all = Vec::new();
        for _ in 0..1000 {
            self.tell(*now, tracker, usize::MAX);
            let Some(due) = tracker.next_deadline() else {
                return all;
            };
            *now = due.max(*now);
            for write in self.asked(*now, tracker) {
                let outcome = self.carry_out(&write);
                tracker.ended(*now, &write, &outcome);
                all.push(write);
            }
        }
        panic!("it never comes to rest; the last writes: {:?}", all.last());
    }
}

fn stored(object: &Value) -> Stored {
    let meta = &object["metadata"];
    let text = |field: &str| meta[field].as_str().unwrap();
    let mut body = object.clone();
    body.as_object_mut().unwrap().remove("metadata");
    Stored {
        namespace: text("namespace").into(),
        name: text("name").into(),
        uid: text("uid").into(),
        version: text("resourceVersion").parse().unwrap(),
        labels: strings(&meta["labels"]),
        annotations: strings(&meta["annotations"]),
        owners: meta["ownerReferences"].clone(),
        body,
    }
}
