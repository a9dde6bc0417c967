//! `kennel dashboard` and its page in Chromium: bytes, the first picture, what a rollout costs the page, memory.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use kennel_browser::{Browser, Options};
use kennel_core::spread::Spread;
use serde_json::{Value, json};

use super::report::{Report, say};
use super::rollouts::{SET, SETS, await_nodes, daemon_set, template};
use super::server::{Server, cpu_time, peak_bytes, resident_bytes};
use super::{megabytes, milliseconds};

/// How often the page is opened; the median counts.
const OPENED: usize = 9;
const PAGE_BYTES_MAX: f64 = 150_000.0;

/// A cluster, and what its page may cost.
struct Fleet {
    nodes: u32,
    /// As the table has it.
    title: &'static str,
    /// Of a rollout, without bakes; a hundredth of the nodes are updated at a time.
    stages: &'static str,
    /// How many rollouts are watched; the worst counts.
    rollouts: u32,
    first_picture_ms: f64,
    /// Processor time of the page's main thread in each second of a rollout.
    main_thread_ms: f64,
    /// The longest that the page does not answer during a rollout, if that is bounded.
    longest_task_ms: Option<f64>,
    /// Peak memory of the dashboard, if that is bounded.
    memory_mb: Option<f64>,
}

/// Smooth.
const MANY: Fleet = Fleet {
    nodes: 5_000,
    title: "5,000 nodes",
    stages: "1%, 10%, 50%, 100%",
    rollouts: 3,
    first_picture_ms: 1_000.0,
    main_thread_ms: 50.0,
    longest_task_ms: None,
    memory_mb: Some(40.0),
};
/// Usable: three quarters of the time are free for whoever looks at it, and no wait is long.
const VERY_MANY: Fleet = Fleet {
    nodes: 50_000,
    title: "50,000 nodes",
    stages: "1%, 10%, 100%",
    rollouts: 1,
    first_picture_ms: 5_000.0,
    main_thread_ms: 250.0,
    longest_task_ms: Some(500.0),
    memory_mb: None,
};
/// By then a rollout over all nodes must be over.
const ROLLOUT_MAX: Duration = Duration::from_mins(10);

/// `named`: the phase was asked for by name.
pub(super) async fn measure(report: &mut Report, named: bool) -> Result<()> {
    if !kennel_browser::is_installed() {
        let missing = "without the packages chromium and chromium-driver";
        ensure!(!named, "the dashboard cannot be measured {missing}");
        report.leave_out("the dashboard's page", missing);
        return Ok(());
    }
    for fleet in [MANY, VERY_MANY] {
        fleet.measure(report).await?;
    }
    Ok(())
}

impl Fleet {
    async fn measure(&self, report: &mut Report) -> Result<()> {
        let server = Server::up_with(|_| {
            let nodes = self.nodes.to_string();
            Ok(["--simulate", &nodes].map(str::to_owned).to_vec())
        })?;
        let target = server.target()?;
        let mut api = target.http1().await?;
        await_nodes(&mut api, self.nodes).await?;
        let set = daemon_set().to_string();
        api.create(SETS, Bytes::from(set)).await?;
        let dashboard = Dashboard::start(&server)?;
        let browser = Browser::start(&Options::default());
        browser.open(&dashboard.address);
        browser.until_text("main", "agent");
        let page = dashboard.page();
        browser.open(&page);
        self.all_new(&browser);
        if self.nodes == MANY.nodes {
            bytes(report, &browser);
        }
        self.first_picture(report, &browser, &page);
        let mut worst = Cost::default();
        for version in 2..2 + self.rollouts {
            let patch = json!({
                "metadata": {"annotations": {"rollout.kennel.dev/stages": self.stages}},
                "spec": {"template": template(&version.to_string())},
            });
            // The server closes a connection that was idle for as long as many nodes take.
            let mut api = target.http1().await?;
            let cost = self.rollout(&mut api, &browser, &patch).await?;
            worst.share = worst.share.max(cost.share);
            worst.longest_task = worst.longest_task.max(cost.longest_task);
        }
        self.judge_cost(report, worst);
        self.judge_memory(report, &dashboard.child.id().to_string())
    }

    fn judge_cost(&self, report: &mut Report, cost: Cost) {
        let (title, bound) = (self.title, self.main_thread_ms);
        report.judge(
            format!("{title}, main thread of the page"),
            format!("{:.0} ms/s", cost.share),
            format!("≤ {bound} ms/s"),
            cost.share <= bound,
        );
        if let Some(bound) = self.longest_task_ms {
            report.judge(
                format!("{title}, longest task of the page"),
                format!("{:.0} ms", cost.longest_task),
                format!("≤ {bound} ms"),
                cost.longest_task <= bound,
            );
        }
    }

