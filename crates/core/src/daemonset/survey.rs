//! A DaemonSet judged on all nodes at once, from a snapshot: for those who explain and do nothing.
//!
//! The rules are the planner's own ([`judge`]); what differs is that nothing is under way here, since a
//! snapshot does not show what a controller has asked for.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::HASH_LABEL;
use super::event::Millis;
use super::fit::{Fit, Rules};
use super::history::{Revision, data, name, reconcile};
use super::member::{Burden, Conduct, Member, Role, Scene, judge};
use super::pod::is_updated;
use super::rollout::Budget;
use super::status::Counters;
use super::view::{DaemonSetView, NodeView, PodView, Seconds};

/// What a pod is to the DaemonSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Its own.
    Member,
    /// Nobody's, and selected: it will be adopted.
    Orphan,
    /// Its own, and no longer selected: it will be let go.
    Stray,
}

/// A pod of a place.
#[derive(Clone, Copy, Debug)]
pub struct Standing<'a> {
    /// Which: its index in the pods of the survey.
    pub index: usize,
    /// The pod.
    pub pod: &'a PodView,
    /// Of the present template (rule 5.2).
    pub updated: bool,
    /// Ready for long enough (rule 5.3.1).
    pub available: bool,
    /// The controller would delete it now.
    pub doomed: bool,
}

impl Standing<'_> {
    /// Is it gone or going, or has it ended?
    pub fn leaves(&self) -> bool {
        self.pod.terminating
    }
}

/// Where an old pod stands in the rollout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Turn {
    /// There is none to come.
    #[default]
    None,
    /// It comes when the budget allows.
    Waits,
    /// It goes as soon as enough others are available.
    Leaves,
}

/// One node, or one that pods speak of.
#[derive(Clone, Debug, Default)]
pub struct Place<'a> {
    /// The node, if there is one: its index in the nodes of the survey.
    pub node: Option<usize>,
    /// Whether it fits.
    pub fit: Option<Fit>,
    /// Its members, the most senior first.
    pub pods: Vec<Standing<'a>>,
    /// Pods that will be adopted.
    pub orphans: Vec<usize>,
    /// A pod would be made here now.
    pub creates: bool,
    /// Whose turn it is.
    pub turn: Turn,
    /// It counts against `maxUnavailable`.
    pub counts_unavailable: bool,
    /// It counts against `maxSurge`.
    pub counts_surge: bool,
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct Survey<'a> {
    /// By node.
    pub places: BTreeMap<Arc<str>, Place<'a>>,
    /// What the status should say.
    pub counters: Counters,
    /// `maxUnavailable` and `maxSurge` in nodes; nothing if nothing is rolled out.
    pub budget: Option<(i64, i64)>,
    /// The hash of the present template's pods, if it has a revision.
    pub hash: Option<String>,
}

/// What is surveyed.
#[derive(Clone, Copy, Debug)]
pub struct Ground<'a> {
    /// The DaemonSet.
    pub daemon_set: &'a DaemonSetView,
    /// All nodes.
    pub nodes: &'a [NodeView],
    /// The pods that it owns or could adopt.
    pub pods: &'a [PodView],
    /// Its revisions.
    pub revisions: &'a [Revision],
    /// Now.
    pub now: Seconds,
}

/// What a pod is to a DaemonSet (rule 3.2).
pub fn claim(daemon_set: &DaemonSetView, pod: &PodView) -> Option<Claim> {
    let label = |key: &str| pod.labels.get(key).map(String::as_str);
    let selected = daemon_set.selector.matches(label);
    match &pod.controller {
        Some(uid) if *uid == daemon_set.uid && selected => Some(Claim::Member),
        Some(uid) if *uid == daemon_set.uid => Some(Claim::Stray),
        Some(_) => None,
        None => (selected && !pod.terminating).then_some(Claim::Orphan),
    }
}

/// The hash that the present template's pods carry. Without a revision of it there may still be pods that
/// another controller made: then the newest revision's is no answer, and the template's generation is.
fn present_hash(ground: &Ground<'_>) -> Option<String> {
    let set = ground.daemon_set;
    let data = data::of_template(&set.template);
    let owned = |r: &&Revision| r.controller.as_ref() == Some(&set.uid) && !r.terminating;
    let claimed: Vec<Revision> = ground.revisions.iter().filter(owned).cloned().collect();
    let current = reconcile(&data, &claimed)
        .current
        .map(|r| r.hash().to_owned());
    current.or_else(|| {
        let computed = name::hash(&data, set.collision_count);
        let carried = |pod: &PodView| pod.labels.get(HASH_LABEL) == Some(&computed);
        ground.pods.iter().any(carried).then(|| computed.clone())
    })
}

