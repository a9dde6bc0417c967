//! TCP connections to containers. Errors read as upstream's: `dial tcp 10.0.0.7:80: connect: connection refused`.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpStream;

use super::error::DialError;

pub(super) async fn connect_within(
    host: &str,
    port: u16,
    timeout: Duration,
) -> Result<TcpStream, DialError> {
    let connected = tokio::time::timeout(timeout, connect(host, port)).await;
    connected.unwrap_or_else(|_| {
        let address = join(host, port);
        Err(DialError::Timeout { address })
    })
}

/// Has no timeout of its own.
pub(super) async fn connect(host: &str, port: u16) -> Result<TcpStream, DialError> {
    let mut failure = DialError::Lookup {
        host: host.to_owned(),
    };
    for address in addresses(host, port).await {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => {
                let reason = kernel_text(&error);
                failure = DialError::Connect { address, reason };
            }
        }
    }
    Err(failure)
}

async fn addresses(host: &str, port: u16) -> Vec<SocketAddr> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return vec![SocketAddr::new(address, port)];
    }
    let found = tokio::net::lookup_host((host, port)).await;
    found.map(Iterator::collect).unwrap_or_default()
}

/// `host:port`, with an IPv6 address in brackets.
pub(super) fn join(host: &str, port: u16) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// The kernel's text for an error, as Go prints it: in lower case, without the number that Rust adds.
pub(super) fn kernel_text(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_read_as_go_prints_them() {
        let check = |code, expected| {
            let error = io::Error::from_raw_os_error(code);
            assert_eq!(kernel_text(&error), expected);
        };
        check(111, "connection refused");
        check(113, "no route to host");
        check(101, "network is unreachable");
    }

    #[test]
    fn ipv6_addresses_are_in_brackets() {
        assert_eq!(join("10.0.0.1", 80), "10.0.0.1:80");
        assert_eq!(join("::1", 80), "[::1]:80");
    }
}
