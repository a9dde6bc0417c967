//! The node's Lease in `kube-node-lease`: its heartbeat, and a lock that lets only one agent run a node.
//!
//! The holder is the node's name, as upstream's tools expect. An annotation identifies the agent by machine, boot and
//! process. An agent that finds another agent's fresh Lease does not start:
//!
//! ```text
//!   no Lease, or an expired one       ─▶ ours
//!   a process of this machine         ─▶ ours if that process has ended, else held
//!   this machine, another boot        ─▶ ours unless it is renewed while we watch (a copied disk)
//!   another machine, fresh            ─▶ held
//! ```

use std::time::Duration;

use jiff::Timestamp;
use kennel_client::write::{Call, Failure, Writer};
use kennel_client::{api, clock};
use kennel_shim::identity::Identity;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::machine::Machine;

/// Upstream's defaults.
const LEASE_SECONDS: u32 = 40;
const RENEW_INTERVAL: Duration = Duration::from_secs(10);
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// How long to watch whether another agent renews the lease.
const WATCH_DURATION: Duration = Duration::from_secs(15);
const WATCH_INTERVAL: Duration = Duration::from_secs(1);
const NAMESPACE: &str = "kube-node-lease";
const GROUP: &str = "coordination.k8s.io/v1";
/// The annotation that identifies the agent.
const HOLDER: &str = "kennel.dev/agent";

/// An agent: `<machine>.<boot>.<pid>.<start of the process>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    machine: String,
    boot: String,
    process: Option<(u32, u64)>,
}

impl Holder {
    /// This process.
    pub(super) fn current(machine: &Machine) -> Self {
        let pid = std::process::id();
        Self {
            machine: without_dots(&machine.machine_id),
            boot: without_dots(&machine.boot_id),
            process: process_start(pid).map(|start| (pid, start)),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let (machine, boot) = (parts.next()?, parts.next()?);
        let number = |text: Option<&str>| text?.parse::<u64>().ok();
        let process = number(parts.next()).zip(number(parts.next()));
        let process = process.and_then(|(pid, start)| Some((u32::try_from(pid).ok()?, start)));
        Some(Self {
            machine: machine.to_owned(),
            boot: boot.to_owned(),
            process,
        })
    }

    fn text(&self) -> String {
        let (pid, start) = self.process.unwrap_or_default();
        format!("{}.{}.{pid}.{start}", self.machine, self.boot)
    }

    fn is_alive(&self) -> bool {
        let alive = |(pid, start)| process_start(pid) == Some(start);
        self.process.is_some_and(alive)
    }
}

fn without_dots(id: &str) -> String {
    id.replace('.', "-")
}

/// When a process started, in clock ticks since boot; `None` if it has exited.
fn process_start(pid: u32) -> Option<u64> {
    Some(Identity::of(i32::try_from(pid).ok()?)?.start_time)
}

/// Whether an agent may take a Lease.
#[derive(Debug, PartialEq, Eq)]
enum Decision {
    Ours,
    /// Ours if no other agent renews it.
    Watch,
    /// By this holder.
    Held(String),
}

fn decide(lease: &Value, own: &Holder, now_ms: i64) -> Decision {
    if !is_fresh(lease, now_ms) {
        return Decision::Ours;
    }
    let holder = lease["metadata"]["annotations"][HOLDER].as_str();
    let Some(holder) = holder.and_then(Holder::parse) else {
        // Held by a kubelet, by a simulated node, or by a machine that has just left.
        return Decision::Watch;
    };
    if holder.machine != own.machine {
        return Decision::Held("an agent on another machine".to_owned());
    }
    if holder.boot != own.boot {
        return Decision::Watch;
    }
    if holder.process != own.process && holder.is_alive() {
        let (pid, _) = holder.process.unwrap_or_default();
        return Decision::Held(format!("another agent on this machine, process {pid},"));
    }
    Decision::Ours
}

fn is_fresh(lease: &Value, now_ms: i64) -> bool {
    let spec = &lease["spec"];
    let renewed = spec["renewTime"].as_str();
    let renewed = renewed.and_then(|text| text.parse::<Timestamp>().ok());
    let seconds = spec["leaseDurationSeconds"].as_i64().unwrap_or(0);
    renewed.is_some_and(|renewed| renewed.as_millisecond() + seconds * 1000 > now_ms)
}

/// Why the agent cannot have the Lease.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    #[error(
        "{holder} is already node {node}; give this one another name with --node-name, or stop the other and \
         wait {LEASE_SECONDS} seconds"
    )]
    Held { node: String, holder: String },
    #[error("cannot get the lease of node {node}: {failure}")]
    Failed { node: String, failure: Failure },
}

