//! Checks of what may happen to packets on their way: sizes, checksums, firewalls and filters.

#[cfg(test)]
mod tests;

use serde_json::Value;

use super::Finding;
use crate::firewall::Legacy;
use crate::kernel::{DEVICE, HostRoute, Kernel, OVERHEAD};
use crate::{Error, sysctl};

/// Devices that a line names.
const NAMES_MAX: usize = 3;
/// The first kernel that computes checksums of masqueraded VXLAN packets correctly.
const CHECKSUMS: (u32, u32) = (5, 7);

/// The device that VXLAN uses: its name, its MTU, and that of the VXLAN device.
pub(crate) struct VxlanMtu {
    pub(crate) underlay: String,
    pub(crate) underlay_mtu: u32,
    pub(crate) mtu: u32,
}

/// The devices of direct routes to nodes, or of the default route where there are none: names and MTUs.
pub(super) async fn links(
    kernel: &Kernel,
    routes: &[HostRoute],
) -> Result<Vec<(String, u32)>, Error> {
    let vxlan = kernel.vxlan_index().await?;
    let indexes = |wanted: fn(&HostRoute) -> bool| -> std::collections::BTreeSet<u32> {
        let wanted = routes.iter().filter(|route| wanted(route));
        let indexes = wanted.map(|route| route.device);
        indexes.filter(|index| Some(*index) != vxlan).collect()
    };
    let mut devices = indexes(|route| route.is_ours);
    if devices.is_empty() {
        devices = indexes(|route| route.destination.bits() == 0);
    }
    let mut links = Vec::new();
    for index in devices {
        links.extend(kernel.device(index).await?);
    }
    Ok(links)
}

pub(super) fn mtu(
    configuration: Option<&Value>,
    vxlan: Option<&VxlanMtu>,
    links: &[(String, u32)],
) -> Finding {
    let pods = configuration.and_then(|one| one["plugins"][0]["mtu"].as_u64());
    let Some(vxlan) = vxlan else {
        return direct_mtu(pods, links);
    };
    let fits = vxlan.underlay_mtu.saturating_sub(OVERHEAD);
    let wrong = |what: &str, value: u64| {
        Finding::problem(format!(
            "MTU: {what} has {value} and {} has {}, of which VXLAN takes {OVERHEAD}: larger packets are lost. Restart the agent, \
             then the pods",
            vxlan.underlay, vxlan.underlay_mtu
        ))
    };
    match pods {
        _ if vxlan.mtu > fits => wrong("the VXLAN device", vxlan.mtu.into()),
        Some(pods) if pods > fits.into() => wrong("each new pod", pods),
        _ => Finding::ok(format!(
            "MTU: pods {}, {} {}",
            pods.unwrap_or(fits.into()),
            vxlan.underlay,
            vxlan.underlay_mtu
        )),
    }
}

/// With direct routes only, pods have that of the link.
fn direct_mtu(pods: Option<u64>, links: &[(String, u32)]) -> Finding {
    let smallest = links.iter().min_by_key(|(_, mtu)| *mtu);
    match (pods, smallest) {
        (Some(pods), Some((name, mtu))) if pods > (*mtu).into() => Finding::problem(format!(
            "MTU: each new pod has {pods} and {name} has {mtu}: larger packets are lost. Restart the agent, then the pods"
        )),
        (Some(pods), Some((name, mtu))) => Finding::ok(format!(
            "MTU: pods {pods}, {name} {mtu}, direct routes only"
        )),
        _ => Finding::ok("MTU: direct routes only, so pods have that of the link"),
    }
}

/// `refusing` are chains of nftables.
pub(super) fn forwarded(refusing: &[String], legacy: Legacy) -> Finding {
    let mut refusing = refusing.to_vec();
    if legacy == Legacy::Refuses {
        refusing.push("iptables-legacy, chain FORWARD".to_owned());
    }
    if !refusing.is_empty() {
        return Finding::problem(format!(
            "firewall: {} drops forwarded packets that no rule of it accepts: accept those from and to the pods' range there \
             (with iptables: iptables -I FORWARD -s RANGE -j ACCEPT, and the same with -d; with Docker, in the chain DOCKER-USER; \
             with firewalld: firewall-cmd --permanent --zone=trusted --add-source=RANGE)",
            refusing.join("; ")
        ));
    }
    if legacy == Legacy::NotSeen {
        return Finding::ok(
            "firewall: nftables forwards packets; there are rules of iptables-legacy, too, which were not seen: see \
             `iptables-legacy -S FORWARD`",
        );
    }
    Finding::ok("firewall: forwards packets")
}

/// Says something only of kernels that need a setting, which cannot be read.
pub(super) fn checksums() -> Option<Finding> {
    checksums_of(&sysctl::read("kernel/osrelease").ok()?)
}

fn checksums_of(release: &str) -> Option<Finding> {
    let version = version(release)?;
    (version < CHECKSUMS).then(|| {
        Finding::problem(format!(
            "checksums: the kernel {release} is older than {}.{} and computes those of masqueraded VXLAN packets wrongly: \
             ethtool -K {DEVICE} tx-checksum-ip-generic off, each time that the device is made",
            CHECKSUMS.0, CHECKSUMS.1
        ))
    })
}

pub(super) fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|one: char| !one.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// The stricter setting of all devices and of a device is the device's. Strict filters drop nothing of the pod network, so that no
/// setting is a problem: packets from other nodes' pods come by the device of the route back to them, because both ends decide alike
/// for direct routes or VXLAN; packets of nodes in VXLAN have the address that is routed there; and each pod has a route of its own.
pub(super) fn reverse_path() -> Finding {
    let read = |name: &str| sysctl::read(&format!("net/ipv4/conf/{name}/rp_filter"));
    let all = match read("all") {
        Ok(all) => all,
        Err(error) => {
            return Finding::problem(format!("reverse-path filter: cannot be read: {error}"));
        }
    };
    let devices = std::fs::read_dir("/proc/sys/net/ipv4/conf");
    let devices = devices.into_iter().flatten().flatten();
    let mut settings: Vec<(String, String)> = devices
        .filter_map(|device| device.file_name().into_string().ok())
        .filter(|name| !["all", "default", "lo"].contains(&name.as_str()))
        .filter_map(|name| Some((read(&name).ok()?, name)))
        .map(|(setting, name)| (setting.max(all.clone()), name))
        .collect();
    settings.sort();
    let shown = filters(&all, &settings);
    Finding::ok(format!(
        "reverse-path filter: {shown}, which the pod network works with"
    ))
}

/// Settings and the devices that have them.
fn filters(all: &str, settings: &[(String, String)]) -> String {
    let kind = |setting: &str| match setting {
        "0" => "off",
        "1" => "strict",
        "2" => "loose",
        _ => "unknown",
    };
    let groups: Vec<&[(String, String)]> =
        settings.chunk_by(|one, other| one.0 == other.0).collect();
    match groups.as_slice() {
        [] => kind(all).to_owned(),
        [one] => kind(&one[0].0).to_owned(),
        more => {
            let shown = more.iter().map(|group| {
                let names = group.iter().map(|(_, name)| name.as_str());
                let mut names: Vec<&str> = names.take(NAMES_MAX).collect();
                if group.len() > names.len() {
                    names.push("…");
                }
                format!("{} on {}", kind(&group[0].0), names.join(", "))
            });
            shown.collect::<Vec<_>>().join("; ")
        }
    }
}
