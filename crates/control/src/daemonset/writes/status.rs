//! Writes a DaemonSet's status (rules 6.2.3, 6.2.4 and 4.6.2).

use kennel_client::write::{self, Call, Writer};
use kennel_core::daemonset::Counters;
use kennel_core::daemonset::event::{Answer, Identity};
use kube::api::DynamicObject;
use serde_json::{Map, Value, json};

use super::Failed;
use super::claims::{live, path};

/// Writes the counters into the object as last observed; if that fails, reads the object and tries once more. Leaves the
/// rest of the status unchanged.
pub(in super::super) async fn write_status(
    writer: &Writer,
    set: &Identity,
    observed: &DynamicObject,
    counters: Counters,
) -> Result<Answer, Failed> {
    let first = put(writer, set, to_value(observed), counters).await;
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
            Ok(put(writer, set, now, counters).await?)
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
    counters: Counters,
) -> Result<Answer, write::Failure> {
    let status = &mut object["status"];
    if !status.is_object() {
        *status = Value::Object(Map::new());
    }
    if let Value::Object(status) = status {
        set_counters(status, counters);
    }
    let call = Call::replace(format!("{}/status", path(set)), &object);
    let answer = writer.send(&call).await?;
    let version = answer.written().resource_version.parse().unwrap_or(0);
    Ok(Answer::Status { counters, version })
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
