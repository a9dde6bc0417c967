//! A listening socket that breaks: the process ends with a line that says so, so that a service manager starts another one.
//!
//! The test shuts the socket down from outside, through a duplicate of the server's descriptor. The end of the store's
//! writer, which takes the same way out, cannot be caused from outside; `kennel_server::server` has a test of it.

use std::fs;
use std::os::fd::OwnedFd;

use kennel_testkit::Kennel;
use rustix::net::{Shutdown, shutdown};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::server_faults::fixture::KENNEL;

/// `TCP_LISTEN` in `/proc/net/tcp`.
const LISTENING: &str = "0A";

/// The inode of the socket that listens on this port of 127.0.0.1.
fn listening_inode(pid: u32, port: u16) -> Option<String> {
    let table = fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap();
    let address = format!("0100007F:{port:04X}");
    table.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let found = fields.get(1) == Some(&&*address) && fields.get(3) == Some(&LISTENING);
        found.then(|| fields[9].to_owned())
    })
}

/// A duplicate of the server's listening socket.
fn listening_socket(kennel: &Kennel) -> rustix::io::Result<OwnedFd> {
    let inode = listening_inode(kennel.pid(), kennel.address().port()).expect("it listens");
    let target = format!("socket:[{inode}]");
    let descriptors = fs::read_dir(format!("/proc/{}/fd", kennel.pid())).unwrap();
    let number = descriptors.map(Result::unwrap).find_map(|entry| {
        let link = fs::read_link(entry.path()).ok()?;
        let found = link.to_str() == Some(&target);
        found.then(|| entry.file_name().to_str()?.parse().ok())?
    });
    let pid = Pid::from_raw(kennel.pid().cast_signed()).expect("it has a process id");
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    let number = number.expect("it holds its socket");
    pidfd_getfd(process, number, PidfdGetfdFlags::empty())
}

#[test]
fn a_server_whose_listener_breaks_ends_and_says_why() {
    for arguments in [&["server"][..], &["up", "--nodes", "0"]] {
        let mut kennel = Kennel::start(KENNEL, arguments);
        let socket = match listening_socket(&kennel) {
            Ok(socket) => socket,
            Err(error) => {
                return kennel_test_support::skip(&format!("no pidfd_getfd here: {error}"));
            }
        };
        shutdown(&socket, Shutdown::Both).unwrap();
        let status = kennel.wait_for_end();
        let log = kennel.log();
        assert_eq!(status.code(), Some(1), "{arguments:?}: {log}");
        let last = log.lines().last().unwrap_or_default();
        let words =
            "the listener has ended, so nobody can connect any more; the log has the reason";
        assert!(last.contains(words), "{arguments:?}: {log}");
        assert!(log.contains("the listening socket is broken"), "{log}");
        assert!(!log.contains("panicked"), "{log}");
    }
}
