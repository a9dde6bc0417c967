//! Configurations of containers and sandboxes.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use kennel_core::pod::tracker::StartFailure;
use kennel_types::pod::WaitingReason;
use serde_json::{Value, json};

use super::fixture::{Fixture, pod, root};
use crate::pods::{Pod, PodInputs as _};
use crate::runtime::{ContainerConfig, Image, Mount, Propagation};

async fn config(fixture: &Fixture, pod: &Pod) -> Result<ContainerConfig, StartFailure> {
    let image = Image {
        reference: "sha".into(),
        ..Image::default()
    };
    let addresses = ["10.1.0.7".parse().unwrap()];
    let config = fixture
        .inputs
        .container_config(pod, "c", 0, &image, &addresses)
        .await;
    let expected = WaitingReason::CreateContainerConfigError;
    config.inspect_err(|failure| assert_eq!(failure.reason, expected))
}

async fn env(
    fixture: &Fixture,
    container: Value,
) -> Result<BTreeMap<String, String>, StartFailure> {
    let mut container = container;
    container["name"] = json!("c");
    let pod = pod(json!({"containers": [container]}));
    let config = config(fixture, &pod).await;
    fixture.inputs.remove("u1").await.unwrap();
    config.map(|config| config.env.into_iter().collect())
}

