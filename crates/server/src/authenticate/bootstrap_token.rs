//! Bootstrap tokens, with which nodes join. Each is a secret of type `bootstrap.kubernetes.io/token` in
//! `kube-system`; its bearer is in the group `system:bootstrappers` until it expires.

use std::collections::BTreeSet;

use kennel_store::Store;
use kennel_types::Timestamp;

use super::{TokenError, lookup};
use crate::clock;
use crate::object::Head;
use crate::object::secret::Secret;
use crate::request::User;

const NAMESPACE: &str = "kube-system";
const TYPE: &str = "bootstrap.kubernetes.io/token";
const GROUP: &str = "system:bootstrappers";
const ID_LENGTH: usize = 6;
const SECRET_LENGTH: usize = 16;

pub(super) fn user(store: &dyn Store<Head>, token: &str) -> Result<User, TokenError> {
    let (id, token_secret) = split(token).ok_or(TokenError::Unknown)?;
    let name = format!("bootstrap-token-{id}");
    let stored = lookup::find(store, "secrets", Some(NAMESPACE), &name);
    let stored = stored.filter(|stored| lookup::deletion_time(stored).is_none());
    let stored = stored.ok_or(TokenError::Unknown)?;
    let secret = Secret::read(&stored.value).ok_or(TokenError::Unknown)?;
    let expected = secret.text("token-secret").unwrap_or_default();
    if !same(token_secret, &expected) || secret.kind != TYPE {
        return Err(TokenError::Unknown);
    }
    let is_usable = secret.text("token-id").as_deref() == Some(id)
        && secret.text("usage-bootstrap-authentication").as_deref() == Some("true");
    if !is_usable || has_expired(&secret, clock::now()) {
        return Err(TokenError::Unknown);
    }
    let groups = groups(&secret).ok_or(TokenError::Unknown)?;
    Ok(User::authenticated(
        format!("system:bootstrap:{id}"),
        groups,
    ))
}

/// Id and secret of a token.
fn split(token: &str) -> Option<(&str, &str)> {
    let is_valid = |part: &str| part.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9'));
    let (id, secret) = token.split_once('.')?;
    let fits = id.len() == ID_LENGTH && secret.len() == SECRET_LENGTH;
    (fits && is_valid(id) && is_valid(secret)).then_some((id, secret))
}

/// Compares in constant time.
fn same(given: &str, expected: &str) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(given.as_bytes(), expected.as_bytes()).is_ok()
}

/// An unreadable time counts as expired.
fn has_expired(secret: &Secret, now: Timestamp) -> bool {
    let Some(text) = secret.text("expiration").filter(|text| !text.is_empty()) else {
        return false;
    };
    Timestamp::parse(&text).is_none_or(|end| end <= now)
}

/// All groups of the token; `None` if it names one that bootstrappers may not have.
fn groups(secret: &Secret) -> Option<Vec<String>> {
    let mut groups = BTreeSet::from([GROUP.to_owned()]);
    let extra = secret.text("auth-extra-groups").unwrap_or_default();
    for group in extra.split(',').filter(|_| !extra.is_empty()) {
        is_allowed(group).then(|| groups.insert(group.to_owned()))?;
    }
    Some(groups.into_iter().collect())
}

/// `system:bootstrappers:` and up to 256 small letters, digits, colons and dashes that do not end in
/// one of the latter two.
fn is_allowed(group: &str) -> bool {
    let own = group.strip_prefix("system:bootstrappers:");
    own.is_some_and(|own| {
        let bytes = own.as_bytes();
        let is_alphanumeric = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        (1..=256).contains(&bytes.len())
            && bytes
                .iter()
                .all(|b| is_alphanumeric(b) || matches!(b, b':' | b'-'))
            && bytes.last().is_some_and(is_alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    use super::*;

    fn secret(fields: &[(&str, &str)]) -> Secret {
        let encode = |(key, value): &(&str, &str)| ((*key).to_owned(), STANDARD.encode(value));
        let data: BTreeMap<String, String> = fields.iter().map(encode).collect();
        let stored = json!({"type": TYPE, "data": data}).to_string();
        Secret::read(stored.as_bytes()).unwrap()
    }

    #[test]
    fn tokens_have_a_format() {
        let check = |token: &str, good: bool| assert_eq!(split(token).is_some(), good, "{token}");
        check("abcdef.0123456789abcdef", true);
        check("abcde.0123456789abcdef", false);
        check("abcdef.0123456789abcde", false);
        check("ABCDEF.0123456789abcdef", false);
        check("abcdef.0123456789abcde.", false);
        check("abcdef0123456789abcdef", false);
        check("../../.0123456789abcdef", false);
    }

    #[test]
    fn expiration_is_honoured() {
        let now = "2026-05-01T12:00:00Z".parse().unwrap();
        let check = |expiration: &str, expired: bool| {
            let kept = secret(&[("expiration", expiration)]);
            assert_eq!(has_expired(&kept, now), expired, "{expiration}");
        };
        check("2026-05-01T12:00:01Z", false);
        check("2026-05-01T14:00:01+02:00", false);
        check("2026-05-01T12:00:00Z", true);
        check("2026-05-01T11:00:00Z", true);
        check("tomorrow", true);
        check("", false);
        assert!(!has_expired(&secret(&[]), now));
    }

    #[test]
    fn extra_groups_are_bootstrappers_too() {
        let check = |extra: &str, expected: Option<&[&str]>| {
            let found = groups(&secret(&[("auth-extra-groups", extra)]));
            let expected = expected.map(|list| list.iter().map(ToString::to_string).collect());
            assert_eq!(found, expected, "{extra}");
        };
        check("", Some(&[GROUP]));
        check(
            "system:bootstrappers:b,system:bootstrappers:a",
            Some(&[GROUP, "system:bootstrappers:a", "system:bootstrappers:b"]),
        );
        check("system:masters", None);
        check("system:bootstrappers:a,system:masters", None);
        check("system:bootstrappers:", None);
        check("system:bootstrappers:a-", None);
        check("system:bootstrappers:A", None);
    }
}
