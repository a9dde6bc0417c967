//! Watches of the endpoint slices of a large service, while all of its slices change again and again (N2.8).

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::client::Target;
use super::counters::Counters;
use super::report::{Report, say};
use super::server::Server;
use super::{megabytes, ratio};

const PATH: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
/// 5,000 pods.
const SLICES: usize = 50;
const ENDPOINTS: usize = 100;
/// The client reads all of them on one thread.
const WATCHERS: usize = 200;
const CONNECTIONS: usize = 20;
/// The server commits what several write at once together, so that the disk does not set the pace.
const WRITERS: usize = 10;
/// How often each slice changes.
const ROUNDS: usize = 20;
/// How long the last states may take after the last write.
const LAST_STATES_TIMEOUT: Duration = Duration::from_mins(1);

/// Of what all events together have, the share that watchers may get.
const SHARE_MAX: f64 = 0.25;
/// The wait of a watch is at most three seconds; the rest is transfer.
const DELAY_MAX: f64 = 8.0;

pub(super) async fn measure(report: &mut Report) -> Result<()> {
    let server = Server::start()?;
    let target = server.target()?;
    let mut writer = target.http1().await?;
    for number in 0..SLICES {
        writer.create(PATH, slice(number)).await?;
    }
    let revision = Counters::read(&mut writer).await?.revision;
    let mut watchers = open(&target, revision).await?;
    let started_at = Instant::now();
    let mut writers = JoinSet::new();
    for first in 0..WRITERS {
        writers.spawn(change(target.clone(), first));
    }
    while let Some(ended) = writers.join_next().await {
        ended??;
    }
    let (took, written_at) = (started_at.elapsed(), Instant::now());
    let mut all = Seen::default();
    let reading = async {
        while let Some(ended) = watchers.join_next().await {
            let seen = ended??;
            all.bytes += seen.bytes;
            all.events += seen.events;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(LAST_STATES_TIMEOUT, reading)
        .await
        .context("a watcher has not got the last states")??;
    let delay = written_at.elapsed().as_secs_f64();
    let watchers = u64::try_from(WATCHERS)?;
    let written = u64::try_from(SLICES * ROUNDS)?;
    let share = ratio(all.events, watchers * written);
    say(format_args!(
        "slices     {SLICES} slices changed {ROUNDS} times in {:.1} s; {WATCHERS} watchers got {:.1} of {written} events and {:.1} MB each",
        took.as_secs_f64(),
        ratio(all.events, watchers),
        megabytes(all.bytes / watchers),
    ));
    report.judge(
        "slices, events that are sent",
        format!("{:.0} %", share * 100.0),
        "≤ 25 %",
        share <= SHARE_MAX,
    );
    report.judge(
        "slices, last states at all watchers",
        format!("{delay:.1} s"),
        "≤ 8 s",
        delay <= DELAY_MAX,
    );
    Ok(())
}

/// Changes every `WRITERS`-th slice, round after round.
async fn change(target: Target, first: usize) -> Result<()> {
    let mut connection = target.http1().await?;
    for round in 1..=ROUNDS {
        let patch = json!({"metadata": {"annotations": {"round": round.to_string()}}});
        for number in (first..SLICES).step_by(WRITERS) {
            let path = format!("{PATH}/web-{number}");
            connection.merge(&path, &patch).await?;
        }
    }
    Ok(())
}

async fn open(target: &Target, revision: u64) -> Result<JoinSet<Result<Seen>>> {
    let mut watchers = JoinSet::new();
    let path = format!("{PATH}?watch=1&resourceVersion={revision}");
    for first in 0..CONNECTIONS {
        let mut connection = target.http2().await?;
        for _ in (first..WATCHERS).step_by(CONNECTIONS) {
            watchers.spawn(read(connection.stream(&path).await?));
        }
    }
    Ok(watchers)
}

/// A slice of 100 endpoints, as the controller writes it.
fn slice(number: usize) -> Bytes {
    let endpoint = |index: usize| {
        json!({
            "addresses": [format!("10.{}.{}.{index}", 128 + number / 250, number % 250)],
            "conditions": {"ready": true, "serving": true, "terminating": false},
            "nodeName": format!("node-{number}-{index}"),
            "targetRef": {
                "kind": "Pod", "namespace": "default", "name": format!("web-{number}-{index}"),
                "uid": format!("00000000-0000-4000-8000-{:012}", number * ENDPOINTS + index),
            },
            "zone": "zone-a",
        })
    };
    let endpoints: Vec<Value> = (0..ENDPOINTS).map(endpoint).collect();
    let slice = json!({
        "metadata": {
            "name": format!("web-{number}"),
            "labels": {"kubernetes.io/service-name": "web"},
        },
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
    });
    slice.to_string().into()
}

/// What one watcher read until it had the last state of every slice.
#[derive(Default)]
struct Seen {
    events: u64,
    bytes: u64,
}

async fn read(mut body: Incoming) -> Result<Seen> {
    let last = format!("\"round\":\"{ROUNDS}\"");
    let (mut seen, mut complete, mut rest) = (Seen::default(), 0, Vec::new());
    while complete < SLICES {
        let frame = body.frame().await.context("a watch ended")??;
        let data = frame.data_ref().map_or(&[][..], |data| data);
        seen.bytes += u64::try_from(data.len())?;
        rest.extend_from_slice(data);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            seen.events += 1;
            // The annotations are at the beginning of an object.
            let line = String::from_utf8_lossy(&line);
            complete += usize::from(line.contains(&last));
        }
    }
    Ok(seen)
}
