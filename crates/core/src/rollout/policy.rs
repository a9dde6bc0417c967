//! The policy of a staged rollout (R1), read from annotations of a DaemonSet and of its Namespace.

use std::collections::BTreeMap;
use std::time::Duration;

use super::PREFIX;
use super::check::Check;
use super::command;
use super::stage::{self, Size, Stage};
use super::state::State;
use crate::int_or_percent::IntOrPercent;
use crate::{duration, names};
use kennel_types::Timestamp;

type Annotations = BTreeMap<String, String>;

/// What to do when a rollout has failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// Stop and wait for a person (R5.3).
    #[default]
    Pause,
    /// Drive all nodes back to stable (R5.4).
    Rollback,
}

/// How nodes that are not ready count (R4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DownNodes {
    /// They use no budget and hold no stage up.
    #[default]
    Skip,
    /// As upstream counts them.
    Count,
}

/// A policy with its defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// At least one; the last reaches every node.
    pub stages: Vec<Stage>,
    /// The node label over whose values each stage takes nodes evenly.
    pub spread: Option<String>,
    pub healthy_deadline: Duration,
    pub progress_deadline: Duration,
    pub max_failures: IntOrPercent,
    pub max_restarts: u32,
    pub on_failure: OnFailure,
    pub down_nodes: DownNodes,
    pub blame_window: Duration,
    pub stages_on_create: bool,
    pub pin_config: bool,
    pub check: Option<Check>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            stages: vec![Stage::ALL],
            spread: None,
            healthy_deadline: Duration::from_mins(10),
            progress_deadline: Duration::from_mins(30),
            max_failures: IntOrPercent::Int(0),
            max_restarts: 2,
            on_failure: OnFailure::default(),
            down_nodes: DownNodes::default(),
            blame_window: Duration::from_mins(10),
            stages_on_create: false,
            pin_config: false,
            check: None,
        }
    }
}

impl Policy {
    /// What of it does not work where another controller creates the pods, all from the newest template (R11).
    pub fn refused_with_assist(&self) -> Option<PolicyError> {
        let why = "the controller runs with --assist, beside the cluster's own, which fills every gap with the newest \
                   template";
        let refused = |key: &str, value: &str, instead: &str| {
            Some(PolicyError::new(key, value, &format!("{instead}: {why}")))
        };
        if self.on_failure == OnFailure::Rollback {
            return refused("on-failure", "rollback", "must be \"pause\"");
        }
        if self.stages_on_create {
            return refused("stages-on-create", "true", "must be \"false\"");
        }
        if self.pin_config {
            return refused("pin-config", "true", "must be \"false\"");
        }
        None
    }

    /// A stage, counted from 1. A policy may have become shorter than the rollout has come; its last stage counts then.
    pub fn stage(&self, number: usize) -> Option<&Stage> {
        let last = self.stages.len();
        self.stages.get(number.min(last).checked_sub(1)?)
    }

    /// Whether a node keeps the pod of the target that it has although the present stage does not reach it (R3.1). It
    /// does not where the stage takes nodes by label and has made the pod, for the node has lost the label since (R3.7);
    /// nor where no earlier stage took any by label. `label` is a label of the node.
    pub fn keeps_target<'a>(
        &self,
        state: &State,
        created: Timestamp,
        label: impl Fn(&str) -> Option<&'a str>,
    ) -> bool {
        let present = self.stage(state.stage).map(|stage| &stage.size);
        if !matches!(present, Some(Size::Nodes(_))) {
            return true;
        }
        let earlier = self.stages.iter().take(state.stage.saturating_sub(1));
        let selectors = earlier.filter_map(|stage| match &stage.size {
            Size::Nodes(selector) => Some(selector),
            Size::Count(_) => None,
        });
        let mut selectors = selectors.peekable();
        selectors.peek().is_some()
            && (state.is_older_than_stage(created) || selectors.any(|s| s.matches(&label)))
    }

    /// `stage 2 of 4 (10% 30m)`.
    pub fn stage_text(&self, number: usize) -> String {
        let stages = self.stages.len();
        match self.stage(number) {
            Some(stage) => format!("stage {} of {stages} ({stage})", number.min(stages)),
            None => format!("stage 1 of {stages}"),
        }
    }

    /// How many of the rollout's nodes may have failed without failing the rollout; a percentage is rounded down.
    pub fn allowed_failures(&self, nodes: i64) -> i64 {
        match self.max_failures {
            IntOrPercent::Int(count) => count,
            IntOrPercent::Percent(percent) => percent.saturating_mul(nodes) / 100,
        }
    }
}

