//! Authorisation. The authorisers are asked in order and the first that allows decides: the group
//! `system:masters` may do everything, nodes may access what their pods reference, and [`rbac`] allows what
//! roles and bindings say.
//!
//! It runs before the request's body is read; [`crate::admit`] checks the body.

pub(crate) mod attributes;
mod decision;
pub(crate) mod node;
pub(crate) mod rbac;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use kennel_store::Store;
use kennel_types::Verb;

pub(crate) use attributes::{Attributes, ResourceAttributes};
pub(crate) use decision::{Decision, Verdict};

use self::node::NodeAuthorizer;
use self::rbac::Rbac;
use crate::object::Head;
use crate::request::{MASTERS, User};
use crate::status::{ApiError, Result};

pub(crate) struct Authorizer {
    node: NodeAuthorizer,
    pub(crate) rbac: Rbac,
    pub(crate) cost: DecisionCost,
}

/// The number and the total duration of decisions, for metrics.
#[derive(Default)]
pub(crate) struct DecisionCost {
    pub(crate) decisions: AtomicU64,
    pub(crate) nanoseconds: AtomicU64,
}

impl DecisionCost {
    fn add(&self, since: Instant) {
        let nanoseconds = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.decisions.fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }
}

impl Authorizer {
    /// Spawns the tasks that follow the store, so it must run within a Tokio runtime.
    pub(crate) fn new(store: &Arc<dyn Store<Head>>) -> Self {
        Self {
            node: NodeAuthorizer::new(store),
            rbac: Rbac::new(Arc::clone(store)),
            cost: DecisionCost::default(),
        }
    }

    pub(crate) fn allows(&self, user: &User, asked: &Attributes<'_>) -> bool {
        let by_name = || self.node.decide(user, asked).allows() || self.rbac.allows(user, asked);
        always_allowed(user, asked).allows() || (!user.is_anonymous() && by_name())
    }

    /// Like [`Self::allows`], with the reason.
    pub(crate) fn verdict(&self, user: &User, asked: &Attributes<'_>) -> Verdict {
        let decisions: [&dyn Fn() -> Decision; 3] = [
            &|| always_allowed(user, asked),
            &|| self.node.decide(user, asked),
            &|| self.rbac.decide(user, asked),
        ];
        // No binding can give anonymous users more than health and version.
        let how_many = if user.is_anonymous() { 1 } else { 3 };
        Verdict::of(decisions.into_iter().take(how_many).map(|decide| decide()))
    }

    /// Fails with 403 if the user is not allowed to do this.
    pub(crate) fn check(&self, user: &User, asked: &Attributes<'_>) -> Result<()> {
        let begin = Instant::now();
        let mut all = [Some(*asked), asked.additional()].into_iter().flatten();
        let refused = all.find(|asked| !self.allows(user, asked));
        self.cost.add(begin);
        refused.map_or(Ok(()), |asked| Err(self.refusal(user, &asked)))
    }

    /// The 403 in upstream's words.
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

/// What needs no lookup: masters may do everything, all users may read health and version.
fn always_allowed(user: &User, asked: &Attributes<'_>) -> Decision {
    if user.is_in(MASTERS) || is_public(asked) {
        Decision::Allow("".into())
    } else {
        Decision::NONE
    }
}

/// Health and version: probes of the server must not depend on stored roles.
fn is_public(asked: &Attributes<'_>) -> bool {
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

/// A verb on a resource, as in upstream's 403.
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
