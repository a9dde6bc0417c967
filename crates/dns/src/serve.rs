//! The sockets: packets in, packets out, so many at once.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::answer::{State, Step};
use crate::forward::Over;

/// How many questions over UDP wait for others at once. More are dropped: who asked asks again.
const UDP_WAITING: usize = 1024;
/// How many connections are served at once.
const CONNECTIONS: usize = 256;
/// How long a connection may be idle, or take to be read or written.
const IDLE: Duration = Duration::from_secs(10);
/// How long to wait when a socket fails, for want of descriptors say.
const AGAIN: Duration = Duration::from_millis(50);
/// How often a free port is looked for that both kinds of socket can have.
const PORTS: usize = 16;

/// Both sockets, at the same address.
pub(crate) struct Sockets {
    udp: Arc<UdpSocket>,
    tcp: TcpListener,
    address: SocketAddr,
}

impl Sockets {
    pub(crate) async fn bind(listen: SocketAddr) -> io::Result<Self> {
        let mut tries = if listen.port() == 0 { PORTS } else { 1 };
        loop {
            tries -= 1;
            let udp = UdpSocket::bind(listen).await?;
            let address = udp.local_addr()?;
            match TcpListener::bind(address).await {
                Ok(tcp) => {
                    return Ok(Self {
                        udp: Arc::new(udp),
                        tcp,
                        address,
                    });
                }
                Err(error) if tries == 0 => return Err(error),
                Err(_) => {}
            }
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Answers over UDP, for ever. What needs nobody else is answered on the spot.
pub(crate) async fn udp(sockets: &Sockets, state: &Arc<State>) {
    let waiting = Arc::new(Semaphore::new(UDP_WAITING));
    let mut asked = JoinSet::new();
    let mut buffer = vec![0; usize::from(u16::MAX)];
    loop {
        while asked.try_join_next().is_some() {}
        let (count, from) = match sockets.udp.recv_from(&mut buffer).await {
            Ok(received) => received,
            Err(error) => {
                tracing::debug!("a packet could not be received: {error}");
                tokio::time::sleep(AGAIN).await;
                continue;
            }
        };
        let packet = &buffer[..count];
        match state.step(packet, Over::Udp) {
            Step::Drop => {}
            Step::Send(answer) => send(&sockets.udp, &answer, from).await,
            Step::Ask(question) => {
                let Ok(seat) = Arc::clone(&waiting).try_acquire_owned() else {
                    continue;
                };
                let (udp, state, packet) = (sockets.udp.clone(), state.clone(), packet.to_vec());
                asked.spawn(async move {
                    let answer = state.ask(&packet, &question, Over::Udp).await;
                    send(&udp, &answer, from).await;
                    drop(seat);
                });
            }
        }
    }
}

async fn send(udp: &UdpSocket, answer: &[u8], to: SocketAddr) {
    if let Err(error) = udp.send_to(answer, to).await {
        tracing::debug!("an answer could not be sent to {to}: {error}");
    }
}

/// Answers over TCP, for ever.
pub(crate) async fn tcp(sockets: &Sockets, state: &Arc<State>) {
    let seats = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(seat) = Arc::clone(&seats).acquire_owned().await else {
            return;
        };
        match sockets.tcp.accept().await {
            Ok((stream, from)) => {
                let state = Arc::clone(state);
                connections.spawn(async move {
                    if let Err(error) = converse(stream, &state).await {
                        tracing::debug!("the connection of {from} ended: {error}");
                    }
                    drop(seat);
                });
            }
            Err(error) => {
                tracing::debug!("a connection could not be taken: {error}");
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}

/// One question after the other, until the asker has no more or takes too long.
async fn converse(mut stream: TcpStream, state: &State) -> io::Result<()> {
    loop {
        let mut packet = Vec::new();
        let reading = async {
            packet = vec![0; usize::from(stream.read_u16().await?)];
            stream.read_exact(&mut packet).await
        };
        match tokio::time::timeout(IDLE, reading).await {
            Ok(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            read => read??,
        };
        let answer = match state.step(&packet, Over::Tcp) {
            Step::Drop => return Ok(()),
            Step::Send(answer) => answer,
            Step::Ask(question) => state.ask(&packet, &question, Over::Tcp).await,
        };
        let length = u16::try_from(answer.len()).map_err(io::Error::other)?;
        // In one piece: the second of two would wait until the first is acknowledged.
        let framed = [&length.to_be_bytes(), answer.as_slice()].concat();
        tokio::time::timeout(IDLE, stream.write_all(&framed)).await??;
    }
}
