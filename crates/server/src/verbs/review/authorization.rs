//! Reviews of authorisation: access reviews and rules reviews. [`crate::authorize`] decides.

mod check;

use kennel_core::certificates::revocation::ISSUED_AT;
use kennel_core::selector::FieldSelector;
use kennel_types::{Timestamp, Verb};
use serde_json::{Map, Value, json};

use super::meta;
use crate::api::Api;
use crate::authorize::rbac::Rule;
use crate::authorize::{Attributes, ResourceAttributes, Verdict};
use crate::registry::{CreateOnly, Subject};
use crate::request::User;
use crate::revocation;
use crate::status::{ApiError, Result};
use crate::tree::{at, default_to, has, list, map, text, texts};
use crate::verbs::call::Call;

/// Fills in the caller's rules in a namespace.
pub(super) fn rules_review(api: &Api, call: &Call, review: &mut Value) -> Result<()> {
    let status = rules(api, &call.user, text(review, "spec.namespace"))?;
    review["spec"] = json!({});
    review["status"] = status;
    Ok(())
}

/// Fills in whether the subject may do what the review asks about.
pub(super) fn access_review(
    api: &Api,
    call: &Call,
    (row, subject): (&'static CreateOnly, Subject),
    namespace: Option<&str>,
    review: &mut Value,
) -> Result<()> {
    default_to(review, "metadata", json!({}));
    meta::check_namespace(review, namespace)?;
    let errors = check::review(subject, review);
    if !errors.is_empty() {
        return Err(ApiError::invalid_kind(row.group, row.kind, "", &errors));
    }
    let verdict = match subject {
        Subject::Caller => verdict(api, &call.user, &review["spec"]),
        Subject::Any | Subject::InNamespace => {
            let user = named_user(&review["spec"]);
            if has_revoked_certificate(api, &user) {
                Verdict {
                    allowed: false,
                    reason: "the client certificate is revoked".to_owned(),
                }
            } else {
                verdict(api, &user, &review["spec"])
            }
        }
    };
    let mut status = json!({"allowed": verdict.allowed});
    if !verdict.reason.is_empty() {
        status["reason"] = verdict.reason.into();
    }
    review["status"] = status;
    Ok(())
}

/// The user a review is about.
fn named_user(spec: &Value) -> User {
    let extra = map(spec, "extra").iter().map(|(key, values)| {
        let values = values.as_array().into_iter().flatten();
        let values = values.filter_map(Value::as_str).map(str::to_owned);
        (key.to_lowercase(), values.collect())
    });
    User {
        name: text(spec, "user").to_owned(),
        uid: text(spec, "uid").to_owned(),
        groups: texts(spec, "groups").map(str::to_owned).collect(),
        extra: extra.collect(),
    }
}

/// Agents tell when the certificate of their client was issued.
fn has_revoked_certificate(api: &Api, user: &User) -> bool {
    let issued = user.extra.get(ISSUED_AT).into_iter().flatten();
    let mut issued = issued.filter_map(|text| text.parse().ok());
    issued.any(|seconds| {
        let issued = Timestamp::from_secs(seconds);
        revocation::is_revoked(&*api.store, &user.name, issued)
    })
}

fn verdict(api: &Api, user: &User, spec: &Value) -> Verdict {
    if has(spec, "nonResourceAttributes") {
        let asked = at(spec, "nonResourceAttributes");
        let (verb, path) = (Verb::from(text(asked, "verb")), text(asked, "path"));
        return api
            .authorizer
            .verdict(user, &Attributes::Path { verb, path });
    }
    let asked = at(spec, "resourceAttributes");
    let fields = selector(at(asked, "fieldSelector"));
    let asked = ResourceAttributes {
        verb: Verb::from(text(asked, "verb")),
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

/// The field selector of a review. Requirements that field selectors cannot express are ignored.
fn selector(given: &Value) -> Option<FieldSelector> {
    let raw = text(given, "rawSelector");
    if !raw.is_empty() {
        return FieldSelector::parse(raw).ok();
    }
    let terms = list(given, "requirements").iter().filter_map(|term| {
        let key = text(term, "key");
        let values: Vec<&str> = texts(term, "values").collect();
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
    // The rights of a node depend on its pods, so they cannot be listed as rules.
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
