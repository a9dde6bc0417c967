//! Decides when a pod terminates, and by when: deletion, eviction, active deadline, rejection, or because all its
//! containers have ended. [`super::kill`] ends the containers.

use std::sync::Arc;
use std::time::Duration;

use kennel_client::clock;
use kennel_core::pod::status::PodFailure;
use kennel_types::Monotonic;
use kennel_types::Timestamp;

use super::{Stage, Worker};
use crate::pods::{Origin, Pod};

/// The grace period of pods that were force-deleted, and of orphans.
const FORCED_GRACE_PERIOD: Duration = Duration::from_secs(2);

/// Set once a pod terminates.
#[derive(Clone, Debug)]
pub(super) struct Termination {
    /// Containers that still run then are killed.
    pub(super) deadline: Monotonic,
    /// Why the pod fails, if the node decided so.
    pub(super) failure: Option<PodFailure>,
}

impl Worker {
    pub(super) fn apply_initial_state(&mut self, rejection: Option<PodFailure>, removed: bool) {
        let now = self.shared.now();
        if let Some(failure) = rejection {
            let message = failure.message.trim_start_matches("Pod was rejected: ");
            self.events.warn(failure.reason.clone(), message);
            self.terminate_by(now, Some(failure));
        }
        if self.pod.phase().is_terminal() {
            self.status.freeze();
            self.terminate_by(now + self.pod.spec.termination_grace_period(), None);
        }
        if self.pod.is_deleted() {
            self.on_deleted(now);
        }
        if removed {
            self.on_source_removed();
        }
        if self.termination.is_none() {
            self.shared.dependencies.inputs.keep_fresh(&self.pod);
        }
    }

    pub(super) fn on_pod_changed(&mut self, pod: Arc<Pod>) {
        self.pod = pod;
        self.status.on_pod_changed(&self.pod);
        self.shared.status.observe(&self.pod);
        if self.pod.is_deleted() {
            self.on_deleted(self.shared.now());
        } else if self.termination.is_none() {
            self.shared.dependencies.inputs.keep_fresh(&self.pod);
        }
    }

    /// The grace period counts from now rather than from the deletion timestamp: clocks may differ.
    fn on_deleted(&mut self, now: Monotonic) {
        let seconds = self.pod.metadata()["deletionGracePeriodSeconds"].as_u64();
        let grace = seconds.map_or(
            self.pod.spec.termination_grace_period(),
            Duration::from_secs,
        );
        self.terminate_by(now + grace, None);
    }

    pub(super) fn on_source_removed(&mut self) {
        self.removed = true;
        let grace = match self.pod.origin {
            Origin::Api => FORCED_GRACE_PERIOD,
            Origin::File => self.pod.spec.termination_grace_period(),
        };
        self.terminate_by(self.shared.now() + grace, None);
    }

    pub(super) fn evict(&mut self, failure: PodFailure, grace: Duration) {
        if self.stage != Stage::Active {
            return;
        }
        self.events
            .warn(failure.reason.clone(), failure.message.clone());
        self.terminate_by(self.shared.now() + grace, Some(failure));
    }

    /// Keeps an earlier deadline and the first failure.
    fn terminate_by(&mut self, deadline: Monotonic, failure: Option<PodFailure>) {
        self.terminating.cancel();
        if let Some(termination) = &mut self.termination {
            termination.failure = termination.failure.take().or(failure);
            if deadline >= termination.deadline {
                return;
            }
            termination.deadline = deadline;
        } else {
            self.termination = Some(Termination { deadline, failure });
        }
        // Kills that are under way were started with a longer grace period.
        self.restart_kills();
    }

    /// Enforces `activeDeadlineSeconds`. Returns the deadline while it is in the future.
    pub(super) fn check_active_deadline(&mut self, now: Monotonic) -> Option<Monotonic> {
        if self.termination.is_some() {
            return None;
        }
        let allowed = Duration::from_secs(self.pod.spec.active_deadline_seconds?);
        let deadline = self.status.active_since(now).saturating_add(allowed);
        if now < deadline {
            return Some(deadline);
        }
        let message = "Pod was active on the node longer than the specified deadline";
        self.events.normal("DeadlineExceeded", message);
        let failure = PodFailure {
            reason: "DeadlineExceeded".to_owned(),
            message: message.to_owned(),
            disruption: None,
        };
        self.terminate_by(
            now + self.pod.spec.termination_grace_period(),
            Some(failure),
        );
        None
    }

    /// No container runs, and none will start.
    pub(super) fn on_finished(&mut self, now: Monotonic) {
        self.release_resources();
        if self.termination.is_none() {
            self.terminate_by(now, None);
        }
        if self.removed || self.pod.is_deleted() {
            self.status.set_final_phase(&self.pod, &self.observed);
            self.update_status();
            self.stage = Stage::Removing;
            self.remove_all();
        } else if self.stage == Stage::Active {
            self.stage = Stage::Finished;
            self.remove_inputs();
        }
    }

    pub(super) fn on_all_removed(&mut self) {
        self.stage = Stage::Removed;
        if !self.removed {
            self.shared.status.delete(&self.pod);
        }
    }
}

/// How long ago a time of the API was by this machine's clock, in whole seconds; zero for the future.
pub(super) fn elapsed_since(time: &str) -> Option<Duration> {
    let then = Timestamp::parse(time)?;
    let seconds = clock::now().as_secs() - then.as_secs();
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}
