//! A netlink socket of netfilter.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, getsockname, recv, sendto,
    socket_with, sockopt,
};

use super::message::{DONE, ERROR, Message, Messages, Request};

/// A transaction is one message for the kernel: the largest is the first of a cluster with many endpoints, of which each
/// takes less than 100 bytes. The kernel counts what is sent, and reserves nothing.
const SEND_BUFFER: usize = 256 << 20;
/// Notices about changes of others, until they are read.
const RECEIVE_BUFFER: usize = 8 << 20;
/// What is received at once. A refusal quotes the refused message, whose length attributes bound to 64 KiB.
const CHUNK: usize = 128 << 10;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The kernel refused a message, or the transaction.
    #[error("{0}")]
    Refused(io::Error),
    #[error("netlink: {0}")]
    Socket(io::Error),
    #[error("netlink: the kernel did not answer")]
    NoAnswer,
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Self {
        Self::Socket(errno.into())
    }
}

#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    port: u32,
    sequence: u32,
}

impl Socket {
    /// `groups` are the multicast groups to receive, as bits. The socket belongs to the network namespace of this thread.
    pub fn open(groups: u32) -> Result<Self, Failure> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let protocol = Some(netlink::NETFILTER);
        let fd = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
        bind(&fd, &SocketAddrNetlink::new(0, groups))?;
        // Without the right to have larger buffers, the kernel refuses what is sent, too.
        let _refused = sockopt::set_socket_send_buffer_size_force(&fd, SEND_BUFFER);
        let _refused = sockopt::set_socket_recv_buffer_size_force(&fd, RECEIVE_BUFFER);
        let own = SocketAddrNetlink::try_from(getsockname(&fd)?)?;
        Ok(Self {
            fd,
            port: own.pid(),
            sequence: 1,
        })
    }

    /// As which the kernel knows this socket.
    pub fn port(&self) -> u32 {
        self.port
    }

    /// A request whose messages have the next numbers.
    pub fn request(&self) -> Request {
        Request::numbered_from(self.sequence)
    }

    /// Sends messages and receives the last acknowledgement that they ask for, or a refusal.
    pub fn execute(&mut self, request: &Request) -> Result<(), Failure> {
        let last = self.send(request)?;
        self.receive_until(|message| {
            if message.kind != ERROR {
                return None;
            }
            match message.error() {
                0 => (message.sequence == last).then_some(Ok(())),
                error => Some(Err(refused(error))),
            }
        })?
    }

    /// Sends one message that asks for all of something, and hands each answer to `read`.
    pub fn dump(
        &mut self,
        request: &Request,
        mut read: impl FnMut(&Message<'_>),
    ) -> Result<(), Failure> {
        let last = self.send(request)?;
        self.receive_until(|message| match message.kind {
            _ if message.sequence != last => None,
            DONE => Some(Ok(())),
            ERROR => Some(match message.error() {
                0 => Ok(()),
                error => Err(refused(error)),
            }),
            _ => {
                read(message);
                None
            }
        })?
    }

    /// Returns the number of the message whose answer is the last.
    fn send(&mut self, request: &Request) -> Result<u32, Failure> {
        // What an earlier request left.
        while let Ok(Some(_)) = self.receive(&mut [0; 4096]) {}
        let kernel = SocketAddrNetlink::new(0, 0);
        sendto(&self.fd, request.bytes(), SendFlags::empty(), &kernel)?;
        self.sequence = request.next_sequence();
        Ok(request.answered())
    }

    /// The kernel handles requests while they are sent, so that answers need no waiting.
    fn receive_until<T>(
        &self,
        mut read: impl FnMut(&Message<'_>) -> Option<T>,
    ) -> Result<T, Failure> {
        let mut chunk = vec![0; CHUNK];
        while let Some(length) = self.receive(&mut chunk)? {
            if let Some(result) = Messages(&chunk[..length]).find_map(|message| read(&message)) {
                return Ok(result);
            }
        }
        Err(Failure::NoAnswer)
    }

    /// `None` if there is nothing to receive.
    pub fn receive(&self, chunk: &mut [u8]) -> Result<Option<usize>, Failure> {
        loop {
            match recv(&self.fd, &mut *chunk, RecvFlags::empty()) {
                Ok((length, _)) => return Ok(Some(length)),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl std::os::fd::AsRawFd for Socket {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.fd.as_raw_fd()
    }
}

fn refused(error: i32) -> Failure {
    Failure::Refused(io::Error::from_raw_os_error(-error))
}
