//! Links, addresses, routes and neighbours, by rtnetlink.

mod links;
mod neighbours;
pub(crate) mod routes;

pub use links::Underlay;
pub use routes::{HostRoute, PROTOCOL};

use crate::Error;

/// The VXLAN device.
pub const DEVICE: &str = "kennel-vxlan";
/// The network identifier in its packets.
const VNI: u32 = 1;
/// The UDP port of VXLAN.
pub const PORT: u16 = 4789;
/// What VXLAN adds to each packet.
pub const OVERHEAD: u32 = 50;

/// A connection to the kernel, in the network namespace of the thread that opened it.
pub struct Kernel {
    handle: rtnetlink::Handle,
    connection: tokio::task::JoinHandle<()>,
}

impl Kernel {
    pub fn open() -> Result<Self, Error> {
        let opened = rtnetlink::new_connection();
        let (connection, handle, _) = opened.map_err(|error| Error::Kernel {
            what: "open a netlink socket".to_owned(),
            error,
        })?;
        Ok(Self {
            handle,
            connection: tokio::spawn(connection),
        })
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.connection.abort();
    }
}
