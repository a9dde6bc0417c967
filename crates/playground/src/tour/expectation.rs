//! The expected result of a step, and whether an observation meets it. Pure.

use std::fmt;

use super::observation::{Observation, ObservedPod, State};

#[derive(Clone, Debug)]
pub(super) enum Expectation {
    /// The DaemonSet is rolled out: one available pod of its newest template on each of these nodes, and no other
    /// pods.
    Runs {
        version: &'static str,
        nodes: Vec<String>,
        /// Whether the pods that were ready before the step must not be replaced.
        keeps_pods: bool,
    },
    /// A rollout that is stuck: the new version fails on `failing` nodes, and the old one runs on all others.
    Stuck {
        new: &'static str,
        old: &'static str,
        failing: usize,
        nodes: usize,
    },
    /// The first stage of a rollout: the new version is ready on so many nodes, and the old one on all others.
    Stage {
        new: &'static str,
        old: &'static str,
        reached: usize,
        nodes: usize,
    },
    /// The newest template has failed, and this version is ready on all nodes again.
    WentBack {
        version: &'static str,
        nodes: Vec<String>,
    },
    /// The DaemonSet is deleted, and its pods keep running without an owner.
    Orphaned,
    /// The DaemonSet and its pods are deleted.
    Deleted,
}

impl Expectation {
    /// `before` is the observation before the step.
    pub(super) fn is_met(&self, before: &Observation, now: &Observation) -> bool {
        match self {
            Self::Runs {
                version,
                nodes,
                keeps_pods,
            } => {
                now.daemon_set.as_ref().is_some_and(|daemon_set| {
                    let ours = |pod: &ObservedPod| pod.owner.as_ref() == Some(&daemon_set.uid);
                    daemon_set.rolled_out && now.pods.iter().all(ours)
                }) && runs_exactly(now, version, nodes)
                    && (!keeps_pods || before.ready().is_subset(&now.ready()))
            }
            Self::Stuck {
                new,
                old,
                failing,
                nodes,
            } => {
                now.pods.len() == *nodes
                    && now.count(new, State::Failing) == *failing
                    && now.count(old, State::Ready) == nodes - failing
            }
            Self::Stage {
                new,
                old,
                reached,
                nodes,
            } => {
                now.pods.len() == *nodes
                    && now.count(new, State::Ready) == *reached
                    && now.count(old, State::Ready) == nodes - reached
            }
            Self::WentBack { version, nodes } => {
                let daemon_set = now.daemon_set.as_ref();
                daemon_set.is_some_and(|daemon_set| daemon_set.rolled_back)
                    && runs_exactly(now, version, nodes)
            }
            Self::Orphaned => {
                let alone = now.pods.iter().all(|pod| pod.owner.is_none());
                now.daemon_set.is_none() && alone && before.ready() == now.ready()
            }
            Self::Deleted => now.daemon_set.is_none() && now.pods.is_empty(),
        }
    }
}

