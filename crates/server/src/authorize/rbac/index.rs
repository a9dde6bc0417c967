//! Indexes roles and bindings by subject: a decision reads only what is bound to the user's name and
//! groups.

use std::collections::HashMap;
use std::sync::Arc;

use kennel_store::Record;
use serde_json::Value;

use super::super::Attributes;
use super::filter::RuleFilter;
use super::rule::Rule;
use super::subject::{Binding, Grant, SubjectKind};
use crate::derived::View;
use crate::kinds::rbac::ROLE_KINDS;
use crate::object::Head;
use crate::registry::Resource;
use crate::request::User;

#[derive(Default)]
pub(crate) struct Index {
    /// A slot for every role that exists or that a binding refers to.
    roles: Vec<Slot>,
    /// By slot. Separate from the roles, since decisions read many filters and few roles.
    filters: Vec<RuleFilter>,
    /// The slots by role key.
    slots: HashMap<String, usize>,
    /// Unused slots.
    free: Vec<usize>,
    users: HashMap<Box<str>, Grants>,
    groups: HashMap<Box<str>, Grants>,
}

/// A role; without rules if it does not exist.
#[derive(Default)]
struct Slot {
    rules: Option<Arc<[Rule]>>,
    /// How many grants refer to it.
    grants: usize,
}

/// The grants of one subject: cluster-wide, and by namespace.
#[derive(Default)]
struct Grants {
    cluster_wide: Vec<Granted>,
    by_namespace: HashMap<Box<str>, Vec<Granted>>,
}

struct Granted {
    role: usize,
    /// Boxed, since only reasons and errors read it.
    grant: Box<Grant>,
}

impl View for Index {
    fn apply(
        &mut self,
        row: &'static Resource,
        before: Option<&Record<Head>>,
        after: Option<&Record<Head>>,
    ) {
        if ROLE_KINDS.contains(&row.kind) {
            let Some(record) = after.or(before) else {
                return;
            };
            let key = role_key(&record.head.namespace, &record.head.name);
            let rules = after.map(|role| Rule::all_of(&parsed(role)).into());
            self.set_role(&key, rules);
            return;
        }
        if let Some(binding) = before {
            self.remove(&Arc::new(Binding::of(row, &parsed(binding))));
        }
        if let Some(binding) = after {
            self.add(&Arc::new(Binding::of(row, &parsed(binding))));
        }
    }
}

fn parsed(record: &Record<Head>) -> Value {
    serde_json::from_slice(&record.value).unwrap_or_default()
}

