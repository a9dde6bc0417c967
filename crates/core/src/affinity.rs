//! Node affinity: required (`nodeSelectorTerms`) and preferred.
//!
//! Terms are parsed once and matched often.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::selector::{Operator, Requirement};
use crate::tree::{list, text, texts};

/// The only field that node selector terms support.
pub const NAME_FIELD: &str = "metadata.name";

/// A parsed node selector: matches if any of its terms does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeSelector {
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Term {
    labels: Vec<Requirement>,
    fields: Vec<FieldRequirement>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldRequirement {
    key: String,
    value: String,
    negated: bool,
}

/// One requirement of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    Label(&'a Requirement),
    Field(&'a FieldRequirement),
}

impl NodeSelector {
    /// Parses a `NodeSelector` object. Empty and invalid terms match nothing.
    pub fn parse(object: &Value) -> Self {
        let terms = list(object, "nodeSelectorTerms");
        Self {
            terms: terms.iter().filter_map(Term::parse).collect(),
        }
    }

    pub fn matches(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        self.terms.iter().any(|term| term.matches(name, labels))
    }

    /// The requirements of each term that a node does not meet; empty for a term that matches.
    pub fn unmet<'a>(
        &'a self,
        name: &'a str,
        labels: &'a BTreeMap<String, String>,
    ) -> impl Iterator<Item = Vec<Part<'a>>> {
        let of = |term: &'a Term| term.unmet(name, labels).collect();
        self.terms.iter().map(of)
    }

    /// The keys of the labels that the terms read.
    pub fn label_keys(&self) -> impl Iterator<Item = &str> {
        let labels = self.terms.iter().flat_map(|term| &term.labels);
        labels.map(Requirement::key)
    }

    /// The name of the only node that can match, if the terms name one. Daemon pods are pinned in this way, and
    /// the scheduler considers only that node.
    pub fn pinned(&self) -> Option<&str> {
        let [term] = self.terms.as_slice() else {
            return None;
        };
        let by_name = |f: &&FieldRequirement| f.key == NAME_FIELD && !f.negated;
        term.fields.iter().find(by_name).map(|f| f.value.as_str())
    }

    /// Whether it has no other requirement than the name of one node.
    pub fn only_pins(&self) -> bool {
        let only = |term: &Term| term.labels.is_empty() && term.fields.len() == 1;
        self.pinned().is_some() && self.terms.iter().all(only)
    }
}

/// One preference of preferred node affinity.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Preference {
    /// 1 to 100.
    pub weight: i64,
    term: Term,
}

impl Preference {
    /// Parses a list of `PreferredSchedulingTerm`s; skips empty and invalid ones.
    pub fn list(terms: &Value) -> Vec<Self> {
        let terms = terms.as_array().into_iter().flatten();
        terms
            .filter_map(|item| {
                let weight = item.get("weight").and_then(Value::as_i64)?;
                let term = Term::parse(item.get("preference")?)?;
                (weight != 0).then_some(Self { weight, term })
            })
            .collect()
    }

    pub fn matches(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        self.term.matches(name, labels)
    }
}

impl Term {
    fn parse(object: &Value) -> Option<Self> {
        let expressions = list(object, "matchExpressions");
        let fields = list(object, "matchFields");
        if expressions.is_empty() && fields.is_empty() {
            return None;
        }
        Some(Self {
            labels: expressions.iter().map(expression).collect::<Option<_>>()?,
            fields: fields.iter().map(field).collect::<Option<_>>()?,
        })
    }

    fn matches(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        self.unmet(name, labels).next().is_none()
    }

    fn unmet<'a>(
        &'a self,
        name: &'a str,
        labels: &'a BTreeMap<String, String>,
    ) -> impl Iterator<Item = Part<'a>> {
        let label = |key: &str| labels.get(key).map(String::as_str);
        let refuses = move |r: &&Requirement| !r.accepts(label(r.key()));
        let labels = self.labels.iter().filter(refuses).map(Part::Label);
        let fields = self.fields.iter().filter(move |f| !f.accepts(name));
        labels.chain(fields.map(Part::Field))
    }
}

impl FieldRequirement {
    pub fn key(&self) -> &str {
        &self.key
    }

