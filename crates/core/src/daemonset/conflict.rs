//! Notices another controller that acts on the same DaemonSets.
//!
//! It takes two observations. The watch of pods shows a pod of a DaemonSet that this controller did not create, or a deletion
//! that it did not request. People, drains, evictions, the garbage collector, and requests of an earlier process that
//! arrive late cause that, too, so it is only a suspicion. The other observation is an event on the DaemonSet, written by
//! another process, that names the pod: `SuccessfulCreate` or `SuccessfulDelete`. Only DaemonSet controllers write those.
//!
//! Nothing is read while there is no suspicion. What is kept is bounded.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use kennel_types::Monotonic;
use kennel_types::event::Event;

/// From a suspicion to the first read of the events: they follow the write that they are about.
const FIRST_READ: Duration = Duration::from_secs(3);
/// Between two reads for the same pods: Kubernetes' recorders delay events when there are many.
const NEXT_READ: Duration = Duration::from_mins(1);
/// Between two reads of the events of one DaemonSet, when there are more suspicions.
const READ_INTERVAL: Duration = Duration::from_secs(10);
/// Between reads, whichever DaemonSets they are about: a drain makes many suspicious at once.
const READ_GAP: Duration = Duration::from_secs(1);
/// Looks without a result after which suspicions are dropped.
const READS_MAX: u32 = 3;
/// Pods of one DaemonSet that are suspected at a time; more would prove nothing more.
const PODS_MAX: usize = 256;
/// DaemonSets that are suspected at a time.
const SETS_MAX: usize = 1024;
/// Between two reports about one DaemonSet.
const REPORT_INTERVAL: Duration = Duration::from_mins(10);
/// Pods that a report names.
const NAMES_MAX: usize = 3;

/// How the `reportingInstance` of an assistant begins: it deletes pods beside another controller on purpose.
const ASSISTANT: &str = "assist:";

/// The `reportingInstance` of a controller that works beside another one on purpose.
pub fn assistant(instance: &str) -> String {
    format!("{ASSISTANT}{instance}")
}

/// A creation or deletion of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Act {
    Created,
    Deleted,
}

impl Act {
    /// The reason of the event that a DaemonSet controller records about it.
    pub const fn event_reason(self) -> &'static str {
        match self {
            Self::Created => "SuccessfulCreate",
            Self::Deleted => "SuccessfulDelete",
        }
    }

    /// What the message of that event begins with; the pod's name follows.
    pub const fn event_message(self) -> &'static str {
        match self {
            Self::Created => "Created pod: ",
            Self::Deleted => "Deleted pod: ",
        }
    }
}

/// An event of another controller: what it did to which pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignWrite {
    pub act: Act,
    pub pod: String,
    /// The `reportingInstance`; empty for kube-controller-manager's.
    pub instance: String,
}

impl ForeignWrite {
    /// Reads an event. `None` if it is about something else, or was written by `own_instance` or an assistant.
    pub fn of(event: &Event, own_instance: &str) -> Option<Self> {
        let acts = [Act::Created, Act::Deleted];
        let act = acts
            .into_iter()
            .find(|act| act.event_reason() == event.reason)?;
        // Recorders put words before the message of an event that stands for several.
        let (_, pod) = event.message.split_once(act.event_message())?;
        let instance = &event.reporting_instance;
        let other = instance != own_instance && !instance.starts_with(ASSISTANT);
        other.then(|| Self {
            act,
            pod: pod.trim().to_owned(),
            instance: instance.clone(),
        })
    }
}

/// Pods that another controller created or deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conflict {
    pub created: Vec<Arc<str>>,
    pub deleted: Vec<Arc<str>>,
    /// The controller that did it: the instance that its events name.
    pub instance: String,
    /// Whether it is time to say so: rarely for the same DaemonSet.
    pub report: bool,
}

impl Conflict {
    /// What to tell people.
    pub fn message(&self) -> String {
        let mut text = "another controller acts on this DaemonSet, too: it ".to_owned();
        let acts = [("created", &self.created), ("deleted", &self.deleted)];
        let acts: Vec<String> = acts
            .into_iter()
            .filter(|(_, pods)| !pods.is_empty())
            .map(|(act, pods)| format!("{act} {}", names(pods)))
            .collect();
        text.push_str(&acts.join(" and "));
        let advice = if self.instance.is_empty() {
            ". Switch off the DaemonSet controller of kube-controller-manager \
             (--controllers=*,-daemonset-controller), or run this one with --assist"
                .to_owned()
        } else {
            format!(
                ". Stop {}, or let both use leader election with the same lease",
                self.instance
            )
        };
        text.push_str(&advice);
        text
    }
}

/// The first names, and how many there are.
fn names(pods: &[Arc<str>]) -> String {
    let mut text = pods[..pods.len().min(NAMES_MAX)].join(", ");
    if pods.len() > NAMES_MAX {
        let _infallible = write!(text, " and {} more", pods.len() - NAMES_MAX);
    }
    text
}

