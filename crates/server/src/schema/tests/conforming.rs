//! What conforming makes of trees.

use super::*;

#[test]
fn a_good_pod_stays_as_it_is() {
    let given = pod(&json!({
        "containers": [{
            "name": "c", "image": "i", "args": ["a"], "ports": [{"containerPort": 80}],
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
            "livenessProbe": {"httpGet": {"port": "http", "path": "/"}, "periodSeconds": 5},
        }],
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "hostPath": {"path": "/"}}],
        "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 0,
        "securityContext": {"runAsUser": 0, "runAsNonRoot": false},
    }));
    check("core.v1.Pod", &given, &given);
}

#[test]
fn unknown_fields_go_and_are_reported_by_path() {
    check_unknown(
        "apps.v1.DaemonSet",
        &json!({"Spec": {}, "spec": {}}),
        &["Spec"],
    );
    check_unknown(
        "apps.v1.DaemonSet",
        &json!({"spec": {"template": {"spec": {
            "foo": 1, "containers": [{"name": "c"}, {"name": "d", "imgae": "x"}]}}}}),
        &[
            "spec.template.spec.containers[1].imgae",
            "spec.template.spec.foo",
        ],
    );
    check_unknown(
        "core.v1.Pod",
        &pod(&json!({"volumes": [{"name": "v", "volumeSource": {}}]})),
        &["spec.volumes[0].volumeSource"],
    );
    check_unknown(
        "core.v1.Pod",
        &json!({"metadata": {"lables": {"a": "b"}}, "apiversion": "v1"}),
        &["apiversion", "metadata.lables"],
    );
}

/// Of every type, whatever stands before, between and after its fields.
#[test]
fn fields_are_told_from_names_beside_them() {
    for ty in types() {
        let names = ty.fields.iter().map(|field| field.name);
        for strange in ["", "~", "é"].into_iter().chain(names) {
            let longer = format!("{strange}x");
            let shorter: String = strange.chars().skip(1).collect();
            let mut members: serde_json::Map<String, Value> = serde_json::Map::new();
            let fields = ty.fields.iter().map(|field| field.name);
            for name in fields.chain([strange, &longer]) {
                members.insert(name.to_owned(), Value::Null);
            }
            members.insert(shorter, Value::Null);
            let unknown = members.keys().filter(|name| ty.field(name).is_none());
            let expected = unknown.count();
            let (_, unknown) = conformed(ty.name, Value::Object(members)).unwrap();
            assert_eq!(
                unknown.len(),
                expected,
                "{} {strange:?}: {unknown:?}",
                ty.name
            );
        }
    }
}

#[test]
fn unknown_fields_are_reported_up_to_a_bound() {
    let members = (0..300).map(|n| (format!("x{n}"), Value::Null)).collect();
    let (value, unknown) = conformed("core.v1.Pod", Value::Object(members)).unwrap();
    assert_eq!((value, unknown.len()), (json!({}), 100));
}

#[test]
fn null_is_absence_but_in_lists_and_maps() {
    check(
        "core.v1.Pod",
        &json!({"metadata": {"creationTimestamp": null, "labels": null, "name": "p"},
            "spec": {"containers": null, "nodeName": null}, "status": null}),
        &json!({"metadata": {"name": "p"}, "spec": {}}),
    );
    check(
        "core.v1.Pod",
        &json!({"metadata": {"labels": {"a": null}}, "spec": {"containers": [null]}}),
        &json!({"metadata": {"labels": {"a": ""}}, "spec": {"containers": [{}]}}),
    );
    check("core.v1.Pod", &Value::Null, &json!({}));
}

#[test]
fn raw_json_is_left_alone() {
    let given = json!({"revision": 1, "data": {"a": null, "b": [], "unknown": {"c": 1.5}}});
    check("apps.v1.ControllerRevision", &given, &given);
    let given = json!({"metadata": {"managedFields": [{"fieldsV1": {"f:x": {}, "k": null}}]}});
    check("core.v1.Pod", &given, &given);
}

#[test]
fn empty_values_go_where_go_would_not_write_them() {
    check(
        "core.v1.Pod",
        &json!({"metadata": {"labels": {}, "finalizers": [], "namespace": ""}, "spec": {
            "containers": [], "nodeSelector": {}, "hostNetwork": false, "nodeName": "",
            "enableServiceLinks": false, "affinity": {}, "volumes": []}}),
        &json!({"metadata": {}, "spec": {
            "containers": [], "enableServiceLinks": false, "affinity": {}}}),
    );
    check(
        "apps.v1.DaemonSet",
        &json!({"spec": {"minReadySeconds": 0, "revisionHistoryLimit": 0}}),
        &json!({"spec": {"revisionHistoryLimit": 0}}),
    );
    let kept = json!({"spec": {"storageClassName": ""}});
    check("core.v1.PersistentVolumeClaim", &kept, &kept);
    let kept = json!({"rules": []});
    check("rbac.v1.ClusterRole", &kept, &kept);
    let kept = json!({"value": 0});
    check("scheduling.v1.PriorityClass", &kept, &kept);
}

