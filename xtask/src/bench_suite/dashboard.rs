//! `kennel dashboard` and its page in Chromium: bytes, the first picture, what a rollout costs the page, memory.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use kennel_browser::{Browser, Options};
use kennel_core::spread::Spread;
use serde_json::{Value, json};

use super::report::{Report, say};
use super::rollouts::{SET, SETS, await_nodes, daemon_set, template};
use super::server::{Server, cpu_time, resident_bytes};
use super::{megabytes, milliseconds};

const NODES: u32 = 5_000;
/// How often the page is opened; the median counts.
const OPENED: usize = 9;
/// A rollout of a hundredth of the nodes at a time, in stages without bakes.
const STAGES: &str = "1%, 10%, 50%, 100%";
/// How many rollouts are watched; the worst counts.
const ROLLOUTS: u32 = 3;
const PAGE_BYTES_MAX: f64 = 150_000.0;
const FIRST_PICTURE_MS: f64 = 1_000.0;
/// Processor time of the page's main thread in each second of a rollout.
const MAIN_THREAD_MS: f64 = 50.0;
const MEMORY_MB: f64 = 40.0;

pub(super) async fn measure(report: &mut Report) -> Result<()> {
    if !kennel_browser::is_installed() {
        say("dashboard: not measured without the packages chromium and chromium-driver");
        return Ok(());
    }
    let server = Server::up_with(|_| {
        let nodes = NODES.to_string();
        Ok(["--simulate", &nodes].map(str::to_owned).to_vec())
    })?;
    let mut api = server.target()?.http1().await?;
    await_nodes(&mut api, NODES).await?;
    let set = daemon_set().to_string();
    api.create(SETS, Bytes::from(set)).await?;
    let dashboard = Dashboard::start(&server)?;
    let browser = Browser::start(&Options::default());
    browser.open(&dashboard.address);
    browser.until_text("main", "agent");
    let page = dashboard.page();
    browser.open(&page);
    all_new(&browser);
    bytes(report, &browser);
    first_picture(report, &browser, &page);
    let mut worst: f64 = 0.0;
    for version in 2..2 + ROLLOUTS {
        let patch = json!({
            "metadata": {"annotations": {"rollout.kennel.dev/stages": STAGES}},
            "spec": {"template": template(&version.to_string())},
        });
        worst = worst.max(rollout(&mut api, &browser, &patch).await?);
    }
    report.judge(
        "5,000 nodes, main thread of the page",
        format!("{worst:.0} ms/s"),
        format!("≤ {MAIN_THREAD_MS} ms/s"),
        worst <= MAIN_THREAD_MS,
    );
    let pid = dashboard.child.id().to_string();
    say(format_args!(
        "kennel dashboard: {:.1} s of processor time in all",
        cpu_time(&pid)?.as_secs_f64()
    ));
    let resident = megabytes(resident_bytes(&pid)?);
    report.judge(
        "5,000 nodes, memory of kennel dashboard",
        format!("{resident:.1} MB"),
        format!("≤ {MEMORY_MB} MB"),
        resident <= MEMORY_MB,
    );
    Ok(())
}

/// Everything that the page loads, as sent.
fn bytes(report: &mut Report, browser: &Browser) {
    let script = "const kinds = ['navigation', 'resource'];
        const entries = kinds.flatMap((kind) => performance.getEntriesByType(kind));
        const files = entries.filter((entry) => !entry.name.includes('/api/'));
        return files.reduce((sum, entry) => sum + entry.encodedBodySize, 0);";
    let bytes = browser.run(script, &[]).as_f64().unwrap_or(f64::NAN);
    report.judge(
        "bytes of the page, compressed",
        format!("{:.1} kB", bytes / 1e3),
        format!("≤ {:.0} kB", PAGE_BYTES_MAX / 1e3),
        bytes <= PAGE_BYTES_MAX,
    );
}

/// From opening the address until all nodes are drawn.
fn first_picture(report: &mut Report, browser: &Browser, page: &str) {
    let mut took = Vec::new();
    for _ in 0..OPENED {
        browser.open("about:blank");
        browser.open(page);
        let script = "return performance.getEntriesByName('waffle')[0]?.startTime;";
        let drawn = browser.until("the picture", script, &[]);
        let drawn = drawn.as_f64().unwrap_or(f64::NAN);
        took.push(std::time::Duration::from_secs_f64(drawn / 1e3));
    }
    let spread: Spread = took.into_iter().collect();
    let (median, worst) = (spread.median(), spread.percentile(100));
    say(format_args!(
        "first picture: {} median, {} at worst of {OPENED}",
        milliseconds(median),
        milliseconds(worst)
    ));
    report.judge(
        "5,000 nodes, first picture",
        milliseconds(median),
        format!("≤ {FIRST_PICTURE_MS} ms"),
        median.as_secs_f64() * 1e3 <= FIRST_PICTURE_MS,
    );
}

/// What each second of a rollout costs the page's main thread, in milliseconds of processor time.
async fn rollout(api: &mut super::client::Http1, browser: &Browser, patch: &Value) -> Result<f64> {
    let (began_at, before) = (Instant::now(), browser.main_thread_time());
    api.merge(SET, patch).await?;
    some_old(browser);
    all_new(browser);
    let took = began_at.elapsed().as_secs_f64();
    let spent = browser.main_thread_time().saturating_sub(before);
    let share = spent.as_secs_f64() * 1e3 / took;
    say(format_args!(
        "a rollout seen in {took:.1} s: {share:.0} ms of the main thread a second"
    ));
    Ok(share)
}

/// The number of nodes that the legend counts as new.
const NEW: &str =
    "Number(document.querySelector('.legend .entry b')?.textContent.replaceAll(/\\D/g, ''))";

fn some_old(browser: &Browser) {
    let script = format!("return {NEW} < {NODES};");
    browser.until("the rollout begins", &script, &[]);
}

fn all_new(browser: &Browser) {
    let script = format!("return {NEW} === {NODES};");
    browser.until("all nodes are new", &script, &[]);
}

/// A running `kennel dashboard`.
struct Dashboard {
    child: Child,
    address: String,
}

impl Dashboard {
    fn start(server: &Server) -> Result<Self> {
        let mut child = Command::new(server.binary())
            .args(["dashboard", "--no-open", "--listen", "127.0.0.1:0"])
            .arg("--kubeconfig")
            .arg(server.data_dir().join("admin.kubeconfig"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let stdout = child.stdout.take().context("stdout was piped")?;
        let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
        let address = lines.find_map(|line| {
            let mut words = line.split_whitespace();
            let found = words.find(|word| word.contains("/?token="));
            found.map(str::to_owned)
        });
        let dashboard = Self {
            child,
            address: address.unwrap_or_default(),
        };
        ensure!(
            !dashboard.address.is_empty(),
            "the dashboard has no address"
        );
        Ok(dashboard)
    }

    /// The page of the DaemonSet, without the token.
    fn page(&self) -> String {
        let base = self.address.split("/?").next().unwrap_or_default();
        format!("{base}/#/ds/default/agent")
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        // It may have exited already.
        let _exited = self.child.kill();
        let _reaped = self.child.wait();
    }
}
