//! Where etcd is, how to log in to it, and the limits of the store.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::memory::Limits;
use crate::seal::Seal;

/// What an address of a store on etcd begins with.
const SCHEME: &str = "etcd://";

/// Upstream's interval.
const COMPACT_INTERVAL: Duration = Duration::from_mins(5);

/// The members of an etcd cluster, as `HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints(Vec<String>);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointsError {
    #[error("the address of a store begins with etcd://, as in etcd://127.0.0.1:2379")]
    Scheme,
    #[error("{0:?} is not HOST:PORT")]
    Member(String),
}

impl std::str::FromStr for Endpoints {
    type Err = EndpointsError;

    /// Parses `etcd://HOST:PORT,HOST:PORT`.
    fn from_str(text: &str) -> Result<Self, EndpointsError> {
        let members = text.strip_prefix(SCHEME).ok_or(EndpointsError::Scheme)?;
        let members = members.trim_end_matches('/').split(',');
        let members = members.map(|member| {
            let parts = member.rsplit_once(':');
            let is_valid = parts.is_some_and(|(host, port)| {
                let is_host = !host.is_empty() && !host.contains(['/', '@', ' ']);
                is_host && port.parse::<u16>().is_ok_and(|port| port > 0)
            });
            if is_valid {
                Ok(member.to_owned())
            } else {
                Err(EndpointsError::Member(member.to_owned()))
            }
        });
        members.collect::<Result<_, _>>().map(Self)
    }
}

impl std::fmt::Display for Endpoints {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{SCHEME}{}", self.0.join(","))
    }
}

impl Endpoints {
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// The first member that another machine can be between.
    pub(super) fn remote(&self) -> Option<&str> {
        self.iter().find(|member| !is_loopback(host(member)))
    }
}

/// The host of `HOST:PORT`, without the brackets of an IPv6 address.
pub(super) fn host(member: &str) -> &str {
    let host = member.rsplit_once(':').map_or(member, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// The files of TLS. They are read again for every connection.
#[derive(Clone, Debug)]
pub struct EtcdTls {
    /// The certificates of the authorities that signed etcd's.
    pub ca_file: PathBuf,
    /// The client certificate and its key.
    pub client: Option<(PathBuf, PathBuf)>,
}

/// A user of etcd.
#[derive(Clone)]
pub struct EtcdUser {
    pub name: String,
    pub password: String,
}

impl std::fmt::Debug for EtcdUser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("EtcdUser").field(&self.name).finish()
    }
}

/// The server that uses this etcd; only one does at a time.
#[derive(Clone, Debug)]
pub struct Holder {
    /// Stays over restarts, so that a server that was killed need not wait for its own claim to expire.
    pub id: String,
    /// For the error that another server gets.
    pub description: String,
}

#[derive(Clone, Debug)]
pub struct EtcdOptions {
    pub endpoints: Endpoints,
    /// Required unless all members are on this machine.
    pub tls: Option<EtcdTls>,
    pub user: Option<EtcdUser>,
    pub holder: Holder,
    /// The prefix of the keys that are objects. Other keys only count as revisions.
    pub prefix: String,
    /// Key prefixes below [`Self::prefix`] that are another program's. Their keys only count as revisions, too.
    pub ignored: Vec<String>,
    /// Key prefixes that get an index and a history of their own, as in [`Options`](crate::Options).
    pub collections: Vec<String>,
    pub limits: Limits,
    /// Key prefixes whose keys etcd removes so long after they were last written.
    pub expiring: Vec<(String, Duration)>,
    /// How often etcd's history is compacted up to the revision of the time before; none leaves it to others.
    pub compact_every: Option<Duration>,
    /// Encryption of values; none stores them as they are.
    pub seal: Option<Arc<dyn Seal>>,
    /// The file that says over restarts which history of etcd this server has served; none leaves an older state unnoticed that
    /// was restored while the server did not run.
    pub note: Option<PathBuf>,
}

impl EtcdOptions {
    pub fn new(endpoints: Endpoints, holder: Holder) -> Self {
        Self {
            endpoints,
            tls: None,
            user: None,
            holder,
            prefix: String::new(),
            ignored: Vec::new(),
            collections: Vec::new(),
            limits: Limits::default(),
            expiring: Vec::new(),
            compact_every: Some(COMPACT_INTERVAL),
            seal: None,
            note: None,
        }
    }

    /// The lifetime of this key, if it has one.
    pub(super) fn lifetime(&self, key: &str) -> Option<Duration> {
        let mut rows = self.expiring.iter();
        let row = rows.find(|(prefix, _)| key.starts_with(prefix.as_str()));
        row.map(|(_, lifetime)| *lifetime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_members() {
        let parse = |text: &str| text.parse::<Endpoints>();
        let two = parse("etcd://127.0.0.1:2379,[::1]:2379").unwrap();
        assert_eq!(
            two.iter().collect::<Vec<_>>(),
            ["127.0.0.1:2379", "[::1]:2379"]
        );
        assert_eq!(two.to_string(), "etcd://127.0.0.1:2379,[::1]:2379");
        assert_eq!(two.remote(), None);
        let far = parse("etcd://localhost:2379,10.0.0.2:2379").unwrap();
        assert_eq!(far.remote(), Some("10.0.0.2:2379"));
        assert_eq!(parse("http://127.0.0.1:2379"), Err(EndpointsError::Scheme));
        for wrong in [
            "etcd://",
            "etcd://host",
            "etcd://host:0",
            "etcd://a:1,,b:2",
            "etcd://u@h:1",
        ] {
            assert!(
                matches!(parse(wrong), Err(EndpointsError::Member(_))),
                "{wrong}"
            );
        }
        assert_eq!(host("[::1]:2379"), "::1");
        assert_eq!(host("a.example:2379"), "a.example");
    }
}
