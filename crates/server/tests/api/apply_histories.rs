//! Random histories of writes by several managers to a DaemonSet, a Pod and a Service: applies with and without force, patches,
//! replacements, and writes of the status.

use kennel_test_support::with_seeds;
use serde_json::{Value, json};

use crate::apply::APPLY;
use crate::fixture::{DAEMONSETS, PODS, STRATEGIC, TestServer, daemonset, pod};

const WRITES: usize = 12;
const SERVICES: &str = "/api/v1/namespaces/default/services";

/// The key of items in every list of objects that the pieces have.
const KEY: &str = "name";

/// A kind whose objects are written.
struct Kind {
    path: &'static str,
    new: fn(&str) -> Value,
    /// Configurations of disjoint fields, with `1` or `2` in place of `@`. Lists and maps that the object may lack are only in those
    /// with odd indices, or only in the others: who writes the first member of one by a patch owns the list or map itself.
    pieces: &'static [&'static str],
}

const KINDS: [Kind; 3] = [
    Kind {
        path: DAEMONSETS,
        new: daemonset,
        pieces: &[
            r#"{"metadata": {"labels": {"a": "@"}}}"#,
            r#"{"metadata": {"annotations": {"b": "@"}}}"#,
            r#"{"metadata": {"finalizers": ["example.com/@"]}}"#,
            r#"{"spec": {"minReadySeconds": @}}"#,
            r#"{"spec": {"revisionHistoryLimit": @}}"#,
            r#"{"spec": {"template": {"spec": {"containers": [{"name": "c", "env": [{"name": "A", "value": "@"}]}]}}}}"#,
            r#"{"spec": {"template": {"spec": {"containers": [{"name": "d", "image": "d:@"}]}}}}"#,
            r#"{"spec": {"template": {"spec": {"tolerations": [{"key": "@", "operator": "Exists"}]}}}}"#,
            r#"{"spec": {"template": {"spec": {"nodeSelector": {"x": "@"}}}}}"#,
            r#"{"spec": {"template": {"spec": {"volumes": [{"name": "@", "emptyDir": {}}]}}}}"#,
        ],
    },
    Kind {
        path: PODS,
        new: pod_without_token,
        pieces: &[
            r#"{"metadata": {"labels": {"a": "@"}}}"#,
            r#"{"metadata": {"annotations": {"b": "@"}}}"#,
            r#"{"metadata": {"labels": {"b": "@"}}}"#,
            r#"{"metadata": {"finalizers": ["example.com/@"]}}"#,
            r#"{"spec": {"containers": [{"name": "c", "image": "i:@"}]}}"#,
        ],
    },
    Kind {
        path: SERVICES,
        new: service,
        pieces: &[
            r#"{"metadata": {"labels": {"a": "@"}}}"#,
            r#"{"metadata": {"annotations": {"b": "@"}}}"#,
            r#"{"metadata": {"finalizers": ["example.com/@"]}}"#,
            r#"{"spec": {"ports": [{"name": "d@", "port": 8@, "protocol": "UDP"}]}}"#,
            r#"{"spec": {"ports": [{"name": "e@", "port": 9@, "targetPort": 7@}]}}"#,
            r#"{"spec": {"selector": {"x": "@"}}}"#,
            r#"{"spec": {"externalIPs": ["192.0.2.@"]}}"#,
            r#"{"spec": {"publishNotReadyAddresses": true}}"#,
        ],
    },
];

/// A token's volume would have a random name.
fn pod_without_token(name: &str) -> Value {
    let mut pod = pod(name);
    pod["spec"]["automountServiceAccountToken"] = false.into();
    pod
}

fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"ports": [{"name": "c", "port": 80}]},
    })
}

