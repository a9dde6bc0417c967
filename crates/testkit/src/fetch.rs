//! A page, asked for as plainly as possible: of daemons that tests run.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// What answers to a GET, head and body. Anything but a 200 within moments is an error.
pub fn fetch(address: SocketAddr, path: &str) -> std::io::Result<String> {
    fetch_within(address, path, Duration::from_secs(2))
}

/// As [`fetch`], for an answer that may take its time, and that must come at the first asking.
pub fn fetch_within(address: SocketAddr, path: &str, within: Duration) -> std::io::Result<String> {
    let mut socket = TcpStream::connect_timeout(&address, within)?;
    socket.set_read_timeout(Some(within))?;
    write!(
        socket,
        "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    if answer.starts_with("HTTP/1.1 200") || answer.starts_with("HTTP/1.0 200") {
        return Ok(answer);
    }
    Err(std::io::Error::other(answer))
}
