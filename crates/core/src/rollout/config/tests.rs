use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::daemonset::HASH_LABEL;
use crate::daemonset::history::Revision;
use crate::rollout::state::Record;

fn template(image: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "x"}},
        "spec": {
            "volumes": [
                {"name": "v", "configMap": {"name": "files"}},
                {"name": "o", "configMap": {"name": "extra", "optional": true}},
                {"name": "s", "secret": {"secretName": "tls"}},
                {"name": "p", "projected": {"sources": [
                    {"configMap": {"name": "projected"}},
                    {"secret": {"name": "token"}},
                    {"downwardAPI": {}}]}}],
            "initContainers": [{"name": "i", "envFrom": [
                {"configMapRef": {"name": "first"}}, {"secretRef": {"name": "keys"}}]}],
            "containers": [{"name": "c", "image": image, "env": [
                {"name": "A", "value": "files"},
                {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "env", "key": "k"}}},
                {"name": "C", "valueFrom": {"configMapKeyRef": {
                    "name": "extra", "key": "k", "optional": true}}},
                {"name": "D", "valueFrom": {"secretKeyRef": {"name": "password", "key": "k"}}},
                {"name": "E", "valueFrom": {"configMapKeyRef": {"name": "", "key": "k"}}}]}]}})
}

#[test]
fn r10_volumes_projections_and_environments_name_config_maps() {
    let found = references(&template("v1"));
    let needed = |name: &str, needed: bool| (name.to_owned(), needed);
    let expected = [
        needed("env", true),
        needed("extra", false),
        needed("files", true),
        needed("first", true),
        needed("projected", true),
    ];
    assert_eq!(found.config_maps, expected.into());
    let secrets = ["keys", "password", "tls", "token"].map(str::to_owned);
    assert_eq!(found.secrets, secrets.into());
    assert_eq!(references(&json!({})), References::default());
    let odd = json!({"spec": {"volumes": 1, "containers": [2, {"env": {}}]}});
    assert_eq!(references(&odd), References::default());
}

#[test]
fn r10_one_reference_that_needs_it_is_enough() {
    let both = json!({"spec": {"volumes": [
        {"configMap": {"name": "a", "optional": true}}, {"configMap": {"name": "a"}}]}});
    assert_eq!(
        references(&both).config_maps,
        [("a".to_owned(), true)].into()
    );
}

#[test]
fn r10_the_hash_depends_on_all_of_the_content_and_nothing_else() {
    let base = content_hash(&json!({"data": {"a": "1", "b": "2"}}));
    let with_metadata = json!({"metadata": {"resourceVersion": "7"}, "data": {"b": "2", "a": "1"}, "binaryData": {}});
    assert_eq!(base, content_hash(&with_metadata));
    for other in [
        json!({}),
        json!({"data": {"a": "1"}}),
        json!({"data": {"a": "12", "b": ""}}),
        json!({"data": {"a": "2", "b": "1"}}),
        json!({"binaryData": {"a": "1", "b": "2"}}),
        json!({"data": {"a": "1", "b": "2"}, "binaryData": {"c": ""}}),
    ] {
        assert_ne!(base, content_hash(&other), "{other}");
    }
    let hash = |entries: &[(&str, Option<&str>)]| config_hash(entries.iter().copied());
    assert_ne!(hash(&[("a", Some("x"))]), hash(&[("b", Some("x"))]));
    assert_ne!(hash(&[("a", None)]), hash(&[("a", Some("x"))]));
}

#[test]
fn r10_names_of_copies_are_valid_and_differ_by_config_and_revision() {
    let name = copy_name("agent", "hash", "rev");
    assert!(
        name.starts_with("agent-") && name.len() == "agent-".len() + 20,
        "{name}"
    );
    assert_ne!(name, copy_name("agent", "other", "rev"));
    assert_ne!(name, copy_name("agent", "hash", "other"));
    let long = copy_name(&"x.".repeat(126), "hash", "rev");
    assert!(long.len() <= 253 && !long.contains(".-"), "{long}");
    assert_ne!(
        long,
        copy_name(&format!("{}y", "x.".repeat(125)), "hash", "rev")
    );
}

