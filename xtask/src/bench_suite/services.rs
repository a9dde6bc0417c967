//! The service proxy of an agent, in a network namespace of its own: its first sync, one changed endpoint with few and with many
//! services, the changes that cost most, and connections through a cluster IP compared with direct ones.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use kennel_core::spread::Spread;
use kennel_nftables::netlink::{Messages, Socket};
use kennel_nftables::nft::{CHANGES, table_of};
use serde_json::{Value, json};

use super::agent::Agent;
use super::client::Http1;
use super::own_network::{self, OWN};
use super::report::{Report, say};
use super::server::{Server, peak_bytes};
use super::{megabytes, milliseconds};

const FEW: usize = 100;
const MANY: usize = 5_000;
/// Of a change's median.
const CHANGE_MAX: Duration = Duration::from_millis(20);
/// A change is flat if it takes at most so many times as long with many services: medians on a busy machine differ.
const FLAT: u32 = 2;
const ENDPOINTS_PER_SERVICE: usize = 10;
/// Changes of one endpoint.
const CHANGES_OF_EACH: usize = 30;
/// Between looks at what the kernel says.
const POLL_INTERVAL: Duration = Duration::from_micros(200);
/// Bytes through one connection, and connections one after the other.
const BYTES: usize = 2 << 30;
const CONNECTIONS: usize = 2_000;
const TIMEOUT: Duration = Duration::from_mins(1);
const SERVICES: &str = "/api/v1/namespaces/default/services";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

pub(super) fn measure(report: &mut Report) -> Result<()> {
    if !own_network::is_possible("services") {
        return Ok(());
    }
    own_network::run(|runtime| runtime.block_on(measure_here(report)))
}

async fn measure_here(report: &mut Report) -> Result<()> {
    let server = Server::up()?;
    let mut api = server.target()?.http1().await?;
    let mut addresses = create(&mut api, 0..FEW).await?;
    let few = sync_and_change(report, &server, FEW, &addresses).await?;
    let mut api = server.target()?.http1().await?;
    addresses.extend(create(&mut api, FEW..MANY).await?);
    let many = sync_and_change(report, &server, MANY, &addresses).await?;
    for (kind, (few, many)) in Kind::ALL.into_iter().zip(few.into_iter().zip(many)) {
        let (few, many) = (few.median(), many.median());
        let shown = format!("{} → {}", milliseconds(few), milliseconds(many));
        let bound = if kind.is_flat() {
            "≤ 20 ms, ≤ 2 ×"
        } else {
            "≤ 20 ms"
        };
        let is_flat = !kind.is_flat() || many <= few * FLAT;
        report.judge(
            format!("services, 100 → 5,000: {}", kind.as_str()),
            shown,
            bound,
            many <= CHANGE_MAX && is_flat,
        );
    }
    Ok(())
}

/// How the endpoints of a service change.
#[derive(Clone, Copy)]
enum Kind {
    Replaced,
    Gone,
    New,
    PowerOfTwo,
    Last,
    First,
}

impl Kind {
    const COUNT: usize = 6;
    const ALL: [Self; Self::COUNT] = [
        Self::Replaced,
        Self::Gone,
        Self::New,
        Self::PowerOfTwo,
        Self::Last,
        Self::First,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::Replaced => "an endpoint is replaced",
            Self::Gone => "an endpoint goes",
            Self::New => "an endpoint comes",
            Self::PowerOfTwo => "the ninth endpoint comes",
            Self::Last => "the last endpoint goes",
            Self::First => "the first endpoint comes",
        }
    }

    /// Whether it costs the same with any number of services: the others change the service's verdict, for which the kernel checks
    /// those of all services again.
    fn is_flat(self) -> bool {
        matches!(self, Self::Replaced | Self::Gone | Self::New)
    }

    /// How many endpoints a service has before the change, and after it.
    fn counts(self) -> (usize, usize) {
        match self {
            Self::Replaced => (ENDPOINTS_PER_SERVICE, ENDPOINTS_PER_SERVICE),
            Self::Gone => (ENDPOINTS_PER_SERVICE, ENDPOINTS_PER_SERVICE - 1),
            Self::New => (ENDPOINTS_PER_SERVICE - 1, ENDPOINTS_PER_SERVICE),
            Self::PowerOfTwo => (8, 9),
            Self::Last => (1, 0),
            Self::First => (0, 1),
        }
    }
}

