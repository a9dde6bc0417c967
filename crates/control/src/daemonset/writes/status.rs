//! Writes a DaemonSet's status (rules 6.2.3, 6.2.4 and 4.6.2).

use std::sync::Arc;

use kennel_client::write::{self, Call, Writer};
use kennel_core::daemonset::Counters;
use kennel_core::daemonset::event::{Answer, Identity};
use kennel_core::rollout::condition::{self, Conditions};
use kennel_types::Timestamp;
use kube::api::DynamicObject;
use serde_json::{Map, Value, json};

use super::Failed;
use super::claims::{live, path};
use crate::view;

/// What the planner wants the status to say.
pub(in super::super) struct Status {
    /// `None`: they are another controller's and stay as they are.
    pub(in super::super) counters: Option<Counters>,
    /// Likewise.
    pub(in super::super) conditions: Option<Arc<Conditions>>,
    /// For conditions that change.
    pub(in super::super) now: Timestamp,
}

/// Writes the counters and conditions into the object as last observed; if that fails, reads the object and tries once more. Leaves the
/// rest of the status unchanged.
pub(in super::super) async fn write_status(
    writer: &Writer,
    set: &Identity,
    observed: &DynamicObject,
    status: &Status,
) -> Result<Answer, Failed> {
    let first = put(writer, set, to_value(observed), status).await;
    match first {
        Ok(answer) => Ok(answer),
        Err(failure) if failure.is(404) => Ok(Answer::Nothing),
        Err(failure) if failure.fenced => Err(failure.into()),
        Err(_) => {
            let now = live(writer, set).await;
            let now = match now {
                Ok(now) if now["metadata"]["uid"] == *set.uid => now,
                // The DaemonSet is gone, or another one has its name.
                Ok(_) => return Ok(Answer::Nothing),
                Err(failed) if failed.is_not_found() => return Ok(Answer::Nothing),
                Err(failed) => return Err(failed),
            };
            Ok(put(writer, set, now, status).await?)
        }
    }
}

/// Increments the collision count, unless it has changed (rule 4.6.2).
pub(in super::super) async fn count_collision(
    writer: &Writer,
    set: &Identity,
    known: Option<i64>,
) -> Result<Answer, Failed> {
    let mut now = live(writer, set).await?;
    let count = now["status"]["collisionCount"].as_i64();
    if now["metadata"]["uid"] != *set.uid || count != known {
        return Err(Failed::refused(format!(
            "found a stale collision count ({count:?}, expected {known:?}) of DaemonSet {:?} while \
             processing; will retry until it is updated",
            set.name
        )));
    }
    now["status"]["collisionCount"] = json!(known.unwrap_or(0) + 1);
    let call = Call::replace(format!("{}/status", path(set)), &now);
    writer.send(&call).await?;
    Ok(Answer::Nothing)
}

async fn put(
    writer: &Writer,
    set: &Identity,
    mut object: Value,
    new: &Status,
) -> Result<Answer, write::Failure> {
    let status = &mut object["status"];
    if !status.is_object() {
        *status = Value::Object(Map::new());
    }
    if let Value::Object(status) = status {
        if let Some(counters) = new.counters {
            set_counters(status, counters);
        }
        if let Some(conditions) = &new.conditions {
            set_conditions(status, conditions, new.now);
        }
    }
    let counters = view::counters(&object["status"]);
    let conditions = view::conditions(&object["status"]["conditions"]);
    let call = Call::replace(format!("{}/status", path(set)), &object);
    let answer = writer.send(&call).await?;
    let version = answer.written().resource_version.parse().unwrap_or(0);
    Ok(Answer::Status {
        counters: new.counters.unwrap_or(counters),
        conditions: new.conditions.clone().unwrap_or(Arc::new(conditions)),
        version,
    })
}

fn to_value(observed: &DynamicObject) -> Value {
    let mut object = observed.data.clone();
    object["apiVersion"] = "apps/v1".into();
    object["kind"] = "DaemonSet".into();
    object["metadata"] = json!(observed.metadata);
    object
}

