//! Mount points of volumes. A missing one is created in the overlay of the container's root, or on a private mount. On another
//! mount of the host (`/home`) it would be created on the host, so that mount gets an overlay, too.

use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, mount};

use super::mounts::{attach, clone_tree, create_mount_point};
use super::{InitError, Result, failed};
use crate::mountinfo;

/// Symbolic links in a path, as in the kernel.
const LINKS_MAX: usize = 40;

pub(super) struct MountPoints {
    /// Where overlays keep their directories.
    overlays: PathBuf,
    /// Mount points of the overlays, and of what is private anyway.
    overlaid: Vec<PathBuf>,
}

impl MountPoints {
    pub(super) fn new(overlays: &Path) -> Self {
        Self {
            overlays: overlays.to_owned(),
            overlaid: vec![PathBuf::from("/")],
        }
    }

    /// Adds mounts that only the container sees.
    pub(super) fn add_private(&mut self, points: impl IntoIterator<Item = PathBuf>) {
        self.overlaid.extend(points);
    }

    /// Resolves symbolic links, and creates the mount point if it is missing.
    pub(super) fn prepare(&mut self, path: &Path, is_dir: bool) -> Result<PathBuf> {
        let mount_point = resolve(path)?;
        if mount_point.exists() {
            return Ok(mount_point);
        }
        let existing = mount_point
            .ancestors()
            .find(|above| above.exists())
            .unwrap_or(Path::new("/"));
        self.overlay(existing)?;
        let created = create_mount_point(&mount_point, is_dir);
        created.map_err(failed(&path.display().to_string()))?;
        Ok(mount_point)
    }

    /// Mounts an overlay over the mount that holds `dir`, unless there is one, so that nothing is created on the host.
    fn overlay(&mut self, dir: &Path) -> Result {
        let entries = mountinfo::read().map_err(failed("mounts"))?;
        let Some(mounted) = mountinfo::containing(&entries, dir) else {
            return Ok(());
        };
        if self.overlaid.contains(&mounted.mount_point) {
            return Ok(());
        }
        let children: Vec<_> = mountinfo::children(&entries, mounted)
            .into_iter()
            .filter_map(|entry| Some((clone_tree(&entry.mount_point).ok()?, entry.mount_point)))
            .collect();
        let layer = self.overlays.join(format!("cover-{}", self.overlaid.len()));
        let [upper, work] = ["upper", "work"].map(|name| layer.join(name));
        for dir in [&upper, &work] {
            std::fs::create_dir_all(dir).map_err(failed("layer"))?;
        }
        let step = format!("a mount point in {}", mounted.mount_point.display());
        // Relative paths need no escaping.
        std::env::set_current_dir(&layer).map_err(failed("layer"))?;
        let options = format!(
            "lowerdir={},upperdir=upper,workdir=work",
            escape(&mounted.mount_point)?
        );
        let options = std::ffi::CString::new(options)?;
        mount(
            "overlay",
            &mounted.mount_point,
            "overlay",
            MountFlags::empty(),
            Some(&*options),
        )
        .map_err(failed(&step))?;
        std::env::set_current_dir("/").map_err(failed("/"))?;
        for (tree, mount_point) in children {
            attach(&tree, &mount_point).map_err(failed(&step))?;
        }
        self.overlaid.push(mounted.mount_point.clone());
        Ok(())
    }
}

/// In overlay options, colons separate layers and commas separate options.
fn escape(path: &Path) -> Result<String> {
    let path = path.to_str().ok_or(InitError::MountPointNotUtf8)?;
    Ok(path
        .replace('\\', "\\\\")
        .replace(':', "\\:")
        .replace(',', "\\,"))
}

/// Resolves symbolic links. Parts that do not exist stay as they are.
fn resolve(path: &Path) -> Result<PathBuf> {
    let mut left: Vec<PathBuf> = path
        .components()
        .rev()
        .map(|part| PathBuf::from(part.as_os_str()))
        .collect();
    let mut found = PathBuf::from("/");
    let mut links = 0;
    while let Some(part) = left.pop() {
        if part == Path::new("..") {
            found.pop();
            continue;
        }
        let next = found.join(&part);
        match std::fs::read_link(&next) {
            Ok(target) => {
                links += 1;
                if links > LINKS_MAX {
                    return Err(InitError::TooManyLinks(path.to_owned()));
                }
                left.extend(
                    target
                        .components()
                        .rev()
                        .map(|part| PathBuf::from(part.as_os_str())),
                );
            }
            // Joining an absolute part replaces the path.
            Err(_) => found = next,
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_resolved_and_missing_parts_stay() {
        let temporary = tempfile::tempdir().unwrap();
        let base = temporary.path().canonicalize().unwrap();
        std::fs::create_dir(base.join("run")).unwrap();
        std::os::unix::fs::symlink(base.join("run"), base.join("absolute")).unwrap();
        std::os::unix::fs::symlink("run", base.join("relative")).unwrap();
        std::os::unix::fs::symlink("loop", base.join("loop")).unwrap();
        let check = |path: &str, expected: &str| {
            assert_eq!(
                resolve(&base.join(path)).unwrap(),
                base.join(expected),
                "{path}"
            );
        };
        check("run/secrets/x", "run/secrets/x");
        check("absolute/secrets/x", "run/secrets/x");
        check("relative/secrets", "run/secrets");
        check("relative/../other", "other");
        assert!(resolve(&base.join("loop")).is_err());
    }
}
