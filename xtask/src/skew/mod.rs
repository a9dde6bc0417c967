//! `xtask skew`: runs an earlier version beside this one, with real processes, and says what holds: an old agent on a new
//! server, a new agent on an old server, and the upgrade of a cluster while its pods run, after which the old server refuses the
//! data. A test runs it with the last release; needs root and a kubectl.

mod cluster;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use self::cluster::Cluster;

const USAGE: &str = "usage: cargo xtask skew --old PROGRAM [--option VALUE …]
  --old PROGRAM      a kennel of an earlier version
  --new PROGRAM      the kennel of this version [the one beside this program]
  --kubectl PROGRAM  [.tools/kubectl-1.32]";

/// The programs under test.
struct Programs {
    old: PathBuf,
    new: PathBuf,
    kubectl: PathBuf,
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let programs = parse(arguments)?;
    let [old, new] = [version(&programs.old)?, version(&programs.new)?];
    say(&format!("old: {old} ({})", programs.old.display()));
    say(&format!("new: {new} ({})", programs.new.display()));
    ensure!(old != new, "both programs have the same version");
    let mut table = Table::default();
    mixed(
        &mut table,
        "old agent, new server",
        &programs,
        &programs.new,
        &programs.old,
    );
    mixed(
        &mut table,
        "new agent, old server",
        &programs,
        &programs.old,
        &programs.new,
    );
    upgrade(&mut table, &programs);
    ensure!(table.holds(), "a step failed");
    Ok(())
}

fn parse(arguments: &[String]) -> Result<Programs> {
    let this = std::env::current_exe()?;
    let (mut old, mut new) = (None, this.with_file_name("kennel"));
    let mut kubectl = PathBuf::from(".tools/kubectl-1.32");
    for pair in arguments.chunks(2) {
        let [option, value] = pair else {
            bail!("{USAGE}");
        };
        match option.as_str() {
            "--old" => old = Some(PathBuf::from(value)),
            "--new" => new = value.into(),
            "--kubectl" => kubectl = value.into(),
            _ => bail!("{USAGE}"),
        }
    }
    let absolute = |program: PathBuf| {
        let path = std::fs::canonicalize(&program);
        path.with_context(|| format!("no program {}", program.display()))
    };
    Ok(Programs {
        old: absolute(old.context(USAGE)?)?,
        new: absolute(new)?,
        kubectl: absolute(kubectl)?,
    })
}

fn version(program: &Path) -> Result<String> {
    let output = Command::new(program).arg("--version").output();
    let output = output.with_context(|| program.display().to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.trim().to_owned())
}

/// What an agent of one version does on a server of another.
fn mixed(
    table: &mut Table,
    scenario: &'static str,
    programs: &Programs,
    server: &Path,
    agent: &Path,
) {
    table.scenario(scenario, |steps| {
        let mut cluster = Cluster::new(&programs.kubectl, &programs.new)?;
        basics(steps, &mut cluster, server, agent)?;
        steps.step("restarted agent, same pods", || {
            cluster.keeping_pods(|cluster| {
                cluster.kill_agent()?;
                cluster.start_agent(agent)
            })
        })?;
        steps.step("deleted DaemonSet, no pods", || cluster.delete())
    });
}

/// An agent joins, runs a DaemonSet and its next version, and serves logs and exec.
fn basics(steps: &mut Steps<'_>, cluster: &mut Cluster, server: &Path, agent: &Path) -> Result<()> {
    steps.step("server starts", || cluster.start_server(server))?;
    steps.step("agent joins by token", || cluster.join(server, agent))?;
    steps.step("DaemonSet rolls out", || cluster.roll_out("one"))?;
    steps.step("DaemonSet rolls over", || cluster.roll_out("two"))?;
    steps.step("logs and exec", || cluster.logs_and_exec("two"))
}

/// The order that the guide gives: the server first, then the agent.
fn upgrade(table: &mut Table, programs: &Programs) {
    table.scenario("upgrade", |steps| {
        let (old, new) = (&programs.old, &programs.new);
        let mut cluster = Cluster::new(&programs.kubectl, new)?;
        basics(steps, &mut cluster, old, old)?;
        steps.step("new server on the same data, same pods", || {
            cluster.keeping_pods(|cluster| {
                cluster.stop_server()?;
                cluster.start_server(new)
            })
        })?;
        steps.step("DaemonSet rolls over", || cluster.roll_out("three"))?;
        steps.step("logs and exec", || cluster.logs_and_exec("three"))?;
        steps.step("new agent on the same data, same pods", || {
            cluster.keeping_pods(|cluster| {
                cluster.stop_agent()?;
                cluster.start_agent(new)
            })
        })?;
        steps.step("logs and exec of the old pod", || {
            cluster.logs_and_exec("three")
        })?;
        steps.step("old server refuses the data, same pods", || {
            cluster.keeping_pods(|cluster| {
                cluster.stop_server()?;
                cluster.refuses_data(old)?;
                cluster.start_server(new)
            })
        })?;
        steps.step("DaemonSet rolls over", || cluster.roll_out("four"))?;
        steps.step("deleted DaemonSet, no pods", || cluster.delete())
    });
}

/// The steps of all scenarios and their outcomes, printed as they come.
#[derive(Default)]
struct Table {
    failed: bool,
}

impl Table {
    /// Runs the steps of a scenario up to the first that fails.
    fn scenario(&mut self, name: &'static str, run: impl FnOnce(&mut Steps<'_>) -> Result<()>) {
        let mut steps = Steps { name, table: self };
        if let Err(error) = run(&mut steps) {
            say(&format!("{name}: {error:#}"));
            self.failed = true;
        }
    }

    fn holds(&self) -> bool {
        !self.failed
    }
}

struct Steps<'a> {
    name: &'static str,
    table: &'a mut Table,
}

impl Steps<'_> {
    fn step(&mut self, step: &str, run: impl FnOnce() -> Result<()>) -> Result<()> {
        let started_at = std::time::Instant::now();
        let outcome = run();
        let verdict = if outcome.is_ok() { "ok" } else { "FAILED" };
        self.table.failed |= outcome.is_err();
        let (name, seconds) = (self.name, started_at.elapsed().as_secs_f64());
        say(&format!("{name:23} {step:40} {seconds:5.1} s  {verdict}"));
        outcome
    }
}

#[expect(clippy::print_stdout, reason = "the output of the task")]
fn say(line: &str) {
    println!("{line}");
}
