//! Reads and writes the spec of a Lease.

use std::time::Duration;

use serde_json::{Value, json};

/// The spec of a Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Empty if the lease is released.
    pub(super) holder: String,
    pub(super) duration: Duration,
    acquired: Value,
    transitions: i64,
}

impl Record {
    pub(super) fn of(lease: &Value) -> Self {
        let spec = &lease["spec"];
        Self {
            holder: spec["holderIdentity"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            duration: Duration::from_secs(spec["leaseDurationSeconds"].as_u64().unwrap_or(0)),
            acquired: spec["acquireTime"].clone(),
            transitions: spec["leaseTransitions"].as_i64().unwrap_or(0),
        }
    }

    /// The object, taken or renewed by `identity`.
    pub(super) fn held(
        &self,
        live: &Value,
        identity: &str,
        duration: Duration,
        now: &str,
    ) -> Value {
        let renewed = self.holder == identity;
        let mut body = live.clone();
        body["spec"] = json!({
            "holderIdentity": identity,
            "leaseDurationSeconds": duration.as_secs(),
            "acquireTime": if renewed { self.acquired.clone() } else { now.into() },
            "renewTime": now,
            "leaseTransitions": self.transitions + i64::from(!renewed),
        });
        body
    }

    /// The object, released.
    pub(super) fn released(&self, observed: &Value, now: &str) -> Value {
        let mut body = observed.clone();
        body["spec"] = json!({
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": self.transitions,
        });
        body
    }
}

/// A new Lease, held by `identity`.
pub(super) fn new(
    namespace: &str,
    name: &str,
    identity: &str,
    duration: Duration,
    now: &str,
) -> Value {
    let empty = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": namespace, "name": name},
    });
    let mut lease = Record::of(&empty).held(&empty, identity, duration, now);
    lease["spec"]["leaseTransitions"] = json!(0);
    lease
}
