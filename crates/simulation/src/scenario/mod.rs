//! Scenario files: YAML rules for how simulated nodes and their pods behave. `docs/reference/simulation.md` describes
//! the format.
//!
//! Pure: the same names and seed get the same answer at any time and in any order. [`stages`](crate::stages) applies
//! the answers to a pod.

mod builtin;
mod outages;
mod parse;

use std::collections::BTreeMap;

use kennel_core::names;
use kennel_types::{Taint, TaintEffect};
use serde::{Deserialize, Deserializer, de::Error as _};

use crate::seeded_random::SeededRandom;
use crate::stages::{Exit, PodBehaviour};
pub use builtin::{BUILTIN_NAMES, builtin};
pub use outages::{Outage, OutageKind};
pub use parse::{Amount, DurationRange, Glob, Percent};

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// All rules that match a node apply to it, later ones over earlier ones.
    pub nodes: Vec<NodeRule>,
    /// The first rule that matches a pod applies to it.
    pub pods: Vec<PodRule>,
}

/// Names the line and the reason.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct InvalidScenario(Box<serde_saphyr::Error>);

/// Properties and outages of the nodes that match.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NodeRule {
    pub name: Glob,
    /// The share of matching nodes that the rule applies to.
    pub percent: Percent,
    /// Added to the well-known ones.
    #[serde(deserialize_with = "labels")]
    pub labels: BTreeMap<String, String>,
    /// Assigned to nodes round-robin, by their number.
    pub zones: Vec<String>,
    /// Set at registration.
    #[serde(deserialize_with = "taints")]
    pub taints: Vec<Taint>,
    /// Overrides the default capacity.
    pub capacity: BTreeMap<String, Amount>,
    /// Times without heartbeats and status updates.
    pub silent: Option<Outage>,
    pub reboot: Option<Outage>,
}

/// Behaviour of the pods that match.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct PodRule {
    /// Matches pods with a container of such an image.
    pub image: Glob,
    pub node: Glob,
    pub namespace: Glob,
    /// The share of matching nodes whose pods the rule applies to: every time to the same nodes.
    pub node_percent: Percent,
    /// The share of matching pods that the rule applies to.
    pub percent: Percent,
    /// How long the images take to be pulled.
    pub pull: DurationRange,
    /// How long the containers take to start after that.
    pub start: DurationRange,
    /// How long they take to become ready after that.
    pub ready: DurationRange,
    /// How long they take to stop; their grace period may be shorter.
    pub stop: DurationRange,
    /// The images cannot be pulled.
    pub unpullable: bool,
    pub exits: Option<Exits>,
}

/// How containers exit by themselves.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exits {
    /// Counted from their start.
    pub after: DurationRange,
    #[serde(default = "default_exit_code")]
    pub code: i32,
    /// How often they exit before they keep running; always, if not given.
    #[serde(default)]
    pub times: Option<u32>,
}

fn default_exit_code() -> i32 {
    1
}

/// Refuses what [`Taint`] tolerates: unknown fields, unknown effects, and taints without a key or an effect.
fn taints<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Taint>, D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Fields {
        key: String,
        #[serde(default)]
        value: String,
        effect: String,
    }
    let taint = |fields: Fields| -> Result<Taint, D::Error> {
        let unknown = || {
            let (effect, names) = (&fields.effect, TaintEffect::NAMES.join(", "));
            D::Error::custom(format!("{effect} is not an effect: use one of {names}"))
        };
        let effect = TaintEffect::parse(&fields.effect).ok_or_else(unknown)?;
        Ok(Taint {
            value: fields.value,
            ..Taint::new(&fields.key, effect)
        })
    };
    let all = Vec::<Fields>::deserialize(deserializer)?;
    all.into_iter().map(taint).collect()
}

fn labels<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    let labels = BTreeMap::<String, String>::deserialize(deserializer)?;
    for (key, value) in &labels {
        let errors = names::qualified_name(key).into_iter();
        if let Some(why) = errors.chain(names::label_value(value)).next() {
            return Err(D::Error::custom(format!("label {key}={value}: {why}")));
        }
    }
    Ok(labels)
}

/// What pod rules match on.
#[derive(Clone, Copy, Debug)]
pub struct PodFacts<'a> {
    pub node: &'a str,
    pub namespace: &'a str,
    /// The images of its containers.
    pub images: &'a [&'a str],
}

/// The rule that applies to a pod, and the pod's own random values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppliedRule {
    /// Index into [`Scenario::pods`].
    rule: Option<usize>,
    random: SeededRandom,
}

impl Scenario {
    pub fn parse(text: &str) -> Result<Self, InvalidScenario> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        serde_saphyr::from_str(text).map_err(|error| InvalidScenario(Box::new(error)))
    }

    /// All rules that apply to a node, in their order.
    pub fn node_rules<'a>(
        &'a self,
        name: &'a str,
        random: SeededRandom,
    ) -> impl Iterator<Item = &'a NodeRule> {
        let rules = self.nodes.iter().enumerate();
        let rules = rules.filter(move |(number, rule)| {
            let random = random.named("nodes").numbered(*number as u64);
            rule.name.matches(name) && random.named(name).happens(rule.percent.0)
        });
        rules.map(|(_, rule)| rule)
    }

    /// The rule that applies to a pod. `node` is the random value of its node, and `random` the pod's own.
    pub fn pod_rule(
        &self,
        pod: PodFacts<'_>,
        node: SeededRandom,
        random: SeededRandom,
    ) -> AppliedRule {
        let node = node.named("pods");
        let applies = |(number, rule): (usize, &PodRule)| {
            rule.node.matches(pod.node)
                && rule.namespace.matches(pod.namespace)
                && pod.images.iter().any(|image| rule.image.matches(image))
                && node.numbered(number as u64).happens(rule.node_percent.0)
                && random.numbered(number as u64).happens(rule.percent.0)
        };
        let rule = self.pods.iter().enumerate().position(applies);
        AppliedRule { rule, random }
    }

    /// How a pod behaves after this many restarts.
    pub fn behaviour(&self, applied: AppliedRule, restarts: u32) -> PodBehaviour {
        let Some(rule) = applied.rule.and_then(|rule| self.pods.get(rule)) else {
            return PodBehaviour::IMMEDIATE;
        };
        let draw = |range: DurationRange, what| {
            range.draw(applied.random.named(what).numbered(restarts.into()))
        };
        let exits = rule.exits.as_ref();
        let exits = exits.filter(|exits| exits.times.is_none_or(|times| restarts < times));
        PodBehaviour {
            pull: draw(rule.pull, "pull"),
            start: draw(rule.start, "start"),
            ready: draw(rule.ready, "ready"),
            stop: draw(rule.stop, "stop"),
            unpullable: rule.unpullable,
            exit: exits.map(|exits| Exit {
                after: draw(exits.after, "exit"),
                code: exits.code,
            }),
        }
    }
}

#[cfg(test)]
mod tests;
