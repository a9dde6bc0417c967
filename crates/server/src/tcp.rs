//! TCP keepalive, which detects peers that have vanished (a closed laptop, a pulled cable). Nothing else
//! would detect them while both sides are silent, as an exec session or a log may be for hours.

use rustix::net::sockopt;
use tokio::net::TcpStream;

use crate::limits;

pub(crate) fn enable_keepalive(socket: &TcpStream) {
    let set = || -> rustix::io::Result<()> {
        sockopt::set_socket_keepalive(socket, true)?;
        sockopt::set_tcp_keepidle(socket, limits::KEEP_ALIVE_AFTER)?;
        sockopt::set_tcp_keepintvl(socket, limits::KEEP_ALIVE_EVERY)?;
        sockopt::set_tcp_keepcnt(socket, limits::KEEP_ALIVE_TRIES)
    };
    if let Err(error) = set() {
        tracing::debug!(%error, "cannot enable TCP keepalive");
    }
}
