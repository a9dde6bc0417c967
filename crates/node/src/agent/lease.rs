//! The node's Lease in `kube-node-lease`: its heartbeat, and a lock that lets only one agent speak for a node.
//!
//! The holder is the node's name, as upstream's tools expect. An annotation identifies the agent by machine, boot, process
//! and PID namespace. Every write is conditional on the version that was read, so that of two agents that take the Lease at
//! the same time one fails. An agent that finds another agent's Lease decides:
//!
//! ```text
//!   no Lease, or a released one          ─▶ ours
//!   a process of this machine            ─▶ ours if that process has ended, else held
//!   another machine, boot or namespace   ─▶ held if it is renewed while we watch; ours after its whole duration without
//!                                           a renewal
//! ```
//!
//! The holder decides in the same way when it finds another agent in its Lease: the server may have been restored from a
//! backup that is older than this process. Until the Lease is its own again, it writes nothing for the node.
//!
//! Clocks of different machines are not compared: only our own observation counts. A [`Fence`] lets the agent write to the
//! API only while it certainly holds the Lease, counted from before its last renewal was sent and for less than the
//! Lease's duration.

use std::sync::Arc;
use std::time::Duration;

use kennel_client::backoff::{Backoff, Policy};
use kennel_client::fence::{Fence, Moment};
use kennel_client::write::{Call, Failure, Writer};
use kennel_client::{api, clock};
use kennel_shim::identity::Identity;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::machine::Machine;

/// Upstream's defaults.
pub(crate) const LEASE_SECONDS: u32 = 40;
const LEASE_DURATION: Duration = Duration::from_secs(40);
const RENEW_INTERVAL: Duration = Duration::from_secs(10);
/// How long the agent may write after its last renewal was sent. Then it cancels the writes that are in flight; the rest of
/// the duration is for what the server has received of them.
const WRITE_DURATION: Duration = Duration::from_secs(30);
/// Bounds one renewal, so that the next one comes in time, and the write of a claim.
const RENEW_TIMEOUT: Duration = Duration::from_secs(8);
/// Before a failed renewal is tried again.
const RENEW_RETRY: Policy = Policy::exponential(Duration::from_secs(1), Duration::from_secs(10));
/// How often to look whether another agent renews the Lease.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);
/// Bounds the release at the end: the next agent can do without it.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(3);
const NAMESPACE: &str = "kube-node-lease";
const GROUP: &str = "coordination.k8s.io/v1";
/// The annotation that identifies the agent; empty after a release.
const HOLDER: &str = "kennel.dev/agent";

/// An agent: `<machine>.<boot>.<pid>.<start of the process>.<PID namespace>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    machine: String,
    boot: String,
    process: Option<(u32, u64)>,
    /// The inode of its PID namespace; agents of version 0.1 did not give it.
    namespace: Option<u64>,
}

impl Holder {
    /// This process.
    pub(super) fn current(machine: &Machine) -> Self {
        let pid = std::process::id();
        Self {
            machine: without_dots(&machine.machine_id),
            boot: without_dots(&machine.boot_id),
            process: process_start(pid).map(|start| (pid, start)),
            namespace: pid_namespace(),
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
            namespace: number(parts.next()),
        })
    }

    fn text(&self) -> String {
        let (pid, start) = self.process.unwrap_or_default();
        let namespace = self.namespace.unwrap_or_default();
        format!("{}.{}.{pid}.{start}.{namespace}", self.machine, self.boot)
    }

    fn is_alive(&self) -> bool {
        let alive = |(pid, start)| process_start(pid) == Some(start);
        self.process.is_some_and(alive)
    }

    /// Whether `other` ran where we can see if it still does.
    fn can_see(&self, other: &Self) -> bool {
        let visible = other.namespace.is_none() || other.namespace == self.namespace;
        other.machine == self.machine && other.boot == self.boot && visible
    }
}

fn without_dots(id: &str) -> String {
    id.replace('.', "-")
}

/// When a process started, in clock ticks since boot; `None` if it has exited.
fn process_start(pid: u32) -> Option<u64> {
    Some(Identity::of(i32::try_from(pid).ok()?)?.start_time)
}

