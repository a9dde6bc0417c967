//! Roles and bindings by whom they concern. A decision reads only what is bound to the asking user's
//! name and groups.

use std::collections::HashMap;
use std::sync::Arc;

use kennel_store::Record;
use serde_json::Value;

use super::super::Attributes;
use super::rule::Rule;
use super::sketch::Sketch;
use super::subject::{Binding, Grant, SubjectKind};
use crate::derived::View;
use crate::object::Head;
use crate::registry::Resource;
use crate::request::User;

/// Everything that is granted to somebody.
#[derive(Default)]
pub(crate) struct Index {
    /// A place for every role that exists or that a binding names.
    roles: Vec<Slot>,
    /// What each place's rules speak of. Apart, since decisions look at all of these and at few roles.
    sketches: Vec<Sketch>,
    /// Where a role is, by its key.
    places: HashMap<String, usize>,
    /// Places that are free.
    free: Vec<usize>,
    users: HashMap<Box<str>, Grants>,
    groups: HashMap<Box<str>, Grants>,
}

/// A role, or the place of one that bindings name and that is not there.
#[derive(Default)]
struct Slot {
    rules: Option<Arc<[Rule]>>,
    /// How many grants lead here.
    grants: usize,
}

/// What is granted to one name: everywhere, and in some namespaces.
#[derive(Default)]
struct Grants {
    everywhere: Vec<Granted>,
    local: HashMap<Box<str>, Vec<Granted>>,
}

struct Granted {
    role: usize,
    /// Apart, since it is looked at only when it is cited.
    grant: Box<Grant>,
}

impl View for Index {
    fn apply(
        &mut self,
        row: &'static Resource,
        before: Option<&Record<Head>>,
        after: Option<&Record<Head>>,
    ) {
        if matches!(row.kind, "Role" | "ClusterRole") {
            let Some(record) = after.or(before) else {
                return;
            };
            let key = role_key(&record.head.namespace, &record.head.name);
            let rules = after.map(|role| Rule::all_of(&parsed(role)).into());
            self.put_role(&key, rules);
            return;
        }
        if let Some(binding) = before {
            self.remove(&Arc::new(Binding::of(row.kind, &parsed(binding))));
        }
        if let Some(binding) = after {
            self.add(&Arc::new(Binding::of(row.kind, &parsed(binding))));
        }
    }
}

fn parsed(record: &Record<Head>) -> Value {
    serde_json::from_slice(&record.value).unwrap_or_default()
}

/// Roles of the cluster have no namespace.
fn role_key(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

impl Index {
    /// The first grant whose role allows what is asked for.
    pub(super) fn find(&self, user: &User, asked: &Attributes<'_>) -> Option<&Grant> {
        let sketch = Sketch::asked(asked);
        // Plain loops over plain lists: this is what every request waits for.
        for grants in self.grants(user) {
            let local = grants.local.get(asked.namespace());
            for list in [Some(&grants.everywhere), local].into_iter().flatten() {
                let found = list.iter().find(|granted| {
                    self.sketches[granted.role].meets(sketch) && self.allows(granted.role, asked)
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

    /// The rules that are granted to a user in a namespace, or (without one) everywhere.
    pub(super) fn rules(&self, user: &User, namespace: &str) -> Vec<Arc<[Rule]>> {
        self.granted(user, namespace)
            .filter_map(|granted| self.roles[granted.role].rules.clone())
            .collect()
    }

    /// The rules of one role, if it is there.
    pub(super) fn role(&self, namespace: &str, name: &str) -> Option<Arc<[Rule]>> {
        let place = self.places.get(&role_key(namespace, name))?;
        self.roles[*place].rules.clone()
    }

    /// The grants to a user whose roles are not there.
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
            let local = grants.local.get(namespace);
            grants.everywhere.iter().chain(local.into_iter().flatten())
        })
    }

    /// What is granted to the user's name and to each of the user's groups.
    fn grants<'a, 'b>(&'a self, user: &'b User) -> impl Iterator<Item = &'a Grants> + use<'a, 'b> {
        let by_name = self.users.get(user.name.as_str());
        let groups = user.groups.iter();
        let by_group = groups.filter_map(move |group| self.groups.get(group.as_str()));
        by_name.into_iter().chain(by_group)
    }

    fn put_role(&mut self, key: &str, rules: Option<Arc<[Rule]>>) {
        let place = self.place(key);
        self.sketches[place] = Sketch::of(rules.as_deref().unwrap_or_default());
        self.roles[place].rules = rules;
        self.release(key, place);
    }

    fn add(&mut self, binding: &Arc<Binding>) {
        let key = role_key(&binding.role_namespace, &binding.role_name);
        for (kind, name) in binding.subjects() {
            let role = self.place(&key);
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
            // A binding that names somebody twice has granted twice; each is taken back once.
            let Some(at) = list.iter().position(|g| g.grant.binding.is(binding)) else {
                continue;
            };
            let role = list.remove(at).role;
            if grants.forget_empty(&binding.namespace) {
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

    /// The place of a role, found or made.
    fn place(&mut self, key: &str) -> usize {
        if let Some(place) = self.places.get(key) {
            return *place;
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.roles.push(Slot::default());
            self.sketches.push(Sketch::default());
            self.roles.len() - 1
        });
        self.places.insert(key.to_owned(), place);
        place
    }

    /// Frees a place that nothing needs any more.
    fn release(&mut self, key: &str, place: usize) {
        let slot = &self.roles[place];
        if slot.rules.is_none() && slot.grants == 0 {
            self.places.remove(key);
            self.free.push(place);
        }
    }
}

impl Grants {
    fn list(&mut self, namespace: &str) -> &mut Vec<Granted> {
        if namespace.is_empty() {
            return &mut self.everywhere;
        }
        self.local.entry(namespace.into()).or_default()
    }

    /// Forgets an empty list; true if nothing is left at all.
    fn forget_empty(&mut self, namespace: &str) -> bool {
        if self.local.get(namespace).is_some_and(Vec::is_empty) {
            self.local.remove(namespace);
        }
        self.everywhere.is_empty() && self.local.is_empty()
    }
}

#[cfg(test)]
impl Index {
    /// How much is kept: roles, and names.
    fn size(&self) -> (usize, usize) {
        let roles = self.roles.len() - self.free.len();
        (roles, self.users.len() + self.groups.len())
    }
}

#[cfg(test)]
mod tests;
