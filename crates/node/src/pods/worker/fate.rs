//! What is to become of a pod: deleted, evicted, late, over. Decides when it must have ended; ends nothing itself.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kennel_core::pod::Instant;
use kennel_core::pod::status::Verdict;

use super::{Stage, Worker};
use crate::pods::voice::word;
use crate::pods::{Origin, Pod};

/// What those get to end who were taken out of the API by force, and what nobody knows.
const SHORT: Duration = Duration::from_secs(2);

/// A pod that is to end.
#[derive(Clone, Debug)]
pub(super) struct Ending {
    /// At the latest then.
    pub(super) deadline: Instant,
    /// Why it fails, if the node says so.
    pub(super) verdict: Option<Verdict>,
}

impl Worker {
    /// What the pod's object and its arrival say.
    pub(super) fn begin(&mut self, refused: Option<Verdict>, gone: bool) {
        let now = self.shared.now();
        if let Some(verdict) = refused {
            let message = verdict.message.trim_start_matches("Pod was rejected: ");
            self.voice.warn(word(&verdict.reason), message);
            self.end_by(now, Some(verdict));
        }
        let phase = self.pod.object["status"]["phase"].as_str();
        if matches!(phase, Some("Succeeded" | "Failed")) {
            self.telling.freeze();
            self.end_by(now + self.pod.spec.grace(), None);
        }
        if self.pod.is_deleted() {
            self.deleted(now);
        }
        if gone {
            self.unwanted();
        }
        if self.fate.is_none() {
            self.shared.parts.supplies.follow(&self.pod);
        }
    }

    pub(super) fn pod_changed(&mut self, pod: Arc<Pod>) {
        self.pod = pod;
        self.telling.pod_changed(&self.pod);
        self.shared.reports.seen(&self.pod);
        if self.pod.is_deleted() {
            self.deleted(self.shared.now());
        } else if self.fate.is_none() {
            self.shared.parts.supplies.follow(&self.pod);
        }
    }

    /// Somebody has asked for its end. What it gets counts from when we heard of it: clocks may differ.
    fn deleted(&mut self, now: Instant) {
        let seconds = self.pod.metadata()["deletionGracePeriodSeconds"].as_u64();
        let grace = seconds.map_or(self.pod.spec.grace(), Duration::from_secs);
        self.end_by(now + grace, None);
    }

    /// No source has it any more.
    pub(super) fn unwanted(&mut self) {
        self.gone = true;
        let grace = match self.pod.origin {
            Origin::Api => SHORT,
            Origin::File => self.pod.spec.grace(),
        };
        self.end_by(self.shared.now() + grace, None);
    }

    pub(super) fn evict(&mut self, verdict: Verdict, grace: Duration) {
        if self.stage != Stage::Living {
            return;
        }
        self.voice
            .warn(word(&verdict.reason), verdict.message.clone());
        self.end_by(self.shared.now() + grace, Some(verdict));
    }

    /// Ends it, earlier than before if that was to be later.
    fn end_by(&mut self, deadline: Instant, verdict: Option<Verdict>) {
        self.ending.cancel();
        if let Some(ending) = &mut self.fate {
            ending.verdict = ending.verdict.take().or(verdict);
            if deadline >= ending.deadline {
                return;
            }
            ending.deadline = deadline;
        } else {
            self.fate = Some(Ending { deadline, verdict });
        }
        // Those that are being ended for less, or with more time, are ended anew.
        self.hasten();
    }

    /// How long it may take in all. Says when to ask again.
    pub(super) fn check_deadline(&mut self, now: Instant) -> Option<Instant> {
        if self.fate.is_some() {
            return None;
        }
        let allowed = Duration::from_secs(self.pod.spec.active_deadline_seconds?);
        let deadline = self.telling.began(now).saturating_add(allowed);
        if now < deadline {
            return Some(deadline);
        }
        let message = "Pod was active on the node longer than the specified deadline";
        self.voice.say("DeadlineExceeded", message);
        let verdict = Verdict {
            reason: "DeadlineExceeded".to_owned(),
            message: message.to_owned(),
        };
        self.end_by(now + self.pod.spec.grace(), Some(verdict));
        None
    }

    /// Nothing runs, and nothing will.
    pub(super) fn is_over(&mut self, now: Instant) {
        self.release();
        if self.fate.is_none() {
            self.end_by(now, None);
        }
        if self.gone || self.pod.is_deleted() {
            self.telling.conclude(&self.pod, &self.observed);
            self.tell();
            self.stage = Stage::Clearing;
            self.clear();
        } else if self.stage == Stage::Living {
            self.stage = Stage::Resting;
            self.rest();
        }
    }

    pub(super) fn cleared(&mut self) {
        self.stage = Stage::Cleared;
        if !self.gone {
            self.shared.reports.delete(&self.pod);
        }
    }
}

/// How long ago a time of the API was, by this machine's clock; nothing if it makes no sense.
pub(super) fn since(time: &str) -> Option<Duration> {
    let time: Timestamp = time.parse().ok()?;
    let passed = Timestamp::now().as_second() - time.as_second();
    Some(Duration::from_secs(u64::try_from(passed).unwrap_or(0)))
}
