//! Detects changed pods.
//!
//! ```text
//!   containerd's exit events ──┐
//!   our own changes ───────────┼▶ list, compare with the previous list ──▶ uids
//!   periodically ──────────────┘                                             ▲
//!                                      a while after an exit (corrections) ──┘
//! ```
//!
//! Events only trigger comparisons: a container exits a moment before the CRI shows it, and events may be missed. Without
//! events, lists are compared every second. After the runtime was unavailable, all pods count as changed.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kennel_client::backoff::Policy;
use prost::Message as _;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep, timeout};
use tonic::{Code, Streaming};

use super::api;
use super::connection::{Connection, NAMESPACE};
use super::corrections::Rereads;
use super::inventory::{list_containers, list_sandboxes, uid};
use super::labels;
use crate::sync::lock;

/// The interval of comparisons with events.
const RESYNC_INTERVAL: Duration = Duration::from_secs(10);
/// The interval of comparisons without events.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The delay of the first comparison after an exit event, which doubles …
const EXIT_DELAY: Duration = Duration::from_millis(4);
/// … up to this, for a number of comparisons: the CRI shows an exit when the runtime has cleaned up.
const EXIT_POLL: Policy = Policy::exact(EXIT_DELAY, Duration::from_millis(40));
const EXIT_ATTEMPTS: u32 = 50;
/// An exit that the CRI does not show within this time is dropped: the container is not ours.
const EXIT_EXPIRY: Duration = Duration::from_secs(10);

/// Changes that were not compared yet.
#[derive(Debug, Default)]
pub(super) struct PendingChanges {
    state: Mutex<State>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Uids of pods that we changed.
    changed: BTreeSet<String>,
    /// Exited containers that the CRI does not show yet, with the time of the event.
    exited: BTreeMap<String, Instant>,
    /// Changes may have been missed.
    missed: bool,
    /// Events are being received.
    has_events: bool,
}

/// Ids and states of sandboxes and containers, by pod uid.
type Lists = BTreeMap<String, BTreeSet<(String, i32)>>;

#[derive(Default)]
struct Listed {
    lists: Lists,
    /// The ids of what has not exited.
    alive: HashSet<String>,
    /// The uids of pods by the ids of containers that have exited.
    exited: BTreeMap<String, String>,
}

impl PendingChanges {
    /// Adds a pod that we changed.
    pub(super) fn add(&self, uid: String) {
        self.update(|state| {
            state.changed.insert(uid);
        });
    }

    fn update(&self, update: impl FnOnce(&mut State)) {
        self.with(update);
        self.wake.notify_one();
    }

    fn with<T>(&self, then: impl FnOnce(&mut State) -> T) -> T {
        then(&mut lock(&self.state))
    }
}

/// Sends the uids of changed pods until the receiver is dropped.
pub(super) async fn detect(
    connection: Connection,
    pending: Arc<PendingChanges>,
    sender: mpsc::Sender<String>,
) {
    let listening = receive_events(&connection, &pending);
    let detector = Detector {
        connection: connection.clone(),
        pending: pending.clone(),
        previous: None,
        attempts: 0,
        rereads: Rereads::default(),
    };
    let receiver = sender.clone();
    tokio::select! {
        () = listening => {}
        () = detector.run(sender) => {}
        () = receiver.closed() => {}
    }
}

struct Detector {
    connection: Connection,
    pending: Arc<PendingChanges>,
    previous: Option<Lists>,
    /// Comparisons since the last exit event.
    attempts: u32,
    rereads: Rereads,
}

impl Detector {
    async fn run(mut self, sender: mpsc::Sender<String>) {
        let mut due = Instant::now();
        loop {
            let mut changed = self
                .pending
                .with(|state| std::mem::take(&mut state.changed));
            changed.append(&mut self.rereads.take_due(Instant::now()));
            if !send(&sender, changed).await {
                return;
            }
            if due <= Instant::now() {
                let changed = self.compare().await;
                if !send(&sender, changed).await {
                    return;
                }
                due = Instant::now() + self.next_delay();
            }
            let wake = self.rereads.next().map_or(due, |reread| due.min(reread));
            tokio::select! {
                () = tokio::time::sleep_until(wake) => {}
                () = self.pending.wake.notified() => {
                    if self.pending.with(|state| state.missed || !state.exited.is_empty()) {
                        self.attempts = 0;
                        due = due.min(Instant::now() + EXIT_DELAY);
                    }
                }
            }
        }
    }

    /// The delay until the next comparison.
    fn next_delay(&mut self) -> Duration {
        let (has_events, exits) = self.pending.with(|state| {
            state
                .exited
                .retain(|_, since| since.elapsed() < EXIT_EXPIRY);
            (state.has_events, !state.exited.is_empty())
        });
        if !exits {
            self.attempts = 0;
            return if has_events {
                RESYNC_INTERVAL
            } else {
                POLL_INTERVAL
            };
        }
        self.attempts += 1;
        if self.attempts > EXIT_ATTEMPTS {
            return POLL_INTERVAL;
        }
        EXIT_POLL.exact_delay(self.attempts)
    }

