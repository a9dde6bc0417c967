//! Eviction: a graceful deletion that a disruption budget may refuse. The rules are `kennel_core::disruption`.

use kennel_core::disruption::{self, Refusal};
use kennel_types::{ConditionStatus, ConditionType, PodPhase};
use serde_json::{Value, json};

use crate::admit::node_restriction;
use crate::api::Api;
use crate::object::{self, Stored};
use crate::registry::{self, Part};
use crate::request::path::Place;
use crate::response::Reply;
use crate::status::{self, ApiError, Result};
use crate::tree::{is_deleting, list, set, text};
use crate::verbs::call::Call;
use crate::verbs::delete::{check_preconditions, delete_object};
use crate::verbs::managed_fields::Author;
use crate::verbs::options::DeleteOptions;
use crate::verbs::update::{Change, Edit, Outcome, modify};
use crate::verbs::{At, SERVER_MANAGER, decode, meta};

const VIOLATED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
const CAUSE: &str = "DisruptionBudget";
/// Before an eviction is tried again that a budget's newest version will decide.
const RETRY_SECONDS: u32 = 10;

pub(super) async fn create(api: &Api, call: &Call, place: &Place) -> Result<Reply> {
    let at = At::of(place)?;
    let eviction = decode::as_sent(call, "policy.v1.Eviction", "Eviction")?;
    check(&at, &eviction)?;
    let pod = at.stored(api)?;
    node_restriction::check_eviction(&call.user, at.row, &pod)?;
    let mut options = DeleteOptions::from_value(&eviction["deleteOptions"])?;
    options.dry_run |= call.query.dry_run("CreateOptions")?;
    let guarded = charge(api, call, at, &pod, options.dry_run).await?;
    let asked = options.resource_version.is_some();
    if guarded == Guarded::Unready && !asked {
        // It must not have become ready meanwhile.
        options.resource_version = Some(pod.modified.to_string());
    }
    match mark_and_delete(api, call, at, options).await {
        Err(error) if error.code == 409 && guarded == Guarded::Unready && !asked => {
            let why = "the pod has changed since it was found not to be ready";
            Err(ApiError::budget_violated(VIOLATED, why, RETRY_SECONDS))
        }
        other => other,
    }?;
    Ok(Reply::value(201, &status::created()))
}

/// Deletes the pod after its status says why.
async fn mark_and_delete(
    api: &Api,
    call: &Call,
    at: At<'_>,
    mut options: DeleteOptions,
) -> Result<()> {
    if !options.dry_run {
        let marked = mark(api, call, at, &options).await?;
        if options.resource_version.is_some() {
            // The newer version is our own.
            options.resource_version = marked;
        }
    }
    let deleted = delete_object(api, &call.user, at, &options).await;
    deleted.map(drop)
}

/// Sets the pod's condition `DisruptionTarget`. Returns the resourceVersion of the marked pod; `None` if that was deleted
/// by the write, because its deletion waited for nothing else.
async fn mark(
    api: &Api,
    call: &Call,
    at: At<'_>,
    options: &DeleteOptions,
) -> Result<Option<String>> {
    let change = Change {
        at,
        by: Author {
            user: &call.user,
            manager: SERVER_MANAGER,
        },
        part: Part::Status,
        dry_run: false,
    };
    let changed = modify(api, change, |old| {
        check_preconditions(&at, options, &old.tree)?;
        let mut document = old.clone();
        set_disruption_target(&mut document.tree);
        Ok(Edit::of(document))
    });
    Ok(match changed.await?.outcome {
        Outcome::Stored(stored) => Some(stored.modified.to_string()),
        Outcome::Unstored(_) => None,
    })
}

/// Sets the condition; its transition time stays if it was true already.
fn set_disruption_target(pod: &mut Value) {
    let mut conditions = list(pod, "status.conditions").to_vec();
    let is_it = |condition: &Value| condition["type"] == ConditionType::DisruptionTarget.as_str();
    let old = conditions
        .iter()
        .position(is_it)
        .map(|at| conditions.remove(at));
    let was_true = old.filter(|condition| condition["status"] == ConditionStatus::True.as_str());
    let since = was_true.map(|condition| condition["lastTransitionTime"].clone());
    conditions.push(json!({
        "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting", "lastProbeTime": null,
        "lastTransitionTime": since.unwrap_or_else(|| meta::now().into()),
    }));
    set(pod, "status.conditions", conditions.into());
}