fn runs_exactly(now: &Observation, version: &str, nodes: &[String]) -> bool {
    let runs = |pod: &ObservedPod| pod.version == version && pod.state == State::Ready;
    let mut places: Vec<_> = now
        .pods
        .iter()
        .filter_map(|pod| pod.node.as_ref())
        .collect();
    let mut wanted: Vec<_> = nodes.iter().collect();
    places.sort();
    wanted.sort();
    now.pods.iter().all(runs) && places == wanted
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runs {
                version,
                nodes,
                keeps_pods,
            } => {
                let replaced = if *keeps_pods {
                    ", none of them replaced"
                } else {
                    ""
                };
                match nodes.as_slice() {
                    [] => write!(f, "no pod anywhere"),
                    [node] => write!(f, "version {version} on {node} and nowhere else{replaced}"),
                    few if few.len() <= 6 => {
                        write!(
                            f,
                            "version {version} on {} and nowhere else{replaced}",
                            few.join(", ")
                        )
                    }
                    many => write!(f, "version {version} on {} nodes{replaced}", many.len()),
                }
            }
            Self::Stuck {
                new, old, failing, ..
            } => write!(
                f,
                "version {new} failing on {failing} nodes, and version {old} on all other nodes"
            ),
            Self::Stage {
                new, old, reached, ..
            } => write!(
                f,
                "version {new} on {reached} nodes, and version {old} on all other nodes"
            ),
            Self::WentBack { version, nodes } => {
                write!(f, "version {version} back on {} nodes", nodes.len())
            }
            Self::Orphaned => f.write_str("no DaemonSet, and its pods running without an owner"),
            Self::Deleted => f.write_str("neither a DaemonSet nor pods"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::observation::ObservedDaemonSet;
    use super::*;

    /// `NODE=VERSION` is a pod that is ready; with the suffix `+` it is starting, `!` failing, `-` terminating, `~`
    /// without an owner. A prefix `UID@` sets its uid.
    fn observation(daemon_set: bool, pods: &str) -> Observation {
        let pods = pods.split_whitespace().map(|word| {
            let (uid, word) = word.split_once('@').unwrap_or((word, word));
            let (node, rest) = word.split_once('=').unwrap();
            let state = match rest.chars().last().unwrap() {
                '+' => State::Starting,
                '!' => State::Failing,
                '-' => State::Terminating,
                _ => State::Ready,
            };
            ObservedPod {
                name: uid.to_owned(),
                uid: uid.to_owned(),
                node: Some(node.to_owned()),
                version: rest.trim_end_matches(['+', '!', '-', '~']).to_owned(),
                state,
                owner: (!rest.ends_with('~')).then(|| "set".to_owned()),
            }
        });
        Observation {
            daemon_set: daemon_set.then(|| ObservedDaemonSet {
                uid: "set".to_owned(),
                rolled_out: true,
                rolled_back: false,
            }),
            pods: pods.collect(),
        }
    }

    fn runs(nodes: &[&str], keeps_pods: bool) -> Expectation {
        Expectation::Runs {
            version: "2.0",
            nodes: nodes.iter().map(ToString::to_string).collect(),
            keeps_pods,
        }
    }

    fn check(expected: &Expectation, before: &Observation, now: &Observation, met: bool) {
        assert_eq!(expected.is_met(before, now), met, "{expected}: {now:?}");
    }

    #[test]
    fn a_rollout_is_one_pod_on_each_node_and_none_elsewhere() {
        let before = observation(true, "");
        let two = runs(&["a", "b"], false);
        check(&two, &before, &observation(true, "b=2.0 a=2.0"), true);
        check(&two, &before, &observation(true, "a=2.0"), false);
        check(&two, &before, &observation(true, "a=2.0 b=2.0+"), false);
        check(&two, &before, &observation(true, "a=2.0 b=1.0"), false);
        check(
            &two,
            &before,
            &observation(true, "a=2.0 b=2.0 c=1.0-"),
            false,
        );
        check(&two, &before, &observation(true, "a=2.0 b=2.0~"), false);
        check(&two, &before, &observation(false, "a=2.0 b=2.0"), false);
        let mut busy = observation(true, "a=2.0 b=2.0");
        busy.daemon_set.as_mut().unwrap().rolled_out = false;
        check(&two, &before, &busy, false);
        check(&runs(&[], false), &before, &observation(true, ""), true);
    }

    #[test]
    fn pods_that_must_be_kept_have_the_same_uid() {
        let before = observation(true, "x@a=2.0 b=3.0!");
        let kept = runs(&["a", "b"], true);
        check(&kept, &before, &observation(true, "x@a=2.0 y@b=2.0"), true);
        check(&kept, &before, &observation(true, "z@a=2.0 y@b=2.0"), false);
    }

    #[test]
    fn a_stuck_rollout_keeps_the_other_pods() {
        let before = observation(true, "");
        let stuck = Expectation::Stuck {
            new: "3.0",
            old: "2.0",
            failing: 1,
            nodes: 3,
        };
        check(
            &stuck,
            &before,
            &observation(true, "a=3.0! b=2.0 c=2.0"),
            true,
        );
        check(
            &stuck,
            &before,
            &observation(true, "a=3.0+ b=2.0 c=2.0"),
            false,
        );
        check(
            &stuck,
            &before,
            &observation(true, "a=3.0! b=3.0! c=2.0"),
            false,
        );
        check(
            &stuck,
            &before,
            &observation(true, "a=3.0! b=2.0 c=2.0+"),
            false,
        );
    }

    #[test]
    fn a_stage_reaches_some_nodes_and_a_way_back_all() {
        let before = observation(true, "");
        let stage = Expectation::Stage {
            new: "2.1",
            old: "2.0",
            reached: 1,
            nodes: 2,
        };
        check(&stage, &before, &observation(true, "a=2.1 b=2.0"), true);
        check(&stage, &before, &observation(true, "a=2.1+ b=2.0"), false);
        check(&stage, &before, &observation(true, "a=2.1 b=2.1"), false);
        check(&stage, &before, &observation(true, "a=2.0 b=2.0"), false);
        let back = Expectation::WentBack {
            version: "2.1",
            nodes: vec!["a".to_owned(), "b".to_owned()],
        };
        let mut now = observation(true, "a=2.1 b=2.1");
        check(&back, &before, &now, false);
        now.daemon_set.as_mut().unwrap().rolled_back = true;
        check(&back, &before, &now, true);
        now.pods.pop();
        check(&back, &before, &now, false);
    }

    #[test]
    fn orphaned_pods_stay_and_deleted_pods_go() {
        let before = observation(true, "x@a=2.0");
        check(
            &Expectation::Orphaned,
            &before,
            &observation(false, "x@a=2.0~"),
            true,
        );
        check(
            &Expectation::Orphaned,
            &before,
            &observation(false, "x@a=2.0"),
            false,
        );
        check(
            &Expectation::Orphaned,
            &before,
            &observation(false, "y@a=2.0~"),
            false,
        );
        check(
            &Expectation::Orphaned,
            &before,
            &observation(true, "x@a=2.0~"),
            false,
        );
        check(
            &Expectation::Deleted,
            &before,
            &observation(false, ""),
            true,
        );
        check(
            &Expectation::Deleted,
            &before,
            &observation(false, "a=2.0-"),
            false,
        );
        check(
            &Expectation::Deleted,
            &before,
            &observation(true, ""),
            false,
        );
    }
}
