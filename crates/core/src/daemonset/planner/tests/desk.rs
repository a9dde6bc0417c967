//! A planner with somebody who drives it, and who shows what it asks for as short texts.

use std::sync::Arc;

use super::super::super::HASH_LABEL;
use super::super::super::event::{
    Action, Answer, Event, Failure, FailureKind, Millis, Outcome, Ticket, Write,
};
use super::super::super::history::Revision;
use super::super::super::options::Options;
use super::super::super::view::{DaemonSetView, Phase, PodView, Strategy};
use super::super::Planner;
use super::{daemon_set, node};

/// See the [module](self).
pub(super) struct Desk {
    pub(super) planner: Planner,
    pub(super) now: Millis,
    /// Writes that have not ended.
    pub(super) open: Vec<(Ticket, Write)>,
    /// Revisions are created, and statuses written, as soon as that is asked for; and not shown.
    pub(super) helpful: bool,
    /// Notes are shown.
    pub(super) chatty: bool,
    made: u32,
}

impl Desk {
    /// With these nodes, and everything seen.
    pub(super) fn new(options: Options, nodes: &[&str]) -> Self {
        let mut desk = Self {
            planner: Planner::new(options),
            now: 1_000_000_000,
            open: Vec::new(),
            helpful: true,
            chatty: false,
            made: 0,
        };
        for name in nodes {
            desk.tell(Event::Node(node(name)));
        }
        desk.tell(Event::Synced);
        desk
    }

    /// With these nodes, these pods, and `ds` as the event says. What is asked for at first is shown.
    pub(super) fn with(nodes: &[&str], pods: &[PodView], set: Event) -> (Self, Vec<String>) {
        let mut desk = Self::new(Options::default(), nodes);
        for pod in pods {
            desk.pod(pod.clone());
        }
        let asked = desk.tell(set);
        (desk, asked)
    }

    /// Tells one thing and shows what is asked for.
    pub(super) fn tell(&mut self, event: Event) -> Vec<String> {
        self.planner.apply(self.now, event);
        let mut shown = Vec::new();
        loop {
            let actions = self.planner.take_actions();
            if actions.is_empty() {
                return shown;
            }
            for action in actions {
                self.take(action, &mut shown);
            }
        }
    }

    fn take(&mut self, action: Action, shown: &mut Vec<String>) {
        let (ticket, daemon_set, write) = match action {
            Action::Emit { note, .. } if self.chatty => {
                let kind = if note.warning { "Warning" } else { "Normal" };
                shown.push(format!("{kind} {}: {}", note.reason, note.message));
                return;
            }
            Action::Emit { .. } => return,
            Action::Write {
                ticket,
                daemon_set,
                write,
            } => (ticket, daemon_set, write),
        };
        if self.helpful {
            let answer =
                match &write {
                    Write::CreateRevision { name, data, body } => Some(Answer::Revision(
                        self.made(&daemon_set.uid, name, data, body),
                    )),
                    Write::WriteStatus => self.planner.status(&daemon_set.uid).map(|counters| {
                        let version = 0;
                        Answer::Status { counters, version }
                    }),
                    _ => None,
                };
            if let Some(answer) = answer {
                let outcome = Outcome::Done(answer);
                self.planner
                    .apply(self.now, Event::Ended { ticket, outcome });
                return;
            }
        }
        shown.push(show(&write));
        self.open.push((ticket, write));
    }

    /// The revision that a request makes.
    pub(super) fn made(
        &mut self,
        owner: &Arc<str>,
        name: &str,
        data: &str,
        body: &str,
    ) -> Revision {
        self.made += 1;
        let object: serde_json::Value = serde_json::from_str(body).unwrap();
        let labels = object["metadata"]["labels"].as_object().unwrap();
        Revision {
            namespace: "default".into(),
            name: name.into(),
            uid: format!("revision-{}", self.made).into(),
            controller: Some(owner.clone()),
            labels: labels
                .iter()
                .map(|(k, v)| (k.clone(), v.as_str().unwrap().to_owned()))
                .collect(),
            revision: object["revision"].as_i64().unwrap(),
            data: data.into(),
            terminating: false,
        }
    }

    /// Time passes.
    pub(super) fn pass(&mut self, millis: Millis) -> Vec<String> {
        self.now += millis;
        self.tell(Event::Time)
    }

    fn end(&mut self, shown: &str, outcome: &Outcome) -> Vec<String> {
        let at = self.open.iter().position(|(_, write)| show(write) == shown);
        let (ticket, _) = self.open.remove(at.unwrap_or_else(|| panic!("no {shown}")));
        let outcome = outcome.clone();
        self.tell(Event::Ended { ticket, outcome })
    }

