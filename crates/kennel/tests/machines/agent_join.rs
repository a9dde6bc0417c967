//! `kennel token` and `kennel agent` as people use them: a line is printed on the server and pasted on a machine,
//! which becomes a node and stays one; and machines that are refused, and why.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kennel_testkit::{Access, Deadline, Kennel, eventually};
use rcgen::{CertificateParams, DistinguishedName, DnType, Issuer, KeyPair};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_kennel");
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
/// The first word of the line of `kennel token create`.
const TOKEN: &str = "KENNEL_TOKEN=";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

/// A cluster without nodes.
struct Cluster {
    kennel: Kennel,
    admin: Access,
}

fn cluster(more: &[&str]) -> Cluster {
    let arguments: Vec<&str> = ["up", "--nodes", "0"].iter().chain(more).copied().collect();
    let kennel = Kennel::start(BINARY, &arguments);
    let admin = Access::admin(kennel.address(), &kennel.data_dir());
    Cluster { kennel, admin }
}

impl Cluster {
    fn token(&self, arguments: &[&str]) -> String {
        let output = Command::new(BINARY)
            .arg("token")
            .args(arguments)
            .arg("--data-dir")
            .arg(self.kennel.data_dir())
            .output()
            .unwrap();
        let heard = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{heard}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// What is to be run on a machine, without the program's name.
    fn invitation(&self) -> Vec<String> {
        self.invitation_with(&[])
    }

    fn invitation_with(&self, flags: &[&str]) -> Vec<String> {
        let line = self.token(&[&["create"], flags].concat());
        // All users can read the command line of a process.
        assert!(!line.contains("--token"), "{line}");
        let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        assert_eq!(words.remove(1), "kennel", "{line}");
        words
    }

    fn get(&self, path: &str) -> Value {
        self.admin.ask("GET", path, b"").json()
    }

    fn is_ready(&self, node: &str) {
        eventually(Deadline::seconds(60), || {
            let node = self.get(&format!("/api/v1/nodes/{node}"));
            let conditions = node["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            let ready = conditions.any(|one| one["type"] == "Ready" && one["status"] == "True");
            ready.then_some(()).ok_or(node)
        });
    }

    /// What `kubectl certificate approve` does.
    fn approve(&self, request: &str) {
        let mut approved = self.get(&format!("{REQUESTS}/{request}"));
        approved["status"]["conditions"] = json!([{"type": "Approved", "status": "True",
            "reason": "KubectlApprove", "message": "This CSR was approved by kubectl certificate approve."}]);
        let path = format!("{REQUESTS}/{request}/approval");
        let answer = self
            .admin
            .ask("PUT", &path, approved.to_string().as_bytes());
        assert_eq!(answer.code, 200, "{}", answer.text());
    }

    /// The node renews its lease again from now on.
    fn renews(&self, node: &str) {
        let renewed = || self.get(&format!("{LEASES}/{node}"))["spec"]["renewTime"].clone();
        let before = renewed();
        eventually(Deadline::seconds(60), || {
            let now = renewed();
            (now.is_string() && now != before).then_some(()).ok_or(now)
        });
    }
}

/// A machine: a directory, and an agent that runs in it or not.
struct Machine {
    dir: TempDir,
    agent: Option<Child>,
}

impl Machine {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        Self { dir, agent: None }
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("agent")
    }

    fn command<S: AsRef<str>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new(BINARY);
        for argument in arguments {
            match argument.as_ref().strip_prefix(TOKEN) {
                Some(token) => command.env("KENNEL_TOKEN", token),
                None => command.arg(argument.as_ref()),
            };
        }
        command
            .args(["--runtime=simulated", "--listen=127.0.0.1:0"])
            .arg("--data-dir")
            .arg(self.data())
            .arg("--log-dir")
            .arg(self.dir.path().join("logs"))
            .arg("--manifest-dir")
            .arg(self.dir.path().join("manifests"))
            .stdin(Stdio::null());
        command
    }

    fn start<S: AsRef<str>>(&mut self, arguments: &[S], node: &str) {
        let path = self.dir.path().join("log");
        let log = File::options().create(true).append(true).open(path);
        let mut command = self.command(arguments);
        command
            .args(["--node-name", node])
            .stdout(Stdio::null())
            .stderr(log.unwrap());
        self.agent = Some(command.spawn().unwrap());
    }

    fn kill(&mut self) {
        if let Some(mut agent) = self.agent.take() {
            agent.kill().unwrap();
            agent.wait().unwrap();
        }
    }

