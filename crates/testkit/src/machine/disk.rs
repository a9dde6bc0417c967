//! Files of a machine's own: a mount namespace in which the directories that daemons write to are layers over
//! ours. It must not write to the real ones.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};

/// Makes the layers, says so, and holds the namespace until nobody holds the other end of its input.
///
/// All mounts are shared, as on machines that systemd has started: volumes with mount propagation need that.
const SCRIPT: &str = r#"
set -e
layers=$(mktemp -d)
mount -t tmpfs layers "$layers"
mkdir "$layers/devices"
mount --rbind /dev "$layers/devices"
for directory in dev etc opt run usr var; do
    mkdir -p "/$directory" "$layers/$directory/upper" "$layers/$directory/work"
    chmod --reference="/$directory" "$layers/$directory/upper"
    mount -t overlay -o "lowerdir=/$directory,upperdir=$layers/$directory/upper,workdir=$layers/$directory/work" \
        overlay "/$directory"
done
# Layers do not show what is mounted below.
for mounted in pts shm; do
    mount --rbind "$layers/devices/$mounted" "/dev/$mounted"
done
mount --make-rshared /
echo ready
cat >/dev/null
umount -l "$layers"
rmdir "$layers"
"#;

/// See the [module](self). It goes when it is dropped and everybody in it has ended.
#[derive(Debug)]
pub(super) struct Disk {
    holder: Child,
    alive: Option<ChildStdin>,
}

impl Disk {
    /// Makes one.
    pub(super) fn new() -> Self {
        // A session of its own: Ctrl-C at the terminal ends the tests, and then it has work to do.
        let holder = Command::new("setsid")
            .args(["unshare", "--mount", "--propagation", "private"])
            .args(["sh", "-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut holder = holder.expect("setsid and unshare can be run");
        let alive = holder.stdin.take();
        let said = BufReader::new(holder.stdout.take().expect("it is piped"));
        let ready = said.lines().next().and_then(Result::ok);
        assert_eq!(
            ready.as_deref(),
            Some("ready"),
            "layers over directories can be mounted"
        );
        Self { holder, alive }
    }

    /// What takes a program into it, for nsenter.
    pub(super) fn flag(&self) -> String {
        // setsid becomes unshare, and that the shell, so that this is its pid.
        format!("--mount=/proc/{}/ns/mnt", self.holder.id())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(self.alive.take());
        // It has been told; that it cannot be waited for changes nothing.
        let _ended = self.holder.wait();
    }
}
