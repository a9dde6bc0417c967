//! What strategic merge patches do, in the shapes that clients really send.

use super::*;

fn patched(name: &str, doc: &Value, patch: &Value) -> Result<Value, PatchError> {
    let mut actual = doc.clone();
    strategic::apply(ty(name), &mut actual, patch.clone())?;
    Ok(actual)
}

fn check(name: &str, doc: &Value, patch: &Value, expected: &Value) {
    assert_eq!(
        patched(name, doc, patch).as_ref(),
        Ok(expected),
        "{doc} {patch}"
    );
}

fn check_spec(doc: &Value, patch: &Value, expected: &Value) {
    check("core.v1.PodSpec", doc, patch, expected);
}

fn check_malformed(doc: &Value, patch: &Value, expected: &str) {
    let expected = PatchError::Malformed(expected.to_owned());
    let actual = patched("core.v1.PodSpec", doc, patch);
    assert_eq!(actual, Err(expected), "{doc} {patch}");
}

#[test]
fn kubectl_set_image() {
    check(
        "apps.v1.DaemonSet",
        &json!({"spec": {"template": {"spec": {"containers": [
            {"name": "a", "image": "a:1", "args": ["x"]}, {"name": "b", "image": "b:1"}]}}}}),
        &json!({"spec": {"template": {"spec": {
            "$setElementOrder/containers": [{"name": "a"}, {"name": "b"}],
            "containers": [{"name": "b", "image": "b:2"}]}}}}),
        &json!({"spec": {"template": {"spec": {"containers": [
            {"name": "a", "image": "a:1", "args": ["x"]}, {"name": "b", "image": "b:2"}]}}}}),
    );
}

#[test]
fn kubectl_rollout_undo_replaces_the_template() {
    check(
        "apps.v1.DaemonSet",
        &json!({"metadata": {"name": "d"}, "spec": {"minReadySeconds": 5, "template": {
            "metadata": {"labels": {"a": "1", "new": "1"}},
            "spec": {"containers": [{"name": "new"}], "hostNetwork": true}}}}),
        &json!({"spec": {"template": {"$patch": "replace",
            "metadata": {"labels": {"a": "1"}, "creationTimestamp": null},
            "spec": {"containers": [{"name": "old"}]}}}}),
        &json!({"metadata": {"name": "d"}, "spec": {"minReadySeconds": 5, "template": {
            "metadata": {"labels": {"a": "1"}},
            "spec": {"containers": [{"name": "old"}]}}}}),
    );
}

#[test]
fn kubectl_rollout_restart_and_apply() {
    check(
        "apps.v1.DaemonSet",
        &json!({"spec": {"template": {"spec": {"containers": [{"name": "a"}]}}}}),
        &json!({"spec": {"template": {"metadata": {"annotations": {
            "kubectl.kubernetes.io/restartedAt": "now"}}}}}),
        &json!({"spec": {"template": {
            "metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}},
            "spec": {"containers": [{"name": "a"}]}}}}),
    );
    check(
        "apps.v1.DaemonSet",
        &json!({"metadata": {"annotations": {"last": "1"}}, "spec": {"template": {"spec": {
            "containers": [{"name": "a", "env": [{"name": "X", "value": "1"}, {"name": "Y"}]}],
            "nodeSelector": {"x": "1"}}}}}),
        &json!({"metadata": {"annotations": {"last": "2"}}, "spec": {"template": {"spec": {
            "$setElementOrder/containers": [{"name": "a"}],
            "containers": [{"$setElementOrder/env": [{"name": "Z"}, {"name": "Y"}],
                "env": [{"name": "Z", "value": "3"}, {"name": "X", "$patch": "delete"}],
                "name": "a"}],
            "nodeSelector": null}}}}),
        &json!({"metadata": {"annotations": {"last": "2"}}, "spec": {"template": {"spec": {
            "containers": [{"name": "a", "env": [{"name": "Z", "value": "3"}, {"name": "Y"}]}]}}}}),
    );
}

#[test]
fn kubectl_taint_and_cordon() {
    check(
        "core.v1.Node",
        &json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}], "podCIDR": "x"}}),
        &json!({"spec": {"taints": [{"key": "b", "effect": "NoExecute"}], "unschedulable": true}}),
        &json!({"spec": {"taints": [{"key": "b", "effect": "NoExecute"}], "podCIDR": "x",
            "unschedulable": true}}),
    );
    check(
        "core.v1.Node",
        &json!({"spec": {"taints": [{"key": "a"}], "unschedulable": true}}),
        &json!({"spec": {"taints": null, "unschedulable": null}}),
        &json!({"spec": {}}),
    );
}

#[test]
fn kubelet_replaces_the_addresses_of_its_node() {
    check(
        "core.v1.Node",
        &json!({"status": {"addresses": [{"type": "InternalIP", "address": "1"},
            {"type": "Hostname", "address": "h"}]}}),
        &json!({"status": {
            "$setElementOrder/conditions": [{"type": "Ready"}],
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": "2"},
                {"type": "InternalIP", "address": "fd::2"}, {"$patch": "replace"}]}}),
        &json!({"status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": "2"},
                {"type": "InternalIP", "address": "fd::2"}]}}),
    );
}

