//! The device with the node's address, and the VXLAN device.

use std::net::{IpAddr, Ipv4Addr};

use futures_util::TryStreamExt as _;
use kennel_core::cidr::Cidr;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{InfoData, InfoVxlan, LinkAttribute, LinkInfo, LinkMessage};
use rtnetlink::{LinkUnspec, LinkVxlan};
use rustix::io::Errno;

use super::{DEVICE, Kernel, PORT, VNI};
use crate::Error;
use crate::doctor::VxlanMtu;

/// The device with the node's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Underlay {
    pub index: u32,
    pub name: String,
    pub mtu: u32,
    pub address: Ipv4Addr,
    /// The addresses that it reaches without a router.
    pub link: Cidr,
}

impl Kernel {
    pub async fn underlay(&self, address: Ipv4Addr) -> Result<Underlay, Error> {
        let addresses = self.addresses().await?;
        let found = addresses.iter().find_map(|message| {
            let own = address_of(message)?;
            (own == address).then_some((message.header.index, message.header.prefix_len))
        });
        let (index, bits) = found.ok_or(Error::NoDevice(address))?;
        let failed = || Error::kernel("read the network devices");
        let mut links = self.handle.link().get().match_index(index).execute();
        let link = links.try_next().await.map_err(failed())?;
        let link = link.ok_or(Error::NoDevice(address))?;
        let (name, mtu) = name_and_mtu(&link);
        Ok(Underlay {
            index,
            name,
            mtu,
            address,
            link: Cidr::containing(address, bits),
        })
    }

    /// The MTU of the VXLAN device and of the one below it, if there is one.
    pub(crate) async fn vxlan_underlay(&self) -> Result<Option<VxlanMtu>, Error> {
        let Some(link) = self.vxlan().await? else {
            return Ok(None);
        };
        let below = properties(&link).find_map(|property| match property {
            InfoVxlan::Link(index) => Some(*index),
            _ => None,
        });
        let (_, mtu) = name_and_mtu(&link);
        let Some(below) = below else {
            return Ok(None);
        };
        let mut links = self.handle.link().get().match_index(below).execute();
        let below = links
            .try_next()
            .await
            .map_err(Error::kernel("read the network devices"))?;
        Ok(below.map(|below| {
            let (underlay, underlay_mtu) = name_and_mtu(&below);
            VxlanMtu {
                underlay,
                underlay_mtu,
                mtu,
            }
        }))
    }

    /// The name and the MTU of a device.
    pub(crate) async fn device(&self, index: u32) -> Result<Option<(String, u32)>, Error> {
        let mut links = self.handle.link().get().match_index(index).execute();
        let link = links.try_next().await;
        let link = link.map_err(Error::kernel("read the network devices"))?;
        Ok(link.as_ref().map(name_and_mtu))
    }

    /// The address that this machine has in VXLAN.
    pub(crate) async fn tunnel_address(&self) -> Result<Option<Ipv4Addr>, Error> {
        let Some(index) = self.vxlan_index().await? else {
            return Ok(None);
        };
        let addresses = self.addresses().await?;
        let own = addresses
            .iter()
            .filter(|message| message.header.index == index);
        // The other one is that of probes, the last of the range.
        Ok(own.filter_map(address_of).min())
    }

    async fn addresses(&self) -> Result<Vec<AddressMessage>, Error> {
        let addresses = self.handle.address().get().execute().try_collect();
        addresses
            .await
            .map_err(Error::kernel("read the addresses of this machine"))
    }

    /// The VXLAN device, if there is one.
    pub async fn vxlan_index(&self) -> Result<Option<u32>, Error> {
        Ok(self.vxlan().await?.map(|link| link.header.index))
    }

    async fn vxlan(&self) -> Result<Option<LinkMessage>, Error> {
        let mut links = self.handle.link().get().match_name(DEVICE).execute();
        match links
            .try_next()
            .await
            .map_err(Error::kernel("read the network devices"))
        {
            Err(error) if error.is(Errno::NODEV.raw_os_error()) => Ok(None),
            found => found,
        }
    }

