//! Impersonation: a user who is allowed to may act as another one by naming it in request headers.
//!
//! Every impersonated attribute (user, groups, uid, extra) needs the verb `impersonate` on it.

use http::HeaderMap;
use percent_encoding::percent_decode_str;

use kennel_types::Verb;

use crate::authorize::{Attributes, Authorizer, ResourceAttributes};
use crate::request::{AUTHENTICATED, UNAUTHENTICATED, User};
use crate::status::{ApiError, Result};

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";
const AUTHENTICATION: &str = "authentication.k8s.io";

/// One impersonated attribute.
#[derive(Debug, PartialEq, Eq)]
enum Impersonated {
    User(String),
    Account { namespace: String, name: String },
    Group(String),
    Extra { key: String, value: String },
    Uid(String),
}

/// The user that a request acts as: the sender, or the one that the headers name if the sender may
/// impersonate it.
pub(crate) fn effective_user(
    authorizer: &Authorizer,
    sender: User,
    headers: &HeaderMap,
) -> Result<User> {
    let requested = requested_attributes(headers)?;
    if requested.is_empty() {
        return Ok(sender);
    }
    for attribute in &requested {
        authorizer.check(&sender, &Attributes::Resource(attribute.attributes()))?;
    }
    let user = impersonated_user(requested);
    tracing::debug!(sender = sender.name, user = user.name, "impersonation");
    Ok(user)
}

impl Impersonated {
    /// What the sender must be allowed to do.
    fn attributes(&self) -> ResourceAttributes<'_> {
        let (group, resource, subresource, namespace, name) = match self {
            Self::User(name) => ("", "users", "", "", name),
            Self::Account { namespace, name } => ("", "serviceaccounts", "", &**namespace, name),
            Self::Group(name) => ("", "groups", "", "", name),
            Self::Extra { key, value } => (AUTHENTICATION, "userextras", &**key, "", value),
            Self::Uid(uid) => (AUTHENTICATION, "uids", "", "", uid),
        };
        ResourceAttributes {
            verb: Verb::Impersonate,
            group,
            version: if group.is_empty() { "" } else { "v1" },
            resource,
            subresource,
            namespace,
            name,
            ..ResourceAttributes::default()
        }
    }

    /// As upstream shows it in errors: the fields of an object reference.
    fn shown(&self) -> String {
        let (kind, namespace, name, version, field) = match self {
            Self::User(name) => ("User", "", name, "", ""),
            Self::Account { namespace, name } => ("ServiceAccount", &**namespace, name, "", ""),
            Self::Group(name) => ("Group", "", name, "", ""),
            Self::Extra { key, value } => {
                ("UserExtra", "", value, "authentication.k8s.io/v1", &**key)
            }
            Self::Uid(uid) => ("UID", "", uid, "authentication.k8s.io/v1", ""),
        };
        format!("{{{kind} {namespace} {name}  {version}  {field}}}")
    }
}

fn requested_attributes(headers: &HeaderMap) -> Result<Vec<Impersonated>> {
    let text = |value: &http::HeaderValue| {
        // A lossy conversion could yield another user's name.
        let text = value.to_str().map(str::to_owned);
        text.map_err(|_| ApiError::bad_request("impersonation headers must be plain text"))
    };
    let one = |name: &str| headers.get(name).map(text).transpose();
    let mut requested = Vec::new();
    let user = one(USER)?.filter(|user| !user.is_empty());
    let is_named = user.is_some();
    requested.extend(user.map(user_or_account));
    for value in headers.get_all(GROUP) {
        requested.push(Impersonated::Group(text(value)?));
    }
    for (header, value) in headers {
        if let Some(key) = header.as_str().strip_prefix(EXTRA) {
            let key = percent_decode_str(key).decode_utf8();
            let key = key.map_or_else(|_| header.as_str()[EXTRA.len()..].to_owned(), Into::into);
            let value = text(value)?;
            requested.push(Impersonated::Extra { key, value });
        }
    }
    requested.extend(
        one(UID)?
            .filter(|uid| !uid.is_empty())
            .map(Impersonated::Uid),
    );
    if requested.is_empty() || is_named {
        return Ok(requested);
    }
    let shown: Vec<String> = requested.iter().map(Impersonated::shown).collect();
    Err(ApiError::bad_request(format!(
        "requested [{}] without impersonating a user",
        shown.join(" ")
    )))
}

