//! Volumes of pods, from their setup to their removal.

use std::os::unix::fs::{MetadataExt as _, symlink};
use std::sync::Arc;

use serde_json::{Value, json};

use super::fixture::{Fixture, about, pod, root, settings, token_api};
use crate::inputs::Inputs;
use crate::pods::{Origin, Pod, PodInputs as _};

fn mode(fixture: &Fixture, path: &str) -> u32 {
    let path = fixture.path("volumes").join(path);
    std::fs::metadata(path).unwrap().mode() & 0o7777
}

#[tokio::test]
async fn objects_become_files_that_follow_changes() {
    let fixture = Fixture::open().await;
    fixture
        .add_config("settings", json!({"a.conf": "one", "b.conf": "two"}))
        .await;
    fixture.add_secret("key", json!({"token": "s3cret"})).await;
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
    fixture.inputs.keep_fresh(&before);
    fixture.inputs.prepare(&before).await.unwrap();
    let read = |path: &str| fixture.read(path);
    assert_eq!(read("kubernetes.io~configmap/all/a.conf"), "one");
    assert_eq!(read("kubernetes.io~configmap/all/b.conf"), "two");
    assert_eq!(read("kubernetes.io~configmap/some/etc/a"), "one");
    assert_eq!(mode(&fixture, "kubernetes.io~configmap/some/etc/a"), 0o600);
    assert_eq!(mode(&fixture, "kubernetes.io~configmap/some/b"), 0o440);
    assert_eq!(read("kubernetes.io~secret/key/token"), "s3cret");
    assert_eq!(mode(&fixture, "kubernetes.io~secret/key/token"), 0o400);
    assert_eq!(read("kubernetes.io~downward-api/self/name"), "web");
    assert_eq!(read("kubernetes.io~projected/mixed/a"), "one");
    assert_eq!(read("kubernetes.io~projected/mixed/token"), "s3cret");
    assert_eq!(read("kubernetes.io~projected/mixed/ns"), "shop");

    fixture
        .patch(
            "configmaps",
            "settings",
            json!({"data": {"a.conf": "new", "b.conf": null}}),
        )
        .await;
    fixture
        .wait_for("kubernetes.io~configmap/all/a.conf", "new")
        .await;
    fixture
        .wait_for("kubernetes.io~projected/mixed/a", "new")
        .await;
    let path = fixture.path("volumes/kubernetes.io~configmap/all/b.conf");
    assert!(!path.is_symlink());
    // A key that is named is gone: the volume goes on showing what it did.
    assert_eq!(read("kubernetes.io~configmap/some/b"), "two");

    let mut after = Pod::clone(&before);
    after.object["metadata"]["labels"] = json!({"app": "web"});
    fixture.inputs.keep_fresh(&Arc::new(after));
    fixture
        .wait_for("kubernetes.io~downward-api/self/labels", "app=\"web\"")
        .await;
    fixture.inputs.remove("u1").await.unwrap();
    assert!(fixture.inputs.list().await.unwrap().is_empty());
}

async fn setup_error(fixture: &Fixture, volume: Value) -> String {
    let mut volume = volume;
    volume["name"] = json!("v");
    let pod = pod(json!({"containers": [{"name": "c"}], "volumes": [volume]}));
    let failure = fixture.inputs.prepare(&pod).await.unwrap_err();
    fixture.inputs.remove("u1").await.unwrap();
    assert_eq!(
        (failure.reason, failure.backoff_reason),
        (
            kennel_types::pod::WaitingReason::Other("FailedMount"),
            kennel_types::pod::WaitingReason::ContainerCreating
        )
    );
    let message = failure.message;
    let rest = message.strip_prefix("MountVolume.SetUp failed for volume \"v\" : ");
    rest.unwrap_or(&message).to_owned()
}

