//! Who may do what: masters everything, the anonymous only health and version.
//!
//! Asked before a request's body is read. What may stand in a body is for [`crate::admit`].

mod attributes;

pub(crate) use attributes::{Attributes, ResourceAttributes};

use crate::request::{MASTERS, User};
use crate::status::{ApiError, Result};

/// What decides.
#[derive(Default)]
pub(crate) struct Authorizer {}

impl Authorizer {
    /// Whether the user may do this.
    #[expect(clippy::unused_self, reason = "rules to look up come next")]
    pub(crate) fn allows(&self, user: &User, asked: &Attributes<'_>) -> bool {
        user.is_in(MASTERS) || is_open_to_anybody(asked)
    }

    /// Refuses what the user may not do.
    pub(crate) fn check(&self, user: &User, asked: &Attributes<'_>) -> Result<()> {
        if self.allows(user, asked) {
            return Ok(());
        }
        if user.is_anonymous() {
            return Err(ApiError::unauthorized());
        }
        Err(refusal(user, asked))
    }
}

/// Health and version.
fn is_open_to_anybody(asked: &Attributes<'_>) -> bool {
    let Attributes::Path { verb, path } = asked else {
        return false;
    };
    let mut segments = path.trim_matches('/').split('/');
    let open = matches!(
        segments.next(),
        Some("healthz" | "livez" | "readyz" | "version")
    );
    open && matches!(*verb, "get" | "head")
}

/// The refusal in upstream's words.
fn refusal(user: &User, asked: &Attributes<'_>) -> ApiError {
    let name = &user.name;
    let asked = match asked {
        Attributes::Path { verb, path } => return ApiError::forbidden_path(name, verb, path),
        Attributes::Resource(asked) => asked,
    };
    let resource = match asked.subresource {
        "" => asked.resource.to_owned(),
        subresource => format!("{}/{subresource}", asked.resource),
    };
    let scope = match asked.namespace {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace \"{namespace}\""),
    };
    let why = format!(
        "User \"{name}\" cannot {} resource \"{resource}\" in API group \"{}\" {scope}",
        asked.verb, asked.group
    );
    ApiError::forbidden_resource(asked.group, asked.resource, asked.name, &why)
}
