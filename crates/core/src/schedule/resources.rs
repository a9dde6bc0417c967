//! Amounts of resources: the requests of pods, and the allocatable resources of nodes.
//!
//! CPU is in millicores, all else in whole units. Resources that schedulers do not account for, such as `storage`, are
//! skipped.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::quantity::Quantity;

/// Amounts by resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Resources {
    /// Millicores.
    pub cpu: i64,
    /// Bytes.
    pub memory: i64,
    /// Bytes of `ephemeral-storage`.
    pub storage: i64,
    /// Number of pods; only nodes have it.
    pub pods: i64,
    /// Extended resources and huge pages by name, sorted; never zero.
    others: Vec<(Arc<str>, i64)>,
}

impl Resources {
    pub fn of(cpu: i64, memory: i64) -> Self {
        Self {
            cpu,
            memory,
            ..Self::default()
        }
    }

    /// Sets one amount. Unknown names are ignored.
    pub fn set(&mut self, name: &str, amount: Quantity) {
        match name {
            "cpu" => self.cpu = amount.milli_value(),
            "memory" => self.memory = amount.value(),
            "ephemeral-storage" => self.storage = amount.value(),
            "pods" => self.pods = amount.value(),
            _ if is_scalar(name) => self.combine(name, |_| amount.value()),
            _ => {}
        }
    }

    /// The amount of a resource that pods can request, by name.
    pub fn amount(&self, name: &str) -> i64 {
        match name {
            "cpu" => self.cpu,
            "memory" => self.memory,
            "ephemeral-storage" => self.storage,
            name => self.other(name),
        }
    }

    /// The amount of a resource without a field.
    pub fn other(&self, name: &str) -> i64 {
        let found = self.others.binary_search_by(|(n, _)| (**n).cmp(name));
        found.map_or(0, |at| self.others[at].1)
    }

    /// All resources without a field.
    pub fn others(&self) -> impl Iterator<Item = (&Arc<str>, i64)> {
        self.others.iter().map(|(name, amount)| (name, *amount))
    }

    pub fn add(&mut self, more: &Self) {
        self.cpu += more.cpu;
        self.memory += more.memory;
        self.storage += more.storage;
        self.pods += more.pods;
        for (name, amount) in &more.others {
            self.combine_shared(name, |own| own + amount);
        }
    }

    pub fn subtract(&mut self, less: &Self) {
        self.cpu -= less.cpu;
        self.memory -= less.memory;
        self.storage -= less.storage;
        self.pods -= less.pods;
        for (name, amount) in &less.others {
            self.combine_shared(name, |own| own - amount);
        }
    }

    /// Raises each amount to at least the other's.
    pub fn raise_to(&mut self, other: &Self) {
        self.cpu = self.cpu.max(other.cpu);
        self.memory = self.memory.max(other.memory);
        self.storage = self.storage.max(other.storage);
        self.pods = self.pods.max(other.pods);
        for (name, amount) in &other.others {
            self.combine_shared(name, |own| own.max(*amount));
        }
    }

    /// Applies pod-level requests, which replace the sum of the containers: CPU, memory and huge pages.
    pub fn override_with(&mut self, pod: &Self) {
        if pod.cpu > 0 {
            self.cpu = pod.cpu;
        }
        if pod.memory > 0 {
            self.memory = pod.memory;
        }
        for (name, amount) in &pod.others {
            if name.starts_with("hugepages-") {
                self.combine_shared(name, |_| *amount);
            }
        }
    }

    fn combine(&mut self, name: &str, change: impl FnOnce(i64) -> i64) {
        self.combine_shared(&name.into(), change);
    }

    fn combine_shared(&mut self, name: &Arc<str>, change: impl FnOnce(i64) -> i64) {
        match self.others.binary_search_by(|(n, _)| n.cmp(name)) {
            Ok(at) => {
                let amount = change(self.others[at].1);
                self.others[at].1 = amount;
                if amount == 0 {
                    self.others.remove(at);
                }
            }
            Err(at) => {
                let amount = change(0);
                if amount != 0 {
                    self.others.insert(at, (name.clone(), amount));
                }
            }
        }
    }
}

/// Whether it is a schedulable resource without a field.
fn is_scalar(name: &str) -> bool {
    name.contains('/') || name.starts_with("hugepages-") || name.starts_with("attachable-volumes-")
}

/// Quantities by resource name. One that cannot be parsed is zero: the API has validated it.
impl From<&BTreeMap<String, Value>> for Resources {
    fn from(quantities: &BTreeMap<String, Value>) -> Self {
        let mut resources = Self::default();
        for (name, amount) in quantities {
            resources.set(name, Quantity::read(amount));
        }
        resources
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(quantities: Value) -> Resources {
        Resources::from(&serde_json::from_value(quantities).unwrap())
    }

    #[test]
    fn quantities_become_numbers_and_the_rest_is_skipped() {
        let read = read(
            json!({"cpu": "1500m", "memory": "1Ki", "ephemeral-storage": 5,
            "pods": "110", "nvidia.com/gpu": "2", "hugepages-2Mi": "4Mi", "storage": "1Gi"}),
        );
        assert_eq!(
            (read.cpu, read.memory, read.storage, read.pods),
            (1500, 1024, 5, 110)
        );
        assert_eq!(read.other("nvidia.com/gpu"), 2);
        assert_eq!(read.other("hugepages-2Mi"), 4 << 20);
        assert_eq!(read.other("storage"), 0);
        assert_eq!(Resources::from(&BTreeMap::new()), Resources::default());
    }

    #[test]
    fn adding_and_subtracting_leaves_nothing() {
        let (mut sum, part) = (Resources::default(), read(json!({"cpu": "1", "a/b": "3"})));
        sum.add(&part);
        sum.add(&part);
        assert_eq!((sum.cpu, sum.other("a/b")), (2000, 6));
        sum.subtract(&part);
        sum.subtract(&part);
        assert_eq!(sum, Resources::default());
    }

    #[test]
    fn each_amount_is_raised_by_itself() {
        let mut high = read(json!({"cpu": "2", "memory": "1", "a/b": "1"}));
        high.raise_to(&read(
            json!({"cpu": "1", "memory": "5", "a/b": "2", "c/d": "1"}),
        ));
        assert_eq!(
            high,
            read(json!({"cpu": "2", "memory": "5", "a/b": "2", "c/d": "1"}))
        );
    }

    #[test]
    fn pod_level_requests_replace_some_resources_only() {
        let mut sum = read(json!({"cpu": "2", "memory": "1", "a/b": "1"}));
        sum.override_with(&read(json!({"cpu": "1", "a/b": "7", "hugepages-2Mi": "2"})));
        assert_eq!(
            sum,
            read(json!({"cpu": "1", "memory": "1", "a/b": "1", "hugepages-2Mi": "2"}))
        );
    }
}