/// Sets the counters. Those that are zero are left out, except the four that are always present (rule 1.1.5).
fn set_counters(status: &mut Map<String, Value>, counters: Counters) {
    let always = [
        ("desiredNumberScheduled", counters.desired),
        ("currentNumberScheduled", counters.current),
        ("numberMisscheduled", counters.misscheduled),
        ("numberReady", counters.ready),
    ];
    for (field, number) in always {
        status.insert(field.into(), number.into());
    }
    let unless_zero = [
        ("updatedNumberScheduled", counters.updated),
        ("numberAvailable", counters.available),
        ("numberUnavailable", counters.unavailable()),
        ("observedGeneration", counters.observed_generation),
    ];
    for (field, number) in unless_zero {
        if number == 0 {
            status.remove(field);
        } else {
            status.insert(field.into(), number.into());
        }
    }
}

/// Replaces our conditions and leaves all others. The time of a transition stays while the status does.
fn set_conditions(status: &mut Map<String, Value>, conditions: &Conditions, now: Timestamp) {
    let is_ours = |found: &Value| {
        let kind = found["type"].as_str();
        kind.is_some_and(|kind| condition::TYPES.contains(&kind))
    };
    let old = status.get("conditions").and_then(Value::as_array);
    let old = old.cloned().unwrap_or_default();
    if conditions.is_empty() && !old.iter().any(is_ours) {
        return;
    }
    let (ours, mut all): (Vec<Value>, Vec<Value>) = old.into_iter().partition(is_ours);
    for (kind, condition) in conditions {
        let text = if condition.status { "True" } else { "False" };
        let before = ours
            .iter()
            .find(|old| old["type"] == **kind && old["status"] == text);
        let since = before.map(|before| before["lastTransitionTime"].clone());
        all.push(json!({
            "type": kind,
            "status": text,
            "reason": condition.reason,
            "message": condition.message,
            "lastTransitionTime": since.unwrap_or_else(|| json!(now)),
        }));
    }
    if all.is_empty() {
        status.remove("conditions");
    } else {
        status.insert("conditions".to_owned(), Value::Array(all));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(before: &Value, counters: Counters, after: &Value) {
        let Value::Object(mut status) = before.clone() else {
            panic!("a status is an object");
        };
        set_counters(&mut status, counters);
        assert_eq!(Value::Object(status), *after);
    }

    #[test]
    fn s1_1_5_four_counters_are_always_written_and_the_others_when_not_zero() {
        let counters = Counters {
            desired: 3,
            observed_generation: 1,
            ..Counters::default()
        };
        let after = json!({"desiredNumberScheduled": 3, "currentNumberScheduled": 0,
            "numberMisscheduled": 0, "numberReady": 0, "numberUnavailable": 3,
            "observedGeneration": 1});
        check(&json!({}), counters, &after);
        let stale = json!({"numberAvailable": 7, "updatedNumberScheduled": 7});
        check(&stale, counters, &after);
    }

    #[test]
    fn r9_1_our_conditions_replace_our_own_and_no_others() {
        let other = json!({"type": "Mine", "status": "True"});
        let mut status = Map::new();
        status.insert("conditions".into(), json!([other]));
        let stalled = condition::conditions(false, true, "RolledBack", "m");
        set_conditions(&mut status, &stalled, Timestamp::from_secs(5));
        let conditions = status["conditions"].as_array().unwrap().clone();
        assert_eq!(conditions.len(), 4);
        assert_eq!(conditions[3]["type"], "Stalled");
        assert_eq!(conditions[3]["status"], "True");
        assert_eq!(conditions[3]["lastTransitionTime"], "1970-01-01T00:00:05Z");
        let again = condition::conditions(false, true, "Frozen", "m");
        set_conditions(&mut status, &again, Timestamp::from_secs(9));
        assert_eq!(status["conditions"][3]["reason"], "Frozen");
        assert_eq!(
            status["conditions"][3]["lastTransitionTime"],
            "1970-01-01T00:00:05Z"
        );
        set_conditions(&mut status, &Conditions::new(), Timestamp::from_secs(9));
        assert_eq!(status["conditions"], json!([other]));
        let mut empty = Map::new();
        empty.insert("conditions".into(), json!([]));
        set_conditions(&mut empty, &Conditions::new(), Timestamp::from_secs(9));
        assert_eq!(empty["conditions"], json!([]));
    }

    #[test]
    fn s6_2_3_all_else_in_a_status_stays() {
        let foreign = json!({"collisionCount": 2, "conditions": [{"type": "Mine"}], "new": 1});
        let mut expected = foreign.clone();
        for field in [
            "desiredNumberScheduled",
            "currentNumberScheduled",
            "numberMisscheduled",
            "numberReady",
        ] {
            expected[field] = 0.into();
        }
        check(&foreign, Counters::default(), &expected);
    }
}
