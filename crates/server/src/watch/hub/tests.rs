//! What a watcher receives of transactions that change several objects.

use kennel_store::Record;
use serde_json::json;

use super::*;
use crate::registry;

fn config_map(name: &str, revision: u64) -> Arc<Event<Head>> {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "ns", "uid": name},
    });
    let bytes = object.to_string().into_bytes();
    let key: Arc<str> = format!("/registry/configmaps/ns/{name}").into();
    let head = object::decode(&key, &bytes).unwrap();
    let after = Record {
        key: Arc::clone(&key),
        value: bytes.into(),
        head,
        created: revision,
        modified: revision,
    };
    Arc::new(Event {
        revision,
        key,
        before: None,
        after: Some(Arc::new(after)),
    })
}

/// What one receives at once, as `revision key`.
fn words(batch: Batch) -> Vec<String> {
    let deliveries = match batch {
        Batch::One(delivery) => vec![delivery],
        Batch::Several(deliveries) => deliveries,
    };
    let words = |(shared, _): Delivery| {
        let (_, name) = shared.event.key.rsplit_once('/').unwrap();
        format!("{} {name}", shared.event.revision)
    };
    deliveries.into_iter().map(words).collect()
}

fn hub_of_config_maps() -> (Arc<Hub>, Subscription) {
    let row = registry::core("configmaps");
    let hub = Arc::new(Hub::new(object::prefix(row, None), 0));
    let subscription = hub.subscribe(Filter::all(row)).unwrap();
    (hub, subscription)
}

#[test]
fn all_events_of_a_revision_are_received_at_once() {
    let (hub, mut subscription) = hub_of_config_maps();
    hub.send(&[
        config_map("a", 1),
        config_map("b", 2),
        config_map("c", 2),
        config_map("d", 3),
    ]);
    let receiver = &mut subscription.receiver;
    let mut received = std::iter::from_fn(|| receiver.try_recv().ok().map(words));
    assert_eq!(received.next().unwrap(), ["1 a"]);
    assert_eq!(received.next().unwrap(), ["2 b", "2 c"]);
    assert_eq!(received.next().unwrap(), ["3 d"]);
    assert_eq!(received.next(), None);
    assert_eq!(hub.position(), 3);
}

/// A client that had a part of the last revision would go on after it.
#[test]
fn a_watcher_that_is_too_slow_has_no_part_of_a_revision() {
    let (hub, mut subscription) = hub_of_config_maps();
    let last = BUFFER_EVENTS as u64;
    for revision in 1..last {
        hub.send(&[config_map("a", revision)]);
    }
    hub.send(&[config_map("b", last), config_map("c", last)]);
    assert!(!subscription.was_too_slow());
    hub.send(&[config_map("b", last + 1), config_map("c", last + 1)]);
    assert!(subscription.was_too_slow());
    let mut received = Vec::new();
    while let Ok(batch) = subscription.receiver.try_recv() {
        received = words(batch);
    }
    assert_eq!(received, [format!("{last} b"), format!("{last} c")]);
}
