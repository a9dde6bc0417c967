//! The paths below `/kennel.dev/certificates`, for `kennel certs`: shows the server's certificates, renews them,
//! replaces the CA and revokes the certificates of users. RBAC grants them as non-resource URLs; by default, only
//! administrators may use them.

use std::sync::Arc;

use kennel_types::Timestamp;
use serde::Deserialize;
use serde_json::json;

use crate::api::Api;
use crate::bootstrap;
use crate::certificates::{CertificatesError, RENEWABLE};
use crate::pki::{ADMIN, KUBELET_CLIENT};
use crate::request::path::CertificateAction;
use crate::response::Reply;
use crate::revocation;
use crate::status::{ApiError, Result};

/// The body of a request. Absent fields are empty.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Body {
    /// The certificates to renew; all if it is empty.
    names: Vec<String>,
    /// The user whose certificates are revoked.
    user: String,
}

/// The list of all certificates, which is also the answer to every action.
pub(crate) fn list(api: &Api) -> Reply {
    let certificates = &api.settings.certificates;
    let all = json!({
        "now": certificates.now(),
        "renewable": RENEWABLE,
        "certificates": certificates.list(),
    });
    Reply::value(200, &all)
}

pub(crate) async fn act(api: &Arc<Api>, action: CertificateAction, body: &[u8]) -> Result<Reply> {
    let body: Body = if body.is_empty() {
        Body::default()
    } else {
        let invalid = |error: serde_json::Error| ApiError::bad_request(error.to_string());
        serde_json::from_slice(body).map_err(invalid)?
    };
    let certificates = &api.settings.certificates;
    let refused = |error: CertificatesError| refused(&error);
    match action {
        CertificateAction::Renew => certificates.renew(&body.names).map_err(refused)?,
        CertificateAction::RotateAuthority => certificates.rotate_authority().map_err(refused)?,
        CertificateAction::RetireAuthorities => {
            certificates.retire_authorities().map_err(refused)?;
        }
        CertificateAction::ReissueAdmin => {
            // First the new one: if writing it fails, the old one stays valid.
            let time = certificates.reissue_admin().map_err(refused)?;
            revocation::revoke_before(&*api.store, ADMIN, time).await?;
        }
        CertificateAction::Revoke => revoke(api, &body.user, certificates.now()).await?,
    }
    if action != CertificateAction::Revoke {
        bootstrap::restore_namespace_defaults(api).await;
    }
    Ok(list(api))
}

async fn revoke(api: &Arc<Api>, user: &str, now: Timestamp) -> Result<()> {
    let why = match user {
        "" => "the name of a user is required",
        ADMIN => "this is the administrator of the server: use `kennel certs reissue-admin`",
        KUBELET_CLIENT => "this is the server itself: use `kennel certs renew`",
        user if user.starts_with("system:serviceaccount:") => {
            "service accounts have no certificates: delete the account, or what its token is bound to"
        }
        _ => return revocation::revoke(&*api.store, user, now).await,
    };
    Err(ApiError::bad_request(why.to_owned()))
}

fn refused(error: &CertificatesError) -> ApiError {
    match error {
        CertificatesError::UnknownName { .. } | CertificatesError::NothingToRetire => {
            ApiError::bad_request(error.to_string())
        }
        CertificatesError::Pki(_) | CertificatesError::Tls(_) => {
            let cause = std::error::Error::source(error).map(ToString::to_string);
            let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
            ApiError::internal(format!("{error}{cause}"))
        }
    }
}