    fn has_ended(&mut self) -> bool {
        let agent = self.agent.as_mut().unwrap();
        agent.try_wait().unwrap().is_some()
    }

    fn stop(&mut self) {
        let mut agent = self.agent.take().unwrap();
        kill_process(Pid::from_child(&agent), Signal::TERM).unwrap();
        let ended = eventually(Deadline::seconds(30), || {
            agent.try_wait().unwrap().ok_or("still running")
        });
        assert!(ended.success(), "{ended}: {}", self.log());
    }

    fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    fn says(&self, words: &str) {
        eventually(Deadline::seconds(60), || {
            let log = self.log();
            log.contains(words).then_some(()).ok_or(log)
        });
    }

    /// Takes the certificates of another machine.
    fn copy_identity(&self, from: &Self) {
        let (from, to) = (from.data().join("pki"), self.data().join("pki"));
        fs::create_dir_all(&to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }

    /// An agent that must not start; says why not.
    fn refused<S: AsRef<str>>(&self, arguments: &[S], node: &str) -> String {
        let mut command = self.command(arguments);
        let output = command.args(["--node-name", node]).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.kill();
    }
}

fn check_private(dir: &Path) {
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", entry.path().display());
    }
}

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
fn one_agent_speaks_for_a_node() {
    let cluster = cluster(&[]);
    let line = cluster.invitation();
    let (mut first, second) = (Machine::new(), Machine::new());
    first.start(&line, "n1");
    cluster.is_ready("n1");
    cluster.renews("n1");
    // In the same directory, and in another one of the same machine.
    let heard = first.refused(&line, "n1");
    assert!(heard.contains("another agent, process"), "{heard}");
    // With the same certificate; a token alone does not make it an existing node.
    second.copy_identity(&first);
    let heard = second.refused(&["agent"], "n1");
    assert!(heard.contains("is already node n1"), "{heard}");
    first.kill();
    // On another machine: it renews its lease.
    let path = format!("{LEASES}/n1");
    let renew_elsewhere = |at: i64| {
        let mut lease = cluster.get(&path);
        lease["metadata"]["annotations"]["kennel.dev/agent"] = "other.boot.1.1".into();
        lease["spec"]["leaseDurationSeconds"] = 5.into();
        let renewed = jiff::Timestamp::from_second(at).unwrap();
        lease["spec"]["renewTime"] = format!("{renewed:.6}").into();
        let answer = cluster
            .admin
            .ask("PUT", &path, lease.to_string().as_bytes());
        assert_eq!(answer.code, 200, "{}", answer.text());
    };
    renew_elsewhere(0);
    let ended = AtomicBool::new(false);
    let heard = std::thread::scope(|scope| {
        scope.spawn(|| {
            // By a clock that is half a century behind.
            for at in (1..240).take_while(|_| !ended.load(Ordering::Relaxed)) {
                renew_elsewhere(at);
                std::thread::sleep(Duration::from_millis(500));
            }
        });
        let heard = second.refused(&["agent"], "n1");
        ended.store(true, Ordering::Relaxed);
        heard
    });
    assert!(
        heard.contains("an agent on another machine is already node n1"),
        "{heard}"
    );
    // Until it has not renewed it for as long as the lease says.
    first.start(&["agent"], "n1");
    first.says("watching for 5 seconds whether another agent renews the lease of node n1");
    cluster.renews("n1");
    // An agent that stops releases its lease.
    first.stop();
    let lease = cluster.get(&path);
    assert_eq!(lease["metadata"]["annotations"]["kennel.dev/agent"], "");
}

#[test]
fn of_two_agents_that_start_at_once_one_becomes_the_node() {
    let cluster = cluster(&[]);
    let kubeconfig = cluster.kennel.kubeconfig();
    let line = ["agent", "--kubeconfig", kubeconfig.to_str().unwrap()];
    let mut machines = [Machine::new(), Machine::new()];
    for machine in &mut machines {
        machine.start(&line, "n1");
    }
    let heard = eventually(Deadline::seconds(60), || {
        let mut all = machines.iter_mut();
        let ended = all.find_map(|machine| machine.has_ended().then(|| machine.log()));
        ended.ok_or("both run")
    });
    assert!(heard.contains("is already node n1"), "{heard}");
    cluster.is_ready("n1");
    assert!(machines.iter_mut().any(|machine| !machine.has_ended()));
}

