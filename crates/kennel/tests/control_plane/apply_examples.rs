//! Server-side apply of the manifests in `examples`, again and again and with each kubectl: applying the same changes nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kennel_testkit::{Deadline, Kennel, Kubectl, Version, eventually};
use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_kennel");
/// For the controllers, which write the status of a DaemonSet.
const TIMEOUT: u64 = 30;

/// The directories of the examples.
fn examples() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let entries = std::fs::read_dir(all).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut directories: Vec<PathBuf> = paths.filter(|path| path.is_dir()).collect();
    directories.sort();
    directories
}

/// What kubectl says of each object of an example.
fn apply(kubectl: &Kubectl, example: &str) -> Vec<String> {
    let answer = kubectl.run(&["apply", "--server-side", "-f", example]);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{example}");
    answer.stdout.lines().map(str::to_owned).collect()
}

/// `kubectl get` of an example with managed fields, which newer ones leave out.
fn get(kubectl: &Kubectl, example: &str, version: Version) -> Value {
    let mut arguments = vec!["get", "-f", example, "-o", "json"];
    if version > Version::V1_20 {
        arguments.push("--show-managed-fields");
    }
    serde_json::from_str(&kubectl.run(&arguments).ok()).unwrap()
}

/// The metadata of each object of an example, once the controller has seen its DaemonSets: after that, without nodes, it
/// writes nothing.
fn settled(kubectl: &Kubectl, example: &str, version: Version) -> BTreeMap<String, Value> {
    eventually(Deadline::seconds(TIMEOUT), || {
        let shown = get(kubectl, example, version);
        let objects = match shown["items"].as_array() {
            Some(items) => items.clone(),
            None => vec![shown],
        };
        for object in &objects {
            let seen = &object["status"]["observedGeneration"];
            if object["kind"] == "DaemonSet" && *seen != object["metadata"]["generation"] {
                return Err(object.to_string());
            }
        }
        let named = objects.into_iter().map(|object| {
            let name = format!("{} {}", object["kind"], object["metadata"]["name"]);
            (name, object["metadata"].clone())
        });
        Ok(named.collect())
    })
}

/// The names of the managers of an object.
fn managers(metadata: &Value) -> Vec<&str> {
    let entries = metadata["managedFields"].as_array().into_iter().flatten();
    entries
        .filter_map(|entry| entry["manager"].as_str())
        .collect()
}

fn every_example_is_applied_twice(version: Version) {
    let kennel = Kennel::up(BINARY, 0);
    let kubectl = Kubectl::new(version, &kennel.kubeconfig());
    let examples = examples();
    assert!(examples.len() >= 9, "{examples:?}");
    for example in &examples {
        let example = example.to_str().unwrap();
        let first = apply(&kubectl, example);
        let before = settled(&kubectl, example, version);
        assert_eq!(first.len(), before.len(), "{first:?}");
        let second = apply(&kubectl, example);
        assert_eq!(second, first);
        let is_applied = |line: &String| line.ends_with(" serverside-applied");
        assert!(second.iter().all(is_applied), "{second:?}");
        let after = settled(&kubectl, example, version);
        for (name, metadata) in &before {
            if managers(metadata).is_empty() {
                // As upstream: its manifest has nothing but a name, so that nobody was recorded by the first apply. The second one
                // finds the label that a Namespace got, and nothing in a ServiceAccount.
                let is_namespace = name.starts_with("\"Namespace\"");
                assert!(
                    is_namespace || name.contains("\"ServiceAccount\""),
                    "{name}"
                );
                let expected: &[&str] = if is_namespace {
                    &["before-first-apply"]
                } else {
                    &[]
                };
                assert_eq!(managers(&after[name]), expected, "{name}");
            } else {
                // Resource version, generation and managers are what they were.
                assert_eq!(after[name], *metadata, "{name} of {example}");
            }
        }
        apply(&kubectl, example);
        assert_eq!(settled(&kubectl, example, version), after, "{example}");
    }
}

#[test]
fn every_example_is_applied_twice_by_kubectl_1_20() {
    every_example_is_applied_twice(Version::V1_20);
}

#[test]
fn every_example_is_applied_twice_by_kubectl_1_32() {
    every_example_is_applied_twice(Version::V1_32);
}

#[test]
fn every_example_is_applied_twice_by_kubectl_1_36() {
    every_example_is_applied_twice(Version::V1_36);
}
