//! The manifest of the README runs wherever its commands do: in the playground, as root and without, and in containers.

use std::path::Path;

use kennel_testkit::Kubectl;
use kennel_testkit::machine::{Image, possible};
use rustix::process::Signal;

use crate::agents::fleet::{Engine, Fleet};
use crate::playground::fixture::Playground;

/// The manifest that a README applies, and the command that changes its image.
fn from_readme(name: &str) -> (String, Vec<String>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name);
    let text = std::fs::read_to_string(path).unwrap();
    let (_, rest) = text.split_once("$ kubectl apply -f - <<EOF\n").unwrap();
    let (manifest, rest) = rest.split_once("\nEOF\n").unwrap();
    let mut lines = rest.lines();
    let command = lines.find_map(|line| line.strip_prefix("$ kubectl set image "));
    let words = command.unwrap().split(' ').map(str::to_owned).collect();
    (manifest.to_owned(), words)
}

/// Applies the manifest, and changes the image as the README does.
fn check(kubectl: &Kubectl) {
    let (manifest, change) = from_readme("README.md");
    kubectl.run_with_input(&["apply", "-f-"], &manifest).ok();
    rolled_out(kubectl);
    let mut set = vec!["set", "image"];
    set.extend(change.iter().map(String::as_str));
    kubectl.run(&set).ok();
    rolled_out(kubectl);
    let logs = kubectl.run(&["logs", "daemonset/logs", "--tail=1"]).ok();
    assert!(!logs.trim().is_empty());
}

fn rolled_out(kubectl: &Kubectl) {
    let status = ["rollout", "status", "daemonset/logs", "--timeout=60s"];
    let answer = kubectl.run(&status);
    let pods = || kubectl.run(&["describe", "pods"]).stdout;
    assert_eq!(answer.code, 0, "{}{}", answer.stderr, pods());
}

#[test]
fn both_readmes_have_the_same_manifest() {
    assert_eq!(from_readme("README.md"), from_readme("README.zh.md"));
}

#[test]
fn it_runs_in_the_playground() {
    if !possible() {
        return;
    }
    let arguments = ["--nodes=2", "--no-tour"];
    let mut playground = Playground::start(&arguments);
    check(&playground.kubectl());
    assert!(playground.stop(Signal::TERM).success());
    playground.assert_gone();
}

#[test]
fn it_runs_in_the_playground_without_root() {
    if !possible() {
        return;
    }
    let arguments = ["--nodes=2", "--no-tour", "--listen=127.0.0.1:0"];
    let mut playground = Playground::start_without_root(&arguments);
    check(&playground.kubectl());
    assert!(playground.stop(Signal::TERM).success());
    playground.assert_gone();
}

#[test]
fn it_runs_in_containers() {
    if !possible() {
        return;
    }
    let (manifest, change) = from_readme("README.md");
    let line = manifest.lines().find_map(|line| line.split_once("image: "));
    let first = line.unwrap().1.trim();
    let (_, second) = change.last().unwrap().split_once('=').unwrap();
    let images = [first, second].map(|name| Image::new(&format!("docker.io/library/{name}")));
    let fleet = Fleet::new(Engine::Containerd, 1, &images);
    check(&fleet.kubectl);
}
