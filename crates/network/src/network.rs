//! The whole pod network of a node: applies a plan, and removes what was applied.

use std::net::Ipv4Addr;

use kennel_core::cidr::Cidr;
use kennel_core::pod_network::plan::{Plan, plan};
use kennel_core::pod_network::{Member, Mode};

use crate::kernel::routes::Devices;
use crate::kernel::{HostRoute, Kernel, OVERHEAD, Underlay};
use crate::lock::Lock;
use crate::masquerade::{self, Masquerade, Rules};
use crate::{Error, cni, probe, sysctl};

/// Peers on the same link that one probe asks. One answer suffices.
const PROBES_MAX: usize = 3;

/// See the [module](self). Dropping it leaves everything as it is: traffic flows while the agent is down.
pub struct Network {
    kernel: Kernel,
    masquerade: Masquerade,
    _lock: Lock,
}

/// What was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    pub underlay: Underlay,
    /// Of pods.
    pub mtu: u32,
    pub plan: Plan,
}

impl Network {
    /// Fails if another agent of this network namespace has one.
    pub fn open() -> Result<Self, Error> {
        Ok(Self {
            _lock: Lock::take()?,
            kernel: Kernel::open()?,
            masquerade: Masquerade::default(),
        })
    }

    /// The device with the node's address.
    pub async fn underlay(&self, address: Ipv4Addr) -> Result<Underlay, Error> {
        self.kernel.underlay(address).await
    }

    /// The route of somebody else that the pods' range overlaps, if there is one.
    pub async fn overlap(&self, cluster: Cidr) -> Result<(), Error> {
        let routes = self.kernel.routes().await?;
        match overlapping(&routes, cluster) {
            Some(route) => Err(Error::Overlap {
                cluster: cluster.to_string(),
                route: route.destination.to_string(),
            }),
            None => Ok(()),
        }
    }

    /// Makes the kernel's state that of the plan. Repeating it after a failure continues where it ended.
    pub async fn apply<'a>(
        &mut self,
        own: &Member,
        others: impl IntoIterator<Item = &'a Member>,
        cluster: Cidr,
    ) -> Result<Applied, Error> {
        self.overlap(cluster).await?;
        let underlay = self.kernel.underlay(own.address).await?;
        let plan = plan(own, others);
        let mtu = match own.mode {
            Mode::HostGw => underlay.mtu,
            Mode::Auto | Mode::Vxlan => underlay.mtu.saturating_sub(OVERHEAD),
        };
        sysctl::set(sysctl::FORWARDING, "1")?;
        let vxlan = if own.mode.has_vxlan() {
            let addresses = [own.tunnel_address(), own.probe_address()];
            let mac = own.tunnel_mac();
            Some(
                self.kernel
                    .ensure_vxlan(&underlay, mac, mtu, &addresses)
                    .await?,
            )
        } else {
            self.kernel.remove_vxlan().await?;
            None
        };
        if let Some(vxlan) = vxlan {
            self.kernel.set_neighbours(&plan, vxlan).await?;
        }
        let rules = Rules {
            cluster,
            pods: own.range,
            vxlan,
        };
        self.masquerade.apply(&rules, &plan.direct_nodes)?;
        let devices = Devices {
            underlay: underlay.index,
            vxlan,
        };
        self.kernel.set_routes(plan.routes.iter(), devices).await?;
        Ok(Applied {
            underlay,
            mtu,
            plan,
        })
    }

    /// Whether the link carries packets of pods, by probes to some of its other nodes.
    pub async fn probe(own: &Member, peers: &[Ipv4Addr]) -> Result<bool, Error> {
        for peer in peers.iter().take(PROBES_MAX) {
            let answers = probe::answers(own.probe_address(), *peer).await;
            let answers = answers.map_err(|error| Error::Kernel {
                what: format!("probe the link to {peer}"),
                error,
            })?;
            if answers {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Routes of single addresses that lead to a device are those of pods, which an earlier agent has started.
fn overlapping(routes: &[HostRoute], cluster: Cidr) -> Option<&HostRoute> {
    routes.iter().find(|route| {
        let is_default = route.destination.bits() == 0;
        !route.is_ours && !route.is_host && !is_default && route.destination.overlaps(cluster)
    })
}

/// Removes everything that agents of this network namespace made, and our CNI configurations in these places. Returns what was
/// removed, for people.
pub async fn cleanup(places: &[cni::Places]) -> Result<Vec<String>, Error> {
    let _lock = Lock::take()?;
    let kernel = Kernel::open()?;
    let mut removed = Vec::new();
    for place in places {
        if place.remove()? {
            removed.push("the CNI configuration".to_owned());
        }
    }
    if masquerade::remove()? {
        removed.push(format!("the nftables table {}", masquerade::TABLE));
    }
    let routes = kernel.remove_routes().await?;
    if kernel.remove_vxlan().await? {
        removed.push(format!("the device {}", crate::kernel::DEVICE));
    }
    if routes > 0 {
        removed.push(format!("{routes} routes"));
    }
    Ok(removed)
}
