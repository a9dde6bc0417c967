//! Routes. Ours have a protocol number of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use futures_util::TryStreamExt as _;
use kennel_core::cidr::Cidr;
use kennel_core::pod_network::plan::{Device, Route};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteType,
};
use rtnetlink::RouteMessageBuilder;
use rustix::io::Errno;

use super::Kernel;
use crate::Error;

/// The protocol of our routes, as `ip route` shows it: a number that nobody else has in `/etc/iproute2/rt_protos`.
pub const PROTOCOL: u8 = 75;

/// A route of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRoute {
    pub destination: Cidr,
    pub via: Option<Ipv4Addr>,
    pub source: Option<Ipv4Addr>,
    /// The index of the device.
    pub device: u32,
    pub is_ours: bool,
    /// To one address on a device, as CNI plugins make for each pod.
    pub is_host: bool,
    message: RouteMessage,
}

#[cfg(test)]
impl HostRoute {
    /// Somebody's.
    pub(crate) fn to(destination: Cidr) -> Self {
        Self {
            destination,
            via: None,
            source: None,
            device: 0,
            is_ours: false,
            is_host: false,
            message: RouteMessage::default(),
        }
    }
}

/// The indexes of the two devices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Devices {
    pub(crate) underlay: u32,
    pub(crate) vxlan: Option<u32>,
}

impl Devices {
    fn index(self, device: Device) -> Option<u32> {
        match device {
            Device::Underlay => Some(self.underlay),
            Device::Vxlan => self.vxlan,
        }
    }
}

impl Kernel {
    /// The routes of the main table.
    pub async fn routes(&self) -> Result<Vec<HostRoute>, Error> {
        let query = RouteMessageBuilder::<Ipv4Addr>::new().build();
        let all: Vec<RouteMessage> = self
            .handle
            .route()
            .get(query)
            .execute()
            .try_collect()
            .await
            .map_err(Error::kernel("read the routes of this machine"))?;
        Ok(all.into_iter().filter_map(host_route).collect())
    }

    /// Adds, replaces and deletes our routes until they are those wanted.
    pub(crate) async fn set_routes(
        &self,
        wanted: impl Iterator<Item = &Route>,
        devices: Devices,
    ) -> Result<(), Error> {
        let mut missing: BTreeMap<Cidr, &Route> =
            wanted.map(|route| (route.destination, route)).collect();
        let ours = self
            .routes()
            .await?
            .into_iter()
            .filter(|route| route.is_ours);
        let mut stale = Vec::new();
        for route in ours {
            let same = missing.get(&route.destination).is_some_and(|wanted| {
                devices.index(wanted.device) == Some(route.device)
                    && route.via == Some(wanted.via)
                    && (wanted.source.is_none() || wanted.source == route.source)
            });
            if same {
                missing.remove(&route.destination);
            } else if !missing.contains_key(&route.destination) {
                stale.push(route);
            }
        }
        for route in missing.values() {
            self.replace_route(route, devices).await?;
        }
        for route in stale {
            self.delete_route(route.destination, route.message).await?;
        }
        Ok(())
    }

    /// Changes the routes from those of one plan, which the kernel has, to those of another.
    pub(crate) async fn change_routes(
        &self,
        before: &BTreeSet<Route>,
        after: &BTreeSet<Route>,
        devices: Devices,
    ) -> Result<(), Error> {
        let mut replaced = BTreeSet::new();
        for route in after.difference(before) {
            self.replace_route(route, devices).await?;
            replaced.insert(route.destination);
        }
        let gone = before.difference(after);
        for route in gone.filter(|route| !replaced.contains(&route.destination)) {
            if let Some(device) = devices.index(route.device) {
                let message = message_of(route, device);
                self.delete_route(route.destination, message).await?;
            }
        }
        Ok(())
    }

    async fn replace_route(&self, route: &Route, devices: Devices) -> Result<(), Error> {
        let Some(device) = devices.index(route.device) else {
            return Ok(());
        };
        let what = format!("add the route {} via {}", route.destination, route.via);
        let message = message_of(route, device);
        let added = self.handle.route().add(message).replace().execute();
        added.await.map_err(Error::kernel(what))
    }

    async fn delete_route(&self, destination: Cidr, message: RouteMessage) -> Result<(), Error> {
        let what = format!("delete the route {destination}");
        let deleted = self.handle.route().del(message).execute();
        match deleted.await.map_err(Error::kernel(what)) {
            Err(error) if error.is(Errno::SRCH.raw_os_error()) => Ok(()),
            deleted => deleted,
        }
    }

    /// Deletes all our routes. Returns how many there were.
    pub async fn remove_routes(&self) -> Result<usize, Error> {
        let mut count = 0;
        let all = self.routes().await?.into_iter();
        for route in all.filter(|route| route.is_ours) {
            self.delete_route(route.destination, route.message).await?;
            count += 1;
        }
        Ok(count)
    }
}

fn message_of(route: &Route, device: u32) -> RouteMessage {
    let mut message = RouteMessageBuilder::<Ipv4Addr>::new()
        .destination_prefix(route.destination.base(), route.destination.bits())
        .gateway(route.via)
        .output_interface(device)
        .protocol(RouteProtocol::from(PROTOCOL))
        .onlink();
    if let Some(source) = route.source {
        message = message.pref_source(source);
    }
    message.build()
}

fn host_route(message: RouteMessage) -> Option<HostRoute> {
    let header = &message.header;
    if header.table != RouteHeader::RT_TABLE_MAIN || header.kind != RouteType::Unicast {
        return None;
    }
    let mut destination = Ipv4Addr::UNSPECIFIED;
    let (mut via, mut source, mut device) = (None, None, 0);
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Destination(RouteAddress::Inet(address)) => destination = *address,
            RouteAttribute::Gateway(RouteAddress::Inet(address)) => via = Some(*address),
            RouteAttribute::PrefSource(RouteAddress::Inet(address)) => source = Some(*address),
            RouteAttribute::Oif(index) => device = *index,
            _ => {}
        }
    }
    Some(HostRoute {
        destination: Cidr::containing(destination, header.destination_prefix_length),
        via,
        source,
        device,
        is_ours: header.protocol == RouteProtocol::from(PROTOCOL),
        is_host: header.destination_prefix_length == 32 && via.is_none(),
        message,
    })
}
