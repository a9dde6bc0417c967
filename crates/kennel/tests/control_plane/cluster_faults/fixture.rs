//! A cluster, what a test does to it, and how it must be afterwards.

use std::collections::{BTreeMap, BTreeSet};

use kennel_testkit::{Access, Deadline, Kennel, Wire, eventually};
use serde_json::{Value, json};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_kennel");
pub(crate) const SETS: &str = "/apis/apps/v1/namespaces/default/daemonsets";
const JSON: &str = "application/json";
/// Far more than anything here takes.
const TIMEOUT_SECONDS: u64 = 60;
/// More than this is a leak: a busy cluster of this size needs a tenth of it.
const MEMORY_MAX: u64 = 512 * 1024 * 1024;
/// More open files than this are a leak: store, log, listeners, and the test's own connections.
const FILES_MAX: usize = 120;

/// Where things are whose owners must live.
const OWNED: [&str; 5] = [
    "/api/v1/pods",
    "/apis/apps/v1/controllerrevisions",
    "/apis/coordination.k8s.io/v1/leases",
    "/api/v1/endpoints",
    "/apis/discovery.k8s.io/v1/endpointslices",
];
/// Where owners are.
const OWNERS: [&str; 3] = [
    "/apis/apps/v1/daemonsets",
    "/api/v1/nodes",
    "/api/v1/services",
];

pub(crate) struct Fixture {
    pub(crate) kennel: Kennel,
    pub(crate) admin: Access,
    wire: Option<Wire>,
}

impl Fixture {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::of(Kennel::start(BINARY, arguments))
    }

    pub(crate) fn of(kennel: Kennel) -> Self {
        let admin = Access::admin(kennel.address(), &kennel.data_dir());
        Self {
            kennel,
            admin,
            wire: None,
        }
    }

    /// Asks over one connection, which is opened again when it broke.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        // The server closes connections that say nothing for a while.
        let kept = self.wire.take();
        let kept = kept.and_then(|mut wire| {
            let reply = wire.ask(method, path, JSON, body.as_bytes()).ok()?;
            Some((wire, reply))
        });
        let (wire, reply) = kept.unwrap_or_else(|| {
            let mut wire = self.admin.open().unwrap();
            let reply = wire.ask(method, path, JSON, body.as_bytes()).unwrap();
            (wire, reply)
        });
        self.wire = Some(wire);
        (reply.code, reply.json())
    }

    pub(crate) fn create(&mut self, path: &str, object: &Value) -> Value {
        let (code, answer) = self.ask("POST", path, object);
        assert_eq!(code, 201, "{answer}");
        answer
    }

    pub(crate) fn list(&mut self, path: &str) -> Vec<Value> {
        let (code, list) = self.ask("GET", path, &Value::Null);
        assert_eq!(code, 200, "{path}: {list}");
        list["items"].as_array().unwrap().clone()
    }

    /// Waits until all DaemonSets are as they should be, with so many daemons each.
    pub(crate) fn converged(&mut self, daemons: usize) {
        eventually(Deadline::seconds(TIMEOUT_SECONDS), || {
            for set in self.list("/apis/apps/v1/daemonsets") {
                let status = &set["status"];
                let settled = status["observedGeneration"] == set["metadata"]["generation"]
                    && status["desiredNumberScheduled"] == daemons
                    && status["updatedNumberScheduled"] == daemons
                    && status["numberAvailable"] == daemons;
                if !settled {
                    return Err(format!("{}: {status}", set["metadata"]["name"]));
                }
            }
            Ok(())
        });
    }

    /// Waits until nothing is left behind, and nothing is on its way out.
    pub(crate) fn tidy(&mut self) {
        eventually(Deadline::seconds(TIMEOUT_SECONDS), || {
            let living = self.uids(&OWNERS);
            for path in OWNED {
                for object in self.list(path) {
                    let meta = &object["metadata"];
                    let name = format!("{path} {}/{}", meta["namespace"], meta["name"]);
                    if !meta["deletionTimestamp"].is_null() {
                        return Err(format!("{name} is still on its way out"));
                    }
                    let owners = meta["ownerReferences"].as_array();
                    let mut owners = owners.into_iter().flatten();
                    if let Some(dead) =
                        owners.find(|owner| !living.contains(owner["uid"].as_str().unwrap()))
                    {
                        return Err(format!("{name} outlives its owner {dead}"));
                    }
                }
            }
            for namespace in self.list("/api/v1/namespaces") {
                if namespace["status"]["phase"] != "Active" {
                    return Err(format!("a namespace does not end: {namespace}"));
                }
            }
            Ok(())
        });
        let (memory, files) = (self.kennel.resident_bytes(), self.kennel.open_files());
        assert!(memory < MEMORY_MAX, "{memory} bytes of memory");
        assert!(files < FILES_MAX, "{files} open files");
        let log = self.kennel.log();
        assert!(!log.contains("panicked"), "{log}");
    }

    fn uids(&mut self, paths: &[&str]) -> BTreeSet<String> {
        let mut uids = BTreeSet::new();
        for path in paths {
            let listed = self.list(path);
            uids.extend(listed.iter().map(|object| text(object, "uid")));
        }
        uids
    }

    /// The uids of all pods with this label `app`, by node.
    pub(crate) fn daemons(&mut self, app: &str) -> BTreeMap<String, String> {
        let path = format!("/api/v1/pods?labelSelector=app%3D{app}");
        let pods = self.list(&path);
        let node = |pod: &Value| pod["spec"]["nodeName"].as_str().unwrap().to_owned();
        pods.iter()
            .map(|pod| (node(pod), text(pod, "uid")))
            .collect()
    }
}

fn text(object: &Value, field: &str) -> String {
    object["metadata"][field].as_str().unwrap().to_owned()
}

/// A DaemonSet whose pods stop at once.
pub(crate) fn daemon_set(name: &str, image: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "selector": {"matchLabels": {"app": name}},
        "updateStrategy": {"rollingUpdate": {"maxUnavailable": "50%"}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": image}]}}}})
}
