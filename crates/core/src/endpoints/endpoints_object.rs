//! The Endpoints object of one service: its state in the API, and the writes it needs.

use serde_json::{Value, json};

use super::facts::{Labels, ServiceFacts, Uid};
use super::manifest;
use super::parse::{self, StoredObject};
use super::write::{Deferred, Operation, Outcome};

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct EndpointsObject {
    /// `None` if the object does not exist.
    uid: Option<Uid>,
    version: u64,
    /// The fingerprint of its content; `None` if that is unknown.
    fingerprint: Option<u64>,
    annotations: Labels,
    /// It has our managed-by label.
    ours: bool,
    write_in_flight: bool,
    deferred: Option<Deferred<StoredObject>>,
}

impl EndpointsObject {
    /// Handles the stored object. True if it has changed.
    pub(super) fn observe(&mut self, stored: StoredObject) -> bool {
        if self.write_in_flight {
            self.deferred = Some(Deferred::Observed(stored));
            return false;
        }
        if self.uid.as_ref() == Some(&stored.uid) && stored.version <= self.version {
            return false;
        }
        let truncated = stored.annotations.contains_key(manifest::OVER_CAPACITY);
        let fingerprint = parse::fingerprint(&stored.labels, &stored.body["subsets"], truncated);
        let manager = stored.labels.get(manifest::ENDPOINTS_MANAGED_BY);
        *self = Self {
            uid: Some(stored.uid),
            version: stored.version,
            fingerprint: Some(fingerprint),
            annotations: stored.annotations,
            ours: manager.map(String::as_str) == Some(manifest::ENDPOINTS_MANAGED_BY_US),
            write_in_flight: false,
            deferred: None,
        };
        true
    }

    /// Handles its deletion. True if it was the known object.
    pub(super) fn remove(&mut self, uid: &str) -> bool {
        if self.write_in_flight {
            self.deferred = Some(Deferred::Gone(uid.into()));
            return false;
        }
        if self.uid.as_deref() != Some(uid) {
            return false;
        }
        *self = Self::default();
        true
    }

    pub(super) fn is_absent(&self) -> bool {
        self.uid.is_none() && !self.write_in_flight
    }

    /// The write that brings it to this content, if one is needed.
    pub(super) fn update(
        &mut self,
        service: &ServiceFacts,
        (subsets, truncated): (Value, bool),
        trigger: Option<&str>,
    ) -> Option<Operation> {
        let labels = manifest::endpoints_labels(service);
        let fingerprint = parse::fingerprint(&labels, &subsets, truncated);
        if self.uid.is_some() && self.fingerprint == Some(fingerprint) {
            return None;
        }
        let mut annotations = self.annotations.clone();
        annotations.remove(manifest::OVER_CAPACITY);
        annotations.remove(manifest::TRIGGER);
        if let Some(time) = trigger {
            annotations.insert(manifest::TRIGGER.to_owned(), time.to_owned());
        }
        if truncated {
            annotations.insert(manifest::OVER_CAPACITY.to_owned(), "truncated".to_owned());
        }
        let mut object = json!({
            "apiVersion": "v1", "kind": "Endpoints",
            "metadata": {
                "name": &*service.name, "namespace": &*service.namespace,
                "labels": labels, "annotations": annotations,
            },
        });
        if subsets != json!([]) {
            object["subsets"] = subsets;
        }
        (self.write_in_flight, self.fingerprint, self.ours) = (true, Some(fingerprint), true);
        match &self.uid {
            None => Some(Operation::Create(object)),
            Some(uid) => {
                object["metadata"]["uid"] = json!(&**uid);
                object["metadata"]["resourceVersion"] = json!(self.version.to_string());
                Some(Operation::Update(object))
            }
        }
    }

    /// The write that deletes it after its service. `None` if it was not created by us and the service was never seen.
    pub(super) fn delete(&mut self, service_was_seen: bool) -> Option<Operation> {
        let uid = self.uid.clone().filter(|_| self.ours || service_was_seen)?;
        self.write_in_flight = true;
        Some(Operation::Delete { uid })
    }

    /// Handles the result of a write. True if a deferred watch event requires a sync.
    pub(super) fn write_finished(&mut self, deleting: bool, outcome: &Outcome) -> bool {
        self.write_in_flight = false;
        let deferred = self.deferred.take();
        match outcome {
            Outcome::Done { uid, version } if !deleting => {
                self.uid = Some(uid.clone());
                self.version = *version;
            }
            Outcome::Done { .. } | Outcome::NotFound => *self = Self::default(),
            _ => self.fingerprint = None,
        }
        match deferred {
            Some(Deferred::Observed(stored)) => self.observe(stored),
            Some(Deferred::Gone(uid)) => self.remove(&uid),
            None => false,
        }
    }
}
