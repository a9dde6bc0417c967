//! Errors, exit codes, help, and `kubectl kennel rollout`.

use std::process::Command;

use serde_json::Value;

use super::fixture::Fixture;
use crate::why::fixture::{KENNEL, answer, plug_in};

#[test]
fn what_cannot_be_found_out_exits_with_two() {
    let fixture = Fixture::new(1, &[("stages", "1")]);
    let shown = fixture.check(&["status", "ds/nothing"], 2);
    let expected = "error: there is no DaemonSet nothing in namespace default; \
                    `kubectl get daemonsets -A` lists all\n";
    assert_eq!(shown, expected);
    fixture.check(&["status", "ds/nothing", "--watch"], 2);
    let shown = fixture.check(&["promote", "ds/agent", "-n", "kube-system"], 2);
    assert!(shown.contains("there is one with -n default"), "{shown}");
    let shown = fixture.check(&["status", "deploy/agent"], 2);
    assert!(
        shown.contains("deploy is not a DaemonSet: use ds/agent"),
        "{shown}"
    );
    let shown = fixture.check(&["status", "ds/agent", "--timeout", "soon"], 2);
    assert!(
        shown.contains("not a duration such as 90s, 10m or 1h30m"),
        "{shown}"
    );
    fixture.check(&["plan"], 2);
    let shown = fixture.check(&["plan", "-f", "/nonexistent.yaml"], 2);
    assert!(shown.contains("cannot read /nonexistent.yaml"), "{shown}");
}

#[test]
fn a_plan_reads_yaml_and_refuses_what_the_server_refuses() {
    let fixture = Fixture::new(3, &[("stages", "1")]);
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let yaml = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
---
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: fresh
  annotations:
    rollout.kennel.dev/stages: 1 10m, 100%
    rollout.kennel.dev/stages-on-create: \"true\"
spec:
  selector: {matchLabels: {app: fresh}}
  template:
    metadata: {labels: {app: fresh}}
    spec: {containers: [{name: main, image: fresh}]}
";
    std::fs::write(path, yaml).unwrap();
    let shown = fixture.check(&["plan", "-f", path], 0);
    assert!(shown.starts_with("DaemonSet default/fresh: "), "{shown}");
    assert!(shown.contains("reaches 3 nodes in 2 stages"), "{shown}");
    assert!(shown.contains("(10m of bakes)"), "{shown}");
    let missing = fixture.cluster.kubectl.run(&["get", "ds", "fresh"]);
    assert_eq!(missing.code, 1, "a dry run stores nothing");
    let shown = fixture.check(&["plan", "ds/agent", "-f", path], 2);
    assert!(shown.contains("it has no DaemonSet agent"), "{shown}");
    std::fs::write(path, yaml.replacen("app: fresh}}", "app: other}}", 1)).unwrap();
    let shown = fixture.check(&["plan", "-f", path], 2);
    assert!(
        shown.contains("the API server does not accept the manifest"),
        "{shown}"
    );
}

#[test]
fn r9_4_it_works_as_a_kubectl_plug_in() {
    let fixture = Fixture::new(1, &[("stages", "1")]);
    let (dir, path) = plug_in();
    let search = format!(
        "{}:{}",
        dir.path().display(),
        std::env::var("PATH").unwrap()
    );
    for version in kennel_testkit::Version::ALL {
        let mut command = Command::new(version.path());
        command.args(["kennel", "rollout", "status", "ds/agent", "-o", "json"]);
        command.env("PATH", &search);
        command.env("KUBECONFIG", fixture.cluster.kennel.kubeconfig());
        let found = answer(&mut command);
        assert_eq!(found.code, 0, "{}{}", found.stdout, found.stderr);
        let json: Value = serde_json::from_str(&found.stdout).unwrap();
        assert_eq!(json["outcome"], "complete");
        assert_eq!(json["schema"], "kennel-rollout/1");
    }
    let help = answer(Command::new(path).args(["rollout", "status", "--help"])).stdout;
    let usage = "Usage: kubectl kennel rollout status [OPTIONS] <DAEMONSET>";
    assert!(help.contains(usage), "{help}");
    for verb in [
        "status", "plan", "promote", "pause", "resume", "abort", "retry", "freeze", "history",
    ] {
        let help = answer(Command::new(KENNEL).args(["rollout", verb, "--help"])).stdout;
        assert!(
            help.contains(&format!("  kennel rollout {verb} ")),
            "{help}"
        );
    }
}
