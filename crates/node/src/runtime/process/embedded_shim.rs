//! Installs the shim that our binary embeds. The file is named by a hash of its contents, so that running shims keep
//! theirs after an upgrade.

use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use sha2::{Digest as _, Sha256};

/// Compressed (gzip): what is embedded is memory of every agent.
const SHIM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kennel-shim"));

/// Writes the shim to a directory, unless it is there.
pub(super) fn install(dir: &Path) -> io::Result<PathBuf> {
    let path = dir.join(format!(
        "kennel-shim-{}",
        &data_encoding::HEXLOWER.encode(&Sha256::digest(SHIM))[..16]
    ));
    let is_whole = |there: std::fs::Metadata| Some(there.len()) == uncompressed_length(SHIM);
    if std::fs::metadata(&path).is_ok_and(is_whole) {
        return Ok(path);
    }
    std::fs::create_dir_all(dir)?;
    let new = dir.join("new");
    let mut shim = Vec::new();
    GzDecoder::new(SHIM).read_to_end(&mut shim)?;
    std::fs::write(&new, shim)?;
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755))?;
    std::fs::rename(&new, &path)?;
    Ok(path)
}

/// The length that the last four bytes of a gzip file state.
fn uncompressed_length(gzip: &[u8]) -> Option<u64> {
    let length = gzip.last_chunk::<4>()?;
    Some(u32::from_le_bytes(*length).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_shim_is_replaced_and_a_whole_one_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = install(dir.path()).unwrap();
        let whole = std::fs::read(&path).unwrap();
        assert!(whole.starts_with(b"\x7fELF"));
        assert_eq!(uncompressed_length(SHIM), Some(whole.len() as u64));
        std::fs::write(&path, &whole[..100]).unwrap();
        assert_eq!(install(dir.path()).unwrap(), path);
        assert_eq!(std::fs::read(&path).unwrap(), whole);
        let changed = || std::fs::metadata(&path).unwrap().modified().unwrap();
        let before = changed();
        install(dir.path()).unwrap();
        assert_eq!(changed(), before);
    }
}
