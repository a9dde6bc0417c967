//! The preloaded library (`disk.c`) that fails and records writes, and the process that it is preloaded into: this test binary
//! again, running the same test.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::io::Errno;

const DIR: &str = "DISK_DIR";
const CONTROL: &str = "DISK_CONTROL";
const RECORD: &str = "DISK_RECORD";

/// The words of `struct control`.
const CALLS: u64 = 0;
const FAIL_FROM: u64 = 1;
const FAIL_TO: u64 = 2;
const ERROR: u64 = 3;
const PARTLY: u64 = 4;
const FAILED: u64 = 5;
const RECORDING: u64 = 6;
const WORDS: u64 = 7;

/// Which calls fail, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    /// The number of the first call that fails.
    pub(crate) call: u64,
    pub(crate) error: Errno,
    pub(crate) is_partly_done: bool,
    pub(crate) lasts: bool,
}

/// The controls of the library, in the process that has it.
pub(crate) struct Disk {
    dir: PathBuf,
    control: File,
    record: PathBuf,
}

/// Runs `test` in a process of its own whose writes below a directory go through the library.
pub(crate) fn with_disk(name: &str, test: impl FnOnce(&Disk)) {
    if let Some(dir) = std::env::var_os(DIR) {
        let path =
            |variable| PathBuf::from(std::env::var_os(variable).expect("the parent sets it"));
        let control = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path(CONTROL));
        return test(&Disk {
            dir: dir.into(),
            control: control.expect("the parent made the file"),
            record: path(RECORD),
        });
    }
    // Nothing is synced, so memory does as well, where there is some.
    let in_memory = tempfile::tempdir_in("/dev/shm");
    let temporary = in_memory.or_else(|_| tempfile::tempdir()).unwrap();
    let root = temporary.path().canonicalize().unwrap();
    // Memory may be mounted without the right to execute.
    let library = format!("disk-{}.so", std::process::id());
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(library);
    compile(&library);
    let (dir, control, record) = (root.join("disk"), root.join("control"), root.join("record"));
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(&control, vec![0; usize::try_from(WORDS * 8).unwrap()]).unwrap();
    std::fs::write(&record, "").unwrap();
    let binary = std::env::current_exe().expect("a running test has a binary");
    let status = Command::new(binary)
        .args(["--exact", name, "--nocapture"])
        .env("LD_PRELOAD", &library)
        .env(DIR, dir)
        .env(CONTROL, control)
        .env(RECORD, record)
        .env_remove("RUST_TEST_THREADS")
        .status()
        .expect("the test binary runs");
    std::fs::remove_file(library).unwrap();
    assert!(status.success(), "{status}; what went wrong is above");
}

fn compile(library: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/disk.c");
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(library)
        .arg(source)
        .arg("-ldl")
        .status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "a C compiler builds the library"
    );
}

impl Disk {
    fn set(&self, word: u64, value: u64) {
        self.control
            .write_all_at(&value.to_ne_bytes(), word * 8)
            .unwrap();
    }

    fn get(&self, word: u64) -> u64 {
        let mut bytes = [0; 8];
        self.control.read_exact_at(&mut bytes, word * 8).unwrap();
        u64::from_ne_bytes(bytes)
    }

    /// A new empty directory on this disk.
    pub(crate) fn directory(&self, name: &str) -> PathBuf {
        let dir = self.dir.join(name);
        if dir.exists() {
            std::fs::remove_dir_all(&dir).unwrap();
        }
        std::fs::create_dir(&dir).unwrap();
        dir
    }

    /// Counts from zero, and has calls fail.
    pub(crate) fn fail(&self, fault: Fault) {
        self.heal();
        self.set(CALLS, 0);
        self.set(FAILED, 0);
        let error = fault.error.raw_os_error();
        self.set(ERROR, u64::try_from(error).expect("errors are positive"));
        self.set(PARTLY, fault.is_partly_done.into());
        self.set(FAIL_TO, if fault.lasts { u64::MAX } else { fault.call });
        self.set(FAIL_FROM, fault.call);
    }

    /// No call fails any more.
    pub(crate) fn heal(&self) {
        self.set(FAIL_FROM, 0);
    }

    /// Calls since [`Self::fail`], or since the start.
    pub(crate) fn calls(&self) -> u64 {
        self.get(CALLS)
    }

    /// How many of them have failed.
    pub(crate) fn failed(&self) -> u64 {
        self.get(FAILED)
    }

    /// Records from here on, forgetting what was recorded before.
    pub(crate) fn start_record(&self) {
        File::options()
            .write(true)
            .open(&self.record)
            .unwrap()
            .set_len(0)
            .unwrap();
        self.set(RECORDING, 1);
    }

    /// Ends the recording; returns the bytes of the record.
    pub(crate) fn end_record(&self) -> Vec<u8> {
        self.set(RECORDING, 0);
        // Waits for the call that is being recorded.
        drop(File::create(self.dir.join("barrier")).unwrap());
        std::fs::read(&self.record).unwrap()
    }
}
