//! The report of a benchmark, as a table or JSON. Pure.

use std::fmt::Write as _;
use std::time::Duration;

use kennel_core::spread::Spread;
use serde_json::{Map, Value, json};

use super::connections::Connections;
use super::latency::Latencies;
use super::load::Step;
use super::options::ConnectionKind;
use super::percentiles::{milliseconds, percentiles};

pub(super) struct Report {
    pub(super) nodes: u32,
    pub(super) max_unavailable: Value,
    /// `None`: all nodes share one client.
    pub(super) connections: Option<ConnectionFigures>,
    pub(super) registered_in: Duration,
    /// How often each node renews its lease.
    pub(super) heartbeat: Duration,
    pub(super) idle: Option<Step>,
    /// Apply, update and delete.
    pub(super) steps: [Step; 3],
    /// Those given with `--pid`, and this process last.
    pub(super) processes: Vec<ProcessCost>,
}

/// What each node has of its own.
pub(super) struct ConnectionFigures {
    kind: ConnectionKind,
    protocol: &'static str,
    opened_in: Duration,
    /// What the watches received that only agents have.
    pub(super) discarded_bytes: u64,
}

impl ConnectionFigures {
    pub(super) fn of(connections: &Connections) -> Self {
        Self {
            kind: connections.kind,
            protocol: connections.protocol,
            opened_in: connections.opened_in,
            discarded_bytes: 0,
        }
    }

    fn json(&self) -> Value {
        json!({
            "kind": self.kind_name(),
            "protocol": self.protocol,
            "openSeconds": seconds(self.opened_in),
            "agentWatchBytes": self.discarded_bytes,
        })
    }

    fn kind_name(&self) -> &'static str {
        match self.kind {
            ConnectionKind::Agent => "agent",
            ConnectionKind::Plain => "plain",
        }
    }

    /// What is each node's own, as text.
    fn text(&self) -> String {
        let (protocol, opened) = (self.protocol, self.opened_in.as_secs_f64());
        let more = match self.kind {
            ConnectionKind::Agent => format!(
                "; also tokens, and watches of services and networks, which received {:.1} MB",
                megabytes(self.discarded_bytes)
            ),
            ConnectionKind::Plain => String::new(),
        };
        format!(
            "each node has its own certificate, {protocol} client, watches of its pods and its Node, and lease{more}\n\
             connected in {opened:.1} s\n"
        )
    }
}

/// A process and its peak memory. Its CPU time is in each step, at the same index.
pub(super) struct ProcessCost {
    pub(super) pid: u32,
    pub(super) command: String,
    pub(super) peak_bytes: u64,
    pub(super) peak_source: &'static str,
}

const STEPS: [(&str, &str); 3] = [
    ("apply", "apply → all available"),
    ("update", "rolling update → all available"),
    ("delete", "delete → all gone"),
];
/// Longer command lines are truncated.
const COMMAND_LENGTH_MAX: usize = 60;
const MB: f64 = 1e6;

impl Report {
    pub(super) fn json(&self) -> Value {
        let steps: Map<String, Value> = STEPS
            .iter()
            .zip(&self.steps)
            .map(|((key, _), step)| ((*key).to_owned(), self.step_json(step)))
            .collect();
        let mut processes: Vec<Value> = (0..self.processes.len())
            .map(|at| self.process_json(at))
            .collect();
        let bench = processes.pop();
        json!({
            "nodes": self.nodes,
            "maxUnavailable": self.max_unavailable,
            "connections": self.connections.as_ref().map(ConnectionFigures::json),
            "registerSeconds": seconds(self.registered_in),
            "heartbeatSeconds": seconds(self.heartbeat),
            "steps": steps,
            "processes": processes,
            "bench": bench,
        })
    }

    fn step_json(&self, step: &Step) -> Value {
        json!({
            "seconds": seconds(step.took),
            "podsPerSecond": self.rate(step).round(),
            "latency": latencies_json(&step.latencies),
        })
    }

    fn process_json(&self, at: usize) -> Value {
        let ProcessCost {
            pid,
            command,
            peak_bytes,
            peak_source,
        } = &self.processes[at];
        let mut value = json!({
            "pid": pid,
            "command": command,
            "cpuSeconds": {"total": seconds(self.total(at))},
            "peakBytes": peak_bytes,
            "peakFrom": peak_source,
        });
        for ((key, _), step) in STEPS.iter().zip(&self.steps) {
            value["cpuSeconds"][*key] = json!(seconds(cpu_time(step, at)));
        }
        if let Some(idle) = &self.idle {
            value["idleSeconds"] = json!(seconds(idle.took));
            value["idleCores"] = json!(cores(idle, at));
        }
        value
    }

    fn rate(&self, step: &Step) -> f64 {
        f64::from(self.nodes) / step.took.as_secs_f64().max(1e-9)
    }

    fn total(&self, at: usize) -> Duration {
        self.steps.iter().map(|step| cpu_time(step, at)).sum()
    }

    pub(super) fn table(&self) -> String {
        let mut text = format!(
            "{} nodes, at most {} unavailable; registered in {:.1} s, leases renewed every {} s\n",
            self.nodes,
            self.max_unavailable.to_string().trim_matches('"'),
            self.registered_in.as_secs_f64(),
            self.heartbeat.as_secs(),
        );
        text.push_str(&match &self.connections {
            Some(figures) => figures.text(),
            None => {
                "all nodes share one client, with one watch of pods and one of nodes\n".to_owned()
            }
        });
        text.push('\n');
        for ((_, name), step) in STEPS.iter().zip(&self.steps) {
            let took = step.took.as_secs_f64();
            let rate = self.rate(step);
            let _infallible = writeln!(text, "{name:32} {took:8.2} s {rate:8.0} pods/s");
        }
        for ((key, _), step) in STEPS.iter().zip(&self.steps).take(2) {
            let _infallible =
                writeln!(text, "\n{key:32} {:>10} {:>10} {:>10}", "p50", "p90", "p99");
            for (name, spread) in latency_rows(&step.latencies) {
                let at = |percent| milliseconds(spread.percentile(percent));
                let (p50, p90, p99) = (at(50), at(90), at(99));
                let _infallible =
                    writeln!(text, "  {name:30} {p50:7.1} ms {p90:7.1} ms {p99:7.1} ms");
            }
        }
        text.push('\n');
        for at in 0..self.processes.len() {
            self.write_process(&mut text, at);
        }
        text
    }