    /// The uids of changed pods; an empty uid stands for all.
    async fn compare(&mut self) -> BTreeSet<String> {
        let Ok(listed) = list(&self.connection).await else {
            self.pending.with(|state| state.missed = true);
            return BTreeSet::new();
        };
        let Listed {
            lists,
            alive,
            exited,
        } = listed;
        self.rereads.plan(exited, Instant::now());
        let missed = self.pending.with(|state| {
            state.exited.retain(|id, _| alive.contains(id));
            std::mem::take(&mut state.missed)
        });
        let previous = self.previous.replace(lists);
        let current = self.previous.as_ref().expect("it was just set");
        match previous {
            Some(previous) if !missed => differences(&previous, current),
            // At startup, the pod manager lists all pods itself.
            None if !missed => BTreeSet::new(),
            _ => BTreeSet::from([String::new()]),
        }
    }
}

/// False if the receiver is dropped.
async fn send(sender: &mpsc::Sender<String>, uids: BTreeSet<String>) -> bool {
    for uid in uids {
        if sender.send(uid).await.is_err() {
            return false;
        }
    }
    true
}

async fn list(connection: &Connection) -> crate::runtime::Result<Listed> {
    let (sandboxes, containers) = tokio::try_join!(
        list_sandboxes(connection, None),
        list_containers(connection, None)
    )?;
    let mut listed = Listed::default();
    for sandbox in sandboxes {
        if sandbox.state() == api::PodSandboxState::Ready {
            listed.alive.insert(sandbox.id.clone());
        }
        let all = listed.lists.entry(uid(&sandbox).to_owned()).or_default();
        all.insert((sandbox.id, sandbox.state));
    }
    for container in containers {
        let uid = labels::get(&container.labels, labels::POD_UID);
        // A container may exit before the CRI shows that it has started.
        if container.state() == api::ContainerState::Exited {
            listed.exited.insert(container.id.clone(), uid.clone());
        } else {
            listed.alive.insert(container.id.clone());
        }
        let all = listed.lists.entry(uid).or_default();
        all.insert((container.id, container.state));
    }
    Ok(listed)
}

fn differences(before: &Lists, now: &Lists) -> BTreeSet<String> {
    let all: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let differs = |uid: &&&String| before.get(**uid) != now.get(**uid);
    all.iter()
        .filter(differs)
        .map(|uid| (*uid).clone())
        .collect()
}

/// Receives events for ever, if the runtime has any.
async fn receive_events(connection: &Connection, pending: &PendingChanges) {
    let filter = format!("topic=={:?}", api::TASK_EXIT);
    loop {
        let mut subscription = pin!(connection.subscribe(vec![filter.clone()]));
        let first = timeout(POLL_INTERVAL, &mut subscription).await;
        // The response begins with the first event; runtimes without events refuse at once.
        let result = if let Ok(result) = first {
            result
        } else {
            pending.update(|state| state.has_events = true);
            subscription.await
        };
        match result {
            Ok(events) => receive(events, pending).await,
            Err(status) if status.code() == Code::Unimplemented => {
                tracing::debug!("the runtime has no events: comparing lists every second");
                return std::future::pending().await;
            }
            Err(_) => {}
        }
        pending.update(|state| {
            state.has_events = false;
            state.missed = true;
        });
        sleep(POLL_INTERVAL).await;
    }
}

/// Receives events until the stream ends.
async fn receive(mut events: Streaming<api::Envelope>, pending: &PendingChanges) {
    pending.update(|state| state.has_events = true);
    while let Ok(Some(event)) = events.message().await {
        if let Some(id) = exited_container(&event) {
            pending.update(|state| {
                state.exited.insert(id, Instant::now());
            });
        }
    }
}

/// The id of a container that has exited; `None` for the exit of an executed command.
fn exited_container(event: &api::Envelope) -> Option<String> {
    let ours = event.topic == api::TASK_EXIT && event.namespace == NAMESPACE;
    let value = &event.event.as_ref().filter(|_| ours)?.value;
    let exit = api::TaskExit::decode(value.as_slice()).ok()?;
    (exit.container_id == exit.id).then_some(exit.container_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(pods: &[(&str, &[(&str, i32)])]) -> Lists {
        let items = |items: &[(&str, i32)]| {
            items
                .iter()
                .map(|(id, state)| ((*id).to_owned(), *state))
                .collect()
        };
        pods.iter()
            .map(|(uid, all)| ((*uid).to_owned(), items(all)))
            .collect()
    }

    #[test]
    fn added_removed_and_changed_pods_are_reported() {
        let before = lists(&[
            ("same", &[("a", 1)]),
            ("gone", &[("b", 1)]),
            ("ended", &[("c", 1), ("d", 1)]),
        ]);
        let now = lists(&[
            ("same", &[("a", 1)]),
            ("ended", &[("c", 1), ("d", 2)]),
            ("new", &[("e", 0)]),
        ]);
        let changed = differences(&before, &now);
        let expected = ["ended", "gone", "new"].map(str::to_owned);
        assert_eq!(changed, BTreeSet::from(expected));
    }

    #[test]
    fn only_the_exit_of_the_main_process_counts() {
        let event = |topic: &str, id: &str| {
            let exit = api::TaskExit {
                container_id: "a".into(),
                id: id.into(),
            };
            api::Envelope {
                namespace: NAMESPACE.into(),
                topic: topic.into(),
                event: Some(api::Any {
                    value: exit.encode_to_vec(),
                }),
            }
        };
        assert_eq!(
            exited_container(&event("/tasks/exit", "a")),
            Some("a".to_owned())
        );
        assert_eq!(exited_container(&event("/tasks/exit", "a-command")), None);
        assert_eq!(exited_container(&event("/tasks/start", "a")), None);
    }
}
