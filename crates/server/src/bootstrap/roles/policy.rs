//! Parses `policy.txt`, the default roles and bindings.

use serde_json::{Value, json};

use crate::authorize::rbac::Rule;
use crate::kinds::rbac::GROUP;

const POLICY: &str = include_str!("policy.txt");

/// Label of the default objects.
const BOOTSTRAPPING: &str = "kubernetes.io/bootstrapping";
/// Annotation: whether to restore the object at start.
pub(super) const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Expected {
    pub(super) plural: &'static str,
    /// `None` for cluster-scoped objects.
    pub(super) namespace: Option<String>,
    pub(super) tree: Value,
}

/// All default objects, roles before their bindings.
pub(super) fn expected() -> Vec<Expected> {
    let mut objects = Vec::new();
    let mut bindings = Vec::new();
    for line in POLICY.lines() {
        let text = line.split('#').next().unwrap_or_default().trim_end();
        if text.is_empty() {
            continue;
        }
        if line.starts_with(' ') {
            let role: &mut Expected = objects.last_mut().expect("a rule follows its role");
            let rules = role.tree["rules"].as_array_mut().expect("a role has rules");
            rules.push(rule(text.trim()).to_value());
            continue;
        }
        match text.split_once(' ').expect("a line has a word and a name") {
            ("role", rest) => objects.push(role(rest)),
            ("controller", name) => {
                let role_name = format!("system:controller:{name}");
                bindings.push(binding(&format!(
                    "{role_name} : ServiceAccount/kube-system/{name}"
                )));
                objects.push(role(&role_name));
            }
            ("bind", rest) => bindings.push(binding(rest)),
            (other, _) => unreachable!("the policy has no line that starts with {other}"),
        }
    }
    objects.append(&mut bindings);
    objects
}

fn role(text: &str) -> Expected {
    let mut words = text.split_whitespace();
    let (namespace, name) = place(words.next().unwrap_or_default());
    let mut tree = object(name);
    tree["rules"] = json!([]);
    for word in words {
        let (what, label) = word.split_once('=').unwrap_or((word, ""));
        let label = format!("rbac.authorization.k8s.io/{label}");
        if what == "label" {
            tree["metadata"]["labels"][label] = "true".into();
        } else {
            let selector = json!({"matchLabels": {label: "true"}});
            tree["aggregationRule"] = json!({"clusterRoleSelectors": [selector]});
        }
    }
    Expected {
        plural: namespace.as_ref().map_or("clusterroles", |_| "roles"),
        namespace,
        tree,
    }
}

fn binding(text: &str) -> Expected {
    let (names, subjects) = text.split_once(" :").expect("a binding has subjects");
    let (full_name, role) = match names.split_once(" = ") {
        Some((name, role)) => (name, Some(role)),
        None => (names, None),
    };
    let (namespace, name) = place(full_name);
    let kind = namespace.as_ref().map_or("ClusterRole", |_| "Role");
    let mut tree = object(name);
    tree["roleRef"] = json!({"apiGroup": GROUP, "kind": kind, "name": role.unwrap_or(name)});
    let subjects: Vec<Value> = subjects.split(',').filter_map(subject).collect();
    if !subjects.is_empty() {
        tree["subjects"] = subjects.into();
    }
    Expected {
        plural: namespace
            .as_ref()
            .map_or("clusterrolebindings", |_| "rolebindings"),
        namespace,
        tree,
    }
}

/// `namespace/name`, or a name alone.
fn place(text: &str) -> (Option<String>, &str) {
    match text.split_once('/') {
        Some((namespace, name)) => (Some(namespace.to_owned()), name),
        None => (None, text),
    }
}

fn object(name: &str) -> Value {
    json!({"metadata": {
        "name": name,
        "labels": {BOOTSTRAPPING: "rbac-defaults"},
        "annotations": {AUTO_UPDATE: "true"},
    }})
}

fn subject(text: &str) -> Option<Value> {
    match text.trim().split_once('/')? {
        ("ServiceAccount", account) => {
            let (namespace, name) = account.split_once('/')?;
            Some(json!({"kind": "ServiceAccount", "namespace": namespace, "name": name}))
        }
        (kind, name) => Some(json!({"apiGroup": GROUP, "kind": kind, "name": name})),
    }
}

