//! Nodes that are not eligible: which placement rule excludes them, and what would change it.

use std::fmt::Write as _;

use super::answer::{Cause, Check, Verdict};
use super::finding::Finding;
use super::remedy::remedies;
use super::{Case, network, node_not_ready};
use crate::affinity::{NodeSelector, Part};
use crate::daemonset::NodeView;
use crate::daemonset::fit::{Fit, NOT_READY_TAINTS, Rule, Rules};
use crate::selector::{Operator, Requirement};
use crate::taint::{Taint, TaintEffect, Toleration};

/// In the order of evaluation.
pub(super) fn checks(rules: &Rules, node: &NodeView) -> Vec<Check> {
    let check = |(rule, holds): (Rule<'_>, bool)| Check {
        rule: rule_text(&rule),
        holds,
        found: found(&rule, node, rules),
    };
    rules.checks(node).map(check).collect()
}

pub(super) fn find(case: &Case<'_>, fit: Fit) -> Finding {
    let Some(node) = case.node() else {
        return Finding::missing(Cause::NodeGone, "there is no such node");
    };
    let view = &node.view;
    let failed: Vec<Rule<'_>> = case
        .rules
        .checks(view)
        .filter_map(|(rule, holds)| (!holds).then_some(rule))
        .collect();
    let is_not_ready = |rule: &Rule<'_>| matches!(rule, Rule::Taint(t) if NOT_READY_TAINTS.contains(&t.key.as_str()) && t.effect == TaintEffect::NoSchedule);
    let lacks_network = |rule: &Rule<'_>| matches!(rule, Rule::Taint(t) if t.key == network::TAINT);
    let passes = |rule: &Rule<'_>| is_not_ready(rule) || lacks_network(rule);
    let has_pods = !case.place.pods.is_empty();
    // The first rule that still fails once the node is ready and has a network.
    let first = failed.iter().find(|rule| !passes(rule));
    let Some(first) = first else {
        return if failed.iter().any(is_not_ready) {
            node_not_ready::find(case)
        } else {
            network::find(case)
        };
    };
    let others = failed.iter().filter(|rule| !passes(rule)).count() - 1;
    let mut message = failure_text(first, view);
    match others {
        0 => {}
        1 => message.push_str(" (and one more rule)"),
        n => write!(message, " (and {n} more rules)").expect("a String takes every write"),
    }
    let remedy = remedies(&failed, view, case.typos);
    let cause = cause(first);
    if !has_pods {
        return Finding::new(Verdict::Excluded, cause, message).remedy(remedy);
    }
    let (message, remedy) = lingering(case, fit, &message, remedy);
    Finding::new(Verdict::Lingers, cause, message).remedy(remedy)
}

fn lingering(
    case: &Case<'_>,
    fit: Fit,
    message: &str,
    to_make_eligible: String,
) -> (String, String) {
    if fit.keep {
        let delete = case.decisive().map(|standing| {
            let name = &standing.pod.name;
            let namespace = &case.snapshot.daemon_set.namespace;
            format!(
                "# to remove it:\nkubectl delete pod -n {namespace} {name}\n# to make the node eligible:\n"
            )
        });
        return (
            format!("{message}; NoSchedule keeps new pods away and leaves running ones alone"),
            format!("{}{to_make_eligible}", delete.unwrap_or_default()),
        );
    }
    let leaving = case.place.pods.iter().all(super::SurveyedPod::terminating);
    let then = if leaving {
        "its pod is being deleted"
    } else {
        "the controller deletes its pod"
    };
    (format!("{message}; {then}"), to_make_eligible)
}

fn cause(rule: &Rule<'_>) -> Cause {
    match rule {
        Rule::Name(_) => Cause::NodeName,
        Rule::Label(..) => Cause::NodeSelector,
        Rule::Affinity(_) => Cause::NodeAffinity,
        Rule::Taint(_) => Cause::Taint,
    }
}

