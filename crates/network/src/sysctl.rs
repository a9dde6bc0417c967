//! Settings of the kernel's network in `/proc/sys/net`.

use std::io;
use std::path::{Path, PathBuf};

use crate::Error;

pub const FORWARDING: &str = "net/ipv4/ip_forward";

fn path(name: &str) -> PathBuf {
    Path::new("/proc/sys").join(name)
}

pub fn read(name: &str) -> io::Result<String> {
    std::fs::read_to_string(path(name)).map(|text| text.trim().to_owned())
}

/// Writes only what differs: containers may see a read-only `/proc/sys` with the right value.
pub fn set(name: &str, value: &str) -> Result<(), Error> {
    let file = path(name);
    if read(name).is_ok_and(|now| now == value) {
        return Ok(());
    }
    std::fs::write(&file, value).map_err(|error| Error::File {
        what: "write to",
        path: file,
        error,
    })
}
