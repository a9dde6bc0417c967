//! `kennel rollout`: shows and directs the rollout of one DaemonSet of any cluster (R9.4).
//!
//! ```text
//!   options ─▶ inspect::snapshot ─▶ kennel_core::rollout (outline) ─▶ status, plan, history: text or JSON
//!                                                                  ─▶ command: a merge patch of annotations
//! ```
//!
//! It writes annotations of the DaemonSet and nothing else; the controller acts on them. But `hand-over` looks at all
//! DaemonSets and removes conditions that no controller keeps any more.

mod command;
mod hand_over;
mod manifest;
mod options;
mod plan;
mod status;

use std::collections::BTreeMap;
use std::process::ExitCode;

use kennel_core::daemonset::{NodeView, PodView};
use kennel_core::rollout::history::{DatedRevision, History};
use kennel_core::rollout::outline::{Input, Outline};
use kennel_core::rollout::request::Ask;
use kennel_core::why::Snapshot;
use kennel_types::Timestamp;
use kube::api::DynamicObject;

use crate::inspect::{connect, lists, print, snapshot};
pub(crate) use options::RolloutArgs;
use options::{HistoryArgs, RolloutVerb};

/// It is done, or the rollout is complete.
const OK: u8 = 0;
/// A command that would do nothing.
const REFUSED: u8 = 1;

pub(crate) async fn run(args: RolloutArgs) -> anyhow::Result<ExitCode> {
    let (target, ask) = match args.verb {
        RolloutVerb::Status(args) => return status::run(&args).await,
        RolloutVerb::Plan(args) => return plan::run(&args).await,
        RolloutVerb::History(args) => return history(&args).await,
        RolloutVerb::HandOver(args) => return hand_over::run(&args).await,
        RolloutVerb::Promote(args) => (args.target, Ask::Promote { full: args.full }),
        RolloutVerb::Abort(target) => (target, Ask::Abort),
        RolloutVerb::Retry(target) => (target, Ask::Retry),
        RolloutVerb::Resume(target) => (target, Ask::Resume),
        RolloutVerb::Pause(args) => {
            let reason = args.reason;
            (args.target, Ask::Pause { reason })
        }
        RolloutVerb::Freeze(args) => {
            let reason = args.reason;
            (args.target, Ask::Freeze { reason })
        }
    };
    command::run(&target, &ask).await
}

/// The views of a snapshot, which an [`Outline`] borrows.
struct Views {
    snapshot: Snapshot,
    nodes: Vec<NodeView>,
    pods: Vec<PodView>,
}

impl Views {
    fn of(snapshot: Snapshot) -> Self {
        let nodes = snapshot.nodes.iter();
        let pods = snapshot.pods.iter();
        Self {
            nodes: nodes.map(|node| node.view.clone()).collect(),
            pods: pods.map(|pod| pod.view.clone()).collect(),
            snapshot,
        }
    }

    fn outline(&self) -> Outline<'_> {
        Outline::of(&Input {
            daemon_set: &self.snapshot.daemon_set,
            namespace: &self.snapshot.namespace,
            nodes: &self.nodes,
            pods: &self.pods,
            revisions: &self.snapshot.revisions,
            now: self.snapshot.now,
        })
    }
}

async fn history(args: &HistoryArgs) -> anyhow::Result<ExitCode> {
    let (client, namespace) = connect(&args.target.cluster).await?;
    let name = &args.target.daemon_set.0;
    let set = snapshot::daemon_set(&client, &namespace, name).await?;
    let selector = set.selector.to_string();
    let path = snapshot::revisions(&namespace);
    let objects = lists::list(&client, &path, Some(&selector), None).await?;
    let dated = objects.into_iter().filter_map(|object| {
        let object: DynamicObject = serde_json::from_value(object).ok()?;
        let annotations = object.metadata.annotations.as_ref();
        let cause = annotations.and_then(|all| all.get("kubernetes.io/change-cause"));
        Some(DatedRevision {
            revision: kennel_control::view::revision(&object)?,
            created: object
                .metadata
                .creation_timestamp
                .as_ref()
                .map(Timestamp::from),
            cause: cause.cloned(),
        })
    });
    let dated: Vec<DatedRevision> = dated.collect();
    let revisions: Vec<_> = dated.iter().map(|dated| dated.revision.clone()).collect();
    let no_defaults = BTreeMap::new();
    let outline = Outline::of(&Input {
        daemon_set: &set,
        namespace: &no_defaults,
        nodes: &[],
        pods: &[],
        revisions: &revisions,
        now: snapshot::now(),
    });
    let history = History::of(&outline, &dated);
    print(&args.output.render(&history, || history.text())?)?;
    Ok(OK.into())
}
