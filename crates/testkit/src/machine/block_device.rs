//! A block device with a file system: a loop device over a file. Containers that write below its directory show what
//! is counted by device.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::reaper::Reaper;
use super::run;

/// Enough for a file system and some files.
const BYTES: u64 = 16 << 20;
/// The rules of the first version of cgroups, by device.
const RULES: &str = "/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device";

/// See the [module](self).
#[derive(Debug)]
pub struct BlockDevice {
    file: PathBuf,
    mount_point: PathBuf,
    _reaper: Reaper,
    _directory: tempfile::TempDir,
}

impl BlockDevice {
    /// Makes one, and mounts it at a directory of its own.
    pub fn mounted() -> Self {
        let directory = tempfile::tempdir().expect("there is a place for temporary files");
        let (image, mount_point) = (directory.path().join("image"), directory.path().join("on"));
        let whole = fs::File::create(&image).and_then(|file| file.set_len(BYTES));
        whole.expect("a file of this size can be made");
        fs::create_dir(&mount_point).expect("the directory is ours");
        run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image));
        let reaper = Reaper::of_mount(&mount_point);
        // The device goes with its mount.
        run(Command::new("mount")
            .args(["-o", "loop"])
            .args([&image, &mount_point]));
        let shown = run(Command::new("findmnt")
            .args(["--noheadings", "--output", "SOURCE"])
            .arg(&mount_point));
        let file = PathBuf::from(shown.trim());
        count_transfers(&file);
        Self {
            file,
            mount_point,
            _reaper: reaper,
            _directory: directory,
        }
    }

    /// The device's file, such as `/dev/loop0`.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The directory that it is mounted at.
    pub fn mount_point(&self) -> &Path {
        &self.mount_point
    }
}

/// In the first version of cgroups, a newer kernel counts the transfers of a device only once there is a rule for it. This one
/// allows more than the device can.
fn count_transfers(file: &Path) {
    if !Path::new(RULES).exists() {
        return;
    }
    let name = file.file_name().expect("a device has a name");
    let number = fs::read_to_string(Path::new("/sys/class/block").join(name).join("dev"));
    let number = number.expect("the kernel knows the device");
    let rule = format!("{} {}", number.trim(), 1_u64 << 40);
    fs::write(RULES, rule).expect("root may write rules");
}
