//! What a Lease says, and how it is written.

use std::time::Duration;

use serde_json::{Value, json};

/// What a Lease says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Who holds it; empty if nobody does.
    pub(super) holder: String,
    /// How long others wait for a silent holder.
    pub(super) duration: Duration,
    acquired: Value,
    transitions: i64,
}

impl Record {
    /// From the object.
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

    /// The object, held by `identity` from now on, or still.
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

    /// The object, given back.
    pub(super) fn released(&self, seen: &Value, now: &str) -> Value {
        let mut body = seen.clone();
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

/// A new Lease.
pub(super) fn new(
    namespace: &str,
    name: &str,
    identity: &str,
    duration: Duration,
    now: &str,
) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {
            "holderIdentity": identity,
            "leaseDurationSeconds": duration.as_secs(),
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": 0,
        },
    })
}
