//! Kennel's container image: the binary, its shared libraries and CA certificates, without a shell or package manager.
//!
//! It runs as an unprivileged user, which is enough for `kennel controller`, `dns` and `server`.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::json;

use crate::command::{run, source_date_epoch};
use crate::file_tree::FileTree;
use crate::{VERSION, libraries, oci};

/// The user `nonroot` of distroless images.
const USER: &str = "65532:65532";
const PASSWD: &str = "\
root:x:0:0:root:/:/nonexistent
nonroot:x:65532:65532:nonroot:/:/nonexistent
";
const GROUP: &str = "root:x:0:\nnonroot:x:65532:\n";

/// The CA certificates of this machine: `kennel controller` asks checks over HTTPS.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// The default name. There is no registry to pull the image from.
pub fn default_name() -> String {
    format!("localhost/kennel:{VERSION}")
}

#[derive(Clone, Debug)]
pub struct Options<'a> {
    /// The `kennel` binary.
    pub binary: &'a Path,
    /// Name and tag.
    pub name: &'a str,
    /// Whether to gzip the layer.
    pub compressed: bool,
}

/// Writes the image as a tar that container engines load; returns the digest of its manifest.
pub fn build(options: &Options<'_>, file: &Path) -> Result<String> {
    let time = source_date_epoch();
    let image = oci::Image {
        name: options.name.to_owned(),
        files: files(options.binary)?,
        config: json!({
            "User": USER,
            "Env": ["PATH=/usr/bin"],
            "Entrypoint": ["/usr/bin/kennel"],
            "WorkingDir": "/",
            "Labels": {
                "org.opencontainers.image.title": "kennel",
                "org.opencontainers.image.description": "One daemon on every node",
                "org.opencontainers.image.version": VERSION,
                "org.opencontainers.image.licenses": "Apache-2.0",
                "org.opencontainers.image.created": oci::time(time),
            },
        }),
        compressed: options.compressed,
        time,
    };
    let error = || format!("cannot write {}", file.display());
    let mut to = File::create(file).with_context(error)?;
    image.write(&mut to).with_context(error)
}

fn files(binary: &Path) -> Result<FileTree> {
    let mut tree = FileTree::default();
    tree.file("usr/bin/kennel", stripped(binary)?, 0o755);
    for library in libraries(binary) {
        let content = fs::read(&library);
        let content = content.with_context(|| format!("cannot read {}", library.display()))?;
        tree.file(&library.to_string_lossy(), content, 0o755);
    }
    let certificates = fs::read(CERTIFICATES);
    let certificates = certificates.with_context(|| format!("cannot read {CERTIFICATES}"))?;
    tree.file(CERTIFICATES, certificates, 0o644);
    tree.file("etc/passwd", PASSWD, 0o644);
    tree.file("etc/group", GROUP, 0o644);
    tree.file("etc/nsswitch.conf", "hosts: files dns\n", 0o644);
    tree.directory("tmp", 0o1777);
    Ok(tree)
}

/// The binary without debug symbols.
pub(crate) fn stripped(binary: &Path) -> Result<Vec<u8>> {
    let dir = tempfile::tempdir()?;
    let copy = dir.path().join("stripped");
    run(Command::new("strip").arg("-o").arg(&copy).arg(binary))?;
    Ok(fs::read(copy)?)
}
