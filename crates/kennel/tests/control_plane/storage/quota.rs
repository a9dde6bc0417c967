//! The storage quota: users are refused at it, and the cluster goes on.

use kennel_testkit::{Deadline, Kennel, eventually};
use serde_json::json;

use crate::server_faults::fixture::{CONFIGMAPS, Fixture, KENNEL, refusal};

const DAEMON_SETS: &str = "/apis/apps/v1/namespaces/default/daemonsets";

fn daemon_set() -> Vec<u8> {
    let object = json!({
        "metadata": {"name": "agent"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {"containers": [{"name": "a", "image": "a"}]},
            },
        },
    });
    object.to_string().into_bytes()
}

/// The value of a metric.
fn metric(server: &Fixture, name: &str) -> u64 {
    let page = server.admin.ask("GET", "/metrics", b"").text();
    let mut lines = page.lines();
    let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name}")).parse().unwrap()
}

#[test]
fn at_the_quota_users_are_refused_and_the_cluster_works() {
    let arguments = ["up", "--simulate", "3", "--storage-quota", "1Mi"];
    let server = Fixture::of(Kennel::start(KENNEL, &arguments));
    let set = server.admin.ask("POST", DAEMON_SETS, &daemon_set());
    assert_eq!(set.code, 201, "{}", set.text());
    eventually(Deadline::seconds(60), || all_available(&server));

    let big = "x".repeat(100_000);
    let names = (0..20).map(|n| format!("big-{n}"));
    let codes: Vec<u16> = names.map(|name| server.create(&name, &big).code).collect();
    let fitted = codes.iter().take_while(|code| **code == 201).count();
    assert!((1..20).contains(&fitted), "{codes:?}");
    assert!(codes[fitted..].iter().all(|code| *code == 507), "{codes:?}");
    // Small objects fit until it is quite full.
    let small = "x".repeat(5_000);
    let refused = (0..200).map(|n| server.create(&format!("small-{n}"), &small));
    let refused = refused.into_iter().find(|reply| reply.code != 201);
    let refused = refused.expect("it gets full");
    assert_eq!(refusal(&refused), (507, "InsufficientStorage".to_owned()));
    let text = refused.text();
    assert!(
        text.contains("the storage quota of 1Mi is used up"),
        "{text}"
    );
    assert!(text.contains("raise --storage-quota"), "{text}");
    assert!(metric(&server, "kennel_store_quota_refused_writes_total") > 0);
    assert_eq!(metric(&server, "kennel_store_quota_bytes"), 1 << 20);
    assert!(metric(&server, "kennel_store_bytes") > 1_000_000);
    let log = server.kennel.log();
    assert!(log.contains("of the storage quota of 1Mi"), "{log}");

    let check = |path: &str| server.admin.ask("GET", path, b"");
    let alarm = check("/readyz/storage-quota");
    assert_eq!(alarm.code, 500);
    assert!(alarm.text().contains("of the storage quota of 1Mi"));
    assert_eq!(check("/livez").code, 200, "a restart would not help");
    let health = |name: &str| {
        let labels = format!("{{name=\"{name}\",type=\"readyz\"}}");
        metric(&server, &format!("kubernetes_healthcheck{labels}"))
    };
    assert_eq!((health("storage-quota"), health("disk")), (0, 1));

    // The controller replaces pods, the scheduler binds them and nodes run them.
    let pods = "/api/v1/namespaces/default/pods";
    let gone = server.admin.ask("DELETE", pods, b"");
    assert_eq!(gone.code, 200, "{}", gone.text());
    eventually(Deadline::seconds(60), || all_available(&server));

    // Deleting makes room.
    let path = format!("{CONFIGMAPS}/big-0");
    assert_eq!(server.admin.ask("DELETE", &path, b"").code, 200);
    assert_eq!(server.create("again", "value").code, 201);
    let log = server.kennel.log();
    assert!(log.contains("well below the storage quota again"), "{log}");
}

