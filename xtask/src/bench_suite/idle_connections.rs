//! What a TLS connection with one idle watch takes of a server's memory, with HTTP/1.1 and with HTTP/2.

use std::any::Any;
use std::ops::Range;
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use http::Method;

use super::client::Target;
use super::report::Report;
use super::server::Server;

/// Connections before the first measurement, which fill what all share.
const FIRST: usize = 200;
/// Connections between the two measurements.
const MEASURED: usize = 2_000;
/// After the last connection, until what its handshake took is freed.
const SETTLE_TIME: Duration = Duration::from_secs(2);
const BYTES_MAX: u64 = 28_000;

#[derive(Clone, Copy)]
enum Protocol {
    Http1,
    Http2,
}

pub(super) async fn measure(report: &mut Report) -> Result<()> {
    for (name, protocol) in [("HTTP/1.1", Protocol::Http1), ("HTTP/2", Protocol::Http2)] {
        let server = Server::start()?;
        let target = server.target()?;
        let _first = open(&target, protocol, 0..FIRST).await?;
        tokio::time::sleep(SETTLE_TIME).await;
        let before = server.resident_bytes()?;
        let _measured = open(&target, protocol, FIRST..FIRST + MEASURED).await?;
        tokio::time::sleep(SETTLE_TIME).await;
        let all = server.resident_bytes()?.saturating_sub(before);
        let each = all / u64::try_from(MEASURED)?;
        report.judge(
            format!("idle {name} connection with a watch"),
            format!("{each} bytes"),
            format!("≤ {BYTES_MAX} bytes"),
            each <= BYTES_MAX,
        );
    }
    Ok(())
}

/// Opens a connection and a watch by node for each number. They close when they are dropped.
async fn open(
    target: &Target,
    protocol: Protocol,
    numbers: Range<usize>,
) -> Result<Vec<Box<dyn Any>>> {
    let mut held: Vec<Box<dyn Any>> = Vec::new();
    for number in numbers {
        let path = format!("/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dn{number}");
        match protocol {
            Protocol::Http1 => {
                let mut connection = target.http1().await?;
                let response = connection.send(Method::GET, &path, Bytes::new()).await?;
                held.push(Box::new((connection, response)));
            }
            Protocol::Http2 => {
                let mut connection = target.http2().await?;
                let body = connection.stream(&path).await?;
                held.push(Box::new((connection, body)));
            }
        }
    }
    Ok(held)
}
