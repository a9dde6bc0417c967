//! The log collector: it reads what the pods of its node write, and goes on where its predecessor stopped.

use super::fixture::{Fixture, wait};

const NAME: &str = "log-collector";
const NAMESPACE: &str = "logging";

/// A pod that writes a line, and another whenever it is asked to.
const WRITER: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: writer}
spec:
  nodeName: machine-1
  terminationGracePeriodSeconds: 0
  containers:
  - {name: c, image: "docker.io/falcosecurity/falco:0.43.0", command: [sh, -c, "echo first word; exec sleep infinity"]}
"#;

pub(crate) fn check(fixture: &Fixture) {
    fixture.apply(NAME);
    fixture.rolled_out(NAME, NAMESPACE);
    fixture
        .kubectl
        .run_with_input(&["apply", "-f", "-"], WRITER)
        .ok();
    collected(fixture, "first word");
    only_reads_logs(fixture);
    reaches_the_api(fixture);
    fixture.may("logging:log-collector", &["list", "pods"], true);
    fixture.may("logging:log-collector", &["get", "secrets"], false);
    goes_on_after_a_restart(fixture);
    fixture.delete(NAME);
    fixture.kubectl.run(&["delete", "pod", "writer"]).ok();
}

/// What the collector of the machine has written.
fn written(fixture: &Fixture) -> String {
    let logs = ["logs", "-n", NAMESPACE, &fixture.pod(NAME, NAMESPACE)];
    fixture.kubectl.run(&logs).stdout
}

fn collected(fixture: &Fixture, line: &str) {
    let expected = format!("{{\"node\":\"machine-1\",\"log\":\"{line}\"}}");
    wait(|| {
        let written = written(fixture);
        let found = written.lines().filter(|line| *line == expected).count();
        (found == 1)
            .then_some(())
            .ok_or(format!("no {expected} in\n{written}"))
    });
}

fn only_reads_logs(fixture: &Fixture) {
    let pod = fixture.pod(NAME, NAMESPACE);
    let refused = "touch /var/log/x 2>&1; touch /x 2>&1; grep CapEff /proc/1/status";
    let said = fixture.inside(&pod, NAMESPACE, refused);
    assert_eq!(said.matches("Read-only file system").count(), 2, "{said}");
    assert!(said.ends_with("0000000000000000"), "{said}");
}

/// At the address that Fluent Bit has by default.
fn reaches_the_api(fixture: &Fixture) {
    let exec = [
        "exec",
        "-n",
        NAMESPACE,
        &fixture.pod(NAME, NAMESPACE),
        "--",
        "sh",
        "-c",
    ];
    let ask = "timeout 5 nc kubernetes.default.svc 443 </dev/null";
    wait(|| {
        let answer = fixture.kubectl.run(&[&exec[..], &[ask]].concat());
        (answer.code == 0).then_some(()).ok_or(answer.stderr)
    });
}

/// The next one finds its predecessor's positions on the machine: nothing is read twice, nothing is missed.
fn goes_on_after_a_restart(fixture: &Fixture) {
    let before = fixture.pod(NAME, NAMESPACE);
    let restart = ["rollout", "restart", "-n", NAMESPACE, "ds/log-collector"];
    fixture.kubectl.run(&restart).ok();
    fixture.rolled_out(NAME, NAMESPACE);
    assert_ne!(fixture.pod(NAME, NAMESPACE), before);
    let last = fixture.on_machine("cat /var/lib/log-collector/last-words");
    assert_eq!(last.unwrap(), "flushed", "it had time to finish");
    let again = "echo second word >/proc/1/fd/1";
    fixture.inside("writer", "default", again);
    collected(fixture, "second word");
    assert!(!written(fixture).contains("first word"));
}