/// A ConfigMap with this value and a finalizer for each of these names.
fn held(name: &str, value: &str, finalizers: &[&str]) -> Vec<u8> {
    let finalizers: Vec<String> = finalizers
        .iter()
        .map(|one| format!("example.com/{one}"))
        .collect();
    let metadata = json!({"name": name, "finalizers": finalizers});
    let object = json!({"metadata": metadata, "data": {"value": value}});
    object.to_string().into_bytes()
}

/// Creates objects until not even a small one fits.
fn fill(server: &Fixture) {
    for length in [100_000, 5_000, 50] {
        let value = "x".repeat(length);
        let mut names = (0..2_000).map(|n| format!("x{length}-{n}"));
        let refused = names.find(|name| server.create(name, &value).code != 201);
        assert!(refused.is_some(), "it gets full");
    }
}

#[test]
fn deletions_work_at_the_quota_and_what_is_deleted_cannot_grow_beyond_it() {
    let arguments = ["server", "--storage-quota", "1Mi"];
    let server = Fixture::of(Kennel::start(KENNEL, &arguments));
    let path = |name: &str| format!("{CONFIGMAPS}/{name}");
    let ask = |verb: &str, name: &str, body: &[u8]| server.admin.ask(verb, &path(name), body);
    for name in ["deleting", "kept"] {
        let body = held(name, "little", &["a", "b"]);
        assert_eq!(server.admin.ask("POST", CONFIGMAPS, &body).code, 201);
    }
    assert_eq!(ask("DELETE", "deleting", b"").code, 200);
    fill(&server);
    for (length, finalizers) in [(1_000_000, &["a", "b"][..]), (8_000, &["a"])] {
        let body = held("deleting", &"x".repeat(length), finalizers);
        let refused = ask("PUT", "deleting", &body);
        assert_eq!(refusal(&refused), (507, "InsufficientStorage".to_owned()));
    }
    // A deletion that waits, and the steps to its end, which may say something.
    assert_eq!(ask("DELETE", "kept", b"").code, 200);
    assert!(ask("GET", "kept", b"").json()["metadata"]["deletionTimestamp"].is_string());
    for name in ["deleting", "kept"] {
        let said = "x".repeat(2_000);
        for finalizers in [&["b"][..], &[]] {
            let reply = ask("PUT", name, &held(name, &said, finalizers));
            assert_eq!(reply.code, 200, "{}", reply.text());
        }
        assert_eq!(ask("GET", name, b"").code, 404);
    }
}

#[test]
fn little_growth_of_deleted_objects_ends_at_the_limit_of_nodes() {
    let arguments = ["server", "--storage-quota", "1Mi"];
    let server = Fixture::of(Kennel::start(KENNEL, &arguments));
    let body = held("deleting", "", &["a"]);
    assert_eq!(server.admin.ask("POST", CONFIGMAPS, &body).code, 201);
    let path = format!("{CONFIGMAPS}/deleting");
    assert_eq!(server.admin.ask("DELETE", &path, b"").code, 200);
    fill(&server);
    let mut codes = (1..200).map(|n| {
        let body = held("deleting", &"x".repeat(n * 3_500), &["a"]);
        server.admin.ask("PUT", &path, &body).code
    });
    let last = codes.find(|code| *code != 200);
    assert_eq!(last, Some(507));
    let used = metric(&server, "kennel_store_bytes");
    assert!(used > 1 << 20, "{used}");
    assert!(used < (1 << 20) * 115 / 100, "{used}");
}

fn all_available(server: &Fixture) -> Result<(), String> {
    let path = format!("{DAEMON_SETS}/agent");
    let status = server.admin.ask("GET", &path, b"").json()["status"].clone();
    let pods = server
        .admin
        .ask("GET", "/api/v1/namespaces/default/pods", b"");
    let pods = pods.json()["items"].as_array().map_or(0, Vec::len);
    let is_done =
        status["numberAvailable"] == 3 && status["desiredNumberScheduled"] == 3 && pods == 3;
    is_done
        .then_some(())
        .ok_or(format!("{pods} pods, {status}"))
}
