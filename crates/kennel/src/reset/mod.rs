//! `kennel reset` and `kennel agent --cleanup`: end what Kennel runs on this machine, and delete what it stored.
//!
//! ```text
//!   options ─▶ target (locks) ─▶ kennel_node::cleanup (pods, mounts, logs) ─▶ plan ─▶ confirmation ─▶ files
//! ```
//!
//! Pods and mounts come first and files last, so that a reset that was interrupted or failed can be repeated.

mod files;
mod options;
mod plan;
mod target;

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use kennel_agent::args::AgentArgs;
use kennel_agent::{node, service_proxy};
use kennel_node::cleanup::{Failure, Leftovers, Resources, Search};

pub(crate) use self::options::ResetArgs;

use self::options::Request;
use self::plan::Plan;
use self::target::{AgentDir, Target};

/// Time for a container to exit after its stop signal, before it is killed.
const GRACE_PERIOD: Duration = Duration::from_secs(10);

/// How a reset that was not refused ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// Something is left, or the user said no.
    Left,
}

/// `kennel reset`.
pub(crate) async fn run(args: ResetArgs) -> anyhow::Result<Outcome> {
    let data = node::absolute(&args.data_dir);
    if kennel_playground::is_data_dir(&data) {
        return reset_playground(&data, args.yes).await;
    }
    reset(args.into()).await
}

/// `kennel agent --cleanup`.
pub(crate) async fn run_agent(args: AgentArgs) -> anyhow::Result<Outcome> {
    reset(args.into()).await
}

async fn reset(request: Request) -> anyhow::Result<Outcome> {
    let data = node::absolute(&request.args.data_dir);
    let Some(target) = Target::lock(&data, request.agent_only)? else {
        print(&format!(
            "Nothing to do: there is nothing in {}.\n",
            data.display()
        ));
        return Ok(Outcome::Done);
    };
    let leftovers = match &target.agent {
        Some(agent) => Some(find(agent, &request).await?),
        None => None,
    };
    let plan = Plan::of(&target, leftovers.as_ref(), request.args.keep_data);
    if plan.is_empty() {
        print(&format!(
            "Nothing to do: no pods of {} run.\n",
            data.display()
        ));
        return Ok(Outcome::Done);
    }
    print(&plan.to_string());
    if !confirm(request.args.yes)? {
        return Ok(Outcome::Left);
    }
    let has_joined = target.agent.as_ref().is_some_and(AgentDir::has_joined);
    let failures = execute(&target, leftovers, &request.args).await;
    if failures.is_empty() && has_joined && !request.args.keep_data {
        print(
            "The cluster still has this machine's Node: delete it with `kubectl delete node NAME`.\n",
        );
    }
    Ok(report(failures.iter().map(ToString::to_string)))
}

async fn find(agent: &AgentDir, request: &Request) -> anyhow::Result<Leftovers> {
    let data = agent.dir.clone();
    let recorded = Resources::read(&data)
        .with_context(|| format!("cannot read what the agent of {} used", data.display()))?;
    let socket = request.cri_socket.as_deref();
    let resources = node::resources(recorded, socket, request.log_dir.as_deref(), &data);
    let search = Search {
        data,
        shim: node::own_binary()?,
        resources,
    };
    Ok(Leftovers::find(search).await)
}

/// Returns what is left. Files are deleted only if nothing is, because a repeated reset needs them.
async fn execute(target: &Target, leftovers: Option<Leftovers>, args: &ResetArgs) -> Vec<Failure> {
    let mut failures = Vec::new();
    let stops = |failures: &[Failure]| !failures.is_empty() && !args.force;
    if let Some(leftovers) = leftovers {
        failures.extend(leftovers.end(GRACE_PERIOD).await);
        if args.keep_data || stops(&failures) {
            return failures;
        }
        failures.extend(leftovers.remove_network().await);
        if leftovers.has_proxy() {
            let removed = service_proxy::remove_rules();
            failures.extend(
                removed
                    .err()
                    .map(|error| Failure::new("the rules of services", &error)),
            );
        }
        failures.extend(leftovers.remove_logs());
    }
    if args.keep_data || stops(&failures) {
        return failures;
    }
    failures.extend(target.delete());
    failures
}

async fn reset_playground(data: &Path, yes: bool) -> anyhow::Result<Outcome> {
    print(&format!(
        "The reset of {} removes the playground: its pods, networks and files\n",
        data.display()
    ));
    if !confirm(yes)? {
        return Ok(Outcome::Left);
    }
    let failures = kennel_playground::remove(data).await?;
    Ok(report(failures.into_iter()))
}

/// Asks the user. Fails without a terminal, because nobody could answer.
fn confirm(yes: bool) -> anyhow::Result<bool> {
    if yes {
        return Ok(true);
    }
    anyhow::ensure!(
        std::io::stdin().is_terminal(),
        "stdin is not a terminal, so nothing was changed; --yes does this without asking"
    );
    print("Continue? [y/N] ");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    let confirmed = ["y", "yes"].contains(&answer.trim().to_lowercase().as_str());
    if !confirmed {
        print("Nothing was changed.\n");
    }
    Ok(confirmed)
}

fn report(failures: impl ExactSizeIterator<Item = String>) -> Outcome {
    if failures.len() == 0 {
        print("Done.\n");
        return Outcome::Done;
    }
    let mut stderr = std::io::stderr().lock();
    let _closed = writeln!(
        stderr,
        "error: some things are left; repeat the command to try again"
    );
    for failure in failures {
        let _closed = writeln!(stderr, "  {failure}");
    }
    Outcome::Left
}

/// A closed stdout is not an error.
fn print(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _closed = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
}
