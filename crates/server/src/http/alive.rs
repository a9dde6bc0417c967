//! Connections whose other end has vanished without a word (a laptop that was closed, a cable that was
//! pulled): the kernel asks now and then. Nothing else would notice while both sides are silent, which a
//! shell or a log may be for hours.

use rustix::net::sockopt;
use tokio::net::TcpStream;

use super::limits;

/// Has the kernel ask the other end whether it still exists, while nothing else is heard of it.
pub(crate) fn ask_now_and_then(socket: &TcpStream) {
    let set = || -> rustix::io::Result<()> {
        sockopt::set_socket_keepalive(socket, true)?;
        sockopt::set_tcp_keepidle(socket, limits::KEEP_ALIVE_AFTER)?;
        sockopt::set_tcp_keepintvl(socket, limits::KEEP_ALIVE_EVERY)?;
        sockopt::set_tcp_keepcnt(socket, limits::KEEP_ALIVE_TRIES)
    };
    if let Err(error) = set() {
        tracing::debug!(%error, "cannot have the other end asked for signs of life");
    }
}
