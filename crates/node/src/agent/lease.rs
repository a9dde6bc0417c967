//! The node's Lease in `kube-node-lease`: a sign of life, and the proof that only one agent speaks for a node.
//!
//! Its holder is the node's name, as upstream's tools expect. Which agent that is, an annotation says: machine,
//! boot, process. An agent that finds a fresh Lease of another one does not start.
//!
//! ```text
//!   no Lease, or a stale one          ─▶ ours
//!   ours by process of this machine   ─▶ ours if that process is gone, else refused
//!   same machine, another boot        ─▶ ours unless it is renewed while we watch (a copied disk)
//!   another machine, fresh            ─▶ refused
//! ```

use std::time::Duration;

use jiff::Timestamp;
use kennel_client::write::{Call, Failure, Writer};
use kennel_client::{api, clock};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::machine::Machine;

/// How long a lease lasts, and how often it is renewed: upstream's figures.
const LEASE_SECONDS: u32 = 40;
const RENEW: Duration = Duration::from_secs(10);
/// How soon a renewal that failed is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// For how long we watch whether somebody else renews.
const WATCHED: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_secs(1);
const NAMESPACE: &str = "kube-node-lease";
const GROUP: &str = "coordination.k8s.io/v1";
/// Which agent holds it.
const HOLDER: &str = "kennel.dev/agent";

/// Which agent: `<machine>.<boot>.<pid>.<its start>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    machine: String,
    boot: String,
    process: Option<(u32, u64)>,
}

impl Holder {
    /// This process.
    pub(super) fn own(machine: &Machine) -> Self {
        let pid = std::process::id();
        Self {
            machine: plain(&machine.machine_id),
            boot: plain(&machine.boot_id),
            process: started(pid).map(|start| (pid, start)),
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
        let alive = |(pid, start)| started(pid) == Some(start);
        self.process.is_some_and(alive)
    }
}

fn plain(id: &str) -> String {
    id.replace('.', "-")
}

/// When a process of this machine started, in the kernel's ticks; none if there is no such process.
fn started(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold anything; after it, the state is the first field and the start the 20th.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let zombie = fields.first().is_some_and(|state| *state == "Z");
    (!zombie).then(|| fields.get(19)?.parse().ok())?
}

/// What a Lease means for an agent that wants to start.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Ours,
    /// Only if nobody renews it.
    Watch,
    Refused(String),
}

fn judge(lease: &Value, own: &Holder, now_ms: i64) -> Verdict {
    if !is_fresh(lease, now_ms) {
        return Verdict::Ours;
    }
    let holder = lease["metadata"]["annotations"][HOLDER].as_str();
    let Some(holder) = holder.and_then(Holder::parse) else {
        // Somebody's who does not say who: a kubelet, a simulated node, or a machine that has just left.
        return Verdict::Watch;
    };
    if holder.machine != own.machine {
        return Verdict::Refused("an agent on another machine".to_owned());
    }
    if holder.boot != own.boot {
        return Verdict::Watch;
    }
    if holder.process != own.process && holder.is_alive() {
        let (pid, _) = holder.process.unwrap_or_default();
        return Verdict::Refused(format!("another agent on this machine, process {pid},"));
    }
    Verdict::Ours
}

fn is_fresh(lease: &Value, now_ms: i64) -> bool {
    let spec = &lease["spec"];
    let renewed = spec["renewTime"].as_str();
    let renewed = renewed.and_then(|text| text.parse::<Timestamp>().ok());
    let seconds = spec["leaseDurationSeconds"].as_i64().unwrap_or(0);
    renewed.is_some_and(|renewed| renewed.as_millisecond() + seconds * 1000 > now_ms)
}

/// Why there is no Lease for us.
#[derive(Debug, thiserror::Error)]
pub(super) enum LeaseError {
    #[error(
        "{holder} is already node {node}; give this one another name with --node-name, or stop the other and \
         wait {LEASE_SECONDS} seconds"
    )]
    Held { node: String, holder: String },
    #[error("the lease of node {node} cannot be had: {failure}")]
    Failed { node: String, failure: Failure },
}

