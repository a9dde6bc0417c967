//! A fake API with slices and Endpoints. It executes writes and delivers watch events on request.

use std::collections::BTreeMap;
use std::sync::Arc;

use kennel_types::Monotonic;
use serde_json::Value;

use super::super::*;
use crate::tree::text_map;

/// Objects by kind (slice or not) and name, all in one namespace.
#[derive(Default)]
pub(super) struct FakeApi {
    pub(super) objects: BTreeMap<(bool, Arc<str>), Value>,
    version: u64,
    names: u32,
    /// Undelivered events: whether it is a slice, the object, whether it is gone.
    events: Vec<(bool, Value, bool)>,
}

impl FakeApi {
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

    /// Stores an object, as another client.
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

    /// Deletes an object, as another client.
    pub(super) fn delete(&mut self, slice: bool, name: &str) {
        if let Some(object) = self.objects.remove(&(slice, name.into())) {
            self.version += 1;
            self.events.push((slice, object, true));
        }
    }

    pub(super) fn execute(&mut self, write: &Write) -> Outcome {
        let slice = write.form == Form::Slice;
        let stored = self.objects.get(&(slice, write.name.clone()));
        let stored = stored.map(|object| object["metadata"].clone());
        match (&write.operation, stored) {
            (Operation::Create(body), None) => self.put(slice, body.clone()),
            (_, None) => Outcome::NotFound,
            (Operation::Create(_), Some(_)) => Outcome::AlreadyExists,
            (Operation::Update(body), Some(stored))
                if body["metadata"]["resourceVersion"] != stored["resourceVersion"] =>
            {
                Outcome::Conflict
            }
            (Operation::Update(body), Some(_)) => self.put(slice, body.clone()),
            (Operation::Delete { uid }, Some(stored)) if stored["uid"] != **uid => {
                Outcome::NotFound
            }
            _ => {
                self.delete(slice, &write.name);
                let uid = "".into();
                Outcome::Done { uid, version: 0 }
            }
        }
    }

    /// Delivers the next `count` events.
    pub(super) fn deliver(&mut self, now: Monotonic, tracker: &mut Tracker, count: usize) {
        let count = count.min(self.events.len());
        for (slice, object, gone) in self.events.drain(..count) {
            let stored = stored(&object);
            match (slice, gone) {
                (true, true) => tracker.slice_gone(now, &stored.id()),
                (false, true) => tracker.endpoints_gone(now, &stored.id()),
                (true, false) => tracker.slice(now, stored),
                (false, false) => tracker.endpoints(now, stored),
            }
        }
    }

    /// The writes that are due.
    pub(super) fn writes_due(&mut self, now: Monotonic, tracker: &mut Tracker) -> Vec<Write> {
        let names = &mut self.names;
        let mut generate_name = |prefix: &str| {
            *names += 1;
            format!("{prefix}{names:05}")
        };
        tracker.take_writes(now, &mut generate_name)
    }

    /// Executes all writes and delivers their events until nothing is due. Returns the writes.
    pub(super) fn converge(&mut self, now: &mut Monotonic, tracker: &mut Tracker) -> Vec<Write> {
        let mut all = Vec::new();
        for _ in 0..1000 {
            self.deliver(*now, tracker, usize::MAX);
            let Some(due) = tracker.next_deadline() else {
                return all;
            };
            *now = due.max(*now);
            for write in self.writes_due(*now, tracker) {
                let outcome = self.execute(&write);
                tracker.write_finished(*now, &write, &outcome);
                all.push(write);
            }
        }
        panic!("it never converges; the last writes: {:?}", all.last());
    }
}

fn stored(object: &Value) -> StoredObject {
    let meta = &object["metadata"];
    let text = |field: &str| meta[field].as_str().unwrap();
    let mut body = object.clone();
    body.as_object_mut().unwrap().remove("metadata");
    StoredObject {
        namespace: text("namespace").into(),
        name: text("name").into(),
        uid: text("uid").into(),
        version: text("resourceVersion").parse().unwrap(),
        labels: text_map(meta, "labels"),
        annotations: text_map(meta, "annotations"),
        owners: meta["ownerReferences"].clone(),
        body,
    }
}