#[test]
fn kubelet_updates_conditions_of_its_node() {
    check(
        "core.v1.Node",
        &json!({"status": {"conditions": [{"type": "MemoryPressure", "status": "False"},
            {"type": "Custom", "status": "True"}, {"type": "Ready", "status": "False", "reason": "x"}]}}),
        &json!({"metadata": {"uid": "u"}, "status": {
            "$setElementOrder/conditions": [{"type": "MemoryPressure"}, {"type": "Ready"}],
            "conditions": [{"type": "Ready", "status": "True", "reason": null}]}}),
        &json!({"metadata": {"uid": "u"}, "status": {"conditions": [
            {"type": "MemoryPressure", "status": "False"},
            {"type": "Custom", "status": "True"},
            {"type": "Ready", "status": "True"}]}}),
    );
}

#[test]
fn finalizers_are_a_set() {
    let doc = json!({"metadata": {"finalizers": ["a", "b"]}});
    for (patch, expected) in [
        (json!({"finalizers": ["b", "c"]}), json!(["a", "b", "c"])),
        (json!({"finalizers": ["c"]}), json!(["c", "a", "b"])),
        (
            json!({"$deleteFromPrimitiveList/finalizers": ["a", "z"]}),
            json!(["b"]),
        ),
        (
            json!({"$setElementOrder/finalizers": ["b", "a"]}),
            json!(["b", "a"]),
        ),
        (
            json!({"$setElementOrder/finalizers": ["c", "b"],
                "$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"]}),
            json!(["c", "b"]),
        ),
    ] {
        let patch = json!({"metadata": patch});
        let expected = json!({"metadata": {"finalizers": expected}});
        check("core.v1.Pod", &doc, &patch, &expected);
    }
    check(
        "core.v1.Pod",
        &doc,
        &json!({"metadata": {"finalizers": null, "resourceVersion": "1"}}),
        &json!({"metadata": {"resourceVersion": "1"}}),
    );
}

#[test]
fn the_collector_orphans_by_deleting_an_owner() {
    check(
        "core.v1.Pod",
        &json!({"metadata": {"ownerReferences": [{"uid": "1", "name": "a"}, {"uid": "2"}]}}),
        &json!({"metadata": {"uid": "p",
            "ownerReferences": [{"$patch": "delete", "uid": "1"}]}}),
        &json!({"metadata": {"uid": "p", "ownerReferences": [{"uid": "2"}]}}),
    );
}

#[test]
fn retained_keys_clear_the_others() {
    check_spec(
        &json!({"volumes": [{"name": "v", "emptyDir": {}}, {"name": "w"}]}),
        &json!({"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"],
            "hostPath": {"path": "/"}}]}),
        &json!({"volumes": [{"name": "v", "hostPath": {"path": "/"}}, {"name": "w"}]}),
    );
    let doc = json!({"volumes": [{"name": "v", "emptyDir": {}}]});
    for keys in [json!(["name"]), json!("name")] {
        let patch = json!({"volumes": [{"name": "v", "$retainKeys": keys, "nfs": {}}]});
        check_malformed(&doc, &patch, "invalid patch format of retainKeys");
    }
}

#[test]
fn maps_obey_their_directive() {
    let doc =
        json!({"securityContext": {"runAsUser": 1, "fsGroup": 2}, "nodeSelector": {"a": "1"}});
    check_spec(
        &doc,
        &json!({"securityContext": {"$patch": "delete"}, "nodeSelector": {"$patch": "replace", "b": "2"}}),
        &json!({"nodeSelector": {"b": "2"}}),
    );
    check_spec(
        &doc,
        &json!({"securityContext": {"$patch": "merge", "fsGroup": 3}}),
        &json!({"securityContext": {"runAsUser": 1, "fsGroup": 3}, "nodeSelector": {"a": "1"}}),
    );
    check_malformed(
        &doc,
        &json!({"securityContext": {"$patch": "burn", "fsGroup": 3}}),
        "unknown patch type: burn in map: map[fsGroup:3]",
    );
    check(
        "policy.v1.PodDisruptionBudget",
        &json!({"spec": {"selector": {"matchLabels": {"a": "1"}}}}),
        &json!({"spec": {"selector": {"matchLabels": {"b": "1"}}}}),
        &json!({"spec": {"selector": {"matchLabels": {"b": "1"}}}}),
    );
}