/// Pods of one DaemonSet that another controller may have created or deleted.
#[derive(Debug)]
struct SuspectedPods {
    pods: BTreeSet<(Act, Arc<str>)>,
    due_at: Monotonic,
    /// Not before this.
    earliest: Monotonic,
    reads: u32,
}

/// See the [module](self). DaemonSets are named by uid.
#[derive(Debug, Default)]
pub struct Conflicts {
    suspicions: BTreeMap<Arc<str>, SuspectedPods>,
    reported: BTreeMap<Arc<str>, Monotonic>,
    last_read: Option<Monotonic>,
}

impl Conflicts {
    /// A pod was created or deleted, and not at this controller's request.
    pub fn suspect(&mut self, now: Monotonic, set: &Arc<str>, act: Act, pod: &Arc<str>) {
        if self.suspicions.len() >= SETS_MAX && !self.suspicions.contains_key(set) {
            return;
        }
        let suspicion = self.suspicions.entry(set.clone());
        let suspicion = suspicion.or_insert_with(|| SuspectedPods {
            pods: BTreeSet::new(),
            due_at: Monotonic::MAX,
            earliest: now,
            reads: 0,
        });
        if suspicion.pods.len() < PODS_MAX && suspicion.pods.insert((act, pod.clone())) {
            let soon = suspicion.earliest.max(now + FIRST_READ);
            suspicion.due_at = suspicion.due_at.min(soon);
            suspicion.reads = 0;
        }
    }

    /// When [`take_due`](Self::take_due) has something to do.
    pub fn next_due(&self) -> Option<Monotonic> {
        let first = self.suspicions.values().map(|one| one.due_at).min()?;
        let gap = self.last_read.map(|at| at + READ_GAP);
        Some(gap.map_or(first, |gap| gap.max(first)))
    }

    /// The DaemonSet whose events to read now; pass them to [`judge`](Self::judge).
    pub fn take_due(&mut self, now: Monotonic) -> Option<Arc<str>> {
        if self.next_due()? > now {
            return None;
        }
        self.last_read = Some(now);
        let due = self.suspicions.iter_mut();
        let (set, suspicion) = due.min_by_key(|(_, suspicion)| suspicion.due_at)?;
        suspicion.reads += 1;
        suspicion.due_at = now + NEXT_READ;
        suspicion.earliest = now + READ_INTERVAL;
        Some(set.clone())
    }

    /// Compares the suspicions about a DaemonSet with what events say.
    pub fn judge(
        &mut self,
        now: Monotonic,
        set: &Arc<str>,
        writes: &[ForeignWrite],
    ) -> Option<Conflict> {
        let suspicion = self.suspicions.get_mut(set)?;
        let mut conflict = Conflict::default();
        for write in writes {
            let pod = (write.act, Arc::from(write.pod.as_str()));
            if !suspicion.pods.remove(&pod) {
                continue;
            }
            conflict.instance.clone_from(&write.instance);
            match write.act {
                Act::Created => conflict.created.push(pod.1),
                Act::Deleted => conflict.deleted.push(pod.1),
            }
        }
        if suspicion.pods.is_empty() || suspicion.reads >= READS_MAX {
            self.suspicions.remove(set);
        }
        if conflict.created.is_empty() && conflict.deleted.is_empty() {
            return None;
        }
        let reported = self.reported.get(set);
        conflict.report = reported.is_none_or(|at| now - *at >= REPORT_INTERVAL);
        if conflict.report {
            self.reported.insert(set.clone(), now);
        }
        Some(conflict)
    }