fn rule_text(rule: &Rule<'_>) -> String {
    match rule {
        Rule::Name(name) => format!("spec.nodeName is {name}"),
        Rule::Label(key, value) => format!("nodeSelector {key}={value}"),
        Rule::Affinity(_) => "required node affinity".to_owned(),
        Rule::Taint(taint) => format!("taint {}", taint_text(taint)),
    }
}

fn found(rule: &Rule<'_>, node: &NodeView, rules: &Rules) -> String {
    match rule {
        Rule::Name(_) => format!("the node is {}", node.name),
        Rule::Label(key, _) => has(node, key),
        Rule::Affinity(selector) if selector.matches(&node.name, &node.labels) => {
            "a term matches".to_owned()
        }
        Rule::Affinity(selector) => terms(selector, node),
        Rule::Taint(taint) => {
            let by = rules.tolerations().iter().find(|t| t.tolerates(taint));
            by.map_or_else(
                || "not tolerated".to_owned(),
                |t| format!("tolerated by {}", toleration_text(t)),
            )
        }
    }
}

fn failure_text(rule: &Rule<'_>, node: &NodeView) -> String {
    match rule {
        Rule::Name(name) => format!("spec.nodeName of the template is {name}"),
        Rule::Label(key, value) => {
            format!("nodeSelector wants {key}={value}, {}", has(node, key))
        }
        Rule::Affinity(selector) => {
            format!(
                "required node affinity does not match: {}",
                terms(selector, node)
            )
        }
        Rule::Taint(taint) => format!("taint {} is not tolerated", taint_text(taint)),
    }
}

fn has(node: &NodeView, key: &str) -> String {
    match node.labels.get(key) {
        Some(value) => format!("the node has {key}={value}"),
        None => format!("the node has no label {key}"),
    }
}

/// What each term of required affinity is missing.
fn terms(selector: &NodeSelector, node: &NodeView) -> String {
    let all: Vec<Vec<Part<'_>>> = selector.unmet(&node.name, &node.labels).collect();
    let several = all.len() > 1;
    let texts = all.iter().enumerate().map(|(index, parts)| {
        let parts: Vec<String> = parts.iter().map(|part| part_text(part, node)).collect();
        let parts = parts.join(", and ");
        if several {
            format!("term {} {parts}", index + 1)
        } else {
            parts
        }
    });
    let texts: Vec<String> = texts.collect();
    if texts.is_empty() {
        return "it has no term that could match".to_owned();
    }
    texts.join("; ")
}

fn part_text(part: &Part<'_>, node: &NodeView) -> String {
    match part {
        Part::Label(requirement) => {
            let key = requirement.key();
            format!(
                "wants {}, {}",
                requirement_text(requirement),
                has(node, key)
            )
        }
        Part::Field(field) => {
            let relation = if field.negated() { "is not" } else { "is" };
            format!("wants that {} {relation} {}", field.key(), field.value())
        }
    }
}

pub(super) fn requirement_text(requirement: &Requirement) -> String {
    let key = requirement.key();
    let values = requirement.values().join(", ");
    match requirement.operator() {
        Operator::In => format!("{key} in ({values})"),
        Operator::NotIn => format!("{key} not in ({values})"),
        Operator::Exists => format!("a label {key}"),
        Operator::DoesNotExist => format!("no label {key}"),
        Operator::GreaterThan => format!("{key} above {values}"),
        Operator::LessThan => format!("{key} below {values}"),
        _ => format!("{key} as {values}"),
    }
}

pub(super) fn taint_text(taint: &Taint) -> String {
    match taint.value.as_str() {
        "" => format!("{}:{}", taint.key, taint.effect),
        value => format!("{}={value}:{}", taint.key, taint.effect),
    }
}

pub(super) fn toleration_text(toleration: &Toleration) -> String {
    let key = match toleration.key.as_str() {
        "" => "any key",
        key => key,
    };
    let effect = match toleration.effect.as_str() {
        "" => "any effect",
        effect => effect,
    };
    if toleration.operator == "Exists" {
        format!("{key} ({effect})")
    } else {
        format!("{key}={} ({effect})", toleration.value)
    }
}