#[test]
fn new_items_come_first_and_server_items_keep_their_place() {
    let containers = |names: &[&str]| {
        let items: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        json!({"containers": items})
    };
    for (current, change, expected) in [
        (&["a"][..], &["b"][..], &["b", "a"][..]),
        (&["a", "b"], &["b", "c"], &["a", "b", "c"]),
        (&["a", "b", "c"], &["c", "a"], &["b", "c", "a"]),
        (&[], &["b", "a"], &["b", "a"]),
    ] {
        check_spec(
            &containers(current),
            &containers(change),
            &containers(expected),
        );
    }
    for (current, order, change, expected) in [
        (
            &["1", "2", "3"][..],
            &["3", "1"][..],
            &["3"][..],
            &["2", "3", "1"][..],
        ),
        (&["1", "x", "2"], &["2", "1"], &[], &["x", "2", "1"]),
        (&["1", "x"], &["1", "2"], &["2"], &["1", "2", "x"]),
    ] {
        let mut patch = containers(change);
        patch["$setElementOrder/containers"] = containers(order)["containers"].clone();
        if change.is_empty() {
            patch.as_object_mut().unwrap().remove("containers");
        }
        check_spec(&containers(current), &patch, &containers(expected));
    }
}

#[test]
fn what_meets_nothing_is_taken_without_nulls_and_directives() {
    check_spec(
        &json!({}),
        &json!({"containers": [{"name": "a", "image": null, "$setElementOrder/env": [{"name": "X"}],
                "env": [{"name": "X", "value": null}, {"name": "Y", "$patch": "delete"}]},
                {"name": "b", "$patch": "delete"}],
            "$setElementOrder/containers": [{"name": "a"}],
            "securityContext": {"$patch": "delete"},
            "affinity": {"nodeAffinity": {"$patch": "replace"}, "podAffinity": null},
            "$deleteFromPrimitiveList/x": ["y"]}),
        &json!({"containers": [{"name": "a", "env": [{"name": "X"}]}],
            "affinity": {"nodeAffinity": {}}}),
    );
}

#[test]
fn unkeyed_lists_are_replaced_whole() {
    check_spec(
        &json!({"tolerations": [{"key": "a"}], "containers": [{"name": "c", "args": ["1", "2"]}]}),
        &json!({"tolerations": [{"key": "b"}], "containers": [{"name": "c", "args": ["3"]}]}),
        &json!({"tolerations": [{"key": "b"}], "containers": [{"name": "c", "args": ["3"]}]}),
    );
}

#[test]
fn unknown_fields_are_kept_for_the_caller_to_report() {
    check(
        "apps.v1.DaemonSet",
        &json!({"spec": {}}),
        &json!({"updateStrategy": {"type": "x"}, "spec": {"bogus": [1]}}),
        &json!({"updateStrategy": {"type": "x"}, "spec": {"bogus": [1]}}),
    );
}

#[test]
fn raw_json_may_hold_directives_as_data() {
    let data = json!({"spec": {"template": {"$patch": "replace", "x": null}}});
    check(
        "apps.v1.ControllerRevision",
        &json!({"data": {"old": true}}),
        &json!({"data": data}),
        &json!({"data": data}),
    );
}

#[test]
fn what_cannot_be_merged_is_refused_in_upstream_s_words() {
    let doc = json!({"containers": [{"name": "a"}], "volumes": [{"name": "v"}]});
    for (patch, expected) in [
        (
            json!({"containers": [{"image": "x"}]}),
            "map: map[image:x] does not contain declared merge key: name",
        ),
        (
            json!({"containers": [{"$patch": "delete"}]}),
            "map: map[$patch:delete] does not contain declared merge key: name",
        ),
        (
            json!({"containers": [{"name": "a", "$patch": "merge"}]}),
            "merging lists cannot yet be specified in the patch",
        ),
        (
            json!({"containers": [{"name": "a", "$patch": "burn"}]}),
            "unknown patch type: burn in map: map[$patch:burn name:a]",
        ),
        (
            json!({"containers": ["a"]}),
            "list element types are not identical: [[map[name:a]] [a]]",
        ),
        (
            json!({"$setElementOrder/containers": {}}),
            "expected a []interface {}, but received a map[string]interface {}",
        ),
        (
            json!({"$setElementOrder": []}),
            "invalid patch format of setElementOrder list",
        ),
        (
            json!({"$deleteFromPrimitiveList/containers": 1}),
            "invalid patch format of primitive list",
        ),
        (
            json!({"$deleteFromPrimitiveList": []}),
            "invalid patch format of primitive list",
        ),
        (
            json!({"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "a"}]}),
            "The order in patch list:\n[map[name:a]]\n doesn't match $setElementOrder list:\n[map[name:b]]\n",
        ),
    ] {
        check_malformed(&doc, &patch, expected);
    }
    let error = patched("core.v1.PodSpec", &doc, &json!({"containers": [[1]]})).unwrap_err();
    assert!(matches!(error, PatchError::Malformed(_)), "{error}");
    let error = patched(
        "core.v1.PodSpec",
        &json!({"containers": []}),
        &json!({"containers": [[1]]}),
    );
    let expected = "lists of lists are not supported".to_owned();
    assert_eq!(error, Err(PatchError::Rejected(expected)));
    let error = patched("core.v1.PodSpec", &doc, &json!("x")).unwrap_err();
    assert!(
        error.to_string().starts_with("error decoding patch: "),
        "{error}"
    );
}