#[derive(Debug)]
pub(super) enum Claim {
    /// The Lease is ours, or no other agent has it.
    Ours,
    /// The API server cannot be reached.
    Unknown(Failure),
}

/// Whether a retry would fail in the same way.
fn is_final(failure: &Failure) -> bool {
    let refusal = |code: u16| (400..500).contains(&code) && code != 429;
    failure.code.is_some_and(refusal)
}

/// The Lease of a node, for one agent.
pub(super) struct Lease {
    writer: Writer,
    node: String,
    own: Holder,
}

impl Lease {
    pub(super) fn new(writer: Writer, node: &str, own: Holder) -> Self {
        Self {
            writer,
            node: node.to_owned(),
            own,
        }
    }

    /// Checks that no other agent holds the Lease. Does not write it.
    pub(super) async fn check(&self) -> Result<Claim, LeaseError> {
        let mut watched: Option<(Value, Instant)> = None;
        loop {
            let lease = match self.get().await {
                Ok(None) => return Ok(Claim::Ours),
                Ok(Some(lease)) => lease,
                Err(failure) if is_final(&failure) => {
                    let node = self.node.clone();
                    return Err(LeaseError::Failed { node, failure });
                }
                Err(failure) => return Ok(Claim::Unknown(failure)),
            };
            match decide(&lease, &self.own, clock::now_ms()) {
                Decision::Ours => return Ok(Claim::Ours),
                Decision::Held(holder) => return Err(self.held(&holder)),
                Decision::Watch => {}
            }
            let renewal = lease["spec"]["renewTime"].clone();
            let (first, since) = watched.get_or_insert_with(|| {
                tracing::info!(
                    "the lease of node {} is fresh: watching whether another agent renews it",
                    self.node
                );
                (renewal.clone(), Instant::now())
            });
            if *first != renewal {
                return Err(self.held("another agent"));
            }
            if since.elapsed() >= WATCH_DURATION {
                return Ok(Claim::Ours);
            }
            tokio::time::sleep(WATCH_INTERVAL).await;
        }
    }

