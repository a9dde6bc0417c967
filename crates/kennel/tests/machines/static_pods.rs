//! Static pods as people use them: files in a directory are pods, which the API shows and cannot stop.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use kennel_testkit::{Access, Deadline, Kennel, eventually};
use serde_json::Value;
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_kennel");
const PODS: &str = "/api/v1/namespaces/default/pods";

/// A cluster with one node, whose pods run nothing.
struct Node {
    kennel: Kennel,
    admin: Access,
    dir: TempDir,
    agent: Option<Child>,
}

impl Node {
    fn start() -> Self {
        let kennel = Kennel::start(BINARY, &["up", "--nodes", "0"]);
        let admin = Access::admin(kennel.address(), &kennel.data_dir());
        let mut node = Self {
            kennel,
            admin,
            dir: TempDir::new().unwrap(),
            agent: None,
        };
        fs::create_dir(node.manifests()).unwrap();
        let url = node.kennel.url().to_owned();
        let flags = node.kennel.join_flags();
        let joining = flags.iter().map(String::as_str);
        node.begin(["agent", "--server", &url].into_iter().chain(joining));
        node
    }

    fn begin<'a>(&mut self, arguments: impl Iterator<Item = &'a str>) {
        let log = self.dir.path().join("log");
        let log = File::options().create(true).append(true).open(log);
        let mut command = Command::new(BINARY);
        command
            .args(arguments)
            .args(["--runtime=simulated", "--listen=127.0.0.1:0"])
            // How full the disk of the tests' machine is must not matter.
            .args(["--node-name=n1", "--eviction-hard=memory.available<1Mi"])
            .arg("--data-dir")
            .arg(self.dir.path().join("agent"))
            .arg("--log-dir")
            .arg(self.dir.path().join("logs"))
            .arg("--manifest-dir")
            .arg(self.manifests())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.unwrap());
        self.agent = Some(command.spawn().unwrap());
    }

    fn kill(&mut self) {
        if let Some(mut agent) = self.agent.take() {
            agent.kill().unwrap();
            agent.wait().unwrap();
        }
    }

    fn manifests(&self) -> PathBuf {
        self.dir.path().join("manifests")
    }

    fn write(&self, file: &str, text: &str) {
        // As people and their tools should: whole, or not at all.
        let hidden = self.manifests().join(".new");
        fs::write(&hidden, text).unwrap();
        fs::rename(hidden, self.manifests().join(file)).unwrap();
    }

    fn get(&self, path: &str) -> Value {
        self.admin.ask("GET", path, b"").json()
    }

    /// Waits until the API shows a pod in a way.
    fn until(&self, name: &str, what: impl Fn(&Value) -> bool) -> Value {
        eventually(Deadline::seconds(60), || {
            let pod = self.get(&format!("{PODS}/{name}"));
            let log = || fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
            let told = |pod: Value| format!("{pod}\n{}", log());
            if what(&pod) { Ok(pod) } else { Err(told(pod)) }
        })
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

fn manifest(name: &str, image: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {{app: {name}}}}}\nspec:\n  \
         hostNetwork: true\n  containers: [{{name: c, image: {image}, command: [serve]}}]\n"
    )
}

fn is_ready(pod: &Value) -> bool {
    pod["status"]["containerStatuses"][0]["ready"] == true && pod["status"]["phase"] == "Running"
}

fn container(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]["containerID"]
}

#[test]
fn the_api_shows_static_pods_and_cannot_stop_them() {
    let node = Node::start();
    node.write("web.yaml", &manifest("web", "one"));
    let first = node.until("web-n1", is_ready);
    let metadata = &first["metadata"];
    let annotation = |pod: &Value, name: &str| {
        let annotations = &pod["metadata"]["annotations"];
        annotations[format!("kubernetes.io/config.{name}")].clone()
    };
    assert_eq!(annotation(&first, "source"), "file");
    assert_eq!(annotation(&first, "mirror"), annotation(&first, "hash"));
    assert_eq!(metadata["labels"]["app"], "web");
    let owner = &metadata["ownerReferences"][0];
    assert_eq!(
        (&owner["kind"], &owner["name"]),
        (&"Node".into(), &"n1".into())
    );
    assert_eq!(first["spec"]["nodeName"], "n1");

    // Deleted, it comes back; what it shows has not noticed.
    let path = format!("{PODS}/web-n1");
    node.admin.ask("DELETE", &path, b"");
    let other = |pod: &Value| is_ready(pod) && pod["metadata"]["uid"] != metadata["uid"];
    let second = node.until("web-n1", other);
    assert_eq!(container(&second), container(&first));
    assert_eq!(second["status"]["containerStatuses"][0]["restartCount"], 0);

    // Another file, another pod of the same name.
    node.write("web.yaml", &manifest("web", "two"));
    let changed = |pod: &Value| is_ready(pod) && pod["spec"]["containers"][0]["image"] == "two";
    let third = node.until("web-n1", changed);
    assert_ne!(annotation(&third, "hash"), annotation(&first, "hash"));
    assert_ne!(container(&third), container(&first));

    fs::remove_file(node.manifests().join("web.yaml")).unwrap();
    node.until("web-n1", |pod| pod["reason"] == "NotFound");
}

#[test]
fn files_that_make_no_sense_are_told_about_and_change_nothing_else() {
    let node = Node::start();
    node.write("bad.yaml", "kind: Pod\napiVersion: [");
    node.write(
        "secret.yaml",
        &(manifest("secret", "i") + "  volumes: [{name: v, secret: {secretName: x}}]\n"),
    );
    node.write("web.yaml", &manifest("web", "one"));
    node.until("web-n1", is_ready);
    let events = eventually(Deadline::seconds(60), || {
        let events = node.get("/api/v1/namespaces/default/events");
        let messages: Vec<String> = events["items"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|event| event["reason"] == "InvalidStaticPod")
            .map(|event| event["message"].as_str().unwrap_or_default().to_owned())
            .collect();
        if messages.len() >= 2 {
            Ok(messages.join("\n"))
        } else {
            Err(events)
        }
    });
    assert!(events.contains("bad.yaml"), "{events}");
    let refused = "static pods may not reference secrets (via secret volumes)";
    assert!(events.contains(refused), "{events}");
    assert_eq!(node.get(&format!("{PODS}/secret-n1"))["reason"], "NotFound");
}

#[test]
fn what_changed_while_the_agent_was_away_is_made_good() {
    let mut node = Node::start();
    node.write("keep.yaml", &manifest("keep", "one"));
    node.write("drop.yaml", &manifest("drop", "one"));
    let kept = node.until("keep-n1", is_ready);
    node.until("drop-n1", is_ready);
    node.kill();
    fs::remove_file(node.manifests().join("drop.yaml")).unwrap();
    node.admin.ask(
        "DELETE",
        &format!("{PODS}/keep-n1?gracePeriodSeconds=0"),
        b"",
    );
    node.begin(["agent"].into_iter());
    node.until("drop-n1", |pod| pod["reason"] == "NotFound");
    let other = |pod: &Value| is_ready(pod) && pod["metadata"]["uid"] != kept["metadata"]["uid"];
    node.until("keep-n1", other);
}