#[test]
fn of_two_machines_that_use_a_token_at_once_one_joins() {
    let cluster = cluster(&[]);
    let line = cluster.invitation();
    let mut machines = [Machine::new(), Machine::new()];
    for (machine, name) in machines.iter_mut().zip(["n1", "n2"]) {
        machine.start(&line, name);
    }
    let heard = eventually(Deadline::seconds(60), || {
        let mut all = machines.iter_mut();
        let ended = all.find_map(|machine| machine.has_ended().then(|| machine.log()));
        ended.ok_or("both run")
    });
    assert!(heard.contains("was denied: the token"), "{heard}");
    let joined = if machines[0].has_ended() { "n2" } else { "n1" };
    cluster.is_ready(joined);
    let nodes = cluster.get("/api/v1/nodes");
    assert_eq!(nodes["items"].as_array().unwrap().len(), 1, "{nodes}");
    assert!(machines.iter_mut().any(|machine| !machine.has_ended()));
}

#[test]
fn an_agent_refuses_the_data_directory_of_a_newer_one() {
    let cluster = cluster(&[]);
    let line = cluster.invitation();
    let mut machine = Machine::new();
    machine.start(&line, "n1");
    cluster.is_ready("n1");
    machine.stop();
    let file = machine.data().join("version.json");
    let own = fs::read_to_string(&file).unwrap();
    fs::write(&file, r#"{"version": 99}"#).unwrap();
    for arguments in [&["agent"][..], &["agent", "--cleanup"]] {
        let heard = machine.refused(arguments, "n1");
        let words =
            "its data has version 99, this program knows versions up to 1; use the newer program";
        assert!(heard.contains(words), "{heard}");
    }
    fs::write(&file, own).unwrap();
    machine.start(&["agent"], "n1");
    cluster.renews("n1");
}

#[test]
fn a_cluster_on_one_machine_has_that_machine_as_its_node() {
    let manifests = TempDir::new().unwrap();
    let manifests = manifests.path().display().to_string();
    let more = [
        "--nodes=1",
        "--node-name=own",
        "--runtime=simulated",
        "--log-dir",
    ];
    let more = [
        &["up"],
        &more[..],
        &[&manifests, "--manifest-dir", &manifests],
    ]
    .concat();
    let kennel = Kennel::start(BINARY, &more);
    let admin = Access::admin(kennel.address(), &kennel.data_dir());
    let cluster = Cluster { kennel, admin };
    cluster.is_ready("own");
    // Its certificate is signed without an approval.
    eventually(Deadline::seconds(30), || {
        let log = cluster.kennel.log();
        let got = log.contains("got a new serving certificate");
        got.then_some(()).ok_or(log)
    });
    assert_eq!(cluster.get(REQUESTS)["items"], json!([]));
    // It comes back at once, as the same node.
    let uid = cluster.get("/api/v1/nodes/own")["metadata"]["uid"].clone();
    let kennel = cluster.kennel.restart();
    let admin = Access::admin(kennel.address(), &kennel.data_dir());
    let cluster = Cluster { kennel, admin };
    cluster.renews("own");
    assert_eq!(cluster.get("/api/v1/nodes/own")["metadata"]["uid"], uid);
    let output = Command::new(BINARY)
        .args(["up", "--nodes", "2"])
        .output()
        .unwrap();
    let heard = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(
        heard.contains("share its ports") && heard.contains("token create"),
        "{heard}"
    );
}

/// A node's certificate of this cluster that began and ends so many seconds from now.
fn certificate(cluster: &Cluster, node: &str, from: i64, to: i64) -> String {
    let pki = cluster.kennel.data_dir().join("pki");
    let read = |name: &str| fs::read_to_string(pki.join(name)).unwrap();
    let authority = KeyPair::from_pem(&read("ca.key")).unwrap();
    let authority = Issuer::from_ca_cert_pem(&read("ca.crt"), authority).unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    let subject = &mut params.distinguished_name;
    subject.push(DnType::OrganizationName, "system:nodes");
    subject.push(DnType::CommonName, format!("system:node:{node}"));
    let now = std::time::SystemTime::now();
    let at = |seconds: i64| {
        let by = std::time::Duration::from_secs(seconds.unsigned_abs());
        (if seconds < 0 { now - by } else { now + by }).into()
    };
    (params.not_before, params.not_after) = (at(from), at(to));
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().unwrap();
    let signed = params.signed_by(&key, &authority).unwrap();
    format!("{}{}", signed.pem(), key.serialize_pem())
}

#[test]
fn a_certificate_is_replaced_before_it_ends_and_nobody_notices() {
    let cluster = cluster(&[]);
    let line = cluster.invitation();
    let mut machine = Machine::new();
    machine.start(&line, "n1");
    cluster.is_ready("n1");
    machine.stop();
    let file = machine.data().join("pki/client.pem");
    // Two thirds of its life are over: it is replaced within the next few seconds, while the agent runs.
    let short = certificate(&cluster, "n1", -36, 18);
    fs::write(&file, &short).unwrap();
    machine.start(&["agent"], "n1");
    eventually(Deadline::seconds(30), || {
        let now = fs::read_to_string(&file).unwrap();
        (now != short).then_some(()).ok_or("still the old one")
    });
    machine.says("got a new client certificate");
    // With the old one it could not renew its lease from some time on.
    for _ in 0..3 {
        cluster.renews("n1");
    }
    machine.stop();
    // One that has ended is good for nothing; only a token helps.
    fs::write(&file, certificate(&cluster, "n1", -60, -1)).unwrap();
    let heard = machine.refused(&["agent"], "n1");
    assert!(
        heard.contains("expired at") && heard.contains("kennel token create"),
        "{heard}"
    );
    // And the directory stays that node's.
    fs::write(&file, &short).unwrap();
    let heard = machine.refused(&["agent"], "n2");
    assert!(heard.contains("belongs to system:node:n1"), "{heard}");
    fs::write(&file, certificate(&cluster, "n1", -60, -1)).unwrap();
    let heard = machine.refused(&line, "n1");
    assert!(heard.contains("node n1 exists"), "{heard}");
    let mut line = cluster.invitation_with(&["--node", "n1", "--replace"]);
    // `start` names the node, too.
    let name = line.split_off(line.len() - 2);
    assert_eq!(name, ["--node-name", "n1"]);
    machine.start(&line, "n1");
    cluster.renews("n1");
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

#[test]
fn agents_follow_a_new_certificate_authority() {
    let cluster = cluster(&[]);
    let line = cluster.invitation();
    let mut machine = Machine::new();
    machine.start(&line, "n1");
    cluster.is_ready("n1");
    machine.says("got a new serving certificate");
    machine.kill();
    let pki = machine.data().join("pki");
    let read = |name: &str| fs::read_to_string(pki.join(name)).unwrap();
    let (client, serving) = (read("client.pem"), read("serving.pem"));
    let rotated = cluster
        .admin
        .ask("POST", "/kennel.dev/certificates/rotate-ca", b"{}");
    assert_eq!(rotated.code, 200, "{}", rotated.text());
    // It trusts only the old one at its start, and has new certificates of the new one soon.
    machine.start(&["agent"], "n1");
    machine.says("the certificate authorities of the cluster have changed");
    eventually(Deadline::seconds(60), || {
        let are_new = read("client.pem") != client && read("serving.pem") != serving;
        are_new.then_some(()).ok_or("still the old ones")
    });
    let admin = Access::admin(cluster.kennel.address(), &cluster.kennel.data_dir());
    let retired = admin.ask("POST", "/kennel.dev/certificates/retire-ca", b"{}");
    assert_eq!(retired.code, 200, "{}", retired.text());
    // Without the old one, and with the old line, whose hash is that of the old one.
    let renewed =
        || admin.ask("GET", &format!("{LEASES}/n1"), b"").json()["spec"]["renewTime"].clone();
    let before = renewed();
    machine.kill();
    machine.start(&line, "n1");
    eventually(Deadline::seconds(60), || {
        let now = renewed();
        (now.is_string() && now != before).then_some(()).ok_or(now)
    });
}

#[test]
fn a_node_serves_for_an_address_when_an_administrator_has_confirmed_it() {
    let kennel = Kennel::start_at(BINARY, &["up", "--nodes", "0"], "0.0.0.0:0");
    let admin = Access::admin(kennel.address(), &kennel.data_dir());
    let cluster = Cluster { kennel, admin };
    let mut machine = Machine::new();
    let mut line = cluster.invitation();
    // Not where its requests come from, as behind NAT.
    line.push("--node-ip=192.0.2.7".to_owned());
    machine.start(&line, "n1");
    machine.says("serving with a certificate for the node's name alone");
    let mut node = cluster.get("/api/v1/nodes/n1");
    node["metadata"]["annotations"]["kennel.dev/confirmed-addresses"] = "192.0.2.7".into();
    eventually(Deadline::seconds(30), || {
        let version = cluster.get("/api/v1/nodes/n1")["metadata"]["resourceVersion"].clone();
        node["metadata"]["resourceVersion"] = version;
        let reply = cluster
            .admin
            .ask("PUT", "/api/v1/nodes/n1", node.to_string().as_bytes());
        (reply.code == 200).then_some(()).ok_or(reply.text())
    });
    machine.says("got a new serving certificate");
}
