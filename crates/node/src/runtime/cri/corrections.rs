//! Corrections of exits. A runtime may change its answer to why a container has exited: containerd is told of an exit and of the
//! kernel's kill for memory by two notices, in any order, and says `Error` until it has both, `OOMKilled` from then on. It tells
//! nobody of that, so exits are read again a few times, and then no more.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

/// For how long after it was first seen an exit may be corrected.
pub(super) const CORRECTION_TIME: Duration = Duration::from_secs(5);
/// How long after that the pod counts as changed again. The last time is after [`CORRECTION_TIME`].
const REREADS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(10)];

/// When pods count as changed again because a container of theirs has exited.
#[derive(Debug, Default)]
pub(super) struct Rereads {
    /// The ids of exited containers.
    exited: BTreeSet<String>,
    /// With the uids of pods.
    planned: BTreeSet<(Instant, String)>,
}

impl Rereads {
    /// Plans the rereads of exits that are new. `exited` has the uids of pods by the ids of all exited containers.
    pub(super) fn plan(&mut self, exited: BTreeMap<String, String>, now: Instant) {
        for (id, uid) in &exited {
            if !self.exited.contains(id) {
                let rereads = REREADS.map(|after| (now + after, uid.clone()));
                self.planned.extend(rereads);
            }
        }
        self.exited = exited.into_keys().collect();
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.planned.first().map(|(at, _)| *at)
    }

    /// Takes what is due: the uids of pods.
    pub(super) fn take_due(&mut self, now: Instant) -> BTreeSet<String> {
        let mut due = BTreeSet::new();
        while self.next().is_some_and(|at| at <= now) {
            due.extend(self.planned.pop_first().map(|(_, uid)| uid));
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_exit_is_read_again_twice() {
        let exited = |ids: &[&str]| {
            let pod = |id: &&str| ((*id).to_owned(), format!("pod-of-{id}"));
            ids.iter().map(pod).collect::<BTreeMap<_, _>>()
        };
        let now = Instant::now();
        let after = |seconds| now + Duration::from_secs(seconds);
        let mut rereads = Rereads::default();
        rereads.plan(exited(&["a"]), now);
        rereads.plan(exited(&["a", "b"]), after(5));
        let mut seen = Vec::new();
        for second in 0..60 {
            for uid in rereads.take_due(after(second)) {
                seen.push((second, uid));
            }
            rereads.plan(exited(&["a", "b"]), after(second));
        }
        let expected = [(1, "a"), (6, "b"), (10, "a"), (15, "b")];
        let expected = expected.map(|(second, id)| (second, format!("pod-of-{id}")));
        assert_eq!(seen, expected);
        assert_eq!(rereads.next(), None);
        assert!(REREADS[1] > CORRECTION_TIME);
    }
}
