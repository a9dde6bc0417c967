//! The forwarding and neighbour tables of the VXLAN device: the link-layer addresses of other nodes' devices, and the nodes that have them.

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

    /// Changes the entries of the VXLAN device from those of one plan, which the kernel has, to those of another.
    pub(crate) async fn change_neighbours(
        &self,
        before: &Plan,
        after: &Plan,
        vxlan: u32,
    ) -> Result<(), Error> {
        let gone = before.neighbours.iter();
        for (address, _) in gone.filter(|(address, _)| !after.neighbours.contains_key(address)) {
            let destination = NeighbourAttribute::Destination(NeighbourAddress::Inet(*address));
            self.delete(entry(AddressFamily::Inet, vxlan, vec![destination]))
                .await?;
        }
        self.add_addresses(&added(&before.neighbours, &after.neighbours), vxlan)
            .await?;
        let changed = before.forwarding.iter();
        for (mac, node) in changed.filter(|(mac, node)| after.forwarding.get(*mac) != Some(node)) {
            // A second destination would be added, not replaced.
            let attributes = vec![
                NeighbourAttribute::LinkLayerAddress(mac.to_vec()),
                NeighbourAttribute::Destination(NeighbourAddress::Inet(*node)),
            ];
            self.delete(entry(AddressFamily::Bridge, vxlan, attributes))
                .await?;
        }
        self.add_nodes(&added(&before.forwarding, &after.forwarding), vxlan)
            .await
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

/// What the second map has and the first one has not.
fn added<K: Ord + Clone, V: Clone + PartialEq>(
    before: &BTreeMap<K, V>,
    after: &BTreeMap<K, V>,
) -> BTreeMap<K, V> {
    let new = after
        .iter()
        .filter(|(key, value)| before.get(*key) != Some(*value));
    new.map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// An entry of a device, as the kernel wants it to delete it.
fn entry(
    family: AddressFamily,
    device: u32,
    attributes: Vec<NeighbourAttribute>,
) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.family = family;
    message.header.ifindex = device;
    if family == AddressFamily::Bridge {
        message.header.flags = NeighbourFlags::Own;
    }
    message.attributes = attributes;
    message
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
