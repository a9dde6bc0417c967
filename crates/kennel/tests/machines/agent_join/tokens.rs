//! Machines that join with a token, and those that are refused.

use std::fs;
use std::process::Command;

use kennel_testkit::{Deadline, eventually};
use serde_json::json;

use super::fixture::{BINARY, LEASES, Machine, REQUESTS, TOKEN, check_private, cluster};

#[test]
fn a_machine_joins_with_one_line_and_comes_back_without_it() {
    let cluster = cluster(&[]);
    let invitation = cluster.invitation();
    let mut machine = Machine::new();
    let labels = [
        "--node-labels=rack=12",
        "--register-with-taints=a=b:NoSchedule",
    ];
    let more = labels.iter().map(ToString::to_string);
    let line: Vec<String> = invitation.iter().cloned().chain(more).collect();
    machine.start(&line, "n1");
    cluster.is_ready("n1");
    let node = cluster.get("/api/v1/nodes/n1");
    assert_eq!(node["metadata"]["labels"]["rack"], "12");
    assert_eq!(node["metadata"]["labels"]["kubernetes.io/hostname"], "n1");
    assert_eq!(node["metadata"]["labels"]["kubernetes.io/os"], "linux");
    let given = node["spec"]["taints"].as_array().unwrap();
    assert!(given.iter().any(|taint| taint["key"] == "a"), "{node}");
    let status = &node["status"];
    assert!(status["daemonEndpoints"]["kubeletEndpoint"]["Port"].as_u64() > Some(0));
    assert_eq!(status["capacity"]["pods"], "110");
    assert_eq!(
        status["addresses"][1],
        json!({"type": "Hostname", "address": "n1"})
    );
    // Its own certificate to serve with, by rule, though it is on the server's machine.
    machine.says("got a new serving certificate");
    check_private(&machine.data().join("pki"));
    let lease = cluster.get(&format!("{LEASES}/n1"));
    assert_eq!(lease["spec"]["holderIdentity"], "n1");
    assert_eq!(lease["spec"]["leaseDurationSeconds"], 40);
    assert_eq!(
        lease["metadata"]["ownerReferences"][0]["uid"],
        node["metadata"]["uid"]
    );
    // Killed, it comes back at once, with nothing but what it kept.
    machine.kill();
    machine.start(&["agent"], "n1");
    cluster.renews("n1");
    assert_eq!(
        cluster.get("/api/v1/nodes/n1")["metadata"]["uid"],
        node["metadata"]["uid"]
    );
    machine.stop();
    let requests = cluster.get(REQUESTS);
    assert_eq!(requests["items"].as_array().unwrap().len(), 2, "{requests}");
}

#[test]
fn who_does_not_join_is_told_why() {
    let cluster = cluster(&[]);
    let machine = Machine::new();
    let line = cluster.invitation();
    let at = |flag: &str| line.iter().position(|word| word == flag).unwrap() + 1;
    let with = |flag: &str, value: &str| {
        let mut line = line.clone();
        line[at(flag)] = value.to_owned();
        line
    };
    let check = |line: &[String], words: &[&str]| {
        let heard = machine.refused(line, "n1");
        for word in words {
            assert!(heard.contains(word), "{word} is missing in: {heard}");
        }
    };
    let hash = &line[at("--ca-hash")];
    let wrong = format!("sha256:{}", "0".repeat(64));
    check(
        &with("--ca-hash", &wrong),
        &["the certificate authority of the server", hash, &wrong],
    );
    check(&line[..at("--ca-hash") - 1], &["--ca-hash is missing"]);
    let mut stranger = line.clone();
    stranger[0] = format!("{TOKEN}abcxyz.0123456789abcdef");
    check(&stranger, &["abcxyz", "kennel token create"]);
    // A deleted token admits no machine.
    let token = line[0].strip_prefix(TOKEN).unwrap().to_owned();
    let id = token.split('.').next().unwrap();
    let shown = cluster.token(&["list"]);
    assert!(shown.contains(id) && !shown.contains(&token), "{shown}");
    assert_eq!(
        cluster.token(&["delete", id]),
        format!("token {id} deleted\n")
    );
    assert!(!cluster.token(&["list"]).contains(id));
    check(&line, &["rejects the token", id]);
    // Nothing to join with at all; a directory of manifests alone would be enough, so none is given.
    let output = Command::new(BINARY)
        .args([
            "agent",
            "--listen=127.0.0.1:0",
            "--node-name=n1",
            "--data-dir",
        ])
        .arg(machine.data())
        .output()
        .unwrap();
    let heard = String::from_utf8(output.stderr).unwrap();
    assert!(
        heard.contains("has not joined a cluster") && heard.contains("--kubeconfig"),
        "{heard}"
    );
    assert_eq!(cluster.get("/api/v1/nodes")["items"], json!([]));
}

