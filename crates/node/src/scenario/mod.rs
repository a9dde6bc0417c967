//! What happens to simulated nodes and their pods, as a YAML file says it: `docs/reference/simulation.md`
//! describes the format.
//!
//! Pure: who asks gets the same answer for the same names and seed, at any time and in any order. What
//! the answers mean for a pod is for [`stages`](crate::stages) to say.

mod outages;
mod parse;

use std::collections::BTreeMap;

use kennel_core::names;
use serde::{Deserialize, Deserializer, de::Error as _};

use crate::dice::Dice;
use crate::stages::{Exit, Life};
pub use outages::{Outage, OutageKind};
pub use parse::{Amount, Glob, Percent, Span, duration};

/// A scenario file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// All rules that match a node apply to it, later ones over earlier ones.
    pub nodes: Vec<NodeRule>,
    /// The first rule that matches a pod decides its life.
    pub pods: Vec<PodRule>,
}

/// A file that cannot be used; says where and why.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unusable(String);

/// What some nodes are like, and what happens to them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NodeRule {
    /// Which nodes.
    pub name: Glob,
    /// How many of these.
    pub percent: Percent,
    /// Labels beside the well-known ones.
    #[serde(deserialize_with = "labels")]
    pub labels: BTreeMap<String, String>,
    /// Zones that the nodes are in, in turn by their number.
    pub zones: Vec<String>,
    /// Taints that they register with.
    pub taints: Vec<Taint>,
    /// Capacity that differs from the usual.
    pub capacity: BTreeMap<String, Amount>,
    /// When they are not heard of.
    pub silent: Option<Outage>,
    /// When they reboot.
    pub reboot: Option<Outage>,
}

/// What keeps pods away from a node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Taint {
    /// Its key.
    pub key: String,
    /// Its value.
    #[serde(default)]
    pub value: String,
    /// What it does.
    pub effect: Effect,
}

/// What a taint does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Effect {
    /// New pods stay away.
    NoSchedule,
    /// New pods stay away if they can.
    PreferNoSchedule,
    /// All pods leave.
    NoExecute,
}

impl Effect {
    /// As the API writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

/// How some pods live.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PodRule {
    /// Which pods: those with a container of such an image.
    pub image: Glob,
    /// On which nodes.
    pub node: Glob,
    /// In which namespaces.
    pub namespace: Glob,
    /// How many of these.
    pub percent: Percent,
    /// How long the images take to be pulled.
    pub pull: Span,
    /// How long the containers take to start after that.
    pub start: Span,
    /// How long they take to become ready after that.
    pub ready: Span,
    /// How long they take to stop; their grace period may be shorter.
    pub stop: Span,
    /// The images cannot be pulled.
    pub unpullable: bool,
    /// The containers exit by themselves.
    pub exits: Option<Exits>,
}

/// How containers exit by themselves.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exits {
    /// How long after their start.
    pub after: Span,
    /// With which code.
    #[serde(default = "one")]
    pub code: i32,
    /// How often, before they stay; always, if not given.
    #[serde(default)]
    pub times: Option<u32>,
}

fn one() -> i32 {
    1
}

fn labels<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    let labels = BTreeMap::<String, String>::deserialize(deserializer)?;
    for (key, value) in &labels {
        let wrong = names::qualified_name(key);
        let wrong = wrong.into_iter().chain(names::label_value(value)).next();
        if let Some(why) = wrong {
            return Err(D::Error::custom(format!("label {key}={value}: {why}")));
        }
    }
    Ok(labels)
}

/// What decides about a pod's life, beside chance.
#[derive(Clone, Copy, Debug)]
pub struct PodFacts<'a> {
    /// Its node.
    pub node: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// The images of its containers.
    pub images: &'a [&'a str],
}

/// What has been decided about a pod: which rule, and the dice for the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate {
    rule: Option<usize>,
    dice: Dice,
}

impl Scenario {
    /// Reads a file's text.
    pub fn parse(text: &str) -> Result<Self, Unusable> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        serde_saphyr::from_str(text).map_err(|error| Unusable(error.to_string()))
    }

    /// The rules for a node.
    pub fn of_node<'a>(&'a self, name: &'a str, dice: Dice) -> impl Iterator<Item = &'a NodeRule> {
        let rules = self.nodes.iter().enumerate();
        let rules = rules.filter(move |(number, rule)| {
            let dice = dice.named("nodes").numbered(*number as u64);
            rule.name.matches(name) && dice.named(name).falls_within(rule.percent.0)
        });
        rules.map(|(_, rule)| rule)
    }

    /// What is to become of a pod. The dice are the pod's own.
    pub fn fate(&self, pod: PodFacts<'_>, dice: Dice) -> Fate {
        let applies = |(number, rule): (usize, &PodRule)| {
            rule.node.matches(pod.node)
                && rule.namespace.matches(pod.namespace)
                && pod.images.iter().any(|image| rule.image.matches(image))
                && dice.numbered(number as u64).falls_within(rule.percent.0)
        };
        let rule = self.pods.iter().enumerate().position(applies);
        Fate { rule, dice }
    }

    /// How a pod of this fate lives after so many restarts.
    pub fn life(&self, fate: Fate, restarts: u32) -> Life {
        let Some(rule) = fate.rule.and_then(|rule| self.pods.get(rule)) else {
            return Life::AT_ONCE;
        };
        let draw = |span: Span, what| span.draw(fate.dice.named(what).numbered(restarts.into()));
        let exits = rule.exits.as_ref();
        let exits = exits.filter(|exits| exits.times.is_none_or(|times| restarts < times));
        Life {
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
