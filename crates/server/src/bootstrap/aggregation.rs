//! Cluster roles that gather the rules of others, kept up to date as those change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kennel_core::selector::Selector;
use kennel_store::{Event, Record, WatchEnd};
use serde_json::Value;

use super::{itself, row};
use crate::api::Api;
use crate::kinds::rbac::GROUP;
use crate::kinds::tree::{has, list, set};
use crate::object::{self, Head};
use crate::status::Result;
use crate::verbs;

/// The roles that gather, and by which labels.
#[derive(Default)]
struct Gatherers(BTreeMap<String, Vec<Selector>>);

impl Gatherers {
    /// Takes in what became of a role; returns the roles whose rules may be others now.
    fn take(
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
            let gather = self
                .0
                .iter()
                .filter(|(_, selectors)| gathers(selectors, &role.head));
            affected.extend(gather.map(|(name, _)| name.clone()));
        }
        affected
    }
}

fn gathers(selectors: &[Selector], head: &Head) -> bool {
    selectors
        .iter()
        .any(|selector| selector.matches(|key| head.label(key)))
}

/// How a role gathers; `None` if it does not.
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

/// Gathers once everywhere.
pub(super) async fn gather_all(api: &Arc<Api>) -> Result<()> {
    let mut gatherers = Gatherers::default();
    let roles = row(GROUP, "clusterroles")?;
    let records = api
        .store
        .range(&object::prefix(roles, None), None, None)
        .records;
    for role in &records {
        gatherers.take(None, Some(role));
    }
    // Gathered rules are gathered further: as often as there are roles that gather, at most.
    for _ in 0..gatherers.0.len() {
        let from = api.store.revision();
        for (name, selectors) in &gatherers.0 {
            gather(api, name, selectors).await?;
        }
        if api.store.revision() == from {
            break;
        }
    }
    Ok(())
}

/// Writes the rules of a role anew, from the roles that its selectors find, in the order of their names.
async fn gather(api: &Arc<Api>, name: &str, selectors: &[Selector]) -> Result<()> {
    let roles = row(GROUP, "clusterroles")?;
    let records = api
        .store
        .range(&object::prefix(roles, None), None, None)
        .records;
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
    match verbs::amend(api, &itself(), roles, None, name, write).await {
        // It went meanwhile.
        Err(error) if error.code == 404 => Ok(()),
        other => other,
    }
}

/// Gathers again whenever a role changes that somebody gathers.
pub(crate) async fn keep_gathered(api: Arc<Api>) {
    while let Ok(roles) = row(GROUP, "clusterroles") {
        let from = api.store.revision();
        let prefix = object::prefix(roles, None);
        let Ok(mut watch) = api.store.watch(&prefix, from) else {
            continue;
        };
        let mut gatherers = Gatherers::default();
        for role in &api.store.range(&prefix, None, None).records {
            gatherers.take(None, Some(role));
        }
        let mut affected: BTreeSet<String> = gatherers.0.keys().cloned().collect();
        let ended = loop {
            for name in std::mem::take(&mut affected) {
                let Some(selectors) = gatherers.0.get(&name) else {
                    continue;
                };
                if let Err(error) = gather(&api, &name, selectors).await {
                    let error = error.message;
                    tracing::warn!(name, error, "cannot gather the rules of a cluster role");
                }
            }
            match watch.next().await {
                Err(end) => break end,
                Ok(events) => {
                    for event in &events {
                        let Event { before, after, .. } = &**event;
                        affected.append(&mut gatherers.take(before.as_deref(), after.as_deref()));
                    }
                }
            }
        };
        if ended == WatchEnd::Closed {
            return;
        }
    }
}
