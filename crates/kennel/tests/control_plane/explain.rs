//! `kubectl explain`, for every resource of the server and with each kubectl.

use kennel_testkit::{Kennel, Kubectl, Version};

const BINARY: &str = env!("CARGO_BIN_EXE_kennel");

fn explains_everything(version: Version) {
    let kennel = Kennel::up(BINARY, 0);
    let kubectl = Kubectl::new(version, &kennel.kubeconfig());
    let names = kubectl.run(&["api-resources", "-o", "name"]).ok();
    let names: Vec<&str> = names.lines().collect();
    assert!(names.len() > 20, "{names:?}");
    for name in names {
        // Behind a dot, explain expects a field.
        let name = name.split('.').next().unwrap_or(name);
        let shown = kubectl.run(&["explain", name]).ok();
        assert!(shown.contains("DESCRIPTION:"), "{shown}");
        assert!(
            shown.contains("APIVersion defines the versioned schema"),
            "{shown}"
        );
        assert!(!shown.contains("<empty>"), "{shown}");
        let fields = kubectl.run(&["explain", name, "--recursive"]).ok();
        assert!(fields.contains("apiVersion\t<string>"), "{fields}");
        assert!(fields.lines().count() > 10, "{fields}");
    }
    // The older one looks for the kind Pod in the other group.
    if version == Version::V1_32 {
        let metrics = ["explain", "pods", "--api-version=metrics.k8s.io/v1beta1"];
        let metrics = kubectl.run(&metrics).ok();
        let words = "PodMetrics sets resource usage";
        assert!(metrics.contains(words), "{metrics}");
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
