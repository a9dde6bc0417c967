//! Reviews about rights: may I, may they, what may I. They answer what [`crate::authorize`] decides, and
//! decide nothing themselves.

mod check;

use kennel_core::selector::FieldSelector;
use kennel_types::Verb;
use serde_json::{Map, Value, json};

use super::meta;
use crate::api::Api;
use crate::authorize::rbac::Rule;
use crate::authorize::{Attributes, ResourceAttributes, Verdict};
use crate::kinds::tree::{at, has, list, map, text, texts};
use crate::registry::Posted;
use crate::request::User;
use crate::status::{ApiError, Result};
use crate::verbs::call::Call;

/// Fills in the answer to a review.
pub(super) fn answer(
    api: &Api,
    call: &Call,
    row: &'static Posted,
    namespace: Option<&str>,
    review: &mut Value,
) -> Result<()> {
    if row.plural == "selfsubjectrulesreviews" {
        let status = rules(api, &call.user, text(review, "spec.namespace"))?;
        review["spec"] = json!({});
        review["status"] = status;
        return Ok(());
    }
    meta::check_namespace(review, namespace)?;
    let errors = check::review(row.plural, review);
    if !errors.is_empty() {
        return Err(ApiError::invalid_kind(row.group, row.kind, "", &errors));
    }
    let verdict = if row.plural == "selfsubjectaccessreviews" {
        verdict(api, &call.user, &review["spec"])
    } else {
        verdict(api, &subject(&review["spec"]), &review["spec"])
    };
    let mut status = json!({"allowed": verdict.allowed});
    if !verdict.reason.is_empty() {
        status["reason"] = verdict.reason.into();
    }
    review["status"] = status;
    Ok(())
}

/// The user a review is about.
fn subject(spec: &Value) -> User {
    let owned = |texts: Vec<&str>| texts.into_iter().map(str::to_owned).collect();
    let extra = map(spec, "extra").iter().map(|(key, values)| {
        let values = values.as_array().into_iter().flatten();
        let values = values.filter_map(Value::as_str).map(str::to_owned);
        (key.to_lowercase(), values.collect())
    });
    User {
        name: text(spec, "user").to_owned(),
        uid: text(spec, "uid").to_owned(),
        groups: owned(texts(spec, "groups")),
        extra: extra.collect(),
    }
}

fn verdict(api: &Api, user: &User, spec: &Value) -> Verdict {
    if has(spec, "nonResourceAttributes") {
        let asked = at(spec, "nonResourceAttributes");
        let (verb, path) = (Verb::parse(text(asked, "verb")), text(asked, "path"));
        return api
            .authorizer
            .verdict(user, &Attributes::Path { verb, path });
    }
    let asked = at(spec, "resourceAttributes");
    let fields = selector(at(asked, "fieldSelector"));
    let asked = ResourceAttributes {
        verb: Verb::parse(text(asked, "verb")),
        group: text(asked, "group"),
        version: text(asked, "version"),
        resource: text(asked, "resource"),
        subresource: text(asked, "subresource"),
        namespace: text(asked, "namespace"),
        name: text(asked, "name"),
        fields: fields.as_ref(),
    };
    api.authorizer.verdict(user, &Attributes::Resource(asked))
}

/// What a list would be narrowed to. Requirements that a list could not make narrow nothing.
fn selector(given: &Value) -> Option<FieldSelector> {
    let raw = text(given, "rawSelector");
    if !raw.is_empty() {
        return FieldSelector::parse(raw).ok();
    }
    let terms = list(given, "requirements").iter().filter_map(|term| {
        let (key, values) = (text(term, "key"), texts(term, "values"));
        match (text(term, "operator"), values.as_slice()) {
            ("In", [one]) => Some(format!("{key}={}", escaped(one))),
            ("NotIn", [one]) => Some(format!("{key}!={}", escaped(one))),
            _ => None,
        }
    });
    let terms: Vec<String> = terms.collect();
    FieldSelector::parse(&terms.join(",")).ok()
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace(',', "\\,")
        .replace('=', "\\=")
}

/// All rules of a user in a namespace.
fn rules(api: &Api, user: &User, namespace: &str) -> Result<Value> {
    if namespace.is_empty() {
        return Err(ApiError::bad_request("no namespace on request"));
    }
    let (rules, broken) = api.authorizer.rbac.rules(user, namespace);
    let (mut resources, mut paths) = (Vec::new(), Vec::new());
    for rule in rules.iter().flat_map(|rules| rules.iter()) {
        if !rule.resources.is_empty() {
            resources.push(resource_rule(rule));
        }
        if !rule.urls.is_empty() {
            paths.push(json!({"verbs": rule.verbs, "nonResourceURLs": rule.urls}));
        }
    }
    let mut status = json!({
        "resourceRules": resources, "nonResourceRules": paths, "incomplete": false,
    });
    let is_node = crate::authorize::node::node_of(user).is_some();
    // What a node may do depends on its pods and is in no list.
    let unlisted =
        is_node.then(|| "node authorizer does not support user rule resolution".to_owned());
    status["incomplete"] = is_node.into();
    let errors: Vec<String> = unlisted.into_iter().chain(broken).collect();
    match errors.as_slice() {
        [] => {}
        [one] => status["evaluationError"] = one.as_str().into(),
        many => status["evaluationError"] = format!("[{}]", many.join(", ")).into(),
    }
    Ok(status)
}

fn resource_rule(rule: &Rule) -> Value {
    let mut shown = Map::new();
    shown.insert("verbs".into(), json!(rule.verbs));
    shown.insert("apiGroups".into(), json!(rule.groups));
    shown.insert("resources".into(), json!(rule.resources));
    if !rule.names.is_empty() {
        shown.insert("resourceNames".into(), json!(rule.names));
    }
    shown.into()
}
