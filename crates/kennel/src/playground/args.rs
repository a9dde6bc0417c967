//! What can be said on the command line about a playground, and what follows from it. Nothing is made here.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use kennel_agent::node::absolute;

/// So many real nodes unless somebody says otherwise.
const NODES: u32 = 3;
/// More on one machine is a matter for simulation.
const NODES_MAX: i64 = 50;
/// What nodes are called; their number follows.
pub(super) const PREFIX: &str = "kennel-";

/// How to play.
#[derive(Clone, Debug, Args)]
pub(crate) struct PlaygroundArgs {
    /// How many nodes that run processes on this machine [default: 3, or 0 with --simulate]
    #[arg(long, value_name = "NODES", value_parser = clap::value_parser!(u32).range(..=NODES_MAX))]
    nodes: Option<u32>,

    /// How many nodes to simulate: they run nothing, and cost little [default: 0]
    #[arg(long, value_name = "NODES")]
    simulate: Option<u32>,

    /// Go through the tour without stopping, then end; fails if a step does not show what it promises
    #[arg(long, conflicts_with = "no_tour")]
    auto: bool,

    /// Only the cluster, without the tour
    #[arg(long)]
    no_tour: bool,

    /// The kubectl that the tour runs [default: the one on PATH]
    #[arg(long, value_name = "PATH")]
    kubectl: Option<PathBuf>,

    /// Where to keep everything; removed at the end
    /// [default: kennel/playground in `XDG_STATE_HOME`, usually ~/.local/state]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// Where the server listens; port 0 chooses a free one
    /// [default: port 6443 of the bridge between the nodes, or of 127.0.0.1 if there is none]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
}

/// Who goes on the tour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guide {
    /// Somebody who presses Enter.
    Step,
    /// Nobody: it goes through.
    Auto,
    /// There is none, because nobody wants it.
    Unwanted,
    /// There is none, because nobody is there to press Enter.
    Nobody,
}

/// What is to be.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Nodes that run processes.
    pub(super) real: u32,
    /// Nodes that run nothing; their numbers come after those of the others.
    pub(super) simulated: u32,
    /// Where everything is.
    pub(super) data: PathBuf,
    /// Where the server listens, if somebody has chosen.
    pub(super) listen: Option<SocketAddr>,
    /// What the tour runs; none if there is none and nobody needs it.
    pub(super) kubectl: Option<PathBuf>,
    pub(super) guide: Guide,
}

impl Plan {
    /// From what was said; what cannot be is told before anything is made.
    pub(super) fn of(args: PlaygroundArgs) -> anyhow::Result<Self> {
        let real = args.nodes.unwrap_or(match args.simulate {
            None => NODES,
            Some(_) => 0,
        });
        let simulated = args.simulate.unwrap_or(0);
        anyhow::ensure!(
            real + simulated > 0,
            "a playground without nodes has nothing to show; leave --nodes out"
        );
        let data = match args.data_dir {
            Some(dir) => absolute(&dir),
            None => state_dir()?.join("kennel/playground"),
        };
        let guide = guide(args.auto, args.no_tour, std::io::stdin().is_terminal());
        let tour = matches!(guide, Guide::Step | Guide::Auto);
        Ok(Self {
            real,
            simulated,
            data,
            listen: args.listen,
            kubectl: kubectl(args.kubectl, tour)?,
            guide,
        })
    }

    /// What people type to run kubectl: its name if that is enough.
    pub(super) fn kubectl_word(&self) -> String {
        let given = self.kubectl.as_ref().filter(|_| on_path().is_none());
        given.map_or("kubectl".to_owned(), |path| path.display().to_string())
    }

    /// The names of all nodes.
    pub(super) fn names(&self) -> Vec<String> {
        (1..=self.real + self.simulated).map(name).collect()
    }
}

/// What a node is called.
pub(super) fn name(number: u32) -> String {
    format!("{PREFIX}{number}")
}

fn guide(auto: bool, no_tour: bool, terminal: bool) -> Guide {
    match (auto, no_tour, terminal) {
        (true, ..) => Guide::Auto,
        (_, true, _) => Guide::Unwanted,
        (_, _, true) => Guide::Step,
        (..) => Guide::Nobody,
    }
}

fn state_dir() -> anyhow::Result<PathBuf> {
    let set = |name| std::env::var_os(name).map(PathBuf::from);
    let given = set("XDG_STATE_HOME").filter(|dir| dir.is_absolute());
    let usual = || Some(set("HOME")?.join(".local/state"));
    given
        .or_else(usual)
        .context("neither XDG_STATE_HOME nor HOME says where to keep things; give --data-dir")
}

/// The kubectl to run: the one that was given, or the first on PATH.
fn kubectl(given: Option<PathBuf>, needed: bool) -> anyhow::Result<Option<PathBuf>> {
    if let Some(given) = given {
        anyhow::ensure!(
            is_program(&given),
            "{} is no program; give the path of a kubectl with --kubectl",
            given.display()
        );
        return Ok(Some(absolute(&given)));
    }
    let found = on_path();
    anyhow::ensure!(
        found.is_some() || !needed,
        "kubectl is not on PATH, and the tour is made of its commands; install it (Debian 13: apt-get install \
         kubectl; Debian 12: kubernetes-client; others: https://kubernetes.io/docs/tasks/tools), give its path with \
         --kubectl, or leave the tour out with --no-tour"
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

    fn plan(words: &str) -> anyhow::Result<Plan> {
        let command = PlaygroundArgs::augment_args(Command::new("kennel"));
        let words = format!("kennel --no-tour --data-dir=/x {words}");
        let found = command.try_get_matches_from(words.split_whitespace())?;
        Plan::of(PlaygroundArgs::from_arg_matches(&found)?)
    }

    #[test]
    fn there_are_three_real_nodes_or_simulated_ones_or_both() {
        let check = |words: &str, expected: Option<(u32, u32)>| {
            let found = plan(words).ok().map(|plan| (plan.real, plan.simulated));
            assert_eq!(found, expected, "{words}");
        };
        check("", Some((3, 0)));
        check("--nodes=5", Some((5, 0)));
        check("--simulate=100", Some((0, 100)));
        check("--nodes=2 --simulate=100", Some((2, 100)));
        check("--nodes=0", None);
        check("--nodes=51", None);
        let names = plan("--nodes=1 --simulate=2").unwrap().names();
        assert_eq!(names, ["kennel-1", "kennel-2", "kennel-3"]);
    }

    #[test]
    fn the_tour_is_for_who_can_press_enter_or_asks_for_it() {
        assert_eq!(guide(false, false, true), Guide::Step);
        assert_eq!(guide(false, false, false), Guide::Nobody);
        assert_eq!(guide(true, false, false), Guide::Auto);
        assert_eq!(guide(false, true, true), Guide::Unwanted);
    }

    #[test]
    fn a_kubectl_that_is_none_is_told() {
        assert!(plan("--kubectl=/etc/passwd").is_err());
        assert!(plan("--kubectl=/no/such/file").is_err());
        let given = plan("--kubectl=/bin/sh").unwrap().kubectl;
        assert_eq!(given, Some(PathBuf::from("/bin/sh")));
    }
}
