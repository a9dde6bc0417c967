//! What decoding and conforming do to bodies.

use serde_json::{Value, json};

use super::*;

fn ty(name: &str) -> &'static Type {
    find(name).unwrap_or_else(|| panic!("no type {name}"))
}

fn conformed(name: &str, mut value: Value) -> Result<(Value, Vec<String>), String> {
    let mut unknown = Vec::new();
    conform(ty(name), &mut value, &mut unknown)?;
    Ok((value, unknown))
}

fn check(name: &str, given: &Value, expected: &Value) {
    let (value, unknown) = conformed(name, given.clone()).unwrap();
    assert_eq!(value, *expected, "{given}");
    assert_eq!(unknown, Vec::<String>::new(), "{given}");
}

fn check_error(name: &str, given: &Value, expected: &str) {
    assert_eq!(
        conformed(name, given.clone()).unwrap_err(),
        expected,
        "{given}"
    );
}

fn check_unknown(name: &str, given: &Value, expected: &[&str]) {
    let (value, unknown) = conformed(name, given.clone()).unwrap();
    let expected: Vec<String> = expected
        .iter()
        .map(|f| format!("unknown field \"{f}\""))
        .collect();
    assert_eq!(unknown, expected, "{given}");
    let (again, unknown) = conformed(name, value.clone()).unwrap();
    assert_eq!(
        (again, unknown.len()),
        (value, 0),
        "unknown fields are gone"
    );
}

fn pod(spec: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
}

mod table {
    use super::*;

    #[test]
    fn every_resource_has_its_type() {
        for row in crate::registry::RESOURCES {
            let ty = ty(row.schema);
            assert!(ty.is_kind, "{}", row.schema);
            for name in ["apiVersion", "kind", "metadata"] {
                assert!(ty.field(name).is_some(), "{} {name}", row.schema);
            }
        }
    }

    #[test]
    fn types_and_fields_are_sorted_for_binary_search() {
        assert!(types().windows(2).all(|pair| pair[0].name < pair[1].name));
        for ty in types() {
            let fields = ty.fields;
            assert!(
                fields.windows(2).all(|pair| pair[0].name < pair[1].name),
                "{ty:?}"
            );
        }
    }

    #[test]
    fn protobuf_numbers_are_unique_in_their_message() {
        for ty in types() {
            let direct = ty.fields.iter().filter(|f| f.within == 0 && f.number > 0);
            let mut numbers: Vec<u32> = direct.chain(ty.inlined).map(|f| f.number).collect();
            numbers.sort_unstable();
            assert!(numbers.windows(2).all(|pair| pair[0] != pair[1]), "{ty:?}");
        }
    }

    #[test]
    fn inlined_members_stand_one_level_up() {
        let volume = ty("core.v1.Volume");
        assert!(volume.field("volumeSource").is_none());
        let host_path = volume.field("hostPath").unwrap();
        assert_eq!((host_path.within, host_path.number), (2, 1));
        assert_eq!(volume.inlined[0].number, 2);
        assert!(ty("core.v1.Probe").field("httpGet").is_some());
        assert_eq!(
            ty("authentication.v1.BoundObjectReference")
                .field("uid")
                .unwrap()
                .number,
            4
        );
        assert!(ty("core.v1.DaemonEndpoint").field("Port").is_some());
    }

    fn merge_keys() -> Vec<(&'static str, &'static str)> {
        vec![
            ("meta.v1.ObjectMeta ownerReferences", "uid"),
            ("meta.v1.ObjectMeta finalizers", ""),
            ("core.v1.PodSpec containers", "name"),
            ("core.v1.PodSpec initContainers", "name"),
            ("core.v1.PodSpec ephemeralContainers", "name"),
            ("core.v1.PodSpec volumes", "name"),
            ("core.v1.PodSpec imagePullSecrets", "name"),
            ("core.v1.PodSpec hostAliases", "ip"),
            ("core.v1.PodSpec topologySpreadConstraints", "topologyKey"),
            ("core.v1.PodSpec schedulingGates", "name"),
            ("core.v1.PodSpec resourceClaims", "name"),
            ("core.v1.Container env", "name"),
            ("core.v1.Container ports", "containerPort"),
            ("core.v1.Container volumeMounts", "mountPath"),
            ("core.v1.Container volumeDevices", "devicePath"),
            ("core.v1.EphemeralContainer env", "name"),
            ("core.v1.EphemeralContainer volumeMounts", "mountPath"),
            ("core.v1.PodStatus conditions", "type"),
            ("core.v1.PodStatus podIPs", "ip"),
            ("core.v1.PodStatus hostIPs", "ip"),
            ("core.v1.PodStatus resourceClaimStatuses", "name"),
            ("core.v1.ContainerStatus volumeMounts", "mountPath"),
            ("core.v1.ContainerStatus allocatedResourcesStatus", "name"),
            ("core.v1.NodeSpec podCIDRs", ""),
            ("core.v1.NodeStatus conditions", "type"),
            ("core.v1.NodeStatus addresses", "type"),
            ("core.v1.ServiceSpec ports", "port"),
            ("core.v1.ServiceStatus conditions", "type"),
            ("core.v1.NamespaceStatus conditions", "type"),
            ("core.v1.ServiceAccount secrets", "name"),
            ("apps.v1.DaemonSetStatus conditions", "type"),
            ("policy.v1.PodDisruptionBudgetStatus conditions", "type"),
            ("storage.v1.CSINodeSpec drivers", "name"),
        ]
    }

    #[test]
    fn lists_merge_by_the_keys_of_the_contract() {
        for (place, key) in merge_keys() {
            let (name, field) = place.split_once(' ').unwrap();
            let field = ty(name).field(field).unwrap();
            assert_eq!(field.strategy, Strategy::Merge, "{place}");
            assert_eq!(field.merge_key.unwrap_or_default(), key, "{place}");
        }
    }

