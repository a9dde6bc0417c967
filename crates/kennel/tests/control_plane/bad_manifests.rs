//! What a user reads for a doubtful manifest, word for word what Kubernetes v1.36 says: each entry of
//! `crates/server/tests/data/bad-manifests.json` goes through a real kubectl, and what it prints is compared with what was
//! recorded with Kubernetes itself.

use kennel_testkit::{Kennel, Kubectl, Version};
use serde_json::Value;

/// How many there are, so that none can be lost unseen.
const ENTRIES: usize = 44;

/// The recordings have runs of blanks folded; line ends are folded too, since kubectl leaves a blank
/// before some of them.
fn fold(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn entries() -> Vec<Value> {
    serde_json::from_str(include_str!(
        "../../../server/tests/data/bad-manifests.json"
    ))
    .expect("the recordings are JSON")
}

fn difference(kubectl: &Kubectl, entry: &Value) -> Option<String> {
    let manifest = entry["manifest"].to_string();
    let answer = kubectl.run_with_input(&["create", "-f", "-"], &manifest);
    if answer.code == 0 {
        // Out of the way: one that is taken must not be in the way of the next of that name.
        kubectl
            .run_with_input(&["delete", "--force", "-f", "-"], &manifest)
            .ok();
    }
    let printed = fold(&format!("{}{}", answer.stdout, answer.stderr));
    let expected = fold(
        entry["kubectl_prints"]
            .as_str()
            .expect("a recording has a print"),
    );
    let name = entry["name"].as_str().expect("a recording has a name");
    (printed != expected).then(|| format!("{name}\n- {expected}\n+ {printed}\n"))
}

#[test]
fn kubectl_prints_what_it_prints_with_kubernetes() {
    let kennel = Kennel::server(env!("CARGO_BIN_EXE_kennel"));
    let kubectl = Kubectl::new(Version::V1_36, &kennel.kubeconfig());
    let entries = entries();
    assert_eq!(entries.len(), ENTRIES);
    let differences: Vec<String> = entries
        .iter()
        .filter_map(|entry| difference(&kubectl, entry))
        .collect();
    let count = differences.len();
    assert!(
        count == 0,
        "{count} of {ENTRIES} differ:\n{}",
        differences.join("\n")
    );
}
