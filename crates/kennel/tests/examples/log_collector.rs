//! The log collector: it reads what the pods of its node write, and goes on where its predecessor stopped.

use super::world::{World, wait};

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

pub(crate) fn check(world: &World) {
    world.apply(NAME);
    world.rolled_out(NAME, NAMESPACE);
    world
        .kubectl
        .run_with_input(&["apply", "-f", "-"], WRITER)
        .ok();
    collected(world, "first word");
    only_reads_logs(world);
    world.may("logging:log-collector", &["list", "pods"], true);
    world.may("logging:log-collector", &["get", "secrets"], false);
    goes_on_after_a_restart(world);
    world.delete(NAME);
    world.kubectl.run(&["delete", "pod", "writer"]).ok();
}

/// What the collector of the machine has written.
fn written(world: &World) -> String {
    let logs = ["logs", "-n", NAMESPACE, &world.pod(NAME, NAMESPACE)];
    world.kubectl.run(&logs).stdout
}

fn collected(world: &World, line: &str) {
    let expected = format!("{{\"node\":\"machine-1\",\"log\":\"{line}\"}}");
    wait(|| {
        let written = written(world);
        let found = written.lines().filter(|line| *line == expected).count();
        (found == 1)
            .then_some(())
            .ok_or(format!("no {expected} in\n{written}"))
    });
}

fn only_reads_logs(world: &World) {
    let pod = world.pod(NAME, NAMESPACE);
    let refused = "touch /var/log/x 2>&1; touch /x 2>&1; grep CapEff /proc/1/status";
    let said = world.inside(&pod, NAMESPACE, refused);
    assert_eq!(said.matches("Read-only file system").count(), 2, "{said}");
    assert!(said.ends_with("0000000000000000"), "{said}");
}

/// The next one finds its predecessor's positions on the machine: nothing is read twice, nothing is missed.
fn goes_on_after_a_restart(world: &World) {
    let before = world.pod(NAME, NAMESPACE);
    let restart = ["rollout", "restart", "-n", NAMESPACE, "ds/log-collector"];
    world.kubectl.run(&restart).ok();
    world.rolled_out(NAME, NAMESPACE);
    assert_ne!(world.pod(NAME, NAMESPACE), before);
    let last = world.on_machine("cat /var/lib/log-collector/last-words");
    assert_eq!(last.unwrap(), "flushed", "it had time to finish");
    let again = "echo second word >/proc/1/fd/1";
    world.inside("writer", "default", again);
    collected(world, "second word");
    assert!(!written(world).contains("first word"));
}
