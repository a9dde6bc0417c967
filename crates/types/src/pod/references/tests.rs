//! Tests of the references of pods.

use serde_json::{Value, json};

use super::*;
use crate::pod::MIRROR_ANNOTATION;

fn check(spec: &Value, expected: &[&str]) {
    let pod = json!({"metadata": {"name": "p"}, "spec": spec}).to_string();
    let mut found = Vec::new();
    let references = PodReferences::from_slice(pod.as_bytes());
    references.for_each(&mut |kind, name| found.push(format!("{kind:?} {name}")));
    assert_eq!(found, expected, "{spec}");
}

#[test]
fn accounts_and_the_secrets_to_pull_images_with() {
    check(
        &json!({"serviceAccountName": "robot", "imagePullSecrets": [{"name": "pull"}, {}]}),
        &["ServiceAccount robot", "Secret pull"],
    );
    check(&json!({"serviceAccountName": "", "volumes": null}), &[]);
}

#[test]
fn variables_of_every_kind_of_container() {
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        check(
            &json!({list: [{
                "env": [
                    {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}},
                    {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                    {"name": "C", "value": "plain"},
                ],
                "envFrom": [{"configMapRef": {"name": "m2"}}, {"secretRef": {"name": "s2"}}],
            }]}),
            &["ConfigMap m", "Secret s", "ConfigMap m2", "Secret s2"],
        );
    }
}

#[test]
fn volumes_of_every_kind() {
    let volume = |source: Value| {
        let mut volume = source;
        volume["name"] = "v".into();
        json!({"volumes": [volume]})
    };
    check(
        &volume(json!({"configMap": {"name": "m"}})),
        &["ConfigMap m"],
    );
    check(
        &volume(json!({"secret": {"secretName": "s"}})),
        &["Secret s"],
    );
    check(
        &volume(json!({"projected": {"sources": [
            {"serviceAccountToken": {"path": "token"}},
            {"configMap": {"name": "m"}}, {"secret": {"name": "s"}}]}})),
        &["ConfigMap m", "Secret s"],
    );
    check(
        &volume(json!({"persistentVolumeClaim": {"claimName": "c"}})),
        &["PersistentVolumeClaim c"],
    );
    check(
        &volume(json!({"ephemeral": {"volumeClaimTemplate": {}}})),
        &["PersistentVolumeClaim p-v"],
    );
    check(
        &volume(json!({"csi": {"driver": "d", "nodePublishSecretRef": {"name": "s"}}})),
        &["Secret s"],
    );
    check(
        &volume(json!({"azureFile": {"secretName": "s"}})),
        &["Secret s"],
    );
    for kind in [
        "cephfs",
        "cinder",
        "flexVolume",
        "iscsi",
        "rbd",
        "scaleIO",
        "storageos",
    ] {
        check(
            &volume(json!({kind: {"secretRef": {"name": "s"}}})),
            &["Secret s"],
        );
    }
    check(&volume(json!({"emptyDir": {}})), &[]);
}

#[test]
fn mirror_pods_have_the_annotation() {
    let pod =
        json!({"metadata": {"annotations": {MIRROR_ANNOTATION: "x", "other": "y"}}}).to_string();
    assert!(PodReferences::from_slice(pod.as_bytes()).is_mirror());
    assert!(!PodReferences::from_slice(b"{\"metadata\":{\"annotations\":{}}}").is_mirror());
    assert!(!PodReferences::from_slice(b"no pod at all").is_mirror());
}
