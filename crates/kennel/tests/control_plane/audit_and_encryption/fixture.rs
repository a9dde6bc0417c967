//! A server, its administrator, and a look at the files it writes.

use std::fs;
use std::path::{Path, PathBuf};

use kennel_testkit::{Access, Kennel, Reply};
use serde_json::{Value, json};

pub(crate) const KENNEL: &str = env!("CARGO_BIN_EXE_kennel");
pub(crate) const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// A server and the administrator's access to it.
pub(crate) struct Fixture {
    pub(crate) kennel: Kennel,
    pub(crate) admin: Access,
}

impl Fixture {
    /// A server started with these arguments.
    pub(crate) fn started(arguments: &[&str]) -> Self {
        Self::of(Kennel::start(KENNEL, &[&["server"], arguments].concat()))
    }

    pub(crate) fn of(kennel: Kennel) -> Self {
        let admin = Access::admin(kennel.address(), &kennel.data_dir());
        Self { kennel, admin }
    }

    pub(crate) fn post(&self, path: &str, object: &Value) -> Reply {
        self.admin.ask("POST", path, object.to_string().as_bytes())
    }

    pub(crate) fn patch(&self, path: &str, change: &Value) -> Reply {
        let mut wire = self.admin.open().unwrap();
        let body = change.to_string();
        let kind = "application/merge-patch+json";
        wire.ask("PATCH", path, kind, body.as_bytes()).unwrap()
    }

    /// Creates an empty ConfigMap.
    pub(crate) fn touch(&self, name: &str) -> Reply {
        self.post(CONFIGMAPS, &json!({"metadata": {"name": name}}))
    }
}

/// Every file below a directory.
pub(crate) fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

/// No file at all.
pub(crate) const NOWHERE: [PathBuf; 0] = [];

/// The files below a directory that hold these bytes anywhere.
pub(crate) fn holding(dir: &Path, needle: &str) -> Vec<PathBuf> {
    let holds = |path: &PathBuf| {
        let bytes = fs::read(path).unwrap();
        bytes.windows(needle.len()).any(|w| w == needle.as_bytes())
    };
    files(dir).into_iter().filter(holds).collect()
}
