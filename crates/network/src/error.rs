//! Why the network cannot be set up.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel refused.
    #[error("cannot {what}: {error}{}", hint(.error))]
    Kernel { what: String, error: io::Error },
    #[error("cannot {what} {}: {error}", path.display())]
    File {
        what: &'static str,
        path: PathBuf,
        error: io::Error,
    },
    #[error(
        "no network device of this machine has the node's address {0}: choose one with --node-ip"
    )]
    NoDevice(std::net::Ipv4Addr),
    #[error(
        "the pods' range {cluster} (--cluster-cidr) overlaps the route {route} of this machine: start `kennel up` with \
         another --cluster-cidr"
    )]
    Overlap { cluster: String, route: String },
    #[error(
        "the route {route} of this machine lies in the range of services {range} (--service-cidr), which would hide its hosts: \
         start `kennel up` with another --service-cidr, remove the route, or leave services to another program with --proxy=none"
    )]
    ServicesOverlap { range: String, route: String },
    #[error("another agent manages the pod network of this network namespace")]
    Locked,
}

impl Error {
    /// The reason of the Node's condition.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Kernel { .. } => "KernelRefused",
            Self::File { .. } => "FileNotWritten",
            Self::NoDevice(_) => "NodeAddressNotFound",
            Self::Overlap { .. } => "ClusterCIDROverlaps",
            Self::ServicesOverlap { .. } => "ServiceCIDROverlaps",
            Self::Locked => "OtherAgent",
        }
    }

    pub(crate) fn kernel(what: impl Into<String>) -> impl FnOnce(rtnetlink::Error) -> Self {
        let what = what.into();
        move |error| {
            let error = match error {
                rtnetlink::Error::NetlinkError(message) => message.to_io(),
                other => io::Error::other(other),
            };
            Self::Kernel { what, error }
        }
    }

    /// Whether the kernel answered with this error number.
    pub(crate) fn is(&self, number: i32) -> bool {
        matches!(self, Self::Kernel { error, .. } if error.raw_os_error() == Some(number))
    }
}

/// What to do about the refusals that users meet.
fn hint(error: &io::Error) -> &'static str {
    use rustix::io::Errno;
    let is = |errno: Errno| error.raw_os_error() == Some(errno.raw_os_error());
    if is(Errno::PERM) || is(Errno::ACCESS) {
        "; the agent needs the capability NET_ADMIN, or start it with --network=none"
    } else if is(Errno::OPNOTSUPP) || is(Errno::NOENT) {
        "; load the kernel modules vxlan and nf_tables, or choose another --network"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn refusals_say_what_to_do() {
        let check = |errno: Errno, expected: &str| {
            let error = Error::Kernel {
                what: "do it".to_owned(),
                error: io::Error::from_raw_os_error(errno.raw_os_error()),
            };
            assert_eq!(error.reason(), "KernelRefused");
            let said = error.to_string();
            assert!(said.starts_with("cannot do it: "), "{said}");
            let (_, hint) = said.split_once("; ").unwrap_or((&said, ""));
            assert!(hint.starts_with(expected), "{errno:?}: {said}");
            assert_eq!(hint.is_empty(), expected.is_empty(), "{errno:?}: {said}");
        };
        let (rights, modules) = (
            "the agent needs the capability NET_ADMIN",
            "load the kernel modules vxlan",
        );
        check(Errno::PERM, rights);
        check(Errno::ACCESS, rights);
        check(Errno::OPNOTSUPP, modules);
        check(Errno::NOENT, modules);
        check(Errno::NOBUFS, "");
    }
}
