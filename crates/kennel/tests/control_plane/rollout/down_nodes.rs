//! Rollouts in a cluster with a dead node, as kubectl, Helm and people see them.

use kennel_testkit::{Deadline, Kubectl, Version, eventually};

use super::fixture::{Fixture, WATCH};

/// Longer than the interval at which nodes renew their leases.
const GRACE: [&str; 2] = ["--node-monitor-grace-period", "12"];
const SILENT: &str = "nodes:\n- name: sim-2\n  silent: {at: [5s], for: 1h}\n";

#[test]
fn r9_1_kubectl_rollout_status_does_not_wait_for_dead_nodes() {
    let fixture = Fixture::with_flags(&GRACE, SILENT, 3, &[("stages", "1, 100%")]);
    let kubectl = &fixture.cluster.kubectl;
    let ask = |command: &[&str]| kubectl.run(command).ok();
    let ready = "jsonpath={.status.conditions[?(@.type==\"Ready\")].status}";
    eventually(Deadline::seconds(60), || {
        let shown = ask(&["get", "node", "sim-2", "-o", ready]);
        (shown == "Unknown").then_some(()).ok_or(shown)
    });
    // It tolerates every taint: upstream's controller would count the dead node, and kubectl would wait for it.
    let template = "{\"spec\":{\"template\":{\"spec\":{\"tolerations\":[{\"operator\":\"Exists\"}],\
                    \"containers\":[{\"name\":\"main\",\"image\":\"example.com/agent:2\"}]}}}}";
    ask(&["patch", "ds", "agent", "-p", template]);
    for version in Version::ALL {
        let kubectl = Kubectl::new(version, &fixture.cluster.kennel.kubeconfig());
        let shown = kubectl.run(&["rollout", "status", "ds/agent", "--timeout=60s"]);
        assert_eq!(shown.code, 0, "{}{}", shown.stdout, shown.stderr);
        assert!(
            shown.stdout.contains("successfully rolled out"),
            "{}",
            shown.stdout
        );
    }
    let counts = "jsonpath={.status.desiredNumberScheduled} {.status.updatedNumberScheduled} \
                  {.status.numberMisscheduled}";
    assert_eq!(ask(&["get", "ds", "agent", "-o", counts]), "2 2 1");
    let shown = fixture.check(&["status", "ds/agent", WATCH], 0);
    assert!(shown.contains("1 down"), "{shown}");
    let nodes: Vec<String> = fixture.nodes_with("2").into_iter().collect();
    assert_eq!(nodes, ["sim-1", "sim-3"]);

    // As upstream counts: its pod is replaced, and waited for.
    ask(&[
        "annotate",
        "ds",
        "agent",
        "rollout.kennel.dev/down-nodes=count",
    ]);
    eventually(Deadline::seconds(60), || {
        let shown = ask(&["get", "ds", "agent", "-o", counts]);
        (shown == "3 3 0").then_some(()).ok_or(shown)
    });
    let waits = kubectl.run(&["rollout", "status", "ds/agent", "--timeout=2s"]);
    assert_eq!(waits.code, 1, "{}{}", waits.stdout, waits.stderr);
}
