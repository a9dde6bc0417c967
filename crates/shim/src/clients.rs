//! Those who are connected to a shim's socket: the agent, asking for something, or attached for somebody.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use crate::control::{self, What};
use crate::state::OK;

/// Who does not read this much misses the rest: the container must not wait for a watcher.
const OUTBOX: usize = 1 << 20;
/// The longest line that asks for something.
const LINE: usize = 64;
/// Read at once.
const CHUNK: usize = 4 << 10;

/// One of them.
pub(crate) struct Client {
    pub(crate) socket: UnixStream,
    inbox: Vec<u8>,
    outbox: Vec<u8>,
    attached: bool,
    gone: bool,
}

/// What one asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Reopen,
    Input(Vec<u8>),
    Size(u16, u16),
    /// One who was attached has left, or has nothing more to write.
    Left,
}

impl Client {
    pub(crate) fn new(socket: UnixStream) -> std::io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            inbox: Vec::new(),
            outbox: Vec::new(),
            attached: false,
            gone: false,
        })
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone
    }

    /// Has it not taken all yet?
    pub(crate) fn is_behind(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// What it wishes, of what it has written so far.
    pub(crate) fn read(&mut self) -> Vec<Wish> {
        let mut chunk = [0; CHUNK];
        match self.socket.read(&mut chunk) {
            Ok(0) => self.gone = true,
            Ok(count) => self.inbox.extend(&chunk[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => self.gone = true,
        }
        let mut wishes = Vec::new();
        if !self.attached {
            self.read_line(&mut wishes);
        }
        if self.attached {
            self.read_frames(&mut wishes);
            if self.gone {
                wishes.push(Wish::Left);
            }
        }
        wishes
    }

    fn read_line(&mut self, wishes: &mut Vec<Wish>) {
        let Some(end) = self.inbox.iter().position(|byte| *byte == b'\n') else {
            self.gone |= self.inbox.len() > LINE;
            return;
        };
        let line: Vec<u8> = self.inbox.drain(..=end).collect();
        match &*line {
            b"reopen\n" => wishes.push(Wish::Reopen),
            b"attach\n" => {
                // From here on nothing is missed.
                self.attached = true;
                self.answer(&format!("{OK}\n"));
            }
            _ => self.gone = true,
        }
    }

    fn read_frames(&mut self, wishes: &mut Vec<Wish>) {
        loop {
            match control::take(&mut self.inbox) {
                Ok(Some((What::Input, bytes))) if bytes.is_empty() => wishes.push(Wish::Left),
                Ok(Some((What::Input, bytes))) => wishes.push(Wish::Input(bytes)),
                Ok(Some((What::Size, bytes))) => {
                    wishes.extend(
                        control::size(&bytes).map(|(columns, rows)| Wish::Size(columns, rows)),
                    );
                }
                Ok(Some(_)) => {}
                Ok(None) => return,
                Err(control::Strange) => {
                    self.gone = true;
                    return;
                }
            }
        }
    }

    /// Answers what it asked.
    pub(crate) fn answer(&mut self, text: &str) {
        self.outbox.extend(text.as_bytes());
        self.flush();
    }

    /// Shows it what the container wrote, or how it ended, if it is attached.
    pub(crate) fn show(&mut self, what: What, bytes: &[u8]) {
        if self.attached && !bytes.is_empty() {
            control::put(&mut self.outbox, what, bytes);
            self.flush();
        }
    }

    /// Writes what it takes now.
    pub(crate) fn flush(&mut self) {
        while !self.outbox.is_empty() {
            match self.socket.write(&self.outbox) {
                Ok(count) => drop(self.outbox.drain(..count)),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(_) => {
                    self.gone = true;
                    break;
                }
            }
        }
        self.gone |= self.outbox.len() > OUTBOX;
        if self.outbox.is_empty() {
            self.outbox = Vec::new();
        }
    }

    /// Writes the rest, however long it takes within a second: the last words to one who listens.
    pub(crate) fn part(mut self) {
        let patient = self.socket.set_nonblocking(false);
        let patient = patient.and(
            self.socket
                .set_write_timeout(Some(std::time::Duration::from_secs(1))),
        );
        if patient.is_ok() {
            let _left = self.socket.write_all(&self.outbox);
        }
    }
}
