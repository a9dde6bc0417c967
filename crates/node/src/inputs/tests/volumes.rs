//! Volumes from before the sandbox until after the end.

use std::os::unix::fs::{MetadataExt as _, symlink};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::inputs::Inputs;
use crate::inputs::testing::{World, about, pod, root, settings, token_api};
use crate::pods::{Origin, Pod, PodInputs as _};

fn mode(world: &World, path: &str) -> u32 {
    let path = world.path("volumes").join(path);
    std::fs::metadata(path).unwrap().mode() & 0o7777
}

#[tokio::test]
async fn objects_become_files_and_changes_reach_them() {
    let world = World::open().await;
    world
        .add_config("settings", json!({"a.conf": "one", "b.conf": "two"}))
        .await;
    world.add_secret("key", json!({"token": "s3cret"})).await;
    let spec = json!({"containers": [{"name": "c"}], "volumes": [
        {"name": "all", "configMap": {"name": "settings"}},
        {"name": "some", "configMap": {"name": "settings", "defaultMode": 0o440,
            "items": [{"key": "a.conf", "path": "etc/a", "mode": 0o600}, {"key": "b.conf", "path": "b"}]}},
        {"name": "key", "secret": {"secretName": "key", "defaultMode": 0o400}},
        {"name": "self", "downwardAPI": {"items": [
            {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}},
            {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {"name": "mixed", "projected": {"sources": [
            {"configMap": {"name": "settings", "items": [{"key": "a.conf", "path": "a"}]}},
            {"secret": {"name": "key"}},
            {"secret": {"name": "absent", "optional": true}},
            {"downwardAPI": {"items": [{"path": "ns", "fieldRef": {"fieldPath": "metadata.namespace"}}]}}]}},
    ]});
    let before = Arc::new(pod(spec));
    world.inputs.keep_fresh(&before);
    world.inputs.prepare(&before).await.unwrap();
    let read = |path: &str| world.read(path);
    assert_eq!(read("kubernetes.io~configmap/all/a.conf"), "one");
    assert_eq!(read("kubernetes.io~configmap/all/b.conf"), "two");
    assert_eq!(read("kubernetes.io~configmap/some/etc/a"), "one");
    assert_eq!(mode(&world, "kubernetes.io~configmap/some/etc/a"), 0o600);
    assert_eq!(mode(&world, "kubernetes.io~configmap/some/b"), 0o440);
    assert_eq!(read("kubernetes.io~secret/key/token"), "s3cret");
    assert_eq!(mode(&world, "kubernetes.io~secret/key/token"), 0o400);
    assert_eq!(read("kubernetes.io~downward-api/self/name"), "web");
    assert_eq!(read("kubernetes.io~projected/mixed/a"), "one");
    assert_eq!(read("kubernetes.io~projected/mixed/token"), "s3cret");
    assert_eq!(read("kubernetes.io~projected/mixed/ns"), "shop");

    world
        .patch(
            "configmaps",
            "settings",
            json!({"data": {"a.conf": "new", "b.conf": null}}),
        )
        .await;
    world
        .wait_for("kubernetes.io~configmap/all/a.conf", "new")
        .await;
    world
        .wait_for("kubernetes.io~projected/mixed/a", "new")
        .await;
    let path = world.path("volumes/kubernetes.io~configmap/all/b.conf");
    assert!(!path.is_symlink());
    // A key that is named is gone: the volume goes on showing what it did.
    assert_eq!(read("kubernetes.io~configmap/some/b"), "two");

    let mut after = Pod::clone(&before);
    after.object["metadata"]["labels"] = json!({"app": "web"});
    world.inputs.keep_fresh(&Arc::new(after));
    world
        .wait_for("kubernetes.io~downward-api/self/labels", "app=\"web\"")
        .await;
    world.inputs.remove("u1").await.unwrap();
    assert!(world.inputs.list().await.unwrap().is_empty());
}

async fn refused(world: &World, volume: Value) -> String {
    let mut volume = volume;
    volume["name"] = json!("v");
    let pod = pod(json!({"containers": [{"name": "c"}], "volumes": [volume]}));
    let trouble = world.inputs.prepare(&pod).await.unwrap_err();
    world.inputs.remove("u1").await.unwrap();
    assert_eq!(
        (trouble.reason, trouble.backoff_reason),
        ("FailedMount", "ContainerCreating")
    );
    let message = trouble.message;
    let rest = message.strip_prefix("MountVolume.SetUp failed for volume \"v\" : ");
    rest.unwrap_or(&message).to_owned()
}

#[tokio::test]
async fn what_is_missing_or_unknown_is_said() {
    let world = World::open().await;
    world.add_config("settings", json!({"a": "1"})).await;
    let check = async |volume: Value, expected: &str| {
        assert_eq!(refused(&world, volume).await, expected);
    };
    check(
        json!({"configMap": {"name": "no"}}),
        "configmap \"no\" not found",
    )
    .await;
    check(
        json!({"secret": {"secretName": "no"}}),
        "secret \"no\" not found",
    )
    .await;
    let items = json!([{"key": "b", "path": "b"}]);
    check(
        json!({"configMap": {"name": "settings", "items": items}}),
        "configmap references non-existent config key: b",
    )
    .await;
    check(
        json!({"hostPath": {"path": "/nowhere/at/all", "type": "Directory"}}),
        "hostPath type check failed: /nowhere/at/all is not a directory",
    )
    .await;
    let claim = refused(&world, json!({"persistentVolumeClaim": {"claimName": "x"}})).await;
    assert!(
        claim.starts_with("volumes of kind persistentVolumeClaim are not served"),
        "{claim}"
    );
    let trust = json!({"projected": {"sources": [{"clusterTrustBundle": {"name": "x"}}]}});
    let trust = refused(&world, trust).await;
    assert!(
        trust.starts_with("clusterTrustBundle in projected volumes is not served"),
        "{trust}"
    );
    let optional =
        json!({"name": "v", "configMap": {"name": "settings", "items": items, "optional": true}});
    let pod = pod(json!({"containers": [{"name": "c"}], "volumes": [optional]}));
    world.inputs.prepare(&pod).await.unwrap();
}

#[tokio::test]
async fn an_object_that_comes_late_is_found() {
    let world = World::open().await;
    let volume = json!({"name": "v", "configMap": {"name": "late"}});
    let pod = pod(json!({"containers": [{"name": "c"}], "volumes": [volume]}));
    world.inputs.prepare(&pod).await.unwrap_err();
    world.add_config("late", json!({"a": "1"})).await;
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(20);
    while world.inputs.prepare(&pod).await.is_err() {
        assert!(tokio::time::Instant::now() < deadline);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(world.read("kubernetes.io~configmap/v/a"), "1");
}

#[tokio::test]
async fn only_what_pods_name_is_watched_and_only_once() {
    let world = World::open().await;
    world.add_config("settings", json!({"a": "1"})).await;
    world.add_config("other", json!({"a": "1"})).await;
    let volume = json!({"name": "v", "configMap": {"name": "settings"}});
    let one = pod(json!({"containers": [{"name": "c"}], "volumes": [volume]}));
    let mut two = one.clone();
    two.id.uid = "u2".into();
    for pod in [&one, &two] {
        world.inputs.prepare(pod).await.unwrap();
    }
    let asked = world.asked.lock().unwrap().clone();
    let named =
        |uri: &&String| uri.contains("/configmaps") && uri.contains("metadata.name%3Dsettings");
    let lists = asked.iter().filter(|uri| !uri.contains("watch=true"));
    assert_eq!(lists.filter(named).count(), 1, "{asked:?}");
    assert!(asked.iter().all(|uri| named(&uri)), "{asked:?}");
}

/// A pod that went through the API's admission has a token of its service account.
#[tokio::test]
async fn pods_of_the_api_get_tokens() {
    let world = World::open().await;
    world.wait_until_there("serviceaccounts", "default").await;
    world
        .wait_until_there("configmaps", "kube-root-ca.crt")
        .await;
    let object = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "c", "image": "i"}], "securityContext": {"runAsUser": 7}}});
    let mut object = world.add("pods", object).await;
    object["spec"]["nodeName"] = json!("n1");
    let pod = Pod::parse(object, Origin::Api).unwrap();
    let name = pod.raw_spec()["volumes"][0]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    world.inputs.prepare(&pod).await.unwrap();
    let paths = settings(world.dir.path()).paths;
    let dir = paths.volume(&pod.id.uid, "kubernetes.io~projected", &name);
    let read = |file: &str| std::fs::read_to_string(dir.join(file)).unwrap();
    assert!(read("ca.crt").starts_with("-----BEGIN CERTIFICATE"));
    assert_eq!(read("namespace"), "shop");
    assert_eq!(read("token").split('.').count(), 3, "it is a JWT");
    if root() {
        let token = std::fs::metadata(dir.join("token")).unwrap();
        assert_eq!((token.uid(), token.mode() & 0o777), (7, 0o600));
        assert!(mounts(&world).contains(&name), "secrets are kept in memory");
    }
    world.inputs.remove(&pod.id.uid).await.unwrap();
    assert!(!mounts(&world).contains(&name));
}

