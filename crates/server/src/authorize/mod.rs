//! Who may do what. Authorisers are asked in turn, and the first that allows decides: masters may do
//! everything, nodes what their pods need, everybody else what [`rbac`] finds in roles and bindings.
//!
//! Asked before a request's body is read. What may stand in a body is for [`crate::admit`].

pub(crate) mod attributes;
pub(crate) mod node;
mod opinion;
pub(crate) mod rbac;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use kennel_store::Store;
use kennel_types::Verb;

pub(crate) use attributes::{Attributes, ResourceAttributes};
pub(crate) use opinion::{Opinion, Verdict};

use self::node::NodeAuthorizer;
use self::rbac::Rbac;
use crate::object::Head;
use crate::request::{MASTERS, User};
use crate::status::{ApiError, Result};

/// What decides.
pub(crate) struct Authorizer {
    /// What each node's pods need.
    node: NodeAuthorizer,
    /// Roles and bindings.
    pub(crate) rbac: Rbac,
    /// What deciding has cost.
    pub(crate) spent: Spent,
}

/// How many requests were decided, and how long that took.
#[derive(Default)]
pub(crate) struct Spent {
    pub(crate) decisions: AtomicU64,
    pub(crate) nanoseconds: AtomicU64,
}

impl Spent {
    fn add(&self, since: Instant) {
        let nanoseconds = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.decisions.fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }
}

impl Authorizer {
    /// An authoriser over what is stored. Call within a runtime: it starts tasks.
    pub(crate) fn new(store: &Arc<dyn Store<Head>>) -> Self {
        Self {
            node: NodeAuthorizer::new(store),
            rbac: Rbac::new(Arc::clone(store)),
            spent: Spent::default(),
        }
    }

    /// Whether the user may do this.
    pub(crate) fn allows(&self, user: &User, asked: &Attributes<'_>) -> bool {
        let by_name = || self.node.opinion(user, asked).allows() || self.rbac.allows(user, asked);
        general(user, asked).allows() || (!user.is_anonymous() && by_name())
    }

    /// Whether the user may do this, and why.
    pub(crate) fn verdict(&self, user: &User, asked: &Attributes<'_>) -> Verdict {
        let opinions: [&dyn Fn() -> Opinion; 3] = [
            &|| general(user, asked),
            &|| self.node.opinion(user, asked),
            &|| self.rbac.opinion(user, asked),
        ];
        // Whoever shows nothing gets what anybody gets: no binding opens the server to the whole network.
        let how_many = if user.is_anonymous() { 1 } else { 3 };
        Verdict::of(opinions.into_iter().take(how_many).map(|opinion| opinion()))
    }

    /// Refuses what the user may not do.
    pub(crate) fn check(&self, user: &User, asked: &Attributes<'_>) -> Result<()> {
        let begin = Instant::now();
        let mut all = [Some(*asked), asked.further()].into_iter().flatten();
        let refused = all.find(|asked| !self.allows(user, asked));
        self.spent.add(begin);
        refused.map_or(Ok(()), |asked| Err(self.refusal(user, &asked)))
    }

    /// The refusal in upstream's words.
    fn refusal(&self, user: &User, asked: &Attributes<'_>) -> ApiError {
        let why = match self.verdict(user, asked).reason {
            reason if reason.is_empty() => reason,
            reason => format!(": {reason}"),
        };
        let name = &user.name;
        match asked {
            Attributes::Path { verb, path } => ApiError::forbidden_path(name, *verb, path, &why),
            Attributes::Resource(asked) => {
                let words = format!("User \"{name}\" cannot {}{why}", describe(asked));
                ApiError::forbidden_resource(asked.group, asked.resource, asked.name, &words)
            }
        }
    }
}

/// What needs no looking up: masters may do everything, anybody may ask for health and version.
fn general(user: &User, asked: &Attributes<'_>) -> Opinion {
    if user.is_in(MASTERS) || is_open_to_anybody(asked) {
        Opinion::Allow("".into())
    } else {
        Opinion::NONE
    }
}

/// Health and version: whoever watches over the server must not depend on what is stored in it.
fn is_open_to_anybody(asked: &Attributes<'_>) -> bool {
    let Attributes::Path { verb, path } = asked else {
        return false;
    };
    let mut segments = path.trim_matches('/').split('/');
    let open = matches!(
        segments.next(),
        Some("healthz" | "livez" | "readyz" | "version")
    );
    open && matches!(*verb, Verb::Get | Verb::Head)
}

/// A verb on objects, as refusals say it.
fn describe(asked: &ResourceAttributes<'_>) -> String {
    let resource = match asked.subresource {
        "" => asked.resource.to_owned(),
        subresource => format!("{}/{subresource}", asked.resource),
    };
    let scope = match asked.namespace {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace \"{namespace}\""),
    };
    format!(
        "{} resource \"{resource}\" in API group \"{}\" {scope}",
        asked.verb, asked.group
    )
}
