//! Places for volumes. One that is missing on the machine's own root is made in the container's layer; one
//! that is missing on another mount of the machine (`/run`, `/dev`) would be made on the machine, so that
//! mount gets a layer, too.

use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, mount};

use super::mounts::{attach, hold, make_place, told};
use super::table;

/// Symbolic links in a path, at most.
const LINKS: usize = 40;

/// Finds and makes places.
pub(super) struct Covers {
    layers: PathBuf,
    made: Vec<PathBuf>,
}

impl Covers {
    /// `layers`: where layers may be made.
    pub(super) fn new(layers: &Path) -> Self {
        Self {
            layers: layers.to_owned(),
            made: vec![PathBuf::from("/")],
        }
    }

    /// Where a volume goes, links followed. Made if it is missing.
    pub(super) fn place(&mut self, path: &Path, is_dir: bool) -> Result<PathBuf, String> {
        let place = resolve(path)?;
        if place.exists() {
            return Ok(place);
        }
        let there = place
            .ancestors()
            .find(|above| above.exists())
            .unwrap_or(Path::new("/"));
        self.cover(there)?;
        make_place(&place, is_dir).map_err(super::failed(&path.display().to_string()))?;
        Ok(place)
    }

    /// Lets things be made in a directory without being made on the machine.
    fn cover(&mut self, dir: &Path) -> Result<(), String> {
        let entries = table::read().map_err(super::failed("mounts"))?;
        let Some(holder) = table::holder(&entries, dir) else {
            return Ok(());
        };
        if self.made.contains(&holder.point) {
            return Ok(());
        }
        let below: Vec<_> = table::on(&entries, holder)
            .into_iter()
            .filter_map(|entry| Some((hold(&entry.point).ok()?, entry.point)))
            .collect();
        let layer = self.layers.join(format!("cover-{}", self.made.len()));
        let [upper, work] = ["upper", "work"].map(|name| layer.join(name));
        for dir in [&upper, &work] {
            std::fs::create_dir_all(dir).map_err(super::failed("layer"))?;
        }
        let what = format!("a mount point in {}", holder.point.display());
        let told = told(&what);
        // Relative, and so without signs that would have to be escaped.
        std::env::set_current_dir(&layer).map_err(super::failed("layer"))?;
        let layers = format!(
            "lowerdir={},upperdir=upper,workdir=work",
            escape(&holder.point)?
        );
        let layers = std::ffi::CString::new(layers).map_err(|error| error.to_string())?;
        mount(
            "overlay",
            &holder.point,
            "overlay",
            MountFlags::empty(),
            Some(&*layers),
        )
        .map_err(&told)?;
        std::env::set_current_dir("/").map_err(super::failed("/"))?;
        for (tree, point) in below {
            attach(&tree, &point).map_err(&told)?;
        }
        self.made.push(holder.point.clone());
        Ok(())
    }
}

/// Colons separate layers, commas options.
fn escape(path: &Path) -> Result<String, String> {
    let path = path.to_str().ok_or("a mount point is not UTF-8")?;
    Ok(path
        .replace('\\', "\\\\")
        .replace(':', "\\:")
        .replace(',', "\\,"))
}

/// The path without links. What does not exist is taken as it is.
fn resolve(path: &Path) -> Result<PathBuf, String> {
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
                if links > LINKS {
                    return Err(format!("{}: too many links", path.display()));
                }
                left.extend(
                    target
                        .components()
                        .rev()
                        .map(|part| PathBuf::from(part.as_os_str())),
                );
            }
            // An absolute part, the root, replaces all before it.
            Err(_) => found = next,
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_and_the_rest_is_taken_as_it_is() {
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
