//! Files appear, change and vanish; pods follow.

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

/// A node that follows a directory.
struct Node {
    dir: TempDir,
    directory: Arc<PodCache>,
    metrics: Arc<Metrics>,
    changes: mpsc::Receiver<PodUpdate>,
    stop: CancellationToken,
}

impl Node {
    fn start(prepare: impl FnOnce(&Path)) -> Self {
        let dir = TempDir::new().unwrap();
        prepare(dir.path());
        let (pods, changes) = mpsc::channel(16);
        let directory = Arc::new(PodCache::default());
        let metrics = Arc::new(Metrics::default());
        let manifests = Manifests {
            dir: dir.path().to_owned(),
            node_name: "Node1".to_owned(),
            runtime: Arc::new(FakeRuntime::new()),
            directory: Arc::clone(&directory),
            events: None,
            metrics: Arc::clone(&metrics),
            pods,
            shown: None,
        };
        let stop = CancellationToken::new();
        tokio::spawn(watch(manifests, stop.clone()));
        Self {
            dir,
            directory,
            metrics,
            changes,
            stop,
        }
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.dir.path().join(file), text).unwrap();
    }

    /// The next change: within seconds, long before the next look.
    async fn next(&mut self) -> PodUpdate {
        let next = tokio::time::timeout(Duration::from_secs(10), self.changes.recv());
        next.await.expect("something changes").unwrap()
    }

    async fn set(&mut self) -> Arc<Pod> {
        match self.next().await {
            PodUpdate::Set(pod) => pod,
            other => panic!("no pod: {other:?}"),
        }
    }

    async fn gone(&mut self) -> String {
        match self.next().await {
            PodUpdate::Removed(id) => id.uid,
            other => panic!("not gone: {other:?}"),
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
async fn a_file_s_pod_is_complete() {
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
    assert_eq!(node.metrics.unusable.get(), 0);
}

#[tokio::test]
async fn pods_follow_their_files() {
    let mut node = Node::start(|_| {});
    node.synced().await;
    node.write(
        "web.json",
        &json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "c", "image": "a"}]}})
        .to_string(),
    );
    let first = node.set().await;
    let view = |pod: &Arc<Pod>| CachedPod {
        pod: Arc::clone(pod),
        observed: kennel_core::pod::Observed::default(),
        status: Value::Null,
    };
    node.directory.set(view(&first));

    // What is said in other words is the same pod.
    let same = serde_json::to_string_pretty(&first_text("a")).unwrap();
    node.write("web.json", &same);
    node.write("web.json", &first_text("b").to_string());
    assert_eq!(node.gone().await, first.id.uid);
    let early = tokio::time::timeout(2 * WAIT, node.changes.recv()).await;
    assert!(early.is_err(), "the old pod is not over: {early:?}");
    node.directory.remove(&first.id.uid);
    let second = node.set().await;
    assert_eq!(second.id.name, first.id.name);
    assert_ne!(second.id.uid, first.id.uid);

    fs::rename(
        node.dir.path().join("web.json"),
        node.dir.path().join(".web.json"),
    )
    .unwrap();
    assert_eq!(node.gone().await, second.id.uid);
}

fn first_text(image: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "c", "image": image}]}})
}

#[tokio::test]
async fn what_makes_no_sense_leaves_the_others_alone() {
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
        (node.metrics.unusable.get(), node.metrics.failures.get()),
        (2, 2)
    );

    // A file that makes no sense any more stops nothing.
    node.write("b.yaml", "kind: Pod");
    node.write("d.yaml", &manifest("other", "nginx"));
    assert_eq!(node.set().await.id.name, "other-node1");
    fs::remove_file(node.dir.path().join("b.yaml")).unwrap();
    assert_eq!(node.gone().await, web.id.uid);
}

#[test]
fn mistakes_are_named() {
    let check = |text: &str, expected: &str| {
        let read = manifest::read(text.as_bytes(), Path::new("/x"), "n", "now");
        let why = read.unwrap_err();
        assert!(why.contains(expected), "{why}");
    };
    check("", "couldn't parse as pod(");
    check("apiVersion: v1\nkind: Service", "it is no v1 Pod");
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
fn of_two_files_for_one_pod_one_is_told_about() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("a.yaml"), manifest("web", "one")).unwrap();
    fs::write(dir.path().join("b.yaml"), manifest("web", "two")).unwrap();
    let mut folder = Folder::new(dir.path().to_owned(), "n");
    let complaints = folder.look("now");
    assert_eq!(complaints.len(), 1);
    assert!(complaints[0].why.contains("is also in"), "{complaints:?}");
    let image = |folder: &Folder| {
        let pods = folder.pods();
        pods.values()
            .map(|pod| pod.spec.containers[0].image.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(image(&folder), ["two"]);
    assert_eq!(folder.look("later"), [], "said once");
    fs::remove_file(dir.path().join("b.yaml")).unwrap();
    assert_eq!(folder.look("later"), []);
    assert_eq!(image(&folder), ["one"]);
}
