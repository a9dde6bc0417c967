//! A server with two nodes, each with its own objects.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use kennel_server::request::User;
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::{Value, json};

use crate::fixture::{Answer, TestServer, request};

pub(super) const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
pub(super) const CSI_NODES: &str = "/apis/storage.k8s.io/v1/csinodes";
pub(super) const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

/// The user of a node.
pub(super) fn agent(node: &str) -> User {
    let groups = vec!["system:nodes".to_owned()];
    User::authenticated(format!("system:node:{node}"), groups)
}

/// A namespaced collection of the core group.
pub(super) fn core(plural: &str) -> String {
    format!("/api/v1/namespaces/default/{plural}")
}

/// A server with two nodes, `a` and `b`.
pub(super) struct Fixture {
    pub(super) server: TestServer,
}

impl Fixture {
    pub(super) async fn new() -> Self {
        let fixture = Self {
            server: TestServer::new().await,
        };
        for node in ["a", "b"] {
            fixture.create_objects(node).await;
        }
        fixture
    }

    /// Sends a request as a node.
    pub(super) async fn send(
        &self,
        node: &str,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Answer {
        let method: Method = method.parse().unwrap();
        let patching = method == Method::PATCH;
        let mut request = request(method, path, body);
        if patching {
            let merge = crate::fixture::MERGE.parse().unwrap();
            let headers = request.headers_mut();
            headers.insert(http::header::CONTENT_TYPE, merge);
        }
        self.server.send_as(request, agent(node)).await
    }

    /// The code of a watch that a node asks for.
    pub(super) async fn watch(&self, node: &str, path: &str) -> u16 {
        let request = request(Method::GET, path, None);
        self.server.code_as(request, agent(node)).await
    }

    /// Everything that belongs to a node, and everything that its pod names.
    async fn create_objects(&self, node: &str) {
        let server = &self.server;
        let made =
            |path: String, body: Value| async move { server.post(&path, &body).await.is(201) };
        made("/api/v1/nodes".into(), json!({"metadata": {"name": node}})).await;
        made(LEASES.into(), lease(node)).await;
        made(CSI_NODES.into(), csi_node(node)).await;
        let named = |what: &str| json!({"metadata": {"name": format!("{what}-{node}")}});
        made(core("configmaps"), named("map")).await;
        made(core("secrets"), named("secret")).await;
        made(core("serviceaccounts"), named("account")).await;
        let mut claim = named("claim");
        claim["spec"] = json!({"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}, "volumeName": format!("volume-{node}")});
        made(core("persistentvolumeclaims"), claim).await;
        let mut volume = named("volume");
        volume["spec"] = json!({"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"},
            "claimRef": {"namespace": "default", "name": format!("claim-{node}")},
            "hostPath": {"path": "/data"}});
        made("/api/v1/persistentvolumes".into(), volume).await;
        made(core("pods"), pod(node)).await;
        made(core("events"), event(node)).await;
        let answer = self
            .send(node, "POST", REQUESTS, Some(&signing(node)))
            .await;
        answer.is(201);
    }
}

pub(super) fn lease(node: &str) -> Value {
    json!({"metadata": {"name": node}, "spec": {"holderIdentity": node}})
}

pub(super) fn csi_node(node: &str) -> Value {
    json!({"metadata": {"name": node}, "spec": {"drivers": []}})
}

/// A pod on a node that names one object of each kind, in one of many ways.
pub(super) fn pod(node: &str) -> Value {
    json!({
        "metadata": {"name": format!("pod-{node}")},
        "spec": {
            "nodeName": node,
            "serviceAccountName": format!("account-{node}"),
            "containers": [{"name": "c", "image": "i:1",
                "envFrom": [{"configMapRef": {"name": format!("map-{node}")}}]}],
            "volumes": [
                {"name": "s", "secret": {"secretName": format!("secret-{node}")}},
                {"name": "p", "persistentVolumeClaim": {"claimName": format!("claim-{node}")}},
            ],
        },
    })
}

/// A pod that a node runs by itself.
pub(super) fn mirror(node: &str, uid: &Value) -> Value {
    json!({
        "metadata": {
            "name": format!("static-{node}"), "annotations": {"kubernetes.io/config.mirror": "hash"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid,
                "controller": true}],
        },
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i:1"}]},
    })
}

pub(super) fn event(node: &str) -> Value {
    json!({
        "metadata": {"name": format!("event-{node}")}, "reason": "Started", "type": "Normal",
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": format!("pod-{node}")},
        "source": {"component": "kubelet", "host": node},
    })
}

/// A request for a node's certificate.
pub(super) fn signing(node: &str) -> Value {
    let mut params = CertificateParams::default();
    let name = &mut params.distinguished_name;
    name.push(DnType::CommonName, format!("system:node:{node}"));
    let key = KeyPair::generate().unwrap();
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    json!({
        "metadata": {"name": format!("request-{node}")},
        "spec": {"request": STANDARD.encode(pem), "usages": ["client auth"],
            "signerName": "kubernetes.io/kube-apiserver-client-kubelet"},
    })
}
