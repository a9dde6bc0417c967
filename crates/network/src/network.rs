//! The whole pod network of a node: applies a plan, and removes what was applied.

use std::net::Ipv4Addr;
use std::sync::Arc;

use kennel_core::cidr::Cidr;
use kennel_core::pod_network::plan::{Plan, plan};
use kennel_core::pod_network::{Member, Mode};

use crate::kernel::routes::Devices;
use crate::kernel::{Kernel, OVERHEAD, Underlay};
use crate::lock::Lock;
use crate::masquerade::{self, Masquerade, Rules};
use crate::{Error, cni, host_ports, overlap, probe, sysctl};

/// Peers on the same link that one probe asks. One answer suffices.
const PROBES_MAX: usize = 3;

/// See the [module](self). Dropping it leaves everything as it is: traffic flows while the agent is down.
pub struct Network {
    kernel: Kernel,
    masquerade: Masquerade,
    /// There is a network: this agent has applied a plan, or an earlier one has.
    stands: bool,
    /// What the kernel has, unless the last change failed.
    current: Option<Current>,
    _lock: Lock,
}

/// The plan as applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    pub underlay: Underlay,
    /// Of pods.
    pub mtu: u32,
    pub plan: Arc<Plan>,
}

struct Current {
    own: Member,
    rules: Rules,
    applied: Applied,
}

impl Network {
    /// Fails if another agent of this network namespace has one.
    pub fn open() -> Result<Self, Error> {
        Ok(Self {
            _lock: Lock::take()?,
            kernel: Kernel::open()?,
            masquerade: Masquerade::default(),
            stands: false,
            current: None,
        })
    }

    /// The device with the node's address.
    pub async fn underlay(&self, address: Ipv4Addr) -> Result<Underlay, Error> {
        self.kernel.underlay(address).await
    }

    /// Fails with [`Error::Overlap`] if the pods' range overlaps a route of somebody else.
    pub async fn overlap(&self, cluster: Cidr) -> Result<(), Error> {
        let routes = self.kernel.routes().await?;
        overlap::of_pods(&routes, cluster)
    }

