//! What must hold for any manifest: the fuzz target of `kennel-testkit` calls this, and nothing else does.

use std::path::Path;

use super::manifest;

const NOW: &str = "2026-01-02T03:04:05Z";

/// A manifest makes the same pod each time, whatever it contains.
pub fn manifest(input: &[u8]) {
    let read = |node: &str| manifest::read(input, Path::new("/manifests/a.yaml"), node, NOW);
    let Ok(pod) = read("node-1") else {
        return;
    };
    let again = read("node-1").expect("what was read once can be read again");
    assert_eq!(
        pod.id, again.id,
        "the uid depends on more than the manifest"
    );
    let elsewhere = read("node-2").expect("the node's name decides nothing");
    assert_ne!(pod.id.uid, elsewhere.id.uid, "two nodes have one pod");
}