/// What the annotations of a DaemonSet and of its Namespace say.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Setting {
    /// No policy key is present.
    #[default]
    Absent,
    /// `policy: none`.
    Off,
    Policy(Box<Policy>),
    /// An unknown key or an unreadable value: acts as pause (R1.2).
    Invalid(PolicyError),
}

impl Setting {
    /// Reads a DaemonSet's annotations over the defaults of its Namespace (R1.1).
    pub fn parse(own: &Annotations, namespace: &Annotations) -> Self {
        let (own, defaults) = (entries(own), entries(namespace));
        let off = |entries: &BTreeMap<&str, &str>| entries.get("policy").is_some_and(|v| is_off(v));
        let own_policy = own.keys().any(|key| !command::is_command(key));
        if off(&own) || (off(&defaults) && !own_policy) {
            return Self::Off;
        }
        if let Some(error) = misplaced(&defaults).next() {
            return Self::Invalid(error);
        }
        let mut merged = defaults;
        merged.extend(own);
        merged.retain(|key, _| !command::is_command(key));
        if merged.is_empty() {
            return Self::Absent;
        }
        let mut policy = Policy::default();
        for (key, value) in merged {
            // The Namespace's, where the DaemonSet has a policy of its own.
            if key == "policy" && is_off(value) {
                continue;
            }
            if let Err(error) = set(&mut policy, key, value) {
                return Self::Invalid(error);
            }
        }
        Self::Policy(Box::new(policy))
    }

    pub fn policy(&self) -> Option<&Policy> {
        match self {
            Self::Policy(policy) => Some(policy),
            Self::Absent | Self::Off | Self::Invalid(_) => None,
        }
    }
}

/// Every unknown key and unreadable value among an object's annotations, for admission. Commands are none (R6.1).
pub fn errors(annotations: &Annotations) -> Vec<PolicyError> {
    let entries = entries(annotations);
    let policy = entries.iter().filter(|(key, _)| !command::is_command(key));
    policy
        .filter_map(|(key, value)| set(&mut Policy::default(), key, value).err())
        .collect()
}

/// The same for a Namespace, whose annotations are defaults: a command there is an error, too, for it would be one for
/// every DaemonSet.
pub fn namespace_errors(annotations: &Annotations) -> Vec<PolicyError> {
    let mut all = errors(annotations);
    all.extend(misplaced(&entries(annotations)));
    all
}

/// The commands among a Namespace's annotations.
fn misplaced(defaults: &BTreeMap<&str, &str>) -> impl Iterator<Item = PolicyError> {
    let commands = defaults.iter().filter(|(key, _)| command::is_command(key));
    commands.map(|(key, value)| PolicyError::new(key, value, MISPLACED))
}

/// The annotations of safe rollouts, without their prefix.
fn entries(annotations: &Annotations) -> BTreeMap<&str, &str> {
    let all = annotations.range(PREFIX.to_owned()..);
    all.map_while(|(key, value)| Some((key.strip_prefix(PREFIX)?, value.as_str())))
        .collect()
}

/// An annotation that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{PREFIX}{key}: {value:?} is not allowed: {allowed}")]
pub struct PolicyError {
    /// Without the prefix.
    pub key: String,
    pub value: String,
    /// What is allowed instead.
    pub allowed: String,
}

impl PolicyError {
    fn new(key: &str, value: &str, allowed: &str) -> Self {
        Self {
            key: key.to_owned(),
            value: value.to_owned(),
            allowed: allowed.to_owned(),
        }
    }
}