#[test]
fn a_machine_that_waits_for_approval_says_what_to_do_and_goes_on_after_a_crash() {
    let without = "--controllers=*,-certificatesigningrequest-approving-controller";
    let cluster = cluster(&[without]);
    let mut machine = Machine::new();
    let mut line = cluster.invitation();
    line.push("--node-ip=127.0.0.1".to_owned());
    machine.start(&line, "n1");
    machine.says("kubectl certificate approve node-client-");
    machine.kill();
    machine.start(&line, "n1");
    let requests = cluster.get(REQUESTS);
    let [request] = &requests["items"].as_array().unwrap()[..] else {
        panic!("one request: {requests}");
    };
    cluster.approve(request["metadata"]["name"].as_str().unwrap());
    cluster.is_ready("n1");
    // The serving certificate waits for approval, too, and `kubectl logs` says so.
    let healthz = || {
        let path = "/api/v1/nodes/n1/proxy/healthz";
        cluster.admin.ask("GET", path, b"")
    };
    let name = eventually(Deadline::seconds(60), || {
        let answer = healthz();
        let said = answer.text();
        let words = "tls: node n1 has no serving certificate yet: its certificate request ";
        let (_, rest) = said.split_once(words).ok_or_else(|| said.clone())?;
        let (name, rest) = rest.split_once(' ').ok_or_else(|| said.clone())?;
        let way = format!("waits for approval; to approve it: kubectl certificate approve {name}");
        let is_whole = rest.starts_with(&way);
        is_whole.then(|| name.to_owned()).ok_or(said)
    });
    cluster.approve(&name);
    eventually(Deadline::seconds(60), || {
        let answer = healthz();
        let said = answer.text();
        (answer.code == 200).then_some(()).ok_or(said)
    });
}

#[test]
fn a_token_makes_one_new_node_and_a_deleted_node_needs_another_token() {
    let cluster = cluster(&[]);
    let line = cluster.invitation();
    let (mut first, second) = (Machine::new(), Machine::new());
    first.start(&line, "n1");
    cluster.is_ready("n1");
    let heard = second.refused(&line, "n1");
    assert!(
        heard.contains("was denied: node n1 exists") && heard.contains("--replace"),
        "{heard}"
    );
    let heard = second.refused(&line, "n2");
    assert!(heard.contains("the token has been used once"), "{heard}");
    let shown = cluster.token(&["list"]);
    let words: Vec<&str> = shown.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(words[2..4], ["0", "n1"], "{shown}");
    // Deleted, it is a node no more: not with its certificate, but with another token, from a file.
    let deleted = cluster.admin.ask("DELETE", "/api/v1/nodes/n1", b"");
    assert_eq!(deleted.code, 200, "{}", deleted.text());
    first.says("was deleted from the API");
    first.kill();
    let heard = first.refused(&["agent"], "n1");
    assert!(
        heard.contains("the server rejects the certificate of node n1"),
        "{heard}"
    );
    assert_eq!(cluster.get("/api/v1/nodes")["items"], json!([]));
    // Nor with its certificate's key and the token that it had. Without the request that was approved, it makes another.
    let cleared = cluster.admin.ask("DELETE", REQUESTS, b"");
    assert_eq!(cleared.code, 200, "{}", cleared.text());
    let pki = first.data().join("pki");
    let key = fs::read_to_string(pki.join("client.pem")).unwrap();
    let key = key.split_once("-----BEGIN PRIVATE").unwrap().1;
    fs::write(
        pki.join("client.pending.key"),
        format!("-----BEGIN PRIVATE{key}"),
    )
    .unwrap();
    let heard = first.refused(&line, "n1");
    assert!(
        heard.contains("whose certificates were revoked since"),
        "{heard}"
    );
    let mut line = cluster.invitation();
    let file = first.dir.path().join("token");
    fs::write(
        &file,
        format!("{}\n", line.remove(0).strip_prefix(TOKEN).unwrap()),
    )
    .unwrap();
    line.push(format!("--token-file={}", file.display()));
    first.start(&line, "n1");
    cluster.is_ready("n1");
}
