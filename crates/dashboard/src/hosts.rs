//! The names and addresses under which browsers reach this dashboard.

use std::net::{IpAddr, SocketAddr};

use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hosts {
    /// In lower case, without the port; IPv6 addresses without brackets. `*.example.com` stands for any one label.
    names: Vec<String>,
    port: u16,
    tls: bool,
}

impl Hosts {
    /// On a loopback address, and `localhost`.
    pub(crate) fn loopback(address: SocketAddr) -> Self {
        Self {
            names: vec![address.ip().to_string(), "localhost".to_owned()],
            port: address.port(),
            tls: false,
        }
    }

    /// The names in the certificate, and the address unless that stands for all.
    pub(crate) fn of_certificate(address: SocketAddr, certificate: &[u8]) -> Self {
        let mut names = names(certificate);
        if !address.ip().is_unspecified() {
            names.push(address.ip().to_string());
        }
        Self {
            names,
            port: address.port(),
            tls: true,
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.tls
    }

    /// The origin to show to people.
    pub(crate) fn shown(&self) -> String {
        let plain = self.names.iter().find(|name| !name.starts_with('*'));
        let name = plain.map_or("localhost", String::as_str);
        let scheme = self.scheme();
        match name.parse() {
            Ok(IpAddr::V6(ip)) => format!("{scheme}://[{ip}]:{}", self.port),
            _ => format!("{scheme}://{name}:{}", self.port),
        }
    }

    /// Whether this is what a `Host` header has of us.
    pub(crate) fn is_own(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<http::uri::Authority>() else {
            return false;
        };
        let default = if self.tls { 443 } else { 80 };
        let name = authority.host().trim_matches(['[', ']']);
        let has_user = authority.as_str().contains('@');
        !has_user && authority.port_u16().unwrap_or(default) == self.port && self.has(name)
    }

    pub(crate) fn is_own_origin(&self, origin: &str) -> bool {
        let host = origin.strip_prefix(self.scheme());
        let host = host.and_then(|rest| rest.strip_prefix("://"));
        host.is_some_and(|host| self.is_own(host))
    }

    fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }

    fn has(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        let name = match name.parse::<IpAddr>() {
            // One spelling of each address.
            Ok(ip) => ip.to_string(),
            Err(_) => name,
        };
        self.names.iter().any(|own| match own.strip_prefix('*') {
            Some(suffix) => name
                .strip_suffix(suffix)
                .is_some_and(|label| !label.is_empty() && !label.contains('.')),
            None => *own == name,
        })
    }
}

/// The DNS names and IP addresses of a certificate.
fn names(certificate: &[u8]) -> Vec<String> {
    let Ok((_, certificate)) = X509Certificate::from_der(certificate) else {
        return Vec::new();
    };
    let Ok(Some(extension)) = certificate.subject_alternative_name() else {
        return Vec::new();
    };
    let names = extension.value.general_names.iter();
    let names = names.filter_map(|name| match name {
        GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
        GeneralName::IPAddress(bytes) => ip(bytes).map(|ip| ip.to_string()),
        _ => None,
    });
    names.collect()
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        return Some(bytes.into());
    }
    Some(<[u8; 16]>::try_from(bytes).ok()?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_ours_with_our_name_and_port_only() {
        let hosts = Hosts::loopback("127.0.0.1:6480".parse().unwrap());
        let check = |host: &str, own: bool| assert_eq!(hosts.is_own(host), own, "{host}");
        check("127.0.0.1:6480", true);
        check("localhost:6480", true);
        check("LOCALHOST:6480", true);
        check("localhost", false);
        check("localhost:80", false);
        check("127.0.0.1:6481", false);
        check("attacker.example:6480", false);
        check("localhost.attacker.example:6480", false);
        check("user@localhost:6480", false);
        check("", false);
        assert_eq!(hosts.shown(), "http://127.0.0.1:6480");
        assert!(hosts.is_own_origin("http://127.0.0.1:6480"));
        assert!(!hosts.is_own_origin("https://127.0.0.1:6480"));
        assert!(!hosts.is_own_origin("http://127.0.0.1:8000"));
        assert!(!hosts.is_own_origin("null"));
    }

    #[test]
    fn ipv6_addresses_have_brackets_and_any_spelling() {
        let hosts = Hosts::loopback("[::1]:80".parse().unwrap());
        assert_eq!(hosts.shown(), "http://[::1]:80");
        assert!(hosts.is_own("[::1]:80"));
        assert!(hosts.is_own("[::1]"));
        assert!(hosts.is_own("[0:0:0:0:0:0:0:1]:80"));
        assert!(!hosts.is_own("[::2]:80"));
    }

    #[test]
    fn behind_tls_the_names_of_the_certificate_count() {
        let names = ["dash.example.com", "*.example.org", "192.0.2.7"];
        let names = names.map(str::to_owned);
        let certificate = rcgen::generate_simple_self_signed(names).unwrap();
        let address = "0.0.0.0:443".parse().unwrap();
        let hosts = Hosts::of_certificate(address, certificate.cert.der());
        let check = |host: &str, own: bool| assert_eq!(hosts.is_own(host), own, "{host}");
        check("dash.example.com", true);
        check("dash.example.com:443", true);
        check("a.example.org", true);
        check("a.b.example.org", false);
        check("example.org", false);
        check("192.0.2.7", true);
        check("0.0.0.0", false);
        check("localhost", false);
        assert_eq!(hosts.shown(), "https://dash.example.com:443");
    }
}
