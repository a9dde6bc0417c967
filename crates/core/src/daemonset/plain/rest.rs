//! The world left alone: it must come to rest, and then look as the spec wants it.

use super::super::event::Event;
use super::super::fit::Rules;
use super::super::pod::is_updated;
use super::super::view::{DaemonSetView, PodView, Strategy};
use super::Uid;
use super::histories::History;
use super::world::KINDS;

impl History {
    /// Everybody does their work and nothing else happens, until there is nothing to do.
    pub(super) fn come_to_rest(&mut self) {
        let (mut version, mut unchanged) = (0, 0);
        for _ in 0..2_000 {
            // One of two with the same selector may ask for a revision of the other again and again.
            unchanged = if version == self.world.version {
                unchanged + 1
            } else {
                0
            };
            version = self.world.version;
            if unchanged > 300 {
                return self.check_rest();
            }
            let mut quiet = self.collect_revisions();
            for kind in KINDS {
                while self.deliver(kind) {
                    quiet = false;
                }
            }
            while !self.in_flight.is_empty() {
                self.carry_out(0, true);
                quiet = false;
            }
            while !self.answers.is_empty() {
                self.answer(0);
            }
            let pods: Vec<Uid> = self.world.pods.keys().cloned().collect();
            for uid in pods {
                let before = self.world.pods.get(&uid).cloned();
                self.tend(&uid, true);
                quiet &= self.world.pods.get(&uid) == before.as_ref();
            }
            if quiet {
                let Some(deadline) = self.real.next_deadline() else {
                    return self.check_rest();
                };
                self.world.now = self.world.now.max(deadline);
                self.tell(Event::Time, None);
            }
        }
        panic!("seed {}: no rest after {:#?}", self.seed, self.log);
    }

    pub(super) fn check_rest(&self) {
        for set in self.world.sets.values().filter(|set| !set.terminating) {
            let rules = Rules::of_template(&set.template);
            let own = |pod: &&PodView| pod.controller.as_ref() == Some(&set.uid);
            for node in self.world.nodes.values() {
                let here = self.world.pods.values().filter(own);
                let here: Vec<_> = here.filter(|p| p.target() == Some(&node.name)).collect();
                let fit = rules.judge(node);
                let right = if fit.run {
                    here.len() == 1
                } else if fit.keep {
                    here.len() <= 1
                } else {
                    here.is_empty()
                };
                assert!(
                    right,
                    "seed {}: {fit:?} but {here:?} on {} for {set:?}, {:?} after {:#?}",
                    self.seed, node.name, self.plain.sets[&set.uid].live, self.log
                );
                for pod in here {
                    self.check_rested_pod(set, pod);
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

    pub(super) fn check_rested_pod(&self, set: &DaemonSetView, pod: &PodView) {
        assert!(
            pod.ready_since.is_some() && !pod.terminating && !pod.terminal(),
            "seed {}: {pod:?}",
            self.seed
        );
        let hash = self.plain.sets[&set.uid].live.clone().unwrap();
        let rolls = matches!(set.strategy, Strategy::RollingUpdate { .. });
        let updated = is_updated(pod, &hash, set.template_generation);
        assert!(updated || !rolls, "seed {}: {pod:?} is old", self.seed);
    }
}