/// Who speaks for the node.
#[derive(Debug)]
pub(super) enum Claim {
    /// We do.
    Ours,
    /// The API does not answer.
    Unknown(Failure),
}

/// The API has answered, and will not answer otherwise.
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

    /// Makes sure that nobody else speaks for the node.
    pub(super) async fn ask(&self) -> Result<Claim, LeaseError> {
        let mut seen: Option<(Value, Instant)> = None;
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
            match judge(&lease, &self.own, clock::now_ms()) {
                Verdict::Ours => return Ok(Claim::Ours),
                Verdict::Refused(holder) => return Err(self.held(&holder)),
                Verdict::Watch => {}
            }
            let renewal = lease["spec"]["renewTime"].clone();
            let (first, since) = seen.get_or_insert_with(|| {
                tracing::info!("the lease of node {} is fresh: is it renewed?", self.node);
                (renewal.clone(), Instant::now())
            });
            if *first != renewal {
                return Err(self.held("somebody else"));
            }
            if since.elapsed() >= WATCHED {
                return Ok(Claim::Ours);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Renews for ever. Ends when somebody else has taken the node over, or when told to stop.
    pub(super) async fn keep(
        &self,
        uid: impl Fn() -> Option<String>,
        stop: CancellationToken,
    ) -> Result<(), LeaseError> {
        let mut known: Option<Value> = None;
        loop {
            let wait = match uid() {
                // A node that was deleted has no lease.
                None => RENEW,
                Some(uid) => match self.renew(&uid, &mut known).await {
                    Ok(()) => RENEW,
                    Err(error @ LeaseError::Held { .. }) => return Err(error),
                    Err(LeaseError::Failed { failure, .. }) => {
                        tracing::warn!("renewing the lease failed: {failure}");
                        known = None;
                        RETRY
                    }
                },
            };
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                () = tokio::time::sleep(wait) => {}
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
            // Somebody has written it in between: who?
            Err(failure) if failure.is(409) => {
                let live = self.get().await.map_err(failed)?;
                if let Some(Verdict::Refused(holder)) =
                    live.map(|live| judge(&live, &self.own, clock::now_ms()))
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
        Holder::own(&Machine {
            machine_id: "m1".to_owned(),
            boot_id: "b1".to_owned(),
            ..Machine::default()
        })
    }

    #[test]
    fn who_may_start() {
        let alive = started(std::os::unix::process::parent_id()).unwrap();
        let neighbour = format!("m1.b1.{}.{alive}", std::os::unix::process::parent_id());
        let killed = format!(
            "m1.b1.{}.{}",
            std::os::unix::process::parent_id(),
            alive + 1
        );
        let refused = |text: &str| Verdict::Refused(text.to_owned());
        let check = |holder: Option<&str>, age: i64, expected: Verdict| {
            let found = judge(&lease(holder, age), &own(), NOW);
            assert_eq!(found, expected, "{holder:?} {age}");
        };
        check(Some("m2.b2.1.1"), 41, Verdict::Ours);
        check(
            Some("m2.b2.1.1"),
            39,
            refused("an agent on another machine"),
        );
        check(Some(&own().text()), 0, Verdict::Ours);
        check(Some(&killed), 0, Verdict::Ours);
        let words = format!(
            "another agent on this machine, process {},",
            std::os::unix::process::parent_id()
        );
        check(Some(&neighbour), 0, refused(&words));
        check(Some("m1.b2.1.1"), 0, Verdict::Watch);
        check(None, 0, Verdict::Watch);
        check(None, 50, Verdict::Ours);
    }

    #[test]
    fn a_holder_is_written_and_read() {
        let own = own();
        assert!(own.is_alive());
        assert_eq!(Holder::parse(&own.text()), Some(own));
        assert_eq!(Holder::parse("x"), None);
    }
}
