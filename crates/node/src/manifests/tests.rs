//! Manifests appear, change and vanish, and pods follow.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::pods::CachedPod;
use crate::runtime::fake::FakeRuntime;

fn manifest(name: &str, image: &str) -> String {
    format!(
        "# a daemon\napiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n  labels: {{app: {name}}}\n\
         spec:\n  hostNetwork: true\n  containers:\n  - name: c\n    image: {image}\n    command: [sleep]\n    \
         ports: [{{containerPort: 80}}]\n    livenessProbe: {{tcpSocket: {{port: 80}}}}\n"
    )
}

/// A node that follows a directory of manifests.
struct Node {
    dir: TempDir,
    cache: Arc<PodCache>,
    metrics: Arc<Metrics>,
    updates: mpsc::Receiver<PodUpdate>,
    stop: CancellationToken,
}

impl Node {
    fn start(prepare: impl FnOnce(&Path)) -> Self {
        let dir = TempDir::new().unwrap();
        prepare(dir.path());
        let (pods, updates) = mpsc::channel(16);
        let cache = Arc::new(PodCache::default());
        let metrics = Arc::new(Metrics::default());
        let manifests = Manifests {
            dir: dir.path().to_owned(),
            node_name: "Node1".to_owned(),
            runtime: Arc::new(FakeRuntime::new()),
            cache: Arc::clone(&cache),
            events: None,
            metrics: Arc::clone(&metrics),
            pods,
            mirror: None,
        };
        let stop = CancellationToken::new();
        tokio::spawn(run(manifests, stop.clone()));
        Self {
            dir,
            cache,
            metrics,
            updates,
            stop,
        }
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.dir.path().join(file), text).unwrap();
    }

    /// The next update, which comes long before the next poll.
    async fn next(&mut self) -> PodUpdate {
        let next = tokio::time::timeout(Duration::from_secs(10), self.updates.recv());
        next.await.expect("something changes").unwrap()
    }

    async fn set(&mut self) -> Arc<Pod> {
        match self.next().await {
            PodUpdate::Set(pod) => pod,
            other => panic!("no pod: {other:?}"),
        }
    }

    async fn removed(&mut self) -> String {
        match self.next().await {
            PodUpdate::Removed(id) => id.uid,
            other => panic!("not removed: {other:?}"),
        }
    }

    async fn synced(&mut self) {
        let next = self.next().await;
        assert!(matches!(next, PodUpdate::Synced(Origin::File)), "{next:?}");
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

use crate::pods::Pod;

#[tokio::test]
async fn a_static_pod_has_defaults_and_annotations() {
    let mut node = Node::start(|dir| {
        fs::write(dir.join("web.yaml"), manifest("web", "nginx")).unwrap();
        fs::write(dir.join(".hidden"), "nonsense").unwrap();
        fs::create_dir(dir.join("more")).unwrap();
    });
    let pod = node.set().await;
    node.synced().await;
    assert_eq!(
        (pod.id.name.as_str(), pod.id.namespace.as_str()),
        ("web-node1", "default")
    );
    assert_eq!(pod.id.uid.len(), 32);
    let annotations = &pod.metadata()["annotations"];
    assert_eq!(annotations[HASH], pod.id.uid.as_str());
    assert_eq!(annotations[SOURCE], "file");
    assert!(annotations[SEEN].is_string());
    let check = |pointer: &str, expected: Value| {
        assert_eq!(
            pod.raw_spec().pointer(pointer),
            Some(&expected),
            "{pointer}"
        );
    };
    check("/nodeName", json!("Node1"));
    check("/restartPolicy", json!("Always"));
    check("/dnsPolicy", json!("ClusterFirst"));
    check("/terminationGracePeriodSeconds", json!(30));
    check(
        "/tolerations",
        json!([{"operator": "Exists", "effect": "NoExecute"}]),
    );
    check("/containers/0/imagePullPolicy", json!("Always"));
    check("/containers/0/livenessProbe/periodSeconds", json!(10));
    check("/containers/0/ports/0/hostPort", json!(80));
    assert_eq!(node.metrics.invalid.get(), 0);
}

#[tokio::test]
async fn pods_follow_their_manifests() {
    let mut node = Node::start(|_| {});
    node.synced().await;
    node.write(
        "web.json",
        &json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "c", "image": "a"}]}})
        .to_string(),
    );
    let first = node.set().await;
    let cached = |pod: &Arc<Pod>| CachedPod {
        pod: Arc::clone(pod),
        observed: kennel_core::pod::Observed::default(),
        status: Value::Null,
    };
    node.cache.set(cached(&first));

    // Other formatting is the same pod.
    let same = serde_json::to_string_pretty(&first_text("a")).unwrap();
    node.write("web.json", &same);
    node.write("web.json", &first_text("b").to_string());
    assert_eq!(node.removed().await, first.id.uid);
    let early = tokio::time::timeout(2 * TERMINATION_POLL_INTERVAL, node.updates.recv()).await;
    assert!(early.is_err(), "the old pod has not terminated: {early:?}");
    node.cache.remove(&first.id.uid);
    let second = node.set().await;
    assert_eq!(second.id.name, first.id.name);
    assert_ne!(second.id.uid, first.id.uid);

    fs::rename(
        node.dir.path().join("web.json"),
        node.dir.path().join(".web.json"),
    )
    .unwrap();
    assert_eq!(node.removed().await, second.id.uid);
}