    /// A write was done.
    pub(super) fn done(&mut self, shown: &str) -> Vec<String> {
        self.answer(shown, Answer::Nothing)
    }

    /// A write was done, with this answer.
    pub(super) fn answer(&mut self, shown: &str, answer: Answer) -> Vec<String> {
        self.end(shown, &Outcome::Done(answer))
    }

    /// A write has failed.
    pub(super) fn fail(&mut self, shown: &str, kind: FailureKind) -> Vec<String> {
        let failure = Failure {
            kind,
            message: "no".to_owned(),
            retry_after: None,
        };
        self.end(shown, &Outcome::Failed(failure))
    }

    /// The hash of the pods that are created for a template.
    pub(super) fn hash_of(view: &DaemonSetView) -> String {
        use super::super::super::history::{data, name};
        name::hash(&data::of_template(&view.template), view.collision_count)
    }

    /// A pod is there.
    pub(super) fn pod(&mut self, view: PodView) -> Vec<String> {
        self.tell(Event::Pod(view))
    }

    /// The counters: desired, current, misscheduled, ready, updated, available.
    pub(super) fn counters(&self, daemon_set: &str) -> [i64; 6] {
        let c = self.planner.status(&format!("uid-{daemon_set}")).unwrap();
        let (current, missed) = (c.current, c.misscheduled);
        [c.desired, current, missed, c.ready, c.updated, c.available]
    }
}

/// A write as a short text.
pub(super) fn show(write: &Write) -> String {
    match write {
        Write::CreatePod { node, .. } => format!("create {node}"),
        Write::DeletePod(pod) => format!("delete {}", pod.name),
        Write::AdoptPod(pod) => format!("adopt {}", pod.name),
        Write::ReleasePod(pod) => format!("release {}", pod.name),
        Write::RelabelPod { pod, hash } => format!("relabel {} {hash}", pod.name),
        Write::CreateRevision { name, .. } => format!("create revision {name}"),
        Write::RenumberRevision { revision, number } => {
            format!("renumber {} {number}", revision.name)
        }
        Write::LabelRevision { revision, hash } => format!("label {} {hash}", revision.name),
        Write::DeleteRevision(revision) => format!("delete revision {}", revision.name),
        Write::AdoptRevision(revision) => format!("adopt revision {}", revision.name),
        Write::ReleaseRevision(revision) => format!("release revision {}", revision.name),
        Write::CountCollision { known } => format!("count collision {known:?}"),
        Write::WriteStatus => "write status".to_owned(),
    }
}

/// The DaemonSet `ds`, changed.
pub(super) fn set(change: impl FnOnce(&mut DaemonSetView)) -> Event {
    let mut view = daemon_set("ds");
    change(&mut view);
    Event::DaemonSet(view)
}

/// A pod of `ds` on a node that comes from the present template of [`daemon_set`], ready for ever.
pub(super) fn updated(name: &str, node: &str) -> PodView {
    let mut view = super::pod(name, "ds", node);
    view.ready_since = Some(0);
    let hash = Desk::hash_of(&daemon_set("ds"));
    Arc::make_mut(&mut view.labels).insert(HASH_LABEL.to_owned(), hash);
    view
}

/// A pod of `ds` that comes from another template, ready for ever.
pub(super) fn old(name: &str, node: &str) -> PodView {
    let mut view = updated(name, node);
    Arc::make_mut(&mut view.labels).insert(HASH_LABEL.to_owned(), "old".to_owned());
    view
}

/// The same pod, changed.
pub(super) fn but(mut view: PodView, change: impl FnOnce(&mut PodView)) -> PodView {
    change(&mut view);
    view
}

/// Not ready.
pub(super) fn unready(view: PodView) -> PodView {
    but(view, |pod| pod.ready_since = None)
}

/// Being deleted.
pub(super) fn leaving(view: PodView) -> PodView {
    but(view, |pod| pod.terminating = true)
}

/// Failed.
pub(super) fn broken(view: PodView) -> PodView {
    but(unready(view), |pod| pod.phase = Phase::Failed)
}

/// Not bound yet.
pub(super) fn unbound(view: PodView) -> PodView {
    but(unready(view), |pod| pod.pinned_to = pod.bound_to.take())
}

/// `ds` with this `updateStrategy.rollingUpdate`.
pub(super) fn rolling(limits: &serde_json::Value) -> Event {
    let strategy = Strategy::parse(&serde_json::json!({ "rollingUpdate": limits }));
    set(|view| view.strategy = strategy)
}
