//! Changes: what a verb would do, and doing it. They are the commands of `kennel rollout`, and the undo of kubectl.

use kennel_core::rollout::outline::Outline;
use kennel_core::rollout::request::{self, Request, RolloutCommand, request};
use kennel_core::why::Snapshot;
use kennel_inspect::{command, snapshot};
use kube::Client;

use crate::failure::Failure;
use crate::protocol::{Act, Acted, Action, Effect, Preview, Verb};
use crate::route::{Query, SetName};
use crate::undo;

/// The reason of a pause for which none was given.
const REASON: &str = "from the dashboard";
/// Reasons are shown on one line.
const REASON_CHARS_MAX: usize = 200;

const VERBS: [Verb; 7] = [
    Verb::Promote,
    Verb::PromoteFull,
    Verb::Pause,
    Verb::Resume,
    Verb::Abort,
    Verb::Retry,
    Verb::Undo,
];

/// What the API server is to be asked for.
enum Plan {
    Annotate(Request),
    Undo(undo::Plan),
}

/// Why a verb does nothing now.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error(transparent)]
    Command(#[from] request::Refusal),
    #[error(transparent)]
    Undo(#[from] undo::Refusal),
}

impl Plan {
    /// What it will do.
    fn effect(&self) -> Effect {
        let said = match self {
            Self::Annotate(request) => request.effect.ahead(),
            Self::Undo(plan) => plan.effect(),
        };
        Effect {
            effect: said.to_string(),
            said: Some(said),
        }
    }
}

/// `?verb=` of a preview.
pub(crate) fn verb(query: &Query) -> Result<Verb, Failure> {
    let text = query.get("verb").unwrap_or_default();
    let verb = serde_json::from_value(text.into());
    verb.map_err(|_| Failure::bad_request(format!("there is no verb {text}")))
}

/// Whether each verb would do something now: for buttons, from what is watched.
pub(crate) fn all(outline: &Outline<'_>, undo: &Result<undo::Plan, undo::Refusal>) -> Vec<Action> {
    let actions = VERBS.into_iter().map(|verb| {
        let plan = match ask(verb, REASON) {
            Some(ask) => request(outline, &ask)
                .map(Plan::Annotate)
                .map_err(Refusal::from),
            None => undo.clone().map(Plan::Undo).map_err(Refusal::from),
        };
        Action {
            verb,
            possible: plan.is_ok(),
            effect: plan.map_or_else(|why| Effect::none(why.to_string()), |plan| plan.effect()),
        }
    });
    actions.collect()
}

/// What a verb will do, from a fresh look at the cluster.
pub(crate) async fn preview(
    client: &Client,
    set: &SetName,
    verb: Verb,
) -> Result<Preview, Failure> {
    let found = read(client, set).await?;
    let plan = plan(client, set, &found, verb, REASON).await?;
    let possible = plan.is_ok();
    let annotations = match &plan {
        Ok(Plan::Annotate(request)) => {
            let annotations = request.annotations.iter();
            let annotations = annotations.map(|(key, value)| (key.clone(), value.clone().into()));
            annotations.collect()
        }
        _ => serde_json::Map::new(),
    };
    Ok(Preview {
        verb,
        possible,
        effect: plan.map_or_else(|why| Effect::none(why.to_string()), |plan| plan.effect()),
        annotations,
        command: typed(set, verb),
        target: target(&found),
    })
}

/// Carries a verb out.
pub(crate) async fn act(client: &Client, set: &SetName, act: &Act) -> Result<Acted, Failure> {
    let reason = act.reason.as_deref().map(str::trim);
    let reason = reason.filter(|reason| !reason.is_empty()).unwrap_or(REASON);
    if reason.chars().count() > REASON_CHARS_MAX || reason.chars().any(char::is_control) {
        let message = format!("a reason is one line of at most {REASON_CHARS_MAX} characters");
        return Err(Failure::bad_request(message));
    }
    let found = read(client, set).await?;
    if act.target.is_some() && act.target != target(&found) {
        let message = "another template has been applied meanwhile: look again, then decide";
        return Err(Failure::changed(message));
    }
    let plan = plan(client, set, &found, act.verb, reason).await?;
    let plan = plan.map_err(|why| Failure::refused(why.to_string()))?;
    match &plan {
        Plan::Annotate(request) => command::write(client, &found.daemon_set, request).await?,
        Plan::Undo(plan) => undo::write(client, &found.daemon_set, plan).await?,
    }
    let (SetName { namespace, name }, verb) = (set, act.verb);
    tracing::info!(%namespace, %name, ?verb, "carried out for the dashboard");
    let effect = plan.effect();
    Ok(Acted { effect })
}

async fn read(client: &Client, set: &SetName) -> Result<Snapshot, Failure> {
    let SetName { namespace, name } = set;
    let daemon_set = snapshot::daemon_set(client, namespace, name).await?;
    // What may not be read is missing from the outline, and its verbs are refused.
    let mut unread = Vec::new();
    Ok(snapshot::read_basics(client, daemon_set, &mut unread).await?)
}

async fn plan(
    client: &Client,
    set: &SetName,
    found: &Snapshot,
    verb: Verb,
    reason: &str,
) -> Result<Result<Plan, Refusal>, Failure> {
    Ok(if let Some(ask) = ask(verb, reason) {
        let request = request(&snapshot::outline(found), &ask);
        request.map(Plan::Annotate).map_err(Refusal::from)
    } else {
        let plan = undo::read(client, set).await?;
        plan.map(Plan::Undo).map_err(Refusal::from)
    })
}

/// The command of `kennel rollout`; `undo` is none.
fn ask(verb: Verb, reason: &str) -> Option<RolloutCommand> {
    Some(match verb {
        Verb::Promote => RolloutCommand::Promote { full: false },
        Verb::PromoteFull => RolloutCommand::Promote { full: true },
        Verb::Pause => RolloutCommand::Pause {
            reason: reason.to_owned(),
        },
        Verb::Resume => RolloutCommand::Resume,
        Verb::Abort => RolloutCommand::Abort,
        Verb::Retry => RolloutCommand::Retry,
        Verb::Undo => return None,
    })
}

fn target(found: &Snapshot) -> Option<String> {
    let outline = snapshot::outline(found);
    outline.target.map(|target| target.hash().to_owned())
}

/// The same on the command line.
fn typed(set: &SetName, verb: Verb) -> String {
    let SetName { namespace, name } = set;
    let (program, verb, flag) = match verb {
        Verb::Promote => ("kennel", "promote", ""),
        Verb::PromoteFull => ("kennel", "promote", " --full"),
        Verb::Pause => ("kennel", "pause", ""),
        Verb::Resume => ("kennel", "resume", ""),
        Verb::Abort => ("kennel", "abort", ""),
        Verb::Retry => ("kennel", "retry", ""),
        Verb::Undo => ("kubectl", "undo", ""),
    };
    format!("{program} rollout {verb} ds/{name} -n {namespace}{flag}")
}
