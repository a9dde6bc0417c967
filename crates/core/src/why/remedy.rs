//! What would make a node eligible: labels for the node, or changes of the template.

use crate::affinity::{NodeSelector, Part};
use crate::daemonset::NodeView;
use crate::daemonset::fit::{NOT_READY_TAINTS, Rule};
use crate::selector::Operator;
use crate::taint::Taint;

/// Commands and YAML for every rule that fails.
pub(super) fn remedies(failed: &[Rule<'_>], node: &NodeView) -> String {
    let mut commands: Vec<String> = Vec::new();
    let mut labels: Vec<String> = Vec::new();
    let mut tolerations = String::new();
    for rule in failed {
        match rule {
            Rule::Name(_) => commands.push("# remove spec.template.spec.nodeName".to_owned()),
            Rule::Label(key, value) => labels.push(format!("{key}={value}")),
            Rule::Affinity(selector) => match affinity_labels(selector, node) {
                Some(more) => labels.extend(more),
                None => commands.push(
                    "# change required node affinity in spec.template.spec.affinity".to_owned(),
                ),
            },
            Rule::Taint(taint) if NOT_READY_TAINTS.contains(&taint.key.as_str()) => {}
            Rule::Taint(taint) => tolerations.push_str(&toleration_yaml(taint)),
        }
    }
    if !labels.is_empty() {
        let overwrite = labels.iter().any(|label| {
            let key = label.split('=').next().unwrap_or_default();
            label.contains('=') && node.labels.contains_key(key)
        });
        let overwrite = if overwrite { " --overwrite" } else { "" };
        commands.push(format!(
            "kubectl label node {} {}{overwrite}",
            node.name,
            labels.join(" ")
        ));
    }
    if !tolerations.is_empty() {
        commands.push(format!(
            "# add to spec.template.spec:\ntolerations:\n{}",
            tolerations.trim_end()
        ));
    }
    commands.join("\n")
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