#[tokio::test]
async fn missing_objects_and_unsupported_volumes_are_errors() {
    let fixture = Fixture::open().await;
    fixture.add_config("settings", json!({"a": "1"})).await;
    let check = async |volume: Value, expected: &str| {
        assert_eq!(setup_error(&fixture, volume).await, expected);
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
    let claim = setup_error(
        &fixture,
        json!({"persistentVolumeClaim": {"claimName": "x"}}),
    )
    .await;
    assert!(
        claim.starts_with("volumes of kind persistentVolumeClaim are not served"),
        "{claim}"
    );
    let trust = json!({"projected": {"sources": [{"clusterTrustBundle": {"name": "x"}}]}});
    let trust = setup_error(&fixture, trust).await;
    assert!(
        trust.starts_with("clusterTrustBundle in projected volumes is not served"),
        "{trust}"
    );
    let optional =
        json!({"name": "v", "configMap": {"name": "settings", "items": items, "optional": true}});
    let pod = pod(json!({"containers": [{"name": "c"}], "volumes": [optional]}));
    fixture.inputs.prepare(&pod).await.unwrap();
}

#[tokio::test]
async fn an_object_that_is_created_late_is_found() {
    let fixture = Fixture::open().await;
    let volume = json!({"name": "v", "configMap": {"name": "late"}});
    let pod = pod(json!({"containers": [{"name": "c"}], "volumes": [volume]}));
    fixture.inputs.prepare(&pod).await.unwrap_err();
    fixture.add_config("late", json!({"a": "1"})).await;
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(20);
    while fixture.inputs.prepare(&pod).await.is_err() {
        assert!(tokio::time::Instant::now() < deadline);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(fixture.read("kubernetes.io~configmap/v/a"), "1");
}

#[tokio::test]
async fn only_referenced_objects_are_watched_and_only_once() {
    let fixture = Fixture::open().await;
    fixture.add_config("settings", json!({"a": "1"})).await;
    fixture.add_config("other", json!({"a": "1"})).await;
    let volume = json!({"name": "v", "configMap": {"name": "settings"}});
    let one = pod(json!({"containers": [{"name": "c"}], "volumes": [volume]}));
    let mut two = one.clone();
    two.id.uid = "u2".into();
    for pod in [&one, &two] {
        fixture.inputs.prepare(pod).await.unwrap();
    }
    let requests = fixture.requests.lock().unwrap().clone();
    let named =
        |uri: &&String| uri.contains("/configmaps") && uri.contains("metadata.name%3Dsettings");
    let lists = requests.iter().filter(|uri| !uri.contains("watch=true"));
    assert_eq!(lists.filter(named).count(), 1, "{requests:?}");
    assert!(requests.iter().all(|uri| named(&uri)), "{requests:?}");
}

/// A pod that went through the API's admission has a token of its service account.
#[tokio::test]
async fn pods_of_the_api_get_tokens() {
    let fixture = Fixture::open().await;
    fixture
        .wait_until_exists("serviceaccounts", "default")
        .await;
    fixture
        .wait_until_exists("configmaps", "kube-root-ca.crt")
        .await;
    let object = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "c", "image": "i"}], "securityContext": {"runAsUser": 7}}});
    let mut object = fixture.add("pods", object).await;
    object["spec"]["nodeName"] = json!("n1");
    let pod = Pod::parse(object, Origin::Api).unwrap();
    let name = pod.raw_spec()["volumes"][0]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    fixture.inputs.prepare(&pod).await.unwrap();
    let paths = settings(fixture.dir.path()).paths;
    let dir = paths.volume(&pod.id.uid, "kubernetes.io~projected", &name);
    let read = |file: &str| std::fs::read_to_string(dir.join(file)).unwrap();
    assert!(read("ca.crt").starts_with("-----BEGIN CERTIFICATE"));
    assert_eq!(read("namespace"), "shop");
    assert_eq!(read("token").split('.').count(), 3, "it is a JWT");
    if root() {
        let token = std::fs::metadata(dir.join("token")).unwrap();
        assert_eq!((token.uid(), token.mode() & 0o777), (7, 0o600));
        assert!(
            mounts(&fixture).contains(&name),
            "secrets are kept in memory"
        );
    }
    fixture.inputs.remove(&pod.id.uid).await.unwrap();
    assert!(!mounts(&fixture).contains(&name));
}

