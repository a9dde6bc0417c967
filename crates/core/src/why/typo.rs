//! What a template wants of nodes, and no node has: probably misspelt, if it resembles what nodes have.

use std::collections::BTreeMap;

use super::answer::Note;
use super::eligibility::{requirement_text, taint_text, toleration_text};
use super::label_index::{LabelIndex, Lookup, SuggestedLabel};
use super::resemblance::{closest, distance, key_distance};
use super::snapshot::NodeSnapshot;
use crate::affinity::Part;
use crate::daemonset::fit::NOT_READY_TAINTS;
use crate::daemonset::fit::{Rule, Rules, parse_tolerations};
use crate::selector::{Operator, Requirement};
use crate::taint::{Taint, Toleration};

/// The misspellings of one template.
#[derive(Debug, Default)]
pub(super) struct Typos {
    node_name: Option<String>,
    /// By key and value of the node selector.
    labels: BTreeMap<(String, String), SuggestedLabel>,
    /// By key of required affinity.
    affinity: BTreeMap<String, SuggestedLabel>,
    tolerations: Vec<Toleration>,
    warnings: Vec<String>,
    /// Of what no node has, and nothing resembles.
    absent: Vec<String>,
}

impl Typos {
    pub(super) fn of(template: &serde_json::Value, rules: &Rules, nodes: &[NodeSnapshot]) -> Self {
        let mut typos = Self::default();
        let Some(any) = nodes.first() else {
            return typos;
        };
        let index = LabelIndex::of(if rules.select_all() { &[] } else { nodes });
        for (rule, _) in rules.checks(&any.view) {
            match rule {
                Rule::Name(name) => typos.check_name(name, nodes),
                Rule::Label(key, value) => typos.check_label(&index, key, value),
                Rule::Affinity(selector) => {
                    // Without labels, exactly those requirements are unmet that want one.
                    for part in selector.unmet("", &BTreeMap::new()).flatten() {
                        if let Part::Label(requirement) = part {
                            typos.check_requirement(&index, requirement);
                        }
                    }
                }
                Rule::Taint(_) => {}
            }
        }
        for toleration in parse_tolerations(&template["spec"]["tolerations"]) {
            typos.check_toleration(&toleration, rules, nodes);
        }
        typos
    }

    fn check_name(&mut self, name: &str, nodes: &[NodeSnapshot]) {
        if nodes.iter().any(|node| &*node.view.name == name) {
            return;
        }
        let title = format!("spec.nodeName of the template is {name}, which no node is");
        match closest(name, nodes.iter().map(|node| &*node.view.name)) {
            Some(meant) => {
                self.warnings
                    .push(format!("{title}: did you mean {meant}?"));
                self.node_name = Some(meant.to_owned());
            }
            None => self.absent.push(title),
        }
    }

    fn check_label(&mut self, index: &LabelIndex<'_>, key: &str, value: &str) {
        let title = format!("nodeSelector wants {key}={value}, which no node has");
        if let Some(meant) = self.check(index, &title, key, &[value]) {
            let wanted = (key.to_owned(), value.to_owned());
            self.labels.insert(wanted, meant);
        }
    }

    fn check_requirement(&mut self, index: &LabelIndex<'_>, requirement: &Requirement) {
        let values: Vec<&str> = match requirement.operator() {
            Operator::In => requirement.values().iter().map(String::as_str).collect(),
            _ => Vec::new(),
        };
        let text = requirement_text(requirement);
        let title = format!("required node affinity wants {text}, which no node has");
        if let Some(meant) = self.check(index, &title, requirement.key(), &values) {
            self.affinity.insert(requirement.key().to_owned(), meant);
        }
    }

    /// Looks for a label with this key and one of these values, any if there are none.
    fn check(
        &mut self,
        index: &LabelIndex<'_>,
        title: &str,
        key: &str,
        values: &[&str],
    ) -> Option<SuggestedLabel> {
        match index.find(key, values) {
            Lookup::Present => None,
            Lookup::Absent => {
                let known = index.values_text(key);
                self.absent.push(format!("{title}{known}"));
                None
            }
            Lookup::Typo(meant) => {
                let nodes = index.nodes_text(&meant);
                let text = meant.text();
                self.warnings
                    .push(format!("{title}: did you mean {text}{nodes}?"));
                Some(meant)
            }
        }
    }

