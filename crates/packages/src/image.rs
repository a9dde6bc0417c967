//! Kennel's own image: the program, what it needs to run, and nothing else. No shell, no package manager.
//!
//! It runs as nobody in particular, which is enough for `kennel controller`, `dns` and `server`.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::json;

use crate::oci;
use crate::run::{epoch, run};
use crate::tar::Tree;
use crate::{VERSION, libraries};

/// Whom it runs as, as images without a distribution do.
const USER: &str = "65532:65532";
const USERS: &str = "\
root:x:0:0:root:/:/nonexistent
nonroot:x:65532:65532:nonroot:/:/nonexistent
";
const GROUPS: &str = "root:x:0:\nnonroot:x:65532:\n";

/// What it is called unless somebody says otherwise: there is no registry that it comes from.
pub fn name() -> String {
    format!("localhost/kennel:{VERSION}")
}

/// What to make.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// `kennel`, as it was built.
    pub binary: &'a Path,
    /// What the image is called, tag included.
    pub name: &'a str,
    /// Whether to make it small, which takes longer.
    pub compressed: bool,
}

/// Makes the image, as a file that container engines load, and returns its digest.
pub fn build(plan: &Plan<'_>, file: &Path) -> Result<String> {
    let time = epoch();
    let image = oci::Image {
        name: plan.name.to_owned(),
        files: files(plan.binary)?,
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
        compressed: plan.compressed,
        time,
    };
    let cannot = || format!("cannot write {}", file.display());
    let mut to = File::create(file).with_context(cannot)?;
    image.write(&mut to).with_context(cannot)
}

fn files(binary: &Path) -> Result<Tree> {
    let mut tree = Tree::default();
    tree.file("usr/bin/kennel", stripped(binary)?, 0o755);
    for library in libraries(binary) {
        let content = fs::read(&library);
        let content = content.with_context(|| format!("cannot read {}", library.display()))?;
        tree.file(&library.to_string_lossy(), content, 0o755);
    }
    tree.file("etc/passwd", USERS, 0o644);
    tree.file("etc/group", GROUPS, 0o644);
    // Names are looked up as everywhere: in files, then by asking.
    tree.file("etc/nsswitch.conf", "hosts: files dns\n", 0o644);
    tree.directory("tmp", 0o1777);
    Ok(tree)
}

/// A program without what only debuggers read.
pub(crate) fn stripped(binary: &Path) -> Result<Vec<u8>> {
    let dir = tempfile::tempdir()?;
    let copy = dir.path().join("stripped");
    run(Command::new("strip").arg("-o").arg(&copy).arg(binary))?;
    Ok(fs::read(copy)?)
}
