//! Managers that requests name: by `fieldManager`, by the user agent, or by hand in `metadata.managedFields`.

use http::{Method, header};
use serde_json::{Value, json};

use crate::apply::APPLY;
use crate::fixture::{DAEMONSETS, JSON_PATCH, MAPS, MERGE, PODS, STRATEGIC, TestServer};
use crate::fixture::{daemonset, map, request};

const A: &str = "/api/v1/namespaces/default/configmaps/a";

/// The names of the managers, sorted.
fn managers(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array();
    let entries = entries.into_iter().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry["manager"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_user_agent_names_the_manager_up_to_its_slash() {
    let server = TestServer::new().await;
    let long = "x".repeat(200);
    for (number, (agent, expected)) in [
        (b"helm/v3.17 (linux)".to_vec(), "helm"),
        (b"two words/1".to_vec(), "two words"),
        (b"bell\tand tab".to_vec(), "belland tab"),
        (long.clone().into_bytes(), &long[..128]),
        (b"/".to_vec(), "unknown"),
        (Vec::new(), "unknown"),
    ]
    .into_iter()
    .enumerate()
    {
        let body = map(&format!("m{number}"), &json!({"k": "1"}));
        let mut create = request(Method::POST, MAPS, Some(&body));
        let agent = header::HeaderValue::from_bytes(&agent).unwrap();
        create.headers_mut().insert(header::USER_AGENT, agent);
        let made = server.send(create).await.is(201);
        assert_eq!(managers(&made), [expected]);
    }
}

#[tokio::test]
async fn each_write_names_its_manager() {
    let server = TestServer::new().await;
    let by = |manager: &str| format!("{A}?fieldManager={manager}");
    let created = format!("{MAPS}?fieldManager=post");
    let mut made = server
        .post(&created, &map("a", &json!({"k": "1"})))
        .await
        .is(201);
    made["data"]["put"] = "1".into();
    server.put(&by("put"), &made).await.ok();
    for (kind, name) in [(MERGE, "merge"), (STRATEGIC, "strategic")] {
        let patch = json!({"data": {name: "1"}});
        server.patch(kind, &by(name), &patch).await.ok();
    }
    let patch = json!([{"op": "add", "path": "/data/json", "value": "1"}]);
    server.patch(JSON_PATCH, &by("json"), &patch).await.ok();
    let config = map("a", &json!({"apply": "1"}));
    let applied = server.patch(APPLY, &by("apply"), &config).await.ok();
    let expected = ["apply", "json", "merge", "post", "put", "strategic"];
    assert_eq!(managers(&applied), expected);
    for entry in applied["metadata"]["managedFields"].as_array().unwrap() {
        let name = match entry["manager"].as_str().unwrap() {
            "post" => "k",
            name => name,
        };
        let own = &entry["fieldsV1"]["f:data"][format!("f:{name}")];
        assert_eq!(*own, json!({}), "{entry}");
    }
}

#[tokio::test]
async fn an_empty_list_of_managers_resets_them_too() {
    let server = TestServer::new().await;
    let mut made = server.map("a", &json!({"k": "1"})).await;
    made["metadata"]["managedFields"] = json!([]);
    let reset = server.put(A, &made).await.ok();
    assert_eq!(reset["metadata"].get("managedFields"), None, "{reset}");
    let by_patch = server.map("b", &json!({"k": "1"})).await;
    assert_eq!(managers(&by_patch), ["unknown"]);
    let patch = json!({"metadata": {"managedFields": []}});
    let reset = server.patch(MERGE, &format!("{MAPS}/b"), &patch).await.ok();
    assert_eq!(reset["metadata"].get("managedFields"), None, "{reset}");
}

#[tokio::test]
async fn a_new_object_that_resets_its_managers_has_its_creator() {
    let server = TestServer::new().await;
    let mut new = map("a", &json!({"k": "1"}));
    new["metadata"]["managedFields"] = json!([{}]);
    let made = server.post(&format!("{MAPS}?fieldManager=me"), &new).await;
    assert_eq!(managers(&made.is(201)), ["me"]);
}

/// Of any verb that writes fields; the message names its options.
#[tokio::test]
async fn a_field_manager_has_bounds_in_every_write() {
    let server = TestServer::new().await;
    let made = server.map("a", &json!({"k": "1"})).await;
    for (manager, words) in [
        (
            "x".repeat(129),
            "Too long: may not be more than 128 bytes".to_owned(),
        ),
        (
            "a%07b".to_owned(),
            "Invalid value: \"a\\ab\": invalid character U+0007 (at position 1)".to_owned(),
        ),
    ] {
        let message =
            |options: &str| format!("{options}.meta.k8s.io \"\" is invalid: fieldManager: {words}");
        let create = format!("{MAPS}?fieldManager={manager}");
        let created = server.post(&create, &map("b", &json!({}))).await;
        created.says(422, "Invalid", &message("CreateOptions"));
        let one = format!("{A}?fieldManager={manager}");
        let put = server.put(&one, &made).await;
        put.says(422, "Invalid", &message("UpdateOptions"));
        for kind in [MERGE, STRATEGIC, JSON_PATCH] {
            let patch = if kind == JSON_PATCH {
                json!([])
            } else {
                json!({})
            };
            let patched = server.patch(kind, &one, &patch).await;
            patched.says(422, "Invalid", &message("PatchOptions"));
        }
    }
    let longest = format!("{A}?fieldManager={}", "x".repeat(128));
    let patch = json!({"data": {"k": "2"}});
    let patched = server.patch(MERGE, &longest, &patch).await.ok();
    assert!(managers(&patched).contains(&"x".repeat(128)));
}

/// What a client that does not know managers, or a broken one, sends is no reason to forget them.
#[tokio::test]
async fn managers_that_are_left_out_or_cannot_be_read_are_kept() {
    let server = TestServer::new().await;
    let path = format!("{MAPS}?fieldManager=me");
    let made = server
        .post(&path, &map("a", &json!({"k": "1"})))
        .await
        .is(201);
    let kept = made["metadata"]["managedFields"].clone();
    let entry = |name: &str, value: Value| {
        let mut entries = kept.clone();
        entries[0][name] = value;
        entries
    };
    for entries in [
        Value::Null,
        entry("operation", "Delete".into()),
        entry("apiVersion", "".into()),
        entry("fieldsType", "".into()),
        entry("fieldsType", "FieldsV2".into()),
        entry("fieldsV1", json!({"fx": {}})),
    ] {
        let mut sent = made.clone();
        sent["metadata"]["managedFields"] = entries;
        let written = server.put(A, &sent).await.ok();
        assert_eq!(written["metadata"]["managedFields"], kept);
    }
}

#[tokio::test]
async fn managers_are_edited_by_hand_but_not_through_a_subresource() {
    let server = TestServer::new().await;
    let path = format!("{DAEMONSETS}?fieldManager=creator");
    server.post(&path, &daemonset("d")).await.is(201);
    let one = format!("{DAEMONSETS}/d");
    let label = json!({"metadata": {"labels": {"x": "y"}}});
    let by_other = format!("{one}?fieldManager=other");
    let mut object = server.patch(MERGE, &by_other, &label).await.ok();
    assert_eq!(managers(&object), ["creator", "other"]);
    let entries = object["metadata"]["managedFields"].as_array_mut().unwrap();
    entries.retain(|entry| entry["manager"] == "creator");
    let status = format!("{one}/status");
    let reset = json!({"metadata": {"managedFields": [{}]}});
    for unchanged in [
        server.put(&status, &object).await.ok(),
        server.patch(MERGE, &status, &reset).await.ok(),
    ] {
        assert_eq!(managers(&unchanged), ["creator", "other"]);
    }
    let edited = server.put(&one, &object).await.ok();
    assert_eq!(managers(&edited), ["creator"]);
    assert_eq!(edited["metadata"]["labels"]["x"], "y");
}

/// An object from another cluster may name versions that nobody can convert to here.
#[tokio::test]
async fn managers_of_versions_that_the_kind_does_not_have_are_forgotten() {
    let server = TestServer::new().await;
    let path = format!("{DAEMONSETS}?fieldManager=creator");
    let mut body = daemonset("d");
    body["metadata"]["labels"]["x"] = "y".into();
    let mut object = server.post(&path, &body).await.is(201);
    let entries = object["metadata"]["managedFields"].as_array_mut().unwrap();
    for (manager, version) in [
        ("former", "apps/v1beta2"),
        ("future", "apps/v7"),
        ("foreign", "example.com/v1"),
    ] {
        let label = json!({"f:metadata": {"f:labels": {"f:x": {}}}});
        entries.push(
            json!({"manager": manager, "operation": "Apply", "apiVersion": version,
            "fieldsType": "FieldsV1", "fieldsV1": label}),
        );
    }
    let written = server
        .put(&format!("{DAEMONSETS}/d?fieldManager=creator"), &object)
        .await
        .ok();
    assert_eq!(managers(&written), ["creator", "former"]);
    // So is what they own: it does not conflict.
    let config = json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "d", "labels": {"x": "z"}}});
    let applied = server
        .patch(APPLY, &format!("{DAEMONSETS}/d?fieldManager=me"), &config)
        .await;
    let words = applied.is(409)["message"].as_str().unwrap().to_owned();
    assert!(
        !words.contains("future") && !words.contains("foreign"),
        "{words}"
    );
}

