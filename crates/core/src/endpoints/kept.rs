//! The Endpoints object of one service: what the API has, and what is to be written.

use serde_json::{Value, json};

use super::facts::{Labels, ServiceFacts, Uid};
use super::form;
use super::observed::{self, Stored};
use super::write::{Outcome, What};

/// What was seen while it was being written.
#[derive(Debug)]
enum Later {
    Seen(Stored),
    Gone(Uid),
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Nothing, if there is no such object.
    uid: Option<Uid>,
    version: u64,
    /// Nothing, if nobody knows what it says.
    print: Option<u64>,
    annotations: Labels,
    /// It carries our mark.
    ours: bool,
    writing: bool,
    later: Option<Later>,
}

impl Kept {
    /// The API has it so. Is that news?
    pub(super) fn observe(&mut self, stored: Stored) -> bool {
        if self.writing {
            self.later = Some(Later::Seen(stored));
            return false;
        }
        if self.uid.as_ref() == Some(&stored.uid) && stored.version <= self.version {
            return false;
        }
        let truncated = stored.annotations.contains_key(form::OVER_CAPACITY);
        let print = observed::print(&stored.labels, &stored.body["subsets"], truncated);
        let keeper = stored.labels.get(form::ENDPOINTS_KEEPER);
        *self = Self {
            uid: Some(stored.uid),
            version: stored.version,
            print: Some(print),
            annotations: stored.annotations,
            ours: keeper.map(String::as_str) == Some(form::ENDPOINTS_KEPT_BY_US),
            writing: false,
            later: None,
        };
        true
    }

    /// It is gone. Is that news?
    pub(super) fn lose(&mut self, uid: &str) -> bool {
        if self.writing {
            self.later = Some(Later::Gone(uid.into()));
            return false;
        }
        if self.uid.as_deref() != Some(uid) {
            return false;
        }
        *self = Self::default();
        true
    }

    /// There is none.
    pub(super) fn is_absent(&self) -> bool {
        self.uid.is_none() && !self.writing
    }

    /// What to write so that it says this.
    pub(super) fn update(
        &mut self,
        service: &ServiceFacts,
        (subsets, truncated): (Value, bool),
        trigger: Option<&str>,
    ) -> Option<What> {
        let labels = form::endpoints_labels(service);
        let print = observed::print(&labels, &subsets, truncated);
        if self.uid.is_some() && self.print == Some(print) {
            return None;
        }
        let mut annotations = self.annotations.clone();
        annotations.remove(form::OVER_CAPACITY);
        annotations.remove(form::TRIGGER);
        if let Some(time) = trigger {
            annotations.insert(form::TRIGGER.to_owned(), time.to_owned());
        }
        if truncated {
            annotations.insert(form::OVER_CAPACITY.to_owned(), "truncated".to_owned());
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
        (self.writing, self.print, self.ours) = (true, Some(print), true);
        match &self.uid {
            None => Some(What::CreateEndpoints(object)),
            Some(uid) => {
                object["metadata"]["uid"] = json!(&**uid);
                object["metadata"]["resourceVersion"] = json!(self.version.to_string());
                Some(What::UpdateEndpoints(object))
            }
        }
    }

    /// What to write when there is no such service: nothing, if somebody else made it and the service was
    /// never seen.
    pub(super) fn delete(&mut self, service_was_seen: bool) -> Option<What> {
        let uid = self.uid.clone().filter(|_| self.ours || service_was_seen)?;
        self.writing = true;
        Some(What::DeleteEndpoints { uid })
    }

    /// How writing it went. Has something been seen meanwhile that asks for another look?
    pub(super) fn ended(&mut self, deleting: bool, outcome: &Outcome) -> bool {
        self.writing = false;
        let later = self.later.take();
        match outcome {
            Outcome::Done { uid, version } if !deleting => {
                self.uid = Some(uid.clone());
                self.version = *version;
            }
            Outcome::Done { .. } | Outcome::Gone => *self = Self::default(),
            Outcome::Taken | Outcome::Stale | Outcome::Pointless | Outcome::Failed => {
                self.print = None;
            }
        }
        match later {
            Some(Later::Seen(stored)) => self.observe(stored),
            Some(Later::Gone(uid)) => self.lose(&uid),
            None => false,
        }
    }
}
