//! A harness that drives a planner and shows the writes it requests as short texts.

use std::sync::Arc;

use kennel_types::Timestamp;

use super::super::super::HASH_LABEL;
use super::super::super::event::{
    Action, Answer, Event, Failure, FailureKind, Outcome, Ticket, Write,
};
use super::super::super::history::Revision;
use super::super::super::options::Options;
use super::super::super::view::{DaemonSetView, Phase, PodView, Strategy};
use super::super::Planner;
use super::{daemon_set, node};
use crate::rollout::state::Record;

/// See the [module](self).
pub(super) struct Harness {
    pub(super) planner: Planner,
    pub(super) now: Timestamp,
    /// Writes without a result so far.
    pub(super) open: Vec<(Ticket, Write)>,
    /// Removals of taints without a result so far.
    pub(super) untaints: Vec<(Ticket, Arc<str>)>,
    /// Answers creations of revisions and status writes at once, without showing them.
    pub(super) auto_answer: bool,
    /// Shows emitted events too.
    pub(super) show_events: bool,
    revisions: u32,
}

impl Harness {
    /// A synced planner with these nodes.
    pub(super) fn new(options: Options, nodes: &[&str]) -> Self {
        let mut harness = Self {
            planner: Planner::new(options),
            now: Timestamp::from_secs(1_000_000),
            open: Vec::new(),
            untaints: Vec::new(),
            auto_answer: true,
            show_events: false,
            revisions: 0,
        };
        for name in nodes {
            harness.apply(Event::Node(node(name)));
        }
        harness.apply(Event::Synced);
        harness
    }

    /// A planner with these nodes, these pods, and the DaemonSet of the event; and the writes that it then requests.
    pub(super) fn with(nodes: &[&str], pods: &[PodView], set: Event) -> (Self, Vec<String>) {
        let mut harness = Self::new(Options::default(), nodes);
        for pod in pods {
            harness.pod(pod.clone());
        }
        let requested = harness.apply(set);
        (harness, requested)
    }

    /// Applies an event and shows the requested writes.
    pub(super) fn apply(&mut self, event: Event) -> Vec<String> {
        self.planner.apply(self.now, event);
        let mut shown = Vec::new();
        loop {
            let actions = self.planner.take_actions();
            if actions.is_empty() {
                return shown;
            }
            for action in actions {
                self.handle(action, &mut shown);
            }
        }
    }

    fn handle(&mut self, action: Action, shown: &mut Vec<String>) {
        let (ticket, daemon_set, write) = match action {
            Action::Emit { note, .. } if self.show_events => {
                let kind = if note.warning { "Warning" } else { "Normal" };
                shown.push(format!("{kind} {}: {}", note.reason, note.message));
                return;
            }
            Action::EmitOnNode { node, note } if self.show_events => {
                shown.push(format!("{node} {}: {}", note.reason, note.message));
                return;
            }
            Action::RemoveTaint { ticket, node } => {
                shown.push(format!("untaint {node}"));
                self.untaints.push((ticket, node));
                return;
            }
            Action::Emit { .. } | Action::EmitOnNode { .. } | Action::Check { .. } => return,
            Action::Write {
                ticket,
                daemon_set,
                write,
            } => (ticket, daemon_set, write),
        };
        if self.auto_answer {
            let answer = match &write {
                Write::CreateRevision { name, data, body } => Some(Answer::Revision(Box::new(
                    self.created_revision(&daemon_set.uid, name, data, body),
                ))),
                Write::WriteStatus => self.planner.status(&daemon_set.uid).map(|counters| {
                    let version = 0;
                    let conditions = Arc::default();
                    Answer::Status {
                        counters,
                        conditions,
                        version,
                    }
                }),
                _ => None,
            };
            if let Some(answer) = answer {
                let outcome = Ok(answer);
                self.planner
                    .apply(self.now, Event::WriteFinished { ticket, outcome });
                return;
            }
        }
        shown.push(show(&write));
        self.open.push((ticket, write));
    }

    /// The revision that a create request makes.
    pub(super) fn created_revision(
        &mut self,
        owner: &Arc<str>,
        name: &str,
        data: &str,
        body: &str,
    ) -> Revision {
        self.revisions += 1;
        let object: serde_json::Value = serde_json::from_str(body).unwrap();
        let labels = object["metadata"]["labels"].as_object().unwrap();
        Revision {
            namespace: "default".into(),
            name: name.into(),
            uid: format!("revision-{}", self.revisions).into(),
            controller: Some(owner.clone()),
            labels: labels
                .iter()
                .map(|(k, v)| (k.clone(), v.as_str().unwrap().to_owned()))
                .collect(),
            revision: object["revision"].as_i64().unwrap(),
            data: data.into(),
            terminating: false,
            template_generation: None,
            record: Record::default(),
            version: "".into(),
        }
    }

