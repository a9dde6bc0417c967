//! Decisions by tables of roles and bindings.

use bytes::Bytes;
use kennel_types::Verb;
use serde_json::json;

use super::*;
use crate::authorize::ResourceAttributes;
use crate::kinds::rbac::GROUP;
use crate::registry;

fn record(object: &Value) -> Record<Head> {
    let text = |field: &str| {
        object["metadata"][field]
            .as_str()
            .unwrap_or_default()
            .into()
    };
    Record {
        key: "".into(),
        value: Bytes::from(object.to_string()),
        created: 1,
        modified: 1,
        head: Head {
            name: text("name"),
            namespace: text("namespace"),
            ..Head::default()
        },
    }
}

fn row(kind: &str) -> &'static Resource {
    let plural = format!("{}s", kind.to_lowercase());
    registry::find(GROUP, "v1", &plural).unwrap()
}

fn put(index: &mut Index, object: &Value) {
    let kind = object["kind"].as_str().unwrap();
    index.apply(row(kind), None, Some(&record(object)));
}

fn take(index: &mut Index, object: &Value) {
    let kind = object["kind"].as_str().unwrap();
    index.apply(row(kind), Some(&record(object)), None);
}

/// A role that allows one verb on pods; without a namespace it is one of the cluster.
fn role(namespace: &str, name: &str, verb: &str) -> Value {
    let kind = if namespace.is_empty() {
        "ClusterRole"
    } else {
        "Role"
    };
    json!({
        "kind": kind, "metadata": {"name": name, "namespace": namespace},
        "rules": [{"verbs": [verb], "apiGroups": [""], "resources": ["pods"]}],
    })
}

/// A binding; `role` is `Kind/name`, subjects are `Kind/name` or `ServiceAccount/name/namespace`.
fn binding(namespace: &str, name: &str, role: &str, subjects: &[&str]) -> Value {
    let kind = if namespace.is_empty() {
        "ClusterRoleBinding"
    } else {
        "RoleBinding"
    };
    let (role_kind, role) = role.split_once('/').unwrap();
    let subjects = subjects.iter().map(|subject| {
        let mut parts = subject.split('/');
        let (kind, name) = (parts.next(), parts.next());
        json!({"kind": kind, "name": name, "namespace": parts.next()})
    });
    json!({
        "kind": kind, "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"kind": role_kind, "name": role, "apiGroup": GROUP},
        "subjects": subjects.collect::<Vec<_>>(),
    })
}

/// The reason why the user may do this to pods; empty if not allowed.
fn why(index: &Index, user: &User, verb: &str, namespace: &str) -> String {
    let asked = Attributes::Resource(ResourceAttributes {
        verb: Verb::from(verb),
        resource: "pods",
        namespace,
        ..ResourceAttributes::default()
    });
    let found = index.find(user, &asked);
    found.map(ToString::to_string).unwrap_or_default()
}

fn user(name: &str, groups: &[&str]) -> User {
    let groups = groups.iter().map(ToString::to_string).collect();
    User::authenticated(name, groups)
}

fn example_index() -> Index {
    let mut index = Index::default();
    for object in [
        role("", "reader", "get"),
        role("here", "local", "list"),
        binding(
            "",
            "all-read",
            "ClusterRole/reader",
            &["User/ann", "Group/readers"],
        ),
        binding("here", "read", "ClusterRole/reader", &["User/bob"]),
        binding(
            "here",
            "listers",
            "Role/local",
            &["ServiceAccount/robot", "ServiceAccount/far/there"],
        ),
    ] {
        put(&mut index, &object);
    }
    index
}

