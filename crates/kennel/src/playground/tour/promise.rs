//! What a step promises to show, and whether a look shows it. Pure: looks come from elsewhere.

use std::fmt;

use super::seen::{Pod, Seen, State};

/// What must be seen.
#[derive(Clone, Debug)]
pub(super) enum Promise {
    /// The DaemonSet has its one pod on each of these nodes, available and of its newest template, and
    /// none elsewhere.
    Runs {
        /// The version that runs.
        version: &'static str,
        /// Where.
        nodes: Vec<String>,
        /// Whether the pods that were ready before must be the same ones still.
        keeps: bool,
    },
    /// The new version fails on so many nodes, and the old one runs on all others.
    Stuck {
        /// What fails.
        bad: &'static str,
        /// What runs elsewhere.
        good: &'static str,
        /// On how many nodes it fails.
        fails: usize,
        /// How many nodes there are.
        of: usize,
    },
    /// The DaemonSet is gone, and its pods run on without an owner.
    Orphaned,
    /// No DaemonSet and no pods.
    Gone,
}

impl Promise {
    /// Whether this look shows it, given what was seen before the step.
    pub(super) fn kept(&self, before: &Seen, now: &Seen) -> bool {
        match self {
            Self::Runs {
                version,
                nodes,
                keeps,
            } => {
                now.set.as_ref().is_some_and(|set| {
                    let ours = |pod: &Pod| pod.owner.as_ref() == Some(&set.uid);
                    set.settled && now.pods.iter().all(ours)
                }) && runs_exactly(now, version, nodes)
                    && (!keeps || before.ready().is_subset(&now.ready()))
            }
            Self::Stuck {
                bad,
                good,
                fails,
                of,
            } => {
                let count = |version, state| {
                    let alike = |pod: &&Pod| pod.version == version && pod.state == state;
                    now.pods.iter().filter(alike).count()
                };
                now.pods.len() == *of
                    && count(*bad, State::Fails) == *fails
                    && count(*good, State::Runs) == of - fails
            }
            Self::Orphaned => {
                let alone = now.pods.iter().all(|pod| pod.owner.is_none());
                now.set.is_none() && alone && before.ready() == now.ready()
            }
            Self::Gone => now.set.is_none() && now.pods.is_empty(),
        }
    }
}

fn runs_exactly(now: &Seen, version: &str, nodes: &[String]) -> bool {
    let runs = |pod: &Pod| pod.version == version && pod.state == State::Runs;
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

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runs {
                version,
                nodes,
                keeps,
            } => {
                let which = if *keeps {
                    ", none of them replaced"
                } else {
                    ""
                };
                match nodes.as_slice() {
                    [] => write!(f, "no pod anywhere"),
                    [node] => write!(f, "version {version} on {node} and nowhere else{which}"),
                    few if few.len() <= 6 => {
                        write!(f, "version {version} on {} alone{which}", few.join(", "))
                    }
                    many => write!(f, "version {version} on {} nodes{which}", many.len()),
                }
            }
            Self::Stuck {
                bad, good, fails, ..
            } => write!(
                f,
                "version {bad} failing, {fails} at a time, and version {good} on all other nodes"
            ),
            Self::Orphaned => f.write_str("no DaemonSet, and its pods running on without an owner"),
            Self::Gone => f.write_str("neither a DaemonSet nor pods"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::seen::Set;
    use super::*;

    /// `kennel-1=2.0` runs, `+` starts, `!` fails, `-` ends; a name in front of `@` makes it another pod,
    /// `~` behind one without an owner.
    fn seen(set: bool, words: &str) -> Seen {
        let pods = words.split_whitespace().map(|word| {
            let (uid, word) = word.split_once('@').unwrap_or((word, word));
            let (node, rest) = word.split_once('=').unwrap();
            let state = match rest.chars().last().unwrap() {
                '+' => State::Starts,
                '!' => State::Fails,
                '-' => State::Ends,
                _ => State::Runs,
            };
            Pod {
                name: uid.to_owned(),
                uid: uid.to_owned(),
                node: Some(node.to_owned()),
                version: rest.trim_end_matches(['+', '!', '-', '~']).to_owned(),
                state,
                owner: (!rest.ends_with('~')).then(|| "set".to_owned()),
            }
        });
        Seen {
            set: set.then(|| Set {
                uid: "set".to_owned(),
                settled: true,
            }),
            pods: pods.collect(),
        }
    }

    fn runs(nodes: &[&str], keeps: bool) -> Promise {
        Promise::Runs {
            version: "2.0",
            nodes: nodes.iter().map(ToString::to_string).collect(),
            keeps,
        }
    }

    fn check(promise: &Promise, before: &Seen, now: &Seen, kept: bool) {
        assert_eq!(promise.kept(before, now), kept, "{promise}: {now:?}");
    }

    #[test]
    fn running_is_one_pod_on_each_node_and_none_elsewhere() {
        let before = seen(true, "");
        let two = runs(&["a", "b"], false);
        check(&two, &before, &seen(true, "b=2.0 a=2.0"), true);
        check(&two, &before, &seen(true, "a=2.0"), false);
        check(&two, &before, &seen(true, "a=2.0 b=2.0+"), false);
        check(&two, &before, &seen(true, "a=2.0 b=1.0"), false);
        check(&two, &before, &seen(true, "a=2.0 b=2.0 c=1.0-"), false);
        check(&two, &before, &seen(true, "a=2.0 b=2.0~"), false);
        check(&two, &before, &seen(false, "a=2.0 b=2.0"), false);
        let mut busy = seen(true, "a=2.0 b=2.0");
        busy.set.as_mut().unwrap().settled = false;
        check(&two, &before, &busy, false);
        check(&runs(&[], false), &before, &seen(true, ""), true);
    }

    #[test]
    fn pods_that_are_kept_are_the_same_ones() {
        let before = seen(true, "x@a=2.0 b=3.0!");
        let kept = runs(&["a", "b"], true);
        check(&kept, &before, &seen(true, "x@a=2.0 y@b=2.0"), true);
        check(&kept, &before, &seen(true, "z@a=2.0 y@b=2.0"), false);
    }

    #[test]
    fn a_stuck_rollout_leaves_the_others_alone() {
        let before = seen(true, "");
        let stuck = Promise::Stuck {
            bad: "3.0",
            good: "2.0",
            fails: 1,
            of: 3,
        };
        check(&stuck, &before, &seen(true, "a=3.0! b=2.0 c=2.0"), true);
        check(&stuck, &before, &seen(true, "a=3.0+ b=2.0 c=2.0"), false);
        check(&stuck, &before, &seen(true, "a=3.0! b=3.0! c=2.0"), false);
        check(&stuck, &before, &seen(true, "a=3.0! b=2.0 c=2.0+"), false);
    }

    #[test]
    fn orphans_stay_and_the_deleted_go() {
        let before = seen(true, "x@a=2.0");
        check(&Promise::Orphaned, &before, &seen(false, "x@a=2.0~"), true);
        check(&Promise::Orphaned, &before, &seen(false, "x@a=2.0"), false);
        check(&Promise::Orphaned, &before, &seen(false, "y@a=2.0~"), false);
        check(&Promise::Orphaned, &before, &seen(true, "x@a=2.0~"), false);
        check(&Promise::Gone, &before, &seen(false, ""), true);
        check(&Promise::Gone, &before, &seen(false, "a=2.0-"), false);
        check(&Promise::Gone, &before, &seen(true, ""), false);
    }
}
