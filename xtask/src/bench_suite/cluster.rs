//! A whole cluster: `kennel up`, and `kennel bench` with its simulated nodes in another process.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::plot;
use super::report::{Report, say};
use super::server::Server;

const NODES: u32 = 5_000;
/// Nodes of the heartbeat measurement, …
const IDLE_NODES: u32 = 10_000;
/// … and its duration in seconds.
const IDLE_SECONDS: &str = "60";
/// Numbers of nodes of the phase `growth`.
const SIZES: [u32; 4] = [1_000, 5_000, 10_000, 50_000];
/// The stages of a measured rollout, without bakes, …
const STAGES: &str = "stages=1%, 10%, 25%, 50%, 100%";
/// … which is run this often in turn with a plain one.
const ROUNDS: u32 = 3;
const PLOT: &str = "docs/growth.svg";

/// Creates, updates and deletes a DaemonSet on five thousand nodes.
pub(super) fn measure(report: &mut Report) -> Result<()> {
    let figures = Server::up()?.bench(NODES, &[])?;
    let size = Size::read(&figures)?;
    say(size.line());
    let steps = [
        ("5,000 nodes, apply → available", size.apply, 3.6),
        ("5,000 nodes, update → available", size.update, 6.8),
        ("5,000 nodes, delete → gone", size.delete, 4.3),
        ("5,000 nodes, processor time", size.cpu, 20.0),
    ];
    for (name, measured, bound) in steps {
        let (shown, limit) = (format!("{measured:.2} s"), format!("≤ {bound} s"));
        report.judge(name, shown, limit, measured <= bound);
    }
    let (shown, limit) = (format!("{:.0} MB", size.memory), "≤ 220 MB");
    report.judge(
        "5,000 nodes, peak memory",
        shown,
        limit,
        size.memory <= 220.0,
    );
    Ok(())
}

/// The same with a certificate, a TLS connection and watches for each node: with and without what agents ask for beside.
pub(super) fn connections(report: &mut Report) -> Result<()> {
    for (option, bounds) in [
        ("--connections=plain", Some([1.5, 2.3, 0.6, 8.0, 240.0])),
        ("--connections=agent", None),
    ] {
        let figures = Server::up()?.bench(NODES, &[option])?;
        let size = Size::read(&figures)?;
        say(format_args!("{option}, {}", size.line()));
        let Some([apply, update, delete, cpu, memory]) = bounds else {
            continue;
        };
        for (name, measured, bound, unit) in [
            ("apply → available", size.apply, apply, "s"),
            ("update → available", size.update, update, "s"),
            ("delete → gone", size.delete, delete, "s"),
            ("processor time", size.cpu, cpu, "s"),
            ("peak memory", size.memory, memory, "MB"),
        ] {
            report.judge(
                format!("5,000 connections, {name}"),
                format!("{measured:.2} {unit}"),
                format!("≤ {bound} {unit}"),
                measured <= bound,
            );
        }
    }
    Ok(())
}

/// A rolling update of a hundredth at a time, plain and in stages.
pub(super) fn stages(report: &mut Report) -> Result<()> {
    let plain = ["--max-unavailable", "1%"];
    let staged = [&plain[..], &["--policy", STAGES]].concat();
    let mut best = [Update::SLOWEST; 2];
    for _ in 0..ROUNDS {
        for (options, best) in [&plain[..], &staged].into_iter().zip(&mut best) {
            let update = Update::read(&Server::up()?.bench(NODES, options)?)?;
            say(format_args!(
                "rolling update, {}: {:.2} s, {:.2} s CPU time",
                options.join(" "),
                update.seconds,
                update.cpu
            ));
            *best = best.faster(update);
        }
    }
    let [plain, staged] = best;
    let figures = [
        (
            "5,000 nodes, five stages, time",
            plain.seconds,
            staged.seconds,
        ),
        (
            "5,000 nodes, five stages, processor time",
            plain.cpu,
            staged.cpu,
        ),
    ];
    for (name, plain, staged) in figures {
        let shown = format!(
            "{:+.0} % ({plain:.2} s → {staged:.2} s)",
            100.0 * (staged / plain - 1.0)
        );
        report.judge(name, shown, "≤ 25 % more", staged <= 1.25 * plain);
    }
    Ok(())
}

