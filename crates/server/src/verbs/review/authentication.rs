//! Reviews of authentication: `SelfSubjectReview` and `TokenReview`.

use serde_json::{Value, json};

use super::meta;
use crate::api::Api;

use crate::request::User;
use crate::status::{ApiError, Result};
use crate::tree;
use crate::verbs::call::Call;
use crate::verbs::subresource::token::audiences;

/// Fills in the user who asks.
pub(super) fn self_subject_review(call: &Call, review: &mut Value) {
    let now = meta::now();
    tree::set(review, "metadata.creationTimestamp", now.into());
    review["status"] = json!({"userInfo": user_info(&call.user)});
}

/// Fills in the user that a token authenticates.
pub(super) fn token_review(api: &Api, review: &mut Value) -> Result<()> {
    review["status"] = token_status(api, &review["spec"])?;
    Ok(())
}

fn token_status(api: &Api, spec: &Value) -> Result<Value> {
    let token = spec["token"].as_str().unwrap_or_default();
    if token.is_empty() {
        let message = "token is required for TokenReview in authentication";
        return Err(ApiError::bad_request(message));
    }
    let audiences = audiences(spec);
    Ok(match api.authenticator.token(token, &audiences) {
        Ok(proof) => json!({
            "authenticated": true,
            "user": user_info(&proof.user),
            "audiences": proof.audiences,
        }),
        Err(refusal) => json!({"user": {}, "error": refusal.to_string()}),
    })
}

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
