//! A cluster that is left alone must converge to what the spec wants.

use super::super::event::Event;
use super::super::view::{DaemonSetView, PodView, Strategy};
use super::Uid;
use super::fake_cluster::KINDS;
use super::histories::History;
use super::rules::{eligibility, is_updated};

impl History {
    /// Lets everything succeed and nothing else happen until nothing is left to do.
    pub(super) fn converge(&mut self) {
        let (mut version, mut unchanged) = (0, 0);
        for _ in 0..2_000 {
            // One of two DaemonSets with the same selector may request writes to a revision of the other again and again.
            unchanged = if version == self.cluster.version {
                unchanged + 1
            } else {
                0
            };
            version = self.cluster.version;
            if unchanged > 300 {
                return self.check_converged();
            }
            let mut idle = self.collect_revisions();
            for kind in KINDS {
                while self.deliver(kind) {
                    idle = false;
                }
            }
            while !self.in_flight.is_empty() {
                self.execute(0, true);
                idle = false;
            }
            while !self.results.is_empty() {
                self.deliver_result(0);
            }
            let pods: Vec<Uid> = self.cluster.pods.keys().cloned().collect();
            for uid in pods {
                let before = self.cluster.pods.get(&uid).cloned();
                self.advance_pod(&uid, true);
                idle &= self.cluster.pods.get(&uid) == before.as_ref();
            }
            if idle {
                let Some(deadline) = self.real.next_deadline() else {
                    return self.check_converged();
                };
                self.cluster.now = self.cluster.now.max(deadline);
                self.apply(Event::Tick, None);
            }
        }
        panic!("seed {}: not converged after {:#?}", self.seed, self.log);
    }

    pub(super) fn check_converged(&self) {
        for set in self.cluster.sets.values().filter(|set| !set.terminating) {
            let own = |pod: &&PodView| pod.controller.as_ref() == Some(&set.uid);
            for node in self.cluster.nodes.values() {
                let here = self.cluster.pods.values().filter(own);
                let here: Vec<_> = here.filter(|p| p.target() == Some(&node.name)).collect();
                let fit = eligibility(&set.template, node);
                let right = if fit.0 {
                    here.len() == 1
                } else if fit.1 {
                    here.len() <= 1
                } else {
                    here.is_empty()
                };
                assert!(
                    right,
                    "seed {}: {fit:?} but {here:?} on {} for {set:?}, {:?} after {:#?}",
                    self.seed, node.name, self.model.sets[&set.uid].active, self.log
                );
                for pod in here {
                    self.check_converged_pod(set, pod);
                }
            }
            let shown = self.real.status(&set.uid);
            assert_eq!(shown, Some(set.status), "seed {}: status", self.seed);
            assert_eq!(set.status.observed_generation, set.generation);
            assert_eq!(
                set.status.desired, set.status.available,
                "seed {}",
                self.seed
            );
        }
    }

    pub(super) fn check_converged_pod(&self, set: &DaemonSetView, pod: &PodView) {
        assert!(
            pod.ready_since.is_some() && !pod.terminating && !pod.terminal(),
            "seed {}: {pod:?}",
            self.seed
        );
        let hash = self.model.sets[&set.uid].active.clone().unwrap();
        let rolls = matches!(set.strategy, Strategy::RollingUpdate { .. });
        let updated = is_updated(pod, &hash, set.template_generation);
        assert!(updated || !rolls, "seed {}: {pod:?} is old", self.seed);
    }
}