    /// The DaemonSet is gone.
    pub fn forget(&mut self, set: &str) {
        self.suspicions.remove(set);
        self.reported.remove(set);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Monotonic {
        Monotonic::since_start(Duration::from_secs(seconds))
    }

    fn event(reason: &str, message: &str, instance: &str) -> Event {
        Event {
            reason: reason.to_owned(),
            message: message.to_owned(),
            reporting_instance: instance.to_owned(),
            ..Event::default()
        }
    }

    fn foreign_write(reason: &str, message: &str, instance: &str) -> Option<ForeignWrite> {
        ForeignWrite::of(&event(reason, message, instance), "own")
    }

    fn created(pod: &str) -> ForeignWrite {
        foreign_write("SuccessfulCreate", &format!("Created pod: {pod}"), "").unwrap()
    }

    fn suspecting(pods: &[&str]) -> (Conflicts, Arc<str>) {
        let (mut conflicts, set) = (Conflicts::default(), Arc::from("set"));
        for pod in pods {
            conflicts.suspect(at(0), &set, Act::Created, &Arc::from(*pod));
        }
        (conflicts, set)
    }

    #[test]
    fn a_pod_that_another_controllers_event_names_is_a_conflict() {
        let (mut conflicts, set) = suspecting(&["a-1", "a-2"]);
        assert_eq!(
            conflicts.take_due(at(1)),
            None,
            "the event may not be there yet"
        );
        assert_eq!(conflicts.take_due(at(3)).as_ref(), Some(&set));
        let conflict = conflicts.judge(at(3), &set, &[created("a-1"), created("a-0")]);
        let conflict = conflict.unwrap();
        assert_eq!(conflict.created, ["a-1".into()]);
        assert!(conflict.report);
        assert_eq!(
            conflict.message(),
            "another controller acts on this DaemonSet, too: it created a-1. Switch off the DaemonSet controller of \
             kube-controller-manager (--controllers=*,-daemonset-controller), or run this one with --assist"
        );
    }

    #[test]
    fn pods_that_no_event_names_are_dropped_after_a_few_reads() {
        let (mut conflicts, set) = suspecting(&["a-1"]);
        let mut reads = 0;
        while let Some(next) = conflicts.next_due() {
            assert_eq!(conflicts.take_due(next).as_ref(), Some(&set));
            assert_eq!(conflicts.judge(next, &set, &[created("a-0")]), None);
            reads += 1;
        }
        assert_eq!(reads, READS_MAX);
    }

    #[test]
    fn events_are_read_soon_but_not_at_once_for_another_suspicion() {
        let (mut conflicts, set) = suspecting(&["a-1"]);
        assert!(conflicts.take_due(at(3)).is_some());
        assert_eq!(conflicts.judge(at(3), &set, &[]), None);
        conflicts.suspect(at(4), &set, Act::Created, &"a-2".into());
        assert_eq!(conflicts.take_due(at(12)), None);
        assert_eq!(conflicts.take_due(at(13)).as_ref(), Some(&set));
    }

    #[test]
    fn the_deletion_of_a_pod_is_no_conflict_because_it_was_created() {
        let (mut conflicts, set) = (Conflicts::default(), Arc::from("set"));
        conflicts.suspect(at(0), &set, Act::Deleted, &"a-1".into());
        assert_eq!(conflicts.judge(at(3), &set, &[created("a-1")]), None);
        let deleted = foreign_write("SuccessfulDelete", "Deleted pod: a-1", "host_2").unwrap();
        let conflict = conflicts.judge(at(63), &set, &[deleted]).unwrap();
        assert_eq!(conflict.deleted, ["a-1".into()]);
        assert!(conflict.message().contains("Stop host_2, or let both"));
    }

    #[test]
    fn a_conflict_that_goes_on_is_reported_rarely() {
        let (mut conflicts, set) = suspecting(&["a-1"]);
        let first = conflicts.judge(at(3), &set, &[created("a-1")]);
        assert!(first.unwrap().report);
        for (seconds, report) in [(60, false), (602, false), (603, true), (700, false)] {
            conflicts.suspect(at(seconds), &set, Act::Created, &"a-2".into());
            let again = conflicts.judge(at(seconds), &set, &[created("a-2")]);
            assert_eq!(again.unwrap().report, report, "after {seconds} s");
        }
        conflicts.forget("set");
        conflicts.suspect(at(701), &set, Act::Created, &"a-3".into());
        let again = conflicts.judge(at(701), &set, &[created("a-3")]);
        assert!(again.unwrap().report);
    }

    #[test]
    fn only_events_of_other_processes_about_pods_are_foreign_writes() {
        let message = "(combined from similar events): Created pod: a-1";
        let found = foreign_write("SuccessfulCreate", message, "").unwrap();
        assert_eq!((found.act, found.pod.as_str()), (Act::Created, "a-1"));
        assert_eq!(
            foreign_write("SuccessfulCreate", "Created pod: a-1", "own"),
            None
        );
        let assistant = assistant("host_1");
        assert_eq!(
            foreign_write("SuccessfulDelete", "Deleted pod: a-1", &assistant),
            None
        );
        assert_eq!(foreign_write("FailedCreate", "Created pod: a-1", ""), None);
        assert_eq!(
            foreign_write("SuccessfulCreate", "Deleted pod: a-1", ""),
            None
        );
    }

    #[test]
    fn events_of_many_suspicious_sets_are_read_one_by_one() {
        let mut conflicts = Conflicts::default();
        for set in 0..2 * SETS_MAX {
            let set: Arc<str> = format!("set-{set}").into();
            for pod in 0..2 {
                conflicts.suspect(at(0), &set, Act::Deleted, &format!("p-{pod}").into());
            }
        }
        assert_eq!(conflicts.suspicions.len(), SETS_MAX);
        assert!(conflicts.take_due(at(3)).is_some());
        assert_eq!(conflicts.take_due(at(3)), None);
        assert!(conflicts.take_due(at(4)).is_some());
    }

    #[test]
    fn a_report_names_a_few_pods_and_counts_the_rest() {
        let pods: Vec<Arc<str>> = (0..5).map(|pod| format!("p-{pod}").into()).collect();
        assert_eq!(names(&pods), "p-0, p-1, p-2 and 2 more");
        assert_eq!(names(&pods[..2]), "p-0, p-1");
    }
}
