//! Acting as somebody else: who may, says so in headers, and is from then on that other user.
//!
//! Every name that is asked for — user, groups, uid, extra — needs the right to impersonate it.

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

/// One thing that is asked for.
#[derive(Debug, PartialEq, Eq)]
enum Wish {
    User(String),
    Account { namespace: String, name: String },
    Group(String),
    Extra { key: String, value: String },
    Uid(String),
}

/// The user that a request is to be carried out as: the one who sends it, unless its headers name another
/// and the sender may be that one.
pub(crate) fn asked(authorizer: &Authorizer, sender: User, headers: &HeaderMap) -> Result<User> {
    let wishes = wishes(headers)?;
    if wishes.is_empty() {
        return Ok(sender);
    }
    for wish in &wishes {
        authorizer.check(&sender, &Attributes::Resource(wish.attributes()))?;
    }
    let user = become_all(wishes);
    tracing::debug!(sender = sender.name, user = user.name, "impersonation");
    Ok(user)
}

impl Wish {
    /// The right that it needs.
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

    /// As upstream shows it in refusals: an object reference, its fields in order.
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

/// What a request's headers ask for.
fn wishes(headers: &HeaderMap) -> Result<Vec<Wish>> {
    let text = |value: &http::HeaderValue| {
        // A name that is no text could be taken for another one.
        let text = value.to_str().map(str::to_owned);
        text.map_err(|_| ApiError::bad_request("impersonation headers must be plain text"))
    };
    let one = |name: &str| headers.get(name).map(text).transpose();
    let mut wishes = Vec::new();
    let user = one(USER)?.filter(|user| !user.is_empty());
    let is_named = user.is_some();
    wishes.extend(user.map(wished_user));
    for value in headers.get_all(GROUP) {
        wishes.push(Wish::Group(text(value)?));
    }
    for (header, value) in headers {
        if let Some(key) = header.as_str().strip_prefix(EXTRA) {
            let key = percent_decode_str(key).decode_utf8();
            let key = key.map_or_else(|_| header.as_str()[EXTRA.len()..].to_owned(), Into::into);
            let value = text(value)?;
            wishes.push(Wish::Extra { key, value });
        }
    }
    wishes.extend(one(UID)?.filter(|uid| !uid.is_empty()).map(Wish::Uid));
    if wishes.is_empty() || is_named {
        return Ok(wishes);
    }
    let shown: Vec<String> = wishes.iter().map(Wish::shown).collect();
    Err(ApiError::bad_request(format!(
        "requested [{}] without impersonating a user",
        shown.join(" ")
    )))
}

/// The names of service accounts have a form of their own, and a right of their own.
fn wished_user(name: String) -> Wish {
    let account = name.strip_prefix("system:serviceaccount:");
    let account = account.and_then(|rest| rest.split_once(':'));
    let is_name = |text: &str, mistakes: fn(&str) -> Vec<String>| mistakes(text).is_empty();
    match account {
        Some((namespace, account))
            if is_name(namespace, crate::names::dns1123_label)
                && is_name(account, crate::names::dns1123_subdomain) =>
        {
            Wish::Account {
                namespace: namespace.to_owned(),
                name: account.to_owned(),
            }
        }
        _ => Wish::User(name),
    }
}

/// The user that all wishes together make.
fn become_all(wishes: Vec<Wish>) -> User {
    let names_groups = wishes.iter().any(|wish| matches!(wish, Wish::Group(_)));
    let mut user = User::default();
    for wish in wishes {
        match wish {
            Wish::User(name) => user.name = name,
            Wish::Account { namespace, name } => {
                let account = User::service_account(&namespace, &name);
                user.name = account.name;
                if !names_groups {
                    user.groups = account.groups;
                }
            }
            Wish::Group(name) => user.groups.push(name),
            Wish::Extra { key, value } => user.extra.entry(key).or_default().push(value),
            Wish::Uid(uid) => user.uid = uid,
        }
    }
    let is_nobody = user.name == User::anonymous().name;
    if is_nobody && !user.is_in(UNAUTHENTICATED) {
        user.groups.push(UNAUTHENTICATED.to_owned());
    }
    if !is_nobody && !user.is_in(UNAUTHENTICATED) && !user.is_in(AUTHENTICATED) {
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
            let wish = wished_user(name.to_owned());
            let found = matches!(wish, Wish::Account { .. });
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
            let user = become_all(wishes(&headers(list)).unwrap());
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
            let refused = wishes(&headers(list)).unwrap_err();
            let expected = format!("requested [{shown}] without impersonating a user");
            assert_eq!((refused.code, refused.message), (400, expected));
        };
        check(&[(GROUP, "g"), (USER, "")], "{Group  g    }");
        check(&[(UID, "1")], "{UID  1  authentication.k8s.io/v1  }");
        check(
            &[("impersonate-extra-k", "v")],
            "{UserExtra  v  authentication.k8s.io/v1  k}",
        );
        assert_eq!(wishes(&headers(&[(USER, "")])).unwrap(), []);
    }

    #[test]
    fn names_that_are_no_text_are_refused() {
        let mut headers = headers(&[]);
        let value = http::HeaderValue::from_bytes(b"b\xf6b").unwrap();
        headers.insert(USER, value);
        assert_eq!(wishes(&headers).unwrap_err().code, 400);
    }
}
