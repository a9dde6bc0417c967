//! Which pods something happened to.
//!
//! ```text
//!   containerd's events ──▶ an end ─┐
//!   what we did ourselves ──────────┼▶ look: what differs from before? ──▶ uids
//!   from time to time ──────────────┘
//! ```
//!
//! Events only say when to look: a container has ended a moment before the CRI knows it, and an event may be
//! missed. With no events, lists are compared every second. Nothing is ever told about a runtime that does
//! not answer, but that all must be looked at when it does again.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prost::Message as _;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep, timeout};
use tonic::{Code, Streaming};

use super::api;
use super::found::{list_containers, list_sandboxes, uid};
use super::labels;
use super::line::{Line, NAMESPACE};

/// How often is looked when events say when to.
const WITH_EVENTS: Duration = Duration::from_secs(10);
/// How often is looked when nothing does.
const WITHOUT_EVENTS: Duration = Duration::from_secs(1);
/// The first look after an end; then at twice the time, and so on …
const SOON: Duration = Duration::from_millis(4);
/// … until it is this, for so many looks: the CRI shows an end when the runtime has cleaned up after it.
const OFTEN: Duration = Duration::from_millis(40);
const MANY_LOOKS: u32 = 50;
/// After so long an end that the CRI does not show is forgotten: it is none of ours.
const GIVE_UP: Duration = Duration::from_secs(10);

/// What has been heard and not yet been looked at.
#[derive(Debug, Default)]
pub(super) struct Heard {
    state: Mutex<State>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Pods that we did something to.
    own: BTreeSet<String>,
    /// Containers that have ended, since when we know.
    ended: BTreeMap<String, Instant>,
    /// Something may have been missed.
    missed: bool,
    /// Events come.
    events: bool,
}

/// What lists say, by pod: ids and states.
type Lists = BTreeMap<String, BTreeSet<(String, i32)>>;

impl Heard {
    /// We did something to this pod.
    pub(super) fn own(&self, uid: String) {
        self.change(|state| {
            state.own.insert(uid);
        });
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.wake.notify_one();
    }

    fn look<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Tells which pods something happened to, until nobody listens.
pub(super) async fn tell(line: Line, heard: Arc<Heard>, sender: mpsc::Sender<String>) {
    let listening = listen(&line, &heard);
    let telling = Teller {
        line: line.clone(),
        heard: heard.clone(),
        before: None,
        looks: 0,
    };
    let gone = sender.clone();
    tokio::select! {
        () = listening => {}
        () = telling.run(sender) => {}
        () = gone.closed() => {}
    }
}

struct Teller {
    line: Line,
    heard: Arc<Heard>,
    before: Option<Lists>,
    /// How often was looked for ends that the CRI did not show.
    looks: u32,
}

impl Teller {
    async fn run(mut self, sender: mpsc::Sender<String>) {
        let mut due = Instant::now();
        loop {
            let own = self.heard.look(|state| std::mem::take(&mut state.own));
            if !send(&sender, own).await {
                return;
            }
            if due <= Instant::now() {
                let changed = self.compare().await;
                if !send(&sender, changed).await {
                    return;
                }
                due = Instant::now() + self.pause();
            }
            tokio::select! {
                () = tokio::time::sleep_until(due) => {}
                () = self.heard.wake.notified() => {
                    if self.heard.look(|state| state.missed || !state.ended.is_empty()) {
                        self.looks = 0;
                        due = due.min(Instant::now() + SOON);
                    }
                }
            }
        }
    }

    /// How long until the next look.
    fn pause(&mut self) -> Duration {
        let (events, ended) = self.heard.look(|state| {
            state.ended.retain(|_, since| since.elapsed() < GIVE_UP);
            (state.events, !state.ended.is_empty())
        });
        if !ended {
            self.looks = 0;
            return if events { WITH_EVENTS } else { WITHOUT_EVENTS };
        }
        self.looks += 1;
        if self.looks > MANY_LOOKS {
            return WITHOUT_EVENTS;
        }
        SOON.saturating_mul(1 << self.looks.min(4)).min(OFTEN)
    }