    fn judge_memory(&self, report: &mut Report, pid: &str) -> Result<()> {
        let title = self.title;
        let (resident, peak) = (resident_bytes(pid)?, peak_bytes(pid)?);
        let (resident, peak) = (megabytes(resident), megabytes(peak));
        say(format_args!(
            "kennel dashboard, {title}: {:.1} s of processor time in all, {resident:.1} MB, {peak:.1} MB at its peak",
            cpu_time(pid)?.as_secs_f64()
        ));
        if let Some(bound) = self.memory_mb {
            report.judge(
                format!("{title}, peak memory of kennel dashboard"),
                format!("{peak:.1} MB"),
                format!("≤ {bound} MB"),
                peak <= bound,
            );
        }
        Ok(())
    }

    /// From opening the address until all nodes are drawn.
    fn first_picture(&self, report: &mut Report, browser: &Browser, page: &str) {
        let mut took = Vec::new();
        for _ in 0..OPENED {
            browser.open("about:blank");
            browser.open(page);
            let script = "return performance.getEntriesByName('waffle')[0]?.startTime;";
            let drawn = browser.until("the picture", script, &[]);
            let drawn = drawn.as_f64().unwrap_or(f64::NAN);
            took.push(Duration::from_secs_f64(drawn / 1e3));
        }
        let spread: Spread = took.into_iter().collect();
        let (median, worst) = (spread.median(), spread.percentile(100));
        let (title, bound) = (self.title, self.first_picture_ms);
        say(format_args!(
            "first picture, {title}: {} median, {} at worst of {OPENED}",
            milliseconds(median),
            milliseconds(worst)
        ));
        report.judge(
            format!("{title}, first picture"),
            milliseconds(median),
            format!("≤ {bound} ms"),
            median.as_secs_f64() * 1e3 <= bound,
        );
    }

    /// What a rollout costs the page.
    async fn rollout(
        &self,
        api: &mut super::client::Http1,
        browser: &Browser,
        patch: &Value,
    ) -> Result<Cost> {
        browser.run(WATCH_TASKS, &[]);
        let no_page = "no process of the browser runs the page";
        let page = browser.main_thread().context(no_page)?;
        let before = page.time().context(no_page)?;
        let began_at = Instant::now();
        api.merge(SET, patch).await?;
        self.some_old(browser);
        self.all_new(browser);
        let took = began_at.elapsed().as_secs_f64();
        let after = page.time().context(no_page)?;
        let spent = after.saturating_sub(before);
        ensure!(
            spent > Duration::ZERO,
            "the page has shown a rollout in no time"
        );
        let longest = browser.run("return window.longestTask;", &[]);
        let cost = Cost {
            share: spent.as_secs_f64() * 1e3 / took,
            longest_task: longest.as_f64().context("the page counts no tasks")?,
        };
        let Cost {
            share,
            longest_task,
        } = cost;
        say(format_args!(
            "a rollout over {} seen in {took:.1} s: {share:.0} ms of the main thread a second, longest task {longest_task:.0} ms",
            self.title
        ));
        Ok(cost)
    }

    fn some_old(&self, browser: &Browser) {
        let script = format!("return {NEW} < {};", self.nodes);
        browser.until_seen_by_page(ROLLOUT_MAX, "the rollout begins", &script);
    }

    fn all_new(&self, browser: &Browser) {
        let script = format!("return {NEW} === {};", self.nodes);
        browser.until_seen_by_page(ROLLOUT_MAX, "all nodes are new", &script);
    }
}

/// What a rollout costs the page, in milliseconds.
#[derive(Clone, Copy, Default)]
struct Cost {
    /// Processor time of the main thread, of each second.
    share: f64,
    /// 0 if no task was longer than 50 ms.
    longest_task: f64,
}

/// Notes the longest task from now on; the browser tells of those that are longer than 50 ms.
const WATCH_TASKS: &str = "window.longestTask = 0;
    window.taskWatch ??= new PerformanceObserver((list) => {
        const longest = Math.max(...list.getEntries().map((entry) => entry.duration));
        window.longestTask = Math.max(window.longestTask, longest);
    });
    window.taskWatch.observe({type: 'longtask'});";

/// The number of nodes that the legend counts as new.
const NEW: &str =
    "Number(document.querySelector('.legend .entry b')?.textContent.replaceAll(/\\D/g, ''))";

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