/// The keys of a policy, without their prefix.
pub const KEYS: [&str; 13] = [
    "blame-window",
    "check",
    "down-nodes",
    "healthy-deadline",
    "max-failures",
    "max-restarts",
    "on-failure",
    "pin-config",
    "policy",
    "progress-deadline",
    "spread",
    "stages",
    "stages-on-create",
];
const STAGES: &str = "must be stages separated by commas, each a size (a count such as 3, a percentage from 1% to \
                      100%, or nodes(LABEL SELECTOR)), then optionally how long it bakes (such as 15m), then \
                      optionally the word manual: \"nodes(pool=canary) 15m, 10% 30m, 50% manual, 100%\"";
const MISPLACED: &str = "a command belongs on the DaemonSet, not on its Namespace";
const DURATION: &str = "must be a duration longer than 0s, such as 90s, 10m or 1h30m";
const COUNT: &str = "must be a count such as 3, or a percentage from 0% to 100%";
const CHECK: &str = "must be \"prometheus EXPRESSION COMPARISON NUMBER\" with one of < <= > >= == !=, or \
                     \"webhook URL\" with http:// or https://";

/// Sets one key of a policy.
fn set(policy: &mut Policy, key: &str, value: &str) -> Result<(), PolicyError> {
    let text = value.trim();
    let refused = |allowed: &str| PolicyError::new(key, value, allowed);
    let long = || {
        let parsed = duration::parse(text).filter(|parsed| !parsed.is_zero());
        parsed.ok_or_else(|| refused(DURATION))
    };
    let flag = || match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(refused("must be \"true\" or \"false\"")),
    };
    match key {
        "stages" => policy.stages = stage::parse(text).ok_or_else(|| refused(STAGES))?,
        "spread" => {
            policy.spread = Some(label_key(text).map_err(|error| refused(&error.to_string()))?);
        }
        "healthy-deadline" => policy.healthy_deadline = long()?,
        "progress-deadline" => policy.progress_deadline = long()?,
        "blame-window" => policy.blame_window = long()?,
        "max-failures" => {
            policy.max_failures = stage::parse_count(text).ok_or_else(|| refused(COUNT))?;
        }
        "max-restarts" => {
            let parsed = text.parse().ok().filter(|_| !text.starts_with('+'));
            let allowed = "must be a count such as 0 or 5";
            policy.max_restarts = parsed.ok_or_else(|| refused(allowed))?;
        }
        "on-failure" => {
            policy.on_failure = match text {
                "pause" => OnFailure::Pause,
                "rollback" => OnFailure::Rollback,
                _ => return Err(refused("must be \"pause\" or \"rollback\"")),
            }
        }
        "down-nodes" => {
            policy.down_nodes = match text {
                "skip" => DownNodes::Skip,
                "count" => DownNodes::Count,
                _ => return Err(refused("must be \"skip\" or \"count\"")),
            }
        }
        "stages-on-create" => policy.stages_on_create = flag()?,
        "pin-config" => policy.pin_config = flag()?,
        "check" => {
            let parsed = text.parse();
            let parsed = parsed.map_err(|error| refused(&format!("{CHECK}: {error}")));
            policy.check = Some(parsed?);
        }
        "policy" if is_off(text) => {}
        "policy" => return Err(refused("must be \"none\", or absent")),
        _ => return Err(refused(&unknown_key())),
    }
    Ok(())
}

/// Whether the value of `policy` switches everything off.
fn is_off(value: &str) -> bool {
    value.trim() == "none"
}

fn unknown_key() -> String {
    let commands = command::KEYS.join(", ");
    let keys = KEYS.join(", ");
    format!("the key is unknown; the keys of a policy are {keys}; the commands are {commands}")
}

#[derive(Debug, thiserror::Error)]
#[error("must be the key of a node label, such as topology.kubernetes.io/zone: {0}")]
struct LabelKeyError(String);

