//! The UDP and TCP sockets.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::forward::Transport;
use crate::resolver::{Action, Resolver};

/// How many UDP queries wait for upstreams at once. More are dropped: clients retry.
const UDP_IN_FLIGHT: usize = 1024;
const CONNECTIONS: usize = 256;
/// For one read or write on a connection.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// Delay after a socket error, such as running out of file descriptors.
const RETRY_DELAY: Duration = Duration::from_millis(50);
/// Attempts to find a port that is free for both UDP and TCP.
const PORT_ATTEMPTS: usize = 16;

/// Both sockets, at the same address.
pub(crate) struct Sockets {
    udp: Arc<UdpSocket>,
    tcp: TcpListener,
    address: SocketAddr,
}

impl Sockets {
    pub(crate) async fn bind(listen: SocketAddr) -> io::Result<Self> {
        let mut tries = if listen.port() == 0 { PORT_ATTEMPTS } else { 1 };
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

/// Runs forever. Answers from memory are sent at once.
pub(crate) async fn udp(sockets: &Sockets, resolver: &Arc<Resolver>) {
    let permits = Arc::new(Semaphore::new(UDP_IN_FLIGHT));
    let mut forwarded = JoinSet::new();
    let mut buffer = vec![0; usize::from(u16::MAX)];
    loop {
        while forwarded.try_join_next().is_some() {}
        let (count, from) = match sockets.udp.recv_from(&mut buffer).await {
            Ok(received) => received,
            Err(error) => {
                tracing::debug!("cannot receive a packet: {error}");
                tokio::time::sleep(RETRY_DELAY).await;
                continue;
            }
        };
        let packet = &buffer[..count];
        match resolver.handle(packet, Transport::Udp, from.ip()) {
            Action::Drop => {}
            Action::Reply(answer) => send(&sockets.udp, &answer, from).await,
            Action::Forward(question) => {
                let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else {
                    continue;
                };
                let (udp, resolver, packet) =
                    (sockets.udp.clone(), resolver.clone(), packet.to_vec());
                forwarded.spawn(async move {
                    let answer = resolver.resolve(&packet, &question, Transport::Udp).await;
                    send(&udp, &answer, from).await;
                    drop(permit);
                });
            }
        }
    }
}

async fn send(udp: &UdpSocket, answer: &[u8], to: SocketAddr) {
    if let Err(error) = udp.send_to(answer, to).await {
        tracing::debug!("cannot send an answer to {to}: {error}");
    }
}

/// Runs forever.
pub(crate) async fn tcp(sockets: &Sockets, resolver: &Arc<Resolver>) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else {
            return;
        };
        match sockets.tcp.accept().await {
            Ok((stream, from)) => {
                let resolver = Arc::clone(resolver);
                connections.spawn(async move {
                    if let Err(error) = serve_connection(stream, from.ip(), &resolver).await {
                        tracing::debug!("the connection of {from} ended: {error}");
                    }
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::debug!("cannot accept a connection: {error}");
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }
}

/// Answers queries until the client closes the connection or a timeout passes.
async fn serve_connection(
    mut stream: TcpStream,
    client: IpAddr,
    resolver: &Resolver,
) -> io::Result<()> {
    loop {
        let mut packet = Vec::new();
        let reading = async {
            packet = vec![0; usize::from(stream.read_u16().await?)];
            stream.read_exact(&mut packet).await
        };
        match tokio::time::timeout(IDLE_TIMEOUT, reading).await {
            Ok(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            read => read??,
        };
        let answer = match resolver.handle(&packet, Transport::Tcp, client) {
            Action::Drop => return Ok(()),
            Action::Reply(answer) => answer,
            Action::Forward(question) => resolver.resolve(&packet, &question, Transport::Tcp).await,
        };
        let length = u16::try_from(answer.len()).map_err(io::Error::other)?;
        // One write: a second one would wait for the acknowledgement of the first.
        let framed = [&length.to_be_bytes(), answer.as_slice()].concat();
        tokio::time::timeout(IDLE_TIMEOUT, stream.write_all(&framed)).await??;
    }
}
