//! The recorders of the controller's events. Each has limits of its own, so that many events of one kind drop none of another.

use kennel_client::events::{Note, Recorder, Reference};
use kennel_client::write::Writer;
use tokio_util::sync::CancellationToken;

use super::{COMPONENT, conflicts};

/// Reasons of events on a DaemonSet that come once for each pod, node or copy, or with each retry.
const FREQUENT: [&str; 9] = [
    "SuccessfulCreate",
    "FailedCreate",
    "SuccessfulDelete",
    "FailedDelete",
    "FailedDaemonPod",
    "SucceededDaemonPod",
    "SelectingAll",
    "NodeFailed",
    "FailedCopy",
];

/// The recorder of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Limited as upstream's.
    Frequent,
    /// What happens to a rollout as a whole. A rolling update of a dozen nodes exhausts the limits of the events above.
    Rollout,
    /// Two controllers at odds exhaust both.
    Conflict,
}

impl Kind {
    fn of(about: &Reference, note: &Note) -> Self {
        match &*note.reason {
            conflicts::REASON => Self::Conflict,
            reason if about.kind != "DaemonSet" || FREQUENT.contains(&reason) => Self::Frequent,
            _ => Self::Rollout,
        }
    }
}

/// See the [module](self).
pub(super) struct Recorders {
    frequent: Recorder,
    rollouts: Recorder,
    conflicts: Recorder,
}

impl Recorders {
    /// The recorders, and the future that writes their events until `stop` is cancelled.
    pub(super) fn new(
        writer: &Writer,
        instance: &str,
        stop: &CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let recorder = || Recorder::of_instance(writer.clone(), COMPONENT, instance, stop.clone());
        let (frequent, frequent_written) = recorder();
        let (conflicts, conflicts_written) = recorder();
        let (rollouts, rollouts_written) =
            Recorder::of_transitions(writer.clone(), COMPONENT, instance, stop.clone());
        let writing = async {
            tokio::join!(frequent_written, rollouts_written, conflicts_written);
        };
        let recorders = Self {
            frequent,
            rollouts,
            conflicts,
        };
        (recorders, writing)
    }

    pub(super) fn emit(&self, about: Reference, note: Note) {
        let recorder = match Kind::of(&about, &note) {
            Kind::Frequent => &self.frequent,
            Kind::Rollout => &self.rollouts,
            Kind::Conflict => &self.conflicts,
        };
        recorder.emit(about, note);
    }
}

#[cfg(test)]
mod tests {
    use kennel_client::events::reasons;
    use kennel_core::daemonset::event::Identity;

    use super::*;

    fn kind(about: &'static str, reason: &'static str) -> Kind {
        let about = Reference::new("apps/v1", about, &Identity::new("ns", "d", "u"));
        Kind::of(&about, &Note::new(false, reason, ""))
    }

    #[test]
    fn events_of_rollouts_share_no_limit_with_those_of_pods() {
        let mut rollouts = Vec::new();
        for known in reasons::ALL {
            if known.component == COMPONENT && known.about == "DaemonSet" {
                let found = kind(known.about, known.reason);
                if found == Kind::Rollout {
                    rollouts.push(known.reason);
                } else {
                    let is_conflict = known.reason == conflicts::REASON;
                    assert_eq!(found == Kind::Conflict, is_conflict, "{known:?}");
                }
            }
        }
        let expected = [
            "RolloutStarted",
            "StageStarted",
            "StageHealthy",
            "AwaitingPromotion",
            "RolloutFailed",
            "RolloutPaused",
            "RollingBack",
            "RolledBack",
            "RolloutComplete",
            "RolloutSuperseded",
            "PolicyInvalid",
            "PolicyIgnored",
            "FreezeIncomplete",
            "CheckInconclusive",
            "CommandIgnored",
            "StateNotWritten",
            "RevisionLost",
            "ConfigMissing",
            "SecretsNotPinned",
            "ConfigNotPinned",
        ];
        assert_eq!(rollouts, expected);
        assert_eq!(kind("Node", "DaemonsNotReady"), Kind::Frequent);
    }
}
