//! Notices changes of a table by other programs.

use std::io;

use tokio::io::unix::AsyncFd;

use crate::netlink::{Failure, Messages, Socket};
use crate::nft::{CHANGES, generation_message, generation_of, table_of};

/// What is received at once.
const CHUNK: usize = 64 << 10;

/// See the [module](self).
#[derive(Debug)]
pub struct Monitor {
    socket: AsyncFd<Socket>,
    /// As which the kernel knows the one who may change the table.
    own: u32,
    table: &'static str,
}

impl Monitor {
    /// For the network namespace of this thread. `own` is the [port](Socket::port) of the one who may change the table.
    pub fn open(own: u32, table: &'static str) -> Result<Self, Failure> {
        #[expect(
            deprecated,
            reason = "the safe function; it is deprecated because of types that close their descriptor early"
        )]
        let socket = AsyncFd::new(Socket::open(CHANGES)?).map_err(Failure::Socket)?;
        Ok(Self { socket, own, table })
    }

    /// Returns when another program has changed the table, or may have.
    pub async fn changed(&mut self) {
        let mut chunk = Vec::new();
        loop {
            let Ok(mut ready) = self.socket.readable().await else {
                // The runtime ends.
                return std::future::pending().await;
            };
            chunk.resize(CHUNK, 0);
            match ready.get_inner().receive(&mut chunk) {
                Ok(None) => {
                    ready.clear_ready();
                    chunk = Vec::new();
                }
                Ok(Some(length)) => {
                    if self.has_foreign(&chunk[..length]) {
                        return;
                    }
                }
                // Notices were lost.
                Err(_) => return,
            }
        }
    }

    fn has_foreign(&self, bytes: &[u8]) -> bool {
        Messages(bytes).any(|message| {
            message.port != self.own && table_of(&message) == Some(self.table.as_bytes())
        })
    }
}

/// The number of the last transaction of any program.
pub fn generation(socket: &mut Socket) -> Result<u32, Failure> {
    let mut found = None;
    let request = generation_message(socket.request());
    socket.dump(&request, |message| found = found.or(generation_of(message)))?;
    found.ok_or_else(|| Failure::Socket(io::Error::from(io::ErrorKind::InvalidData)))
}
