//! Data directories of earlier versions, frozen in `tests/data`: every later version must open them.
//!
//! To freeze a version when it is released: `kennel up --simulate 2 --data-dir DIR`, the objects below, a clean
//! stop, and `kennel.db` and `pki` of DIR. The encrypted one is of `kennel server --encryption-key-file keys`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use kennel_server::doctor;
use kennel_server::seal::Keyring;
use kennel_store::Options;
use serde_json::json;
use tempfile::TempDir;

use crate::fixture::{DAEMONSETS, MAPS, MERGE, NODES, PODS, TestServer, names, version};

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[tokio::test]
async fn the_data_of_0_1_0_is_served() {
    let frozen = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/0.1.0");
    let dir = TempDir::new().unwrap();
    copy(&frozen, dir.path());
    let path = dir.path().to_owned();
    let before = doctor::examine(&path, &Keyring::empty()).unwrap();
    assert_eq!(before.schema_version, 1);
    assert!(before.is_healthy(), "{before:?}");
    let authority = fs::read(path.join("pki/ca.crt")).unwrap();

    let server = TestServer::on(dir).await;
    let map = server.get(&format!("{MAPS}/settings")).await.ok();
    assert_eq!(map["data"], json!({"colour": "blue"}));
    assert_eq!(map["metadata"]["uid"].as_str().unwrap().len(), 36);
    let secret = server
        .get("/api/v1/namespaces/shop/secrets/login")
        .await
        .ok();
    assert_eq!(secret["data"]["password"], "Y29ycmVjdC1ob3JzZQ==");
    assert_eq!(names(&server.get(NODES).await.ok()), ["sim-1", "sim-2"]);
    let set = server.get(&format!("{DAEMONSETS}/agent")).await.ok();
    assert_eq!(set["status"]["numberAvailable"], 2);
    assert_eq!(names(&server.get(PODS).await.ok()).len(), 2);

    // It takes writes, and a later start finds everything.
    let changed = json!({"data": {"colour": "red"}});
    let path_of_map = format!("{MAPS}/settings");
    let changed = server.patch(MERGE, &path_of_map, &changed).await.ok();
    assert!(version(&changed) > version(&map));
    let server = server.reopen().await;
    let map = server.get(&path_of_map).await.ok();
    assert_eq!(map["data"]["colour"], "red");
    let after = doctor::examine(&path, &Keyring::empty()).unwrap();
    assert_eq!(after.schema_version, doctor::SCHEMA_VERSION);
    assert!(after.is_healthy(), "{after:?}");
    assert!(after.values.without_checksum < before.values.values);
    assert_eq!(fs::read(path.join("pki/ca.crt")).unwrap(), authority);
}

#[tokio::test]
async fn the_encrypted_data_of_0_1_0_is_served_and_stays_encrypted() {
    let frozen = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/0.1.0-encrypted");
    let dir = TempDir::new().unwrap();
    copy(&frozen, dir.path());
    let path = dir.path().to_owned();
    let file = path.join("keys");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let keys = || Keyring::read(&file).unwrap();
    let before = doctor::examine(&path, &keys()).unwrap();
    assert!(
        before.is_healthy() && before.values.without_key == 0,
        "{before:?}"
    );

    let with_keys = |options: &mut Options| options.seal = Some(Arc::new(keys()));
    let server = TestServer::on_with(dir, with_keys).await;
    let secret = "/api/v1/namespaces/default/secrets/login";
    let login = server.get(secret).await.ok();
    assert_eq!(login["data"]["password"], "Y29ycmVjdC1ob3JzZQ==");
    let changed = json!({"stringData": {"password": "battery-staple"}});
    server.patch(MERGE, secret, &changed).await.ok();
    let map = server.get(&format!("{MAPS}/settings")).await.ok();
    assert_eq!(map["data"]["colour"], "blue");
    let dir = server.close().await;
    let after = doctor::examine(&path, &keys()).unwrap();
    assert!(after.is_healthy(), "{after:?}");
    let bytes = fs::read(path.join("kennel.db")).unwrap();
    for word in ["battery-staple", "YmF0dGVyeS1zdGFwbGU"] {
        let found = bytes
            .windows(word.len())
            .any(|part| part == word.as_bytes());
        assert!(!found, "{word} is readable");
    }
    drop(dir);
}
