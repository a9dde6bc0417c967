//! What `/readyz?verbose` of a `kennel up` names.

use kennel_testkit::{Deadline, Kennel, eventually};

use crate::server_faults::fixture::{Fixture, KENNEL};

/// Checks of the server, and of controllers of each kind.
const CHECKS: [&str; 20] = [
    "ping",
    "store",
    "disk",
    "storage-quota",
    "listener",
    "daemonset-controller",
    "scheduler",
    "node-lifecycle-controller",
    "taint-eviction-controller",
    "node-ipam-controller",
    "garbage-collector",
    "namespace-controller",
    "pod-garbage-collector",
    "disruption-controller",
    "resource-quota-controller",
    "endpoints-controllers",
    "token-cleaner",
    "certificate-approver",
    "certificate-signer",
    "certificate-cleaner",
];

#[test]
fn readiness_names_each_controller() {
    let server = Fixture::of(Kennel::start(KENNEL, &["up", "--simulate", "1"]));
    eventually(Deadline::seconds(60), || {
        let said = server.admin.ask("GET", "/readyz?verbose", b"").text();
        let missing = CHECKS.iter().find(|check| {
            let line = format!("[+]{check} ok");
            !said.lines().any(|found| found == line)
        });
        match missing {
            None => Ok(()),
            Some(check) => Err(format!("no {check}: {said}")),
        }
    });
    // A restart of the process can heal a loop that hangs.
    let live = server.admin.ask("GET", "/livez?verbose", b"").text();
    assert!(live.contains("[+]scheduler ok"), "{live}");
}
