//! What a node asks to be issued: certificates for itself, tokens for its pods.

use serde_json::Value;

use super::{Api, Write, writer};
use crate::kinds;
use crate::kinds::tree::{at, text};
use crate::object;
use crate::registry::{self, Resource};
use crate::request::User;
use crate::status::{ApiError, Result};

/// Signers of certificates that name a node.
const SIGNERS: [&str; 2] = [
    "kubernetes.io/kube-apiserver-client-kubelet",
    "kubernetes.io/kubelet-serving",
];

/// A node asks for certificates that name itself.
pub(super) fn check_signing(write: Write<'_>, request: &Value) -> Result<()> {
    if !SIGNERS.contains(&text(request, "spec.signerName")) {
        return Ok(());
    }
    let Some(name) = kinds::csr::common_name(request) else {
        return write.refuse("unable to parse csr");
    };
    let own = format!("system:node:{}", write.node);
    if name == own {
        return Ok(());
    }
    write.refuse(&format!("can only create a node CSR with CN={own}"))
}

/// A node asks for tokens that are bound to one of its pods.
pub(crate) fn check_token(
    api: &Api,
    user: &User,
    row: &'static Resource,
    (namespace, account): (&str, &str),
    request: &Value,
) -> Result<()> {
    let Some(write) = writer(user, row, Some(namespace), account)? else {
        return Ok(());
    };
    let bound = at(request, "spec.boundObjectRef");
    let (name, uid) = (text(bound, "name"), text(bound, "uid"));
    if text(bound, "apiVersion") != "v1" || text(bound, "kind") != "Pod" || name.is_empty() {
        return write.refuse("node requested token not bound to a pod");
    }
    if uid.is_empty() {
        return write.refuse("node requested token with a pod binding without a uid");
    }
    let pods = registry::find("", "v1", "pods").ok_or_else(ApiError::no_such_resource)?;
    let found = api.store.get(&object::key(pods, Some(namespace), name));
    let pod = found.ok_or_else(|| ApiError::not_found(pods, name))?;
    if *uid != *pod.head.uid {
        return write.refuse(&format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object \
             might have been deleted and then recreated"
        ));
    }
    if pod.head.field(pods, "spec.nodeName") != Some(write.node) {
        return write.refuse("node requested token bound to a pod scheduled on a different node");
    }
    Ok(())
}