#[test]
fn r10_pods_name_the_copies_of_their_revision() {
    let plain = template("v1");
    assert_eq!(*pod_template(&plain, "rev"), plain);
    let pinned = with_hash(&plain, Some("h"));
    let made = pod_template(&pinned, "rev").into_owned();
    let copy = |name: &str| json!(copy_name(name, "h", "rev"));
    let at = |path: &str| made.pointer(path).unwrap().clone();
    assert_eq!(at("/spec/volumes/0/configMap/name"), copy("files"));
    assert_eq!(at("/spec/volumes/1/configMap/name"), copy("extra"));
    assert_eq!(at("/spec/volumes/2/secret/secretName"), "tls");
    assert_eq!(
        at("/spec/volumes/3/projected/sources/0/configMap/name"),
        copy("projected")
    );
    assert_eq!(
        at("/spec/initContainers/0/envFrom/0/configMapRef/name"),
        copy("first")
    );
    assert_eq!(at("/spec/containers/0/env/0/value"), "files");
    assert_eq!(
        at("/spec/containers/0/env/1/valueFrom/configMapKeyRef/name"),
        copy("env")
    );
    assert_eq!(
        at("/spec/containers/0/env/4/valueFrom/configMapKeyRef/name"),
        ""
    );
    assert_eq!(named(&made), Some("h"));
}

#[test]
fn r10_the_hash_is_added_and_removed_without_a_trace() {
    let plain = template("v1");
    let pinned = with_hash(&plain, Some("h"));
    assert_eq!(named(&pinned), Some("h"));
    assert_eq!(with_hash(&pinned, None), plain);
    let mut annotated = plain.clone();
    annotated["metadata"]["annotations"] = json!({"a": "b"});
    let pinned = with_hash(&annotated, Some("h"));
    assert_eq!(
        pinned["metadata"]["annotations"],
        json!({"a": "b", CONFIG: "h"})
    );
    assert_eq!(with_hash(&pinned, None), annotated);
}

#[test]
fn r10_checksums_of_config_are_recognised() {
    let with = |annotations: Value| {
        let mut template = template("v1");
        template["metadata"]["annotations"] = annotations;
        template
    };
    let check = |a: Value, b: Value, expected: bool| {
        assert_eq!(
            only_checksums_differ(&with(a.clone()), &with(b.clone())),
            expected,
            "{a} {b}"
        );
    };
    check(
        json!({"checksum/config": "1"}),
        json!({"checksum/config": "2"}),
        true,
    );
    check(json!({}), json!({"example.com/config-hash": "2"}), true);
    check(
        json!({"checksum/config": "1"}),
        json!({"checksum/config": "1"}),
        false,
    );
    check(
        json!({"a": "1"}),
        json!({"a": "2", "checksum/config": "2"}),
        false,
    );
    let restart = "kubectl.kubernetes.io/restartedAt";
    check(json!({restart: "1"}), json!({restart: "2"}), false);
    let image = with_hash(&template("v2"), None);
    assert!(!only_checksums_differ(
        &with(json!({"checksum/config": "1"})),
        &image
    ));
}

fn revision(number: i64, image: &str, hash: Option<&str>) -> Revision {
    let template = with_hash(&template(image), hash);
    let name = format!("r{number}");
    Revision {
        namespace: "ns".into(),
        name: name.as_str().into(),
        uid: name.as_str().into(),
        controller: Some("ds".into()),
        labels: [(HASH_LABEL.to_owned(), name)].into(),
        revision: number,
        data: data::of_template(&template).into(),
        terminating: false,
        template_generation: None,
        record: Record::default(),
        version: "".into(),
    }
}

/// What is chosen for a template with this image, as `image/hash`.
fn chosen(
    image: &str,
    wanted: Option<&str>,
    pins: bool,
    live: Result<&str, &Waits>,
    revisions: &[Revision],
) -> Result<String, Waits> {
    choose_when(true, image, wanted, pins, live, revisions)
}

fn choose_when(
    settled: bool,
    image: &str,
    wanted: Option<&str>,
    pins: bool,
    live: Result<&str, &Waits>,
    revisions: &[Revision],
) -> Result<String, Waits> {
    let template = with_hash(&template(image), wanted);
    let data: Arc<str> = data::of_template(&template).into();
    let choice = Choice {
        template: &template,
        data: &data,
        pins,
        live,
        settled,
        revisions,
    };
    choose(&choice).map(|data| {
        let template = data::template(&data).unwrap();
        let image = template.pointer("/spec/containers/0/image").unwrap();
        let hash = named(&template).unwrap_or("none");
        format!("{}/{hash}", image.as_str().unwrap())
    })
}

