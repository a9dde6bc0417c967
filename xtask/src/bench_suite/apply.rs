//! Server-side apply: of an unchanged DaemonSet beside a strategic merge patch that changes nothing either, and at full speed with
//! many connections, each changing a DaemonSet of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use bytes::Bytes;
use kennel_core::spread::Spread;
use tokio::task::JoinSet;

use super::client::{Http1, Target};
use super::load::CONNECTIONS;
use super::pod_template::{self as pod, daemonset};
use super::report::{Report, say};
use super::server::Server;
use super::{MEASURED_TIME, ROUNDS, WARM_UP, count, milliseconds};

const APPLY: &str = "application/apply-patch+yaml";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// Requests of each kind in a round; rounds alternate, so that changes of the machine's speed affect both.
const REQUESTS_PER_ROUND: usize = 250;
/// How much longer an apply of an unchanged object may take than a strategic merge patch.
const RATIO_MAX: f64 = 1.5;
const APPLIES_PER_SECOND_MIN: f64 = 2_000.0;

/// Two images, so that each apply changes something.
const IMAGES: [&str; 2] = [
    "registry.example.com/observability/log-shipper:3.1.4",
    "registry.example.com/observability/log-shipper:3.1.5",
];

pub(super) async fn measure(report: &mut Report) -> Result<()> {
    let server = Server::start()?;
    unchanged(report, &mut server.target()?.http1().await?).await?;
    full_speed(report, &server.target()?).await
}

fn path(name: &str) -> String {
    let namespace = pod::NAMESPACE;
    format!("/apis/apps/v1/namespaces/{namespace}/daemonsets/{name}?fieldManager=bench")
}

fn body(name: &str, image: &str) -> Bytes {
    daemonset(name, image).to_string().into()
}

/// One connection applies and patches the same DaemonSet alternately, without changing it.
async fn unchanged(report: &mut Report, connection: &mut Http1) -> Result<()> {
    let (path, body) = (path("unchanged"), body("unchanged", IMAGES[0]));
    connection.patch(APPLY, &path, body.clone()).await?;
    let (mut applies, mut patches) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for (format, durations) in [(APPLY, &mut applies), (STRATEGIC, &mut patches)] {
            for _ in 0..REQUESTS_PER_ROUND {
                let sent = Instant::now();
                connection.patch(format, &path, body.clone()).await?;
                durations.push(sent.elapsed());
            }
        }
    }
    let (applies, patches): (Spread, Spread) =
        (applies.into_iter().collect(), patches.into_iter().collect());
    let ratio = applies.median().as_secs_f64() / patches.median().as_secs_f64();
    report.judge(
        "apply of an unchanged DaemonSet",
        format!(
            "{ratio:.2} × a strategic merge patch ({} and {})",
            milliseconds(applies.median()),
            milliseconds(patches.median()),
        ),
        format!("≤ {RATIO_MAX} ×"),
        ratio <= RATIO_MAX,
    );
    Ok(())
}

/// All connections apply as fast as they are answered.
async fn full_speed(report: &mut Report, target: &Target) -> Result<()> {
    let (stop, applied) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let mut writers = JoinSet::new();
    for number in 0..CONNECTIONS {
        let (target, stop, applied) = (target.clone(), Arc::clone(&stop), Arc::clone(&applied));
        writers.spawn(async move {
            let mut connection = target.http1().await?;
            let name = format!("changed-{number:02}");
            let (path, bodies) = (path(&name), IMAGES.map(|image| body(&name, image)));
            let mut bodies = bodies.iter().cycle();
            while !stop.load(Ordering::Relaxed) {
                let body = bodies.next().cloned().unwrap_or_default();
                connection.patch(APPLY, &path, body).await?;
                applied.fetch_add(1, Ordering::Relaxed);
            }
            Ok::<_, anyhow::Error>(())
        });
    }
    tokio::time::sleep(WARM_UP).await;
    let (from, first) = (Instant::now(), applied.load(Ordering::Relaxed));
    tokio::time::sleep(MEASURED_TIME).await;
    let rate = rate(applied.load(Ordering::Relaxed) - first, from.elapsed());
    stop.store(true, Ordering::Relaxed);
    while let Some(ended) = writers.join_next().await {
        ended??;
    }
    say(format_args!(
        "{CONNECTIONS} connections applied {rate:.0} changes a second"
    ));
    report.judge(
        "applies, 64 connections",
        format!("{rate:.0}/s"),
        format!("≥ {APPLIES_PER_SECOND_MIN:.0}/s"),
        rate >= APPLIES_PER_SECOND_MIN,
    );
    Ok(())
}

fn rate(number: usize, took: Duration) -> f64 {
    count(number) / took.as_secs_f64()
}
