//! Forwards queries to upstream resolvers and returns their answers unchanged.
//!
//! Equal queries of several clients are sent once. So if an upstream forwards a query back to this server, the
//! second query waits for the first and ends with its timeout: it never multiplies.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, PacketFlag, QCLASS, QTYPE, Question, TYPE};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::Instant;

use crate::question::HEADER;

/// For one upstream.
const UPSTREAM_TIMEOUT: Duration = Duration::from_secs(2);
/// How long an upstream that did not answer is tried after the others. Without this, every query would wait for
/// its timeout.
const FAILURE_PENALTY: Duration = Duration::from_secs(10);
/// How many queries are forwarded at once.
const MAX_IN_FLIGHT: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Transport {
    Udp,
    Tcp,
}

type Answered = Option<Arc<[u8]>>;
type InFlight = HashMap<(Transport, Vec<u8>), Weak<OnceCell<Answered>>>;

/// See the [module](self).
pub(crate) struct Forwarder {
    upstreams: Vec<SocketAddr>,
    permits: Semaphore,
    in_flight: Mutex<InFlight>,
    /// Upstreams that did not answer, and until when they are tried last.
    failed: Mutex<HashMap<SocketAddr, Instant>>,
}

/// An upstream's answer.
pub(crate) struct Known {
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) nxdomain: bool,
}

impl Forwarder {
    pub(crate) fn new(upstreams: Vec<SocketAddr>) -> Self {
        Self {
            upstreams,
            permits: Semaphore::new(MAX_IN_FLIGHT),
            in_flight: Mutex::default(),
            failed: Mutex::default(),
        }
    }

    /// The answer of the first upstream that has one. `end` is the end of the question in the packet.
    pub(crate) async fn forward(
        &self,
        packet: &[u8],
        end: usize,
        transport: Transport,
    ) -> Option<Vec<u8>> {
        if self.upstreams.is_empty() {
            return None;
        }
        let mut same = packet.get(2..)?.to_vec();
        same.get_mut(HEADER - 2..end - 2)?.make_ascii_lowercase();
        let shared = self.join((transport, same));
        let exchange = async {
            let _permit = self.permits.acquire().await.ok()?;
            self.exchange(packet, end, transport).await
        };
        let answered = shared.get_or_init(|| exchange).await.clone();
        drop(shared);
        let mut answered = answered?.to_vec();
        // Each client gets its own id and the spelling of its question back.
        answered.get_mut(..2)?.copy_from_slice(packet.get(..2)?);
        answered
            .get_mut(HEADER..end)?
            .copy_from_slice(packet.get(HEADER..end)?);
        Some(answered)
    }

    /// The cell that equal queries share.
    fn join(&self, same: (Transport, Vec<u8>)) -> Arc<OnceCell<Answered>> {
        let mut in_flight = self
            .in_flight
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if in_flight.len() > 2 * MAX_IN_FLIGHT {
            in_flight.retain(|_, shared| shared.strong_count() > 0);
        }
        let running = in_flight.get(&same).and_then(Weak::upgrade);
        running.unwrap_or_else(|| {
            let shared = Arc::new(OnceCell::new());
            in_flight.insert(same, Arc::downgrade(&shared));
            shared
        })
    }

    /// Tries the upstreams one by one. Returns a failure only if none has a better answer.
    async fn exchange(&self, packet: &[u8], end: usize, transport: Transport) -> Answered {
        let mut last = None;
        for upstream in self.in_order() {
            let mut packet = packet.to_vec();
            packet[..2].copy_from_slice(&fastrand::u16(..).to_be_bytes());
            let exchange = async {
                match transport {
                    Transport::Udp => query_udp(upstream, &packet, end).await,
                    Transport::Tcp => query_tcp(upstream, &packet, end).await,
                }
            };
            let answer = tokio::time::timeout(UPSTREAM_TIMEOUT, exchange).await;
            self.record(upstream, matches!(answer, Ok(Ok(_))));
            match answer {
                Ok(Ok(answer)) if has_failed(&answer) => last = Some(answer.into()),
                Ok(Ok(answer)) => return Some(answer.into()),
                Ok(Err(error)) => tracing::debug!("resolver {upstream}: {error}"),
                Err(_) => tracing::debug!("resolver {upstream} did not answer in time"),
            }
        }
        last
    }