fn first_text(image: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "c", "image": image}]}})
}

#[tokio::test]
async fn invalid_manifests_leave_other_pods_alone() {
    let mut node = Node::start(|dir| {
        fs::write(dir.join("a.yaml"), "apiVersion: v1\nkind: [").unwrap();
        fs::write(dir.join("b.yaml"), manifest("web", "nginx")).unwrap();
        let map = "  volumes: [{name: v, configMap: {name: x}}]\n";
        fs::write(dir.join("c.yaml"), manifest("map", "nginx") + map).unwrap();
    });
    let web = node.set().await;
    node.synced().await;
    assert_eq!(web.id.name, "web-node1");
    assert_eq!(
        (node.metrics.invalid.get(), node.metrics.failures.get()),
        (2, 2)
    );

    // A manifest that becomes invalid stops nothing.
    node.write("b.yaml", "kind: Pod");
    node.write("d.yaml", &manifest("other", "nginx"));
    assert_eq!(node.set().await.id.name, "other-node1");
    fs::remove_file(node.dir.path().join("b.yaml")).unwrap();
    assert_eq!(node.removed().await, web.id.uid);
}

#[test]
fn errors_name_the_mistake() {
    let check = |text: &str, expected: &str| {
        let read = manifest::read(text.as_bytes(), Path::new("/x"), "n", "now");
        let error = read.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check("", "couldn't parse as pod(");
    check("apiVersion: v1\nkind: Service", "it is not a v1 Pod");
    let pod = |rest: &str| format!("apiVersion: v1\nkind: Pod\n{rest}");
    check(&pod("spec: {}"), "name is needed for the pod");
    check(
        &pod("metadata: {name: a}"),
        "invalid pod: spec.containers: Required value",
    );
    check(
        &pod("metadata: {name: a}\nspec: {containers: 3}"),
        "couldn't parse as pod(",
    );
    check(
        &pod("metadata: {name: a_b}\nspec: {containers: [{name: c, image: i}]}"),
        "invalid pod: metadata.name: Invalid value: \"a_b-n\"",
    );
    let account =
        "metadata: {name: a}\nspec: {serviceAccountName: x, containers: [{name: c, image: i}]}";
    check(
        &pod(account),
        "static pods may not reference serviceaccounts",
    );
}

#[test]
fn two_manifests_of_one_pod_are_reported() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("a.yaml"), manifest("web", "one")).unwrap();
    fs::write(dir.path().join("b.yaml"), manifest("web", "two")).unwrap();
    let mut directory = ManifestDirectory::new(dir.path().to_owned(), "n");
    let invalid = directory.read("now");
    assert_eq!(invalid.len(), 1);
    assert!(invalid[0].error.contains("is also in"), "{invalid:?}");
    let image = |directory: &ManifestDirectory| {
        let pods = directory.pods();
        pods.values()
            .map(|pod| pod.spec.containers[0].image.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(image(&directory), ["two"]);
    assert_eq!(directory.read("later"), [], "reported once");
    fs::remove_file(dir.path().join("b.yaml")).unwrap();
    assert_eq!(directory.read("later"), []);
    assert_eq!(image(&directory), ["one"]);
}