    fn check_toleration(&mut self, toleration: &Toleration, rules: &Rules, nodes: &[NodeSnapshot]) {
        let taints = || {
            let nodes = nodes.iter().map(|node| &node.view);
            nodes.flat_map(|node| node.taints.iter().map(move |taint| (node, taint)))
        };
        if toleration.key.is_empty() || taints().any(|(_, taint)| toleration.tolerates(taint)) {
            return;
        }
        let repels = |taint: &Taint| {
            taint.effect.repels() && !NOT_READY_TAINTS.contains(&taint.key.as_str())
        };
        let tolerated = |taint: &Taint| rules.tolerations().iter().any(|t| t.tolerates(taint));
        let candidates = taints().filter(|(_, taint)| repels(taint) && !tolerated(taint));
        let rated = candidates.filter_map(|(node, taint)| {
            let distance = toleration_distance(toleration, taint)?;
            Some((distance, node, taint))
        });
        let Some((_, node, taint)) = rated.min_by_key(|(distance, ..)| *distance) else {
            return;
        };
        self.warnings.push(format!(
            "toleration {} matches no taint: did you mean {}, as on {}?",
            toleration_text(toleration),
            taint_text(taint),
            node.name
        ));
        self.tolerations.push(toleration.clone());
    }

    pub(super) fn node_name(&self) -> Option<&str> {
        self.node_name.as_deref()
    }

    /// The label that the node selector probably means.
    pub(super) fn label(&self, key: &str, value: &str) -> Option<&SuggestedLabel> {
        self.labels.get(&(key.to_owned(), value.to_owned()))
    }

    /// The label that required affinity probably means.
    pub(super) fn affinity(&self, key: &str) -> Option<&SuggestedLabel> {
        self.affinity.get(key)
    }

    /// The toleration that probably should tolerate this taint.
    pub(super) fn toleration(&self, taint: &Taint) -> Option<&Toleration> {
        let mut all = self.tolerations.iter();
        all.find(|toleration| toleration_distance(toleration, taint).is_some())
    }

    /// Whether a rule that fails would perhaps hold without the misspelling.
    fn explains(&self, rule: &Rule<'_>) -> bool {
        match rule {
            Rule::Name(_) => self.node_name.is_some(),
            Rule::Label(key, value) => self.label(key, value).is_some(),
            Rule::Affinity(_) => !self.affinity.is_empty(),
            Rule::Taint(taint) => self.toleration(taint).is_some(),
        }
    }

    /// Whether no node is eligible, and for some node misspellings are the only reason.
    pub(super) fn exclude_all(&self, rules: &Rules, nodes: &[NodeSnapshot]) -> bool {
        let failed = |node: &NodeSnapshot| -> Vec<bool> {
            let failed = rules.checks(&node.view).filter(|(_, holds)| !holds);
            failed.map(|(rule, _)| self.explains(&rule)).collect()
        };
        let failed: Vec<Vec<bool>> = nodes.iter().map(failed).collect();
        let none_eligible = failed.iter().all(|failed| !failed.is_empty());
        none_eligible && failed.iter().any(|failed| failed.iter().all(|typo| *typo))
    }

    /// Warnings about misspellings; if no node is eligible, also what no node has.
    pub(super) fn notes(&self, none_eligible: bool) -> Vec<Note> {
        let warnings = self.warnings.iter();
        let warnings = warnings.map(|text| Note::new("typo", text.clone()));
        let absent = self.absent.iter().filter(|_| none_eligible);
        let absent = absent.map(|text| Note::new("selects-nothing", text.clone()));
        warnings.chain(absent).collect()
    }
}

/// How far a toleration that tolerates nothing is from tolerating this taint.
fn toleration_distance(toleration: &Toleration, taint: &Taint) -> Option<usize> {
    let key = key_distance(&toleration.key, &taint.key)?;
    let value = match toleration.operator.as_str() {
        "Exists" => 0,
        // `operator: Exists` was probably forgotten.
        _ if toleration.value.is_empty() => usize::from(!taint.value.is_empty()),
        _ => distance(&toleration.value, &taint.value)?,
    };
    let other_effect = !toleration.effect.is_empty() && toleration.effect != taint.effect;
    Some(key + value + usize::from(other_effect))
}
