//! Questions for others, and their answers, passed on as they are.
//!
//! The same question from several askers is asked once. So a question that comes back to us, because those
//! we ask ask us, waits for itself and ends with the patience of the first: it never multiplies.

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

/// How long one resolver may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long one that did not answer is asked after the others. Without that, every question would wait for
/// it, and few would be served at all.
const DOUBT: Duration = Duration::from_secs(10);
/// How many questions are with others at once.
const AT_ONCE: usize = 256;

/// The way that a packet takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Over {
    Udp,
    Tcp,
}

type Answered = Option<Arc<[u8]>>;
type Flights = HashMap<(Over, Vec<u8>), Weak<OnceCell<Answered>>>;

/// See the [module](self).
pub(crate) struct Forwarder {
    upstreams: Vec<SocketAddr>,
    room: Semaphore,
    flights: Mutex<Flights>,
    /// Until when those who did not answer are doubted.
    doubts: Mutex<HashMap<SocketAddr, Instant>>,
}

/// What others know of a name.
pub(crate) struct Known {
    pub(crate) addresses: Vec<IpAddr>,
    /// There is no such name.
    pub(crate) missing: bool,
}

impl Forwarder {
    pub(crate) fn new(upstreams: Vec<SocketAddr>) -> Self {
        Self {
            upstreams,
            room: Semaphore::new(AT_ONCE),
            flights: Mutex::default(),
            doubts: Mutex::default(),
        }
    }

    /// The answer of the first that has one. `end` is where the question in the packet ends.
    pub(crate) async fn ask(&self, packet: &[u8], end: usize, over: Over) -> Option<Vec<u8>> {
        if self.upstreams.is_empty() {
            return None;
        }
        let mut same = packet.get(2..)?.to_vec();
        same.get_mut(HEADER - 2..end - 2)?.make_ascii_lowercase();
        let flight = self.join((over, same));
        let exchange = async {
            let _seat = self.room.acquire().await.ok()?;
            self.exchange(packet, end, over).await
        };
        let answered = flight.get_or_init(|| exchange).await.clone();
        drop(flight);
        let mut answered = answered?.to_vec();
        // Each asker gets the question back as asked.
        answered.get_mut(..2)?.copy_from_slice(packet.get(..2)?);
        answered
            .get_mut(HEADER..end)?
            .copy_from_slice(packet.get(HEADER..end)?);
        Some(answered)
    }

    /// The flight of those who ask the same.
    fn join(&self, same: (Over, Vec<u8>)) -> Arc<OnceCell<Answered>> {
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        if flights.len() > 2 * AT_ONCE {
            flights.retain(|_, flight| flight.strong_count() > 0);
        }
        let running = flights.get(&same).and_then(Weak::upgrade);
        running.unwrap_or_else(|| {
            let flight = Arc::new(OnceCell::new());
            flights.insert(same, Arc::downgrade(&flight));
            flight
        })
    }

    /// Asks one after the other. One that failed is believed only if nobody knows better.
    async fn exchange(&self, packet: &[u8], end: usize, over: Over) -> Answered {
        let mut last = None;
        for upstream in self.in_order() {
            let mut packet = packet.to_vec();
            packet[..2].copy_from_slice(&fastrand::u16(..).to_be_bytes());
            let exchange = async {
                match over {
                    Over::Udp => ask_udp(upstream, &packet, end).await,
                    Over::Tcp => ask_tcp(upstream, &packet, end).await,
                }
            };
            let answer = tokio::time::timeout(PATIENCE, exchange).await;
            self.judge(upstream, matches!(answer, Ok(Ok(_))));
            match answer {
                Ok(Ok(answer)) if has_failed(&answer) => last = Some(answer.into()),
                Ok(Ok(answer)) => return Some(answer.into()),
                Ok(Err(error)) => tracing::debug!("resolver {upstream}: {error}"),
                Err(_) => tracing::debug!("resolver {upstream} did not answer in time"),
            }
        }
        last
    }

    /// All, those who did not answer lately after the others.
    fn in_order(&self) -> Vec<SocketAddr> {
        let (doubts, now) = (self.doubts(), Instant::now());
        let mut all = self.upstreams.clone();
        all.sort_by_key(|upstream| doubts.get(upstream).is_some_and(|until| *until > now));
        all
    }

    fn judge(&self, upstream: SocketAddr, has_answered: bool) {
        let mut doubts = self.doubts();
        if has_answered {
            doubts.remove(&upstream);
        } else {
            doubts.insert(upstream, Instant::now() + DOUBT);
        }
    }

    fn doubts(&self) -> MutexGuard<'_, HashMap<SocketAddr, Instant>> {
        self.doubts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What others know of a foreign name; nothing, if nobody could be asked.
    pub(crate) async fn addresses(&self, name: &str, kind: u16) -> Option<Known> {
        let packet = question(name, kind)?;
        let answer = self.ask(&packet, packet.len(), Over::Udp).await?;
        if has_failed(&answer) {
            return None;
        }
        // What strangers send is read by the codec: a bug in there must not be ours.
        let addresses = catch_unwind(AssertUnwindSafe(|| read_addresses(&answer))).ok()??;
        let missing = answer.get(3).is_some_and(|flags| flags & 0x0f == 3);
        Some(Known { addresses, missing })
    }
}

fn question(name: &str, kind: u16) -> Option<Vec<u8>> {
    let mut packet = Packet::new_query(0);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    let (kind, class) = (TYPE::from(kind), QCLASS::CLASS(CLASS::IN));
    let name = Name::new(name).ok()?;
    let question = Question::new(name, QTYPE::TYPE(kind), class, false);
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

/// Server failure, or a refusal.
fn has_failed(answer: &[u8]) -> bool {
    answer
        .get(3)
        .is_some_and(|flags| matches!(flags & 0x0f, 2 | 5))
}

async fn ask_udp(upstream: SocketAddr, packet: &[u8], end: usize) -> std::io::Result<Vec<u8>> {
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
        if answers(packet, &buffer[..count], end) {
            buffer.truncate(count);
            return Ok(buffer);
        }
    }
}

async fn ask_tcp(upstream: SocketAddr, packet: &[u8], end: usize) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(upstream).await?;
    let length = u16::try_from(packet.len()).map_err(std::io::Error::other)?;
    stream
        .write_all(&[&length.to_be_bytes(), packet].concat())
        .await?;
    let mut answer = vec![0; usize::from(stream.read_u16().await?)];
    stream.read_exact(&mut answer).await?;
    if answers(packet, &answer, end) {
        return Ok(answer);
    }
    Err(std::io::Error::other("the answer is to another question"))
}

/// Is this an answer to that question?
fn answers(packet: &[u8], answer: &[u8], end: usize) -> bool {
    let same = |range: std::ops::Range<usize>| match (packet.get(range.clone()), answer.get(range))
    {
        (Some(ours), Some(theirs)) => ours.eq_ignore_ascii_case(theirs),
        _ => false,
    };
    same(0..2) && same(HEADER..end) && answer.get(2).is_some_and(|flags| flags & 0x80 != 0)
}
