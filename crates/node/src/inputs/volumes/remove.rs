//! Taking a pod's directory away, whatever state a crash has left it in.

use std::io;
use std::path::Path;

use super::mounted;

/// Unmounts all that is mounted below a pod's directory, then deletes it. Nothing is deleted while anything is
/// mounted there: it could be the machine's own files. Fine if there is nothing.
pub(in crate::inputs) fn remove(pod: &Path) -> io::Result<()> {
    let parent = pod.parent().unwrap_or(pod);
    let (Some(name), Some(parent)) = (pod.file_name(), there(parent.canonicalize())?) else {
        return Ok(());
    };
    let pod = parent.join(name);
    for point in mounted::below(&pod)?.iter().rev() {
        mounted::take_away(point)?;
    }
    if let Some(point) = mounted::below(&pod)?.first() {
        let why = format!("{} is still mounted", point.display());
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
    }
    there(std::fs::remove_dir_all(&pod)).map(drop)
}

fn there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
