//! Chains of iptables that the CNI plugin `portmap` leaves behind after the last pod with a host port. It makes them again when
//! it needs them, for whichever network.

use std::io;
use std::process::{Command, Output};

const DNAT: &str = "CNI-HOSTPORT-DNAT";
/// Rules that lead to its chains.
const ENTRIES: [&[&str]; 3] = [
    &[
        "PREROUTING",
        "-m",
        "addrtype",
        "--dst-type",
        "LOCAL",
        "-j",
        DNAT,
    ],
    &[
        "OUTPUT",
        "-m",
        "addrtype",
        "--dst-type",
        "LOCAL",
        "-j",
        DNAT,
    ],
    &[
        "POSTROUTING",
        "-m",
        "comment",
        "--comment",
        "CNI portfwd requiring masquerade",
        "-j",
        "CNI-HOSTPORT-MASQ",
    ],
];
const CHAINS: [&str; 3] = [DNAT, "CNI-HOSTPORT-SETMARK", "CNI-HOSTPORT-MASQ"];

/// Removes the chains, unless a pod has a host port. Returns whether there were some to remove. The plugin calls the same program:
/// without it there are none.
pub(crate) fn remove_unused() -> bool {
    let Ok(listed) = iptables(&["-S", DNAT]) else {
        return false;
    };
    let listing = String::from_utf8_lossy(&listed.stdout);
    let is_used = listing.lines().any(|line| line.starts_with("-A "));
    if !listed.status.success() || is_used {
        return false;
    }
    for entry in ENTRIES {
        run(&[&["-D"], entry].concat());
    }
    // The last of them is reached from chains of the others.
    for step in ["-F", "-X"] {
        for chain in CHAINS {
            run(&[step, chain]);
        }
    }
    true
}

fn iptables(arguments: &[&str]) -> io::Result<Output> {
    let mut command = Command::new("iptables");
    command.args(["-w", "-t", "nat"]).args(arguments).output()
}

/// A part that is not there needs no removal.
fn run(arguments: &[&str]) {
    match iptables(arguments) {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            tracing::debug!("iptables {}: {said}", arguments.join(" "));
        }
        Err(error) => tracing::debug!("iptables: {error}"),
    }
}