/// What an eviction had to do with disruption budgets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Guarded {
    /// No budget selects the pod, or it has ended.
    No,
    /// The budget does not count it, because it is not ready.
    Unready,
    /// It was charged to a budget.
    Charged,
}

/// Charges an eviction to the pod's budget, or says why that does not allow it.
async fn charge(
    api: &Api,
    call: &Call,
    at: At<'_>,
    pod: &Stored,
    dry_run: bool,
) -> Result<Guarded> {
    let tree: Value = serde_json::from_slice(&pod.value).map_err(ApiError::internal)?;
    let phase = PodPhase::from(text(&tree, "status.phase"));
    if is_deleting(&tree) || phase.is_terminal() || phase == PodPhase::Pending {
        return Ok(Guarded::No);
    }
    let budgets = budgets(api, at.namespace, pod);
    let [(name, budget)] = &budgets[..] else {
        let none = budgets.is_empty();
        return none.then_some(Guarded::No).ok_or_else(|| {
            ApiError::without_reason(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            )
        });
    };
    if !disruption::is_guarded(budget, &tree) {
        return Ok(Guarded::Unready);
    }
    let change = Change {
        at: At {
            row: registry::served("policy", "poddisruptionbudgets"),
            namespace: at.namespace,
            name,
        },
        by: Author {
            user: &call.user,
            manager: SERVER_MANAGER,
        },
        part: Part::Status,
        dry_run,
    };
    modify(api, change, |old| {
        let mut document = old.clone();
        let now = crate::clock::now();
        disruption::charge(&mut document.tree, at.name, now).map_err(|why| refuse(&why))?;
        Ok(Edit::of(document))
    })
    .await?;
    Ok(Guarded::Charged)
}

/// The budgets that select a pod, by name.
fn budgets(api: &Api, namespace: Option<&str>, pod: &Stored) -> Vec<(String, Value)> {
    let row = registry::served("policy", "poddisruptionbudgets");
    let prefix = object::prefix(row, namespace);
    let records = api.store.range(&prefix, None, None).records;
    let budgets = records.iter().map(|stored| {
        let budget: Value = serde_json::from_slice(&stored.value).unwrap_or_default();
        (stored.head.name.to_string(), budget)
    });
    budgets
        .filter(|(_, budget)| disruption::selector(budget).matches(|key| pod.head.label(key)))
        .collect()
}

fn refuse(why: &Refusal) -> ApiError {
    let words = why.to_string();
    match why {
        Refusal::Processing(_) => ApiError::budget_violated(VIOLATED, &words, RETRY_SECONDS),
        Refusal::Exhausted(_) => ApiError::budget_violated(VIOLATED, &words, 0),
        Refusal::TooManyPending(name) => {
            let row = registry::served("policy", "poddisruptionbudgets");
            let why =
                "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
            ApiError::forbidden(row, name, why).with_cause(CAUSE, &words, "")
        }
    }
}

/// policy/v1 and the policy/v1beta1 of old clients are the same here.
fn check(at: &At<'_>, eviction: &Value) -> Result<()> {
    let kind = eviction["kind"].as_str().unwrap_or("Eviction");
    let version = eviction["apiVersion"].as_str().unwrap_or("policy/v1");
    if kind != "Eviction" || !matches!(version, "policy/v1" | "policy/v1beta1") {
        let message = format!("no kind \"{kind}\" is registered for version \"{version}\" here");
        return Err(ApiError::bad_request(message));
    }
    let name = text(eviction, "metadata.name");
    if !name.is_empty() && name != at.name {
        let message = "name in URL does not match name in Eviction object";
        return Err(ApiError::bad_request(message));
    }
    Ok(())
}