/// Adds a configuration to another object. Items of lists are told apart by their names.
fn combine(into: &mut Value, with: &Value) {
    match (into, with) {
        (Value::Object(into), Value::Object(with)) => {
            for (name, value) in with {
                combine(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(with)) if with.iter().any(|one| one[KEY].is_string()) => {
            for item in with {
                match into.iter_mut().find(|one| one[KEY] == item[KEY]) {
                    Some(one) => combine(one, item),
                    None => into.push(item.clone()),
                }
            }
        }
        (into, with) => *into = with.clone(),
    }
}

#[derive(Clone, Copy, Debug)]
enum Verb {
    Apply { force: bool },
    Patch,
    Update,
    PatchStatus,
}

/// What one manager writes.
#[derive(Clone, Debug)]
struct Write {
    manager: &'static str,
    verb: Verb,
    config: Value,
}

impl Kind {
    /// A configuration of some of the pieces with these indices.
    fn config(&self, random: &mut fastrand::Rng, among: impl Fn(usize) -> bool) -> Value {
        let mut config = json!({});
        for (at, piece) in self.pieces.iter().enumerate() {
            if among(at) && random.bool() {
                let number = if random.bool() { "1" } else { "2" };
                let piece: Value = serde_json::from_str(&piece.replace('@', number)).unwrap();
                combine(&mut config, &piece);
            }
        }
        config
    }

    fn random_write(&self, random: &mut fastrand::Rng) -> Write {
        let manager = ["p", "q", "r"][random.usize(..3)];
        let mut config = self.config(random, |_| true);
        let verb = match random.u8(..8) {
            0..4 => Verb::Apply {
                force: random.bool(),
            },
            4 => Verb::Update,
            5 | 6 => Verb::Patch,
            _ => Verb::PatchStatus,
        };
        if let Verb::PatchStatus = verb {
            let condition = ["example.com/A", "example.com/B"][random.usize(..2)];
            config = json!({"status": {"conditions": [{
                "type": condition, "status": if random.bool() { "True" } else { "False" },
                "reason": "R", "message": "m", "lastTransitionTime": "2026-01-02T03:04:05Z",
            }]}});
        }
        Write {
            manager,
            verb,
            config,
        }
    }

    /// Sends a write, and checks what holds for every write. Returns whether it was accepted.
    async fn write(&self, server: &TestServer, name: &str, write: &Write) -> bool {
        let (path, manager) = (format!("{}/{name}", self.path), write.manager);
        let by = format!("fieldManager={manager}");
        let before = server.get(&path).await.ok();
        let mut config = write.config.clone();
        combine(&mut config, &identity(&before));
        let answer = match write.verb {
            Verb::Apply { force } => {
                let path = format!("{path}?{by}&force={force}");
                server.patch(APPLY, &path, &config).await
            }
            Verb::Patch => {
                let path = format!("{path}?{by}");
                server.patch(STRATEGIC, &path, &write.config).await
            }
            Verb::Update => {
                let mut new = before.clone();
                combine(&mut new, &write.config);
                server.put(&format!("{path}?{by}"), &new).await
            }
            Verb::PatchStatus => {
                let path = format!("{path}/status?{by}");
                server.patch(STRATEGIC, &path, &write.config).await
            }
        };
        let after = server.get(&path).await.ok();
        if answer.code != 200 {
            // An apply conflicts, or lacks what the kind requires: what a manager alone owned and left out is gone.
            let is_apply = matches!(write.verb, Verb::Apply { .. });
            let text = answer.text();
            assert!(
                is_apply && [409, 422].contains(&answer.code),
                "{write:?}: {text}"
            );
            assert_eq!(after, before, "{write:?} was refused");
            return false;
        }
        assert_eq!(answer.ok(), after, "{write:?}");
        assert_owners_keep_theirs(write, &before, &after);
        if let Verb::Apply { .. } = write.verb {
            let again = format!("{path}?{by}");
            let again = server.patch(APPLY, &again, &config).await.ok();
            assert_eq!(again, after, "{write:?} again");
        }
        true
    }
}

/// What an apply must say of the object.
fn identity(object: &Value) -> Value {
    json!({
        "apiVersion": object["apiVersion"], "kind": object["kind"],
        "metadata": {"name": object["metadata"]["name"]},
    })
}

type Path = Vec<String>;

/// The paths of a manager's fields.
fn paths(fields: &Value, trail: &[String], found: &mut Vec<Path>) {
    for (element, below) in fields.as_object().unwrap() {
        let mut path = trail.to_vec();
        // A dot stands for the list, map or item itself.
        if element != "." {
            path.push(element.clone());
        }
        if below.as_object().is_some_and(serde_json::Map::is_empty) {
            found.push(path);
        } else {
            paths(below, &path, found);
        }
    }
}

/// The value of a field, if it is there. Of members of sets only that they are.
fn value_at(object: &Value, path: &[String]) -> Option<Value> {
    let mut at = object;
    for element in path {
        let (kind, name) = element.split_once(':').expect("an element has a kind");
        at = match kind {
            "f" => at.get(name)?,
            "k" => {
                let keys: Value = serde_json::from_str(name).unwrap();
                let keys = keys.as_object().unwrap();
                let is_it = |item: &&Value| keys.iter().all(|(key, value)| item[key] == *value);
                at.as_array()?.iter().find(is_it)?
            }
            "v" => {
                let member: Value = serde_json::from_str(name).unwrap();
                let is_there = at.as_array()?.contains(&member);
                return is_there.then_some(Value::Bool(true));
            }
            other => panic!("{other} in {path:?}"),
        };
    }
    Some(at.clone())
}

fn entries(object: &Value) -> &[Value] {
    let entries = &object["metadata"]["managedFields"];
    entries.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Every manager keeps the fields that a write did not change, except that an apply gives up what it leaves out.
fn assert_owners_keep_theirs(write: &Write, before: &Value, after: &Value) {
    let who = |entry: &Value| ["manager", "operation", "subresource"].map(|of| entry[of].clone());
    for entry in entries(before) {
        let is_own = entry["manager"] == write.manager && entry["operation"] == "Apply";
        if is_own && matches!(write.verb, Verb::Apply { .. }) {
            continue;
        }
        let mut owned = Vec::new();
        paths(&entry["fieldsV1"], &[], &mut owned);
        let same = entries(after).iter().find(|one| who(one) == who(entry));
        let mut kept = Vec::new();
        if let Some(same) = same {
            paths(&same["fieldsV1"], &[], &mut kept);
        }
        for path in owned {
            let (old, new) = (value_at(before, &path), value_at(after, &path));
            if old.is_some() && old == new {
                let manager = &entry["manager"];
                assert!(
                    kept.contains(&path),
                    "{manager} lost {path:?} to {write:?}\n{before}\n{after}"
                );
            }
        }
    }
}

/// What an object and its managers are, without what differs between two objects of the same history.
fn outcome(object: &Value) -> (Value, Vec<String>) {
    let mut managers: Vec<String> = entries(object)
        .iter()
        .map(|entry| {
            let mut entry = entry.clone();
            entry.as_object_mut().unwrap().remove("time");
            entry.to_string()
        })
        .collect();
    managers.sort();
    let mut object = object.clone();
    let metadata = object["metadata"].as_object_mut().unwrap();
    for name in [
        "creationTimestamp",
        "managedFields",
        "resourceVersion",
        "uid",
        "name",
    ] {
        metadata.remove(name);
    }
    // Each service has an address of its own.
    if let Some(spec) = object["spec"].as_object_mut() {
        spec.remove("clusterIP");
        spec.remove("clusterIPs");
    }
    sort_lists(&mut object);
    (object, managers)
}

/// The order of items is that in which they came.
fn sort_lists(value: &mut Value) {
    match value {
        Value::Array(items) => {
            items.iter_mut().for_each(sort_lists);
            items.sort_by_key(Value::to_string);
        }
        Value::Object(members) => members.values_mut().for_each(sort_lists),
        _ => {}
    }
}

/// Writes the same history to two objects. Then two more managers write disjoint fields of one in one order, and of the other in
/// the other order.
async fn run(kind: &Kind, random: &mut fastrand::Rng) {
    let server = TestServer::new().await;
    let names = ["x", "y"];
    for name in names {
        let mut new = (kind.new)("x");
        new["metadata"]["name"] = name.into();
        let path = format!("{}?fieldManager=base", kind.path);
        server.post(&path, &new).await.is(201);
    }
    for _ in 0..WRITES {
        let write = kind.random_write(random);
        let one = kind.write(&server, "x", &write).await;
        let other = kind.write(&server, "y", &write).await;
        assert_eq!(one, other, "{write:?}");
    }
    let mut verb = || {
        if random.bool() {
            return Verb::Patch;
        }
        Verb::Apply { force: true }
    };
    let verbs = [verb(), verb()];
    let last = ["s", "t"].into_iter().zip(verbs).enumerate();
    let last: Vec<Write> = last
        .map(|(side, (manager, verb))| Write {
            manager,
            verb,
            config: kind.config(random, |at| at % 2 == side),
        })
        .collect();
    let mut outcomes = Vec::new();
    for (name, order) in names.into_iter().zip([[0, 1], [1, 0]]) {
        for at in order {
            let accepted = kind.write(&server, name, &last[at]).await;
            assert!(accepted, "{:?}", last[at]);
        }
        let path = format!("{}/{name}", kind.path);
        outcomes.push(outcome(&server.get(&path).await.ok()));
    }
    assert_eq!(outcomes[0], outcomes[1], "{last:?}");
}

fn check(kind: &Kind) {
    with_seeds([1, 2, 3, 4], |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        runtime.block_on(run(kind, &mut random));
    });
}

#[test]
fn owners_of_a_daemon_keep_their_fields() {
    check(&KINDS[0]);
}

#[test]
fn owners_of_a_pod_keep_their_fields() {
    check(&KINDS[1]);
}

#[test]
fn owners_of_a_service_keep_their_fields() {
    check(&KINDS[2]);
}
