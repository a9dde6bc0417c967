//! Tables of roles and bindings.

use super::super::testing::{check_create, check_update, created};
use super::*;

#[test]
fn rules_name_verbs_groups_and_resources() {
    let role = |rule: Value| json!({"rules": [rule]});
    check_create(
        &Role,
        &role(json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]})),
        &[],
    );
    check_create(
        &Role,
        &role(json!({})),
        &[
            "rules[0].verbs: Required value: verbs must contain at least one value",
            "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
            "rules[0].resources: Required value: resource rules must supply at least one resource",
        ],
    );
    let urls = json!({"verbs": ["get"], "nonResourceURLs": ["/healthz"]});
    check_create(&ClusterRole, &role(urls.clone()), &[]);
    check_create(
        &Role,
        &role(urls),
        &[
            "rules[0].nonResourceURLs: Invalid value: [\"/healthz\"]: namespaced rules cannot apply \
           to non-resource URLs",
        ],
    );
    check_create(
        &ClusterRole,
        &role(json!({"verbs": ["get"], "nonResourceURLs": ["/a"], "resources": ["pods"]})),
        &[
            "rules[0].nonResourceURLs: Invalid value: [\"/a\"]: rules cannot apply to both regular \
           resources and non-resource URLs",
        ],
    );
}

#[test]
fn aggregation_needs_a_selector() {
    check_create(
        &ClusterRole,
        &json!({"aggregationRule": {}}),
        &[
            "aggregationRule.clusterRoleSelectors: Required value: at least one \
           clusterRoleSelector required if aggregationRule is non-nil",
        ],
    );
    check_create(
        &ClusterRole,
        &json!({"aggregationRule": {"clusterRoleSelectors": [
            {"matchExpressions": [{"key": "a", "operator": "Is"}]}]}}),
        &[
            "aggregationRule.clusterRoleSelectors[0].matchExpressions[0].operator: Invalid value: \
           \"Is\": not a valid selector operator",
        ],
    );
}

fn binding(kind: &str, subject: &Value) -> Value {
    json!({"roleRef": {"kind": kind, "name": "r"}, "subjects": [subject]})
}

#[test]
fn groups_are_filled_in() {
    let object = binding("Role", &json!({"kind": "User", "name": "u"}));
    assert_eq!(
        created(&ROLE_BINDING, &object),
        json!({"roleRef": {"apiGroup": GROUP, "kind": "Role", "name": "r"},
            "subjects": [{"apiGroup": GROUP, "kind": "User", "name": "u"}]})
    );
}

#[test]
fn subjects() {
    let account = json!({"kind": "ServiceAccount", "name": "a"});
    check_create(&ROLE_BINDING, &binding("Role", &account), &[]);
    check_create(
        &CLUSTER_ROLE_BINDING,
        &binding("Role", &account),
        &[
            "roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\"",
            "subjects[0].namespace: Required value",
        ],
    );
    check_create(
        &ROLE_BINDING,
        &binding("Role", &json!({"kind": "Group", "name": ""})),
        &[
            "subjects[0].name: Required value",
            "subjects[0].name: Invalid value: \"\": group name cannot be empty",
        ],
    );
    check_create(
        &ROLE_BINDING,
        &binding("Role", &json!({"kind": "Robot", "name": "r"})),
        &[
            "subjects[0].kind: Unsupported value: \"Robot\": supported values: \
           \"ServiceAccount\", \"User\", \"Group\"",
        ],
    );
}

#[test]
fn the_role_of_a_binding_stays() {
    let old = binding("Role", &json!({"kind": "User", "name": "u"}));
    let mut new = old.clone();
    new["roleRef"]["name"] = json!("other");
    check_update(
        &ROLE_BINDING,
        &new,
        &old,
        &[
            "roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"Role\",\
           \"Name\":\"other\"}: cannot change roleRef",
        ],
    );
}
