//! The upstream resolvers for names outside the zone.

use std::net::{IpAddr, SocketAddr};

const FILE: &str = "/etc/resolv.conf";
const PORT: u16 = 53;

/// The name servers in `/etc/resolv.conf`.
pub fn system_resolvers() -> Vec<SocketAddr> {
    match std::fs::read_to_string(FILE) {
        Ok(text) => read(&text),
        Err(error) => {
            tracing::warn!("cannot read {FILE}; only cluster names are resolved: {error}");
            Vec::new()
        }
    }
}

fn read(text: &str) -> Vec<SocketAddr> {
    let mut upstreams = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if words.next() != Some("nameserver") {
            continue;
        }
        let address = words.next().and_then(|word| word.parse::<IpAddr>().ok());
        upstreams.extend(address.map(|address| SocketAddr::new(address, PORT)));
    }
    upstreams
}

/// Removes this server's own address, which would make a forwarding loop.
pub(crate) fn without_self(upstreams: &[SocketAddr], us: SocketAddr) -> Vec<SocketAddr> {
    let is_self = |resolver: &SocketAddr| {
        let here = resolver.ip() == us.ip()
            || us.ip().is_unspecified()
                && (resolver.ip().is_loopback() || resolver.ip().is_unspecified());
        here && resolver.port() == us.port()
    };
    let (own, others): (Vec<_>, Vec<_>) = upstreams.iter().partition(|r| is_self(r));
    if !own.is_empty() {
        tracing::warn!("ignoring upstream {us}: it is this server");
    }
    others
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolv_conf_is_parsed() {
        let text = "# comment\nsearch a b\nnameserver 192.0.2.1\nnameserver\t2001:db8::1\n\
                    nameserver nonsense\noptions ndots:5\n";
        let expected: Vec<SocketAddr> = ["192.0.2.1:53", "[2001:db8::1]:53"]
            .map(|address| address.parse().unwrap())
            .into();
        assert_eq!(read(text), expected);
    }

    #[test]
    fn own_addresses_are_removed() {
        let check = |us: &str, other: &str, asked: bool| {
            let other = [other.parse().unwrap()];
            let left = without_self(&other, us.parse().unwrap());
            assert_eq!(left.len() == 1, asked, "{us} {other:?}");
        };
        check("127.0.0.1:53", "127.0.0.1:53", false);
        check("127.0.0.1:5353", "127.0.0.1:53", true);
        check("0.0.0.0:53", "127.0.0.53:53", false);
        check("0.0.0.0:53", "192.0.2.1:53", true);
    }
}
