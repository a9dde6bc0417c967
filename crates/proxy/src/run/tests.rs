//! What is left to do after the kernel has refused a write.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kennel_types::Identity;
use serde_json::json;
use tokio::sync::watch;

use super::*;
use crate::tests::{nft, own_network};

/// For failures only.
const TIMEOUT: Duration = Duration::from_mins(1);
const PORT: u16 = 31_999;

fn router() -> Router {
    Router {
        table: ServiceTable::new("node"),
        zone: watch::channel(None).1,
        kernel: None,
        monitor: None,
        reason: Rewrite::Start,
        health_checks: HealthChecks::default(),
        unchecked: BTreeSet::new(),
        changed_since: None,
        problem: watch::channel(None).0,
        metrics: Arc::default(),
    }
}

fn service() -> Service {
    let object = json!({
        "metadata": {"namespace": "default", "name": "web", "uid": "1"},
        "spec": {"clusterIP": "10.96.0.5", "clusterIPs": ["10.96.0.5"], "type": "LoadBalancer",
            "externalTrafficPolicy": "Local", "healthCheckNodePort": PORT,
            "ports": [{"name": "web", "protocol": "TCP", "port": 80, "nodePort": 30_080}]},
    });
    serde_json::from_value(object).unwrap()
}

/// Another program that takes our table for itself, until it ends.
fn owner() -> Child {
    let mut command = Command::new("nft");
    let command = command.arg("-i").stdin(Stdio::piped());
    let mut owner = command.stdout(Stdio::null()).spawn().unwrap();
    let script = "delete table ip kennel-services; add table ip kennel-services { flags owner; }\n";
    let stdin = owner.stdin.as_mut().unwrap();
    stdin.write_all(script.as_bytes()).unwrap();
    let started_at = Instant::now();
    while !nft(&["list", "ruleset"]).contains("owner") {
        assert!(started_at.elapsed() < TIMEOUT, "nobody owns the table");
        std::thread::sleep(Duration::from_millis(5));
    }
    owner
}

#[tokio::test]
async fn n2_3_the_health_check_of_a_service_that_goes_while_the_kernel_refuses_ends() {
    if !own_network() {
        return;
    }
    let mut router = router();
    router.table.put_service(&service());
    router.write().unwrap();
    assert_eq!(router.health_checks.ports(), [PORT]);
    let mut owner = owner();
    let id = Identity::of(&service().metadata);
    router.table.remove_service(&id);
    for _ in 0..2 {
        router.write().unwrap_err();
        router.write_all(Rewrite::Failure);
    }
    owner.kill().unwrap();
    owner.wait().unwrap();
    router.write().unwrap();
    assert!(router.health_checks.ports().is_empty());
}