fn mounts(world: &World) -> String {
    let dir = world.dir.path().to_str().unwrap().to_owned();
    let all = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    all.lines().filter(|line| line.contains(&dir)).collect()
}

#[tokio::test]
async fn memory_is_mounted_with_its_bound_and_taken_away() {
    if !root() {
        return;
    }
    let world = World::open().await;
    let spec = json!({"containers": [{"name": "c"}], "securityContext": {"fsGroup": 77}, "volumes": [
        {"name": "fast", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        {"name": "disk", "emptyDir": {}}]});
    let pod = pod(spec);
    world.inputs.prepare(&pod).await.unwrap();
    let fast = world.path("volumes/kubernetes.io~empty-dir/fast");
    let size = rustix::fs::statvfs(&fast).unwrap();
    assert_eq!(size.f_blocks * size.f_frsize, 1 << 20);
    for name in ["fast", "disk"] {
        let found =
            std::fs::metadata(world.path("volumes/kubernetes.io~empty-dir").join(name)).unwrap();
        assert_eq!((found.gid(), found.mode() & 0o7777), (77, 0o2777), "{name}");
    }
    std::fs::write(fast.join("kept"), "1").unwrap();
    world.inputs.prepare(&pod).await.unwrap();
    assert!(
        fast.join("kept").exists(),
        "preparing again changes nothing"
    );
    assert_eq!(mounts(&world).matches("fast").count(), 1);
    world.inputs.remove("u1").await.unwrap();
    assert!(!world.path("").exists() && mounts(&world).is_empty());
    world.inputs.remove("u1").await.unwrap();
}

/// A crash may leave anything mounted below a pod's directory, such as a directory of the machine.
#[tokio::test]
async fn nothing_is_deleted_through_a_mount() {
    if !root() {
        return;
    }
    let world = World::open().await;
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("precious"), "1").unwrap();
    let inside = world.path("volumes/kubernetes.io~empty-dir/v/deep");
    std::fs::create_dir_all(&inside).unwrap();
    rustix::mount::mount_bind(outside.path(), &inside).unwrap();
    rustix::mount::mount_bind(outside.path(), &inside).unwrap();
    symlink(outside.path(), world.path("link")).unwrap();
    world.inputs.remove("u1").await.unwrap();
    assert!(outside.path().join("precious").exists());
    assert!(!world.path("").exists());
    assert!(world.inputs.remove("../u1").await.is_err());
}

