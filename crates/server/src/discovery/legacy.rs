//! Unaggregated discovery: one answer per group-version.

use serde_json::{Value, json};

use super::entry::{Entry, entries, groups};
use crate::registry::{Scope, Subresource, api_version};

/// `GET /api`. `server_address` is what clients from anywhere should dial, `host:port`.
pub fn api_versions(server_address: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [
            {"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}
        ],
    })
}

/// `GET /apis`: the named groups.
pub fn api_groups() -> Value {
    let groups: Vec<Value> = groups()
        .iter()
        .map(|(name, versions)| group(name, versions))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `GET /apis/<group>`.
pub fn api_group(name: &str) -> Option<Value> {
    let groups = groups();
    let (name, versions) = groups.iter().find(|(group, _)| *group == name)?;
    let mut answer = group(name, versions);
    answer["kind"] = json!("APIGroup");
    answer["apiVersion"] = json!("v1");
    Some(answer)
}

fn group(name: &str, versions: &[&str]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    json!({"name": name, "preferredVersion": versions[0], "versions": versions})
}

/// `GET /api/v1` (empty group) and `GET /apis/<group>/<version>`.
pub fn api_resources(group: &str, version: &str) -> Option<Value> {
    let entries = entries(group, version);
    if entries.is_empty() {
        return None;
    }
    let resources: Vec<Value> = entries.iter().flat_map(listed).collect();
    let mut answer = json!({
        "kind": "APIResourceList",
        "groupVersion": api_version(group, version),
        "resources": resources,
    });
    // As upstream, the list of the core group has no apiVersion.
    if !group.is_empty() {
        answer["apiVersion"] = json!("v1");
    }
    Some(answer)
}

/// A resource and its subresources.
fn listed(entry: &Entry) -> Vec<Value> {
    let mut resource = json!({
        "name": entry.plural,
        "singularName": entry.singular(),
        "namespaced": entry.scope == Scope::Namespaced,
        "kind": entry.kind,
        "verbs": entry.verbs,
    });
    if !entry.short_names.is_empty() {
        resource["shortNames"] = json!(entry.short_names);
    }
    if !entry.categories.is_empty() {
        resource["categories"] = json!(entry.categories);
    }
    let subresources = entry.subresources.iter().map(|sub| subresource(entry, sub));
    std::iter::once(resource).chain(subresources).collect()
}

fn subresource(entry: &Entry, sub: &Subresource) -> Value {
    let mut listed = json!({
        "name": format!("{}/{}", entry.plural, sub.name),
        "singularName": "",
        "namespaced": entry.scope == Scope::Namespaced,
        "kind": sub.kind,
        "verbs": sub.verbs,
    });
    if let Some(group) = sub.group {
        listed["group"] = json!(group);
    }
    if let Some(version) = sub.version {
        listed["version"] = json!(version);
    }
    listed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;

    #[test]
    fn core_is_not_a_named_group() {
        let groups = api_groups();
        let names: Vec<&str> = groups["groups"]
            .as_array()
            .expect("groups")
            .iter()
            .filter_map(|g| g["name"].as_str())
            .collect();
        assert!(names.contains(&"apps") && !names.contains(&""), "{names:?}");
        assert_eq!(
            api_group("apps"),
            Some(json!({
                "kind": "APIGroup", "apiVersion": "v1", "name": "apps",
                "versions": [{"groupVersion": "apps/v1", "version": "v1"}],
                "preferredVersion": {"groupVersion": "apps/v1", "version": "v1"},
            }))
        );
        assert_eq!(api_group(""), None);
        assert_eq!(api_group("batch"), None);
    }

    #[test]
    fn resources_stand_in_upstreams_order() {
        let core = api_resources("", "v1").expect("core");
        let resources = core["resources"].as_array().expect("resources");
        let names: Vec<&str> = resources
            .iter()
            .filter_map(|r| r["name"].as_str())
            .collect();
        let expected = [
            "bindings",
            "configmaps",
            "endpoints",
            "events",
            "limitranges",
            "namespaces",
            "namespaces/finalize",
            "namespaces/status",
            "nodes",
            "nodes/proxy",
            "nodes/status",
            "persistentvolumeclaims",
            "persistentvolumeclaims/status",
            "persistentvolumes",
            "persistentvolumes/status",
            "pods",
            "pods/attach",
            "pods/binding",
            "pods/ephemeralcontainers",
            "pods/eviction",
            "pods/exec",
            "pods/log",
            "pods/portforward",
            "pods/proxy",
            "pods/status",
            "resourcequotas",
            "resourcequotas/status",
            "secrets",
            "serviceaccounts",
            "serviceaccounts/token",
            "services",
            "services/status",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn drain_finds_the_eviction_subresource() {
        let core = api_resources("", "v1").expect("core");
        let resources = core["resources"].as_array().expect("resources");
        let eviction = resources.iter().find(|r| r["name"] == "pods/eviction");
        assert_eq!(
            eviction,
            Some(&json!({
                "name": "pods/eviction", "singularName": "", "namespaced": true, "group": "policy",
                "version": "v1", "kind": "Eviction", "verbs": ["create"],
            }))
        );
        let pods = resources
            .iter()
            .find(|r| r["name"] == "pods")
            .expect("pods");
        assert_eq!(pods["shortNames"], json!(["po"]));
        assert_eq!(pods["categories"], json!(["all"]));
        assert_eq!(pods.get("group"), None);
    }

    #[test]
    fn nothing_that_is_not_served_is_listed() {
        for empty in registry::EMPTY {
            if let Some(list) = api_resources(empty.group, empty.version) {
                let resources = list["resources"].as_array().expect("resources");
                assert!(
                    resources.iter().all(|r| r["name"] != empty.plural),
                    "{}",
                    empty.plural
                );
            }
        }
        assert_eq!(api_resources("resource.k8s.io", "v1"), None);
        assert_eq!(api_resources("apps", "v1beta1"), None);
    }

    #[test]
    fn the_server_says_where_it_is() {
        let answer = api_versions("10.0.0.1:6443");
        assert_eq!(answer["versions"], json!(["v1"]));
        assert_eq!(
            answer["serverAddressByClientCIDRs"][0]["serverAddress"],
            "10.0.0.1:6443"
        );
    }
}
