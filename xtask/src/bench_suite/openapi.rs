//! OpenAPI version 3 as a client reads it: the index, then the document of every group-version, compressed. The first time,
//! the server generates the documents.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use http::{Method, header};
use kennel_core::spread::Spread;
use serde_json::Value;

use super::client::Http1;
use super::report::{Report, say};
use super::server::Server;
use super::{count, drain, milliseconds};

/// Fresh servers, each asked once for the first time.
const SERVERS: usize = 5;
/// How often each is asked again.
const REPETITIONS: usize = 20;
const FIRST_MAX: Duration = Duration::from_millis(20);
const AGAIN_MAX: Duration = Duration::from_millis(2);
const INDEX: &str = "/openapi/v3";

pub(super) async fn measure(report: &mut Report) -> Result<()> {
    let (mut first, mut again, mut bytes) = (Vec::new(), Vec::new(), 0);
    for _ in 0..SERVERS {
        let server = Server::start()?;
        let mut connection = server.target()?.http1().await?.accepting_gzip();
        // The handshake is not part of the figure.
        connection.get("/version").await?;
        let (took, size) = read_all(&mut connection).await?;
        first.push(took);
        bytes = size;
        for _ in 0..REPETITIONS {
            again.push(read_all(&mut connection).await?.0);
        }
    }
    let (first, again): (Spread, Spread) =
        (first.into_iter().collect(), again.into_iter().collect());
    say(format_args!(
        "OpenAPI v3 of all groups: {:.0} kB compressed",
        count(bytes) / 1e3
    ));
    for (name, spread, most) in [
        ("OpenAPI v3 of all groups, first", first, FIRST_MAX),
        ("OpenAPI v3 of all groups, again", again, AGAIN_MAX),
    ] {
        let median = spread.median();
        let bound = format!("≤ {} ms", most.as_millis());
        report.judge(name, milliseconds(median), bound, median <= most);
    }
    Ok(())
}

/// Reads the index and all documents; returns how long it took, and the size of the documents.
async fn read_all(connection: &mut Http1) -> Result<(Duration, usize)> {
    let sent = Instant::now();
    let index: Value = serde_json::from_slice(&connection.get(INDEX).await?)?;
    let paths = index["paths"].as_object().context("an index has paths")?;
    let mut bytes = 0;
    for document in paths.values() {
        let url = document["serverRelativeURL"].as_str();
        let url = url.context("a document has a URL")?;
        let response = connection.send(Method::GET, url, bytes::Bytes::new());
        let response = response.await?;
        let encoding = response.headers().get(header::CONTENT_ENCODING);
        ensure!(
            encoding.is_some_and(|e| e == "gzip"),
            "{url} is not compressed"
        );
        bytes += drain(response).await?;
    }
    Ok((sent.elapsed(), bytes))
}
