//! Certificate signing requests: who asks, who decides, who signs.

use serde_json::{Value, json};

use crate::kit::Kit;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

/// A request for `CN=agent`, made once with openssl (P-256), in base64 of its PEM.
const REQUEST: &str = include_str!("request.b64");

async fn made(kit: &Kit) -> Value {
    let body = json!({
        "metadata": {"name": "r"},
        "spec": {
            "request": REQUEST.trim(), "signerName": "example.com/signer",
            "usages": ["client auth"], "username": "somebody-else",
        },
    });
    kit.post(REQUESTS, &body).await.is(201)
}

#[tokio::test]
async fn the_server_says_who_asked() {
    let kit = Kit::new().await;
    let made = made(&kit).await;
    assert_eq!(made["spec"]["username"], "tester");
    assert_eq!(
        made["spec"]["groups"],
        json!(["system:masters", "system:authenticated"])
    );
}

#[tokio::test]
async fn an_approval_is_a_condition_with_times_of_the_server() {
    let kit = Kit::new().await;
    let mut request = made(&kit).await;
    let condition =
        json!({"type": "Approved", "status": "True", "reason": "Fine", "message": "ok"});
    request["status"]["conditions"] = json!([condition]);
    let main = kit.put(&format!("{REQUESTS}/r"), &request).await.ok();
    assert!(main["status"].get("conditions").is_none(), "{main}");
    request["spec"]["signerName"] = "example.com/other".into();
    let approved = kit
        .put(&format!("{REQUESTS}/r/approval"), &request)
        .await
        .ok();
    assert_eq!(approved["spec"]["signerName"], "example.com/signer");
    let shown = &approved["status"]["conditions"][0];
    assert_eq!(shown["type"], "Approved");
    assert!(shown["lastUpdateTime"].is_string() && shown["lastTransitionTime"].is_string());
    let mut undone = approved.clone();
    undone["status"]["conditions"] = json!([]);
    kit.put(&format!("{REQUESTS}/r/approval"), &undone)
        .await
        .fails(422, "Invalid");
}