#[tokio::test]
async fn managers_by_hand_have_bounds() {
    let server = TestServer::new().await;
    let made = server.map("a", &json!({"k": "1"})).await;
    for (name, length, words) in [
        (
            "manager",
            129,
            "manager: Too long: may not be more than 128 bytes",
        ),
        (
            "subresource",
            257,
            "subresource: Too long: may not be more than 256 bytes",
        ),
    ] {
        let mut sent = made.clone();
        sent["metadata"]["managedFields"][0][name] = "x".repeat(length).into();
        let message = format!("ConfigMap \"a\" is invalid: metadata.managedFields[0].{words}");
        server.put(A, &sent).await.says(422, "Invalid", &message);
    }
}

/// As upstream, whose field manager sees a status before it is prepared.
#[tokio::test]
async fn what_the_server_keeps_of_a_status_has_no_owner() {
    let server = TestServer::new().await;
    let path = format!("{PODS}/p");
    server.pod("p", "n").await;
    let condition = |generation: Value| json!([{"type": "example.com/A", "status": "True", "observedGeneration": generation}]);
    let status = json!({"conditions": condition(1.into()), "observedGeneration": 1, "podIPs": [{"ip": "10.0.0.1"}]});
    let by = |manager: &str| format!("{path}/status?fieldManager={manager}");
    let patch = json!({"status": status});
    let mut pod = server.patch(MERGE, &by("first"), &patch).await.ok();
    pod["status"] = json!({"conditions": condition(Value::Null), "phase": "Running", "podIPs": [{"ip": "10.0.0.1"}]});
    let written = server.put(&by("second"), &pod).await.ok();
    assert_eq!(written["status"]["qosClass"], "BestEffort");
    assert_eq!(written["status"]["observedGeneration"], 1);
    assert_eq!(written["status"]["conditions"][0]["observedGeneration"], 1);
    let entries = written["metadata"]["managedFields"].as_array().unwrap();
    let of = |manager: &str| {
        let entry = entries.iter().find(|entry| entry["manager"] == manager);
        entry.unwrap()["fieldsV1"]["f:status"].clone()
    };
    let of_condition = json!({".": {}, "f:status": {}, "f:type": {}});
    let expected = json!({
        "f:conditions": {".": {}, "k:{\"type\":\"example.com/A\"}": of_condition},
        "f:podIPs": {".": {}, "k:{\"ip\":\"10.0.0.1\"}": {".": {}, "f:ip": {}}},
    });
    assert_eq!(of("first"), expected);
    assert_eq!(of("second"), json!({"f:phase": {}}));
}
