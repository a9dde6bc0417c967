//! Notifies the service manager of our state: systemd's `Type=notify` protocol, and its watchdog.
//!
//! Sends a datagram to `$NOTIFY_SOCKET` without waiting; does nothing if that is not set. A failure is only logged.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// Set by the service manager.
const SOCKET: &str = "NOTIFY_SOCKET";
/// Set by the service manager if the service has `WatchdogSec=`, in microseconds.
const WATCHDOG: &str = "WATCHDOG_USEC";
/// The process that the watchdog watches, if it is set.
const WATCHDOG_PID: &str = "WATCHDOG_PID";

/// `systemctl status` shows `status`.
pub fn ready(status: &str) {
    notify(&format!("READY=1\nSTATUS={status}\n"));
}

pub fn stopping() {
    notify("STOPPING=1\nSTATUS=Stopping\n");
}

/// Sets the status without being ready.
pub fn waiting(status: &str) {
    notify(&format!("STATUS={status}\n"));
}

/// Tells the service manager's watchdog, from now on, that this process is alive while `is_alive`. When it hears nothing for
/// the time of the unit's `WatchdogSec=`, it kills the process and starts another. Does nothing without a watchdog.
pub fn watchdog(is_alive: impl Fn() -> bool + Send + 'static) {
    let variable = |name: &str| std::env::var(name).ok();
    let own = std::process::id();
    let Some(limit) = watchdog_limit(
        variable(WATCHDOG).as_deref(),
        variable(WATCHDOG_PID).as_deref(),
        own,
    ) else {
        return;
    };
    tokio::spawn(report_while(limit, is_alive, || notify("WATCHDOG=1\n")));
}

/// Reports often enough that one late turn does not count.
async fn report_while(limit: Duration, is_alive: impl Fn() -> bool, report: impl Fn()) {
    let mut turns = tokio::time::interval(limit / 4);
    loop {
        turns.tick().await;
        if is_alive() {
            report();
        }
    }
}

fn watchdog_limit(microseconds: Option<&str>, pid: Option<&str>, own: u32) -> Option<Duration> {
    let is_ours = pid.is_none_or(|pid| pid.parse() == Ok(own));
    let microseconds: u64 = microseconds.filter(|_| is_ours)?.parse().ok()?;
    (microseconds >= 4).then(|| Duration::from_micros(microseconds))
}

fn notify(state: &str) {
    let Some(socket) = std::env::var_os(SOCKET).filter(|socket| !socket.is_empty()) else {
        return;
    };
    if let Err(error) = send(&socket, state) {
        tracing::warn!(
            "cannot notify the service manager at {}: {error}",
            socket.display()
        );
    }
}

fn send(socket: &OsStr, state: &str) -> io::Result<()> {
    let address = address(socket)?;
    let sender = UnixDatagram::unbound()?;
    // A service manager that does not read must not block us.
    sender.set_nonblocking(true)?;
    sender.send_to_addr(state.as_bytes(), &address).map(|_| ())
}

/// A path, or `@` and an abstract name.
fn address(socket: &OsStr) -> io::Result<SocketAddr> {
    match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        [b'/', ..] => SocketAddr::from_pathname(socket),
        _ => Err(io::Error::other(
            "it is neither a path nor an abstract name",
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn received(socket: &UnixDatagram) -> String {
        let mut state = [0; 256];
        let length = socket.recv(&mut state).unwrap();
        String::from_utf8(state[..length].to_vec()).unwrap()
    }

    #[test]
    fn states_arrive_at_paths_and_abstract_names() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str(), "READY=1\n").unwrap();
        assert_eq!(received(&socket), "READY=1\n");

        let name = format!("kennel-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        send(OsStr::new(&format!("@{name}")), "STOPPING=1\n").unwrap();
        assert_eq!(received(&socket), "STOPPING=1\n");
    }

    #[tokio::test(start_paused = true)]
    async fn the_watchdog_hears_nothing_of_a_process_that_is_stuck() {
        let limit = Duration::from_mins(1);
        let (alive, reports) = (Cell::new(true), Cell::new(0));
        let reporting = report_while(limit, || alive.get(), || reports.set(reports.get() + 1));
        let mut reporting = std::pin::pin!(reporting);
        for (is_alive, at_least) in [(true, 3), (false, 0), (true, 3)] {
            alive.set(is_alive);
            reports.set(0);
            let heard = tokio::time::timeout(limit, &mut reporting).await;
            assert!(heard.is_err() && reports.get() >= at_least);
            assert_eq!(reports.get() > 0, is_alive);
        }
    }

    #[test]
    fn the_watchdog_is_for_one_process() {
        let check = |microseconds, pid, expected: Option<u64>| {
            let found = watchdog_limit(microseconds, pid, 7);
            assert_eq!(found, expected.map(Duration::from_secs));
        };
        check(Some("30000000"), None, Some(30));
        check(Some("30000000"), Some("7"), Some(30));
        check(Some("30000000"), Some("8"), None);
        check(Some("0"), None, None);
        check(Some("soon"), None, None);
        check(None, None, None);
    }

    #[test]
    fn a_missing_socket_is_an_error() {
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