/// Cluster roles have no namespace.
fn role_key(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

impl Index {
    /// The first grant whose role allows what is asked for.
    pub(super) fn find(&self, user: &User, asked: &Attributes<'_>) -> Option<&Grant> {
        let filter = RuleFilter::of_request(asked);
        // Every request waits for this: loops over slices, no allocation.
        for grants in self.grants(user) {
            let local = grants.by_namespace.get(asked.namespace());
            for list in [Some(&grants.cluster_wide), local].into_iter().flatten() {
                let found = list.iter().find(|granted| {
                    self.filters[granted.role].may_allow(filter) && self.allows(granted.role, asked)
                });
                if let Some(granted) = found {
                    return Some(&granted.grant);
                }
            }
        }
        None
    }

    fn allows(&self, role: usize, asked: &Attributes<'_>) -> bool {
        let rules = self.roles[role].rules.as_deref().unwrap_or_default();
        rules.iter().any(|rule| rule.allows(asked))
    }

    /// The rules that are granted to a user in a namespace, or (without one) cluster-wide.
    pub(super) fn rules(&self, user: &User, namespace: &str) -> Vec<Arc<[Rule]>> {
        self.granted(user, namespace)
            .filter_map(|granted| self.roles[granted.role].rules.clone())
            .collect()
    }

    pub(super) fn role(&self, namespace: &str, name: &str) -> Option<Arc<[Rule]>> {
        let slot = self.slots.get(&role_key(namespace, name))?;
        self.roles[*slot].rules.clone()
    }

    /// The grants of a user whose roles do not exist.
    pub(super) fn broken(&self, user: &User, namespace: &str) -> Vec<&Grant> {
        self.granted(user, namespace)
            .filter(|granted| self.roles[granted.role].rules.is_none())
            .map(|granted| &*granted.grant)
            .collect()
    }

    fn granted<'a, 'b>(
        &'a self,
        user: &'b User,
        namespace: &'b str,
    ) -> impl Iterator<Item = &'a Granted> + use<'a, 'b> {
        self.grants(user).flat_map(move |grants| {
            let local = grants.by_namespace.get(namespace);
            grants
                .cluster_wide
                .iter()
                .chain(local.into_iter().flatten())
        })
    }

    /// The grants of the user's name and groups.
    fn grants<'a, 'b>(&'a self, user: &'b User) -> impl Iterator<Item = &'a Grants> + use<'a, 'b> {
        let by_name = self.users.get(user.name.as_str());
        let groups = user.groups.iter();
        let by_group = groups.filter_map(move |group| self.groups.get(group.as_str()));
        by_name.into_iter().chain(by_group)
    }

    fn set_role(&mut self, key: &str, rules: Option<Arc<[Rule]>>) {
        let slot = self.slot(key);
        self.filters[slot] = RuleFilter::of_rules(rules.as_deref().unwrap_or_default());
        self.roles[slot].rules = rules;
        self.release(key, slot);
    }

    fn add(&mut self, binding: &Arc<Binding>) {
        let key = role_key(&binding.role_namespace, &binding.role_name);
        for (kind, name) in binding.subjects() {
            let role = self.slot(&key);
            self.roles[role].grants += 1;
            let grant = Box::new(Grant {
                binding: Arc::clone(binding),
                kind,
                name: name.clone(),
            });
            let grants = self.grants_of(kind).entry(name).or_default();
            let list = grants.list(&binding.namespace);
            let at = list.partition_point(|other| other.grant.binding.name <= binding.name);
            list.insert(at, Granted { role, grant });
        }
    }

    fn remove(&mut self, binding: &Arc<Binding>) {
        let key = role_key(&binding.role_namespace, &binding.role_name);
        for (kind, name) in binding.subjects() {
            let Some(grants) = self.grants_of(kind).get_mut(&name) else {
                continue;
            };
            let list = grants.list(&binding.namespace);
            // A binding that names a subject twice has two grants; each is removed once.
            let Some(at) = list
                .iter()
                .position(|g| g.grant.binding.is_same_object(binding))
            else {
                continue;
            };
            let role = list.remove(at).role;
            if grants.remove_empty(&binding.namespace) {
                self.grants_of(kind).remove(&name);
            }
            self.roles[role].grants -= 1;
            self.release(&key, role);
        }
    }

    fn grants_of(&mut self, kind: SubjectKind) -> &mut HashMap<Box<str>, Grants> {
        match kind {
            SubjectKind::Group => &mut self.groups,
            SubjectKind::User | SubjectKind::ServiceAccount => &mut self.users,
        }
    }

    /// The slot of a role; takes a free one if the role has none.
    fn slot(&mut self, key: &str) -> usize {
        if let Some(slot) = self.slots.get(key) {
            return *slot;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.roles.push(Slot::default());
            self.filters.push(RuleFilter::default());
            self.roles.len() - 1
        });
        self.slots.insert(key.to_owned(), slot);
        slot
    }

    /// Frees the slot of a role that does not exist and that no binding refers to.
    fn release(&mut self, key: &str, slot: usize) {
        let role = &self.roles[slot];
        if role.rules.is_none() && role.grants == 0 {
            self.slots.remove(key);
            self.free.push(slot);
        }
    }
}

impl Grants {
    fn list(&mut self, namespace: &str) -> &mut Vec<Granted> {
        if namespace.is_empty() {
            return &mut self.cluster_wide;
        }
        self.by_namespace.entry(namespace.into()).or_default()
    }

    /// Returns whether no grant is left.
    fn remove_empty(&mut self, namespace: &str) -> bool {
        if self.by_namespace.get(namespace).is_some_and(Vec::is_empty) {
            self.by_namespace.remove(namespace);
        }
        self.cluster_wide.is_empty() && self.by_namespace.is_empty()
    }
}

#[cfg(test)]
impl Index {
    /// The number of roles and of subjects.
    fn size(&self) -> (usize, usize) {
        let roles = self.roles.len() - self.free.len();
        (roles, self.users.len() + self.groups.len())
    }
}

#[cfg(test)]
mod tests;
