//! Images made on the spot: Debian's static busybox, and what a test adds.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
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

    /// Whom it runs as: `1000`, `1000:1000` or `nobody`.
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

    /// Packs it as `docker save` does, into a file of this directory.
    pub(super) fn pack(&self, directory: &TempDir) -> PathBuf {
        let layer = directory.path().join("layer");
        self.write_files(&layer);
        let in_order = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner"];
        run(tar(directory, "layer.tar")
            .args(in_order)
            .arg("-C")
            .arg(&layer)
            .arg("."));
        let bytes = fs::read(directory.path().join("layer.tar")).expect("tar wrote it");
        let config = json!({
            "architecture": architecture(), "os": "linux", "config": self.config,
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", hex(&bytes))]},
        });
        let manifest =
            json!([{"Config": "config.json", "RepoTags": [self.name], "Layers": ["layer.tar"]}]);
        for (name, value) in [("config.json", &config), ("manifest.json", &manifest)] {
            fs::write(directory.path().join(name), value.to_string()).expect("it can be written");
        }
        let parts = ["manifest.json", "config.json", "layer.tar"];
        run(tar(directory, "image.tar").args(parts));
        directory.path().join("image.tar")
    }

    fn write_files(&self, layer: &Path) {
        for directory in ["bin", "etc", "tmp", "proc", "sys", "dev", "run", "var"] {
            fs::create_dir_all(layer.join(directory)).expect("it can be made");
        }
        let open = fs::Permissions::from_mode(0o1777);
        fs::set_permissions(layer.join("tmp"), open).expect("it is ours");
        fs::copy(BUSYBOX, layer.join("bin/busybox")).expect("busybox-static is installed");
        for applet in run(Command::new(BUSYBOX).arg("--list")).lines() {
            if applet != "busybox" {
                symlink("busybox", layer.join("bin").join(applet)).expect("names are told once");
            }
        }
        for (path, (content, mode)) in &self.files {
            let path = layer.join(path.trim_start_matches('/'));
            let parent = path.parent().expect("it is in the layer");
            fs::create_dir_all(parent).expect("it can be made");
            // What a link of busybox's stood for is replaced, not written through.
            let _absent = fs::remove_file(&path);
            fs::write(&path, content).expect("it can be written");
            fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).expect("it is ours");
        }
    }
}

fn tar(directory: &TempDir, file: &str) -> Command {
    let mut command = Command::new("tar");
    command.current_dir(directory.path()).args(["-cf", file]);
    command
}

/// The SHA-256 of some bytes, as images name them.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(bytes) {
        write!(text, "{byte:02x}").expect("text can be written to");
    }
    text
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The libraries of a program and what loads them; none if it is static.
fn libraries(program: &Path) -> Vec<PathBuf> {
    let output = Command::new("ldd").arg(program).output();
    let output = output.expect("ldd can be run");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let path = |line: &str| {
        let after = line.rsplit("=>").next()?.trim();
        let path = after.split_whitespace().next()?;
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    text.lines().filter_map(path).collect()
}