    /// The pods that are not as they were; an empty uid for all.
    async fn compare(&mut self) -> BTreeSet<String> {
        let Ok((lists, alive)) = lists(&self.line).await else {
            self.heard.look(|state| state.missed = true);
            return BTreeSet::new();
        };
        let missed = self.heard.look(|state| {
            state.ended.retain(|id, _| alive.contains(id));
            std::mem::take(&mut state.missed)
        });
        let before = self.before.replace(lists);
        let now = self.before.as_ref().expect("it was put there");
        match before {
            Some(before) if !missed => differences(&before, now),
            // What was before the first look is asked for by whoever begins.
            None if !missed => BTreeSet::new(),
            _ => BTreeSet::from([String::new()]),
        }
    }
}

/// Hands uids on; false if nobody listens.
async fn send(sender: &mpsc::Sender<String>, uids: BTreeSet<String>) -> bool {
    for uid in uids {
        if sender.send(uid).await.is_err() {
            return false;
        }
    }
    true
}

/// What there is, and the ids of what has not ended.
async fn lists(line: &Line) -> crate::runtime::Result<(Lists, HashSet<String>)> {
    let (sandboxes, containers) =
        tokio::try_join!(list_sandboxes(line, None), list_containers(line, None))?;
    let mut lists = Lists::new();
    let mut alive = HashSet::new();
    for sandbox in sandboxes {
        if sandbox.state() == api::PodSandboxState::Ready {
            alive.insert(sandbox.id.clone());
        }
        let all = lists.entry(uid(&sandbox).to_owned()).or_default();
        all.insert((sandbox.id, sandbox.state));
    }
    for container in containers {
        // One may end before the CRI knows that it has begun.
        if container.state() != api::ContainerState::Exited {
            alive.insert(container.id.clone());
        }
        let uid = labels::get(&container.labels, labels::POD_UID);
        let all = lists.entry(uid).or_default();
        all.insert((container.id, container.state));
    }
    Ok((lists, alive))
}

fn differences(before: &Lists, now: &Lists) -> BTreeSet<String> {
    let all: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let differs = |uid: &&&String| before.get(**uid) != now.get(**uid);
    all.iter()
        .filter(differs)
        .map(|uid| (*uid).clone())
        .collect()
}

/// Listens to events for ever, if there are any to be had.
async fn listen(line: &Line, heard: &Heard) {
    let filter = format!("topic=={:?}", api::TASK_EXIT);
    loop {
        let mut answer = pin!(line.subscribe(vec![filter.clone()]));
        let first = timeout(WITHOUT_EVENTS, &mut answer).await;
        // The answer begins with the first event; who has none to give refuses at once.
        let answer = if let Ok(answer) = first {
            answer
        } else {
            heard.change(|state| state.events = true);
            answer.await
        };
        match answer {
            Ok(events) => hear(events, heard).await,
            Err(status) if status.code() == Code::Unimplemented => {
                tracing::debug!("the runtime has no events: its lists are compared every second");
                return std::future::pending().await;
            }
            Err(_) => {}
        }
        heard.change(|state| {
            state.events = false;
            state.missed = true;
        });
        sleep(WITHOUT_EVENTS).await;
    }
}

/// Hears events until they end.
async fn hear(mut events: Streaming<api::Envelope>, heard: &Heard) {
    heard.change(|state| state.events = true);
    while let Ok(Some(event)) = events.message().await {
        if let Some(id) = ended(&event) {
            heard.change(|state| {
                state.ended.insert(id, Instant::now());
            });
        }
    }
}

/// The container that ended, if it is that: commands that are run in one end, too.
fn ended(event: &api::Envelope) -> Option<String> {
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
    fn pods_that_came_went_or_changed_are_told_and_no_others() {
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
        let told = differences(&before, &now);
        let expected = ["ended", "gone", "new"].map(str::to_owned);
        assert_eq!(told, BTreeSet::from(expected));
    }

    #[test]
    fn only_the_end_of_a_containers_first_process_is_its_end() {
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
        assert_eq!(ended(&event("/tasks/exit", "a")), Some("a".to_owned()));
        assert_eq!(ended(&event("/tasks/exit", "a-command")), None);
        assert_eq!(ended(&event("/tasks/start", "a")), None);
    }
}
