//! Who may do what, in its first form: masters everything, the anonymous only health and version.

use crate::request::User;
use crate::request::path::Route;
use crate::status::{ApiError, Result};

/// The group that may do everything.
const MASTERS: &str = "system:masters";

/// Refuses what the user may not do.
pub(crate) fn check(user: &User, verb: &str, route: &Route, path: &str) -> Result<()> {
    if user.is_in(MASTERS) || matches!(route, Route::Health(_) | Route::Version) {
        return Ok(());
    }
    if user.is_in("system:unauthenticated") {
        return Err(ApiError::unauthorized());
    }
    let Route::Objects(place) = route else {
        return Err(ApiError::forbidden_path(&user.name, verb, path));
    };
    let resource = match &place.subresource {
        Some(subresource) => format!("{}/{subresource}", place.row.plural),
        None => place.row.plural.to_owned(),
    };
    let scope = match &place.namespace {
        Some(namespace) => format!("in the namespace \"{namespace}\""),
        None => "at the cluster scope".to_owned(),
    };
    let why = format!(
        "User \"{}\" cannot {verb} resource \"{resource}\" in API group \"{}\" {scope}",
        user.name, place.row.group
    );
    Err(ApiError::forbidden(
        place.row,
        place.name.as_deref().unwrap_or_default(),
        &why,
    ))
}
