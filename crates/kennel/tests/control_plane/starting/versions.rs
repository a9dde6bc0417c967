//! `kennel version`, one version everywhere, and paths that can be copied.

use kennel_testkit::{Deadline, Kennel, Kubectl, Version, eventually};
use serde_json::Value;

use super::{KENNEL, announcement, kennel};

/// The version that all components report.
fn expected() -> String {
    format!("v1.36.4+kennel{}", env!("CARGO_PKG_VERSION"))
}

#[test]
fn server_nodes_and_command_report_the_same_version() {
    let up = Kennel::start(
        KENNEL,
        &[
            "up",
            "--nodes=1",
            "--simulate=1",
            "--runtime=process",
            "--node-name=here",
        ],
    );
    let kubectl = Kubectl::new(Version::V1_32, &up.kubeconfig());
    eventually(Deadline::seconds(60), || {
        let path = "jsonpath={.items[*].status.nodeInfo.kubeletVersion}";
        let nodes = kubectl.run(&["get", "nodes", "-o", path]).stdout;
        let wanted = format!("{0} {0}", expected());
        (nodes == wanted).then_some(()).ok_or(nodes)
    });
    let dir = tempfile::tempdir().unwrap();
    let flag = format!("--kubeconfig={}", up.kubeconfig().display());
    let ended = kennel(dir.path(), &["version", &flag]);
    let version = expected();
    assert_eq!(
        ended.stdout,
        format!("Client Version: {version}\nServer Version: {version}\n"),
        "{}",
        ended.stderr
    );
    let json = kennel(dir.path(), &["version", "-o", "json", &flag]).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    for side in ["clientVersion", "serverVersion"] {
        assert_eq!(json[side]["gitVersion"], *version, "{json}");
    }
    let yaml = kennel(dir.path(), &["version", "-o", "yaml", &flag]).stdout;
    let yaml: Value = serde_saphyr::from_str(&yaml).unwrap();
    assert_eq!(yaml, json);
}

#[test]
fn without_a_server_the_own_version_is_printed() {
    let dir = tempfile::tempdir().unwrap();
    let own = format!("Client Version: {}\n", expected());
    for arguments in [
        &["version"][..],
        &["version", "--client", "--kubeconfig=none"],
    ] {
        let ended = kennel(dir.path(), arguments);
        assert_eq!(
            (ended.code, &ended.stdout),
            (Some(0), &own),
            "{}",
            ended.stderr
        );
    }
    let ended = kennel(dir.path(), &["version", "--kubeconfig=none"]);
    let path = dir.path().join("none");
    assert_eq!(ended.code, Some(1));
    let words = format!("cannot read {}", path.display());
    assert!(ended.stderr.contains(&words), "{}", ended.stderr);
}

#[test]
fn the_path_to_copy_is_absolute() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = ["server", "--data-dir=./kennel", "--listen=127.0.0.1:0"];
    let lines = announcement(dir.path(), &arguments);
    let path = dir.path().canonicalize().unwrap();
    let path = path.join("kennel/admin.kubeconfig");
    let expected = format!("Use it:  export KUBECONFIG={}", path.display());
    assert_eq!(lines[1], expected);
}
