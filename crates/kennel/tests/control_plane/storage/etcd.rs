//! A server whose objects are in a real etcd: a rollout over crashes of both, other servers that are refused, and what health, reads
//! and commands say.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use kennel_test_support::Etcd;
use kennel_testkit::{Deadline, Kennel, Kubectl, Version, eventually};
use serde_json::{Value, json};

use super::fail;
use crate::server_faults::fixture::{CONFIGMAPS, Fixture, KENNEL, refusal};

const NODES: u64 = 12;

fn daemon_set(image: &str) -> String {
    let set = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "updateStrategy": {"rollingUpdate": {"maxUnavailable": 1}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "a", "image": image}]},
            },
        },
    });
    set.to_string()
}

/// How many nodes have the current version of the daemon, and how many have it available; an error while nobody answers.
fn counts(kubectl: &Kubectl) -> Result<(u64, u64), String> {
    let set = kubectl.get(&["daemonset", "agent"])?;
    let status = &set["status"];
    if status["observedGeneration"] != set["metadata"]["generation"] {
        return Err(status.to_string());
    }
    let count = |field: &str| status[field].as_u64().unwrap_or(0);
    Ok((count("updatedNumberScheduled"), count("numberAvailable")))
}

/// Waits until the counts hold.
fn until(kubectl: &Kubectl, holds: impl Fn((u64, u64)) -> bool) {
    eventually(Deadline::seconds(120), || {
        let counts = counts(kubectl)?;
        if holds(counts) {
            Ok(())
        } else {
            Err(format!("{counts:?}"))
        }
    });
}

fn apply(kubectl: &Kubectl, image: &str) {
    kubectl
        .run_with_input(&["apply", "-f", "-"], &daemon_set(image))
        .ok();
}

#[test]
fn a_rollout_goes_on_over_crashes_of_etcd_and_of_the_server() {
    let Some(mut etcd) = Etcd::start() else {
        return;
    };
    let nodes = NODES.to_string();
    let arguments = ["up", "--simulate", &nodes, "--store", &etcd.store()];
    let mut kennel = Kennel::start(KENNEL, &arguments);
    let kubectl = Kubectl::new(Version::V1_36, &kennel.kubeconfig());
    apply(&kubectl, "one");
    until(&kubectl, |counts| counts == (NODES, NODES));
    assert!(!kennel.data_dir().join("kennel.db").exists());
    let keys = etcd.ctl(&["get", "/registry/daemonsets/", "--prefix", "--keys-only"]);
    assert_eq!(keys.trim(), "/registry/daemonsets/default/agent");
    let node_keys = etcd.ctl(&["get", "/registry/minions/", "--prefix", "--keys-only"]);
    assert_eq!(node_keys.split_whitespace().count() as u64, NODES);

    apply(&kubectl, "two");
    until(&kubectl, |(updated, _)| updated > 1);
    etcd.kill();
    etcd.restart();
    until(&kubectl, |(updated, _)| updated > 2);
    kennel = kennel.crash_and_come_back();
    until(&kubectl, |(updated, _)| updated > 3);
    kennel = kennel.crash_and_come_back_after(|| {
        etcd.kill();
        etcd.restart();
    });
    until(&kubectl, |counts| counts == (NODES, NODES));
    let images = [
        "get",
        "pods",
        "-o",
        "jsonpath={.items[*].spec.containers[*].image}",
    ];
    let images = kubectl.run(&images).ok();
    assert!(images.split(' ').all(|image| image == "two"), "{images}");
    assert_eq!(images.split(' ').count() as u64, NODES);

    // Objects survive the server, and its own restart finds them.
    let before = etcd.ctl(&["get", "/registry/configmaps/", "--prefix", "--keys-only"]);
    kennel = kennel.restart();
    assert_eq!(
        etcd.ctl(&["get", "/registry/configmaps/", "--prefix", "--keys-only"]),
        before
    );
    let log = kennel.log();
    assert!(!log.contains("panicked"), "{log}");
}

