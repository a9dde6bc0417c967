//! Installs the shim that our binary embeds. The file is named by a hash of its contents, so that running shims keep
//! theirs after an upgrade.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

const SHIM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kennel-shim"));

/// Writes the shim to a directory, unless it is there.
pub(super) fn install(dir: &Path) -> io::Result<PathBuf> {
    let path = dir.join(format!(
        "kennel-shim-{}",
        &data_encoding::HEXLOWER.encode(&Sha256::digest(SHIM))[..16]
    ));
    if std::fs::metadata(&path).is_ok_and(|there| there.len() == SHIM.len() as u64) {
        return Ok(path);
    }
    std::fs::create_dir_all(dir)?;
    let new = dir.join("new");
    std::fs::write(&new, SHIM)?;
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755))?;
    std::fs::rename(&new, &path)?;
    Ok(path)
}
