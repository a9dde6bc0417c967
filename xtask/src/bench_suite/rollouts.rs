//! Ways back: a release that crashes everywhere, and one that is aborted when all nodes have it. `kennel up` with
//! simulated nodes, followed with watches.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::client::{Http1, Target};
use super::report::{Report, say};
use super::server::Server;

const NODES: u32 = 5_000;
/// Nodes of the first stage, `1%`.
const FIRST_STAGE: usize = 50;
const SCENARIO: &str =
    "pods:\n- {image: \"*:crashes\", ready: 1h, exits: {after: 200ms-600ms, code: 1}}\n";
/// Time from the first crash to the verdict, in seconds.
const VERDICT_SECONDS: f64 = 1.0;
/// Plain updates and aborts, in turn; the medians count.
const ROUNDS: u32 = 7;
/// No step takes that long on a machine that can be measured.
const STEP_TIMEOUT: Duration = Duration::from_mins(5);
/// Watch events that are read ahead; the watches are slowed down when it is full.
const EVENTS_MAX: usize = 10_000;

pub(super) const SETS: &str = "/apis/apps/v1/namespaces/default/daemonsets";
pub(super) const SET: &str = "/apis/apps/v1/namespaces/default/daemonsets/agent";
const REVISIONS: &str = "/apis/apps/v1/namespaces/default/controllerrevisions";
const PODS: &str = "/api/v1/namespaces/default/pods";
const NODE_LIST: &str = "/api/v1/nodes?limit=1";

pub(super) async fn measure(report: &mut Report) -> Result<()> {
    let server = Server::up_with(|dir| {
        let scenario = dir.join("scenario.yaml");
        std::fs::write(&scenario, SCENARIO)?;
        let scenario = scenario.to_string_lossy().into_owned();
        let nodes = NODES.to_string();
        let options = ["--simulate", &nodes, "--scenario", &scenario];
        Ok(options.map(str::to_owned).to_vec())
    })?;
    let mut bench = Bench::start(&server.target()?).await?;
    bench.crash(report).await?;
    let (mut plain, mut abort) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        plain.push(bench.plain_update(&format!("plain-{round}")).await?);
        abort.push(bench.abort(&format!("aborted-{round}")).await?);
    }
    let ((plain, spread), (abort, _)) = (median(plain), median(abort));
    report.judge(
        "5,000 nodes, abort → all back",
        format!("{abort:.2} s (update {plain:.2} ± {spread:.2} s)"),
        "≤ a plain update",
        abort <= plain + spread,
    );
    Ok(())
}

/// The median, and the median distance from it: how far apart two runs of the same thing are.
fn median(mut values: Vec<f64>) -> (f64, f64) {
    let middle = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let median = middle(&mut values);
    let mut distances: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
    (median, middle(&mut distances))
}

/// A watch event: when it was read, which watch has it, and its object.
type Event = (Instant, Kind, Value);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    DaemonSet,
    Revision,
    Pod,
}

struct Bench {
    api: Http1,
    events: mpsc::Receiver<Event>,
    daemon_set: Value,
    /// How many templates there were.
    generation: u64,
    /// By hash: the phase of its rollout.
    phases: BTreeMap<String, String>,
    /// The nodes that ever had a pod of an image.
    nodes: BTreeMap<String, BTreeSet<String>>,
    /// When the first pod was seen whose container had been restarted.
    crashed_at: Option<Instant>,
    /// When the first failed verdict was seen.
    failed_at: Option<Instant>,
}

