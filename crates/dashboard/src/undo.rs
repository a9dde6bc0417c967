//! `undo`: writes the template of the previous revision, as `kubectl rollout undo` does.

use kennel_core::daemonset::DaemonSetView;
use kennel_core::daemonset::history::Revision;
use kennel_core::rollout::Sentence;
use kennel_inspect::{history, snapshot};
use kube::Client;
use kube::api::{Patch, PatchParams};
use serde_json::Value;

use crate::failure::Failure;
use crate::route::SetName;

/// The field manager of the template.
const MANAGER: &str = "kennel-dashboard";

/// The revision to go back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) number: i64,
    pub(crate) hash: String,
    /// Its data: a strategic merge patch.
    data: String,
}

/// Why there is nothing to undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("there is no revision before the present one")]
    NoOther,
    #[error("the template is that of the previous revision already")]
    Same,
}

impl Plan {
    pub(crate) fn effect(&self) -> Sentence {
        let said = Sentence::new("undo").with("n", &self.number);
        said.with("hash", &self.hash)
    }
}

/// The second-highest number is the previous revision, as kubectl counts.
pub(crate) fn plan(set: &DaemonSetView, owned: &[&Revision]) -> Result<Plan, Refusal> {
    let mut owned = owned.to_vec();
    owned.sort_by_key(|revision| revision.revision);
    let previous = owned.iter().rev().nth(1).ok_or(Refusal::NoOther)?;
    if previous
        .template()
        .is_some_and(|template| template == *set.template)
    {
        return Err(Refusal::Same);
    }
    Ok(Plan {
        number: previous.revision,
        hash: previous.hash().to_owned(),
        data: previous.data.to_string(),
    })
}

pub(crate) async fn read(client: &Client, set: &SetName) -> Result<Result<Plan, Refusal>, Failure> {
    let revisions = history::read(client, &set.namespace, &set.name).await?;
    Ok(plan(&revisions.daemon_set, &revisions.owned()))
}

/// The uid makes the server refuse the patch for another DaemonSet of the same name.
pub(crate) async fn write(
    client: &Client,
    set: &DaemonSetView,
    plan: &Plan,
) -> Result<(), Failure> {
    let patch: Result<Value, _> = serde_json::from_str(&plan.data);
    let mut patch = patch.map_err(|error| Failure::upstream(error.to_string()))?;
    patch["metadata"] = serde_json::json!({"uid": &*set.uid});
    let params = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let patch = kube::api::Request::new(snapshot::daemon_sets(&set.namespace)).patch(
        &set.name,
        &params,
        &Patch::Strategic(patch),
    );
    let patch = patch.map_err(kube::Error::BuildRequest)?;
    let _written: Value = client.request(patch).await?;
    Ok(())
}
