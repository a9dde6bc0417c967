//! Tells a service manager how far we are, if one asked to be told: systemd does, with `Type=notify`.
//!
//! A datagram to `$NOTIFY_SOCKET`, and nothing is waited for. Who is not asked says nothing, and a manager that
//! cannot be told is no reason to end.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Where to tell it; the manager sets this.
const SOCKET: &str = "NOTIFY_SOCKET";

/// What we are for is being done, from now on. The words are what `systemctl status` shows.
pub fn ready(status: &str) {
    tell(&format!("READY=1\nSTATUS={status}\n"));
}

/// We were asked to end, and are about to.
pub fn stopping() {
    tell("STOPPING=1\nSTATUS=Stopping\n");
}

/// Not there yet, and why.
pub fn waiting(status: &str) {
    tell(&format!("STATUS={status}\n"));
}

fn tell(words: &str) {
    let Some(socket) = std::env::var_os(SOCKET).filter(|socket| !socket.is_empty()) else {
        return;
    };
    if let Err(error) = send(&socket, words) {
        tracing::warn!(
            "the service manager cannot be told at {}: {error}",
            socket.display()
        );
    }
}

fn send(socket: &OsStr, words: &str) -> io::Result<()> {
    let address = address(socket)?;
    let ours = UnixDatagram::unbound()?;
    // A manager that does not read must not stop us.
    ours.set_nonblocking(true)?;
    ours.send_to_addr(words.as_bytes(), &address).map(|_| ())
}

/// A path, or `@` and a name that is no file.
fn address(socket: &OsStr) -> io::Result<SocketAddr> {
    match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        [b'/', ..] => SocketAddr::from_pathname(socket),
        _ => Err(io::Error::other("it is neither a path nor @ and a name")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(socket: &UnixDatagram) -> String {
        let mut words = [0; 256];
        let length = socket.recv(&mut words).unwrap();
        String::from_utf8(words[..length].to_vec()).unwrap()
    }

    #[test]
    fn words_arrive_at_paths_and_at_names() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str(), "READY=1\n").unwrap();
        assert_eq!(heard(&socket), "READY=1\n");

        let name = format!("kennel-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        send(OsStr::new(&format!("@{name}")), "STOPPING=1\n").unwrap();
        assert_eq!(heard(&socket), "STOPPING=1\n");
    }

    #[test]
    fn nobody_there_is_an_error_and_no_more() {
        for socket in [
            "/nowhere/notify",
            "@kennel-test-nobody",
            "notify",
            "vsock:2",
        ] {
            assert!(send(OsStr::new(socket), "READY=1\n").is_err(), "{socket}");
        }
    }
}
