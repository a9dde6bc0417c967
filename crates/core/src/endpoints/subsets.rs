//! The subsets of a service's Endpoints object.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::facts::ServiceFacts;
use super::manifest;
use super::member::{Endpoint, Member, Ports};

#[derive(Default)]
struct Subset<'a> {
    ready: Vec<&'a Endpoint>,
    others: Vec<&'a Endpoint>,
}

/// The subsets, and whether they are truncated.
pub(super) fn subsets<'a>(
    service: &ServiceFacts,
    members: impl Iterator<Item = &'a Member>,
    max: usize,
) -> (Value, bool) {
    let mut all: BTreeMap<&Ports, Subset<'a>> = BTreeMap::new();
    for member in members {
        let (Some(ready), Some(endpoint)) = (member.in_endpoints, member.endpoints.first()) else {
            continue;
        };
        let subset = all.entry(&member.ports).or_default();
        let side = if ready {
            &mut subset.ready
        } else {
            &mut subset.others
        };
        side.push(endpoint);
    }
    for subset in all.values_mut() {
        for side in [&mut subset.ready, &mut subset.others] {
            side.sort_unstable_by_key(|e| (e.address, e.uid.clone()));
        }
    }
    let truncated = truncate(all.values_mut().collect(), max);
    let shown = all.iter().filter(|(_, subset)| !subset.is_empty());
    let shown = shown.map(|(ports, subset)| subset.show(service, ports));
    (shown.collect(), truncated)
}

impl Subset<'_> {
    fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.others.is_empty()
    }

    fn show(&self, service: &ServiceFacts, ports: &Ports) -> Value {
        let mut object = Map::new();
        let sides = [
            ("addresses", &self.ready),
            ("notReadyAddresses", &self.others),
        ];
        for (field, side) in sides.into_iter().filter(|(_, side)| !side.is_empty()) {
            let list = side
                .iter()
                .map(|e| manifest::address(&service.namespace, e));
            object.insert(field.to_owned(), list.collect());
        }
        if !ports.is_empty() {
            object.insert("ports".to_owned(), manifest::subset_ports(ports));
        }
        json!(object)
    }
}

/// Truncates the subsets to `max` addresses, in proportion to their sizes; unready addresses are dropped first. True if
/// that was needed.
fn truncate(mut subsets: Vec<&mut Subset<'_>>, max: usize) -> bool {
    let ready: usize = subsets.iter().map(|s| s.ready.len()).sum();
    let others: usize = subsets.iter().map(|s| s.others.len()).sum();
    if ready + others <= max {
        return false;
    }
    let cut_ready = ready > max;
    let (room, total) = if cut_ready {
        (max, ready)
    } else {
        (max - ready, others)
    };
    let mut left = room;
    for subset in &mut subsets {
        let side = if cut_ready {
            subset.others.clear();
            &mut subset.ready
        } else {
            &mut subset.others
        };
        let share = (side.len() * room).div_ceil(total).min(left);
        side.truncate(share);
        left -= side.len();
    }
    true
}
