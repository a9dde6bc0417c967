//! Loads the container image into containerd and runs it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use kennel_packages::image;
use kennel_testkit::machine::{self, Containerd};
use kennel_testkit::{Deadline, Kennel, eventually};
use serde_json::json;
use tempfile::TempDir;

use crate::packages::{BINARY, TIMEOUT_SECONDS};

fn build(binary: &str, file: &Path) -> String {
    let options = image::Options {
        binary: Path::new(binary),
        name: &image::default_name(),
        compressed: false,
    };
    image::build(&options, file).unwrap()
}

/// The stdout of a command, which must succeed.
fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn image_builds_are_reproducible() {
    let dir = TempDir::new().unwrap();
    let (one, two) = (dir.path().join("one"), dir.path().join("two"));
    // A small program, for speed.
    assert_eq!(build("/usr/bin/env", &one), build("/usr/bin/env", &two));
    assert!(fs::read(one).unwrap() == fs::read(two).unwrap());
}

#[test]
fn the_deployment_names_the_image_that_is_built() {
    let deployment = include_str!("../../../../../deploy/kubernetes/daemonset-controller.yaml");
    assert!(deployment.contains(&format!("image: {}\n", image::default_name())));
}

#[test]
fn containerd_runs_the_controller_of_the_image() {
    if !machine::possible() {
        return;
    }
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("kennel.tar");
    let digest = build(BINARY, &file);
    let containerd = Containerd::builder().without_pod_network().start();
    run(containerd.ctr().args(["images", "import"]).arg(&file));
    let name = image::default_name();
    let listed = run(containerd.ctr().args(["images", "list"]));
    assert!(
        listed.contains(&name) && listed.contains(&digest),
        "{listed}"
    );

    let once = ["run", "--rm", "--read-only", &name];
    let version = run(containerd
        .ctr()
        .args(once)
        .args(["once", "/usr/bin/kennel", "--version"]));
    assert_eq!(
        version.trim(),
        format!("kennel {}", kennel_packages::VERSION)
    );
    check_controller(&containerd, &name, dir.path());
}

/// Runs the controller in a container, as the image's user, against a server outside.
fn check_controller(containerd: &Containerd, image: &str, dir: &Path) {
    let gateway = containerd.network().gateway().to_string();
    let arguments = ["up", "--simulate", "2", "--tls-san", &gateway];
    let server = Kennel::start_at(
        BINARY,
        &[&arguments[..], &["--controllers=*,-daemonset-controller"]].concat(),
        "0.0.0.0:0",
    );
    let port = server.address().port();
    let kubeconfig = fs::read_to_string(server.kubeconfig()).unwrap();
    let (_, here) = kubeconfig.split_once("https://").unwrap();
    let (here, _) = here.split_once(['"', '\n']).unwrap();
    let kubeconfig = kubeconfig.replace(here, &format!("{gateway}:{port}"));
    // Readable for all users, since the image's user is unprivileged.
    let shared = dir.join("kubeconfig");
    fs::write(&shared, kubeconfig).unwrap();
    let mount = format!(
        "type=bind,src={},dst=/kubeconfig,options=rbind:ro",
        shared.display()
    );
    let log = dir.join("log");
    let mut controller = containerd
        .network()
        .command("ctr")
        .arg("--address")
        .arg(containerd.socket())
        .args(["--namespace", "k8s.io", "run", "--net-host", "--read-only"])
        .args(["--mount", &mount, image, "controller"])
        .args(["/usr/bin/kennel", "controller", "--kubeconfig=/kubeconfig"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let admin = kennel_testkit::Kubectl::new(kennel_testkit::Version::V1_32, &server.kubeconfig());
    let set = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    });
    let set = set.to_string();
    admin.run_with_input(&["apply", "-f", "-"], &set).ok();
    let path = ["get", "ds", "d", "-o", "jsonpath={.status.numberReady}"];
    eventually(Deadline::seconds(TIMEOUT_SECONDS), || {
        let ready = admin.run(&path).ok();
        let said = || fs::read_to_string(&log).unwrap();
        (ready == "2").then_some(()).ok_or_else(said)
    });
    run(containerd
        .ctr()
        .args(["tasks", "kill", "--signal", "SIGTERM", "controller"]));
    let ended = controller.wait().unwrap();
    assert!(ended.success(), "{ended}");
}
