//! What is to be written of one pod, and what was. Builds requests; sends none.

use std::sync::Arc;

use kennel_client::write::{Call, Content};
use kennel_core::pod::status::{KUBELET_CONDITIONS, is_kubelet_condition};
use kennel_types::ConditionType;
use serde_json::{Value, json};

use crate::pods::pod::{condition_status, phase};
use crate::pods::{Origin, Pod};
use crate::runtime::PodId;

/// A request in flight.
#[derive(Clone, Debug)]
pub(super) enum Request {
    Status(Arc<Value>),
    Deletion,
}

impl Request {
    pub(super) fn is_deletion(&self) -> bool {
        matches!(self, Self::Deletion)
    }
}

pub(super) struct Entry {
    pub(super) pod: PodId,
    /// The uid of the object to write to; none while a static pod has no mirror pod.
    target: Option<String>,
    pub(super) newest: Option<Arc<Value>>,
    /// The status that the API server has, as far as known.
    sent: Option<Arc<Value>>,
    pub(super) delete: bool,
    /// A request is in flight or waits for its retry.
    pub(super) busy: bool,
    pub(super) failures: u32,
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
            busy: false,
            failures: 0,
        }
    }

    pub(super) fn set_target(&mut self, target: Option<String>) {
        if self.target != target {
            self.target = target;
            self.sent = None;
        }
    }

    /// The next request, unless one is in flight. Marks the entry as busy.
    pub(super) fn next(&mut self) -> Option<(Request, Call)> {
        if self.busy {
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
                (Request::Status(Arc::clone(status)), call)
            }
            None if self.delete => (Request::Deletion, Call::delete_now(path, target)),
            None => return None,
        };
        self.busy = true;
        Some(next)
    }

    /// The API server has accepted the request.
    pub(super) fn written(&mut self, request: Request) {
        match request {
            Request::Status(status) => self.sent = Some(status),
            Request::Deletion => self.target_is_gone(),
        }
    }

    pub(super) fn target_is_gone(&mut self) {
        self.target = None;
        self.delete = false;
    }

    /// Writes again if another client has changed the phase or a condition that the node owns.
    pub(super) fn resend_if_overwritten(&mut self, current: &Value) {
        let Some(sent) = self.sent.as_ref().filter(|_| !self.busy) else {
            return;
        };
        let differs = |r#type: &ConditionType| {
            condition_status(sent, r#type) != condition_status(current, r#type)
        };
        if phase(sent) != phase(current) || KUBELET_CONDITIONS.iter().any(differs) {
            self.sent = None;
        }
    }
}

/// Changes only what the node owns: conditions of other writers stay.
fn patch(uid: &str, status: &Value) -> Value {
    let mut status = status.clone();
    let mut list = |key: &str, change: &mut dyn FnMut(&mut Vec<Value>)| {
        if let Some(list) = status.get_mut(key).and_then(Value::as_array_mut) {
            change(list);
        }
    };
    list("conditions", &mut |conditions| {
        conditions.retain(is_kubelet_condition);
        // Send explicit nulls so that the merge patch clears stale fields.
        for condition in conditions.iter_mut().filter_map(Value::as_object_mut) {
            for key in ["reason", "message"] {
                condition.entry(key).or_insert(Value::Null);
            }
        }
    });
    for key in ["podIPs", "hostIPs"] {
        list(key, &mut |list| list.push(json!({"$patch": "replace"})));
    }
    json!({"metadata": {"uid": uid}, "status": status})
}