fn pid_namespace() -> Option<u64> {
    use std::os::unix::fs::MetadataExt as _;
    Some(std::fs::metadata("/proc/self/ns/pid").ok()?.ino())
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

/// `unchanged` is how long this process has seen the Lease as it is.
fn decide(lease: &Value, own: &Holder, unchanged: Duration) -> Decision {
    let holder = lease["metadata"]["annotations"][HOLDER].as_str();
    if holder == Some("") || lease["spec"]["renewTime"].is_null() || unchanged >= duration(lease) {
        return Decision::Ours;
    }
    let Some(holder) = holder.and_then(Holder::parse) else {
        // Held by a kubelet, by a simulated node, or by a machine that has just left.
        return Decision::Watch;
    };
    if holder == *own {
        return Decision::Ours;
    }
    if !own.can_see(&holder) {
        return Decision::Watch;
    }
    if holder.process != own.process && holder.is_alive() {
        let (pid, _) = holder.process.unwrap_or_default();
        return Decision::Held(format!("another agent on this machine, process {pid},"));
    }
    Decision::Ours
}

/// How long its holder counts on it.
fn duration(lease: &Value) -> Duration {
    let seconds = lease["spec"]["leaseDurationSeconds"].as_u64();
    seconds.map_or(LEASE_DURATION, Duration::from_secs)
}

/// The client that renews a watched Lease.
fn renewer(lease: &Value, own: &Holder) -> &'static str {
    let holder = lease["metadata"]["annotations"][HOLDER].as_str();
    match holder.and_then(Holder::parse) {
        Some(holder) if holder.machine != own.machine => "an agent on another machine",
        _ => "another agent",
    }
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

/// Why a renewal did not renew.
#[derive(Debug, thiserror::Error)]
enum RenewError {
    /// The Lease names another agent: one that has taken it over, or, after a restore, one from before this process.
    #[error("it names another agent")]
    Foreign,
    #[error("{0}")]
    Failed(#[from] Failure),
}

#[derive(Debug)]
pub(super) enum Claim {
    /// The Lease is ours.
    Ours,
    /// The API server cannot be reached.
    Unknown(Failure),
    /// The agent stops.
    Stopped,
}

/// Whether a retry would fail in the same way.
fn is_final(failure: &Failure) -> bool {
    let refusal = |code: u16| (400..500).contains(&code) && code != 429;
    failure.code.is_some_and(refusal)
}

/// The Lease of a node, for one agent.
pub(super) struct Lease {
    /// Not fenced: it writes the Lease itself.
    writer: Writer,
    /// Open while the Lease is ours.
    fence: Fence,
    node: String,
    own: Holder,
    /// The Lease as we wrote it last.
    held: Option<Value>,
}

impl Lease {
    /// Opens and closes `fence`. `writer` must not be fenced by it.
    pub(super) fn new(writer: Writer, fence: Fence, node: &str, own: Holder) -> Self {
        Self {
            writer,
            fence,
            node: node.to_owned(),
            own,
            held: None,
        }
    }

    /// Takes the Lease, unless another agent holds it or `stop` comes before. A write that is under way gets its answer, so
    /// that a Lease that was taken can be released.
    pub(super) async fn claim(&mut self, stop: &CancellationToken) -> Result<Claim, LeaseError> {
        let mut watched: Option<(Value, Instant)> = None;
        loop {
            let began = self.fence.now();
            let live = match stop.run_until_cancelled(self.get()).await {
                None => return Ok(Claim::Stopped),
                Some(Ok(live)) => live,
                Some(Err(failure)) => return self.failed_claim(failure),
            };
            if let Some(lease) = &live {
                let renewal = &lease["spec"]["renewTime"];
                let unchanged = match &watched {
                    Some((first, since)) if first == renewal => since.elapsed(),
                    Some(_) => return Err(self.held_by(renewer(lease, &self.own))),
                    None => Duration::ZERO,
                };
                match decide(lease, &self.own, unchanged) {
                    Decision::Ours => {}
                    Decision::Held(holder) => return Err(self.held_by(&holder)),
                    Decision::Watch => {
                        if watched.is_none() {
                            let seconds = duration(lease).as_secs();
                            tracing::info!(
                                "watching for {seconds} seconds whether another agent renews the lease of node {}",
                                self.node
                            );
                            watched = Some((renewal.clone(), began.at));
                        }
                        let interval = tokio::time::sleep(WATCH_INTERVAL);
                        if stop.run_until_cancelled(interval).await.is_none() {
                            return Ok(Claim::Stopped);
                        }
                        continue;
                    }
                }
            }
            let written = in_time(self.write(live, None, began)).await;
            match written.flatten() {
                Ok(()) => return Ok(Claim::Ours),
                // Another agent was faster: look at its Lease.
                Err(failure) if failure.is(409) => {}
                Err(failure) => return self.failed_claim(failure),
            }
        }
    }

    fn failed_claim(&self, failure: Failure) -> Result<Claim, LeaseError> {
        if is_final(&failure) {
            return Err(self.failed(failure));
        }
        Ok(Claim::Unknown(failure))
    }

    /// Renews the Lease until `stop`, or until another agent holds it. `node` is the node's object, with a uid once it
    /// is registered; a node that was deleted afterwards has no Lease.
    pub(super) async fn run(
        &mut self,
        mut node: watch::Receiver<Arc<Value>>,
        stop: CancellationToken,
    ) -> Result<(), LeaseError> {
        let mut registered = false;
        let mut retry = Backoff::new(RENEW_RETRY);
        loop {
            let uid = node.borrow_and_update()["metadata"]["uid"]
                .as_str()
                .map(str::to_owned);
            registered |= uid.is_some();
            let delay = if registered && uid.is_none() {
                RENEW_INTERVAL
            } else {
                match self.renew_or_retake(uid.as_deref(), &stop).await {
                    Ok(()) => {
                        retry.reset();
                        RENEW_INTERVAL
                    }
                    Err(error @ LeaseError::Held { .. }) => return Err(error),
                    Err(LeaseError::Failed { failure, .. }) => {
                        tracing::warn!("renewing the lease failed: {failure}");
                        retry.next_delay()
                    }
                }
            };
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                () = tokio::time::sleep(delay) => {}
                // The Node becomes the Lease's owner.
                Ok(()) = node.changed(), if !registered => {}
            }
        }
    }

    /// Takes a Lease that names another agent again as at the start, with the fence closed, unless `stop` comes before.
    async fn renew_or_retake(
        &mut self,
        uid: Option<&str>,
        stop: &CancellationToken,
    ) -> Result<(), LeaseError> {
        match self.renew(uid).await {
            Ok(()) => return Ok(()),
            Err(RenewError::Failed(failure)) => return Err(self.failed(failure)),
            Err(RenewError::Foreign) => self.fence.close(),
        }
        let node = &self.node;
        tracing::warn!(
            "the lease of node {node} names another agent; writing nothing for the node until it is ours again"
        );
        match self.claim(stop).await? {
            Claim::Stopped => Ok(()),
            Claim::Ours => {
                tracing::info!("the lease of node {} is ours again", self.node);
                Ok(())
            }
            Claim::Unknown(failure) => Err(self.failed(failure)),
        }
    }

    async fn renew(&mut self, uid: Option<&str>) -> Result<(), RenewError> {
        let renewed = in_time(self.renew_once(uid)).await;
        renewed.unwrap_or_else(|late| Err(late.into()))
    }

    /// Writes the Lease over the version that we wrote last, and over no other agent's.
    async fn renew_once(&mut self, uid: Option<&str>) -> Result<(), RenewError> {
        let began = self.fence.now();
        let known = self.held.clone();
        match self.write(known, uid, began).await {
            Ok(()) => return Ok(()),
            // Written or deleted by another client, or by a request of ours whose answer was lost.
            Err(failure) if failure.is(409) || failure.is(404) => {}
            Err(failure) => return Err(failure.into()),
        }
        let live = self.get().await?;
        let is_ours = |lease: &Value| lease["metadata"]["annotations"][HOLDER] == self.own.text();
        if live.as_ref().is_some_and(|lease| !is_ours(lease)) {
            return Err(RenewError::Foreign);
        }
        Ok(self.write(live, uid, began).await?)
    }

    /// Creates the Lease, or replaces exactly this version of it; opens the fence.
    async fn write(
        &mut self,
        live: Option<Value>,
        uid: Option<&str>,
        began: Moment,
    ) -> Result<(), Failure> {
        let body = self.renewed(live.as_ref(), uid);
        let call = match &live {
            None => Call::create(collection(), body.to_string()),
            Some(_) => Call::replace(self.path(), &body),
        };
        let answer = self.writer.send(&call).await?;
        self.held = Some(answer.tree()?);
        self.fence.open_from(began, WRITE_DURATION);
        Ok(())
    }

    /// Lets the next agent take the Lease at once. Call it when all writes have ended.
    pub(super) async fn release(mut self) {
        self.fence.close();
        let Some(mut body) = self.held.take() else {
            return;
        };
        body["metadata"]["annotations"][HOLDER] = "".into();
        let call = Call::replace(self.path(), &body);
        match timeout(RELEASE_TIMEOUT, self.writer.send(&call)).await {
            Ok(Ok(_)) => {}
            Ok(Err(failure)) => tracing::debug!("releasing the lease failed: {failure}"),
            Err(_) => tracing::debug!("releasing the lease took too long"),
        }
    }

    fn renewed(&self, live: Option<&Value>, uid: Option<&str>) -> Value {
        let mut body = live.cloned().unwrap_or_else(|| {
            json!({"apiVersion": GROUP, "kind": "Lease",
                   "metadata": {"name": self.node, "namespace": NAMESPACE}})
        });
        if let Some(uid) = uid {
            body["metadata"]["ownerReferences"] =
                json!([{"apiVersion": "v1", "kind": "Node", "name": self.node, "uid": uid}]);
        }
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

    fn failed(&self, failure: Failure) -> LeaseError {
        LeaseError::Failed {
            node: self.node.clone(),
            failure,
        }
    }

    fn held_by(&self, holder: &str) -> LeaseError {
        LeaseError::Held {
            node: self.node.clone(),
            holder: holder.to_owned(),
        }
    }
}

/// The result of a write of the Lease, or that there was none within [`RENEW_TIMEOUT`].
async fn in_time<T>(write: impl Future<Output = T>) -> Result<T, Failure> {
    let late = |_| Failure {
        message: format!("no answer within {} seconds", RENEW_TIMEOUT.as_secs()),
        unsure: true,
        ..Failure::default()
    };
    timeout(RENEW_TIMEOUT, write).await.map_err(late)
}

fn collection() -> String {
    api::group_path(GROUP, NAMESPACE, "leases")
}

#[cfg(test)]
mod tests;
