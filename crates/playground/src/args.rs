//! The command line of `kennel playground`, and the plan that follows from it.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use kennel_agent::flag_values::listen_address;
use kennel_agent::node::absolute;

const NODES_DEFAULT: u32 = 3;
/// Larger clusters should be simulated.
const NODES_MAX: i64 = 50;
pub(super) const NODE_NAME_PREFIX: &str = "kennel-";

#[derive(Clone, Debug, Args)]
pub struct PlaygroundArgs {
    /// Number of nodes that run processes on this machine [default: 3, or 0 with --simulate]
    #[arg(long, value_name = "NODES", value_parser = clap::value_parser!(u32).range(..=NODES_MAX))]
    nodes: Option<u32>,

    /// Number of simulated nodes, which run nothing [default: 0]
    #[arg(long, value_name = "NODES")]
    simulate: Option<u32>,

    /// Run the tour without pauses, then exit; the exit code is 1 if a step does not have the expected result
    #[arg(long, conflicts_with = "no_tour")]
    auto: bool,

    /// Start only the cluster
    #[arg(long)]
    no_tour: bool,

    /// Path of the kubectl that the tour runs [default: the first on PATH]
    #[arg(long, value_name = "PATH")]
    kubectl: Option<PathBuf>,

    /// Directory of all files; removed at the end
    /// [default: kennel/playground in `XDG_STATE_HOME`, usually ~/.local/state]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// Address to serve the API on; port 0 chooses a free port
    /// [default: port 6443 of the bridge between the nodes, or of 127.0.0.1 if there is none]
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address)]
    listen: Option<SocketAddr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TourMode {
    /// Waits for Enter before each step.
    Step,
    /// Without pauses.
    Auto,
    /// `--no-tour`.
    Off,
    /// No tour, because stdin is not a terminal.
    NoTerminal,
}

/// The cluster to start.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Number of nodes that run processes.
    pub(super) real: u32,
    /// Number of simulated nodes; they are numbered after the real ones.
    pub(super) simulated: u32,
    /// The data directory.
    pub(super) data: PathBuf,
    pub(super) listen: Option<SocketAddr>,
    /// `None` if there is no kubectl and no tour.
    pub(super) kubectl: Option<PathBuf>,
    pub(super) tour: TourMode,
}

impl Plan {
    /// Validates the arguments before anything is created.
    pub(super) fn of(args: PlaygroundArgs) -> anyhow::Result<Self> {
        let real = args.nodes.unwrap_or(match args.simulate {
            None => NODES_DEFAULT,
            Some(_) => 0,
        });
        let simulated = args.simulate.unwrap_or(0);
        anyhow::ensure!(
            real + simulated > 0,
            "a playground needs at least one node: remove --nodes 0"
        );
        let data = match args.data_dir {
            Some(dir) => absolute(&dir),
            None => state_dir()?.join("kennel/playground"),
        };
        let tour = tour_mode(args.auto, args.no_tour, std::io::stdin().is_terminal());
        let needs_kubectl = matches!(tour, TourMode::Step | TourMode::Auto);
        Ok(Self {
            real,
            simulated,
            data,
            listen: args.listen,
            kubectl: kubectl(args.kubectl, needs_kubectl)?,
            tour,
        })
    }

    /// How the user runs kubectl: by name if it is on PATH.
    pub(super) fn kubectl_command(&self) -> String {
        let given = self.kubectl.as_ref().filter(|_| on_path().is_none());
        given.map_or("kubectl".to_owned(), |path| path.display().to_string())
    }

    pub(super) fn node_names(&self) -> Vec<String> {
        (1..=self.real + self.simulated).map(node_name).collect()
    }
}

pub(super) fn node_name(number: u32) -> String {
    format!("{NODE_NAME_PREFIX}{number}")
}

fn tour_mode(auto: bool, no_tour: bool, terminal: bool) -> TourMode {
    match (auto, no_tour, terminal) {
        (true, ..) => TourMode::Auto,
        (_, true, _) => TourMode::Off,
        (_, _, true) => TourMode::Step,
        (..) => TourMode::NoTerminal,
    }
}

fn state_dir() -> anyhow::Result<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let configured = variable("XDG_STATE_HOME").filter(|dir| dir.is_absolute());
    let default = || Some(variable("HOME")?.join(".local/state"));
    configured
        .or_else(default)
        .context("neither XDG_STATE_HOME nor HOME is set; use --data-dir")
}

/// The configured kubectl, or the first on PATH.
fn kubectl(given: Option<PathBuf>, needed: bool) -> anyhow::Result<Option<PathBuf>> {
    if let Some(given) = given {
        anyhow::ensure!(
            is_program(&given),
            "{} is not an executable file; set --kubectl to the path of a kubectl",
            given.display()
        );
        return Ok(Some(absolute(&given)));
    }
    let found = on_path();
    anyhow::ensure!(
        found.is_some() || !needed,
        "the tour needs kubectl, which is not on PATH; install it (Debian 13: apt-get install kubectl; Debian 12: \
         kubernetes-client; others: https://kubernetes.io/docs/tasks/tools), set --kubectl to its path, or skip the \
         tour with --no-tour"
    );
    Ok(found)
}

fn on_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut files = std::env::split_paths(&path).map(|dir| dir.join("kubectl"));
    files.find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(file)
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command, FromArgMatches as _};

    use super::*;

    fn plan(flags: &str) -> anyhow::Result<Plan> {
        let command = PlaygroundArgs::augment_args(Command::new("kennel"));
        let line = format!("kennel --no-tour --data-dir=/x {flags}");
        let found = command.try_get_matches_from(line.split_whitespace())?;
        Plan::of(PlaygroundArgs::from_arg_matches(&found)?)
    }

    #[test]
    fn three_real_nodes_are_the_default_and_simulated_ones_replace_them() {
        let check = |flags: &str, expected: Option<(u32, u32)>| {
            let found = plan(flags).ok().map(|plan| (plan.real, plan.simulated));
            assert_eq!(found, expected, "{flags}");
        };
        check("", Some((3, 0)));
        check("--nodes=5", Some((5, 0)));
        check("--simulate=100", Some((0, 100)));
        check("--nodes=2 --simulate=100", Some((2, 100)));
        check("--nodes=0", None);
        check("--nodes=51", None);
        let names = plan("--nodes=1 --simulate=2").unwrap().node_names();
        assert_eq!(names, ["kennel-1", "kennel-2", "kennel-3"]);
    }

    #[test]
    fn the_tour_needs_a_terminal_or_auto() {
        assert_eq!(tour_mode(false, false, true), TourMode::Step);
        assert_eq!(tour_mode(false, false, false), TourMode::NoTerminal);
        assert_eq!(tour_mode(true, false, false), TourMode::Auto);
        assert_eq!(tour_mode(false, true, true), TourMode::Off);
    }

    #[test]
    fn a_kubectl_that_is_not_executable_is_rejected() {
        assert!(plan("--kubectl=/etc/passwd").is_err());
        assert!(plan("--kubectl=/no/such/file").is_err());
        let given = plan("--kubectl=/bin/sh").unwrap().kubectl;
        assert_eq!(given, Some(PathBuf::from("/bin/sh")));
    }
}
