//! `kennel server` as an operator meets it: starting, stopping, crashing, starting again.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use kennel_testkit::{Deadline, Kennel, Kubectl, Version, eventually};

const BINARY: &str = env!("CARGO_BIN_EXE_kennel");

fn kubectl(kennel: &Kennel) -> Kubectl {
    Kubectl::new(Version::V1_32, &kennel.kubeconfig())
}

fn create(kennel: &Kennel, name: &str) {
    let manifest = serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"},
    });
    let manifest = manifest.to_string();
    kubectl(kennel)
        .run_with_input(&["create", "-f", "-"], &manifest)
        .ok();
}

/// What identifies an object and its state across restarts.
fn identity(kennel: &Kennel, name: &str) -> String {
    let path = "jsonpath={.metadata.uid} {.metadata.resourceVersion} {.data}";
    kubectl(kennel)
        .run(&["get", "configmap", name, "-o", path])
        .ok()
}

#[test]
fn the_administrators_kubeconfig_is_private() {
    let kennel = Kennel::server(BINARY);
    let mode = kennel.kubeconfig().metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn what_was_written_is_there_after_a_restart() {
    let kennel = Kennel::server(BINARY);
    create(&kennel, "kept");
    let before = identity(&kennel, "kept");
    let kennel = kennel.restart();
    assert_eq!(identity(&kennel, "kept"), before);
}

#[test]
fn what_was_acknowledged_survives_a_crash() {
    let kennel = Kennel::server(BINARY);
    create(&kennel, "kept");
    let before = identity(&kennel, "kept");
    let kennel = kennel.crash_and_restart();
    assert_eq!(identity(&kennel, "kept"), before);
    create(&kennel, "next");
}

#[test]
fn sigterm_ends_open_watches_and_the_process() {
    let kennel = Kennel::server(BINARY);
    create(&kennel, "watched");
    let seen = kennel.data_dir().join("watch.txt");
    let mut watch = Command::new(Version::V1_32.path())
        .args(["get", "configmaps", "-w", "--kubeconfig"])
        .arg(kennel.kubeconfig())
        .arg("--cache-dir")
        .arg(kennel.data_dir().join("kubectl-cache"))
        .stdout(std::fs::File::create(&seen).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually(Deadline::seconds(30), || {
        let text = std::fs::read_to_string(&seen).unwrap();
        if text.contains("watched") {
            Ok(())
        } else {
            Err(format!("no watch yet: {text}"))
        }
    });
    let status = kennel.stop();
    watch.kill().unwrap();
    watch.wait().unwrap();
    assert!(status.success(), "{status}");
}

#[test]
fn a_second_server_on_the_same_directory_is_refused() {
    let kennel = Kennel::server(BINARY);
    let second = Command::new(BINARY)
        .args(["server", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(kennel.data_dir())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(!second.status.success());
    assert!(
        said.contains(kennel.data_dir().to_str().unwrap()),
        "does not name the directory: {said}"
    );
    create(&kennel, "undisturbed");
}

/// The status and body of a GET by a client that shows no credentials.
async fn get_anonymously(kennel: &Kennel, path: &str) -> (u16, String) {
    let mut config = kube::Config::new(kennel.url().parse().expect("kennel prints a URL"));
    config.accept_invalid_certs = true;
    let client = kube::Client::try_from(config).expect("a client needs no more than a URL");
    let request = http::Request::get(path).body(kube::client::Body::empty());
    let response = client
        .send(request.expect("a path is enough"))
        .await
        .expect("an answer comes");
    let (head, body) = response.into_parts();
    let body = http_body_util::BodyExt::collect(body)
        .await
        .expect("the body comes to its end");
    (
        head.status.as_u16(),
        String::from_utf8_lossy(&body.to_bytes()).into_owned(),
    )
}

#[tokio::test]
async fn without_credentials_only_health_and_version_are_served() {
    let kennel = Kennel::server(BINARY);
    for open in ["/healthz", "/livez", "/readyz", "/version"] {
        let (status, body) = get_anonymously(&kennel, open).await;
        assert_eq!(status, 200, "{open}: {body}");
    }
    for closed in [
        "/api/v1/namespaces",
        "/api",
        "/apis",
        "/metrics",
        "/openapi/v3",
    ] {
        let (status, body) = get_anonymously(&kennel, closed).await;
        assert!(
            [401, 403].contains(&status),
            "{closed} is served to anybody: {status} {body}"
        );
    }
}
