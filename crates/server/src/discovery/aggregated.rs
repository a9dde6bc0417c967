//! Aggregated discovery: all groups in two answers.

use serde_json::{Value, json};

use super::entry::{Entry, entries, groups};
use crate::registry::{Scope, Subresource};

/// `GET /api` (`core`) and `GET /apis` as `APIGroupDiscoveryList`; `version` is `v2` or `v2beta1`.
pub fn aggregated(core: bool, version: &str) -> Value {
    let items: Vec<Value> = if core {
        vec![group("", &["v1"])]
    } else {
        let groups = groups();
        groups
            .iter()
            .map(|(name, versions)| group(name, versions))
            .collect()
    };
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": format!("apidiscovery.k8s.io/{version}"),
        "metadata": {},
        "items": items,
    })
}

fn group(name: &str, versions: &[&str]) -> Value {
    let metadata = if name.is_empty() {
        json!({})
    } else {
        json!({"name": name})
    };
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| {
            let resources: Vec<Value> = entries(name, version).iter().map(resource).collect();
            json!({"version": version, "freshness": "Current", "resources": resources})
        })
        .collect();
    json!({"metadata": metadata, "versions": versions})
}

fn resource(entry: &Entry) -> Value {
    let scope = match entry.scope {
        Scope::Namespaced => "Namespaced",
        Scope::Cluster => "Cluster",
    };
    let mut listed = json!({
        "resource": entry.plural,
        "responseKind": response_kind(None, None, entry.kind),
        "scope": scope,
        "singularResource": entry.singular(),
        "verbs": entry.verbs,
    });
    if !entry.short_names.is_empty() {
        listed["shortNames"] = json!(entry.short_names);
    }
    if !entry.categories.is_empty() {
        listed["categories"] = json!(entry.categories);
    }
    if !entry.subresources.is_empty() {
        let subresources: Vec<Value> = entry.subresources.iter().map(subresource).collect();
        listed["subresources"] = json!(subresources);
    }
    listed
}

fn subresource(sub: &Subresource) -> Value {
    json!({
        "subresource": sub.name,
        "responseKind": response_kind(sub.group, sub.version, sub.kind),
        "verbs": sub.verbs,
    })
}

/// An empty group and version mean the parent's.
fn response_kind(group: Option<&str>, version: Option<&str>, kind: &str) -> Value {
    json!({
        "group": group.unwrap_or_default(),
        "version": version.unwrap_or_default(),
        "kind": kind,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_has_no_name_and_groups_have() {
        let core = aggregated(true, "v2");
        assert_eq!(core["apiVersion"], "apidiscovery.k8s.io/v2");
        assert_eq!(core["items"].as_array().expect("items").len(), 1);
        assert_eq!(core["items"][0]["metadata"], json!({}));
        let groups = aggregated(false, "v2beta1");
        assert_eq!(groups["apiVersion"], "apidiscovery.k8s.io/v2beta1");
        assert_eq!(groups["items"][0]["metadata"], json!({"name": "apps"}));
        assert_eq!(groups["items"][0]["versions"][0]["freshness"], "Current");
        assert_eq!(
            groups["items"][0]["versions"][0]["resources"][1],
            json!({
                "resource": "daemonsets", "singularResource": "daemonset", "scope": "Namespaced",
                "responseKind": {"group": "", "version": "", "kind": "DaemonSet"},
                "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
                "shortNames": ["ds"], "categories": ["all"],
                "subresources": [{
                    "subresource": "status", "verbs": ["get", "patch", "update"],
                    "responseKind": {"group": "", "version": "", "kind": "DaemonSet"},
                }],
            })
        );
    }

    #[test]
    fn both_forms_list_the_same() {
        let names = |version: &Value| -> Vec<String> {
            let resources = version["resources"].as_array().expect("resources");
            let mut names = Vec::new();
            for resource in resources {
                let plural = resource["resource"].as_str().expect("a name");
                names.push(plural.to_owned());
                for sub in resource["subresources"].as_array().into_iter().flatten() {
                    names.push(format!(
                        "{plural}/{}",
                        sub["subresource"].as_str().expect("a name")
                    ));
                }
            }
            names
        };
        let all = [aggregated(true, "v2"), aggregated(false, "v2")];
        for item in all
            .iter()
            .flat_map(|a| a["items"].as_array().expect("items"))
        {
            let group = item["metadata"]["name"].as_str().unwrap_or_default();
            let version = item["versions"][0]["version"].as_str().expect("a version");
            let legacy = super::super::api_resources(group, version).expect("served");
            let legacy = legacy["resources"].as_array().expect("resources");
            let legacy: Vec<&str> = legacy.iter().filter_map(|r| r["name"].as_str()).collect();
            assert_eq!(names(&item["versions"][0]), legacy, "{group}");
        }
    }
}
