//! What a package says of itself.

/// Who answers for the package. There is no address yet that mail would reach.
pub(super) const MAINTAINER: &str = "The Kennel authors <kennel@localhost>";

/// What `DEBIAN/control` is made of.
pub(super) struct About {
    pub(super) version: String,
    pub(super) architecture: String,
    /// The packages of the program's libraries.
    pub(super) libraries: Vec<String>,
    /// What it takes on a disk.
    pub(super) kibibytes: u64,
}

impl About {
    pub(super) fn text(&self) -> String {
        let Self {
            version,
            architecture,
            libraries,
            kibibytes,
        } = self;
        let libraries = libraries.join(", ");
        // adduser: the server's own user. iproute2: the nodes of `kennel playground`.
        format!(
            "\
Package: kennel
Version: {version}
Architecture: {architecture}
Maintainer: {MAINTAINER}
Installed-Size: {kibibytes}
Depends: {libraries}, adduser
Recommends: iproute2
Suggests: containerd, kubernetes-client
Section: admin
Priority: optional
Description: one daemon on every node
 The Kubernetes DaemonSet, whole and small: an API server, the controllers it
 needs, and an agent that makes a machine a node. Daemons run in containers
 where containerd is installed, and as plain processes elsewhere.
 .
 After the installation nothing runs. kennel-server.service is a control
 plane, kennel-agent.service makes this machine a node: enable what it is to be.
"
        )
    }
}
