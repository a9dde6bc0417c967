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