#[expect(clippy::unnecessary_wraps, reason = "it is compared with results")]
fn ok(text: &str) -> Result<String, Waits> {
    Ok(text.to_owned())
}

#[test]
fn r10_a_new_template_and_changed_config_alone_are_new_revisions() {
    let history = [revision(1, "v1", Some("a"))];
    assert_eq!(chosen("v1", None, true, Ok("a"), &[]), ok("v1/a"));
    assert_eq!(chosen("v1", None, true, Ok("a"), &history), ok("v1/a"));
    assert_eq!(chosen("v1", None, true, Ok("b"), &history), ok("v1/b"));
    assert_eq!(chosen("v2", None, true, Ok("a"), &history), ok("v2/a"));
}

#[test]
fn r10_config_that_is_being_changed_is_waited_for() {
    let history = [revision(1, "v1", Some("a"))];
    let when = |settled, image| choose_when(settled, image, None, true, Ok("b"), &history);
    assert_eq!(when(false, "v1"), ok("v1/a"));
    assert_eq!(when(true, "v1"), ok("v1/b"));
    assert_eq!(when(false, "v2"), ok("v2/b"));
}

#[test]
fn r10_an_undo_names_the_config_that_it_goes_back_to() {
    let history = [
        revision(1, "v1", Some("a")),
        revision(2, "v1", Some("b")),
        revision(3, "v2", Some("b")),
    ];
    assert_eq!(chosen("v1", Some("a"), true, Ok("b"), &history), ok("v1/a"));
    assert_eq!(
        chosen("v1", Some("a"), false, Err(&Waits::Unknown), &history),
        ok("v1/a")
    );
    // A new image after an undo keeps the config of the undo.
    assert_eq!(chosen("v3", Some("a"), true, Ok("b"), &history), ok("v3/a"));
    // Copied from another cluster.
    let unknown = Err(Waits::NoCopies("z".to_owned()));
    assert_eq!(chosen("v3", Some("z"), true, Ok("b"), &history), unknown);
    assert_eq!(chosen("v1", Some("z"), true, Ok("b"), &history), ok("v1/b"));
    assert_eq!(
        chosen("v3", Some("z"), false, Ok("b"), &history),
        ok("v3/none")
    );
}

#[test]
fn r10_a_policy_that_begins_or_ceases_to_pin_changes_no_revision() {
    let unpinned = [revision(1, "v1", None)];
    assert_eq!(chosen("v1", None, true, Ok("a"), &unpinned), ok("v1/none"));
    assert_eq!(chosen("v2", None, true, Ok("a"), &unpinned), ok("v2/a"));
    let pinned = [revision(1, "v1", Some("a"))];
    let unknown = Err(&Waits::Unknown);
    assert_eq!(chosen("v1", None, false, unknown, &pinned), ok("v1/a"));
    assert_eq!(chosen("v2", None, false, unknown, &pinned), ok("v2/none"));
}

#[test]
fn r10_config_that_is_missing_holds_a_new_template_up_and_leaves_a_known_one() {
    let missing = Waits::Missing("files".to_owned());
    let history = [revision(1, "v1", Some("a")), revision(2, "v1", Some("b"))];
    assert_eq!(
        chosen("v1", None, true, Err(&missing), &history),
        ok("v1/b")
    );
    assert_eq!(
        chosen("v2", None, true, Err(&missing), &history),
        Err(missing.clone())
    );
    assert_eq!(
        missing.to_string(),
        "ConfigMap \"files\", which the template needs, does not exist"
    );
}

#[test]
fn r10_the_revision_of_a_template_is_found_whatever_its_config() {
    let history = [
        revision(1, "v1", Some("a")),
        revision(3, "v1", Some("b")),
        revision(2, "v2", None),
    ];
    let all: Vec<&Revision> = history.iter().collect();
    let found = |image: &str, wanted: Option<&str>| {
        let template = with_hash(&template(image), wanted);
        find(&template, &all).map(|revision| revision.name.to_string())
    };
    assert_eq!(found("v1", None).as_deref(), Some("r3"));
    assert_eq!(found("v1", Some("a")).as_deref(), Some("r1"));
    assert_eq!(found("v2", None).as_deref(), Some("r2"));
    assert_eq!(found("v3", None), None);
}