/// Services and their slices. Returns the cluster IPs.
pub(super) async fn create(
    api: &mut Http1,
    numbers: std::ops::Range<usize>,
) -> Result<Vec<String>> {
    for number in numbers.clone() {
        let name = format!("bench-{number}");
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"ports": [{"port": 80}]}});
        api.create(SERVICES, service.to_string().into()).await?;
        let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": name}},
            "ports": [{"name": "", "port": 8080, "protocol": "TCP"}],
            "endpoints": endpoints(number, 0, ENDPOINTS_PER_SERVICE)});
        api.create(SLICES, slice.to_string().into()).await?;
    }
    let mut addresses = Vec::new();
    for number in numbers {
        let service = api.get(&format!("{SERVICES}/bench-{number}")).await?;
        let service: Value = serde_json::from_slice(&service)?;
        let address = service["spec"]["clusterIP"].as_str();
        addresses.push(address.context("services have cluster IPs")?.to_owned());
    }
    Ok(addresses)
}

/// So many. The first of them is another one in each version.
fn endpoints(service: usize, version: usize, count: usize) -> Vec<Value> {
    let all = (0..count).map(|index| {
        let last = if index == 0 {
            100 + version % 100
        } else {
            index
        };
        let address = format!("10.{}.{}.{last}", 100 + service / 250, service % 250);
        json!({"addresses": [address], "nodeName": format!("node-{}", service % 100),
            "conditions": {"ready": true, "serving": true, "terminating": false}})
    });
    all.collect()
}

