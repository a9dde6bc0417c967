//! Service-account tokens: signed by this server, valid for an audience and a time, and only while the
//! account and the pod, secret or node that the token is bound to exist.

use std::sync::Arc;

use kennel_store::Store;
use serde::Deserialize;

use super::token_cache::{Expires, TokenCache};
use super::{Authenticated, TokenError, lookup, now};
use crate::authorize::rbac::cover::quoted;
use crate::live::Live;
use crate::object::{Head, Stored};
use crate::pki::keys::TokenKeys;
use crate::request::{CREDENTIAL_ID, User};

pub(super) struct ServiceAccounts {
    store: Arc<dyn Store<Head>>,
    keys: Live<TokenKeys>,
    cache: TokenCache<TokenClaims>,
}

#[derive(Deserialize)]
struct TokenClaims {
    aud: Vec<String>,
    exp: i64,
    #[serde(default)]
    jti: String,
    #[serde(rename = "kubernetes.io")]
    kubernetes: KubernetesClaims,
}

#[derive(Deserialize)]
struct KubernetesClaims {
    namespace: String,
    serviceaccount: Reference,
    pod: Option<Reference>,
    secret: Option<Reference>,
    node: Option<Reference>,
}

#[derive(Deserialize)]
struct Reference {
    name: String,
    /// Empty for a node that did not exist when the token of its pod was issued.
    #[serde(default)]
    uid: String,
}

impl Expires for TokenClaims {
    fn expires_at(&self) -> i64 {
        self.exp
    }
}

/// Whether a token has the three parts of a JWT: header, claims, signature.
pub(super) fn is_jwt(token: &str) -> bool {
    token.split('.').count() == 3
}

impl ServiceAccounts {
    pub(super) fn new(store: Arc<dyn Store<Head>>, keys: Live<TokenKeys>) -> Self {
        Self {
            store,
            keys,
            cache: TokenCache::new(),
        }
    }

    pub(super) fn keys(&self) -> Arc<TokenKeys> {
        self.keys.get()
    }

    pub(super) fn authenticate(
        &self,
        token: &str,
        audiences: &[String],
    ) -> Result<Authenticated, TokenError> {
        let claims = self
            .cache
            .get_or_insert(token, now(), || self.read(token))?;
        let matching = claims.aud.iter().filter(|a| audiences.contains(a));
        let matching: Vec<String> = matching.cloned().collect();
        if matching.is_empty() {
            return Err(TokenError::because(format!(
                "token audiences {} is invalid for the target audiences {}",
                quoted(&claims.aud),
                quoted(audiences)
            )));
        }
        self.check_account(&claims.kubernetes)?;
        self.check_bound(&claims.kubernetes)?;
        Ok(Authenticated {
            user: user(&claims),
            audiences: matching,
        })
    }

    fn read(&self, token: &str) -> Result<TokenClaims, TokenError> {
        use jsonwebtoken::errors::ErrorKind;
        let claims = self.keys.get().verify(token).map_err(|error| {
            TokenError::because(match error.kind() {
                ErrorKind::ExpiredSignature => "service account token has expired",
                ErrorKind::ImmatureSignature => "service account token is not valid yet",
                _ => "the token is not signed by this server for its own service accounts",
            })
        })?;
        serde_json::from_value(claims).map_err(|_| {
            TokenError::because("service account token claims could not be validated due to unexpected private claim")
        })
    }

    /// The account must be the one that the token was issued for, and not past its deletion.
    fn check_account(&self, claims: &KubernetesClaims) -> Result<(), TokenError> {
        let (namespace, wanted) = (&claims.namespace, &claims.serviceaccount);
        let name = &wanted.name;
        let found = lookup::find(&*self.store, "serviceaccounts", Some(namespace), name);
        let Some(account) = found else {
            let why = format!("serviceaccounts \"{name}\" not found");
            return Err(TokenError::because(why));
        };
        if lookup::is_past_deletion(&account) {
            let why = format!("service account {namespace}/{name} has been deleted");
            return Err(TokenError::because(why));
        }
        if *account.head.uid != *wanted.uid {
            return Err(TokenError::because(format!(
                "service account UID ({}) does not match claim ({})",
                account.head.uid, wanted.uid
            )));
        }
        Ok(())
    }

    /// The object that the token is bound to must exist. The node of a bound pod is not checked: the pod
    /// does not outlive it.
    fn check_bound(&self, claims: &KubernetesClaims) -> Result<(), TokenError> {
        let namespace = Some(claims.namespace.as_str());
        let get = |plural: &str, namespace, name: &str| {
            lookup::find(&*self.store, plural, namespace, name)
        };
        if let Some(wanted) = &claims.secret {
            check("secret", wanted, get("secrets", namespace, &wanted.name))?;
        }
        match (&claims.pod, &claims.node) {
            (Some(wanted), _) => check("pod", wanted, get("pods", namespace, &wanted.name)),
            (None, Some(wanted)) => check("node", wanted, get("nodes", None, &wanted.name)),
            (None, None) => Ok(()),
        }
    }
}

fn check(kind: &str, wanted: &Reference, found: Option<Stored>) -> Result<(), TokenError> {
    let Some(found) = found.filter(|found| !lookup::is_past_deletion(found)) else {
        return Err(TokenError::because(
            "service account token has been invalidated",
        ));
    };
    if *found.head.uid == *wanted.uid {
        return Ok(());
    }
    Err(TokenError::because(format!(
        "{kind} UID ({}) does not match service account {kind} ref claim ({})",
        found.head.uid, wanted.uid
    )))
}

fn user(claims: &TokenClaims) -> User {
    let kubernetes = &claims.kubernetes;
    let mut user = User::service_account(&kubernetes.namespace, &kubernetes.serviceaccount.name);
    user.uid.clone_from(&kubernetes.serviceaccount.uid);
    let mut add_extra = |what: &str, value: &str| {
        if !value.is_empty() {
            let key = format!("authentication.kubernetes.io/{what}");
            user.extra.insert(key, vec![value.to_owned()]);
        }
    };
    if let Some(pod) = &kubernetes.pod {
        add_extra("pod-name", &pod.name);
        add_extra("pod-uid", &pod.uid);
    }
    if let Some(node) = &kubernetes.node {
        add_extra("node-name", &node.name);
        add_extra("node-uid", &node.uid);
    }
    if !claims.jti.is_empty() {
        let id = format!("JTI={}", claims.jti);
        user.extra.insert(CREDENTIAL_ID.to_owned(), vec![id]);
    }
    user
}