    #[test]
    fn lists_are_replaced_where_the_contract_says_so() {
        for place in [
            "core.v1.PodSpec tolerations",
            "core.v1.PodSpec readinessGates",
            "core.v1.PodStatus containerStatuses",
            "core.v1.PodStatus initContainerStatuses",
            "core.v1.PodStatus ephemeralContainerStatuses",
            "core.v1.Container args",
            "core.v1.Container command",
            "core.v1.Container envFrom",
            "core.v1.Container resizePolicy",
            "core.v1.NodeSpec taints",
            "core.v1.NodeStatus images",
            "core.v1.NodeStatus volumesAttached",
            "core.v1.NodeStatus volumesInUse",
            "core.v1.ServiceSpec clusterIPs",
            "core.v1.ServiceSpec externalIPs",
            "core.v1.ServiceSpec ipFamilies",
            "core.v1.NodeSelector nodeSelectorTerms",
            "core.v1.Endpoints subsets",
            "discovery.v1.EndpointSlice endpoints",
            "discovery.v1.EndpointSlice ports",
            "rbac.v1.ClusterRole rules",
            "rbac.v1.ClusterRoleBinding subjects",
            "core.v1.ServiceAccount imagePullSecrets",
            "core.v1.ProjectedVolumeSource sources",
            "core.v1.ConfigMapVolumeSource items",
        ] {
            let (name, field) = place.split_once(' ').unwrap();
            let field = ty(name).field(field).unwrap();
            assert_eq!(field.strategy, Strategy::Default, "{place}");
        }
        let selector = ty("policy.v1.PodDisruptionBudgetSpec")
            .field("selector")
            .unwrap();
        assert_eq!(selector.strategy, Strategy::Replace);
        for name in ["volumes", "resourceClaims"] {
            assert!(ty("core.v1.PodSpec").field(name).unwrap().retains_keys);
        }
    }
}

mod decoding {
    use super::*;

    fn check_duplicates(text: &str, value: &Value, paths: &[&str]) {
        let parsed = parse(text.as_bytes()).unwrap();
        let expected: Vec<String> = paths
            .iter()
            .map(|p| format!("duplicate field \"{p}\""))
            .collect();
        assert_eq!(parsed.value, *value, "{text}");
        assert_eq!(parsed.duplicates, expected, "{text}");
    }

    #[test]
    fn of_two_members_the_last_wins_and_both_are_reported() {
        check_duplicates(r#"{"a": 1, "b": 2}"#, &json!({"a": 1, "b": 2}), &[]);
        check_duplicates(r#"{"a": 1, "a": 2}"#, &json!({"a": 2}), &["a"]);
        check_duplicates(r#"{"a": 1, "a": 2, "a": 3}"#, &json!({"a": 3}), &["a"]);
        check_duplicates(
            r#"{"spec": {"containers": [{}, {"image": "x", "image": "y"}]}}"#,
            &json!({"spec": {"containers": [{}, {"image": "y"}]}}),
            &["spec.containers[1].image"],
        );
    }

    #[test]
    fn findings_are_bounded() {
        let members: Vec<String> = (0..150)
            .map(|n| format!("\"k{n}\": 1, \"k{n}\": 1"))
            .collect();
        let parsed = parse(format!("{{{}}}", members.join(",")).as_bytes()).unwrap();
        assert_eq!(parsed.duplicates.len(), 100);
    }

    #[test]
    fn numbers_keep_what_they_can() {
        let text =
            r#"[9223372036854775807, -9223372036854775808, 18446744073709551615, 0.1, 1e400]"#;
        assert!(
            parse(text.as_bytes()).is_err(),
            "1e400 is no number we could hold"
        );
        let text = r#"[9223372036854775807, -9223372036854775808, 18446744073709551615, 0.1]"#;
        assert_eq!(
            parse(text.as_bytes()).unwrap().value.to_string(),
            text.replace(' ', "")
        );
    }

    #[test]
    fn broken_bodies_are_explained() {
        let deep = "[".repeat(5000) + &"]".repeat(5000);
        for (body, expected) in [
            (&b""[..], "unexpected end of JSON input"),
            (
                b"{\"a\": 1} x",
                "invalid character 'x' after top-level value",
            ),
            (
                b"apiVersion: v1",
                "invalid character 'a' looking for beginning of value",
            ),
            (b"{\"a\": \"\xff\"}", "invalid UTF-8 in JSON"),
            (deep.as_bytes(), "exceeded max depth"),
        ] {
            assert_eq!(parse(body).unwrap_err(), expected);
        }
    }

    #[test]
    fn a_raw_member_keeps_every_byte() {
        let body = br#"{"kind": "X", "data": {"b": "\u003c&", "a":  1.0}, "revision": 1}"#;
        let raw = raw_member(body, "data");
        assert_eq!(raw, Some(r#"{"b": "\u003c&", "a":  1.0}"#));
        assert_eq!(raw_member(body, "nope"), None);
        assert_eq!(raw_member(br#"{"data": 1, "data": 2}"#, "data"), Some("2"));
        assert_eq!(raw_member(b"[1]", "data"), None);
        assert_eq!(raw_member(b"{\"data\": ", "data"), None);
    }
}

mod conforming {
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

    #[test]
    fn values_of_the_wrong_type_are_refused_in_go_s_words() {
        let field = |field: &str, go: &str| format!("json: cannot unmarshal {field} of type {go}");
        let ds = |spec: Value| json!({"spec": spec});
        let template = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
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
            check_error("apps.v1.DaemonSet", &given, &field(into, go));
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
}
