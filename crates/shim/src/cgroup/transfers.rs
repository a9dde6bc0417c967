//! What a group has read from and written to block devices.

use std::collections::BTreeMap;
use std::path::Path;

use super::Kind;

/// The transfers of one block device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfers {
    pub reads: u64,
    pub writes: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
}

/// Transfers by device, which the kernel names `major:minor`.
pub type Devices = BTreeMap<String, Transfers>;

/// Adds what the files of a directory tell, which may be nothing.
pub(super) fn read(kind: &Kind, dir: &Path, devices: &mut Devices) {
    let text = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap_or_default();
    match kind {
        Kind::V2 => unified(&text("io.stat"), devices),
        Kind::V1(_) => {
            let bytes = text("blkio.throttle.io_service_bytes_recursive");
            by_direction(&bytes, devices, |of| {
                (&mut of.read_bytes, &mut of.written_bytes)
            });
            let transfers = text("blkio.throttle.io_serviced_recursive");
            by_direction(&transfers, devices, |of| (&mut of.reads, &mut of.writes));
        }
    }
}

/// `8:0 rbytes=4096 wbytes=0 rios=1 wios=0`, a line for each device.
fn unified(text: &str, devices: &mut Devices) {
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let Some(device) = words.next().filter(|device| device.contains(':')) else {
            continue;
        };
        let of = devices.entry(device.to_owned()).or_default();
        for (name, value) in words.filter_map(|word| word.split_once('=')) {
            let Ok(value) = value.parse() else { continue };
            match name {
                "rbytes" => of.read_bytes = value,
                "wbytes" => of.written_bytes = value,
                "rios" => of.reads = value,
                "wios" => of.writes = value,
                _ => {}
            }
        }
    }
}

/// `8:0 Read 4096`, a line for each device and direction, and a line with the total.
fn by_direction(
    text: &str,
    devices: &mut Devices,
    select: impl Fn(&mut Transfers) -> (&mut u64, &mut u64),
) {
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [device, direction @ ("Read" | "Write"), value] = words[..] else {
            continue;
        };
        let Ok(value) = value.parse() else { continue };
        let (read, written) = select(devices.entry(device.to_owned()).or_default());
        *(if direction == "Read" { read } else { written }) = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(kind: &Kind, files: &[(&str, &str)]) -> Devices {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        let mut devices = Devices::new();
        read(kind, dir.path(), &mut devices);
        devices
    }

    #[test]
    fn both_versions_tell_the_same_by_device() {
        let expected = Transfers {
            reads: 3,
            writes: 5,
            read_bytes: 12_288,
            written_bytes: 20_480,
        };
        let expected = Devices::from([("254:0".to_owned(), expected)]);
        let new = "254:0 rbytes=12288 wbytes=20480 rios=3 wios=5 dbytes=1 dios=1\nnonsense\n";
        assert_eq!(found(&Kind::V2, &[("io.stat", new)]), expected);
        let old = [
            (
                "blkio.throttle.io_service_bytes_recursive",
                "254:0 Read 12288\n254:0 Write 20480\n254:0 Sync 1\n254:0 Total 32768\nTotal 32768\n",
            ),
            (
                "blkio.throttle.io_serviced_recursive",
                "254:0 Read 3\n254:0 Write 5\n254:0 Total 8\nTotal 8\n",
            ),
        ];
        assert_eq!(found(&Kind::V1(vec!["blkio".to_owned()]), &old), expected);
        assert!(found(&Kind::V2, &[]).is_empty());
    }
}
