//! The flags of DNS servers, and of the addresses that a server tells pods.

use std::net::{AddrParseError, IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args as ClapArgs;
use kennel_agent::flag_values::{ListenAddressError, listen_address};
use kennel_core::network::Network;

/// The word that switches something off.
const OFF: &str = "off";

/// The address that a server advertises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advertise {
    Off,
    Address(IpAddr),
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AdvertiseError {
    #[error("it is neither an address such as 192.0.2.1 nor `off`")]
    Form,
    #[error("no other machine and no pod reaches {0}; use an address of a network, or `off`")]
    Unreachable(IpAddr),
}

impl FromStr for Advertise {
    type Err = AdvertiseError;

    fn from_str(text: &str) -> Result<Self, AdvertiseError> {
        if text == OFF {
            return Ok(Self::Off);
        }
        let address: IpAddr = text.parse().map_err(|_| AdvertiseError::Form)?;
        if address.is_loopback() || address.is_unspecified() || address.is_multicast() {
            return Err(AdvertiseError::Unreachable(address));
        }
        Ok(Self::Address(address))
    }
}

/// Where a server serves DNS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DnsListen {
    Off,
    Address(SocketAddr),
}

fn dns_listen(text: &str) -> Result<DnsListen, ListenAddressError> {
    if text == OFF {
        return Ok(DnsListen::Off);
    }
    listen_address(text).map(DnsListen::Address)
}

/// The DNS server of `kennel server` and `kennel up`.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct ServerDnsArgs {
    /// Address to serve DNS on, over UDP and TCP, for the Service `kube-system/kube-dns`; or `off`
    /// [default: port 10053 of the advertised address, or a free port if that is taken]
    #[arg(long, value_name = "ADDRESS", value_parser = dns_listen)]
    pub(crate) dns_listen: Option<DnsListen>,

    #[command(flatten)]
    pub(crate) zone: DnsZoneArgs,
}

/// `kennel dns`.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct DnsArgs {
    /// Kubeconfig of the cluster; its current context is used
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Address to serve DNS on, over UDP and TCP; port 0 chooses a free port
    #[arg(long, default_value = "127.0.0.1:10053", value_name = "ADDRESS", value_parser = listen_address)]
    pub(crate) dns_listen: SocketAddr,

    #[command(flatten)]
    pub(crate) zone: DnsZoneArgs,
}

#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct DnsZoneArgs {
    /// DNS domain of the cluster
    #[arg(long, default_value = "cluster.local", value_name = "DOMAIN")]
    pub(crate) cluster_domain: String,

    /// Upstream resolver for other domains, as address or address:port (may be repeated)
    /// [default: the nameservers in /etc/resolv.conf]
    #[arg(long, value_name = "RESOLVER", value_parser = resolver)]
    pub(crate) dns_upstream: Vec<SocketAddr>,

    /// Network whose clients may resolve names of other domains, beside this machine, nodes and the pod networks of nodes
    /// (may be repeated)
    #[arg(long, value_name = "CIDR")]
    pub(crate) dns_recursion_for: Vec<Network>,
}

/// A resolver's address; the default port is 53.
fn resolver(text: &str) -> Result<SocketAddr, AddrParseError> {
    let without_port = || text.parse().map(|address: IpAddr| (address, 53).into());
    text.parse().or_else(|_| without_port())
}
