//! The store of a server whose objects are in etcd: opens it, and keeps apart what belongs to the data directory.
//!
//! Certificates, keys and the audit log stay in the data directory. A file in it says that the objects are elsewhere, so that no
//! start without etcd takes the directory for an empty one.

use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kennel_store::{
    DATABASE_FILE, Endpoints, EtcdOptions, EtcdStore, EtcdTls, EtcdUser, Holder, Store,
};

use crate::data_dir::{self, DataDirLock, ETCD_FILE, ETCD_NOTE, PKI};
use crate::object::{self, Head};
use crate::registry;
use crate::seal::{EtcdForm, Keyring};
use crate::start_error::StartError;

/// The prefix of all objects.
pub(crate) const OBJECTS: &str = "/registry/";

/// What kube-apiserver creates for itself at its first start.
const UPSTREAMS_OWN: [&str; 8] = [
    "/registry/apiregistration.k8s.io/apiservices/",
    "/registry/flowschemas/",
    "/registry/ipaddresses/",
    "/registry/masterleases/",
    "/registry/peerserverleases/",
    "/registry/prioritylevelconfigurations/",
    "/registry/ranges/",
    "/registry/servicecidrs/",
];

/// How to reach the etcd that has the objects.
#[derive(Clone, Debug)]
pub struct EtcdConfig {
    pub endpoints: Endpoints,
    /// Required unless all members are on this machine.
    pub tls: Option<EtcdTls>,
    /// A user of etcd, and the file of the password, which only its owner may be able to read.
    pub user: Option<(String, PathBuf)>,
    /// The keys of objects that may lose fields which this version does not know.
    pub may_lose_fields: Vec<String>,
}

/// Opens the store, and locks the data directory.
pub(crate) async fn open(
    etcd: &EtcdConfig,
    dir: &Path,
    keys: Option<Keyring>,
    event_ttl: Duration,
) -> Result<(Arc<dyn Store<Head>>, DataDirLock), StartError> {
    let lock = DataDirLock::acquire(dir)?;
    if data_dir::is_half_migrated(dir) {
        return Err(StartError::HalfMigrated(dir.to_owned()));
    }
    if dir.join(DATABASE_FILE).exists() {
        return Err(StartError::ObjectsInDirectory(dir.to_owned()));
    }
    let failed = |error| StartError::Etcd(etcd.endpoints.clone(), error);
    let id = id(dir);
    let options = EtcdOptions {
        prefix: OBJECTS.to_owned(),
        ignored: ignored(),
        collections: object::collections(),
        expiring: vec![(object::prefix(registry::core("events"), None), event_ttl)],
        // An empty keyring refuses encrypted objects. Without one, they would look corrupt.
        seal: Some(Arc::new(EtcdForm::new(
            keys.unwrap_or_else(Keyring::empty),
            etcd.may_lose_fields.iter().cloned().collect(),
        ))),
        note: Some(dir.join(ETCD_NOTE)),
        ..connection(etcd, holder(&id, dir))?
    };
    let store = EtcdStore::open(options, |key, bytes| Ok(object::decode(key, bytes)?));
    let store: Arc<dyn Store<Head>> = store.await.map_err(failed)?;
    let checked = check(&*store, dir, etcd).and_then(|()| write_file(dir, &id, etcd));
    if let Err(error) = checked {
        store.close().await;
        return Err(error);
    }
    Ok((store, lock))
}

/// How to connect.
pub(crate) fn connection(etcd: &EtcdConfig, holder: Holder) -> Result<EtcdOptions, StartError> {
    Ok(EtcdOptions {
        tls: etcd.tls.clone(),
        user: etcd.user.as_ref().map(user).transpose()?,
        ..EtcdOptions::new(etcd.endpoints.clone(), holder)
    })
}

/// The prefixes of keys that are not ours.
pub(crate) fn ignored() -> Vec<String> {
    UPSTREAMS_OWN.map(str::to_owned).to_vec()
}

/// The objects of a cluster without its certificate authority would get a new one, which no agent trusts.
fn check(store: &dyn Store<Head>, dir: &Path, etcd: &EtcdConfig) -> Result<(), StartError> {
    let has_objects = !store.range(OBJECTS, None, Some(1)).records.is_empty();
    if has_objects && !dir.join(PKI).exists() {
        return Err(StartError::NoAuthority {
            dir: dir.to_owned(),
            store: etcd.endpoints.to_string(),
        });
    }
    Ok(())
}

/// Fails if the objects of a data directory are in etcd.
pub(crate) fn refuse_without_etcd(dir: &Path) -> Result<(), StartError> {
    match data_dir::etcd_of(dir) {
        Some(store) => Err(StartError::ObjectsInEtcd {
            dir: dir.to_owned(),
            store,
        }),
        None => Ok(()),
    }
}

/// Refuses a password that others than its owner can read.
fn user((name, file): &(String, PathBuf)) -> Result<EtcdUser, StartError> {
    let failed = |source| StartError::PasswordFile {
        path: file.clone(),
        source,
    };
    let metadata = std::fs::metadata(file).map_err(failed)?;
    let mode = metadata.mode() & 0o777;
    if metadata.is_file() && mode & 0o077 != 0 {
        let path = file.clone();
        return Err(StartError::PublicPassword { path, mode });
    }
    let text = std::fs::read_to_string(file).map_err(failed)?;
    Ok(EtcdUser {
        name: name.clone(),
        password: text.lines().next().unwrap_or_default().to_owned(),
    })
}

/// The identity of a server stays with its data directory.
pub(crate) fn id(dir: &Path) -> String {
    let text = std::fs::read_to_string(dir.join(ETCD_FILE)).unwrap_or_default();
    match text.lines().next() {
        Some(id) if !id.is_empty() => id.to_owned(),
        _ => uuid::Uuid::new_v4().to_string(),
    }
}

pub(crate) fn holder(id: &str, dir: &Path) -> Holder {
    let system = rustix::system::uname();
    let host = system.nodename().to_string_lossy();
    let process = std::process::id();
    let dir = dir.display();
    Holder {
        id: id.to_owned(),
        description: format!("process {process} on {host} with the data directory {dir}"),
    }
}

/// Notes where the objects are.
pub(crate) fn write_file(dir: &Path, id: &str, etcd: &EtcdConfig) -> Result<(), StartError> {
    let path = dir.join(ETCD_FILE);
    let text = format!("{id}\n{}\n", etcd.endpoints);
    if std::fs::read_to_string(&path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    let new = dir.join(format!("{ETCD_FILE}.new"));
    let written = std::fs::OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(&new)
        .and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        })
        .and_then(|()| std::fs::rename(&new, &path));
    written.map_err(|source| StartError::WriteFile { path, source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::RESOURCES;

    #[test]
    fn nothing_that_is_stored_is_ignored() {
        for row in RESOURCES.iter().filter(|row| row.projection.is_none()) {
            let prefix = object::prefix(row, None);
            assert!(!UPSTREAMS_OWN.contains(&prefix.as_str()), "{prefix}");
        }
    }
}
