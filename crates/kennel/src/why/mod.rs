//! `kennel why`: explains on which nodes a DaemonSet's pods run or are missing, and what would change that.
//!
//! ```text
//!   options, targets ─▶ subject (DaemonSets) ─▶ snapshot (lists of the API) ─▶ kennel_core::why (verdicts)
//!                       ─▶ summary, detail, list (text), JSON or YAML
//! ```
//!
//! It only reads. If it may not read something, it says so and explains the rest.

mod list;
mod options;
mod subject;
mod targets;

use kennel_core::why::{Answer, Snapshot};
use kennel_inspect::colour::Colours;
use kennel_inspect::text::{detail, summary};
use kennel_inspect::{details, snapshot};
use kube::Client;

use crate::inspect::{connect, print};
pub(crate) use options::WhyArgs;
use subject::{Scope, Subject};
use targets::{Target, Targets};

/// The result, and what could not be explained.
pub(crate) struct Outcome {
    /// Whether every node is as it should be.
    pub(crate) ok: bool,
    pub(crate) errors: Vec<anyhow::Error>,
}

/// A DaemonSet, explained.
struct Explanation {
    snapshot: Snapshot,
    answer: Answer,
    /// The pod that it was asked for by.
    pod: Option<String>,
}

#[derive(Debug, thiserror::Error)]
#[error("a pod has its node: leave out --node")]
struct PodAndNode;

/// Prints the explanations.
pub(crate) async fn run(args: WhyArgs) -> anyhow::Result<Outcome> {
    let targets = targets::parse(&args.targets)?;
    if args.node.is_some() && names_pod(&targets) {
        return Err(PodAndNode.into());
    }
    let (client, namespace) = connect(&args.cluster).await?;
    let scope = if args.all_namespaces {
        Scope::AllNamespaces
    } else {
        Scope::Namespace(namespace)
    };
    let (subjects, mut errors) = subject::find(&client, &scope, &targets).await;
    let several = match &targets {
        Targets::All => true,
        Targets::Named(named) => named.len() > 1 || args.all_namespaces,
    };
    let explanations = explain(&client, &args, subjects, &mut errors).await;
    let ok = explanations.iter().all(|one| one.answer.ok);
    let colours = Colours::of_stdout();
    match explanations.as_slice() {
        [one] if !several => print(
            &args
                .output
                .render(&one.answer, || one.text(&args, colours))?,
        )?,
        [] if !errors.is_empty() => {}
        all => print(&list::render(&args, &scope, all, colours)?)?,
    }
    Ok(Outcome { ok, errors })
}

fn names_pod(targets: &Targets) -> bool {
    match targets {
        Targets::All => false,
        Targets::Named(named) => named.iter().any(|target| matches!(target, Target::Pod(_))),
    }
}

/// Explains each of them; errors are added, each once.
async fn explain(
    client: &Client,
    args: &WhyArgs,
    subjects: Vec<Subject>,
    errors: &mut Vec<anyhow::Error>,
) -> Vec<Explanation> {
    if subjects.is_empty() {
        return Vec::new();
    }
    let nodes = match snapshot::Nodes::read(client).await {
        Ok(nodes) => nodes,
        Err(error) => {
            errors.push(error.into());
            return Vec::new();
        }
    };
    let mut explanations = Vec::new();
    for Subject {
        daemon_set,
        pod,
        node,
    } in subjects
    {
        let only = args.node().map(str::to_owned).or(node);
        let read = snapshot::read(client, daemon_set, nodes.clone(), only.as_deref()).await;
        match read {
            Ok(mut snapshot) => {
                details::read_logs(client, &mut snapshot).await;
                let answer = kennel_core::why::explain(&snapshot);
                explanations.push(Explanation {
                    snapshot,
                    answer,
                    pod,
                });
            }
            Err(error) if errors.iter().any(|e| e.to_string() == error.to_string()) => {}
            Err(error) => errors.push(error.into()),
        }
    }
    explanations
}

impl Explanation {
    fn text(&self, args: &WhyArgs, colours: Colours) -> String {
        let (snapshot, answer) = (&self.snapshot, &self.answer);
        if snapshot.only.is_some() {
            return detail::text(snapshot, answer, self.pod.as_deref(), colours);
        }
        summary::text(snapshot, answer, args.all, colours)
    }
}
