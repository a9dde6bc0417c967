//! Tokens of service accounts: signed by us, good for an audience and a time, and only as long as the
//! account is there and the pod, secret or node that the token is bound to.

use std::sync::Arc;

use kennel_store::Store;
use serde::Deserialize;

use super::verified::{Ends, Verified};
use super::{Proof, Refusal, now, stored};
use crate::object::{Head, Stored};
use crate::pki::keys::TokenKeys;
use crate::request::{CREDENTIAL_ID, User};

/// What verifies them.
pub(super) struct ServiceAccounts {
    store: Arc<dyn Store<Head>>,
    keys: TokenKeys,
    verified: Verified<Said>,
}

/// What a token says.
#[derive(Deserialize)]
struct Said {
    aud: Vec<String>,
    exp: i64,
    #[serde(default)]
    jti: String,
    #[serde(rename = "kubernetes.io")]
    about: About,
}

#[derive(Deserialize)]
struct About {
    namespace: String,
    serviceaccount: Reference,
    pod: Option<Reference>,
    secret: Option<Reference>,
    node: Option<Reference>,
}

#[derive(Deserialize)]
struct Reference {
    name: String,
    /// Empty for a node that was not there when the token of its pod was made.
    #[serde(default)]
    uid: String,
}

impl Ends for Said {
    fn ends(&self) -> i64 {
        self.exp
    }
}

/// Whether a token has the shape of one of these: header, claims, signature.
pub(super) fn may_be(token: &str) -> bool {
    token.split('.').count() == 3
}

impl ServiceAccounts {
    pub(super) fn new(store: Arc<dyn Store<Head>>, keys: TokenKeys) -> Self {
        Self {
            store,
            keys,
            verified: Verified::new(),
        }
    }

    pub(super) fn keys(&self) -> &TokenKeys {
        &self.keys
    }

    /// Whose token this is.
    pub(super) fn proof(&self, token: &str, audiences: &[String]) -> Result<Proof, Refusal> {
        let said = self.verified.get_or(token, now(), || self.read(token))?;
        let meant = said.aud.iter().filter(|a| audiences.contains(a));
        let meant: Vec<String> = meant.cloned().collect();
        if meant.is_empty() {
            return Err(Refusal::because(format!(
                "token audiences {} is invalid for the target audiences {}",
                quoted(&said.aud),
                quoted(audiences)
            )));
        }
        self.check_account(&said.about)?;
        self.check_bound(&said.about)?;
        Ok(Proof {
            user: user(&said),
            audiences: meant,
        })
    }

    fn read(&self, token: &str) -> Result<Said, Refusal> {
        use jsonwebtoken::errors::ErrorKind;
        let claims = self.keys.verify(token).map_err(|error| {
            Refusal::because(match error.kind() {
                ErrorKind::ExpiredSignature => "service account token has expired",
                ErrorKind::ImmatureSignature => "service account token is not valid yet",
                _ => "the token is not signed by this server for its own service accounts",
            })
        })?;
        serde_json::from_value(claims).map_err(|_| {
            Refusal::because("service account token claims could not be validated due to unexpected private claim")
        })
    }

    /// The account must be the one that the token was made for, and not on its way out.
    fn check_account(&self, about: &About) -> Result<(), Refusal> {
        let (namespace, wanted) = (&about.namespace, &about.serviceaccount);
        let name = &wanted.name;
        let found = stored::find(&*self.store, "serviceaccounts", Some(namespace), name);
        let Some(account) = found else {
            let why = format!("serviceaccounts \"{name}\" not found");
            return Err(Refusal::because(why));
        };
        if stored::is_overdue(&account) {
            let why = format!("service account {namespace}/{name} has been deleted");
            return Err(Refusal::because(why));
        }
        if *account.head.uid != *wanted.uid {
            return Err(Refusal::because(format!(
                "service account UID ({}) does not match claim ({})",
                account.head.uid, wanted.uid
            )));
        }
        Ok(())
    }

    /// What the token is bound to must be there. The node of a pod is only told of: the pod cannot
    /// outlive it.
    fn check_bound(&self, about: &About) -> Result<(), Refusal> {
        let namespace = Some(about.namespace.as_str());
        let get = |plural: &str, namespace, name: &str| {
            stored::find(&*self.store, plural, namespace, name)
        };
        if let Some(wanted) = &about.secret {
            check("secret", wanted, get("secrets", namespace, &wanted.name))?;
        }
        match (&about.pod, &about.node) {
            (Some(wanted), _) => check("pod", wanted, get("pods", namespace, &wanted.name)),
            (None, Some(wanted)) => check("node", wanted, get("nodes", None, &wanted.name)),
            (None, None) => Ok(()),
        }
    }
}

fn check(kind: &str, wanted: &Reference, found: Option<Stored>) -> Result<(), Refusal> {
    let Some(found) = found.filter(|found| !stored::is_overdue(found)) else {
        return Err(Refusal::because(
            "service account token has been invalidated",
        ));
    };
    if *found.head.uid == *wanted.uid {
        return Ok(());
    }
    Err(Refusal::because(format!(
        "{kind} UID ({}) does not match service account {kind} ref claim ({})",
        found.head.uid, wanted.uid
    )))
}

fn user(said: &Said) -> User {
    let about = &said.about;
    let mut user = User::service_account(&about.namespace, &about.serviceaccount.name);
    user.uid.clone_from(&about.serviceaccount.uid);
    let mut tell = |what: &str, value: &str| {
        if !value.is_empty() {
            let key = format!("authentication.kubernetes.io/{what}");
            user.extra.insert(key, vec![value.to_owned()]);
        }
    };
    if let Some(pod) = &about.pod {
        tell("pod-name", &pod.name);
        tell("pod-uid", &pod.uid);
    }
    if let Some(node) = &about.node {
        tell("node-name", &node.name);
        tell("node-uid", &node.uid);
    }
    if !said.jti.is_empty() {
        let id = format!("JTI={}", said.jti);
        user.extra.insert(CREDENTIAL_ID.to_owned(), vec![id]);
    }
    user
}

/// A list as upstream shows it.
fn quoted(list: &[String]) -> String {
    let items: Vec<String> = list.iter().map(|item| format!("{item:?}")).collect();
    format!("[{}]", items.join(" "))
}
