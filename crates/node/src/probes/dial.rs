//! Connections to containers. Failures are told as upstream tells them: `dial tcp 10.0.0.7:80: connect:
//! connection refused`.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpStream;

/// Connects within a time.
pub(super) async fn dial(host: &str, port: u16, timeout: Duration) -> Result<TcpStream, String> {
    let connected = tokio::time::timeout(timeout, connect(host, port)).await;
    connected.unwrap_or_else(|_| Err(format!("dial tcp {}: i/o timeout", join(host, port))))
}

/// Connects, however long it takes.
pub(super) async fn connect(host: &str, port: u16) -> Result<TcpStream, String> {
    let mut failure = format!("dial tcp: lookup {host}: no such host");
    for address in addresses(host, port).await {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = format!("dial tcp {address}: connect: {}", words(&error)),
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

/// A host and a port in one, as URLs have them.
pub(super) fn join(host: &str, port: u16) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// The kernel's words for an error, without what Rust adds to them.
pub(super) fn words(error: &io::Error) -> String {
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
    fn errors_have_the_words_that_users_know() {
        let check = |code, expected| {
            let error = io::Error::from_raw_os_error(code);
            assert_eq!(words(&error), expected);
        };
        check(111, "connection refused");
        check(113, "no route to host");
        check(101, "network is unreachable");
    }

    #[test]
    fn addresses_of_version_6_are_in_brackets() {
        assert_eq!(join("10.0.0.1", 80), "10.0.0.1:80");
        assert_eq!(join("::1", 80), "[::1]:80");
    }
}