/// The rolling update of `kennel bench`.
#[derive(Clone, Copy)]
struct Update {
    seconds: f64,
    /// CPU seconds of the control plane.
    cpu: f64,
}

impl Update {
    const SLOWEST: Self = Self {
        seconds: f64::MAX,
        cpu: f64::MAX,
    };

    fn read(figures: &Value) -> Result<Self> {
        Ok(Self {
            seconds: number(&figures["steps"]["update"]["seconds"])?,
            cpu: number(&figures["processes"][0]["cpuSeconds"]["update"])?,
        })
    }

    fn faster(self, other: Self) -> Self {
        Self {
            seconds: self.seconds.min(other.seconds),
            cpu: self.cpu.min(other.cpu),
        }
    }
}

/// Ten thousand nodes without load but heartbeats.
pub(super) fn heartbeats(report: &mut Report) -> Result<()> {
    let figures = Server::up()?.bench(IDLE_NODES, &["--idle", IDLE_SECONDS])?;
    say(Size::read(&figures)?.line());
    let cores = number(&figures["processes"][0]["idleCores"])?;
    report.judge(
        "10,000 nodes idle",
        format!("{cores:.3} cores"),
        "≤ 0.5 cores",
        cores <= 0.5,
    );
    Ok(())
}

/// Measures several sizes, and draws them for the documentation.
pub(super) fn growth() -> Result<()> {
    let mut sizes = Vec::new();
    for nodes in SIZES {
        let figures = Server::up()?.bench(nodes, &[])?;
        let size = Size::read(&figures)?;
        say(size.line());
        sizes.push(size);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let file = root.context("xtask has no parent directory")?.join(PLOT);
    std::fs::write(&file, plot::svg(&sizes))?;
    say(format_args!("drawn in {PLOT}"));
    Ok(())
}

/// The figures of one size.
pub(super) struct Size {
    pub(super) nodes: f64,
    /// Seconds.
    pub(super) apply: f64,
    pub(super) update: f64,
    pub(super) delete: f64,
    /// CPU seconds of the control plane.
    pub(super) cpu: f64,
    /// Peak memory of the control plane, in megabytes.
    pub(super) memory: f64,
    /// The same of the benchmark with its nodes.
    bench_cpu: f64,
    bench_memory: f64,
}

impl Size {
    pub(super) fn read(figures: &Value) -> Result<Self> {
        let step = |name: &str| number(&figures["steps"][name]["seconds"]);
        let cpu = |process: &Value| number(&process["cpuSeconds"]["total"]);
        let memory = |process: &Value| Ok::<_, anyhow::Error>(number(&process["peakBytes"])? / 1e6);
        let (server, bench) = (&figures["processes"][0], &figures["bench"]);
        Ok(Self {
            nodes: number(&figures["nodes"])?,
            apply: step("apply")?,
            update: step("update")?,
            delete: step("delete")?,
            cpu: cpu(server)?,
            memory: memory(server)?,
            bench_cpu: cpu(bench)?,
            bench_memory: memory(bench)?,
        })
    }

    fn line(&self) -> String {
        format!(
            "{} nodes: apply {:.2} s, update {:.2} s, delete {:.2} s; control plane {:.2} s CPU \
             time and {:.0} MB, nodes {:.2} s and {:.0} MB",
            self.nodes,
            self.apply,
            self.update,
            self.delete,
            self.cpu,
            self.memory,
            self.bench_cpu,
            self.bench_memory,
        )
    }
}

fn number(value: &Value) -> Result<f64> {
    value.as_f64().context("a figure is missing")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_are_read_from_the_json_output() {
        let process = json!({"cpuSeconds": {"total": 12.5}, "peakBytes": 200_000_000});
        let step = |seconds: f64| json!({"seconds": seconds});
        let figures = json!({
            "nodes": 5000, "processes": [process], "bench": process,
            "steps": {"apply": step(3.0), "update": step(5.0), "delete": step(2.0)},
        });
        let size = Size::read(&figures).unwrap();
        assert_eq!(
            size.line(),
            "5000 nodes: apply 3.00 s, update 5.00 s, delete 2.00 s; control plane 12.50 s CPU \
             time and 200 MB, nodes 12.50 s and 200 MB"
        );
        assert!(Size::read(&json!({"nodes": 5000})).is_err());
    }
}
