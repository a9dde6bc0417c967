//! Reads the manifests of a directory.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::manifest;
use crate::pods::Pod;

/// Upstream's bound on a manifest.
const MAX_FILE_BYTES: u64 = 10 << 20;

/// Static pods by namespace and name.
pub(super) type StaticPods = BTreeMap<(String, String), Arc<Pod>>;

/// A manifest that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Invalid {
    pub file: PathBuf,
    pub error: String,
}

pub(super) struct ManifestDirectory {
    dir: PathBuf,
    node_name: String,
    files: BTreeMap<PathBuf, File>,
    /// The errors of the last read, to report each only once.
    errors: BTreeMap<PathBuf, String>,
}

struct File {
    digest: [u8; 32],
    error: Option<String>,
    /// The pod of the last valid version.
    pod: Option<Arc<Pod>>,
}

impl ManifestDirectory {
    pub(super) fn new(dir: PathBuf, node_name: &str) -> Self {
        Self {
            dir,
            node_name: node_name.to_owned(),
            files: BTreeMap::new(),
            errors: BTreeMap::new(),
        }
    }

    /// Reads all files that have changed. Returns errors that the read before did not have.
    pub(super) fn read(&mut self, now: &str) -> Vec<Invalid> {
        let mut errors = BTreeMap::new();
        match list(&self.dir) {
            Ok(found) => {
                self.files.retain(|path, _| found.contains(path));
                for path in found {
                    if let Some(error) = self.read_file(&path, now) {
                        errors.insert(path, error);
                    }
                }
            }
            // A directory that does not exist has no pods. If it cannot be read, keep the pods of the last read.
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.files.clear(),
            Err(error) => {
                errors.insert(self.dir.clone(), error.to_string());
            }
        }
        self.find_duplicates(&mut errors);
        let new = |(file, error): (&PathBuf, &String)| {
            let known = self.errors.get(file) == Some(error);
            let (file, error) = (file.clone(), error.clone());
            (!known).then_some(Invalid { file, error })
        };
        let new = errors.iter().filter_map(new).collect();
        self.errors = errors;
        new
    }

    pub(super) fn pods(&self) -> StaticPods {
        let pods = self.files.values().filter_map(|file| file.pod.clone());
        pods.map(|pod| (key(&pod), pod)).collect()
    }

    /// The number of manifests that cannot be used.
    pub(super) fn invalid(&self) -> usize {
        self.errors.len()
    }

    /// Reads a file if it has changed; returns its error. While a file is invalid, the pod of its last valid version
    /// stays.
    fn read_file(&mut self, path: &Path, now: &str) -> Option<String> {
        let text = match contents(path) {
            Ok(text) => text,
            Err(error) => return Some(error.to_string()),
        };
        let digest: [u8; 32] = Sha256::digest(&text).into();
        let before = self.files.get(path);
        if let Some(known) = before.filter(|file| file.digest == digest) {
            return known.error.clone();
        }
        let (pod, error) = match manifest::read(&text, path, &self.node_name, now) {
            Ok(pod) => (Some(Arc::new(pod)), None),
            Err(error) => {
                let pod = before.and_then(|file| file.pod.clone());
                (pod, Some(error.to_string()))
            }
        };
        let file = File {
            digest,
            error: error.clone(),
            pod,
        };
        self.files.insert(path.to_owned(), file);
        error
    }

    /// Of two files for one pod the last one counts, and the first one is an error.
    fn find_duplicates(&self, errors: &mut BTreeMap<PathBuf, String>) {
        let mut owners: BTreeMap<_, &PathBuf> = BTreeMap::new();
        for (path, file) in &self.files {
            let Some(pod) = &file.pod else { continue };
            if let Some(earlier) = owners.insert(key(pod), path) {
                let error = format!("pod {:?} is also in {:?}", pod.id.name, path.display());
                errors.entry(earlier.clone()).or_insert(error);
            }
        }
    }
}

fn key(pod: &Pod) -> (String, String) {
    (pod.id.namespace.clone(), pod.id.name.clone())
}

/// The regular files of a directory, sorted, without hidden ones.
fn list(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        let path = entry.path();
        // Follow links: configuration managers use them.
        if !hidden && fs::metadata(&path).is_ok_and(|about| about.is_file()) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn contents(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    fs::File::open(path)?
        .take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut text)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::other(format!(
            "it has more than {MAX_FILE_BYTES} bytes"
        )));
    }
    Ok(text)
}