    pub fn value(&self) -> &str {
        &self.value
    }

    /// `NotIn` instead of `In`.
    pub fn negated(&self) -> bool {
        self.negated
    }

    fn accepts(&self, name: &str) -> bool {
        let found = if self.key == NAME_FIELD { name } else { "" };
        (found == self.value) != self.negated
    }
}

fn expression(object: &Value) -> Option<Requirement> {
    let operator = match text(object, "operator") {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        "Gt" => Operator::GreaterThan,
        "Lt" => Operator::LessThan,
        _ => return None,
    };
    let values = texts(object, "values").map(str::to_owned);
    Requirement::new(text(object, "key"), operator, values).ok()
}

fn field(object: &Value) -> Option<FieldRequirement> {
    let negated = match text(object, "operator") {
        "In" => false,
        "NotIn" => true,
        _ => return None,
    };
    let [Value::String(value)] = list(object, "values") else {
        return None;
    };
    Some(FieldRequirement {
        key: text(object, "key").to_owned(),
        value: value.clone(),
        negated,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(terms: &Value, expected: bool) {
        let selector = NodeSelector::parse(&json!({ "nodeSelectorTerms": terms }));
        let labels = BTreeMap::from([
            ("zone".to_owned(), "a".to_owned()),
            ("cores".to_owned(), "8".to_owned()),
        ]);
        assert_eq!(selector.matches("n1", &labels), expected, "{terms}");
    }

    fn label(key: &str, operator: &str, values: &[&str]) -> Value {
        json!([{"matchExpressions": [{"key": key, "operator": operator, "values": values}]}])
    }

    fn name(operator: &str, values: &[&str]) -> Value {
        json!([{"matchFields": [{"key": NAME_FIELD, "operator": operator, "values": values}]}])
    }

    #[test]
    fn s2_2_3_each_operator() {
        check(&label("zone", "In", &["a", "b"]), true);
        check(&label("zone", "NotIn", &["a"]), false);
        check(&label("rack", "NotIn", &["a"]), true);
        check(&label("zone", "Exists", &[]), true);
        check(&label("rack", "DoesNotExist", &[]), true);
        check(&label("zone", "DoesNotExist", &[]), false);
        check(&label("cores", "Gt", &["7"]), true);
        check(&label("cores", "Gt", &["8"]), false);
        check(&label("cores", "Lt", &["9"]), true);
        check(&label("zone", "Lt", &["9"]), false);
        check(&name("In", &["n1"]), true);
        check(&name("In", &["n2"]), false);
        check(&name("NotIn", &["n2"]), true);
    }

    #[test]
    fn s2_2_3_terms_are_ored_and_their_parts_anded() {
        let wrong =
            json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]});
        let right =
            json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]});
        check(&json!([wrong, right]), true);
        let both = json!([{
            "matchExpressions": [{"key": "zone", "operator": "Exists"}],
            "matchFields": [{"key": NAME_FIELD, "operator": "In", "values": ["n2"]}]}]);
        check(&both, false);
    }

    #[test]
    fn s2_2_3_empty_and_invalid_terms_match_nothing() {
        check(&json!([]), false);
        check(&json!([{}]), false);
        check(&label("zone", "In", &[]), false);
        check(&label("zone", "Near", &["a"]), false);
        check(&label("cores", "Gt", &["many"]), false);
        check(&name("In", &["n1", "n2"]), false);
        check(&name("Exists", &[]), false);
        let invalid = label("zone", "Near", &["a"])[0].clone();
        check(&json!([invalid, name("In", &["n1"])[0]]), true);
    }

    #[test]
    fn a_single_name_pins() {
        let pinned = |terms: Value| {
            let selector = NodeSelector::parse(&json!({ "nodeSelectorTerms": terms }));
            selector.pinned().map(str::to_owned)
        };
        assert_eq!(pinned(name("In", &["n1"])).as_deref(), Some("n1"));
        assert_eq!(pinned(name("NotIn", &["n1"])), None);
        assert_eq!(pinned(label("zone", "Exists", &[])), None);
        let two = json!([name("In", &["n1"])[0], name("In", &["n2"])[0]]);
        assert_eq!(pinned(two), None);
    }
}
