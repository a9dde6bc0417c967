//! Aggregated cluster roles: their rules are collected from the roles that their selectors match.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kennel_core::selector::Selector;
use kennel_store::{Event, Record, WatchEnd};
use serde_json::Value;

use super::server_user;
use crate::api::Api;
use crate::kinds::rbac::GROUP;
use crate::object::{self, Head};
use crate::registry;
use crate::status::Result;
use crate::tree::{has, list, set};
use crate::verbs;

/// The selectors of the roles with an aggregation rule.
#[derive(Default)]
struct AggregatedRoles(BTreeMap<String, Vec<Selector>>);

impl AggregatedRoles {
    /// Applies a change of a role; returns the aggregated roles whose rules may have changed.
    fn update(
        &mut self,
        before: Option<&Record<Head>>,
        after: Option<&Record<Head>>,
    ) -> BTreeSet<String> {
        let mut affected = BTreeSet::new();
        if let Some(role) = before.filter(|_| after.is_none()) {
            self.0.remove(&*role.head.name);
        }
        if let Some(role) = after {
            let name = role.head.name.to_string();
            match selectors(role) {
                Some(selectors) => {
                    self.0.insert(name.clone(), selectors);
                    affected.insert(name);
                }
                None => {
                    self.0.remove(&name);
                }
            }
        }
        for role in [before, after].into_iter().flatten() {
            let selecting = self
                .0
                .iter()
                .filter(|(_, selectors)| selects(selectors, &role.head));
            affected.extend(selecting.map(|(name, _)| name.clone()));
        }
        affected
    }
}

fn selects(selectors: &[Selector], head: &Head) -> bool {
    selectors
        .iter()
        .any(|selector| selector.matches(|key| head.label(key)))
}

/// `None` if the role has no aggregation rule.
fn selectors(role: &Record<Head>) -> Option<Vec<Selector>> {
    let role: Value = serde_json::from_slice(&role.value).unwrap_or_default();
    if !has(&role, "aggregationRule") {
        return None;
    }
    let selectors = list(&role, "aggregationRule.clusterRoleSelectors").iter();
    Some(
        selectors
            .filter_map(|s| Selector::from_object(s).ok())
            .collect(),
    )
}

pub(super) async fn aggregate_all(api: &Arc<Api>) -> Result<()> {
    let mut roles_by_name = AggregatedRoles::default();
    let roles = registry::served(GROUP, "clusterroles");
    let records = api.all(roles);
    for role in &records {
        roles_by_name.update(None, Some(role));
    }
    // An aggregated role may select another one: repeat at most once per aggregated role.
    for _ in 0..roles_by_name.0.len() {
        let from = api.store.revision();
        for (name, selectors) in &roles_by_name.0 {
            aggregate(api, name, selectors).await?;
        }
        if api.store.revision() == from {
            break;
        }
    }
    Ok(())
}

/// Writes the rules of an aggregated role from those of the selected roles, in the order of their names.
async fn aggregate(api: &Arc<Api>, name: &str, selectors: &[Selector]) -> Result<()> {
    let roles = registry::served(GROUP, "clusterroles");
    let records = api.all(roles);
    let mut rules: Vec<Value> = Vec::new();
    for selector in selectors {
        let found = records
            .iter()
            .filter(|role| selector.matches(|key| role.head.label(key)));
        for role in found.filter(|role| &*role.head.name != name) {
            let role: Value = serde_json::from_slice(&role.value).unwrap_or_default();
            for rule in list(&role, "rules") {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    let write = |tree: &mut Value| set(tree, "rules", rules.clone().into());
    match verbs::amend(api, &server_user(), roles, None, name, write).await {
        // The role was deleted meanwhile.
        Err(error) if error.code == 404 => Ok(()),
        other => other,
    }
}

/// Aggregates again whenever a selected role changes.
pub(crate) async fn watch_aggregated_roles(api: Arc<Api>) {
    let roles = registry::served(GROUP, "clusterroles");
    loop {
        let from = api.store.revision();
        let prefix = object::prefix(roles, None);
        let Ok(mut watch) = api.store.watch(&prefix, from) else {
            continue;
        };
        let mut roles_by_name = AggregatedRoles::default();
        for role in &api.store.range(&prefix, None, None).records {
            roles_by_name.update(None, Some(role));
        }
        let mut affected: BTreeSet<String> = roles_by_name.0.keys().cloned().collect();
        let ended = loop {
            for name in std::mem::take(&mut affected) {
                let Some(selectors) = roles_by_name.0.get(&name) else {
                    continue;
                };
                if let Err(error) = aggregate(&api, &name, selectors).await {
                    let error = error.message;
                    tracing::warn!(name, error, "cannot aggregate the rules of a cluster role");
                }
            }
            match watch.next().await {
                Err(end) => break end,
                Ok(events) => {
                    for event in &events {
                        let Event { before, after, .. } = &**event;
                        affected
                            .append(&mut roles_by_name.update(before.as_deref(), after.as_deref()));
                    }
                }
            }
        };
        if ended == WatchEnd::Closed {
            return;
        }
    }
}
