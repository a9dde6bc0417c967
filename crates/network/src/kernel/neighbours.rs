//! Who the VXLAN device sends to: the link-layer addresses of other nodes' devices, and the nodes that have them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use futures_util::TryStreamExt as _;
use kennel_core::pod_network::plan::Plan;
use netlink_packet_route::AddressFamily;
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};

use super::Kernel;
use crate::Error;

impl Kernel {
    /// Adds, replaces and deletes the entries of the VXLAN device until they are those of the plan.
    pub(crate) async fn set_neighbours(&self, plan: &Plan, vxlan: u32) -> Result<(), Error> {
        let mut addresses = plan.neighbours.clone();
        for entry in self.entries(AddressFamily::Inet, vxlan).await? {
            let (address, mac) = (address_of(&entry), mac_of(&entry));
            match address {
                Some(address) if addresses.get(&address).map(|mac| &mac[..]) == mac => {
                    addresses.remove(&address);
                }
                Some(address) if !addresses.contains_key(&address) => self.delete(entry).await?,
                _ => {}
            }
        }
        self.add_addresses(&addresses, vxlan).await?;
        let mut nodes = plan.forwarding.clone();
        for entry in self.entries(AddressFamily::Bridge, vxlan).await? {
            let Some(mac) = mac_of(&entry).and_then(|mac| <[u8; 6]>::try_from(mac).ok()) else {
                continue;
            };
            // Zeros are the default destination, of which we set none.
            if nodes.get(&mac).copied() == address_of(&entry) && nodes.contains_key(&mac) {
                nodes.remove(&mac);
            } else {
                // A second destination would be added, not replaced.
                self.delete(entry).await?;
            }
        }
        self.add_nodes(&nodes, vxlan).await
    }

    async fn entries(
        &self,
        family: AddressFamily,
        device: u32,
    ) -> Result<Vec<NeighbourMessage>, Error> {
        let request = self.handle.neighbours().get().set_address_family(family);
        let all: Vec<NeighbourMessage> = request
            .execute()
            .try_collect()
            .await
            .map_err(Error::kernel("read the neighbours of the VXLAN device"))?;
        Ok(all
            .into_iter()
            .filter(|entry| entry.header.ifindex == device)
            .collect())
    }

    async fn delete(&self, entry: NeighbourMessage) -> Result<(), Error> {
        let deleted = self.handle.neighbours().del(entry).execute().await;
        match deleted.map_err(Error::kernel("delete a neighbour of the VXLAN device")) {
            Err(error) if error.is(rustix::io::Errno::NOENT.raw_os_error()) => Ok(()),
            deleted => deleted,
        }
    }

    async fn add_addresses(
        &self,
        addresses: &BTreeMap<Ipv4Addr, [u8; 6]>,
        device: u32,
    ) -> Result<(), Error> {
        for (address, mac) in addresses {
            let added = self
                .handle
                .neighbours()
                .add(device, IpAddr::V4(*address))
                .link_layer_address(mac)
                .state(NeighbourState::Permanent)
                .replace()
                .execute();
            let what = format!("add the neighbour {address} of the VXLAN device");
            added.await.map_err(Error::kernel(what))?;
        }
        Ok(())
    }

    async fn add_nodes(
        &self,
        nodes: &BTreeMap<[u8; 6], Ipv4Addr>,
        device: u32,
    ) -> Result<(), Error> {
        for (mac, node) in nodes {
            let added = self
                .handle
                .neighbours()
                .add_bridge(device, mac)
                .destination(IpAddr::V4(*node))
                .flags(NeighbourFlags::Own)
                .replace()
                .execute();
            let what = format!("add node {node} to the VXLAN device");
            added.await.map_err(Error::kernel(what))?;
        }
        Ok(())
    }
}

fn address_of(entry: &NeighbourMessage) -> Option<Ipv4Addr> {
    entry
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            NeighbourAttribute::Destination(NeighbourAddress::Inet(address)) => Some(*address),
            _ => None,
        })
}

fn mac_of(entry: &NeighbourMessage) -> Option<&[u8]> {
    entry
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            NeighbourAttribute::LinkLayerAddress(mac) => Some(&mac[..]),
            _ => None,
        })
}