    /// Renews the Lease until `stop`, or until another agent has taken it over.
    pub(super) async fn run(
        &self,
        uid: impl Fn() -> Option<String>,
        stop: CancellationToken,
    ) -> Result<(), LeaseError> {
        let mut known: Option<Value> = None;
        loop {
            let delay = match uid() {
                // A node that was deleted has no lease.
                None => RENEW_INTERVAL,
                Some(uid) => match self.renew(&uid, &mut known).await {
                    Ok(()) => RENEW_INTERVAL,
                    Err(error @ LeaseError::Held { .. }) => return Err(error),
                    Err(LeaseError::Failed { failure, .. }) => {
                        tracing::warn!("renewing the lease failed: {failure}");
                        known = None;
                        RETRY_DELAY
                    }
                },
            };
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                () = tokio::time::sleep(delay) => {}
            }
        }
    }

    async fn renew(&self, uid: &str, known: &mut Option<Value>) -> Result<(), LeaseError> {
        let failed = |failure| LeaseError::Failed {
            node: self.node.clone(),
            failure,
        };
        let live = match known.take() {
            Some(lease) => Some(lease),
            None => self.get().await.map_err(failed)?,
        };
        let body = self.renewed(live.as_ref(), uid);
        let call = match &live {
            None => Call::create(collection(), body.to_string()),
            Some(_) => Call::replace(self.path(), &body),
        };
        match self.writer.send(&call).await {
            Ok(answer) => {
                *known = answer.tree().ok();
                Ok(())
            }
            // Another client has written it meanwhile: check whether it is another agent.
            Err(failure) if failure.is(409) => {
                let live = self.get().await.map_err(failed)?;
                if let Some(Decision::Held(holder)) =
                    live.map(|live| decide(&live, &self.own, clock::now_ms()))
                {
                    return Err(self.held(&holder));
                }
                Err(failed(failure))
            }
            Err(failure) => Err(failed(failure)),
        }
    }

    fn renewed(&self, live: Option<&Value>, uid: &str) -> Value {
        let mut body = live.cloned().unwrap_or_else(|| {
            json!({"apiVersion": GROUP, "kind": "Lease",
                   "metadata": {"name": self.node, "namespace": NAMESPACE}})
        });
        body["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "Node", "name": self.node, "uid": uid}]);
        body["metadata"]["annotations"][HOLDER] = self.own.text().into();
        body["spec"]["holderIdentity"] = self.node.as_str().into();
        body["spec"]["leaseDurationSeconds"] = LEASE_SECONDS.into();
        body["spec"]["renewTime"] = clock::now_micros().into();
        body
    }

    async fn get(&self) -> Result<Option<Value>, Failure> {
        match self.writer.send(&Call::get(self.path())).await {
            Ok(answer) => answer.tree().map(Some),
            Err(failure) if failure.is(404) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    fn path(&self) -> String {
        format!("{}/{}", collection(), self.node)
    }

    fn held(&self, holder: &str) -> LeaseError {
        LeaseError::Held {
            node: self.node.clone(),
            holder: holder.to_owned(),
        }
    }
}

fn collection() -> String {
    api::group_path(GROUP, NAMESPACE, "leases")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_000_000_000_000;

    fn lease(holder: Option<&str>, age_seconds: i64) -> Value {
        let renewed = Timestamp::from_millisecond(NOW - age_seconds * 1000).unwrap();
        let mut lease = json!({"metadata": {}, "spec": {
            "renewTime": renewed.to_string(), "leaseDurationSeconds": 40}});
        if let Some(holder) = holder {
            lease["metadata"]["annotations"] = json!({HOLDER: holder});
        }
        lease
    }

    fn own() -> Holder {
        Holder::current(&Machine {
            machine_id: "m1".to_owned(),
            boot_id: "b1".to_owned(),
            ..Machine::default()
        })
    }

    #[test]
    fn an_agent_may_take_a_lease_that_no_other_holds() {
        let alive = process_start(std::os::unix::process::parent_id()).unwrap();
        let neighbour = format!("m1.b1.{}.{alive}", std::os::unix::process::parent_id());
        let killed = format!(
            "m1.b1.{}.{}",
            std::os::unix::process::parent_id(),
            alive + 1
        );
        let held = |text: &str| Decision::Held(text.to_owned());
        let check = |holder: Option<&str>, age: i64, expected: Decision| {
            let found = decide(&lease(holder, age), &own(), NOW);
            assert_eq!(found, expected, "{holder:?} {age}");
        };
        check(Some("m2.b2.1.1"), 41, Decision::Ours);
        check(Some("m2.b2.1.1"), 39, held("an agent on another machine"));
        check(Some(&own().text()), 0, Decision::Ours);
        check(Some(&killed), 0, Decision::Ours);
        let holder = format!(
            "another agent on this machine, process {},",
            std::os::unix::process::parent_id()
        );
        check(Some(&neighbour), 0, held(&holder));
        check(Some("m1.b2.1.1"), 0, Decision::Watch);
        check(None, 0, Decision::Watch);
        check(None, 50, Decision::Ours);
    }

    #[test]
    fn a_holder_parses_back() {
        let own = own();
        assert!(own.is_alive());
        assert_eq!(Holder::parse(&own.text()), Some(own));
        assert_eq!(Holder::parse("x"), None);
    }
}
