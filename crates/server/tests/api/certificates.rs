//! Certificate signing requests: requester, approval, signature.

use serde_json::{Value, json};

use crate::fixture::TestServer;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

/// A request for `CN=agent`, made once with openssl (P-256), in base64 of its PEM.
const REQUEST: &str = include_str!("request.b64");

async fn made(server: &TestServer) -> Value {
    let body = json!({
        "metadata": {"name": "r"},
        "spec": {
            "request": REQUEST.trim(), "signerName": "example.com/signer",
            "usages": ["client auth"], "username": "somebody-else",
        },
    });
    server.post(REQUESTS, &body).await.is(201)
}

#[tokio::test]
async fn the_server_sets_the_requester() {
    let server = TestServer::new().await;
    let made = made(&server).await;
    assert_eq!(made["spec"]["username"], "tester");
    assert_eq!(
        made["spec"]["groups"],
        json!(["system:masters", "system:authenticated"])
    );
}

#[tokio::test]
async fn an_approval_is_a_condition_with_times_of_the_server() {
    let server = TestServer::new().await;
    let mut request = made(&server).await;
    let condition =
        json!({"type": "Approved", "status": "True", "reason": "Fine", "message": "ok"});
    request["status"]["conditions"] = json!([condition]);
    let main = server.put(&format!("{REQUESTS}/r"), &request).await.ok();
    assert!(main["status"].get("conditions").is_none(), "{main}");
    request["spec"]["signerName"] = "example.com/other".into();
    let approved = server
        .put(&format!("{REQUESTS}/r/approval"), &request)
        .await
        .ok();
    assert_eq!(approved["spec"]["signerName"], "example.com/signer");
    let shown = &approved["status"]["conditions"][0];
    assert_eq!(shown["type"], "Approved");
    assert!(shown["lastUpdateTime"].is_string() && shown["lastTransitionTime"].is_string());
    let mut undone = approved.clone();
    undone["status"]["conditions"] = json!([]);
    server
        .put(&format!("{REQUESTS}/r/approval"), &undone)
        .await
        .fails(422, "Invalid");
}