/// Judges every node, and every node that pods speak of.
pub fn survey<'a>(ground: &Ground<'a>) -> Survey<'a> {
    let set = ground.daemon_set;
    let rules = Rules::of_template(&set.template);
    let mut places: BTreeMap<Arc<str>, Place<'a>> = BTreeMap::new();
    for (index, node) in ground.nodes.iter().enumerate() {
        let place = places.entry(node.name.clone()).or_default();
        place.node = Some(index);
        place.fit = Some(rules.judge(node));
    }
    let hash = present_hash(ground);
    for (index, pod) in ground.pods.iter().enumerate() {
        let Some(target) = pod.target() else {
            continue;
        };
        match claim(set, pod) {
            Some(Claim::Member) => {
                let place = places.entry(target.clone()).or_default();
                place.pods.push(standing(ground, hash.as_deref(), index));
            }
            Some(Claim::Orphan) => {
                places
                    .entry(target.clone())
                    .or_default()
                    .orphans
                    .push(index);
            }
            Some(Claim::Stray) | None => {}
        }
    }
    let mut counters = Counters::default();
    let budget = |desired| Budget::of(set.strategy, desired).map(|b| (b.unavailable, b.surge));
    let conduct = Conduct {
        surges: set.strategy.surges(),
        rolls: budget(0).is_some(),
    };
    for place in places.values_mut() {
        counters += settle(place, conduct, ground, hash.as_deref());
    }
    counters.observed_generation = set.generation;
    Survey {
        places,
        budget: budget(counters.desired),
        counters,
        hash,
    }
}

fn standing<'a>(ground: &Ground<'a>, hash: Option<&str>, index: usize) -> Standing<'a> {
    let (set, pod) = (ground.daemon_set, &ground.pods[index]);
    let available_at = pod.available_at(set.min_ready_seconds);
    Standing {
        index,
        pod,
        updated: is_updated(pod, hash.unwrap_or_default(), set.template_generation),
        available: available_at.is_some_and(|at| at <= ground.now),
        doomed: false,
    }
}

/// Judges one place. What it adds to the counters is the answer.
fn settle(
    place: &mut Place<'_>,
    conduct: Conduct,
    ground: &Ground<'_>,
    hash: Option<&str>,
) -> super::status::Share {
    place
        .pods
        .sort_by(|a, b| a.pod.seniority().cmp(&b.pod.seniority()));
    let millis = |seconds: Seconds| seconds.saturating_mul(1000);
    let counted = |s: &&Standing<'_>| !(s.pod.terminal() && s.pod.terminating);
    let member = |standing: &Standing<'_>| Member {
        id: u32::try_from(standing.index).unwrap_or(u32::MAX),
        bound: standing.pod.bound_to.is_some(),
        terminating: standing.pod.terminating,
        phase: standing.pod.phase,
        current_hash: hash.is_some()
            && standing.pod.labels.get(HASH_LABEL).map(String::as_str) == hash,
        updated: standing.updated,
        ready: standing.pod.ready_since.is_some(),
        available_at: standing
            .pod
            .available_at(ground.daemon_set.min_ready_seconds)
            .map_or(Millis::MAX, millis),
        going: false,
        held_until: Millis::MIN,
    };
    let group: Vec<Member> = place.pods.iter().filter(counted).map(member).collect();
    let verdict = judge(&Scene {
        conduct,
        fit: place.fit,
        group: &group,
        creating: false,
        create_held_until: Millis::MIN,
        adopting: !place.orphans.is_empty(),
        backoff_until: Millis::MIN,
        now: millis(ground.now),
    });
    for standing in &mut place.pods {
        let doomed = |(id, _): &(u32, _)| usize::try_from(*id) == Ok(standing.index);
        standing.doomed = verdict.doomed.iter().any(doomed);
    }
    place.creates = verdict.create;
    place.turn = match verdict.role {
        Role::None => Turn::None,
        Role::Candidate(_) => Turn::Waits,
        Role::Leaving(_) => Turn::Leaves,
    };
    let Burden {
        unavailable, surge, ..
    } = verdict.burden;
    (place.counts_unavailable, place.counts_surge) = (unavailable, surge);
    verdict.share
}
