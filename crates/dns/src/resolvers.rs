//! Who is asked for names that are not ours.

use std::net::{IpAddr, SocketAddr};

const FILE: &str = "/etc/resolv.conf";
const PORT: u16 = 53;

/// The resolvers of this machine.
pub fn of_this_machine() -> Vec<SocketAddr> {
    match std::fs::read_to_string(FILE) {
        Ok(text) => read(&text),
        Err(error) => {
            tracing::warn!("{FILE} cannot be read, so that no other names are known: {error}");
            Vec::new()
        }
    }
}

fn read(text: &str) -> Vec<SocketAddr> {
    let mut resolvers = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if words.next() != Some("nameserver") {
            continue;
        }
        let address = words.next().and_then(|word| word.parse::<IpAddr>().ok());
        resolvers.extend(address.map(|address| SocketAddr::new(address, PORT)));
    }
    resolvers
}

/// All but ourselves, whom asking would be going round in circles.
pub(crate) fn but_us(resolvers: &[SocketAddr], us: SocketAddr) -> Vec<SocketAddr> {
    let is_us = |resolver: &SocketAddr| {
        let here = resolver.ip() == us.ip()
            || us.ip().is_unspecified()
                && (resolver.ip().is_loopback() || resolver.ip().is_unspecified());
        here && resolver.port() == us.port()
    };
    let (ours, others): (Vec<_>, Vec<_>) = resolvers.iter().partition(|r| is_us(r));
    if !ours.is_empty() {
        tracing::warn!("names that are not the cluster's are not asked of ourselves, {us}");
    }
    others
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machines_resolvers_are_read() {
        let text = "# comment\nsearch a b\nnameserver 192.0.2.1\nnameserver\t2001:db8::1\n\
                    nameserver nonsense\noptions ndots:5\n";
        let expected: Vec<SocketAddr> = ["192.0.2.1:53", "[2001:db8::1]:53"]
            .map(|address| address.parse().unwrap())
            .into();
        assert_eq!(read(text), expected);
    }

    #[test]
    fn we_do_not_ask_ourselves() {
        let check = |us: &str, other: &str, asked: bool| {
            let other = [other.parse().unwrap()];
            let left = but_us(&other, us.parse().unwrap());
            assert_eq!(left.len() == 1, asked, "{us} {other:?}");
        };
        check("127.0.0.1:53", "127.0.0.1:53", false);
        check("127.0.0.1:5353", "127.0.0.1:53", true);
        check("0.0.0.0:53", "127.0.0.53:53", false);
        check("0.0.0.0:53", "192.0.2.1:53", true);
    }
}
