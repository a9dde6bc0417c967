//! The directory that `dpkg-deb` builds a package from.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use flate2::{Compression, GzBuilder};

use crate::command::run;

pub(super) struct StagingDirectory {
    root: PathBuf,
}

impl StagingDirectory {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    /// Writes a file and creates its parent directories.
    pub(super) fn file(&self, path: &str, content: impl AsRef<[u8]>, mode: u32) -> Result<()> {
        let path = self.root.join(path);
        self.create_parents(&path)?;
        fs::write(&path, content)?;
        Ok(fs::set_permissions(
            &path,
            fs::Permissions::from_mode(mode),
        )?)
    }

    pub(super) fn symlink(&self, path: &str, target: &str) -> Result<()> {
        let path = self.root.join(path);
        self.create_parents(&path)?;
        Ok(std::os::unix::fs::symlink(target, path)?)
    }

    pub(super) fn directory(&self, path: &str) -> Result<()> {
        self.create_parents(&self.root.join(path).join("child"))
    }

    /// Creates directories with mode 0755, independently of the umask.
    fn create_parents(&self, path: &Path) -> Result<()> {
        let parent = path.parent().context("a staged path has no parent")?;
        fs::create_dir_all(parent)?;
        for directory in parent.ancestors() {
            fs::set_permissions(directory, fs::Permissions::from_mode(0o755))?;
            if directory == self.root {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn size_kib(&self) -> Result<u64> {
        let output = run(Command::new("du")
            .args(["-k", "-s", "--apparent-size"])
            .arg(&self.root))?;
        let number = output.split_whitespace().next().unwrap_or_default();
        Ok(number.parse()?)
    }

    /// For `dpkg --verify`.
    pub(super) fn md5sums(&self) -> Result<String> {
        let find = "find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum";
        run(Command::new("sh")
            .args(["-c", find])
            .current_dir(&self.root))
    }
}

/// The names and contents of a directory's files, sorted.
pub(super) fn read_files(directory: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        files.push((name, fs::read(entry.path())?));
    }
    files.sort();
    Ok(files)
}

/// Compresses without file name and time, so that it is reproducible.
pub(super) fn gzip(content: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    encoder.write_all(content)?;
    Ok(encoder.finish()?)
}
