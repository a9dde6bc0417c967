//! Role-based access control by roles and bindings.

pub(crate) mod cover;
mod filter;
mod index;
mod rule;
mod subject;

use std::sync::Arc;

use kennel_store::Store;

pub(crate) use rule::Rule;

use self::index::Index;
use super::{Attributes, Decision};
use crate::derived::{self, Follower};
use crate::kinds::rbac::GROUP;
use crate::object::Head;
use crate::registry;
use crate::request::User;

const PLURALS: [&str; 4] = [
    "roles",
    "clusterroles",
    "rolebindings",
    "clusterrolebindings",
];

pub(crate) struct Rbac {
    index: Arc<Follower<Index>>,
}

impl Rbac {
    /// Spawns the task that follows the store, so it must run within a Tokio runtime.
    pub(crate) fn new(store: Arc<dyn Store<Head>>) -> Self {
        let rows = PLURALS.map(|plural| registry::served(GROUP, plural));
        let index = Arc::new(Follower::new(store, rows.to_vec()));
        tokio::spawn(derived::keep_up(Arc::downgrade(&index)));
        Self { index }
    }

    pub(crate) fn allows(&self, user: &User, asked: &Attributes<'_>) -> bool {
        self.index.read(|index| index.find(user, asked).is_some())
    }

    /// Like [`Self::allows`], with the binding that allows it or the roles that do not exist.
    pub(crate) fn decide(&self, user: &User, asked: &Attributes<'_>) -> Decision {
        self.index.read(|index| {
            if let Some(grant) = index.find(user, asked) {
                return Decision::Allow(format!("RBAC: allowed by {grant}").into());
            }
            match missing_roles(index, user, asked.namespace()) {
                Some(errors) => Decision::NoOpinion(format!("RBAC: {errors}").into()),
                None => Decision::NONE,
            }
        })
    }
}

impl Rbac {
    /// All rules that a user has in a namespace, or (without one) cluster-wide; and the error if a bound role
    /// does not exist.
    pub(crate) fn rules(&self, user: &User, namespace: &str) -> (Vec<Arc<[Rule]>>, Option<String>) {
        self.index.read(|index| {
            (
                index.rules(user, namespace),
                missing_roles(index, user, namespace),
            )
        })
    }

    /// The rules of a role; a cluster role has no namespace.
    pub(crate) fn role(&self, namespace: &str, name: &str) -> Option<Arc<[Rule]>> {
        self.index.read(|index| index.role(namespace, name))
    }
}

/// The error if a role does not exist that is bound to the user.
fn missing_roles(index: &Index, user: &User, namespace: &str) -> Option<String> {
    let grants = index.broken(user, namespace);
    let mut errors: Vec<String> = Vec::new();
    for error in grants.into_iter().map(subject::Grant::role_not_found) {
        if !errors.contains(&error) {
            errors.push(error);
        }
    }
    match errors.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("[{}]", many.join(", "))),
    }
}
