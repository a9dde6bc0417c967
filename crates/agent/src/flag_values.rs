//! Values of flags that several commands take: addresses to listen on, and the server's URL.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs as _};

use kennel_node::agent::identity::join;

#[derive(Debug, thiserror::Error)]
pub enum ListenAddressError {
    #[error("it is not an address such as 127.0.0.1:6443, localhost:6443 or :6443 (all addresses)")]
    Form,
    #[error("{host} has no address: {source}")]
    Unknown {
        host: String,
        source: std::io::Error,
    },
}

/// Parses an address to listen on. `:PORT` means all addresses, and the host may be a name.
pub fn listen_address(text: &str) -> Result<SocketAddr, ListenAddressError> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let (host, port) = text.rsplit_once(':').ok_or(ListenAddressError::Form)?;
    let port: u16 = port.parse().map_err(|_| ListenAddressError::Form)?;
    if host.is_empty() {
        return Ok(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)));
    }
    let is_name = |one: char| one.is_ascii_alphanumeric() || matches!(one, '-' | '.' | '_');
    if !host.chars().all(is_name) {
        return Err(ListenAddressError::Form);
    }
    let unknown = |source| ListenAddressError::Unknown {
        host: host.to_owned(),
        source,
    };
    let addresses: Vec<SocketAddr> = (host, port).to_socket_addrs().map_err(unknown)?.collect();
    // `localhost` is also ::1, where most clients do not look first.
    let mut v4 = addresses.iter().filter(|address| address.is_ipv4());
    let address = v4.next().or(addresses.first()).copied();
    address.ok_or(ListenAddressError::Form)
}

/// The URL is not that of an API server.
#[derive(Debug, thiserror::Error)]
#[error("it is not a URL such as https://10.0.0.1:6443")]
pub struct ServerUrlError;

/// Checks the URL of an API server, and returns it without a trailing slash.
pub fn server_url(text: &str) -> Result<String, ServerUrlError> {
    let url = text.trim().trim_end_matches('/');
    let address = join::api_address(url).ok_or(ServerUrlError)?;
    // `kennel.example:6443` without a scheme has no host, but `https://:6443` has an empty one.
    let is_host = !address.host.is_empty()
        && (address.host.parse::<IpAddr>().is_ok() || !address.host.contains([':', '/']));
    is_host.then(|| url.to_owned()).ok_or(ServerUrlError)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listen_addresses_are_addresses_names_or_ports() {
        let check = |text: &str, expected: Option<&str>| {
            let found = listen_address(text).ok().map(|found| found.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        };
        check("127.0.0.1:6443", Some("127.0.0.1:6443"));
        check("[::1]:6443", Some("[::1]:6443"));
        check(":6443", Some("0.0.0.0:6443"));
        check("localhost:6443", Some("127.0.0.1:6443"));
        for wrong in [
            "6443",
            "127.0.0.1",
            "localhost",
            "localhost:http",
            "localhost:70000",
            "::1:6443",
            "https://localhost:6443",
            "",
        ] {
            check(wrong, None);
        }
    }

    #[test]
    fn a_server_is_an_https_url() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(server_url(text).ok().as_deref(), expected, "{text}");
        };
        let url = "https://10.0.0.1:6443";
        check(url, Some(url));
        check("https://10.0.0.1:6443/", Some(url));
        check("https://kennel.example", Some("https://kennel.example"));
        check("https://[fd00::1]:6443", Some("https://[fd00::1]:6443"));
        for wrong in [
            "10.0.0.1:6443",
            "http://10.0.0.1:6443",
            "kennel",
            "",
            "https://",
        ] {
            check(wrong, None);
        }
    }
}
