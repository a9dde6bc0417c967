//! Reviews about identities: who am I, whose token is this. What may be done with an identity is not
//! their business.

use serde_json::{Value, json};

use super::meta;
use crate::api::Api;
use crate::registry::Posted;
use crate::request::User;
use crate::status::{ApiError, Result};
use crate::verbs::call::Call;

/// Fills in the answer to a review.
pub(super) fn answer(
    _api: &Api,
    call: &Call,
    row: &'static Posted,
    review: &mut Value,
) -> Result<()> {
    match row.plural {
        "selfsubjectreviews" => {
            review["metadata"]["creationTimestamp"] = meta::now().into();
            review["status"] = json!({"userInfo": user_info(&call.user)});
            Ok(())
        }
        _ => Err(ApiError::no_such_resource()),
    }
}

/// A user as reviews show one.
fn user_info(user: &User) -> Value {
    let mut info = json!({"username": user.name, "groups": user.groups});
    if !user.uid.is_empty() {
        info["uid"] = json!(user.uid);
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    info
}
