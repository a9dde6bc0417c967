//! The command line of `kennel rollout`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use crate::inspect::options::{ClusterArgs, DaemonSetName, Output};

#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct RolloutArgs {
    #[command(subcommand)]
    pub(crate) verb: RolloutVerb,
}

impl RolloutArgs {
    /// Whether it draws on the terminal all the time.
    pub(crate) fn draws(&self) -> bool {
        matches!(self.verb, RolloutVerb::Watch(_))
    }
}

/// One DaemonSet of a cluster.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct Target {
    /// The DaemonSet: ds/NAME, daemonset/NAME or NAME
    #[arg(value_name = "DAEMONSET")]
    pub(crate) daemon_set: DaemonSetName,

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}

#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) target: Target,

    /// Show every change until the rollout is complete, has failed or waits for a person
    #[arg(short, long)]
    pub(crate) watch: bool,

    /// Watch at most this long: 90s, 10m, 1h30m [default: without end]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,

    /// Output format; with --watch, JSON is one object per line, and YAML one document per change
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct PlanArgs {
    /// The DaemonSet: ds/NAME, daemonset/NAME or NAME [default: the one in the file]
    #[arg(value_name = "DAEMONSET", required_unless_present = "file")]
    pub(crate) daemon_set: Option<DaemonSetName>,

    /// A manifest with the DaemonSet as it would be applied, YAML or JSON; `-` reads stdin
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Name every node, instead of at most eight per stage
    #[arg(long)]
    pub(crate) all: bool,

    /// Output format
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}

#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct PromoteArgs {
    #[command(flatten)]
    pub(crate) target: Target,

    /// Skip all stages, bakes and checks that remain, and accept all failures
    #[arg(long)]
    pub(crate) full: bool,
}

#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct ReasonArgs {
    #[command(flatten)]
    pub(crate) target: Target,

    /// Why, for everyone who looks at the rollout
    #[arg(long, default_value = "by hand", value_name = "TEXT")]
    pub(crate) reason: String,
}

#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    pub(crate) target: Target,

    /// Output format
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    pub(crate) target: Target,

    /// Go on after the end, with the next rollout
    #[arg(short, long)]
    pub(crate) follow: bool,

    /// Watch at most this long: 90s, 10m, 1h30m [default: without end]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
}

/// The form of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// A page that shows any moment of the rollout
    #[default]
    Html,
    /// A picture
    Svg,
    /// Machine-readable; see docs/reference/rollout.md
    Json,
}

#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    pub(crate) target: Target,

    /// Form of the report
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: ReportFormat,

    /// Write it to this file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Record the next rollout: wait for it, if none is under way
    #[arg(long)]
    pub(crate) next: bool,

    /// Wait and record at most this long: 90s, 10m, 1h30m [default: until the rollout has an outcome]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) r#for: Option<Duration>,
}

#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct HandOverArgs {
    /// Only say what stands in the way
    #[arg(long)]
    pub(crate) check: bool,

    /// Kubeconfig of the cluster [default: $KUBECONFIG or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig [default: the current one]
    #[arg(long, value_name = "CONTEXT")]
    pub(crate) context: Option<String>,
}

#[derive(Clone, Debug, Subcommand)]
#[expect(
    clippy::doc_markdown,
    reason = "help for terminals, where commands are shown without markup"
)]
pub(crate) enum RolloutVerb {
    /// Show where a rollout stands
    ///
    /// One screen: the phase, the stages, how many nodes are healthy, which are not and why, and the
    /// commands that could be next. Exit code, for scripts and CI:
    ///
    ///   0  complete: every node has the target
    ///   1  failed: paused on a failure, going back, or held
    ///   2  it could not be found out
    ///   3  still in progress: at once without --watch, with it after --timeout
    ///   4  waits for a person: a manual stage, a stage without nodes, pause, freeze, an invalid policy
    ///
    /// Examples:
    ///
    ///   kennel rollout status ds/agent -n monitoring
    ///   kubectl apply -f agent.yaml && kennel rollout status ds/agent --watch --timeout 2h
    ///   kennel rollout status ds/agent -o json | jq .nodes
    ///
    /// Without a rollout policy it judges as `kubectl rollout status` does.
    #[command(verbatim_doc_comment)]
    Status(StatusArgs),

    /// Look at a rollout: one cell for each node
    ///
    /// A screen that is kept up to date: a cell for each node by what it runs and how it is, the stages,
    /// how fast nodes get the target and when that ends, and the first failures with their causes.
    /// Where there is no room for all nodes, several share a block. It ends with the rollout, and Ctrl-C
    /// ends it before. Without a terminal it writes a line for each change. Colours are off with NO_COLOR.
    /// Exit codes are those of `status`. Examples:
    ///
    ///   kennel rollout watch ds/agent -n monitoring
    ///   kennel rollout watch ds/agent --follow
    #[command(verbatim_doc_comment)]
    Watch(WatchArgs),