fn label_key(text: &str) -> Result<String, LabelKeyError> {
    match names::qualified_name(text).first() {
        None => Ok(text.to_owned()),
        Some(first) => Err(LabelKeyError(first.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotations(entries: &[(&str, &str)]) -> Annotations {
        let own = |(key, value): &(&str, &str)| (format!("{PREFIX}{key}"), (*value).to_owned());
        entries.iter().map(own).collect()
    }

    fn parse(own: &[(&str, &str)], namespace: &[(&str, &str)]) -> Setting {
        let mut own = annotations(own);
        own.insert("app".into(), "x".into());
        own.insert("zone".into(), "x".into());
        Setting::parse(&own, &annotations(namespace))
    }

    fn policy(own: &[(&str, &str)], namespace: &[(&str, &str)]) -> Policy {
        match parse(own, namespace) {
            Setting::Policy(policy) => *policy,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn r1_without_a_key_there_is_no_policy() {
        assert_eq!(parse(&[], &[]), Setting::Absent);
    }

    #[test]
    fn r1_any_key_brings_all_defaults() {
        let found = policy(&[("max-restarts", "0")], &[]);
        let expected = Policy {
            max_restarts: 0,
            ..Policy::default()
        };
        assert_eq!(found, expected);
        assert_eq!(expected.stages, [Stage::ALL]);
        assert_eq!(expected.healthy_deadline.as_secs(), 600);
        assert_eq!(expected.progress_deadline.as_secs(), 1_800);
        assert_eq!(expected.blame_window.as_secs(), 600);
        assert_eq!(expected.on_failure, OnFailure::Pause);
        assert_eq!(expected.down_nodes, DownNodes::Skip);
    }

    #[test]
    fn r1_every_key_is_read() {
        let found = policy(
            &[
                ("stages", "10%, 100%"),
                ("spread", "topology.kubernetes.io/zone"),
                ("healthy-deadline", "90s"),
                ("progress-deadline", "1h"),
                ("max-failures", "5%"),
                ("max-restarts", "7"),
                ("on-failure", "rollback"),
                ("down-nodes", "count"),
                ("blame-window", "5m"),
                ("stages-on-create", "true"),
                ("pin-config", "true"),
                ("check", "webhook https://gate.example/ok"),
            ],
            &[],
        );
        let expected = Policy {
            stages: stage::parse("10%").unwrap(),
            spread: Some("topology.kubernetes.io/zone".into()),
            healthy_deadline: Duration::from_secs(90),
            progress_deadline: Duration::from_hours(1),
            max_failures: IntOrPercent::Percent(5),
            max_restarts: 7,
            on_failure: OnFailure::Rollback,
            down_nodes: DownNodes::Count,
            blame_window: Duration::from_mins(5),
            stages_on_create: true,
            pin_config: true,
            check: Some(Check::Webhook {
                url: "https://gate.example/ok".into(),
            }),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn r1_1_the_namespaces_keys_are_defaults_key_by_key() {
        let found = policy(
            &[("max-failures", "1")],
            &[("max-failures", "9"), ("on-failure", "rollback")],
        );
        assert_eq!(found.max_failures, IntOrPercent::Int(1));
        assert_eq!(found.on_failure, OnFailure::Rollback);
        let inherited = policy(&[], &[("on-failure", "rollback")]);
        assert_eq!(inherited.on_failure, OnFailure::Rollback);
    }

    #[test]
    fn r1_policy_none_switches_everything_off() {
        assert_eq!(
            parse(&[("policy", "none")], &[("stages", "1")]),
            Setting::Off
        );
        let both = [("policy", "none"), ("stages", "nonsense")];
        assert_eq!(parse(&both, &[]), Setting::Off);
        assert_eq!(
            parse(&[], &[("policy", "none"), ("stages", "1")]),
            Setting::Off
        );
        // Spaces around a value count for nothing, here as elsewhere.
        assert_eq!(
            parse(&[("policy", " none\n")], &[("stages", "1")]),
            Setting::Off
        );
        let own = policy(&[("stages", "1")], &[("policy", "none")]);
        assert_eq!(own.stages.len(), 2);
    }

    #[test]
    fn r6_a_command_on_a_namespace_is_an_error_there() {
        for key in command::KEYS {
            let given = annotations(&[(key, "x"), ("max-failures", "few")]);
            assert_eq!(errors(&given).len(), 1, "{key}");
            let found = namespace_errors(&given);
            let found: Vec<&str> = found.iter().map(|error| &*error.key).collect();
            assert_eq!(found, ["max-failures", key]);
            // One that is stored all the same acts as pause, as every key that does not belong there (R1.2).
            let Setting::Invalid(error) = parse(&[], &[(key, "x")]) else {
                panic!("{key} on a Namespace is read");
            };
            assert_eq!(error.allowed, MISPLACED);
        }
    }

    #[test]
    fn r6_3_commands_switch_no_defaults_on() {
        assert_eq!(
            parse(&[("pause", "night"), ("freeze", "x")], &[]),
            Setting::Absent
        );
        assert_eq!(
            parse(&[("promote", "?"), ("abort", "")], &[]),
            Setting::Absent
        );
    }

    /// What the error of a value says, and that admission says the same.
    fn refused(key: &str, value: &str) -> String {
        let Setting::Invalid(error) = parse(&[(key, value)], &[]) else {
            panic!("{key}: {value} is read");
        };
        let found = errors(&annotations(&[(key, value)]));
        assert_eq!(found, std::slice::from_ref(&error));
        let inherited = parse(&[], &[(key, value)]);
        assert_eq!(inherited, Setting::Invalid(error.clone()));
        error.to_string()
    }

    /// Key, value, and words of the message.
    const UNREADABLE: &[(&str, &str, &str)] = &[
        ("stages", "some", "must be stages separated by commas"),
        ("spread", "", "must be the key of a node label"),
        ("spread", "a b", "must be the key of a node label"),
        ("healthy-deadline", "10", "must be a duration"),
        ("healthy-deadline", "0s", "longer than 0s"),
        ("progress-deadline", "-5m", "must be a duration"),
        ("progress-deadline", "", "must be a duration"),
        ("blame-window", "1d", "such as 90s, 10m or 1h30m"),
        ("max-failures", "-1", "must be a count"),
        ("max-failures", "110%", "from 0% to 100%"),
        ("max-failures", "few", "must be a count"),
        ("max-restarts", "50%", "must be a count such as 0 or 5"),
        ("max-restarts", "-1", "must be a count such as 0 or 5"),
        ("max-restarts", "+1", "must be a count such as 0 or 5"),
        (
            "max-restarts",
            "5000000000",
            "must be a count such as 0 or 5",
        ),
        ("max-failures", "+1", "must be a count"),
        ("max-failures", "99999999999999999999", "must be a count"),
        ("healthy-deadline", "5000000000s", "must be a duration"),
        (
            "on-failure",
            "Rollback",
            "must be \"pause\" or \"rollback\"",
        ),
        ("down-nodes", "ignore", "must be \"skip\" or \"count\""),
        ("stages-on-create", "yes", "must be \"true\" or \"false\""),
        ("pin-config", "1", "must be \"true\" or \"false\""),
        ("policy", "off", "must be \"none\", or absent"),
        ("check", "shell rm", "must be \"prometheus EXPRESSION"),
        ("check", "shell rm", "neither prometheus nor webhook"),
        ("check", "prometheus up ~ 1", "is not a comparison"),
        (
            "check",
            "webhook ftp://x",
            "with http:// or https://: the URL",
        ),
        (
            "stage",
            "10%",
            "the key is unknown; the keys of a policy are blame-window",
        ),
        ("verdict", "stable", "the commands are abort, freeze"),
    ];

    #[test]
    fn r1_2_an_unreadable_value_says_what_is_allowed() {
        for key in KEYS {
            let tested = UNREADABLE.iter().any(|(tested, ..)| *tested == key);
            assert!(tested, "{key}");
        }
        for (key, value, words) in UNREADABLE {
            let error = refused(key, value);
            assert!(error.contains(words), "{error}");
            assert!(error.starts_with(&format!("{PREFIX}{key}: ")), "{error}");
        }
    }

    #[test]
    fn a_command_on_a_namespace_is_refused() {
        let found = parse(&[], &[("pause", "night")]);
        let Setting::Invalid(error) = found else {
            panic!("{found:?}");
        };
        assert!(
            error.to_string().contains("belongs on the DaemonSet"),
            "{error}"
        );
    }

    #[test]
    fn r1_max_failures_rounds_percentages_down() {
        let allowed =
            |text: &str, nodes| policy(&[("max-failures", text)], &[]).allowed_failures(nodes);
        assert_eq!(allowed("3", 100), 3);
        assert_eq!(allowed("5%", 39), 1);
        assert_eq!(allowed("5%", 19), 0);
        assert_eq!(allowed("100%", 7), 7);
    }
}