/// What changed while no agent ran is shown by the next one, which is told of the pod, and makes nothing anew.
#[tokio::test]
async fn an_agent_that_begins_anew_goes_on() {
    let mut world = World::open().await;
    world.add_config("settings", json!({"a": "1"})).await;
    let volume = json!({"name": "v", "configMap": {"name": "settings"}});
    let spec = json!({"containers": [{"name": "c"}], "volumes": [volume]});
    let pod = Arc::new(pod(spec));
    world.inputs.prepare(&pod).await.unwrap();
    world.restart();
    world
        .patch("configmaps", "settings", json!({"data": {"a": "2"}}))
        .await;
    assert_eq!(world.inputs.list().await.unwrap(), ["u1"]);
    world.inputs.keep_fresh(&pod);
    world.wait_for("kubernetes.io~configmap/v/a", "2").await;
    world.inputs.remove("u1").await.unwrap();
    let gone = world.path("");
    world.inputs.keep_fresh(&pod);
    assert!(!gone.exists(), "following makes nothing");
}

#[tokio::test(start_paused = true)]
async fn tokens_in_volumes_are_renewed() {
    let dir = tempfile::tempdir().unwrap();
    let client = token_api(Arc::default(), Arc::default());
    let (settings, about) = (Arc::new(settings(dir.path())), about(true));
    let inputs = Inputs::new(client, settings, about);
    let token = json!({"serviceAccountToken": {"path": "token", "expirationSeconds": 1000}});
    let volume = json!({"name": "v", "projected": {"sources": [token]}});
    let spec = json!({"containers": [{"name": "c"}], "volumes": [volume]});
    let pod = Arc::new(pod(spec));
    inputs.keep_fresh(&pod);
    inputs.prepare(&pod).await.unwrap();
    let path = dir
        .path()
        .join("data/pods/u1/volumes/kubernetes.io~projected/v/token");
    let read = || std::fs::read_to_string(&path).unwrap();
    assert_eq!(read(), "t1");
    let began = tokio::time::Instant::now();
    while read() != "t2" && began.elapsed().as_secs() < 2000 {
        tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    }
    inputs.remove("u1").await.unwrap();
    let waited = began.elapsed().as_secs();
    assert!((790..=850).contains(&waited), "renewed after {waited} s");
}