    /// Makes the VXLAN device, unless it is there as it should be. One that differs is made again, since most of its
    /// properties cannot be changed. Returns its index. Outer packets have no checksum, as RFC 7348 wants it: the kernel computes
    /// wrong ones for datagrams that were forwarded and masqueraded, and the other end drops those.
    pub async fn ensure_vxlan(
        &self,
        underlay: &Underlay,
        mac: [u8; 6],
        mtu: u32,
        addresses: &[Ipv4Addr],
    ) -> Result<u32, Error> {
        let failed = || Error::kernel(format!("create the VXLAN device {DEVICE}"));
        if let Some(link) = self.vxlan().await? {
            if is_as_wanted(&link, underlay, mac) {
                let index = link.header.index;
                let change = LinkUnspec::new_with_index(index).mtu(mtu).up().build();
                self.handle
                    .link()
                    .change(change)
                    .execute()
                    .await
                    .map_err(failed())?;
                self.set_addresses(index, addresses).await?;
                return Ok(index);
            }
            self.handle
                .link()
                .del(link.header.index)
                .execute()
                .await
                .map_err(failed())?;
        }
        let message = LinkVxlan::new(DEVICE, VNI)
            .dev(underlay.index)
            .local(underlay.address)
            .port(PORT)
            .learning(false)
            .udp_csum(false)
            .address(mac.to_vec())
            .mtu(mtu)
            .up()
            .build();
        self.handle
            .link()
            .add(message)
            .execute()
            .await
            .map_err(failed())?;
        let link = self.vxlan().await?.ok_or_else(|| Error::Kernel {
            what: format!("create the VXLAN device {DEVICE}"),
            error: std::io::Error::other("it is not there"),
        })?;
        self.set_addresses(link.header.index, addresses).await?;
        Ok(link.header.index)
    }

    /// Gives a device these addresses and no others.
    async fn set_addresses(&self, index: u32, wanted: &[Ipv4Addr]) -> Result<(), Error> {
        let failed = || Error::kernel(format!("set the addresses of {DEVICE}"));
        for message in self.addresses().await? {
            let address = address_of(&message).filter(|_| message.header.index == index);
            if address.is_some_and(|address| !wanted.contains(&address)) {
                self.handle
                    .address()
                    .del(message)
                    .execute()
                    .await
                    .map_err(failed())?;
            }
        }
        for address in wanted {
            let add = self.handle.address().add(index, IpAddr::V4(*address), 32);
            add.replace().execute().await.map_err(failed())?;
        }
        Ok(())
    }

    /// Removes the VXLAN device. Returns whether there was one.
    pub async fn remove_vxlan(&self) -> Result<bool, Error> {
        let Some(index) = self.vxlan_index().await? else {
            return Ok(false);
        };
        let removed = self.handle.link().del(index).execute().await;
        removed.map_err(Error::kernel(format!("remove the device {DEVICE}")))?;
        Ok(true)
    }
}

fn address_of(message: &AddressMessage) -> Option<Ipv4Addr> {
    let of = |local: bool| {
        message
            .attributes
            .iter()
            .find_map(move |attribute| match attribute {
                AddressAttribute::Local(IpAddr::V4(address)) if local => Some(*address),
                AddressAttribute::Address(IpAddr::V4(address)) if !local => Some(*address),
                _ => None,
            })
    };
    // On point-to-point links, `Address` is the other end.
    of(true).or_else(|| of(false))
}

fn name_and_mtu(link: &LinkMessage) -> (String, u32) {
    let (mut name, mut mtu) = (String::new(), 1500);
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::IfName(value) => name.clone_from(value),
            LinkAttribute::Mtu(value) => mtu = *value,
            _ => {}
        }
    }
    (name, mtu)
}

/// The properties of a VXLAN device.
fn properties(link: &LinkMessage) -> impl Iterator<Item = &InfoVxlan> {
    let infos = link
        .attributes
        .iter()
        .filter_map(|attribute| match attribute {
            LinkAttribute::LinkInfo(infos) => Some(infos),
            _ => None,
        });
    let data = infos.flatten().filter_map(|info| match info {
        LinkInfo::Data(InfoData::Vxlan(data)) => Some(data),
        _ => None,
    });
    data.flatten()
}

fn is_as_wanted(link: &LinkMessage, underlay: &Underlay, mac: [u8; 6]) -> bool {
    let is_mac = |one: &LinkAttribute| matches!(one, LinkAttribute::Address(own) if *own == mac);
    let has_mac = link.attributes.iter().any(is_mac);
    let properties: Vec<&InfoVxlan> = properties(link).collect();
    let wanted = [
        InfoVxlan::Id(VNI),
        InfoVxlan::Link(underlay.index),
        InfoVxlan::Local(underlay.address),
        InfoVxlan::Port(PORT),
        InfoVxlan::UDPCsum(false),
    ];
    has_mac && wanted.iter().all(|one| properties.contains(&one))
}
