//! The diagram of crates in ARCHITECTURE.md shows exactly the dependencies that the manifests declare.

use std::collections::BTreeSet;
use std::path::Path;

/// A crate and one that it depends on.
type Edge = (String, String);

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Normal and build dependencies on our own crates; those of tests are left out of the diagram.
fn declared() -> BTreeSet<Edge> {
    let mut edges = BTreeSet::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let manifest = std::fs::read_to_string(path.join("Cargo.toml")).unwrap();
        let mut section = "";
        for line in manifest.lines() {
            if line.starts_with('[') {
                section = line;
            }
            let shown = matches!(section, "[dependencies]" | "[build-dependencies]");
            let dependency = line.strip_prefix("kennel-").filter(|_| shown);
            let end = |c: char| !c.is_ascii_alphanumeric() && c != '-';
            if let Some(dependency) = dependency.and_then(|rest| rest.split(end).next()) {
                edges.insert((name.clone(), dependency.to_owned()));
            }
        }
    }
    edges
}

/// The lines `a --> b & c` of the diagram.
fn drawn() -> BTreeSet<Edge> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, diagram) = text.split_once("```mermaid\n").expect("there is a diagram");
    let (diagram, _) = diagram.split_once("```").expect("the diagram has an end");
    let lines = diagram.lines().filter_map(|line| line.split_once("-->"));
    lines
        .flat_map(|(from, to)| {
            let to = to.split('&').map(|name| name.trim().to_owned());
            to.map(move |to| (from.trim().to_owned(), to))
        })
        .collect()
}

#[test]
fn the_diagram_of_crates_shows_their_dependencies() {
    let (declared, drawn) = (declared(), drawn());
    let missing: Vec<&Edge> = declared.difference(&drawn).collect();
    let wrong: Vec<&Edge> = drawn.difference(&declared).collect();
    assert!(missing.is_empty(), "not in ARCHITECTURE.md: {missing:?}");
    assert!(wrong.is_empty(), "not in a manifest: {wrong:?}");
}

/// What ARCHITECTURE.md says of each crate: the crates of ours that it may import, tests aside. A crate that is missing here is
/// a program or a tool, which may import every library.
const LAYERS: [(&str, &[&str]); 17] = [
    ("backoff", &[]),
    ("types", &[]),
    ("core", &["backoff", "types"]),
    ("store", &["backoff"]),
    ("server", &["core", "store", "types"]),
    ("client", &["core", "types"]),
    ("control", &["client", "core", "types"]),
    ("shim", &[]),
    ("nftables", &[]),
    ("network", &["core", "nftables"]),
    ("proxy", &["client", "core", "nftables", "types"]),
    (
        "node",
        &["client", "core", "embed", "network", "shim", "types"],
    ),
    ("simulation", &["client", "core", "types"]),
    ("dns", &["client", "core", "types"]),
    ("inspect", &["client", "control", "core", "types"]),
    ("dashboard", &["client", "core", "inspect", "types"]),
    // The node program: its memory is paid for on every machine.
    ("agent", &["client", "core", "network", "node", "proxy"]),
];
const PROGRAMS: [&str; 8] = [
    "browser",
    "embed",
    "kennel",
    "packages",
    "playground",
    "standalone",
    "test-support",
    "testkit",
];

#[test]
fn layers_import_downwards_only() {
    for (from, to) in declared() {
        let layer = LAYERS.iter().find(|(name, _)| *name == from);
        let allowed = layer.map_or(PROGRAMS.contains(&&*from), |(_, to_all)| {
            to_all.contains(&&*to)
        });
        assert!(allowed, "{from} imports {to}");
    }
}

#[test]
fn every_crate_has_a_layer() {
    let layers = LAYERS.iter().map(|(name, _)| *name);
    let known: BTreeSet<&str> = layers.chain(PROGRAMS).collect();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(known.contains(&*name), "{name} is in no layer");
    }
}
