//! The eviction of one pod.

use kennel_types::{ConditionStatus, ConditionType, Timestamp};
use serde_json::{Value, json};

use super::{CONDITION, set_condition};
use crate::tree::{condition, list, number, text};

/// More evictions that the controller has not seen than this are refused: upstream's bound.
const DISRUPTED_MAX: usize = 2000;

/// Why a budget does not allow an eviction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The controller has not seen the budget's newest version.
    #[error("The disruption budget {0} is still being processed by the server.")]
    Processing(String),
    #[error("{0}")]
    Exhausted(String),
    #[error(
        "The disruption budget {0} does not allow evicting pods currently: too many pending evictions not confirmed by PDB controller"
    )]
    TooManyPending(String),
}

/// Whether an eviction of the pod counts for the budget. A pod that is not ready does not, if enough others are.
pub fn is_guarded(budget: &Value, pod: &Value) -> bool {
    let ready = condition(pod, ConditionType::Ready.as_str());
    if ready.map(ConditionStatus::from) == Some(ConditionStatus::True) {
        return true;
    }
    let count = |field: &str| number(&budget["status"], field);
    let (healthy, desired) = (count("currentHealthy"), count("desiredHealthy"));
    let always = text(budget, "spec.unhealthyPodEvictionPolicy") == "AlwaysAllow";
    !always && (healthy < desired || desired == 0)
}

/// Charges the eviction of a pod to a budget: changes its status, or says why not.
pub fn charge(budget: &mut Value, pod: &str, now: Timestamp) -> Result<(), Refusal> {
    let name = text(budget, "metadata.name").to_owned();
    let generation = number(budget, "metadata.generation");
    let status = &mut budget["status"];
    let count = |field: &str| number(status, field);
    if count("observedGeneration") < generation {
        return Err(Refusal::Processing(name));
    }
    let pending = status["disruptedPods"].as_object();
    if pending.is_some_and(|pending| pending.len() > DISRUPTED_MAX) {
        return Err(Refusal::TooManyPending(name));
    }
    let allowed = count("disruptionsAllowed");
    if allowed <= 0 {
        return Err(Refusal::Exhausted(exhausted(&name, status)));
    }
    status["disruptionsAllowed"] = (allowed - 1).into();
    if allowed == 1 {
        set_condition(status, now);
    }
    if !status["disruptedPods"].is_object() {
        status["disruptedPods"] = json!({});
    }
    status["disruptedPods"][pod] = now.to_string().into();
    Ok(())
}

fn is_false(condition: &Value) -> bool {
    ConditionStatus::from(text(condition, "status")) == ConditionStatus::False
}

fn exhausted(name: &str, status: &Value) -> String {
    let count = |field: &str| number(status, field);
    let (healthy, desired) = (count("currentHealthy"), count("desiredHealthy"));
    let conditions = list(status, "conditions");
    let condition = conditions
        .iter()
        .find(|one| one["type"] == CONDITION && is_false(one));
    let said = |field: &str| {
        let said = condition.and_then(|one| one[field].as_str());
        said.unwrap_or_default()
    };
    let (reason, message) = (said("reason"), said("message"));
    let start = format!("The disruption budget {name}");
    if reason == "SyncFailed" && !message.is_empty() {
        return format!(
            "{start} does not allow evicting pods currently because it failed sync: {message}"
        );
    }
    if healthy <= desired {
        return format!("{start} needs {desired} healthy pods and has {healthy} currently");
    }
    if message.is_empty() {
        return format!("{start} does not allow evicting pods currently");
    }
    format!("{start} does not allow evicting pods currently ({reason}): {message}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(status: Value) -> Value {
        let mut budget = json!({"metadata": {"name": "b", "generation": 1}, "spec": {}});
        budget["status"] = status;
        budget
    }

    #[test]
    fn an_eviction_lowers_what_is_allowed() {
        let mut two = budget(
            json!({"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2}),
        );
        let now = Timestamp::from_secs(5);
        charge(&mut two, "p", now).unwrap();
        assert_eq!(two["status"]["disruptionsAllowed"], 0);
        assert_eq!(
            two["status"]["disruptedPods"],
            json!({"p": "1970-01-01T00:00:05Z"})
        );
        assert_eq!(two["status"]["conditions"][0]["reason"], "InsufficientPods");
        let refused = charge(&mut two, "q", now).unwrap_err().to_string();
        assert_eq!(
            refused,
            "The disruption budget b does not allow evicting pods currently"
        );
    }

    #[test]
    fn refusals_say_what_is_missing() {
        let check = |status: Value, expected: &str| {
            let refused = charge(&mut budget(status), "p", Timestamp::EPOCH);
            assert_eq!(refused.unwrap_err().to_string(), expected);
        };
        check(
            json!({}),
            "The disruption budget b is still being processed by the server.",
        );
        check(
            json!({"observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 2}),
            "The disruption budget b needs 2 healthy pods and has 1 currently",
        );
        let failed = json!([{"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "m"}]);
        check(
            json!({"observedGeneration": 1, "conditions": failed}),
            "The disruption budget b does not allow evicting pods currently because it failed sync: m",
        );
    }

    #[test]
    fn pods_that_are_not_ready_go_when_the_others_suffice() {
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let unready = json!({"status": {}});
        let enough = budget(json!({"currentHealthy": 2, "desiredHealthy": 2}));
        let few = budget(json!({"currentHealthy": 1, "desiredHealthy": 2}));
        assert!(is_guarded(&enough, &ready));
        assert!(!is_guarded(&enough, &unready));
        assert!(is_guarded(&few, &unready));
        let mut always = few;
        always["spec"]["unhealthyPodEvictionPolicy"] = "AlwaysAllow".into();
        assert!(!is_guarded(&always, &unready));
    }
}
