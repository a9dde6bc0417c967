//! A server whose objects are in etcd, beside what that etcd itself does on the same disk, and beside a server on SQLite.

use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bytes::{BufMut as _, Bytes, BytesMut};
use http::{Method, Request, header};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::load::{self, CONNECTIONS, Pods};
use super::report::{Report, say};
use super::server::{self, Server};
use super::{IDLE_TIME, LISTED_PODS, MEASURED_TIME, WARM_UP, describe, megabytes};

/// A pod as it is stored.
const STORED_BYTES: usize = 4_300;
const START_TIMEOUT: Duration = Duration::from_mins(1);
/// Enough for what is written in the measured time, with its history.
const QUOTA: &str = "--quota-backend-bytes=8589934592";
/// The field `key` of a put, with its length and the key's.
const KEY_FIELD: u8 = 0x0a;
const VALUE_FIELD: u8 = 0x12;

/// An etcd of one member, on the disk of the benchmark.
struct Etcd {
    child: Child,
    address: String,
    _data: TempDir,
}

impl Drop for Etcd {
    fn drop(&mut self) {
        // It may have exited already.
        let _exited = self.child.kill();
        let _reaped = self.child.wait();
    }
}

impl Etcd {
    async fn start() -> Result<Self> {
        let (_, data) = server::prepare()?;
        let address = format!("127.0.0.1:{}", free_port()?);
        let client = format!("http://{address}");
        let peer = format!("http://127.0.0.1:{}", free_port()?);
        let child = Command::new("etcd")
            .arg("--data-dir")
            .arg(data.path())
            .args(["--name", "m", "--log-level", "warn", "--logger", "zap"])
            .args(["--listen-client-urls", &client])
            .args(["--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer])
            .args(["--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("m={peer}"), QUOTA])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let etcd = Self {
            child,
            address,
            _data: data,
        };
        let started = Instant::now();
        // It takes writes only after it has elected itself.
        while etcd.put("/ready", 1).await.is_err() {
            ensure!(started.elapsed() < START_TIMEOUT, "etcd did not start");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(etcd)
    }

    fn store(&self) -> String {
        format!("etcd://{}", self.address)
    }

    async fn put(&self, key: &str, bytes: usize) -> Result<()> {
        Puts::connect(&self.address).await?.put(key, bytes).await
    }

    /// Puts a second over so many connections, each as fast as it is answered.
    async fn rate_of_puts(&self) -> Result<f64> {
        let (stop, done) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicUsize::new(0)),
        );
        let mut writers = JoinSet::new();
        for writer in 0..CONNECTIONS {
            let (stop, done) = (Arc::clone(&stop), Arc::clone(&done));
            let mut puts = Puts::connect(&self.address).await?;
            writers.spawn(async move {
                let mut number = 0;
                while !stop.load(Ordering::Relaxed) {
                    number += 1;
                    let key = format!("/raw/{writer}/{number}");
                    puts.put(&key, STORED_BYTES).await?;
                    done.fetch_add(1, Ordering::Relaxed);
                }
                Ok::<_, anyhow::Error>(())
            });
        }
        tokio::time::sleep(WARM_UP).await;
        let (from, before) = (Instant::now(), done.load(Ordering::Relaxed));
        tokio::time::sleep(MEASURED_TIME).await;
        let puts = done.load(Ordering::Relaxed) - before;
        let rate = super::count(puts) / from.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        while let Some(ended) = writers.join_next().await {
            ended??;
        }
        Ok(rate)
    }
}

fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

/// A connection that puts one value after the other, with etcd's API.
struct Puts {
    sender: http2::SendRequest<Full<Bytes>>,
    url: String,
}

impl Puts {
    async fn connect(address: &str) -> Result<Self> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        let stream = TokioIo::new(socket);
        let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await?;
        tokio::spawn(async move {
            // The pending request reports the error.
            let _result = connection.await;
        });
        let url = format!("http://{address}/etcdserverpb.KV/Put");
        Ok(Self { sender, url })
    }

    async fn put(&mut self, key: &str, bytes: usize) -> Result<()> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(&self.url)
            .header(header::CONTENT_TYPE, "application/grpc")
            .header(header::TE, "trailers")
            .body(Full::new(put_message(key, bytes)))?;
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        let collected = response.into_body().collect().await?;
        let trailers = collected.trailers().context("no outcome")?;
        let status = trailers.get("grpc-status").context("no outcome")?;
        ensure!(status == "0", "etcd answered {trailers:?}");
        Ok(())
    }
}

/// A put as gRPC frames it: a flag, the length, and the fields `key` and `value`.
fn put_message(key: &str, bytes: usize) -> Bytes {
    let mut message = BytesMut::new();
    field(&mut message, KEY_FIELD, key.as_bytes());
    field(&mut message, VALUE_FIELD, &vec![b'x'; bytes]);
    let mut framed = BytesMut::with_capacity(message.len() + 5);
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    framed.extend_from_slice(&message);
    framed.freeze()
}

fn field(message: &mut BytesMut, tag: u8, value: &[u8]) {
    message.put_u8(tag);
    let mut length = value.len();
    loop {
        let [low, ..] = length.to_le_bytes();
        length >>= 7;
        if length == 0 {
            message.put_u8(low & 0x7f);
            break;
        }
        message.put_u8(low | 0x80);
    }
    message.extend_from_slice(value);
}

pub(super) async fn measure(report: &mut Report) -> Result<()> {
    if Command::new("etcd").arg("--version").output().is_err() {
        report.leave_out("etcd", "etcd is not installed");
        return Ok(());
    }
    let raw = Etcd::start().await?.rate_of_puts().await?;
    let etcd = Etcd::start().await?;
    let server = Server::start_with(|_| Ok(vec!["--store".to_owned(), etcd.store()]))?;
    let pods = Arc::new(Pods::new("full"));
    let measurement = load::full_speed(&server, &pods, WARM_UP, MEASURED_TIME).await?;
    describe("creates on etcd", &measurement);
    drop((server, etcd));
    let rate = measurement.rate();
    say(format_args!(
        "the same etcd alone: {raw:.0} puts/s of {STORED_BYTES} bytes"
    ));
    report.judge(
        "creates on etcd, 64 connections",
        format!("{rate:.0}/s"),
        "≥ 3000/s",
        rate >= 3000.0,
    );
    report.judge(
        "creates on etcd, share of its puts",
        format!("{:.2} ({raw:.0}/s)", rate / raw),
        "≥ 0.5",
        rate >= raw / 2.0,
    );
    let on_sqlite = resident_with_pods(&Server::start()?).await?;
    let etcd = Etcd::start().await?;
    let server = Server::start_with(|_| Ok(vec!["--store".to_owned(), etcd.store()]))?;
    let on_etcd = resident_with_pods(&server).await?;
    report.judge(
        "resident, 10,000 pods on etcd",
        format!("{on_etcd:.1} MB (SQLite: {on_sqlite:.1} MB)"),
        "≤ 1.15 × SQLite's",
        on_etcd <= 1.15 * on_sqlite,
    );
    Ok(())
}

async fn resident_with_pods(server: &Server) -> Result<f64> {
    let pods = Arc::new(Pods::new("many"));
    load::fill(&server.target()?, &pods, LISTED_PODS).await?;
    tokio::time::sleep(IDLE_TIME).await;
    Ok(megabytes(server.resident_bytes()?))
}
