//! What would make a node eligible: labels for the node, or changes of the template. What the template probably misspells is
//! changed there, and no node is given a misspelt label.

use super::label_index::SuggestedLabel;
use super::network;
use super::typo::Typos;
use crate::affinity::{NodeSelector, Part};
use crate::daemonset::NodeView;
use crate::daemonset::fit::{NOT_READY_TAINTS, Rule};
use crate::selector::Operator;
use crate::taint::Taint;

/// The lines of a remedy, by kind.
#[derive(Default)]
struct Changes {
    commands: Vec<String>,
    /// Labels for the node, in the form of `kubectl label`.
    labels: Vec<String>,
    /// YAML of tolerations to add, and of those that replace misspelt ones.
    tolerations: String,
    corrected_tolerations: String,
}

/// Commands and YAML for every rule that fails.
pub(super) fn remedies(failed: &[Rule<'_>], node: &NodeView, typos: &Typos) -> String {
    let mut changes = Changes::default();
    for rule in failed {
        changes.add(rule, node, typos);
    }
    changes.text(node)
}

impl Changes {
    fn add(&mut self, rule: &Rule<'_>, node: &NodeView, typos: &Typos) {
        match rule {
            Rule::Name(name) => self.commands.push(match typos.node_name() {
                Some(meant) => {
                    format!("# in spec.template.spec.nodeName, write {meant} instead of {name}")
                }
                None => "# remove spec.template.spec.nodeName".to_owned(),
            }),
            Rule::Label(key, value) => match typos.label(key, value) {
                Some(meant) => self.commands.push(corrected_selector(key, value, meant)),
                None => self.labels.push(format!("{key}={value}")),
            },
            Rule::Affinity(selector) => match affinity_typo(selector, node, typos) {
                Some((key, meant)) => self.commands.push(format!(
                    "# in spec.template.spec.affinity, write {} instead of {key}",
                    meant.text()
                )),
                None => match affinity_labels(selector, node) {
                    Some(more) => self.labels.extend(more),
                    None => self.commands.push(
                        "# change required node affinity in spec.template.spec.affinity".to_owned(),
                    ),
                },
            },
            Rule::Taint(taint) if NOT_READY_TAINTS.contains(&taint.key.as_str()) => {}
            Rule::Taint(taint) if taint.key == network::TAINT => {}
            Rule::Taint(taint) => match typos.toleration(taint) {
                Some(_) => self.corrected_tolerations.push_str(&toleration_yaml(taint)),
                None => self.tolerations.push_str(&toleration_yaml(taint)),
            },
        }
    }

    fn text(self, node: &NodeView) -> String {
        let mut commands = self.commands;
        if !self.labels.is_empty() {
            let overwrite = self.labels.iter().any(|label| {
                let key = label.split('=').next().unwrap_or_default();
                label.contains('=') && node.labels.contains_key(key)
            });
            let overwrite = if overwrite { " --overwrite" } else { "" };
            let labels = self.labels.join(" ");
            commands.push(format!(
                "kubectl label node {} {labels}{overwrite}",
                node.name
            ));
        }
        let parts = [
            ("add to", self.tolerations),
            ("correct in", self.corrected_tolerations),
        ];
        for (what, yaml) in parts.iter().filter(|(_, yaml)| !yaml.is_empty()) {
            let yaml = yaml.trim_end();
            commands.push(format!(
                "# {what} spec.template.spec:\ntolerations:\n{yaml}"
            ));
        }
        commands.join("\n")
    }
}

fn corrected_selector(key: &str, value: &str, meant: &SuggestedLabel) -> String {
    let (meant_key, meant_value) = (&meant.key, meant.value.as_str());
    let value = if meant_value.is_empty() {
        value
    } else {
        meant_value
    };
    format!(
        "# correct in spec.template.spec, instead of {key}:\nnodeSelector:\n  {meant_key}: \"{value}\""
    )
}

/// A misspelling that keeps required affinity from matching: its key, and the label that is probably meant.
fn affinity_typo<'a>(
    selector: &'a NodeSelector,
    node: &'a NodeView,
    typos: &'a Typos,
) -> Option<(&'a str, &'a SuggestedLabel)> {
    let mut parts = selector.unmet(&node.name, &node.labels).flatten();
    parts.find_map(|part| match part {
        Part::Label(requirement) => {
            let key = requirement.key();
            Some((key, typos.affinity(key)?))
        }
        Part::Field(_) => None,
    })
}

/// The labels that the closest term is missing; nothing if labels alone cannot make a term match.
fn affinity_labels(selector: &NodeSelector, node: &NodeView) -> Option<Vec<String>> {
    let terms = selector.unmet(&node.name, &node.labels);
    let labels = terms.filter_map(|parts| parts.iter().map(label_for).collect::<Option<Vec<_>>>());
    labels.min_by_key(Vec::len)
}

fn label_for(part: &Part<'_>) -> Option<String> {
    let Part::Label(requirement) = part else {
        return None;
    };
    let key = requirement.key();
    let first = requirement.values().first();
    match requirement.operator() {
        Operator::In => first.map(|value| format!("{key}={value}")),
        Operator::Exists => Some(format!("{key}=")),
        Operator::NotIn | Operator::DoesNotExist => Some(format!("{key}-")),
        Operator::GreaterThan => first?
            .parse::<i64>()
            .ok()
            .map(|n| format!("{key}={}", n + 1)),
        Operator::LessThan => first?
            .parse::<i64>()
            .ok()
            .map(|n| format!("{key}={}", n - 1)),
        _ => None,
    }
}

/// One item of `tolerations` for exactly this taint.
fn toleration_yaml(taint: &Taint) -> String {
    let how = match taint.value.as_str() {
        "" => "  operator: Exists\n".to_owned(),
        value => format!("  operator: Equal\n  value: \"{value}\"\n"),
    };
    format!("- key: {}\n{how}  effect: {}\n", taint.key, taint.effect)
}