#[test]
fn scalars_get_their_canonical_spelling() {
    check(
        "core.v1.Pod",
        &pod(&json!({"containers": [{"resources": {
            "limits": {"cpu": 0.5, "memory": " 1024Mi ", "x": null}, "requests": {"cpu": 2}}}]})),
        &pod(&json!({"containers": [{"resources": {
            "limits": {"cpu": "500m", "memory": "1Gi", "x": "0"}, "requests": {"cpu": "2"}}}]})),
    );
    check(
        "core.v1.Secret",
        &json!({"data": {"a": "aGVs\nbG8=", "b": "", "c": null}}),
        &json!({"data": {"a": "aGVsbG8=", "b": "", "c": ""}}),
    );
    check(
        "core.v1.Pod",
        &json!({"metadata": {"creationTimestamp": "2024-01-01T01:00:00.5+01:00",
            "deletionTimestamp": "0001-01-01T00:00:00Z"}}),
        &json!({"metadata": {"creationTimestamp": "2024-01-01T00:00:00Z"}}),
    );
    check(
        "coordination.v1.Lease",
        &json!({"spec": {"renewTime": "2024-01-01T00:00:00.123456Z"}}),
        &json!({"spec": {"renewTime": "2024-01-01T00:00:00.123456Z"}}),
    );
}

fn check_mismatch(given: &Value, into: &str, go: &str) {
    let expected = format!("json: cannot unmarshal {into} of type {go}");
    check_error("apps.v1.DaemonSet", given, &expected);
}

#[test]
fn values_of_the_wrong_type_are_refused_in_go_s_words() {
    let ds = |spec: Value| json!({"spec": spec});
    for (given, into, go) in [
        (
            ds(json!({"minReadySeconds": "5"})),
            "string into Go struct field DaemonSetSpec.spec.minReadySeconds",
            "int32",
        ),
        (
            ds(json!({"minReadySeconds": 1.5})),
            "number 1.5 into Go struct field DaemonSetSpec.spec.minReadySeconds",
            "int32",
        ),
        (
            ds(json!({"minReadySeconds": 2_147_483_648_i64})),
            "number 2147483648 into Go struct field DaemonSetSpec.spec.minReadySeconds",
            "int32",
        ),
        (
            ds(json!([])),
            "array into Go struct field DaemonSet.spec",
            "v1.DaemonSetSpec",
        ),
        (
            json!({"metadata": {"labels": {"a": 1}}}),
            "number into Go struct field ObjectMeta.metadata.labels",
            "string",
        ),
        (
            json!({"metadata": {"creationTimestamp": 1}}),
            "number into Go struct field ObjectMeta.metadata.creationTimestamp",
            "string",
        ),
        (
            ds(json!({"updateStrategy": {"rollingUpdate": {"maxSurge": 1.5}}})),
            "number 1.5 into Go struct field RollingUpdateDaemonSet.spec.updateStrategy.rollingUpdate.maxSurge",
            "int32",
        ),
        (json!("DaemonSet"), "string into Go value", "v1.DaemonSet"),
    ] {
        check_mismatch(&given, into, go);
    }
}

#[test]
fn values_of_the_wrong_type_are_refused_deep_in_a_template() {
    let template = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
    for (given, into, go) in [
        (
            template(json!({"containers": {}})),
            "object into Go struct field PodSpec.spec.template.spec.containers",
            "[]v1.Container",
        ),
        (
            template(json!({"containers": ["c"]})),
            "string into Go struct field PodSpec.spec.template.spec.containers",
            "v1.Container",
        ),
        (
            template(json!({"containers": [{"args": [1]}]})),
            "number into Go struct field Container.spec.template.spec.containers.args",
            "string",
        ),
        (
            template(json!({"hostNetwork": "true"})),
            "string into Go struct field PodSpec.spec.template.spec.hostNetwork",
            "bool",
        ),
        (
            template(json!({"restartPolicy": true})),
            "bool into Go struct field PodSpec.spec.template.spec.restartPolicy",
            "v1.RestartPolicy",
        ),
        (
            template(json!({"nodeSelector": ["a"]})),
            "array into Go struct field PodSpec.spec.template.spec.nodeSelector",
            "map[string]string",
        ),
        (
            template(json!({"terminationGracePeriodSeconds": 9_223_372_036_854_775_808_u64})),
            "number 9223372036854775808 into Go struct field PodSpec.spec.template.spec.terminationGracePeriodSeconds",
            "int64",
        ),
    ] {
        check_mismatch(&given, into, go);
    }
}

#[test]
fn bad_contents_are_refused_in_upstream_s_words() {
    check_error(
        "core.v1.Pod",
        &pod(&json!({"containers": [{"resources": {"limits": {"cpu": "lots"}}}]})),
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    );
    check_error(
        "core.v1.Pod",
        &pod(&json!({"containers": [{"resources": {"limits": {"cpu": "1x"}}}]})),
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    );
    check_error(
        "core.v1.Secret",
        &json!({"data": {"a": "!"}}),
        "illegal base64 data at input byte 0",
    );
    check_error(
        "core.v1.Pod",
        &json!({"metadata": {"creationTimestamp": "yesterday"}}),
        r#"parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006""#,
    );
}