    fn write_process(&self, text: &mut String, at: usize) {
        let cost = &self.processes[at];
        let [apply, update, delete] = [0, 1, 2].map(|i| cpu_time(&self.steps[i], at).as_secs_f64());
        let this = if at + 1 == self.processes.len() {
            " (this benchmark and its nodes)"
        } else {
            ""
        };
        let command: String = cost.command.chars().take(COMMAND_LENGTH_MAX).collect();
        let _infallible = writeln!(text, "process {}{this}: {command}", cost.pid);
        let total = self.total(at).as_secs_f64();
        let _infallible = writeln!(
            text,
            "  {total:.2} s CPU time ({apply:.2} + {update:.2} + {delete:.2})"
        );
        let peak = megabytes(cost.peak_bytes);
        let source = cost.peak_source;
        let _infallible = writeln!(text, "  {peak:.1} MB peak resident memory ({source})");
        if let Some(idle) = &self.idle {
            let (rest, cores) = (idle.took.as_secs_f64(), cores(idle, at));
            let _infallible = writeln!(text, "  {cores:.3} cores while idle for {rest:.0} s");
        }
    }
}

fn latency_rows(latencies: &Latencies) -> [(&'static str, &Spread); 3] {
    [
        ("created → bound", &latencies.created_to_bound),
        ("bound → ready", &latencies.bound_to_ready),
        ("created → ready", &latencies.created_to_ready),
    ]
}

fn latencies_json(latencies: &Latencies) -> Value {
    json!({
        "createdToBound": percentiles(&latencies.created_to_bound),
        "boundToReady": percentiles(&latencies.bound_to_ready),
        "createdToReady": percentiles(&latencies.created_to_ready),
    })
}

fn cpu_time(step: &Step, at: usize) -> Duration {
    step.cpu_times.get(at).copied().unwrap_or_default()
}

fn cores(step: &Step, at: usize) -> f64 {
    cpu_time(step, at).as_secs_f64() / step.took.as_secs_f64().max(1e-9)
}

/// Seconds, rounded to milliseconds.
fn seconds(duration: Duration) -> f64 {
    milliseconds(duration).round() / 1e3
}

#[expect(clippy::cast_precision_loss, reason = "sizes far below 2^52")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / MB
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let step = |seconds: u64, of_server: u64| Step {
            took: Duration::from_secs(seconds),
            cpu_times: [of_server, 1].map(Duration::from_secs).to_vec(),
            latencies: Latencies::default(),
        };
        let cost = |pid, peak_bytes| ProcessCost {
            pid,
            command: "kennel up".to_owned(),
            peak_bytes,
            peak_source: "VmHWM",
        };
        Report {
            nodes: 100,
            max_unavailable: json!("10%"),
            connections: None,
            registered_in: Duration::from_millis(1_234),
            heartbeat: Duration::from_secs(25),
            idle: Some(step(60, 15)),
            steps: [step(2, 4), step(5, 6), step(4, 2)],
            processes: vec![cost(7, 200_000_000), cost(8, 1_000_000)],
        }
    }

    #[test]
    fn json_has_every_measurement() {
        let json = report().json();
        assert_eq!(json["steps"]["apply"]["seconds"], 2.0);
        assert_eq!(json["steps"]["update"]["podsPerSecond"], 20.0);
        assert_eq!(json["processes"].as_array().map(Vec::len), Some(1));
        let server = &json["processes"][0];
        assert_eq!(server["cpuSeconds"]["total"], 12.0);
        assert_eq!(server["cpuSeconds"]["delete"], 2.0);
        assert_eq!(server["idleCores"], 0.25);
        assert_eq!(server["peakBytes"], 200_000_000);
        assert_eq!(json["bench"]["cpuSeconds"]["total"], 3.0);
    }

    #[test]
    fn a_report_says_what_nodes_share() {
        let mut report = report();
        assert_eq!(report.json()["connections"], Value::Null);
        assert!(report.table().contains("all nodes share one client"));
        report.connections = Some(ConnectionFigures {
            kind: ConnectionKind::Agent,
            protocol: "HTTP/2",
            opened_in: Duration::from_secs(3),
            discarded_bytes: 12_300_000,
        });
        assert_eq!(report.json()["connections"]["protocol"], "HTTP/2");
        assert_eq!(report.json()["connections"]["kind"], "agent");
        let table = report.table();
        for part in ["HTTP/2 client", "connected in 3.0 s", "12.3 MB"] {
            assert!(table.contains(part), "{part} is missing in:\n{table}");
        }
    }

    #[test]
    fn the_table_has_every_measurement() {
        let table = report().table();
        for part in [
            "100 nodes, at most 10% unavailable",
            "leases renewed every 25 s",
            "rolling update → all available       5.00 s       20 pods/s",
            "12.00 s CPU time (4.00 + 6.00 + 2.00)",
            "200.0 MB peak resident memory (VmHWM)",
            "0.250 cores while idle for 60 s",
            "process 8 (this benchmark and its nodes)",
        ] {
            assert!(table.contains(part), "{part} is missing in:\n{table}");
        }
    }
}