#[tokio::test]
async fn variables_come_from_all_sources() {
    let fixture = Fixture::open().await;
    fixture
        .add_config("settings", json!({"color": "red", "size": "1"}))
        .await;
    fixture.add_secret("key", json!({"token": "s3cret"})).await;
    let container = json!({
        "resources": {"limits": {"memory": "1Gi"}},
        "envFrom": [
            {"configMapRef": {"name": "settings"}},
            {"prefix": "KEY_", "secretRef": {"name": "key"}},
            {"configMapRef": {"name": "absent", "optional": true}}],
        "env": [
            {"name": "size", "value": "2"},
            {"name": "BOTH", "value": "$(color)-$(size)-$(LATER)-$$(size)"},
            {"name": "LATER", "value": "x"},
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "MEM", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
            {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "color"}}},
            {"name": "S", "valueFrom": {"secretKeyRef": {"name": "key", "key": "token"}}},
            {"name": "NONE", "valueFrom": {"secretKeyRef": {"name": "key", "key": "no", "optional": true}}},
            {"name": "EMPTY"},
            {"name": "API", "value": "https://$(KUBERNETES_SERVICE_HOST):$(KUBERNETES_SERVICE_PORT)"}]});
    let found = env(&fixture, container).await.unwrap();
    let expected = [
        ("API", "https://192.0.2.5:6443"),
        ("BOTH", "red-2-$(LATER)-$(size)"),
        ("C", "red"),
        ("EMPTY", ""),
        ("IP", "10.1.0.7"),
        ("KEY_token", "s3cret"),
        ("KUBERNETES_SERVICE_HOST", "192.0.2.5"),
        ("KUBERNETES_SERVICE_PORT", "6443"),
        ("KUBERNETES_SERVICE_PORT_HTTPS", "6443"),
        ("LATER", "x"),
        ("MEM", "1024"),
        ("NODE", "n1"),
        ("S", "s3cret"),
        ("color", "red"),
        ("size", "2"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(found, expected.into_iter().collect());
}

#[tokio::test]
async fn missing_sources_of_variables_are_errors() {
    let fixture = Fixture::open().await;
    fixture
        .add_config("settings", json!({"color": "red"}))
        .await;
    let check = async |container: Value, expected: &str| {
        assert_eq!(
            env(&fixture, container).await.unwrap_err().message,
            expected
        );
    };
    let one = |from: Value| json!({"env": [{"name": "A", "valueFrom": from}]});
    check(
        one(json!({"configMapKeyRef": {"name": "no", "key": "k"}})),
        "configmap \"no\" not found",
    )
    .await;
    check(
        one(json!({"configMapKeyRef": {"name": "settings", "key": "k"}})),
        "couldn't find key k in ConfigMap shop/settings",
    )
    .await;
    check(
        json!({"envFrom": [{"secretRef": {"name": "no"}}]}),
        "secret \"no\" not found",
    )
    .await;
}

#[tokio::test]
async fn commands_and_files() {
    let fixture = Fixture::open().await;
    let spec = json!({"containers": [{"name": "c", "image": "i:1", "env": [{"name": "A", "value": "1"}],
        "command": ["run", "$(A)"], "args": ["--x=$(A)", "$(B)"], "workingDir": "/w", "stdin": true,
        "terminationMessagePath": "/dev/termination-log", "lifecycle": {"stopSignal": "SIGUSR1"}}]});
    let pod = pod(spec);
    let config = config(&fixture, &pod).await.unwrap();
    assert_eq!(config.command, ["run", "1"]);
    assert_eq!(config.args, ["--x=1", "$(B)"]);
    assert_eq!(
        (&*config.working_dir, &*config.image, config.stdin),
        ("/w", "i:1", true)
    );
    assert_eq!(
        (&*config.image_reference, &*config.stop_signal),
        ("sha", "SIGUSR1")
    );
    assert_eq!(config.log_path, Path::new("c/0.log"));
    assert!(fixture.dir.path().join("logs/pods/shop_web_u1/c").is_dir());
    let at = |path: &str| {
        let mount = config
            .mounts
            .iter()
            .find(|mount| mount.container_path == Path::new(path));
        mount.unwrap().host_path.clone()
    };
    let hosts = std::fs::read_to_string(at("/etc/hosts")).unwrap();
    assert!(hosts.contains("10.1.0.7\tweb\n"), "{hosts}");
    std::fs::write(at("/dev/termination-log"), "farewell").unwrap();
    let words = async |attempt| {
        fixture
            .inputs
            .termination_message(&pod, "c", attempt, true)
            .await
    };
    assert_eq!(words(0).await, "farewell");
    assert_eq!(words(1).await, "");
}

#[tokio::test]
async fn without_images_only_files_that_differ_from_the_machines_are_mounted() {
    let fixture = Fixture::with_images(false).await;
    let paths = async |spec: Value| -> Vec<String> {
        let config = config(&fixture, &pod(spec)).await.unwrap();
        let mounts = config.mounts.iter();
        mounts
            .map(|mount| mount.container_path.display().to_string())
            .collect()
    };
    let spec = |more: Value| {
        let mut spec =
            json!({"hostNetwork": true, "dnsPolicy": "Default", "containers": [{"name": "c"}]});
        spec.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        spec
    };
    assert!(paths(spec(json!({}))).await.is_empty());
    let aliases = json!({"hostAliases": [{"ip": "10.0.0.9", "hostnames": ["db"]}]});
    assert_eq!(paths(spec(aliases)).await, ["/etc/hosts"]);
    let dns = json!({"dnsPolicy": "None", "dnsConfig": {"nameservers": ["192.0.2.7"]}});
    assert_eq!(paths(spec(dns)).await, ["/etc/resolv.conf"]);
    let resolv = std::fs::read_to_string(fixture.path("resolv.conf")).unwrap();
    assert_eq!(resolv, "nameserver 192.0.2.7\n");
}

#[tokio::test]
async fn volumes_are_mounted_in_order() {
    let fixture = Fixture::open().await;
    fixture.add_config("settings", json!({"a": "1"})).await;
    let spec = json!({
        "volumes": [
            {"name": "host", "hostPath": {"path": "/proc"}},
            {"name": "config", "configMap": {"name": "settings"}},
            {"name": "tmp", "emptyDir": {}}],
        "containers": [{"name": "c", "volumeMounts": [
            {"name": "config", "mountPath": "/data/etc"},
            {"name": "tmp", "mountPath": "/data"},
            {"name": "host", "mountPath": "/host/proc", "readOnly": true, "mountPropagation": "HostToContainer"}]}]});
    let pod = pod(spec);
    fixture.inputs.prepare(&pod).await.unwrap();
    let config = config(&fixture, &pod).await.unwrap();
    let shown = |mount: &Mount| {
        let path = mount.container_path.display();
        format!("{path} {} {:?}", mount.read_only, mount.propagation)
    };
    let shown: Vec<String> = config.mounts.iter().map(shown).collect();
    let expected = [
        "/data false Private",
        "/data/etc true Private",
        "/host/proc true HostToContainer",
        "/etc/hosts false Private",
    ];
    assert_eq!(shown, expected);
    assert_eq!(config.mounts[2].propagation, Propagation::HostToContainer);
}

/// Mounts a sub path of a volume that has a file, a directory, and links within and out of it.
async fn sub_path(
    fixture: &Fixture,
    sub_path: &str,
    expression: bool,
) -> Result<PathBuf, StartFailure> {
    let key = if expression { "subPathExpr" } else { "subPath" };
    let mount = json!({"name": "v", "mountPath": "/v", key: sub_path});
    let spec = json!({"volumes": [{"name": "v", "emptyDir": {}}], "containers": [
        {"name": "c", "env": [{"name": "A", "value": "dir"}], "volumeMounts": [mount]}]});
    let pod = pod(spec);
    fixture.inputs.prepare(&pod).await.unwrap();
    let dir = fixture.path("volumes/kubernetes.io~empty-dir/v");
    if !dir.join("dir").exists() {
        std::fs::create_dir(dir.join("dir")).unwrap();
        std::fs::write(dir.join("dir/file"), "inside").unwrap();
        symlink("dir", dir.join("within")).unwrap();
        symlink("/etc", dir.join("absolute")).unwrap();
        symlink("../../../..", dir.join("up")).unwrap();
    }
    let config = config(fixture, &pod).await?;
    let mount = config
        .mounts
        .iter()
        .find(|mount| mount.container_path == Path::new("/v"));
    Ok(mount.unwrap().host_path.clone())
}

#[tokio::test]
async fn sub_paths_do_not_lead_out_of_their_volume() {
    if !root() {
        return;
    }
    let fixture = Fixture::open().await;
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    assert_eq!(
        read(&sub_path(&fixture, "dir/file", false).await.unwrap()),
        "inside"
    );
    assert_eq!(
        read(&sub_path(&fixture, "dir", false).await.unwrap().join("file")),
        "inside"
    );
    assert_eq!(
        read(&sub_path(&fixture, "within/file", false).await.unwrap()),
        "inside"
    );
    assert_eq!(
        read(&sub_path(&fixture, "$(A)/file", true).await.unwrap()),
        "inside"
    );
    let fresh = sub_path(&fixture, "dir/new/deep", false).await.unwrap();
    assert!(fresh.is_dir());
    std::fs::write(fresh.join("x"), "seen").unwrap();
    let dir = fixture.path("volumes/kubernetes.io~empty-dir/v");
    assert_eq!(read(&dir.join("dir/new/deep/x")), "seen");
    let check = async |path: &str, expected: &str| {
        let error = sub_path(&fixture, path, false).await.unwrap_err().message;
        assert!(error.contains(expected), "{path}: {error}");
    };
    check("absolute", "leads out of the volume").await;
    check("absolute/new", "leads out of the volume").await;
    check("up", "leads out of the volume").await;
    check("up/new", "leads out of the volume").await;
    check("../x", "must not contain '..'").await;
    check("/x", "must not be an absolute path").await;
    let unknown = sub_path(&fixture, "$(UNKNOWN)", true).await;
    let unknown = unknown.unwrap_err().message;
    assert_eq!(unknown, "missing value for \"UNKNOWN\"");
    assert!(!Path::new("/etc/new").exists());
    // What is mounted stays, even if a link is put in its place later.
    let held = sub_path(&fixture, "dir", false).await.unwrap();
    std::fs::rename(dir.join("dir"), dir.join("moved")).unwrap();
    symlink("/etc", dir.join("dir")).unwrap();
    assert_eq!(read(&held.join("file")), "inside");
    fixture.inputs.remove("u1").await.unwrap();
}

#[tokio::test]
async fn sandboxes_have_the_settings_of_the_pod() {
    let fixture = Fixture::open().await;
    let spec = json!({
        "hostname": "h", "subdomain": "s", "setHostnameAsFQDN": true, "shareProcessNamespace": true,
        "securityContext": {"runAsUser": 5, "fsGroup": 6,
            "sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "0"}]},
        "initContainers": [{"name": "i", "ports": [{"containerPort": 1, "hostPort": 1}]}],
        "containers": [{"name": "c", "securityContext": {"privileged": true},
            "ports": [{"containerPort": 80, "hostPort": 8080}, {"containerPort": 53, "protocol": "UDP"}]}]});
    let config = fixture.inputs.sandbox_config(&pod(spec), 3).await.unwrap();
    assert_eq!(
        (config.attempt, &*config.hostname),
        (3, "h.s.shop.svc.cluster.local")
    );
    assert!(config.share_processes && config.privileged && !config.host_pid);
    let ports: Vec<(u16, u16)> = config
        .ports
        .iter()
        .map(|port| (port.container, port.host))
        .collect();
    assert_eq!(ports, [(80, 8080)]);
    assert_eq!(config.sysctls["net.ipv4.tcp_syncookies"], "0");
    assert_eq!(
        (config.security.user, config.security.groups),
        (Some(5), vec![6])
    );
    assert_eq!(config.cgroup, "/kubepods/besteffort/podu1");
    assert!(config.dns.is_some());
    let refused = async |spec: Value| {
        let failure = fixture
            .inputs
            .sandbox_config(&pod(spec), 0)
            .await
            .unwrap_err();
        assert_eq!(failure.reason.as_str(), "FailedCreatePodSandBox");
        failure.message
    };
    let unsafe_one =
        json!({"securityContext": {"sysctls": [{"name": "kernel.panic", "value": "1"}]}});
    let message = refused(unsafe_one).await;
    assert!(
        message.ends_with("forbidden sysctl: \"kernel.panic\" not allowlisted"),
        "{message}"
    );
    let message = refused(json!({"hostUsers": false})).await;
    assert!(message.contains("user namespaces"), "{message}");
}

#[tokio::test]
async fn pull_secrets_become_registry_logins() {
    let fixture = Fixture::open().await;
    let config = json!({"auths": {"quay.io": {"username": "me", "password": "pw"}}});
    let secret = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "pull"},
        "type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": config.to_string()}});
    fixture.add("secrets", secret).await;
    let spec = json!({"containers": [{"name": "c"}], "imagePullSecrets": [{"name": "no"}, {"name": "pull"}]});
    let pod = pod(spec);
    let found = fixture.inputs.registry_logins(&pod, "quay.io/a/b:1").await;
    assert_eq!(found.len(), 1);
    assert_eq!((&*found[0].username, &*found[0].password), ("me", "pw"));
    assert!(
        fixture
            .inputs
            .registry_logins(&pod, "nginx")
            .await
            .is_empty()
    );
}