fn mounts(fixture: &Fixture) -> String {
    let dir = fixture.dir.path().to_str().unwrap().to_owned();
    let all = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    all.lines().filter(|line| line.contains(&dir)).collect()
}

#[tokio::test]
async fn memory_volumes_are_mounted_with_a_limit_and_unmounted() {
    if !root() {
        return;
    }
    let fixture = Fixture::open().await;
    let spec = json!({"containers": [{"name": "c"}], "securityContext": {"fsGroup": 77}, "volumes": [
        {"name": "fast", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        {"name": "disk", "emptyDir": {}}]});
    let pod = pod(spec);
    fixture.inputs.prepare(&pod).await.unwrap();
    let fast = fixture.path("volumes/kubernetes.io~empty-dir/fast");
    let size = rustix::fs::statvfs(&fast).unwrap();
    assert_eq!(size.f_blocks * size.f_frsize, 1 << 20);
    for name in ["fast", "disk"] {
        let found =
            std::fs::metadata(fixture.path("volumes/kubernetes.io~empty-dir").join(name)).unwrap();
        assert_eq!((found.gid(), found.mode() & 0o7777), (77, 0o2777), "{name}");
    }
    std::fs::write(fast.join("kept"), "1").unwrap();
    fixture.inputs.prepare(&pod).await.unwrap();
    assert!(
        fast.join("kept").exists(),
        "preparing again changes nothing"
    );
    assert_eq!(mounts(&fixture).matches("fast").count(), 1);
    fixture.inputs.remove("u1").await.unwrap();
    assert!(!fixture.path("").exists() && mounts(&fixture).is_empty());
    fixture.inputs.remove("u1").await.unwrap();
}

/// A crash may leave anything mounted below a pod's directory, such as a directory of the machine.
#[tokio::test]
async fn nothing_is_deleted_through_a_mount() {
    if !root() {
        return;
    }
    let fixture = Fixture::open().await;
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("precious"), "1").unwrap();
    let inside = fixture.path("volumes/kubernetes.io~empty-dir/v/deep");
    std::fs::create_dir_all(&inside).unwrap();
    rustix::mount::mount_bind(outside.path(), &inside).unwrap();
    rustix::mount::mount_bind(outside.path(), &inside).unwrap();
    symlink(outside.path(), fixture.path("link")).unwrap();
    fixture.inputs.remove("u1").await.unwrap();
    assert!(outside.path().join("precious").exists());
    assert!(!fixture.path("").exists());
    assert!(fixture.inputs.remove("../u1").await.is_err());
}

/// The new agent shows changes of objects that happened while none ran, and recreates nothing.
#[tokio::test]
async fn a_restarted_agent_goes_on_with_its_volumes() {
    let mut fixture = Fixture::open().await;
    fixture.add_config("settings", json!({"a": "1"})).await;
    let volume = json!({"name": "v", "configMap": {"name": "settings"}});
    let spec = json!({"containers": [{"name": "c"}], "volumes": [volume]});
    let pod = Arc::new(pod(spec));
    fixture.inputs.prepare(&pod).await.unwrap();
    fixture.restart();
    fixture
        .patch("configmaps", "settings", json!({"data": {"a": "2"}}))
        .await;
    assert_eq!(fixture.inputs.list().await.unwrap(), ["u1"]);
    fixture.inputs.keep_fresh(&pod);
    fixture.wait_for("kubernetes.io~configmap/v/a", "2").await;
    fixture.inputs.remove("u1").await.unwrap();
    let gone = fixture.path("");
    fixture.inputs.keep_fresh(&pod);
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
    let started = tokio::time::Instant::now();
    while read() != "t2" && started.elapsed().as_secs() < 2000 {
        tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    }
    inputs.remove("u1").await.unwrap();
    let waited = started.elapsed().as_secs();
    assert!((790..=850).contains(&waited), "renewed after {waited} s");
}
