//! The examples, applied as they are with a real kubectl, and checked for what their pages promise.
//!
//! Images of the manifests' own names stand in for the real ones: busybox and a script that does what matters
//! here. The node exporter is a real one. Simulated nodes serve where only placement matters.

mod fixture;
mod log_collector;
mod network_plugin;
mod node_cache;
mod node_exporter;
mod per_hardware;
mod placement;
mod processes;
mod security_audit;
mod storage_plugin;
mod substitute_images;

use std::collections::BTreeSet;

use fixture::{Fixture, directory};

/// An example, and what checks it.
type Check = (&'static str, fn(&Fixture));

/// What checks each example on a machine with containers, beside nodes that are simulated. The network comes
/// first: the pods of the others live in it.
const ON_A_MACHINE: &[Check] = &[
    ("network-plugin", network_plugin::check),
    ("log-collector", log_collector::check),
    ("node-cache", node_cache::check),
    ("node-exporter", node_exporter::check),
    ("security-audit", security_audit::check),
    ("storage-plugin", storage_plugin::check),
];

/// Examples of which placement is all that matters.
const ON_SIMULATED_NODES: &[&str] = &["per-hardware"];

/// Examples that `processes` checks on a machine without a container engine.
const AS_PROCESSES: &[&str] = &["disk-watch", "exporter-process"];

#[test]
fn examples_on_a_machine() {
    if !kennel_testkit::machine::possible() {
        return;
    }
    let fixture = Fixture::new();
    let ((_, network), others) = ON_A_MACHINE.split_first().unwrap();
    network(&fixture);
    std::thread::scope(|scope| {
        let check = |(name, check): &'static Check| {
            let fixture = &fixture;
            let named = std::thread::Builder::new().name((*name).to_owned());
            named.spawn_scoped(scope, move || check(fixture)).unwrap();
        };
        others.iter().for_each(check);
    });
    network_plugin::check_end(&fixture);
}

#[test]
fn every_example_is_checked_and_has_a_page() {
    let checked = ON_A_MACHINE.iter().map(|(name, _)| *name);
    let checked: BTreeSet<String> = checked
        .chain(ON_SIMULATED_NODES.iter().copied())
        .chain(AS_PROCESSES.iter().copied())
        .map(str::to_owned)
        .collect();
    let there: BTreeSet<String> = std::fs::read_dir(directory(""))
        .unwrap()
        .map(Result::unwrap)
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    assert_eq!(there, checked);
    let index = std::fs::read_to_string(directory("README.md")).unwrap();
    for name in there {
        let page = format!("{name}/README.md");
        assert!(directory(&page).is_file(), "{page} is missing");
        assert!(index.contains(&page), "the index does not name {page}");
        let text = std::fs::read_to_string(directory(&page)).unwrap();
        let top: Vec<&str> = text.lines().take(10).collect();
        let top = top.join(" ");
        let says = if AS_PROCESSES.contains(&name.as_str()) {
            "without a container engine"
        } else {
            "**Needs a container engine**"
        };
        assert!(
            top.contains(says),
            "{page} does not say at its top where it runs"
        );
    }
}
