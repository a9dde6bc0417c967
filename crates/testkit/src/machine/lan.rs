//! Machines on one wire, for guides: each with a network, a name, and directories of its own where programs
//! keep things (`/etc`, `/var/lib`, `/var/log`, `/run`). Processes and all other files are the test's.
//!
//! ```text
//!   server 10.0.0.1 ──┬── web-1 10.0.0.2
//!                     └── web-2 10.0.0.3       no way out
//! ```

use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::reaper::Reaper;
use super::{Containerd, Image, Network, run};
use crate::Deadline;

/// From the start of a machine's first process to the end of its preparations.
const START_SECONDS: u64 = 60;

/// What a machine's first process does: gives it a name and directories of its own, says so, and stays.
const INIT: &str = r#"set -e
hostname "$1"
for place in var/lib var/log run; do
    mkdir -p "$2/$place"
    mount --bind "$2/$place" "/$place"
done
cp -a /etc "$2/etc"
echo "$3" >> "$2/etc/hosts"
mount --bind "$2/etc" /etc
touch "$2/ready"
exec sleep infinity"#;

/// See the [module](self). Dropping it ends everything that runs there.
#[derive(Debug)]
pub struct Lan {
    machines: Vec<Machine>,
}

#[derive(Debug)]
struct Machine {
    name: String,
    /// Of its network.
    space: String,
    init: Child,
    // Ends what runs there first, so that nothing holds the directory.
    _reaper: Reaper,
    _dir: TempDir,
}

impl Lan {
    /// Machines with these names, the first at 10.0.0.1.
    pub fn new(names: &[&str]) -> Self {
        let numbered = names.iter().zip(1..);
        let hosts: Vec<String> = numbered
            .map(|(name, number)| format!("10.0.0.{number} {name}"))
            .collect();
        let hosts = hosts.join("\n");
        let mut machines: Vec<Machine> = Vec::new();
        let mut switch = None;
        for (name, number) in names.iter().zip(1..) {
            let space = format!("kennel-{:08x}", fastrand::u32(..));
            let reaper = Reaper::of_network(&space);
            connect(&space, number, switch.as_deref());
            machines.push(start(name, &space, &hosts, reaper));
            switch.get_or_insert(space);
        }
        Self { machines }
    }

    /// Starts containerd on each machine, where programs look for it, as Debian's package does. They have these images and
    /// are to be dropped before the machines.
    pub fn containerds(&self, images: &[Image]) -> Vec<Containerd> {
        let numbered = self.machines.iter().zip(1..);
        let started = numbered.map(|(machine, number)| {
            let address = Ipv4Addr::new(10, 0, 0, number);
            let network = Network::of_machine(&machine.space, address, machine.init.id());
            let containerd = Containerd::builder()
                .with_own_etc()
                .in_network(network)
                .start();
            let link = "mkdir -p /run/containerd && ln -s \"$1\" /run/containerd/containerd.sock";
            let mut command = containerd.network().command("sh");
            run(command.args(["-ec", link, "sh"]).arg(containerd.socket()));
            for image in images {
                containerd.import(image);
            }
            containerd
        });
        started.collect()
    }

    /// The words that lead to a machine: what is put behind them runs there.
    pub fn way(&self, number: usize) -> Vec<OsString> {
        let pid = self.machines[number].init.id().to_string();
        let words = ["nsenter", "--net", "--mount", "--uts", "--target"];
        let words = words.map(str::to_owned).into_iter();
        let words = words.chain([pid, "--".to_owned()]);
        words.map(OsString::from).collect()
    }

    /// A script that does what `ssh NAME COMMAND` does, on all of them.
    pub fn ssh(&self) -> String {
        let arms: Vec<String> = self
            .machines
            .iter()
            .map(|machine| format!("{}) pid={} ;;", machine.name, machine.init.id()))
            .collect();
        format!(
            "name=${{1#*@}}; shift\ncase $name in\n{}\n*) echo \"ssh: no machine $name\" >&2; exit 255 ;;\nesac\n\
             exec nsenter --net --mount --uts --target \"$pid\" -- sh -c \"$*\"",
            arms.join("\n")
        )
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _gone_already = self.init.kill();
        let _reaped = self.init.wait();
    }
}

/// Makes the namespace of a machine, and plugs it in: the first is the switch.
fn connect(space: &str, number: u8, switch: Option<&str>) {
    let ip = |arguments: &str| {
        run(Command::new("ip").args(arguments.split(' ')));
    };
    ip(&format!("netns add {space}"));
    ip(&format!("-n {space} link set lo up"));
    match switch {
        None => ip(&format!("-n {space} link add eth0 type bridge")),
        Some(switch) => {
            let peer = format!("peer name port{number} netns {switch}");
            ip(&format!("-n {space} link add eth0 type veth {peer}"));
            ip(&format!("-n {switch} link set port{number} master eth0 up"));
        }
    }
    ip(&format!("-n {space} addr add 10.0.0.{number}/24 dev eth0"));
    ip(&format!("-n {space} link set eth0 up"));
    ip(&format!("-n {space} route add default dev eth0"));
}

fn start(name: &str, space: &str, hosts: &str, reaper: Reaper) -> Machine {
    let dir = TempDir::new().expect("a temporary directory can be made");
    let init = Command::new("nsenter")
        .arg(format!("--net=/run/netns/{space}"))
        .args(["unshare", "--mount", "--uts", "sh", "-c", INIT, "init"])
        .args([name.as_ref(), dir.path(), Path::new(hosts)])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn();
    let mut init = init.expect("nsenter can be run");
    let deadline = Deadline::seconds(START_SECONDS);
    while !dir.path().join("ready").exists() {
        let ended = init.try_wait().expect("a child can be waited for");
        assert!(ended.is_none(), "machine {name} cannot be made: {ended:?}");
        assert!(!deadline.passed(), "machine {name} is not ready");
        deadline.pause();
    }
    Machine {
        name: name.to_owned(),
        space: space.to_owned(),
        init,
        _reaper: reaper,
        _dir: dir,
    }
}
