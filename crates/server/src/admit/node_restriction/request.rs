//! A node's requests for credentials: certificates for itself, tokens for its pods.

use kennel_types::Verb;
use serde_json::Value;

use super::{Api, NodeRestriction, NodeWrite, node_write};
use crate::admit::{lookup, read};
use crate::authorize::{Attributes, ResourceAttributes};
use crate::kinds;
use crate::registry::{self, Resource};
use crate::request::User;
use crate::status::Result;
use crate::tree::{at, list, text, texts};

/// Signers of certificates that name a node.
const SIGNERS: [&str; 2] = [
    "kubernetes.io/kube-apiserver-client-kubelet",
    "kubernetes.io/kubelet-serving",
];

/// Signing requests for certificates that name the node.
pub(crate) struct SigningRule;

impl NodeRestriction for SigningRule {
    fn create(&self, _: &Api, write: NodeWrite<'_>, request: &Value) -> Result<()> {
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
}

/// A node may request only tokens that are bound to one of its pods.
pub(crate) fn check_token(
    api: &Api,
    user: &User,
    row: &'static Resource,
    (namespace, account): (&str, &str),
    request: &Value,
) -> Result<()> {
    let Some(write) = node_write(user, row, Some(namespace), account)? else {
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
    let pods = registry::core("pods");
    let pod = api.stored(pods, Some(namespace), name)?;
    if *uid != *pod.head.uid {
        return write.refuse(&format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object \
             might have been deleted and then recreated"
        ));
    }
    if pod.head.field(pods, "spec.nodeName") != Some(write.node) {
        return write.refuse("node requested token bound to a pod scheduled on a different node");
    }
    check_audience(api, user, write, request, &read(&pod))
}

/// The audience must be one that a volume of the pod names, or one that RBAC allows.
fn check_audience(
    api: &Api,
    user: &User,
    write: NodeWrite<'_>,
    request: &Value,
    pod: &Value,
) -> Result<()> {
    let audience = match texts(request, "spec.audiences").collect::<Vec<_>>()[..] {
        [] => "",
        [one] => one,
        _ => return write.refuse("node may only request 0 or 1 audiences"),
    };
    let volumes = list(pod, "spec.volumes").iter();
    let mut volumes = volumes.into_iter();
    if volumes.any(|volume| sends_to(api, write.namespace, volume, audience)) {
        return Ok(());
    }
    let asked = Attributes::Resource(ResourceAttributes {
        verb: Verb::Other("request-serviceaccounts-token-audience"),
        resource: audience,
        namespace: write.namespace,
        name: write.name,
        ..ResourceAttributes::default()
    });
    if api.authorizer.allows(user, &asked) {
        return Ok(());
    }
    write.refuse(&format!(
        "audience {audience:?} not found in pod spec volume, {} is not authorized to request tokens for \
         this audience",
        user.name
    ))
}

/// Whether a volume requests tokens for this audience: by itself, or through its CSI driver.
fn sends_to(api: &Api, namespace: &str, volume: &Value, audience: &str) -> bool {
    let projected = list(volume, "projected.sources").iter();
    let mut tokens = projected.filter_map(|source| source.get("serviceAccountToken"));
    if tokens.any(|token| text(token, "audience") == audience) {
        return true;
    }
    let Some(driver) = driver(api, namespace, volume) else {
        return false;
    };
    let driver = stored_tree(api, "storage.k8s.io", "csidrivers", None, &driver);
    let mut requests = list(&driver, "spec.tokenRequests").iter();
    requests.any(|request| text(request, "audience") == audience)
}

/// A stored object; null if there is none.
fn stored_tree(api: &Api, group: &str, plural: &str, namespace: Option<&str>, name: &str) -> Value {
    let found = lookup(api, group, plural, namespace, name);
    found.as_ref().map(read).unwrap_or_default()
}

/// The CSI driver of a volume, directly or of the persistent volume behind it.
fn driver(api: &Api, namespace: &str, volume: &Value) -> Option<String> {
    let mut driver = text(volume, "csi.driver").to_owned();
    let claim = text(volume, "persistentVolumeClaim.claimName");
    if !claim.is_empty() {
        let claim = stored_tree(api, "", "persistentvolumeclaims", Some(namespace), claim);
        let name = text(&claim, "spec.volumeName");
        let volume = stored_tree(api, "", "persistentvolumes", None, name);
        text(&volume, "spec.csi.driver").clone_into(&mut driver);
    }
    (!driver.is_empty()).then_some(driver)
}