fn start(data: &Path, arguments: &[&str]) -> Output {
    Command::new(KENNEL)
        .args(["server", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(data)
        .args(arguments)
        .output()
        .unwrap()
}

/// Starts in vain.
fn refused(data: &Path, arguments: &[&str], words: &[&str]) {
    let output = start(data, arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    for word in words {
        assert!(said.contains(word), "no {word:?} in: {said}");
    }
}

#[test]
fn what_does_not_belong_together_is_refused_at_start() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let store = etcd.store();
    let server = Fixture::of(Kennel::start(KENNEL, &["server", "--store", &store]));
    let data = server.kennel.data_dir();
    let shown = data.display().to_string();
    let other = tempfile::tempdir().unwrap();
    let other = other.path().join("data");
    refused(
        &other,
        &["--store", &store],
        &["another server uses this etcd", &shown],
    );
    server.is_well("a second server on the same etcd");

    let kennel = server.kennel.restart_after(|data| {
        refused(data, &[], &["are in", &store, "--store"]);
        refused(&other, &["--store", &store], &["certificate authority"]);
        for verb in ["doctor", "restore", "backup"] {
            let file = data.join("file");
            let arguments: &[&str] = match verb {
                "doctor" => &[],
                _ => &[file.to_str().unwrap()],
            };
            let code = if verb == "doctor" { 2 } else { 1 };
            let said = fail(verb, data, arguments, code);
            assert!(
                said.contains(&store) && said.contains("etcdctl snapshot"),
                "{said}"
            );
        }
    });
    Fixture::of(kennel).is_well("refused commands");

    let plain = Kennel::start(KENNEL, &["server"]);
    let database = plain.data_dir();
    let copy = tempfile::tempdir().unwrap();
    std::fs::copy(database.join("kennel.db"), copy.path().join("kennel.db")).unwrap();
    refused(copy.path(), &["--store", &store], &["without --store"]);
    let remote = "etcd://192.0.2.1:2379";
    refused(
        &other,
        &["--store", remote],
        &["192.0.2.1:2379", "--store-ca-file"],
    );
    refused(&other, &["--store", "http://127.0.0.1:1"], &["etcd://"]);
}

#[test]
fn a_password_that_others_can_read_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let password = dir.path().join("password");
    std::fs::write(&password, "secret\n").unwrap();
    let arguments = [
        "--store",
        "etcd://127.0.0.1:1",
        "--store-user",
        "root",
        "--store-password-file",
        password.to_str().unwrap(),
    ];
    let check = |mode, words: &[&str]| {
        std::fs::set_permissions(&password, PermissionsExt::from_mode(mode)).unwrap();
        refused(&dir.path().join("data"), &arguments, words);
    };
    let public = "can be read by others than its owner (mode 644); run chmod 600";
    check(0o644, &["the password in", public]);
    check(0o600, &["etcd does not answer"]);
}

#[test]
fn a_stopped_etcd_is_answered_with_503_and_a_full_one_with_the_remedy() {
    let Some(etcd) = Etcd::start_with(&["--quota-backend-bytes=8388608"]) else {
        return;
    };
    let store = etcd.store();
    let server = Fixture::of(Kennel::start(KENNEL, &["server", "--store", &store]));
    assert_eq!(server.create("first", "yes").code, 201);
    let first = format!("{CONFIGMAPS}/first");
    etcd.signal("STOP");
    let newest = server.admin.ask("GET", &first, b"");
    assert_eq!(refusal(&newest), (503, "ServiceUnavailable".to_owned()));
    let any_age = server
        .admin
        .ask("GET", &format!("{first}?resourceVersion=0"), b"");
    assert_eq!(any_age.code, 200);
    eventually(Deadline::seconds(60), || {
        match server.admin.ask("GET", "/readyz", b"").code {
            500 => Ok(()),
            code => Err(code),
        }
    });
    // Before a write is tried: rights may be stale.
    let write = server.create("second", "yes");
    assert_eq!(refusal(&write), (503, "ServiceUnavailable".to_owned()));
    assert!(
        write.text().contains("etcd has not confirmed"),
        "{}",
        write.text()
    );
    let any_age = server
        .admin
        .ask("GET", &format!("{first}?resourceVersion=0"), b"");
    assert_eq!(any_age.code, 200);
    assert_eq!(server.admin.ask("GET", "/livez", b"").code, 200);
    etcd.signal("CONT");
    eventually(Deadline::seconds(60), || {
        match server.admin.ask("GET", "/readyz", b"").code {
            200 => Ok(()),
            code => Err(code),
        }
    });
    eventually(Deadline::seconds(60), || {
        let reply = server.create("second", "yes");
        if reply.code == 201 {
            Ok(())
        } else {
            Err(reply.text())
        }
    });

    let big = "x".repeat(900_000);
    let replies = (0..40).map(|n| server.create(&format!("big-{n}"), &big));
    let full = replies.into_iter().find(|reply| reply.code != 201);
    let full = full.expect("it gets full");
    assert_eq!(refusal(&full), (507, "InsufficientStorage".to_owned()));
    let full = full.text();
    assert!(
        full.contains("NOSPACE") && full.contains("etcdctl alarm disarm"),
        "{full}"
    );
    let ready = server.admin.ask("GET", "/readyz/disk", b"");
    assert!(
        ready.code == 500 && ready.text().contains("NOSPACE"),
        "{}",
        ready.text()
    );
    // Deletions free space, so they work.
    let first_big = format!("{CONFIGMAPS}/big-0");
    assert_eq!(server.admin.ask("DELETE", &first_big, b"").code, 200);
    assert_eq!(server.admin.ask("GET", &first, b"").code, 200);
}

#[test]
fn an_object_above_the_limit_of_etcd_is_refused_with_the_limit() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let server = Fixture::of(Kennel::start(KENNEL, &["server", "--store", &etcd.store()]));
    let mut set: Value = serde_json::from_str(&daemon_set("one")).unwrap();
    let long = "x".repeat(1_600_000);
    set["spec"]["template"]["spec"]["containers"][0]["env"] =
        json!([{"name": "LONG", "value": long}]);
    let sets = "/apis/apps/v1/namespaces/default/daemonsets";
    let refused = server.admin.ask("POST", sets, set.to_string().as_bytes());
    assert_eq!(refused.code, 413, "{}", refused.text());
    assert!(refused.text().contains("1564672"), "{}", refused.text());
    server.is_well("an object that is too large");
}

