//! Clients of the control socket: connections of the agent.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use crate::control::{self, FrameKind};
use crate::state::OK;

/// A client with more unsent output is disconnected: the container must not wait for a slow reader.
const UNSENT_BYTES_MAX: usize = 1 << 20;
/// The longest request line.
const LINE_BYTES_MAX: usize = 64;
const READ_BYTES: usize = 4 << 10;

pub(crate) struct Client {
    pub(crate) socket: UnixStream,
    received: Vec<u8>,
    unsent: Vec<u8>,
    attached: bool,
    closed: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request {
    ReopenLog,
    Stdin(Vec<u8>),
    /// Columns and rows.
    Resize(u16, u16),
    /// An attached client has disconnected or closed stdin.
    Detach,
}

impl Client {
    pub(crate) fn new(socket: UnixStream) -> std::io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            received: Vec::new(),
            unsent: Vec::new(),
            attached: false,
            closed: false,
        })
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(crate) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Reads what is available, and returns the complete requests.
    pub(crate) fn read(&mut self) -> Vec<Request> {
        let mut chunk = [0; READ_BYTES];
        match self.socket.read(&mut chunk) {
            Ok(0) => self.closed = true,
            Ok(count) => self.received.extend(&chunk[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => self.closed = true,
        }
        let mut requests = Vec::new();
        if !self.attached {
            self.read_line(&mut requests);
        }
        if self.attached {
            self.read_frames(&mut requests);
            if self.closed {
                requests.push(Request::Detach);
            }
        }
        requests
    }

    fn read_line(&mut self, requests: &mut Vec<Request>) {
        let Some(end) = self.received.iter().position(|byte| *byte == b'\n') else {
            self.closed |= self.received.len() > LINE_BYTES_MAX;
            return;
        };
        let line: Vec<u8> = self.received.drain(..=end).collect();
        match &*line {
            b"reopen\n" => requests.push(Request::ReopenLog),
            b"attach\n" => {
                // All output after the reply is sent.
                self.attached = true;
                self.reply(&format!("{OK}\n"));
            }
            _ => self.closed = true,
        }
    }

    fn read_frames(&mut self, requests: &mut Vec<Request>) {
        loop {
            match control::take_frame(&mut self.received) {
                Ok(Some((FrameKind::Stdin, bytes))) if bytes.is_empty() => {
                    requests.push(Request::Detach);
                }
                Ok(Some((FrameKind::Stdin, bytes))) => requests.push(Request::Stdin(bytes)),
                Ok(Some((FrameKind::Resize, bytes))) => {
                    requests.extend(
                        control::parse_size(&bytes)
                            .map(|(columns, rows)| Request::Resize(columns, rows)),
                    );
                }
                Ok(Some(_)) => {}
                Ok(None) => return,
                Err(control::InvalidFrame) => {
                    self.closed = true;
                    return;
                }
            }
        }
    }

    pub(crate) fn reply(&mut self, text: &str) {
        self.unsent.extend(text.as_bytes());
        self.flush();
    }

    /// Sends a frame to the client, if it is attached.
    pub(crate) fn send_frame(&mut self, kind: FrameKind, bytes: &[u8]) {
        if self.attached && !bytes.is_empty() {
            control::put_frames(&mut self.unsent, kind, bytes);
            self.flush();
        }
    }

    /// Writes as much as the socket accepts.
    pub(crate) fn flush(&mut self) {
        while !self.unsent.is_empty() {
            match self.socket.write(&self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(_) => {
                    self.closed = true;
                    break;
                }
            }
        }
        self.closed |= self.unsent.len() > UNSENT_BYTES_MAX;
        if self.unsent.is_empty() {
            self.unsent = Vec::new();
        }
    }

    /// Writes the rest, with a timeout of a second.
    pub(crate) fn flush_and_close(mut self) {
        let blocking = self.socket.set_nonblocking(false);
        let blocking = blocking.and(
            self.socket
                .set_write_timeout(Some(std::time::Duration::from_secs(1))),
        );
        if blocking.is_ok() {
            let _left = self.socket.write_all(&self.unsent);
        }
    }
}