impl Bench {
    /// Waits for the nodes, creates the DaemonSet, and starts to watch.
    async fn start(target: &Target) -> Result<Self> {
        let mut api = target.http1().await?;
        await_nodes(&mut api, NODES).await?;
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let watched = [
            (Kind::DaemonSet, SETS),
            (Kind::Revision, REVISIONS),
            (Kind::Pod, PODS),
        ];
        for (kind, path) in watched {
            let mut connection = target.http2().await?;
            let body = connection.stream(&format!("{path}?watch=true")).await?;
            tokio::spawn(read(body, kind, sender.clone()));
        }
        api.create(SETS, Bytes::from(daemon_set().to_string()))
            .await?;
        let mut bench = Self {
            api,
            events,
            daemon_set: Value::Null,
            generation: 1,
            phases: BTreeMap::new(),
            nodes: BTreeMap::new(),
            crashed_at: None,
            failed_at: None,
        };
        bench.until("available", Self::has_all).await?;
        Ok(bench)
    }

    /// An update without a policy.
    async fn plain_update(&mut self, version: &str) -> Result<f64> {
        let started_at = Instant::now();
        self.release(version, &[]).await?;
        self.until("updated", Self::has_all).await?;
        let took = started_at.elapsed().as_secs_f64();
        say(format_args!("plain update of 1 % at a time: {took:.2} s"));
        Ok(took)
    }

    /// A release that crashes on every node.
    async fn crash(&mut self, report: &mut Report) -> Result<()> {
        let policy = [
            ("stages", "1%, 100%"),
            ("on-failure", "rollback"),
            ("max-restarts", "0"),
        ];
        self.release("crashes", &policy).await?;
        // The watch of pods may be behind the others.
        self.until("back", |bench| {
            bench.is_held() && bench.crashed_at.is_some()
        })
        .await?;
        let reached = self.nodes.get("agent:crashes").map_or(0, BTreeSet::len);
        report.judge(
            "5,000 nodes, reached by a release that crashes",
            format!("{reached} nodes"),
            format!("≤ {FIRST_STAGE} nodes"),
            reached <= FIRST_STAGE,
        );
        let crashed_at = self.crashed_at.context("no crash was seen")?;
        let failed_at = self.failed_at.context("no verdict was seen")?;
        let seconds = failed_at.saturating_duration_since(crashed_at);
        let seconds = seconds.as_secs_f64();
        report.judge(
            "5,000 nodes, first crash → verdict",
            format!("{seconds:.2} s"),
            format!("≤ {VERDICT_SECONDS} s"),
            seconds <= VERDICT_SECONDS,
        );
        Ok(())
    }

    /// A release that all nodes have, and that is aborted then. Returns how long the way back takes.
    async fn abort(&mut self, version: &str) -> Result<f64> {
        self.release(version, &[("stages", "100% manual")]).await?;
        self.until("waiting", |bench| {
            bench.has_phase("AwaitingPromotion") && bench.number("updatedNumberScheduled") == NODES
        })
        .await?;
        let waiting = self.phases.iter();
        let mut waiting = waiting.filter(|(_, phase)| *phase == "AwaitingPromotion");
        let (hash, _) = waiting.next().context("no revision waits")?;
        let abort = json!({"metadata": {"annotations": {"rollout.kennel.dev/abort": hash}}});
        let started_at = Instant::now();
        self.api.merge(SET, &abort).await?;
        self.until("back", Self::is_held).await?;
        let took = started_at.elapsed().as_secs_f64();
        say(format_args!("abort of all nodes: {took:.2} s"));
        Ok(took)
    }

    async fn release(&mut self, version: &str, policy: &[(&str, &str)]) -> Result<()> {
        let mut annotations = json!({});
        for key in ["stages", "on-failure", "max-restarts"] {
            let value = policy.iter().find(|(given, _)| *given == key);
            let value = value.map_or(Value::Null, |(_, value)| json!(value));
            annotations[format!("rollout.kennel.dev/{key}")] = value;
        }
        let patch = json!({
            "metadata": {"annotations": annotations},
            "spec": {"template": template(version)},
        });
        self.phases.clear();
        self.generation += 1;
        self.api.merge(SET, &patch).await
    }

    fn number(&self, field: &str) -> u32 {
        let number = self.daemon_set["status"][field].as_u64();
        number.and_then(|n| n.try_into().ok()).unwrap_or(0)
    }