#[test]
fn events_expire_with_a_lease_of_etcd() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let arguments = ["server", "--event-ttl", "3", "--store", &etcd.store()];
    let server = Fixture::of(Kennel::start(KENNEL, &arguments));
    let events = "/api/v1/namespaces/default/events";
    let event = json!({
        "metadata": {"name": "e", "namespace": "default"}, "reason": "Test", "type": "Normal",
        "involvedObject": {"kind": "Node", "name": "n", "namespace": "default"},
    });
    let made = server
        .admin
        .ask("POST", events, event.to_string().as_bytes());
    assert_eq!(made.code, 201, "{}", made.text());
    let stored = etcd.ctl(&["get", "/registry/events/default/e", "--write-out", "json"]);
    assert!(stored.contains("\"lease\""), "{stored}");
    let path = format!("{events}/e");
    eventually(Deadline::seconds(60), || {
        match server.admin.ask("GET", &path, b"").code {
            404 => Ok(()),
            code => Err(code),
        }
    });
}

#[test]
fn a_damaged_object_is_repaired_with_the_tools_of_etcd() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let server = Fixture::of(Kennel::start(KENNEL, &["server", "--store", &etcd.store()]));
    for name in ["repaired", "discarded"] {
        assert_eq!(server.create(name, "value").code, 201);
    }
    let code = |name: &str| {
        let path = format!("{CONFIGMAPS}/{name}");
        server.admin.ask("GET", &path, b"")
    };
    let until = |name: &str, expected: u16| {
        eventually(Deadline::seconds(60), || match code(name).code {
            code if code == expected => Ok(()),
            code => Err(code),
        });
    };
    let uid = code("repaired").json()["metadata"]["uid"].clone();
    let key = |name: &str| format!("/registry/configmaps/default/{name}");
    let print = ["get", &key("repaired"), "--print-value-only"];
    let stored = etcd.ctl(&print);
    for name in ["repaired", "discarded"] {
        etcd.ctl(&["put", &key(name), stored.trim_end().get(1..).unwrap()]);
        // Not 404: clients act on that.
        until(name, 500);
        let said = code(name).text();
        assert!(said.contains("docs/guides/etcd.md says how"), "{said}");
        assert!(!said.contains("kennel doctor"), "{said}");
        assert!(said.contains(&key(name)), "{said}");
    }
    let metrics = server.admin.ask("GET", "/metrics", b"").text();
    let line = format!("kennel_store_damaged_value{{key={:?}}} 1", key("repaired"));
    assert!(metrics.contains(&line), "{metrics}");
    let again = server.create("repaired", "another");
    assert_eq!(again.code, 500, "{}", again.text());

    etcd.ctl(&["put", &key("repaired"), stored.trim_end()]);
    until("repaired", 200);
    assert_eq!(code("repaired").json()["metadata"]["uid"], uid);
    etcd.ctl(&["del", &key("discarded")]);
    until("discarded", 404);
    assert_eq!(server.create("discarded", "again").code, 201);
    let log = server.kennel.log();
    assert!(log.contains("is set aside"), "{log}");
}
