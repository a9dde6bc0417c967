//! The watcher: updated by surge, so that no moment of a node goes unwatched.

use super::fixture::{Fixture, MACHINE, condition, wait};

const NAME: &str = "security-audit";
const NAMESPACE: &str = "security";

pub(crate) fn check(fixture: &Fixture) {
    fixture.apply(NAME);
    fixture.rolled_out(NAME, NAMESPACE);
    let pod = fixture.pod(NAME, NAMESPACE);
    let sees = "cat /host/proc/1/comm; test -f /host/etc/cni/net.d/10-flannel.conflist && echo etc";
    let first = fixture.on_machine("cat /proc/1/comm").unwrap();
    assert_eq!(
        fixture.inside(&pod, NAMESPACE, sees),
        format!("{first}\netc")
    );
    always_one_is_ready(fixture);
    fixture.delete(NAME);
}

/// The machine alone is watched here: the new pod comes, is ready for a while, and then the old one goes.
fn always_one_is_ready(fixture: &Fixture) {
    let before = fixture.pod(NAME, NAMESPACE);
    let update = [
        "set",
        "env",
        "-n",
        NAMESPACE,
        "ds/security-audit",
        "VERSION=2",
    ];
    fixture.kubectl.run(&update).ok();
    let mut side_by_side = false;
    wait(|| {
        let pods = fixture.pods(NAME, NAMESPACE);
        let stay = |pod: &&serde_json::Value| pod["metadata"]["deletionTimestamp"].is_null();
        let ready = pods
            .iter()
            .filter(stay)
            .filter(|pod| condition(pod, "Ready"));
        let ready = ready.count();
        assert!(ready > 0, "nobody watches {MACHINE}: {pods:#?}");
        side_by_side |= ready == 2;
        let exchanged = pods.len() == 1 && pods[0]["metadata"]["name"] != before.as_str();
        exchanged
            .then_some(())
            .ok_or("not exchanged yet".to_owned())
    });
    assert!(
        side_by_side,
        "the old one went before the new one was ready"
    );
}
