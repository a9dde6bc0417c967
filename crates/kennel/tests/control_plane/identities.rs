//! The users in the audit log of `kennel up`: each component has its own name and
//! rights, and only the administrator is in `system:masters`.

use std::collections::BTreeSet;
use std::fs;

use kennel_testkit::{Access, Deadline, Kennel, eventually};
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_kennel");
const DAEMON_SETS: &str = "/apis/apps/v1/namespaces/default/daemonsets";

fn daemon_set(image: &str) -> Value {
    let labels = json!({"app": "agent"});
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "c", "image": image}]},
            },
        },
    })
}

/// Waits until all three nodes run the newest version.
fn rolled_out(admin: &Access) {
    eventually(Deadline::seconds(60), || {
        let set = admin
            .ask("GET", &format!("{DAEMON_SETS}/agent"), b"")
            .json();
        let status = &set["status"];
        let counts = ["numberReady", "updatedNumberScheduled"].map(|field| &status[field]);
        let seen = status["observedGeneration"] == set["metadata"]["generation"];
        if counts == [&json!(3), &json!(3)] && seen {
            return Ok(());
        }
        Err(format!("not rolled out yet: {status}"))
    });
}

/// Makes a service for them, and waits until it is known where it leads.
fn reachable(admin: &Access) {
    let service = json!({"metadata": {"name": "agent"},
        "spec": {"selector": {"app": "agent"}, "ports": [{"port": 80}]}});
    let services = "/api/v1/namespaces/default/services";
    let made = admin.ask("POST", services, service.to_string().as_bytes());
    assert_eq!(made.code, 201, "{}", made.text());
    eventually(Deadline::seconds(60), || {
        let path = "/api/v1/namespaces/default/endpoints/agent";
        let endpoints = admin.ask("GET", path, b"").json();
        let addresses = endpoints["subsets"][0]["addresses"].as_array();
        let all = addresses.is_some_and(|addresses| addresses.len() == 3);
        all.then_some(()).ok_or(endpoints.to_string())
    });
}

/// A cluster in which something has happened.
fn busy() -> Kennel {
    let kennel = Kennel::up(BINARY, 3);
    let admin = Access::admin(kennel.address(), &kennel.data_dir());
    let body = daemon_set("i:1").to_string();
    let made = admin.ask("POST", DAEMON_SETS, body.as_bytes());
    assert_eq!(made.code, 201, "{}", made.text());
    rolled_out(&admin);
    reachable(&admin);
    let body = daemon_set("i:2").to_string();
    let path = format!("{DAEMON_SETS}/agent");
    assert_eq!(admin.ask("PUT", &path, body.as_bytes()).code, 200);
    rolled_out(&admin);
    kennel
}

/// The writes of each user, as `verb resource/subresource`.
fn writers(lines: &[Value]) -> BTreeSet<(String, String)> {
    let of = |line: &Value| {
        let object = &line["objectRef"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut what = format!("{} {}", text(&line["verb"]), text(&object["resource"]));
        if object["subresource"].is_string() {
            what = format!("{what}/{}", text(&object["subresource"]));
        }
        (what, text(&line["user"]["username"]))
    };
    lines.iter().map(of).collect()
}

#[test]
fn each_part_writes_under_its_own_name() {
    let kennel = busy();
    let log = kennel.data_dir().join("audit/audit.log");
    // The log is complete when its writer has ended.
    let kennel = kennel.restart();
    let text = fs::read_to_string(log).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for line in &lines {
        assert_ne!(line["responseStatus"]["code"], 403, "refused: {line}");
        let groups = line["user"]["groups"].as_array().unwrap();
        let is_master = groups.contains(&json!("system:masters"));
        let is_admin = line["user"]["username"] == "kennel-admin";
        assert_eq!(is_master, is_admin, "{line}");
    }
    assert!(!kennel.log().contains("forbidden"), "{}", kennel.log());
    let writers = writers(&lines);
    let by = |what: &str| -> Vec<&str> {
        let of = writers.iter().filter(|(w, _)| w == what);
        of.map(|(_, user)| user.as_str()).collect()
    };
    let controller = "system:serviceaccount:kube-system:daemon-set-controller";
    let nodes = [
        "system:node:sim-1",
        "system:node:sim-2",
        "system:node:sim-3",
    ];
    assert_eq!(by("create pods"), [controller]);
    assert_eq!(by("update daemonsets/status"), [controller]);
    assert_eq!(by("create controllerrevisions"), [controller]);
    assert_eq!(by("create pods/binding"), ["system:kube-scheduler"]);
    let slices = "system:serviceaccount:kube-system:endpointslice-controller";
    assert_eq!(by("create endpointslices"), [slices]);
    let endpoints = "system:serviceaccount:kube-system:endpoint-controller";
    assert_eq!(by("create endpoints"), [endpoints]);
    assert_eq!(by("patch pods/status"), nodes);
    assert_eq!(by("create nodes"), nodes);
    // Two elections: of the DaemonSet controller, and of the others.
    let manager = "system:kennel:controller-manager";
    let leases = [&[manager], &nodes[..], &[controller]].concat();
    assert_eq!(by("create leases"), leases);
}

#[test]
fn a_part_without_its_role_is_refused_like_anybody() {
    let kennel = Kennel::up(BINARY, 1);
    let admin = Access::admin(kennel.address(), &kennel.data_dir());
    let binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/system:kube-scheduler";
    assert_eq!(admin.ask("DELETE", binding, b"").code, 200);
    let pod =
        json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let path = "/api/v1/namespaces/default/pods";
    let made = admin.ask("POST", path, pod.to_string().as_bytes());
    assert_eq!(made.code, 201, "{}", made.text());
    let refused = "User \"system:kube-scheduler\" cannot create resource \"pods/binding\"";
    eventually(Deadline::seconds(30), || {
        let log = kennel.log();
        log.contains(refused).then_some(()).ok_or(log)
    });
}
