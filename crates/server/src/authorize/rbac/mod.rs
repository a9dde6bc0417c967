//! Role-based access control: what roles and bindings allow. It knows no other source of rights; who
//! needs no role is decided in [`super`].

pub(crate) mod cover;
mod index;
mod rule;
mod sketch;
mod subject;

use std::sync::Arc;

use kennel_store::Store;

pub(crate) use rule::Rule;

use self::index::Index;
use super::{Attributes, Opinion};
use crate::derived::{self, Follower};
use crate::kinds::rbac::GROUP;
use crate::object::Head;
use crate::registry;
use crate::request::User;

/// The kinds that grant.
const PLURALS: [&str; 4] = [
    "roles",
    "clusterroles",
    "rolebindings",
    "clusterrolebindings",
];

/// The authoriser.
pub(crate) struct Rbac {
    index: Arc<Follower<Index>>,
}

impl Rbac {
    /// An authoriser over what is stored. Call within a runtime: it starts a task.
    pub(crate) fn new(store: Arc<dyn Store<Head>>) -> Self {
        let rows = PLURALS.iter();
        let rows = rows.filter_map(|plural| registry::find(GROUP, "v1", plural));
        let index = Arc::new(Follower::new(store, rows.collect()));
        tokio::spawn(derived::keep_up(Arc::downgrade(&index)));
        Self { index }
    }

    /// Whether some role allows this.
    pub(crate) fn allows(&self, user: &User, asked: &Attributes<'_>) -> bool {
        self.index.read(|index| index.find(user, asked).is_some())
    }

    /// Whether some role allows this, and which; or which roles could not be asked.
    pub(crate) fn opinion(&self, user: &User, asked: &Attributes<'_>) -> Opinion {
        self.index.read(|index| {
            if let Some(grant) = index.find(user, asked) {
                return Opinion::Allow(format!("RBAC: allowed by {grant}").into());
            }
            match broken(index, user, asked.namespace()) {
                Some(errors) => Opinion::NoOpinion(format!("RBAC: {errors}").into()),
                None => Opinion::NONE,
            }
        })
    }
}

impl Rbac {
    /// All rules that a user has in a namespace, or (without one) everywhere; and what is wrong with the
    /// bindings, if there may be more.
    pub(crate) fn rules(&self, user: &User, namespace: &str) -> (Vec<Arc<[Rule]>>, Option<String>) {
        self.index
            .read(|index| (index.rules(user, namespace), broken(index, user, namespace)))
    }

    /// The rules of a role; one of the cluster has no namespace.
    pub(crate) fn role(&self, namespace: &str, name: &str) -> Option<Arc<[Rule]>> {
        self.index.read(|index| index.role(namespace, name))
    }
}

/// What is wrong with the bindings of a user, if anything is.
fn broken(index: &Index, user: &User, namespace: &str) -> Option<String> {
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