/// Returns the times of changes, by kind.
async fn sync_and_change(
    report: &mut Report,
    server: &Server,
    services: usize,
    addresses: &[String],
) -> Result<[Spread; Kind::COUNT]> {
    let started_at = Instant::now();
    let agent = Agent::start_with(server, &["--proxy=nftables"])?;
    let (mut chain, mut ready) = (false, started_at);
    while !chain {
        ensure!(
            started_at.elapsed() < TIMEOUT,
            "no rules in time:\n{}",
            agent.log()
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
        chain = agent.log().contains("routing services");
        ready = Instant::now();
    }
    let took = ready - started_at;
    let memory = megabytes(peak_bytes(&agent.pid())?);
    let figures = format!("{}, at most {memory:.1} MB", milliseconds(took));
    say(format_args!("{services} services: first sync {figures}"));
    let is_many = services == MANY;
    // Of the agent at rest with few services, the phase `agent` says what it weighs.
    let bound = if is_many {
        "≤ 2 s, 100 MB"
    } else {
        "≤ 2 s"
    };
    let holds = took <= Duration::from_secs(2) && (!is_many || memory <= 100.0);
    report.judge(
        format!("services, {services}: agent's first sync"),
        figures,
        bound,
        holds,
    );
    // The server closes connections that were idle meanwhile.
    let mut api = server.target()?.http1().await?;
    // A slice that was changed among few services changes again.
    let versions = if is_many { CHANGES_OF_EACH } else { 0 };
    let changes = changes(&mut api, addresses, versions).await?;
    for (kind, times) in Kind::ALL.into_iter().zip(&changes) {
        say(format_args!(
            "{services} services: {}, and the kernel has it {} after its write is sent (median of {CHANGES_OF_EACH}; largest {})",
            kind.as_str(),
            milliseconds(times.median()),
            milliseconds(times.percentile(100)),
        ));
    }
    if is_many {
        connections(report, &mut api, addresses).await?;
    }
    Ok(changes)
}

/// From sending a write until the kernel says that the agent has changed its table, by kind. The program `nft` would read all
/// elements back, which takes half a second.
async fn changes(
    api: &mut Http1,
    addresses: &[String],
    before: usize,
) -> Result<[Spread; Kind::COUNT]> {
    let notices = Socket::open(CHANGES)?;
    let mut times = [const { Vec::new() }; Kind::COUNT];
    for number in 1..=CHANGES_OF_EACH {
        let (service, version) = (number * 7 % addresses.len(), before + number);
        let path = format!("{SLICES}/bench-{service}");
        let mut count = ENDPOINTS_PER_SERVICE;
        for (kind, times) in Kind::ALL.into_iter().zip(&mut times) {
            let (from, to) = kind.counts();
            if from != count {
                let prepared = endpoints(service, version, from);
                change(&notices, api, &path, &prepared).await?;
            }
            let changed = endpoints(service, version, to);
            times.push(change(&notices, api, &path, &changed).await?);
            count = to;
        }
        let whole = endpoints(service, version, ENDPOINTS_PER_SERVICE);
        change(&notices, api, &path, &whole).await?;
    }
    Ok(times.map(|times| times.into_iter().collect()))
}

/// Changes the endpoints of a slice, and returns after what time the kernel has them.
async fn change(
    notices: &Socket,
    api: &mut Http1,
    path: &str,
    endpoints: &[Value],
) -> Result<Duration> {
    // Of the last change, a transaction has several notices.
    while has_changed(notices)?.is_some() {}
    let sent_at = Instant::now();
    api.merge(path, &json!({ "endpoints": endpoints })).await?;
    while has_changed(notices)? != Some(true) {
        ensure!(
            sent_at.elapsed() < TIMEOUT,
            "the change is not in the kernel in time"
        );
        // The runtime's timers would round this up to a millisecond.
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(sent_at.elapsed())
}

/// Whether the next notices are about the agent's table; `None` if there are none.
fn has_changed(notices: &Socket) -> Result<Option<bool>> {
    let mut bytes = vec![0; 64 << 10];
    let length = notices.receive(&mut bytes)?;
    let is_ours = |length: usize| {
        Messages(&bytes[..length]).any(|message| table_of(&message) == Some(b"kennel-services"))
    };
    Ok(length.map(is_ours))
}

/// Through a cluster IP, and direct.
async fn connections(report: &mut Report, api: &mut Http1, addresses: &[String]) -> Result<()> {
    let listener = TcpListener::bind(SocketAddr::from((OWN, 0)))?;
    let direct = listener.local_addr()?;
    std::thread::spawn(move || serve(&listener));
    let slice = json!({"ports": [{"name": "", "port": direct.port(), "protocol": "TCP"}],
        "endpoints": [{"addresses": ["192.0.2.1"]}]});
    api.merge(&format!("{SLICES}/bench-0"), &slice).await?;
    let through: SocketAddr = format!("{}:80", addresses[0]).parse()?;
    let deadline = Instant::now() + TIMEOUT;
    while TcpStream::connect_timeout(&through, Duration::from_millis(100)).is_err() {
        ensure!(Instant::now() < deadline, "the cluster IP does not answer");
    }
    let shown = |address| -> Result<(String, String)> {
        let (rate, latency) = (throughput(address)?, connect_times(address)?);
        let latency = latency.median().as_secs_f64() * 1e3;
        Ok((
            format!("{:.2} GB/s", rate / 1e9),
            format!("{latency:.3} ms"),
        ))
    };
    let (direct, through) = (shown(direct)?, shown(through)?);
    for (name, through, direct) in [
        ("throughput", through.0, direct.0),
        ("connect and one answer", through.1, direct.1),
    ] {
        say(format_args!("{name}: {through}, {direct} direct"));
        report.judge(
            format!("services, through a cluster IP: {name}"),
            format!("{through}, {direct} direct"),
            "reported",
            true,
        );
    }
    Ok(())
}

/// Answers each connection's first byte, and reads the rest.
fn serve(listener: &TcpListener) {
    for stream in listener.incoming().flatten() {
        std::thread::spawn(move || read_all(stream));
    }
}

fn read_all(mut stream: TcpStream) {
    let mut buffer = vec![0; 256 << 10];
    let mut is_first = true;
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        if std::mem::take(&mut is_first) && stream.write_all(&buffer[..length.min(1)]).is_err() {
            return;
        }
    }
}

/// Bytes per second.
fn throughput(address: SocketAddr) -> Result<f64> {
    let mut stream = TcpStream::connect(address)?;
    let chunk = vec![0; 256 << 10];
    let started_at = Instant::now();
    let mut sent = 0;
    while sent < BYTES {
        stream.write_all(&chunk)?;
        sent += chunk.len();
    }
    #[expect(clippy::cast_precision_loss, reason = "a few gigabytes")]
    Ok(sent as f64 / started_at.elapsed().as_secs_f64())
}

fn connect_times(address: SocketAddr) -> Result<Spread> {
    let mut times = Vec::with_capacity(CONNECTIONS);
    for _ in 0..CONNECTIONS {
        let started_at = Instant::now();
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(b"?")?;
        stream.read_exact(&mut [0])?;
        times.push(started_at.elapsed());
    }
    Ok(times.into_iter().collect())
}
