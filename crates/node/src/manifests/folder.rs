//! The files of a directory, and the pods that they ask for.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::manifest;
use crate::pods::Pod;

/// How large a file may be: upstream's own bound.
const LARGEST: u64 = 10 << 20;

/// The pods that the files ask for, by namespace and name.
pub(super) type Pods = BTreeMap<(String, String), Arc<Pod>>;

/// A file that makes no sense, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Complaint {
    pub file: PathBuf,
    pub why: String,
}

/// See the [module](self).
pub(super) struct Folder {
    dir: PathBuf,
    node_name: String,
    files: BTreeMap<PathBuf, File>,
    /// What made no sense last time, and why: it is told once.
    troubles: BTreeMap<PathBuf, String>,
}

/// What is known of a file.
struct File {
    digest: [u8; 32],
    /// Why it makes no sense, if it does not.
    trouble: Option<String>,
    /// What it asked for when it last made sense.
    pod: Option<Arc<Pod>>,
}

impl Folder {
    /// A directory that was not looked at yet.
    pub(super) fn new(dir: PathBuf, node_name: &str) -> Self {
        Self {
            dir,
            node_name: node_name.to_owned(),
            files: BTreeMap::new(),
            troubles: BTreeMap::new(),
        }
    }

    /// Looks at all files. Says what makes no sense and has not been said before.
    pub(super) fn look(&mut self, now: &str) -> Vec<Complaint> {
        let mut troubles = BTreeMap::new();
        match list(&self.dir) {
            Ok(found) => {
                self.files.retain(|path, _| found.contains(path));
                for path in found {
                    if let Err(why) = self.read(&path, now) {
                        troubles.insert(path, why);
                    }
                }
            }
            // A directory that is not there asks for nothing. One that cannot be read says nothing.
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.files.clear(),
            Err(error) => {
                troubles.insert(self.dir.clone(), error.to_string());
            }
        }
        self.find_doubles(&mut troubles);
        let new = |(file, why): (&PathBuf, &String)| {
            let known = self.troubles.get(file) == Some(why);
            let (file, why) = (file.clone(), why.clone());
            (!known).then_some(Complaint { file, why })
        };
        let complaints = troubles.iter().filter_map(new).collect();
        self.troubles = troubles;
        complaints
    }

    /// What the files ask for.
    pub(super) fn pods(&self) -> Pods {
        let pods = self.files.values().filter_map(|file| file.pod.clone());
        pods.map(|pod| (key(&pod), pod)).collect()
    }

    /// How many files make no sense.
    pub(super) fn unusable(&self) -> usize {
        self.troubles.len()
    }

    /// Reads a file, if it has changed. Whatever it says now, what it said before stays until it makes sense.
    fn read(&mut self, path: &Path, now: &str) -> Result<(), String> {
        let text = contents(path).map_err(|error| error.to_string())?;
        let digest: [u8; 32] = Sha256::digest(&text).into();
        let before = self.files.get(path);
        if let Some(known) = before.filter(|file| file.digest == digest) {
            return known.trouble.clone().map_or(Ok(()), Err);
        }
        let (pod, trouble) = match manifest::read(&text, path, &self.node_name, now) {
            Ok(pod) => (Some(Arc::new(pod)), None),
            Err(why) => (before.and_then(|file| file.pod.clone()), Some(why)),
        };
        let read = trouble.clone().map_or(Ok(()), Err);
        let file = File {
            digest,
            trouble,
            pod,
        };
        self.files.insert(path.to_owned(), file);
        read
    }

    /// Of two files for one pod, the last one counts, and the first one is told about.
    fn find_doubles(&self, troubles: &mut BTreeMap<PathBuf, String>) {
        let mut owners: BTreeMap<_, &PathBuf> = BTreeMap::new();
        for (path, file) in &self.files {
            let Some(pod) = &file.pod else { continue };
            if let Some(earlier) = owners.insert(key(pod), path) {
                let why = format!("pod {:?} is also in {:?}", pod.id.name, path.display());
                troubles.entry(earlier.clone()).or_insert(why);
            }
        }
    }
}

fn key(pod: &Pod) -> (String, String) {
    (pod.id.namespace.clone(), pod.id.name.clone())
}

/// The files of a directory, sorted, without those whose names begin with a dot, and without directories.
fn list(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        let path = entry.path();
        // Links are followed: configuration managers like them.
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
        .take(LARGEST + 1)
        .read_to_end(&mut text)?;
    if text.len() as u64 > LARGEST {
        return Err(io::Error::other(format!(
            "it has more than {LARGEST} bytes"
        )));
    }
    Ok(text)
}