fn rule(text: &str) -> Rule {
    if text == "events" {
        return rule("create,update,patch | core,events.k8s.io | events");
    }
    let columns: Vec<Vec<String>> = text.split(" | ").map(list).collect();
    let mut rule = match columns.as_slice() {
        [verbs, urls] => Rule {
            verbs: verbs.clone(),
            urls: urls.clone(),
            ..Rule::default()
        },
        [verbs, groups, resources, names @ ..] => Rule {
            verbs: verbs.clone(),
            groups: groups.clone(),
            resources: resources.clone(),
            names: names.first().cloned().unwrap_or_default(),
            urls: Vec::new(),
        },
        _ => unreachable!("a rule of the policy has too few columns: {text}"),
    };
    for list in [
        &mut rule.verbs,
        &mut rule.groups,
        &mut rule.resources,
        &mut rule.urls,
    ] {
        list.sort();
    }
    rule
}

/// A list, with its abbreviations expanded.
fn list(text: &str) -> Vec<String> {
    let words = text.split(',').flat_map(|word| match word {
        "core" => vec![String::new()],
        "all" => list("read,write"),
        "read" => list("get,list,watch"),
        "write" => list("create,delete,deletecollection,patch,update"),
        word => vec![word.to_owned()],
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;

    fn find(plural: &str, name: &str) -> Expected {
        let mut all = expected().into_iter();
        let found = all.find(|e| e.plural == plural && e.tree["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("no {plural} {name}"))
    }

    #[test]
    fn lines_become_objects() {
        assert_eq!(
            find("clusterroles", "cluster-admin").tree,
            json!({
                "metadata": {
                    "name": "cluster-admin",
                    "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
                    "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
                },
                "rules": [
                    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
                    {"verbs": ["*"], "nonResourceURLs": ["*"]},
                ],
            })
        );
        let edit = find("clusterroles", "edit").tree;
        let labels = &edit["metadata"]["labels"];
        assert_eq!(
            labels["rbac.authorization.k8s.io/aggregate-to-admin"],
            "true"
        );
        let selector = &edit["aggregationRule"]["clusterRoleSelectors"][0]["matchLabels"];
        assert_eq!(
            *selector,
            json!({"rbac.authorization.k8s.io/aggregate-to-edit": "true"})
        );
        let scheduler = find("clusterroles", "system:kube-scheduler").tree;
        assert_eq!(
            scheduler["rules"][0],
            json!({
                "verbs": ["create", "patch", "update"],
                "apiGroups": ["", "events.k8s.io"], "resources": ["events"],
            })
        );
        assert_eq!(
            scheduler["rules"][2]["resourceNames"],
            json!(["kube-scheduler"])
        );
    }

    #[test]
    fn bindings_name_their_roles_and_subjects() {
        let own = find(
            "clusterrolebindings",
            "system:controller:daemon-set-controller",
        )
        .tree;
        assert_eq!(
            own["roleRef"]["name"],
            "system:controller:daemon-set-controller"
        );
        assert_eq!(
            own["subjects"],
            json!([{"kind": "ServiceAccount", "namespace": "kube-system", "name": "daemon-set-controller"}])
        );
        let other = find("clusterrolebindings", "kennel:node-bootstrap").tree;
        assert_eq!(other["roleRef"]["name"], "system:node-bootstrapper");
        assert_eq!(other["subjects"][0]["kind"], "Group");
        let local = find("rolebindings", "system:controller:token-cleaner");
        assert_eq!(local.namespace.as_deref(), Some("kube-system"));
        assert_eq!(local.tree["roleRef"]["kind"], "Role");
        assert!(find("clusterrolebindings", "system:node").tree["subjects"].is_null());
    }

    #[test]
    fn every_object_is_valid_and_named_once_and_every_binding_has_its_role() {
        let all = expected();
        let mut seen = std::collections::BTreeSet::new();
        for Expected {
            plural,
            namespace,
            tree,
        } in &all
        {
            let name = tree["metadata"]["name"].as_str().unwrap();
            assert!(
                seen.insert((*plural, namespace.clone(), name)),
                "{name} twice"
            );
            let row = registry::find(GROUP, "v1", plural).unwrap();
            assert_eq!(row.strategy.validate_create(tree), [], "{name}");
            if let Some(role) = tree["roleRef"]["name"].as_str() {
                let role_plural = if namespace.is_some() {
                    "roles"
                } else {
                    "clusterroles"
                };
                assert!(
                    seen.contains(&(role_plural, namespace.clone(), role)),
                    "{role}"
                );
            }
        }
        assert!(all.len() > 100, "{}", all.len());
    }
}
