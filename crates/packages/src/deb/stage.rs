//! The directory that a package is made of.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use flate2::{Compression, GzBuilder};

use crate::run::run;

/// See the [module](self).
pub(super) struct Stage {
    root: PathBuf,
}

impl Stage {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    /// A file, and the directories on its way.
    pub(super) fn file(&self, path: &str, content: impl AsRef<[u8]>, mode: u32) -> Result<()> {
        let path = self.root.join(path);
        self.parents(&path)?;
        fs::write(&path, content)?;
        Ok(fs::set_permissions(
            &path,
            fs::Permissions::from_mode(mode),
        )?)
    }

    pub(super) fn link(&self, path: &str, target: &str) -> Result<()> {
        let path = self.root.join(path);
        self.parents(&path)?;
        Ok(symlink(target, path)?)
    }

    pub(super) fn directory(&self, path: &str) -> Result<()> {
        self.parents(&self.root.join(path).join("here"))
    }

    /// Directories that everybody may read, whatever the umask of whoever packages.
    fn parents(&self, path: &Path) -> Result<()> {
        let parent = path.parent().context("it is below the root")?;
        fs::create_dir_all(parent)?;
        for directory in parent.ancestors() {
            fs::set_permissions(directory, fs::Permissions::from_mode(0o755))?;
            if directory == self.root {
                break;
            }
        }
        Ok(())
    }

    /// What it all takes on a disk.
    pub(super) fn kibibytes(&self) -> Result<u64> {
        let told = run(Command::new("du")
            .args(["-k", "-s", "--apparent-size"])
            .arg(&self.root))?;
        let number = told.split_whitespace().next().unwrap_or_default();
        Ok(number.parse()?)
    }

    /// The sums that `dpkg --verify` compares with.
    pub(super) fn sums(&self) -> Result<String> {
        let find = "find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum";
        run(Command::new("sh")
            .args(["-c", find])
            .current_dir(&self.root))
    }
}

/// The files of a directory: their names and what is in them.
pub(super) fn files_of(directory: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        files.push((name, fs::read(entry.path())?));
    }
    files.sort();
    Ok(files)
}

/// As small as it gets, with neither a name nor a time in it.
pub(super) fn gzipped(content: &[u8]) -> Result<Vec<u8>> {
    let mut smaller = GzBuilder::new().write(Vec::new(), Compression::best());
    smaller.write_all(content)?;
    Ok(smaller.finish()?)
}