#[test]
fn users_groups_and_accounts_get_what_is_bound_to_them() {
    let index = example_index();
    let check = |user: &User, verb: &str, namespace: &str, expected: &str| {
        let why = why(&index, user, verb, namespace);
        assert_eq!(why, expected, "{} {verb} {namespace}", user.name);
    };
    let ann = user("ann", &[]);
    let by_name = "ClusterRoleBinding \"all-read\" of ClusterRole \"reader\" to User \"ann\"";
    check(&ann, "get", "", by_name);
    check(&ann, "get", "anywhere", by_name);
    check(&ann, "list", "here", "");
    let by_group = "ClusterRoleBinding \"all-read\" of ClusterRole \"reader\" to Group \"readers\"";
    check(
        &user("eve", &["others", "readers"]),
        "get",
        "there",
        by_group,
    );
    check(&user("readers", &["ann"]), "get", "there", "");
    let bob = user("bob", &[]);
    let local = "RoleBinding \"read/here\" of ClusterRole \"reader\" to User \"bob\"";
    check(&bob, "get", "here", local);
    check(&bob, "get", "there", "");
    check(&bob, "get", "", "");
    let robot = User::service_account("here", "robot");
    let account = "RoleBinding \"listers/here\" of Role \"local\" to ServiceAccount \"robot/here\"";
    check(&robot, "list", "here", account);
    check(&robot, "list", "there", "");
    check(&User::service_account("there", "robot"), "list", "here", "");
    let far = "RoleBinding \"listers/here\" of Role \"local\" to ServiceAccount \"far/there\"";
    check(&User::service_account("there", "far"), "list", "here", far);
}

#[test]
fn a_role_may_come_and_go_after_its_binding() {
    let mut index = Index::default();
    let (bind, ann) = (
        binding("", "b", "ClusterRole/late", &["User/ann"]),
        user("ann", &[]),
    );
    put(&mut index, &bind);
    assert_eq!(why(&index, &ann, "get", ""), "");
    let broken = index.broken(&ann, "");
    assert_eq!(
        broken[0].role_not_found(),
        "clusterrole.rbac.authorization.k8s.io \"late\" not found"
    );
    let late = role("", "late", "get");
    put(&mut index, &late);
    assert_ne!(why(&index, &ann, "get", ""), "");
    assert!(index.broken(&ann, "").is_empty());
    let changed = role("", "late", "list");
    index.apply(
        row("ClusterRole"),
        Some(&record(&late)),
        Some(&record(&changed)),
    );
    assert_eq!(why(&index, &ann, "get", ""), "");
    assert_ne!(why(&index, &ann, "list", ""), "");
    take(&mut index, &changed);
    assert_eq!(why(&index, &ann, "list", ""), "");
    // A role of a namespace is another one, whatever its name.
    put(&mut index, &role("here", "late", "get"));
    assert_eq!(why(&index, &ann, "get", "here"), "");
}

#[test]
fn a_changed_binding_grants_what_it_says_now() {
    let mut index = example_index();
    let before = binding(
        "",
        "all-read",
        "ClusterRole/reader",
        &["User/ann", "Group/readers"],
    );
    let after = binding(
        "",
        "all-read",
        "ClusterRole/reader",
        &["User/eve", "User/eve"],
    );
    index.apply(
        row("ClusterRoleBinding"),
        Some(&record(&before)),
        Some(&record(&after)),
    );
    assert_eq!(why(&index, &user("ann", &["readers"]), "get", ""), "");
    assert_ne!(why(&index, &user("eve", &[]), "get", ""), "");
    take(&mut index, &after);
    assert_eq!(why(&index, &user("eve", &[]), "get", ""), "");
}

#[test]
fn nothing_is_left_of_what_is_gone() {
    let mut index = example_index();
    assert_eq!(index.size(), (2, 5));
    for object in [
        role("", "reader", "get"),
        binding("here", "read", "ClusterRole/reader", &["User/bob"]),
        binding(
            "",
            "all-read",
            "ClusterRole/reader",
            &["User/ann", "Group/readers"],
        ),
        binding(
            "here",
            "listers",
            "Role/local",
            &["ServiceAccount/robot", "ServiceAccount/far/there"],
        ),
        role("here", "local", "list"),
    ] {
        take(&mut index, &object);
    }
    assert_eq!(index.size(), (0, 0));
}