    pub(super) fn advance(&mut self, millis: i64) -> Vec<String> {
        self.now = self.now.saturating_add_millis(millis);
        self.apply(Event::Tick)
    }

    fn finish(&mut self, shown: &str, outcome: &Outcome) -> Vec<String> {
        let at = self.open.iter().position(|(_, write)| show(write) == shown);
        let (ticket, _) = self.open.remove(at.unwrap_or_else(|| panic!("no {shown}")));
        let outcome = outcome.clone();
        self.apply(Event::WriteFinished { ticket, outcome })
    }

    /// Lets a write succeed.
    pub(super) fn done(&mut self, shown: &str) -> Vec<String> {
        self.answer(shown, Answer::Nothing)
    }

    /// Lets a write succeed with this answer.
    pub(super) fn answer(&mut self, shown: &str, answer: Answer) -> Vec<String> {
        self.finish(shown, &Ok(answer))
    }

    /// Lets a write fail.
    pub(super) fn fail(&mut self, shown: &str, kind: FailureKind) -> Vec<String> {
        let failure = Failure {
            kind,
            message: "no".to_owned(),
            retry_after: None,
        };
        self.finish(shown, &Err(failure))
    }

    /// The hash of the pods that are created for a template.
    pub(super) fn hash_of(view: &DaemonSetView) -> String {
        use super::super::super::history::{data, name};
        name::hash(&data::of_template(&view.template), view.collision_count)
    }

    pub(super) fn pod(&mut self, view: PodView) -> Vec<String> {
        self.apply(Event::Pod(view))
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
        Write::WriteRecord { revision, .. } => format!("write record of {}", revision.name),
        Write::CopyConfig(copy) => format!("copy {}", copy.name),
        Write::DeleteRevision(revision) => format!("delete revision {}", revision.name),
        Write::AdoptRevision(revision) => format!("adopt revision {}", revision.name),
        Write::ReleaseRevision(revision) => format!("release revision {}", revision.name),
        Write::CountCollision { known } => format!("count collision {known:?}"),
        Write::WriteStatus => "write status".to_owned(),
    }
}

/// An event for a changed DaemonSet `ds`.
pub(super) fn set(change: impl FnOnce(&mut DaemonSetView)) -> Event {
    let mut view = daemon_set("ds");
    change(&mut view);
    Event::DaemonSet(view)
}

/// A pod of `ds` from the template of [`daemon_set`], ready since the epoch.
pub(super) fn updated(name: &str, node: &str) -> PodView {
    let mut view = super::pod(name, "ds", node);
    view.ready_since = Some(Timestamp::EPOCH);
    let hash = Harness::hash_of(&daemon_set("ds"));
    Arc::make_mut(&mut view.labels).insert(HASH_LABEL.to_owned(), hash);
    view
}

/// A pod of `ds` from another template, ready since the epoch.
pub(super) fn old(name: &str, node: &str) -> PodView {
    let mut view = updated(name, node);
    Arc::make_mut(&mut view.labels).insert(HASH_LABEL.to_owned(), "old".to_owned());
    view
}

pub(super) fn changed(mut view: PodView, change: impl FnOnce(&mut PodView)) -> PodView {
    change(&mut view);
    view
}

pub(super) fn unready(view: PodView) -> PodView {
    changed(view, |pod| pod.ready_since = None)
}

pub(super) fn terminating(view: PodView) -> PodView {
    changed(view, |pod| pod.terminating = true)
}

pub(super) fn failed(view: PodView) -> PodView {
    changed(unready(view), |pod| pod.phase = Phase::Failed)
}

pub(super) fn unbound(view: PodView) -> PodView {
    changed(unready(view), |pod| pod.pinned_to = pod.bound_to.take())
}

/// `ds` with this `updateStrategy.rollingUpdate`.
pub(super) fn rolling(limits: &serde_json::Value) -> Event {
    let strategy = Strategy::parse(&serde_json::json!({ "rollingUpdate": limits }));
    set(|view| view.strategy = strategy)
}
