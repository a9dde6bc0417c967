//! Removes a pod's directory, in whatever state a crash has left it.

use std::io;
use std::path::Path;

use super::mount_points;
use crate::files::if_found;
use crate::mountinfo;

/// Unmounts everything below a pod's directory, then deletes it. Deletes nothing while something is mounted there: it
/// could be the machine's own files. Succeeds if there is no directory.
pub(in crate::inputs) fn remove(pod: &Path) -> io::Result<()> {
    let parent = pod.parent().unwrap_or(pod);
    let (Some(name), Some(parent)) = (pod.file_name(), if_found(parent.canonicalize())?) else {
        return Ok(());
    };
    let pod = parent.join(name);
    for point in mountinfo::below(&pod)?.iter().rev() {
        mount_points::unmount_point(point)?;
    }
    if let Some(point) = mountinfo::below(&pod)?.first() {
        let why = format!("{} is still mounted", point.display());
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
    }
    if_found(std::fs::remove_dir_all(&pod)).map(drop)
}