    /// All nodes have an available pod of the newest template.
    fn has_all(&self) -> bool {
        let observed = &self.daemon_set["status"]["observedGeneration"];
        let fields = ["updatedNumberScheduled", "numberAvailable"];
        observed.as_u64() >= Some(self.generation)
            && fields.iter().all(|field| self.number(field) == NODES)
    }

    fn has_phase(&self, phase: &str) -> bool {
        self.phases.values().any(|known| known == phase)
    }

    /// The target is held, and all nodes have an available pod of stable.
    fn is_held(&self) -> bool {
        self.has_phase("Held")
            && self.number("numberAvailable") == NODES
            && self.number("updatedNumberScheduled") == 0
    }

    async fn until(&mut self, what: &str, done: impl Fn(&Self) -> bool) -> Result<()> {
        let deadline = Instant::now() + STEP_TIMEOUT;
        while !done(self) {
            let left = deadline.saturating_duration_since(Instant::now());
            let event = timeout(left, self.events.recv()).await;
            let event = event.with_context(|| format!("not all nodes are {what} in time"))?;
            self.note(event.context("the watches have ended")?);
        }
        Ok(())
    }

    fn note(&mut self, (at, kind, object): Event) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match kind {
            Kind::DaemonSet => self.daemon_set = object,
            Kind::Revision => {
                let annotations = &object["metadata"]["annotations"];
                let state = text(&annotations["rollout.kennel.dev/state"]);
                let state: Value = serde_json::from_str(&state).unwrap_or_default();
                let hash = text(&object["metadata"]["labels"]["controller-revision-hash"]);
                self.phases.insert(hash, text(&state["phase"]));
                if annotations["rollout.kennel.dev/verdict"] == "failed" {
                    self.failed_at.get_or_insert(at);
                }
            }
            Kind::Pod => {
                let image = text(&object["spec"]["containers"][0]["image"]);
                let node = text(&object["spec"]["nodeName"]);
                if !node.is_empty() {
                    self.nodes.entry(image).or_default().insert(node);
                }
                let container = &object["status"]["containerStatuses"][0];
                if container["restartCount"].as_u64() > Some(0) {
                    self.crashed_at.get_or_insert(at);
                }
            }
        }
    }
}

pub(super) fn daemon_set() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "updateStrategy": {"rollingUpdate": {"maxUnavailable": "1%"}},
            "template": template("1"),
        },
    })
}

pub(super) fn template(version: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "agent"}},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": false,
            "containers": [{"name": "agent", "image": format!("agent:{version}")}],
        },
    })
}

/// Waits until so many nodes have joined.
pub(super) async fn await_nodes(api: &mut Http1, nodes: u32) -> Result<()> {
    let waited_at = Instant::now();
    while node_count(api).await? < u64::from(nodes) {
        ensure!(waited_at.elapsed() < STEP_TIMEOUT, "nodes are missing");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}

async fn node_count(api: &mut Http1) -> Result<u64> {
    let page: Value = serde_json::from_slice(&api.get(NODE_LIST).await?)?;
    let more = page["metadata"]["remainingItemCount"].as_u64().unwrap_or(0);
    let shown = page["items"].as_array().map_or(0, Vec::len);
    Ok(more + u64::try_from(shown)?)
}

/// Sends the events of a watch until it ends.
async fn read(mut body: Incoming, kind: Kind, events: mpsc::Sender<Event>) {
    let mut rest = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        let at = Instant::now();
        rest.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
        let Some(end) = rest.iter().rposition(|byte| *byte == b'\n') else {
            continue;
        };
        for line in rest[..end].split(|byte| *byte == b'\n') {
            let Ok(mut event) = serde_json::from_slice::<Value>(line) else {
                return;
            };
            if events
                .send((at, kind, event["object"].take()))
                .await
                .is_err()
            {
                return;
            }
        }
        rest.drain(..=end);
    }
}
