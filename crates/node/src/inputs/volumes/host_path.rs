//! Checks the `type` of a hostPath volume, and creates missing files and directories.

use std::fs::{self, FileType};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use super::VolumeError;
use crate::files::create_public_dir;

/// With `create`, creates a missing directory for a volume without a type, as container runtimes do.
pub(super) fn check(path: &Path, kind: &str, create: bool) -> Result<(), VolumeError> {
    let found = || fs::metadata(path).ok().map(|found| found.file_type());
    let must_be = |is: fn(&FileType) -> bool, expected| match found() {
        Some(found) if is(&found) => Ok(()),
        _ => Err(VolumeError::HostPath {
            path: path.to_owned(),
            expected,
        }),
    };
    match kind {
        "" if create && found().is_none() => Ok(create_public_dir(path)?),
        "" => Ok(()),
        "DirectoryOrCreate" if found().is_none() => Ok(create_public_dir(path)?),
        "Directory" | "DirectoryOrCreate" => must_be(FileType::is_dir, "not a directory"),
        "FileOrCreate" if found().is_none() => Ok(create_file(path)?),
        "File" | "FileOrCreate" => must_be(|found| !found.is_dir(), "not a file"),
        "Socket" => must_be(FileType::is_socket, "not a socket file"),
        "CharDevice" => must_be(FileType::is_char_device, "not a character device"),
        "BlockDevice" => must_be(FileType::is_block_device, "not a block device"),
        kind => Err(VolumeError::HostPathType(kind.to_owned())),
    }
}

fn create_file(path: &Path) -> std::io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o644);
    options.open(path).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_checked_and_created() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("dir")).unwrap();
        fs::write(at("file"), "").unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        let check = |name: &str, kind: &str, expected: &str| {
            let path = at(name);
            let found = check(&path, kind, false).err();
            let found = found.map(|error| error.to_string()).unwrap_or_default();
            let prefix = format!("hostPath type check failed: {} is ", path.display());
            assert_eq!(found.trim_start_matches(&prefix), expected, "{name} {kind}");
        };
        check("absent", "", "");
        assert!(!at("absent").exists());
        check("dir", "Directory", "");
        check("file", "Directory", "not a directory");
        check("absent", "Directory", "not a directory");
        check("a/b/c", "DirectoryOrCreate", "");
        check("a/b/c", "Directory", "");
        check("file", "DirectoryOrCreate", "not a directory");
        check("file", "File", "");
        check("dir", "File", "not a file");
        check("absent", "File", "not a file");
        check("a/new", "FileOrCreate", "");
        check("a/new", "File", "");
        check("dir", "FileOrCreate", "not a file");
        check("socket", "Socket", "");
        check("file", "Socket", "not a socket file");
        check("file", "CharDevice", "not a character device");
        check("file", "BlockDevice", "not a block device");
        check("file", "Odd", "Odd is an invalid volume type");
        super::check(Path::new("/dev/null"), "CharDevice", false).unwrap();
        super::check(&at("made"), "", true).unwrap();
        check("made", "Directory", "");
    }
}