    /// Changes what differs from the last time: one node's change costs one node's change. Does not look at what others have
    /// changed.
    pub async fn update<'a>(
        &mut self,
        own: &Member,
        others: impl IntoIterator<Item = &'a Member>,
        cluster: Cidr,
    ) -> Result<Applied, Error> {
        // A change that failed may have been applied in part.
        match self.current.take() {
            Some(current) if current.own == *own && current.rules.cluster == cluster => {
                self.change(current, others).await
            }
            _ => self.apply(own, others, cluster).await,
        }
    }

    async fn change<'a>(
        &mut self,
        mut current: Current,
        others: impl IntoIterator<Item = &'a Member>,
    ) -> Result<Applied, Error> {
        let plan = plan(&current.own, others);
        let (before, rules) = (&current.applied.plan, &current.rules);
        if let Some(vxlan) = rules.vxlan {
            self.kernel.change_neighbours(before, &plan, vxlan).await?;
        }
        self.masquerade.apply(rules, &plan.direct_nodes)?;
        let devices = Devices {
            underlay: current.applied.underlay.index,
            vxlan: rules.vxlan,
        };
        self.kernel
            .change_routes(&before.routes, &plan.routes, devices)
            .await?;
        current.applied.plan = Arc::new(plan);
        let applied = current.applied.clone();
        self.current = Some(current);
        Ok(applied)
    }

    /// Makes the kernel's state that of the plan, whatever it is. A new network is refused if its range overlaps a route. One
    /// that stands stays after a failure, and repeating this continues where it ended; of one that cannot be set up, nothing is left.
    pub async fn apply<'a>(
        &mut self,
        own: &Member,
        others: impl IntoIterator<Item = &'a Member>,
        cluster: Cidr,
    ) -> Result<Applied, Error> {
        if !self.stands {
            self.stands = exists(&self.kernel).await?;
        }
        // A network that stands carries packets, whatever routes were added since: the caller says so.
        if !self.stands {
            self.overlap(cluster).await?;
        }
        self.current = None;
        let applied = self.apply_all(own, others, cluster).await;
        match &applied {
            Ok(_) => self.stands = true,
            Err(_) if !self.stands => self.undo().await,
            Err(_) => {}
        }
        applied
    }

    /// Removes what a failed start has made.
    async fn undo(&mut self) {
        self.masquerade = Masquerade::default();
        if let Err(error) = remove(&self.kernel).await {
            tracing::debug!("cannot remove what was made of the pod network: {error}");
        }
    }

    async fn apply_all<'a>(
        &mut self,
        own: &Member,
        others: impl IntoIterator<Item = &'a Member>,
        cluster: Cidr,
    ) -> Result<Applied, Error> {
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
        let applied = Applied {
            underlay,
            mtu,
            plan: Arc::new(plan),
        };
        self.current = Some(Current {
            own: own.clone(),
            rules,
            applied: applied.clone(),
        });
        Ok(applied)
    }

    /// Returns when another program has changed the rules, which the next [`Self::apply`] writes again: those who load a
    /// firewall often delete all tables.
    pub async fn changed_by_others(&mut self) {
        self.masquerade.changed_by_others().await;
        tracing::warn!(
            "another program changed the nftables table {}: writing it again",
            masquerade::TABLE
        );
    }

    /// Whether the link carries packets of pods, by probes to some of its other nodes: of each, its address and that of the
    /// probe.
    pub async fn probe(own: &Member, peers: &[(Ipv4Addr, Ipv4Addr)]) -> Result<Probed, Error> {
        let mut found = Probed::NoNode;
        for (node, probed) in peers.iter().take(PROBES_MAX) {
            if answers(own.probe_address(), *probed).await? {
                return Ok(Probed::Carries);
            }
            if found == Probed::NoNode && answers(own.address, *node).await? {
                found = Probed::Drops;
            }
        }
        Ok(found)
    }
}

/// Whether an agent has made a network, in this run or an earlier one.
async fn exists(kernel: &Kernel) -> Result<bool, Error> {
    let routes = kernel.routes().await?;
    Ok(kernel.vxlan_index().await?.is_some()
        || routes.iter().any(|route| route.is_ours)
        || masquerade::exists()?)
}

/// Fails with [`Error::Overlap`] if this machine would refuse a new network for its routes. One that stands stays.
pub async fn refuse_overlap(cluster: Cidr) -> Result<(), Error> {
    let kernel = Kernel::open()?;
    if exists(&kernel).await? {
        return Ok(());
    }
    overlap::of_pods(&kernel.routes().await?, cluster)
}

/// What probes have found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probed {
    /// A node has answered a pod's address.
    Carries,
    /// Nodes answer this node's address, and no pod's.
    Drops,
    /// No node answers at all: they may be down.
    NoNode,
}

async fn answers(from: Ipv4Addr, to: Ipv4Addr) -> Result<bool, Error> {
    let answers = probe::answers(from, to).await;
    answers.map_err(|error| Error::Kernel {
        what: format!("probe the link to {to}"),
        error,
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
    removed.extend(remove(&kernel).await?);
    if host_ports::remove_unused() {
        removed.push("the chains of host ports".to_owned());
    }
    Ok(removed)
}

/// Removes everything from the kernel, as far as it lets us. Returns what was removed, for people, or the first refusal.
async fn remove(kernel: &Kernel) -> Result<Vec<String>, Error> {
    let (routes, vxlan) = (kernel.remove_routes().await, kernel.remove_vxlan().await);
    let table = masquerade::remove();
    let mut removed = Vec::new();
    if table? {
        removed.push(format!("the nftables table {}", masquerade::TABLE));
    }
    if vxlan? {
        removed.push(format!("the device {}", crate::kernel::DEVICE));
    }
    let routes = routes?;
    if routes > 0 {
        removed.push(format!("{routes} routes"));
    }
    Ok(removed)
}
