//! An object whose stored bytes are damaged: the server runs without it and says so; it is repaired.

use crate::server_faults::fixture::{CONFIGMAPS, Fixture, server};
use crate::storage::{fail, run, succeed, tamper};

const KEY: &str = "/registry/configmaps/default/spoilt";

fn names(server: &Fixture) -> Vec<String> {
    let list = server.admin.ask("GET", CONFIGMAPS, b"").json();
    let items = list["items"].as_array().expect("a list has items").iter();
    let name = |item: &serde_json::Value| item["metadata"]["name"].as_str().unwrap().to_owned();
    items
        .map(name)
        .filter(|name| name != "kube-root-ca.crt")
        .collect()
}

#[test]
fn a_damaged_object_is_left_out_named_and_repaired() {
    let first = server();
    for name in ["intact", "spoilt"] {
        assert_eq!(first.create(name, "value").code, 201);
    }
    let shown = first.admin.ask("GET", &format!("{CONFIGMAPS}/spoilt"), b"");
    let first_uid = shown.json()["metadata"]["uid"].clone();
    let data = first.kennel.data_dir();
    let healthy = succeed("doctor", &data, &[]);
    assert!(healthy.starts_with("ok       database of "), "{healthy}");
    let sql = format!("UPDATE kv SET value = CAST(value || 'x' AS BLOB) WHERE key = '{KEY}'");
    let kennel = first.kennel.restart_after(|data| {
        assert_eq!(tamper(data, &sql), 1);
        // Found before the server is started, too.
        let report = run("doctor", data, &[]);
        assert_eq!(report.status.code(), Some(1));
        let report = String::from_utf8(report.stdout).unwrap();
        let line = format!("{KEY}: its checksum does not match");
        assert!(report.contains(&line), "{report}");
    });
    let server = Fixture::of(kennel);
    assert_eq!(names(&server), ["intact"]);
    let path = format!("{CONFIGMAPS}/spoilt");
    let refused = server.admin.ask("GET", &path, b"");
    assert_eq!(refused.code, 500, "{}", refused.text());
    let words = "`kennel doctor` on the server says how to repair or discard";
    assert!(refused.text().contains(words), "{}", refused.text());
    assert_eq!(server.create("spoilt", "another").code, 500);
    let log = server.kennel.log();
    assert!(
        log.contains(KEY) && log.contains("its checksum does not match"),
        "{log}"
    );
    let metrics = server.admin.ask("GET", "/metrics", b"").text();
    assert!(
        metrics.contains("\nkennel_store_damaged_values 1\n"),
        "{metrics}"
    );

    let named = format!("\nkennel_store_damaged_value{{key=\"{KEY}\"}} 1\n");
    assert!(metrics.contains(&named), "{metrics}");

    // Repaired while the server runs.
    let report = run("doctor", &data, &[]);
    assert_eq!(report.status.code(), Some(1), "{report:?}");
    let raw = succeed("doctor", &data, &["--raw", KEY]);
    let repaired = raw.strip_suffix('x').expect("the byte that was added");
    let mut repaired: serde_json::Value = serde_json::from_str(repaired).unwrap();
    // The managers of fields are stored in a form of their own.
    repaired["metadata"]["managedFields"].take();
    let repaired = repaired.to_string();
    let created = server.admin.ask("POST", CONFIGMAPS, repaired.as_bytes());
    assert_eq!(created.code, 201, "{}", created.text());
    assert_eq!(created.json()["data"]["value"], "value");
    let uid = first_uid.as_str().expect("objects have uids");
    assert_eq!(created.json()["metadata"]["uid"], uid, "owners stay owners");
    let said = succeed("doctor", &data, &["--discard", KEY]);
    assert_eq!(said, format!("Deleted the damaged bytes of {KEY}.\n"));
    succeed("doctor", &data, &[]);
    // The metric follows at once, so that an alert ends.
    let metrics = server.admin.ask("GET", "/metrics", b"").text();
    assert!(
        metrics.contains("\nkennel_store_damaged_values 0\n"),
        "{metrics}"
    );
    let said = fail("doctor", &data, &["--discard", KEY], 2);
    assert!(said.contains("no damaged object with the key"), "{said}");

    let server = Fixture::of(server.kennel.restart());
    assert_eq!(names(&server), ["intact", "spoilt"]);
    let metrics = server.admin.ask("GET", "/metrics", b"").text();
    assert!(
        metrics.contains("\nkennel_store_damaged_values 0\n"),
        "{metrics}"
    );
    server.is_well("a damaged object");
}

#[test]
fn what_is_no_data_directory_cannot_be_examined() {
    let dir = tempfile::TempDir::new().unwrap();
    let said = fail("doctor", &dir.path().join("nothing"), &[], 2);
    assert!(said.contains("cannot open"), "{said}");
}
