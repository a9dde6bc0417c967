//! The default roles and bindings. Every start restores what is missing of them and keeps what was added,
//! unless the annotation `rbac.authorization.kubernetes.io/autoupdate` is `false`.

mod policy;

use std::sync::Arc;

use futures_util::future::try_join_all;
use kennel_store::Op;
use serde_json::Value;

use self::policy::{AUTO_UPDATE, Expected};
use super::server_user;
use crate::api::Api;
use crate::authorize::rbac::{Rule, cover};
use crate::kinds::rbac::GROUP;
use crate::object::{self, Document};
use crate::registry::{self, Resource};
use crate::status::{ApiError, Result};
use crate::tree::{at, has, list, map, same, set, text};
use crate::verbs;

pub(super) async fn ensure(api: &Arc<Api>) -> Result<()> {
    // All at once: the store selects what comes together into few syncs.
    let all = policy::expected();
    try_join_all(all.iter().map(|expected| reconcile(api, expected))).await?;
    Ok(())
}

async fn reconcile(api: &Arc<Api>, expected: &Expected) -> Result<()> {
    let row = registry::served(GROUP, expected.plural);
    let namespace = expected.namespace.as_deref();
    let name = text(&expected.tree, "metadata.name");
    let Some(stored) = api.store.get(&object::key(row, namespace, name)) else {
        return create(api, row, expected).await;
    };
    let existing: Value = serde_json::from_slice(&stored.value).unwrap_or_default();
    if is_protected(&existing) {
        return Ok(());
    }
    if !same(at(&existing, "roleRef"), at(&expected.tree, "roleRef")) {
        // The roleRef of a binding is immutable: delete the binding and create it again.
        let (key, expected_revision) = (object::key(row, namespace, name), stored.modified);
        let gone = api.store.write(Op::Delete {
            key,
            expected: expected_revision,
        });
        gone.await.map_err(|_| {
            ApiError::unavailable("a default binding was changed while it was reconciled")
        })?;
        return create(api, row, expected).await;
    }
    if completed(&existing, &expected.tree).is_none() {
        return Ok(());
    }
    let complete = |tree: &mut Value| {
        if let Some(completed) = completed(tree, &expected.tree) {
            *tree = completed;
        }
    };
    verbs::amend(api, &server_user(), row, namespace, name, complete).await
}

async fn create(api: &Arc<Api>, row: &'static Resource, expected: &Expected) -> Result<()> {
    let document = Document::new(expected.tree.clone());
    let namespace = expected.namespace.as_deref();
    match verbs::insert(api, &server_user(), row, namespace, document).await {
        // The namespace of a default role may be terminating.
        Err(error) if matches!(error.code, 403 | 404) => Ok(()),
        other => other,
    }
}

fn is_protected(object: &Value) -> bool {
    map(object, "metadata.annotations").get(AUTO_UPDATE) == Some(&Value::from("false"))
}

/// The object with what it lacks; `None` if it lacks nothing.
fn completed(existing: &Value, expected: &Value) -> Option<Value> {
    let mut completed = existing.clone();
    for field in ["labels", "annotations"] {
        for (key, value) in map(expected, &format!("metadata.{field}")) {
            let there = &mut completed["metadata"][field][key.as_str()];
            if there.is_null() {
                *there = value.clone();
            }
        }
    }
    let selectors = "aggregationRule.clusterRoleSelectors";
    if has(expected, "aggregationRule") {
        add(&mut completed, selectors, list(expected, selectors));
    } else if has(expected, "rules") {
        let (held, wanted) = (Rule::all_of(existing), Rule::all_of(expected));
        let held: Vec<&Rule> = held.iter().collect();
        let missing = cover::missing(&held, &wanted);
        let missing: Vec<Value> = missing.iter().map(Rule::to_value).collect();
        add(&mut completed, "rules", &missing);
    }
    add(&mut completed, "subjects", list(expected, "subjects"));
    (!same(&completed, existing)).then_some(completed)
}

/// Adds the items that are missing to the list at `path`.
fn add(tree: &mut Value, path: &str, wanted: &[Value]) {
    let mut items = list(tree, path).to_vec();
    for item in wanted {
        if !items.iter().any(|there| same(there, item)) {
            items.push(item.clone());
        }
    }
    if !items.is_empty() {
        set(tree, path, items.into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(existing: &Value, expected: &Value, complete: Option<&Value>) {
        assert_eq!(
            completed(existing, expected).as_ref(),
            complete,
            "{existing} {expected}"
        );
    }

    #[test]
    fn missing_rules_are_added_and_added_ones_stay() {
        let rule =
            |verbs: &[&str]| json!({"verbs": verbs, "apiGroups": [""], "resources": ["pods"]});
        let role = |rules: Value| json!({"metadata": {"labels": {"a": "b"}}, "rules": rules});
        let expected = role(json!([rule(&["get", "list"])]));
        check(&expected, &expected, None);
        check(&role(json!([rule(&["*"])])), &expected, None);
        check(
            &role(json!([rule(&["get", "delete"])])),
            &expected,
            Some(&role(json!([rule(&["get", "delete"]), rule(&["list"])]))),
        );
        check(
            &json!({"metadata": {"labels": {"a": "other", "c": "d"}}, "rules": [rule(&["*"])]}),
            &expected,
            None,
        );
        check(
            &json!({"metadata": {}}),
            &role(json!([rule(&["get"])])),
            Some(&role(json!([rule(&["get"])]))),
        );
    }

    #[test]
    fn subjects_and_selectors_are_added_and_gathered_rules_left_alone() {
        let subject = |name: &str| json!({"kind": "User", "name": name});
        check(
            &json!({"subjects": [subject("a")]}),
            &json!({"subjects": [subject("b")]}),
            Some(&json!({"subjects": [subject("a"), subject("b")]})),
        );
        let gathering = |names: &[&str]| {
            let selectors = names.iter().map(|n| json!({"matchLabels": {*n: "true"}}));
            json!({"clusterRoleSelectors": selectors.collect::<Vec<_>>()})
        };
        check(
            &json!({"aggregationRule": gathering(&["a"]), "rules": [1]}),
            &json!({"aggregationRule": gathering(&["b"]), "rules": []}),
            Some(&json!({"aggregationRule": gathering(&["a", "b"]), "rules": [1]})),
        );
    }

    #[test]
    fn the_autoupdate_annotation_protects() {
        let marked = |mark: &str| json!({"metadata": {"annotations": {AUTO_UPDATE: mark}}});
        assert!(is_protected(&marked("false")));
        assert!(!is_protected(&marked("true")));
        assert!(!is_protected(&json!({})));
    }
}