    /// Write a rollout as one file: which node ran what when, who failed and why, durations
    ///
    /// Of a rollout under way it records until that has an outcome (as `status --watch`), until Ctrl-C,
    /// or for the time of --for. Of one that is over it shows what the API still knows, and says what it
    /// does not. The file loads nothing. Exit code 0: the report is written. Examples:
    ///
    ///   kubectl apply -f agent.yaml && kennel rollout report ds/agent -f rollout.html
    ///   kennel rollout report ds/agent --next -o svg -f rollout.svg
    ///   kennel rollout report ds/agent -o json | jq .failures
    #[command(verbatim_doc_comment)]
    Report(ReportArgs),

    /// Show which nodes each stage takes, and the earliest end
    ///
    /// The order of nodes is fixed, so the plan is what will happen unless nodes come, go or change
    /// their labels. With -f, for a manifest before it is applied; the API server checks it without
    /// storing it (which needs the right to update DaemonSets). Without, for the rollout under way, or
    /// for the next one by the present policy. The earliest end counts bakes alone: nodes take time,
    /// and manual stages wait for a person. Examples:
    ///
    ///   kennel rollout plan -f agent.yaml
    ///   kennel rollout plan ds/agent --all
    #[command(verbatim_doc_comment)]
    Plan(PlanArgs),

    /// Go on: end the wait or bake of the present stage, or accept its failures
    ///
    /// Acts on the stage that the rollout is in when the command is given; it cannot hit a later one.
    /// A stage that still updates its nodes is not cut short, except by --full. Examples:
    ///
    ///   kennel rollout promote ds/agent           # the next stage
    ///   kennel rollout promote ds/agent --full    # all nodes, now
    #[command(verbatim_doc_comment)]
    Promote(PromoteArgs),

    /// Keep all nodes at the revision that they have
    ///
    /// Missing pods are still replaced, by pods of the revision that their node is to have. Bakes go
    /// on, but no stage begins. A way back is not held up; `freeze` does that. Works without a
    /// rollout policy as well. Example:
    ///
    ///   kennel rollout pause ds/agent --reason 'change freeze until Monday'
    #[command(verbatim_doc_comment)]
    Pause(ReasonArgs),

    /// Undo pause and freeze
    ///
    /// A rollout that was paused by a failure is not a pause by a person: see `promote`, `abort` and
    /// `retry`. Example:
    ///
    ///   kennel rollout resume ds/agent
    #[command(verbatim_doc_comment)]
    Resume(Target),

    /// Fail the rollout and drive all nodes back to stable
    ///
    /// The template is not changed, so GitOps tools see no difference: the revision is held, and no
    /// node gets it again until `retry` or another template. The way back has no stages and no bakes,
    /// and keeps to maxUnavailable. Example:
    ///
    ///   kennel rollout abort ds/agent
    #[command(verbatim_doc_comment)]
    Abort(Target),

    /// Forget that a revision has failed, and start over with stage one
    ///
    /// For a revision that failed for a reason of its surroundings: a registry was down, say. After a
    /// fix in the template or the image's tag there is a new revision and nothing to retry. Example:
    ///
    ///   kennel rollout retry ds/agent
    #[command(verbatim_doc_comment)]
    Retry(Target),

    /// Create and delete nothing for this DaemonSet
    ///
    /// Stronger than `pause`: a missing pod is not replaced, and a way back stops. For the time in
    /// which you look at things by hand; `resume` undoes it. Example:
    ///
    ///   kennel rollout freeze ds/agent --reason 'debugging node 7'
    #[command(verbatim_doc_comment)]
    Freeze(ReasonArgs),

    /// List the revisions and what became of them
    ///
    /// The verdict of each revision (progressing, stable, failed, superseded), which attempt it is, how
    /// long it took from its creation to its verdict, and why it failed. `kubectl rollout undo
    /// --to-revision=REVISION` applies one of them again. Example:
    ///
    ///   kennel rollout history ds/agent
    #[command(verbatim_doc_comment)]
    History(HistoryArgs),

    /// Make sure that another DaemonSet controller may take the cluster over
    ///
    /// kube-controller-manager's knows no stages and no held revisions: it takes every node to the
    /// newest template. So this fails, with exit code 1, while some DaemonSet has a rollout that is
    /// not finished, a revision that is held, a freeze, or a policy that cannot be read, and says
    /// which. Otherwise it removes the conditions Progressing, Reconciling and Stalled of all DaemonSets,
    /// which nobody would keep up to date. Example:
    ///
    ///   kennel rollout hand-over --check    # while Kennel's controller still runs; removes nothing
    ///   kubectl delete -f daemonset-controller.yaml
    ///   kennel rollout hand-over            # then start the other controller
    #[command(verbatim_doc_comment)]
    HandOver(HandOverArgs),
}

#[derive(Debug, thiserror::Error)]
#[error("not a duration such as 90s, 10m or 1h30m")]
struct DurationError;

fn duration(text: &str) -> Result<Duration, DurationError> {
    kennel_core::duration::parse(text).ok_or(DurationError)
}
