//! Containers and sandboxes, as runtimes are told to make them.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use crate::inputs::testing::{World, pod, root};
use crate::pods::{Pod, PodInputs as _};
use crate::runtime::{ContainerConfig, Image, Mount, Propagation};

async fn made(world: &World, pod: &Pod) -> Result<ContainerConfig, String> {
    let image = Image {
        reference: "sha".into(),
        ..Image::default()
    };
    let addresses = ["10.1.0.7".parse().unwrap()];
    let made = world
        .inputs
        .container_config(pod, "c", 0, &image, &addresses)
        .await;
    made.map_err(|trouble| {
        assert_eq!(trouble.reason, "CreateContainerConfigError");
        trouble.message
    })
}

async fn env(world: &World, container: Value) -> Result<BTreeMap<String, String>, String> {
    let mut container = container;
    container["name"] = json!("c");
    let pod = pod(json!({"containers": [container]}));
    let made = made(world, &pod).await;
    world.inputs.remove("u1").await.unwrap();
    made.map(|made| made.env.into_iter().collect())
}

#[tokio::test]
async fn variables_come_from_everywhere() {
    let world = World::open().await;
    world
        .add_config("settings", json!({"color": "red", "size": "1"}))
        .await;
    world.add_secret("key", json!({"token": "s3cret"})).await;
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
    let found = env(&world, container).await.unwrap();
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
async fn variables_that_cannot_be_had_are_said() {
    let world = World::open().await;
    world.add_config("settings", json!({"color": "red"})).await;
    let check = async |container: Value, expected: &str| {
        assert_eq!(env(&world, container).await.unwrap_err(), expected);
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
    let world = World::open().await;
    let spec = json!({"containers": [{"name": "c", "image": "i:1", "env": [{"name": "A", "value": "1"}],
        "command": ["run", "$(A)"], "args": ["--x=$(A)", "$(B)"], "workingDir": "/w", "stdin": true,
        "terminationMessagePath": "/dev/termination-log", "lifecycle": {"stopSignal": "SIGUSR1"}}]});
    let pod = pod(spec);
    let made = made(&world, &pod).await.unwrap();
    assert_eq!(made.command, ["run", "1"]);
    assert_eq!(made.args, ["--x=1", "$(B)"]);
    assert_eq!(
        (&*made.working_dir, &*made.image, made.stdin),
        ("/w", "i:1", true)
    );
    assert_eq!(
        (&*made.image_reference, &*made.stop_signal),
        ("sha", "SIGUSR1")
    );
    assert_eq!(made.log_path, Path::new("c/0.log"));
    assert!(world.dir.path().join("logs/pods/shop_web_u1/c").is_dir());
    let at = |path: &str| {
        let mount = made
            .mounts
            .iter()
            .find(|mount| mount.container_path == Path::new(path));
        mount.unwrap().host_path.clone()
    };
    let hosts = std::fs::read_to_string(at("/etc/hosts")).unwrap();
    assert!(hosts.contains("10.1.0.7\tweb\n"), "{hosts}");
    std::fs::write(at("/dev/termination-log"), "farewell").unwrap();
    let words = async |attempt| {
        world
            .inputs
            .termination_message(&pod, "c", attempt, true)
            .await
    };
    assert_eq!(words(0).await, "farewell");
    assert_eq!(words(1).await, "");
}

#[tokio::test]
async fn without_images_only_what_differs_from_the_machine_is_mounted() {
    let world = World::with_images(false).await;
    let paths = async |spec: Value| -> Vec<String> {
        let made = made(&world, &pod(spec)).await.unwrap();
        let mounts = made.mounts.iter();
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
    let resolv = std::fs::read_to_string(world.path("resolv.conf")).unwrap();
    assert_eq!(resolv, "nameserver 192.0.2.7\n");
}

#[tokio::test]
async fn volumes_are_mounted_as_asked_and_in_order() {
    let world = World::open().await;
    world.add_config("settings", json!({"a": "1"})).await;
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
    world.inputs.prepare(&pod).await.unwrap();
    let made = made(&world, &pod).await.unwrap();
    let shown = |mount: &Mount| {
        let path = mount.container_path.display();
        format!("{path} {} {:?}", mount.read_only, mount.propagation)
    };
    let shown: Vec<String> = made.mounts.iter().map(shown).collect();
    let expected = [
        "/data false Private",
        "/data/etc true Private",
        "/host/proc true HostToContainer",
        "/etc/hosts false Private",
    ];
    assert_eq!(shown, expected);
    assert_eq!(made.mounts[2].propagation, Propagation::HostToContainer);
}

/// Mounts one part of a volume that has a file, a directory, and links within and out of it.
async fn part(world: &World, part: &str, expression: bool) -> Result<std::path::PathBuf, String> {
    let key = if expression { "subPathExpr" } else { "subPath" };
    let mount = json!({"name": "v", "mountPath": "/v", key: part});
    let spec = json!({"volumes": [{"name": "v", "emptyDir": {}}], "containers": [
        {"name": "c", "env": [{"name": "A", "value": "dir"}], "volumeMounts": [mount]}]});
    let pod = pod(spec);
    world.inputs.prepare(&pod).await.unwrap();
    let dir = world.path("volumes/kubernetes.io~empty-dir/v");
    if !dir.join("dir").exists() {
        std::fs::create_dir(dir.join("dir")).unwrap();
        std::fs::write(dir.join("dir/file"), "inside").unwrap();
        symlink("dir", dir.join("within")).unwrap();
        symlink("/etc", dir.join("absolute")).unwrap();
        symlink("../../../..", dir.join("up")).unwrap();
    }
    let made = made(world, &pod).await?;
    let mount = made
        .mounts
        .iter()
        .find(|mount| mount.container_path == Path::new("/v"));
    Ok(mount.unwrap().host_path.clone())
}

#[tokio::test]
async fn parts_of_volumes_do_not_lead_out_of_them() {
    if !root() {
        return;
    }
    let world = World::open().await;
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    assert_eq!(
        read(&part(&world, "dir/file", false).await.unwrap()),
        "inside"
    );
    assert_eq!(
        read(&part(&world, "dir", false).await.unwrap().join("file")),
        "inside"
    );
    assert_eq!(
        read(&part(&world, "within/file", false).await.unwrap()),
        "inside"
    );
    assert_eq!(
        read(&part(&world, "$(A)/file", true).await.unwrap()),
        "inside"
    );
    let fresh = part(&world, "dir/new/deep", false).await.unwrap();
    assert!(fresh.is_dir());
    std::fs::write(fresh.join("x"), "seen").unwrap();
    let dir = world.path("volumes/kubernetes.io~empty-dir/v");
    assert_eq!(read(&dir.join("dir/new/deep/x")), "seen");
    let check = async |path: &str, expected: &str| {
        let error = part(&world, path, false).await.unwrap_err();
        assert!(error.contains(expected), "{path}: {error}");
    };
    check("absolute", "leads out of the volume").await;
    check("absolute/new", "leads out of the volume").await;
    check("up", "leads out of the volume").await;
    check("up/new", "leads out of the volume").await;
    check("../x", "must not contain '..'").await;
    check("/x", "must not be an absolute path").await;
    let unknown = part(&world, "$(NOBODY)", true).await.unwrap_err();
    assert_eq!(unknown, "missing value for \"NOBODY\"");
    assert!(!Path::new("/etc/new").exists());
    // What is mounted stays, even if a link is put in its place later.
    let held = part(&world, "dir", false).await.unwrap();
    std::fs::rename(dir.join("dir"), dir.join("moved")).unwrap();
    symlink("/etc", dir.join("dir")).unwrap();
    assert_eq!(read(&held.join("file")), "inside");
    world.inputs.remove("u1").await.unwrap();
}

#[tokio::test]
async fn sandboxes_share_what_the_pod_says() {
    let world = World::open().await;
    let spec = json!({
        "hostname": "h", "subdomain": "s", "setHostnameAsFQDN": true, "shareProcessNamespace": true,
        "securityContext": {"runAsUser": 5, "fsGroup": 6,
            "sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "0"}]},
        "initContainers": [{"name": "i", "ports": [{"containerPort": 1, "hostPort": 1}]}],
        "containers": [{"name": "c", "securityContext": {"privileged": true},
            "ports": [{"containerPort": 80, "hostPort": 8080}, {"containerPort": 53, "protocol": "UDP"}]}]});
    let made = world.inputs.sandbox_config(&pod(spec), 3).await.unwrap();
    assert_eq!(
        (made.attempt, &*made.hostname),
        (3, "h.s.shop.svc.cluster.local")
    );
    assert!(made.share_processes && made.privileged && !made.host_pid);
    let ports: Vec<(u16, u16)> = made
        .ports
        .iter()
        .map(|port| (port.container, port.host))
        .collect();
    assert_eq!(ports, [(80, 8080)]);
    assert_eq!(made.sysctls["net.ipv4.tcp_syncookies"], "0");
    assert_eq!(
        (made.security.user, made.security.groups),
        (Some(5), vec![6])
    );
    assert_eq!(made.cgroup, "/kubepods/besteffort/podu1");
    assert!(made.dns.is_some());
    let refused = async |spec: Value| {
        let trouble = world
            .inputs
            .sandbox_config(&pod(spec), 0)
            .await
            .unwrap_err();
        assert_eq!(trouble.reason, "FailedCreatePodSandBox");
        trouble.message
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
async fn pull_secrets_are_logins() {
    let world = World::open().await;
    let config = json!({"auths": {"quay.io": {"username": "me", "password": "pw"}}});
    let secret = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "pull"},
        "type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": config.to_string()}});
    world.add("secrets", secret).await;
    let spec = json!({"containers": [{"name": "c"}], "imagePullSecrets": [{"name": "no"}, {"name": "pull"}]});
    let pod = pod(spec);
    let found = world.inputs.registry_logins(&pod, "quay.io/a/b:1").await;
    assert_eq!(found.len(), 1);
    assert_eq!((&*found[0].username, &*found[0].password), ("me", "pw"));
    assert!(world.inputs.registry_logins(&pod, "nginx").await.is_empty());
}
