//! The file `DEBIAN/control`.

/// There is no mail address for the project yet.
pub(super) const MAINTAINER: &str = "The Kennel authors <kennel@localhost>";

pub(super) struct Control {
    pub(super) version: String,
    pub(super) architecture: String,
    /// Dependencies on packages of shared libraries.
    pub(super) libraries: String,
    /// In KiB.
    pub(super) installed_size: u64,
}

impl Control {
    pub(super) fn text(&self) -> String {
        let Self {
            version,
            architecture,
            libraries,
            installed_size,
        } = self;
        // adduser: postinst creates the server's user. iproute2: `kennel playground` creates networks with it.
        // containernetworking-plugins, iptables: the agent's pod network, and its host ports. Processes need none of them.
        format!(
            "\
Package: kennel
Version: {version}
Architecture: {architecture}
Maintainer: {MAINTAINER}
Installed-Size: {installed_size}
Depends: {libraries}, adduser
Recommends: iproute2, containernetworking-plugins, iptables
Suggests: containerd, kubernetes-client
Section: admin
Priority: optional
Description: Kubernetes DaemonSets in one small binary
 A Kubernetes API server, the controllers that DaemonSets need, and a node
 agent. Pods run in containers if containerd is installed, and as plain
 processes otherwise.
 .
 The installation starts no service. Enable kennel-server.service for a
 control plane, and kennel-agent.service to make this machine a node.
"
        )
    }
}