    /// All upstreams, those that failed recently last.
    fn in_order(&self) -> Vec<SocketAddr> {
        let (failed, now) = (self.failed(), Instant::now());
        let mut all = self.upstreams.clone();
        all.sort_by_key(|upstream| failed.get(upstream).is_some_and(|until| *until > now));
        all
    }

    fn record(&self, upstream: SocketAddr, has_answered: bool) {
        let mut failed = self.failed();
        if has_answered {
            failed.remove(&upstream);
        } else {
            failed.insert(upstream, Instant::now() + FAILURE_PENALTY);
        }
    }

    fn failed(&self) -> MutexGuard<'_, HashMap<SocketAddr, Instant>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves a name outside the zone; nothing if no upstream answers.
    pub(crate) async fn addresses(&self, name: &str, qtype: u16) -> Option<Known> {
        let packet = question(name, qtype)?;
        let answer = self.forward(&packet, packet.len(), Transport::Udp).await?;
        if has_failed(&answer) {
            return None;
        }
        // The codec reads untrusted data here: a panic in it must not end the server.
        let addresses = catch_unwind(AssertUnwindSafe(|| read_addresses(&answer))).ok()??;
        let nxdomain = answer.get(3).is_some_and(|flags| flags & 0x0f == 3);
        Some(Known {
            addresses,
            nxdomain,
        })
    }
}

fn question(name: &str, qtype: u16) -> Option<Vec<u8>> {
    let mut packet = Packet::new_query(0);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    let (qtype, class) = (TYPE::from(qtype), QCLASS::CLASS(CLASS::IN));
    let name = Name::new(name).ok()?;
    let question = Question::new(name, QTYPE::TYPE(qtype), class, false);
    packet.questions.push(question);
    packet.build_bytes_vec().ok()
}

pub(crate) fn read_addresses(packet: &[u8]) -> Option<Vec<IpAddr>> {
    let packet = Packet::parse(packet).ok()?;
    let address = |data: &RData<'_>| match data {
        RData::A(a) => Some(IpAddr::V4(a.address.into())),
        RData::AAAA(a) => Some(IpAddr::V6(a.address.into())),
        _ => None,
    };
    let records = packet.answers.iter().map(|record| &record.rdata);
    Some(records.filter_map(address).collect())
}

/// `SERVFAIL` or `REFUSED`.
fn has_failed(answer: &[u8]) -> bool {
    answer
        .get(3)
        .is_some_and(|flags| matches!(flags & 0x0f, 2 | 5))
}

async fn query_udp(upstream: SocketAddr, packet: &[u8], end: usize) -> std::io::Result<Vec<u8>> {
    let any: IpAddr = match upstream.ip() {
        IpAddr::V4(_) => [0; 4].into(),
        IpAddr::V6(_) => [0; 16].into(),
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(upstream).await?;
    socket.send(packet).await?;
    let mut buffer = vec![0; usize::from(u16::MAX)];
    loop {
        let count = socket.recv(&mut buffer).await?;
        if is_answer_to(packet, &buffer[..count], end) {
            buffer.truncate(count);
            return Ok(buffer);
        }
    }
}

async fn query_tcp(upstream: SocketAddr, packet: &[u8], end: usize) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(upstream).await?;
    let length = u16::try_from(packet.len()).map_err(std::io::Error::other)?;
    stream
        .write_all(&[&length.to_be_bytes(), packet].concat())
        .await?;
    let mut answer = vec![0; usize::from(stream.read_u16().await?)];
    stream.read_exact(&mut answer).await?;
    if is_answer_to(packet, &answer, end) {
        return Ok(answer);
    }
    Err(std::io::Error::other("the answer is to another question"))
}

fn is_answer_to(packet: &[u8], answer: &[u8], end: usize) -> bool {
    let same = |range: std::ops::Range<usize>| match (packet.get(range.clone()), answer.get(range))
    {
        (Some(ours), Some(theirs)) => ours.eq_ignore_ascii_case(theirs),
        _ => false,
    };
    same(0..2) && same(HEADER..end) && answer.get(2).is_some_and(|flags| flags & 0x80 != 0)
}
