//! Resource quotas: what an object uses, which quotas it counts for, and whether it fits into them. The words are
//! upstream's.
//!
//! [`Measured`] is all that quotas read of an object, so that callers measure each version of an object once.
//! Admission asks [`check`]; the quota controller writes the statuses that its [`Tracker`] asks for.

mod measure;
mod scope;
#[cfg(test)]
mod tests;
mod tracker;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::pod::resources::{Amounts, amounts};
use crate::quantity::Quantity;
pub use crate::statuses::Status;
use crate::tree::{at, text};
use kennel_types::Timestamp;
use measure::REQUIRED;
pub use measure::{Kind, Measured, Measurement};
use scope::Scope;
pub use tracker::Tracker;

/// A `ResourceQuota`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    pub name: String,
    /// `spec.hard`
    pub hard: Amounts,
    scopes: Vec<Scope>,
}

/// Why an object does not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("failed quota: {quota}: must specify {missing}")]
    Unspecified { quota: String, missing: String },
    #[error("exceeded quota: {quota}, requested: {requested}, used: {used}, limited: {limited}")]
    Exceeded {
        quota: String,
        requested: String,
        used: String,
        limited: String,
    },
}

impl Quota {
    /// Reads a `ResourceQuota`.
    pub fn of(object: &Value) -> Self {
        Self {
            name: text(object, "metadata.name").to_owned(),
            hard: amounts(at(object, "spec.hard")),
            scopes: Scope::all_of(&object["spec"]),
        }
    }

    /// Whether it limits anything about objects of this kind.
    pub fn limits(&self, kind: Kind<'_>) -> bool {
        self.names(kind).next().is_some()
    }

    /// Whether an object counts for it.
    pub fn matches(&self, kind: Kind<'_>, object: &Measured) -> bool {
        self.limits(kind) && self.scopes.iter().all(|scope| scope.matches(object))
    }

    /// The resources of this quota that objects of a kind use.
    fn names(&self, kind: Kind<'_>) -> impl Iterator<Item = &String> {
        self.hard.keys().filter(move |name| kind.uses(name))
    }

    /// What objects of a kind use of it together.
    pub fn used<'a>(
        &self,
        kind: Kind<'_>,
        objects: impl IntoIterator<Item = &'a Measured>,
        now: Timestamp,
    ) -> Amounts {
        let names = self.names(kind).map(|name| (name.clone(), Quantity::ZERO));
        let mut used: Amounts = names.collect();
        for object in objects {
            if !self.scopes.iter().all(|scope| scope.matches(object)) {
                continue;
            }
            for (name, total) in &mut used {
                if let Some(amount) = object.amount(name, now) {
                    *total = *total + amount;
                }
            }
        }
        used
    }
}

/// Checks whether `new` fits into the quotas of its namespace. `old` is absent on create; `used` says what of a quota
/// is used, `old` included.
pub fn check(
    quotas: &[Quota],
    kind: Kind<'_>,
    new: &Measured,
    old: Option<&Measured>,
    mut used: impl FnMut(&Quota) -> Amounts,
) -> Result<(), Refusal> {
    let matching: Vec<&Quota> = quotas.iter().filter(|q| q.matches(kind, new)).collect();
    for quota in &matching {
        check_specified(quota, kind, new)?;
    }
    for quota in matching {
        let before = old.filter(|old| quota.matches(kind, old));
        let mut limited = growth(&new.usage, before.map(|old| &old.usage));
        limited.retain(|name, _| quota.hard.contains_key(name));
        if limited.is_empty() {
            continue;
        }
        let used = used(quota);
        let after = |name: &String, more: Quantity| {
            more + used.get(name).copied().unwrap_or_default() > quota.hard[name]
        };
        let exceeded: BTreeSet<&String> = limited
            .iter()
            .filter(|(name, more)| after(name, **more))
            .map(|(name, _)| name)
            .collect();
        if !exceeded.is_empty() {
            return Err(Refusal::Exceeded {
                quota: quota.name.clone(),
                requested: show(&limited, &exceeded),
                used: show(&used, &exceeded),
                limited: show(&quota.hard, &exceeded),
            });
        }
    }
    Ok(())
}

/// What the new usage has more than the old one, without zeros.
fn growth(new: &Amounts, old: Option<&Amounts>) -> Amounts {
    let before = |name| old.and_then(|old| old.get(name)).copied();
    let more = new.iter().map(|(name, amount)| {
        let more = match before(name) {
            Some(before) => *amount - before,
            None => *amount,
        };
        (name.clone(), more)
    });
    more.filter(|(_, more)| more.sign() > 0).collect()
}

/// A quota of CPU or memory requires that each container says how much it uses.
fn check_specified(quota: &Quota, kind: Kind<'_>, new: &Measured) -> Result<(), Refusal> {
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let required = quota.names(kind).filter(|n| REQUIRED.contains(&n.as_str()));
    for name in required {
        for (container, specified) in &new.containers {
            if !specified.contains(name.as_str()) {
                missing.entry(name).or_default().insert(container);
            }
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let missing: Vec<String> = missing
        .into_iter()
        .map(|(name, containers)| {
            let containers: Vec<&str> = containers.into_iter().collect();
            format!("{name} for: {}", containers.join(","))
        })
        .collect();
    Err(Refusal::Unspecified {
        quota: quota.name.clone(),
        missing: missing.join("; "),
    })
}

/// `limits.cpu=1,pods=3`
fn show(amounts: &Amounts, names: &BTreeSet<&String>) -> String {
    let shown = names.iter().map(|name| {
        let amount = amounts.get(*name).copied().unwrap_or_default();
        format!("{name}={amount}")
    });
    shown.collect::<Vec<_>>().join(",")
}
