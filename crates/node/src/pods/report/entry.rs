//! What is to be told of one pod, and what was. Sends nothing.

use std::sync::Arc;

use http::Method;
use kennel_client::write::{Call, Content};
use kennel_core::pod::status::OURS;
use serde_json::{Value, json};

use crate::pods::{Origin, Pod};
use crate::runtime::PodId;

/// A request that is under way.
#[derive(Clone, Debug)]
pub(super) enum Errand {
    /// This status.
    Status(Arc<Value>),
    /// The end.
    Deletion,
}

impl Errand {
    pub(super) fn is_deletion(&self) -> bool {
        matches!(self, Self::Deletion)
    }
}

/// See the [module](self).
pub(super) struct Entry {
    pub(super) pod: PodId,
    /// The object to write to, by uid; none while a static pod has no mirror.
    target: Option<String>,
    /// The newest status, if any was told.
    pub(super) newest: Option<Arc<Value>>,
    /// The status that the API has, as far as is known.
    sent: Option<Arc<Value>>,
    /// It is to go.
    pub(super) delete: bool,
    /// A request is under way, or a pause.
    pub(super) waits: bool,
    pub(super) tries: u32,
}

impl Entry {
    pub(super) fn new(pod: &Pod, mirror: Option<String>) -> Self {
        let target = match pod.origin {
            Origin::Api => Some(pod.id.uid.clone()),
            Origin::File => mirror,
        };
        Self {
            pod: pod.id.clone(),
            target,
            newest: None,
            sent: None,
            delete: false,
            waits: false,
            tries: 0,
        }
    }

    /// From now on another object shows how it is.
    pub(super) fn lead_to(&mut self, target: Option<String>) {
        if self.target != target {
            self.target = target;
            self.sent = None;
        }
    }

    /// What to do next, if nothing is being done.
    pub(super) fn next(&mut self) -> Option<(Errand, Call)> {
        if self.waits {
            return None;
        }
        let target = self.target.as_deref()?;
        let PodId {
            namespace, name, ..
        } = &self.pod;
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
        let unsent = self.newest.as_ref().filter(|new| {
            let sent = self.sent.as_ref();
            sent.is_none_or(|sent| sent != *new)
        });
        let next = match unsent {
            Some(status) => {
                let patch = patch(target, status);
                let call = Call::patch(format!("{path}/status"), Content::Strategic, &patch);
                (Errand::Status(Arc::clone(status)), call)
            }
            None if self.delete => (Errand::Deletion, deletion(path, target)),
            None => return None,
        };
        self.waits = true;
        Some(next)
    }

    /// The API has taken it.
    pub(super) fn did(&mut self, errand: Errand) {
        match errand {
            Errand::Status(status) => self.sent = Some(status),
            Errand::Deletion => self.is_gone(),
        }
    }

    /// There is nobody to tell any more.
    pub(super) fn is_gone(&mut self) {
        self.target = None;
        self.delete = false;
    }

    /// Has somebody else written what is ours to say? Then it is said again.
    pub(super) fn was_overwritten(&mut self, shown: &Value) -> bool {
        let Some(sent) = self.sent.as_ref().filter(|_| !self.waits) else {
            return false;
        };
        let of = |status: &Value, kind: &str| {
            let conditions = status["conditions"].as_array();
            let found = conditions.into_iter().flatten().find(|c| c["type"] == kind);
            found.map(|found| found["status"].clone())
        };
        let differs = sent["phase"] != shown["phase"]
            || OURS.iter().any(|kind| of(sent, kind) != of(shown, kind));
        if differs {
            self.sent = None;
        }
        differs
    }
}

/// Changes only what is the node's to say: conditions of others stay.
fn patch(uid: &str, status: &Value) -> Value {
    let mut status = status.clone();
    let mut list = |key: &str, change: &mut dyn FnMut(&mut Vec<Value>)| {
        if let Some(list) = status.get_mut(key).and_then(Value::as_array_mut) {
            change(list);
        }
    };
    list("conditions", &mut |conditions| {
        conditions.retain(|condition| {
            let kind = condition["type"].as_str().unwrap_or_default();
            OURS.contains(&kind)
        });
        // What was said before of a condition goes, if nothing is said now.
        for condition in conditions {
            for key in ["reason", "message"] {
                let said = condition[key].take();
                condition[key] = said;
            }
        }
    });
    for key in ["podIPs", "hostIPs"] {
        list(key, &mut |list| list.push(json!({"$patch": "replace"})));
    }
    json!({"metadata": {"uid": uid}, "status": status})
}

/// At once, and only this very object.
fn deletion(path: String, uid: &str) -> Call {
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
        "preconditions": {"uid": uid}});
    Call {
        method: Method::DELETE,
        path,
        content: Content::Json,
        body: options.to_string(),
    }
}