/// Service accounts are recognised by their name and have a resource of their own.
fn user_or_account(name: String) -> Impersonated {
    let account = name.strip_prefix("system:serviceaccount:");
    let account = account.and_then(|rest| rest.split_once(':'));
    let is_name = |text: &str, mistakes: fn(&str) -> Vec<String>| mistakes(text).is_empty();
    match account {
        Some((namespace, account))
            if is_name(namespace, crate::names::dns1123_label)
                && is_name(account, crate::names::dns1123_subdomain) =>
        {
            Impersonated::Account {
                namespace: namespace.to_owned(),
                name: account.to_owned(),
            }
        }
        _ => Impersonated::User(name),
    }
}

fn impersonated_user(requested: Vec<Impersonated>) -> User {
    let names_groups = requested
        .iter()
        .any(|attribute| matches!(attribute, Impersonated::Group(_)));
    let mut user = User::default();
    for attribute in requested {
        match attribute {
            Impersonated::User(name) => user.name = name,
            Impersonated::Account { namespace, name } => {
                let account = User::service_account(&namespace, &name);
                user.name = account.name;
                if !names_groups {
                    user.groups = account.groups;
                }
            }
            Impersonated::Group(name) => user.groups.push(name),
            Impersonated::Extra { key, value } => user.extra.entry(key).or_default().push(value),
            Impersonated::Uid(uid) => user.uid = uid,
        }
    }
    let is_anonymous = user.name == User::anonymous().name;
    if is_anonymous && !user.is_in(UNAUTHENTICATED) {
        user.groups.push(UNAUTHENTICATED.to_owned());
    }
    if !is_anonymous && !user.is_in(UNAUTHENTICATED) && !user.is_in(AUTHENTICATED) {
        user.groups.push(AUTHENTICATED.to_owned());
    }
    user
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in list {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn only_names_in_their_form_are_accounts() {
        let check = |name: &str, is_account: bool| {
            let attribute = user_or_account(name.to_owned());
            let found = matches!(attribute, Impersonated::Account { .. });
            assert_eq!(found, is_account, "{name}");
        };
        check("system:serviceaccount:a:b", true);
        check("system:serviceaccount:a:b.c", true);
        check("system:serviceaccount:a:b:c", false);
        check("system:serviceaccount:a", false);
        check("system:serviceaccount:A:b", false);
        check("system:serviceaccount::b", false);
        check("a:b", false);
    }

    #[test]
    fn groups_of_everybody_are_added_unless_they_are_named() {
        let check = |list: &[(&'static str, &str)], expected: &[&str]| {
            let user = impersonated_user(requested_attributes(&headers(list)).unwrap());
            assert_eq!(user.groups, expected, "{list:?}");
        };
        let (user, account) = ((USER, "u"), (USER, "system:serviceaccount:a:b"));
        check(&[user], &[AUTHENTICATED]);
        check(&[user, (GROUP, "g")], &["g", AUTHENTICATED]);
        check(&[user, (GROUP, AUTHENTICATED)], &[AUTHENTICATED]);
        check(&[user, (GROUP, UNAUTHENTICATED)], &[UNAUTHENTICATED]);
        check(&[(USER, "system:anonymous")], &[UNAUTHENTICATED]);
        let own = ["system:serviceaccounts", "system:serviceaccounts:a"];
        check(&[account], &[own[0], own[1], AUTHENTICATED]);
        check(&[account, (GROUP, "g")], &["g", AUTHENTICATED]);
    }

    #[test]
    fn nothing_but_a_user_can_be_asked_for_alone() {
        let check = |list: &[(&'static str, &str)], shown: &str| {
            let refused = requested_attributes(&headers(list)).unwrap_err();
            let expected = format!("requested [{shown}] without impersonating a user");
            assert_eq!((refused.code, refused.message), (400, expected));
        };
        check(&[(GROUP, "g"), (USER, "")], "{Group  g    }");
        check(&[(UID, "1")], "{UID  1  authentication.k8s.io/v1  }");
        check(
            &[("impersonate-extra-k", "v")],
            "{UserExtra  v  authentication.k8s.io/v1  k}",
        );
        assert_eq!(requested_attributes(&headers(&[(USER, "")])).unwrap(), []);
    }

    #[test]
    fn names_that_are_not_text_are_refused() {
        let mut headers = headers(&[]);
        let value = http::HeaderValue::from_bytes(b"b\xf6b").unwrap();
        headers.insert(USER, value);
        assert_eq!(requested_attributes(&headers).unwrap_err().code, 400);
    }
}
