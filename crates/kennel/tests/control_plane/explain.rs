//! `kubectl explain`, for every resource of the server and with each kubectl.

use kennel_testkit::{Kennel, Kubectl, Version};
use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_kennel");

/// Every name in every version that a group serves, from discovery.
fn resources(kennel: &Kennel) -> Vec<(String, String)> {
    let kubectl = Kubectl::new(Version::V1_36, &kennel.kubeconfig());
    let raw = |path: &str| -> Value {
        let text = kubectl.run(&["get", "--raw", path]).ok();
        serde_json::from_str(&text).unwrap()
    };
    let mut found = Vec::new();
    let mut list = |path: &str, api_version: &str| {
        let list = raw(path);
        let names = list["resources"].as_array().unwrap().iter();
        let names = names.filter_map(|resource| resource["name"].as_str());
        let names = names.filter(|name| !name.contains('/'));
        found.extend(names.map(|name| (name.to_owned(), api_version.to_owned())));
    };
    list("/api/v1", "v1");
    for group in raw("/apis")["groups"].as_array().unwrap() {
        for version in group["versions"].as_array().unwrap() {
            let version = version["groupVersion"].as_str().unwrap();
            list(&format!("/apis/{version}"), version);
        }
    }
    found
}

/// Resources that share their names with those of another group or version are explained as what they are.
fn explains_second_groups(kubectl: &Kubectl) {
    for (name, version, words) in [
        ("events", "events.k8s.io/v1", "regarding"),
        (
            "nodes",
            "metrics.k8s.io/v1beta1",
            "NodeMetrics sets resource usage",
        ),
        (
            "pods",
            "metrics.k8s.io/v1beta1",
            "PodMetrics sets resource usage",
        ),
        ("pdb", "policy/v1beta1", "VERSION:    v1beta1"),
    ] {
        let shown = kubectl.run(&["explain", name, &format!("--api-version={version}")]);
        let shown = shown.ok();
        assert!(shown.contains(words), "{shown}");
    }
}

fn explains_everything(version: Version) {
    let kennel = Kennel::up(BINARY, 0);
    let kubectl = Kubectl::new(version, &kennel.kubeconfig());
    let served = resources(&kennel);
    assert!(served.len() > 40, "{served:?}");
    for (name, api_version) in &served {
        // kubectl 1.20 looks for the kind of the first group that has the name.
        let is_second = matches!(
            api_version.as_str(),
            "events.k8s.io/v1" | "metrics.k8s.io/v1beta1"
        );
        if version == Version::V1_20 && is_second {
            continue;
        }
        let version = format!("--api-version={api_version}");
        let shown = kubectl.run(&["explain", name, &version]).ok();
        assert!(shown.contains("DESCRIPTION:"), "{shown}");
        assert!(
            shown.contains("APIVersion defines the versioned schema"),
            "{shown}"
        );
        assert!(!shown.contains("<empty>"), "{shown}");
        // Where rustdoc escapes brackets, users must not see it.
        assert!(!shown.contains("\\["), "{shown}");
        let (_, short) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        assert!(shown.contains(short), "{shown}");
        let fields = kubectl
            .run(&["explain", name, &version, "--recursive"])
            .ok();
        assert!(fields.contains("apiVersion\t<string>"), "{fields}");
        assert!(fields.lines().count() > 10, "{fields}");
    }
    if version != Version::V1_20 {
        explains_second_groups(&kubectl);
    }
    let field = kubectl
        .run(&[
            "explain",
            "ds.spec.updateStrategy.rollingUpdate.maxUnavailable",
        ])
        .ok();
    assert!(
        field.contains("The maximum number of DaemonSet pods"),
        "{field}"
    );
    let deep = kubectl
        .run(&[
            "explain",
            "daemonset.spec.template.spec.containers.imagePullPolicy",
        ])
        .ok();
    assert!(deep.contains("IfNotPresent"), "{deep}");
    let wrong = kubectl.run(&["explain", "ds.spec.nothing"]);
    assert!(
        wrong.stderr.contains("field \"nothing\" does not exist"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn every_resource_is_explained_by_kubectl_1_20() {
    explains_everything(Version::V1_20);
}

#[test]
fn every_resource_is_explained_by_kubectl_1_32() {
    explains_everything(Version::V1_32);
}

#[test]
fn every_resource_is_explained_by_kubectl_1_36() {
    explains_everything(Version::V1_36);
}
