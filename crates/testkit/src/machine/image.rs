//! Images made on the spot: Debian's static busybox, and what a test adds.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use kennel_packages::file_tree::FileTree;
use kennel_packages::{libraries, oci};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::run;

const BUSYBOX: &str = "/bin/busybox";

/// What an image is to have; [`super::Containerd::import`] makes it.
///
/// Without an entrypoint or a command it runs `sleep infinity`.
#[derive(Clone, Debug)]
pub struct Image {
    name: String,
    files: BTreeMap<String, (Vec<u8>, u32)>,
    config: BTreeMap<&'static str, Value>,
}

impl Image {
    /// Busybox under such a name, tag included, as pods will call it: `kennel.test/app:1`.
    pub fn new(name: &str) -> Self {
        let users = "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n";
        let groups = "root:x:0:\nnogroup:x:65534:\n";
        let image = Self {
            name: name.to_owned(),
            files: BTreeMap::new(),
            config: BTreeMap::from([("Cmd", json!(["/bin/sleep", "infinity"]))]),
        };
        image
            .file("/etc/passwd", users)
            .file("/etc/group", groups)
            .env("PATH", "/bin")
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A file that everybody may read.
    #[must_use]
    pub fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.put(path, content.as_ref().to_vec(), 0o644)
    }

    /// A script or program that everybody may run.
    #[must_use]
    pub fn executable(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.put(path, content.as_ref().to_vec(), 0o755)
    }

    /// A program of this machine, with the libraries it needs.
    #[must_use]
    pub fn program(self, path: &str, source: impl AsRef<Path>) -> Self {
        let source = source.as_ref();
        let read = |path: &Path| {
            fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        let image = self.executable(path, read(source));
        let libraries = libraries(source).into_iter();
        libraries.fold(image, |image, library| {
            let path = library.to_str().expect("libraries have plain names");
            image.executable(path, read(&library))
        })
    }

    /// What it runs, before what a pod adds.
    #[must_use]
    pub fn entrypoint(self, words: &[&str]) -> Self {
        let plain = self.set("Cmd", Value::Null);
        plain.set("Entrypoint", json!(words))
    }

    /// What it runs, or what it gives its entrypoint, unless a pod says otherwise.
    #[must_use]
    pub fn cmd(self, words: &[&str]) -> Self {
        self.set("Cmd", json!(words))
    }

    /// The user it runs as: `1000`, `1000:1000` or `nobody`.
    #[must_use]
    pub fn user(self, user: &str) -> Self {
        self.set("User", json!(user))
    }

    /// Where it starts.
    #[must_use]
    pub fn working_dir(self, directory: &str) -> Self {
        self.set("WorkingDir", json!(directory))
    }

    /// A variable of its environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        let all = self.config.entry("Env").or_insert_with(|| json!([]));
        let all = all.as_array_mut().expect("it is made as a list");
        all.push(json!(format!("{name}={value}")));
        self
    }

    fn set(mut self, key: &'static str, value: Value) -> Self {
        self.config.insert(key, value);
        self
    }

    fn put(mut self, path: &str, content: Vec<u8>, mode: u32) -> Self {
        self.files.insert(path.to_owned(), (content, mode));
        self
    }

    /// Packs it, into a file of this directory.
    pub(super) fn pack(&self, directory: &TempDir) -> PathBuf {
        let path = directory.path().join("image.tar");
        let mut file = File::create(&path).expect("it can be made");
        self.packed().write(&mut file).expect("it can be written");
        path
    }

    /// All of it.
    pub(super) fn packed(&self) -> oci::Image {
        oci::Image {
            name: self.name.clone(),
            files: self.tree(),
            config: json!(self.config),
            compressed: false,
            time: 0,
        }
    }

    fn tree(&self) -> FileTree {
        let mut tree = FileTree::default();
        for directory in ["bin", "etc", "proc", "sys", "dev", "run", "var"] {
            tree.directory(directory, 0o755);
        }
        tree.directory("tmp", 0o1777);
        let busybox = fs::read(BUSYBOX).expect("busybox-static is installed");
        for applet in run(Command::new(BUSYBOX).arg("--list")).lines() {
            tree.symlink(&format!("bin/{applet}"), "busybox");
        }
        tree.file("bin/busybox", busybox, 0o755);
        // What a link of busybox's stood for is replaced.
        for (path, (content, mode)) in &self.files {
            tree.file(path, content.clone(), *mode);
        }
        tree
    }
}
