//! Names, through a real resolver (`dig`, of bind9-dnsutils): headless services, the daemon on each node, and
//! what happens while the API is away.
use std::fs::File;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use kennel_testkit::{Access, Deadline, Kennel, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_kennel");

/// Where the names are answered, as the log says.
fn listening(log: &str) -> Result<u16, String> {
    let line = log.lines().find(|line| line.contains("serving DNS for"));
    let port = line.and_then(|line| line.rsplit(':').next()?.trim().parse().ok());
    port.ok_or_else(|| log.to_owned())
}

/// What dig prints for these arguments, sorted.
fn dig(port: u16, arguments: &[&str]) -> Vec<String> {
    let output = Command::new("dig")
        .args(["@127.0.0.1", "-p", &port.to_string()])
        .args(["+tries=1", "+time=5"])
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("dig is missing: run scripts/packages.sh ({error})"));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn short(port: u16, name: &str, kind: &str) -> Vec<String> {
    dig(port, &["+short", &format!("{name}.cluster.local"), kind])
}

/// The status that dig shows: `NOERROR`, say.
fn status(port: u16, name: &str, kind: &str) -> String {
    let lines = dig(port, &[name, kind]).join("\n");
    let (_, rest) = lines.split_once("status: ").unwrap_or(("", "none,"));
    rest.split(',').next().unwrap().to_owned()
}

fn post(admin: &Access, path: &str, body: &Value) {
    let made = admin.ask("POST", path, body.to_string().as_bytes());
    assert_eq!(made.code, 201, "{}", made.text());
}

/// A DaemonSet on every node, and a headless service for it.
fn daemons(admin: &Access) {
    let labels = json!({"app": "agent"});
    let ports = json!([{"name": "metrics", "containerPort": 9100}]);
    let daemon_set = json!({
        "metadata": {"name": "agent"},
        "spec": {"selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "c", "image": "i", "ports": ports}]}}}});
    post(
        admin,
        "/apis/apps/v1/namespaces/default/daemonsets",
        &daemon_set,
    );
    let service = json!({
        "metadata": {"name": "agent"},
        "spec": {"clusterIP": "None", "selector": labels,
                 "ports": [{"name": "metrics", "port": 80, "targetPort": "metrics"}]}});
    post(admin, "/api/v1/namespaces/default/services", &service);
}

/// The addresses of the daemons, by node.
fn pods(admin: &Access) -> Vec<(String, String)> {
    let list = admin
        .ask("GET", "/api/v1/namespaces/default/pods", b"")
        .json();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let pods = list["items"].as_array().unwrap().iter();
    let mut pods: Vec<(String, String)> = pods
        .map(|pod| {
            (
                text(&pod["spec"]["nodeName"]),
                text(&pod["status"]["podIP"]),
            )
        })
        .collect();
    pods.sort();
    pods
}

/// Waits until the service leads to so many daemons.
fn lead_to(port: u16, count: usize) {
    eventually(Deadline::seconds(60), || {
        let found = short(port, "agent.default.svc", "A");
        (found.len() == count)
            .then_some(())
            .ok_or(format!("{found:?}"))
    });
}

#[test]
fn services_pods_and_the_daemon_on_each_node_have_names() {
    let arguments = ["up", "--simulate", "3", "--dns-listen", "127.0.0.1:0"];
    let kennel = Kennel::start(BINARY, &arguments);
    let admin = Access::admin(kennel.address(), &kennel.data_dir());
    let port = eventually(Deadline::seconds(30), || listening(&kennel.log()));
    daemons(&admin);
    lead_to(port, 3);
    let pods = pods(&admin);
    let mut all: Vec<String> = pods.iter().map(|(_, address)| address.clone()).collect();
    all.sort();
    assert_eq!(short(port, "agent.default.svc", "A"), all);
    for (node, address) in &pods {
        let name = format!("{node}.agent.default.svc");
        assert_eq!(short(port, &name, "A"), [address.as_str()], "{name}");
        let upper = format!("{}.AGENT.default.svc", node.to_uppercase());
        assert_eq!(short(port, &upper, "A"), [address.as_str()]);
    }
    let ports = short(port, "_metrics._tcp.agent.default.svc", "SRV");
    assert_eq!(ports.len(), 3);
    assert!(ports[0].starts_with("0 100 9100 10-0-"), "{ports:?}");
    let reverse = dig(port, &["+short", "-x", &all[0]]);
    let dashed = all[0].replace('.', "-");
    assert_eq!(
        reverse,
        [format!("{dashed}.agent.default.svc.cluster.local.")]
    );
    // The API's own service has an address.
    let own = admin.ask("GET", "/api/v1/namespaces/default/services/kubernetes", b"");
    let own = own.json()["spec"]["clusterIP"].as_str().unwrap().to_owned();
    assert_eq!(short(port, "kubernetes.default.svc", "A"), [own.as_str()]);
    assert_eq!(
        dig(
            port,
            &["+short", "+tcp", "kubernetes.default.svc.cluster.local"]
        ),
        [own]
    );
    let name = |name: &str| format!("{name}.cluster.local");
    assert_eq!(status(port, &name("agent.default.svc"), "AAAA"), "NOERROR");
    assert_eq!(status(port, &name("other.default.svc"), "A"), "NXDOMAIN");
    assert_eq!(
        status(port, &name("sim-9.agent.default.svc"), "A"),
        "NXDOMAIN"
    );
    // A daemon that goes takes its name along.
    let (node, _) = &pods[1];
    let path = format!("/api/v1/nodes/{node}");
    let cordoned = json!({"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}});
    let current = admin.ask("GET", &path, b"").json();
    let mut tainted = current.clone();
    tainted["spec"]["taints"] = cordoned["spec"]["taints"].clone();
    assert_eq!(
        admin.ask("PUT", &path, tainted.to_string().as_bytes()).code,
        200
    );
    lead_to(port, 2);
    assert_eq!(
        status(port, &name(&format!("{node}.agent.default.svc")), "A"),
        "NXDOMAIN"
    );
    assert!(!kennel.log().contains("forbidden"), "{}", kennel.log());
}

/// `kennel dns` as a process of its own.
struct Names {
    child: Child,
    dir: TempDir,
}

impl Names {
    fn start(kubeconfig: &Path) -> Self {
        let dir = TempDir::new().unwrap();
        let log = File::create(dir.path().join("log")).unwrap();
        let child = Command::new(BINARY)
            .args([
                "dns",
                "--dns-listen",
                "127.0.0.1:0",
                "--dns-upstream",
                "127.0.0.1:1",
            ])
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        Self { child, dir }
    }

    fn port(&self) -> u16 {
        let log = || std::fs::read_to_string(self.dir.path().join("log")).unwrap();
        eventually(Deadline::seconds(30), || listening(&log()))
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn names_are_answered_while_the_api_is_away() {
    let mut kennel = Kennel::up(BINARY, 2);
    let admin = Access::admin(kennel.address(), &kennel.data_dir());
    daemons(&admin);
    let names = Names::start(&kennel.kubeconfig());
    let port = names.port();
    lead_to(port, 2);
    kennel.kill();
    assert_eq!(short(port, "agent.default.svc", "A").len(), 2);
    assert_eq!(short(port, "sim-1.agent.default.svc", "A").len(), 1);
    assert_eq!(
        status(port, "nothing.default.svc.cluster.local", "A"),
        "NXDOMAIN"
    );
    // There is no upstream resolver.
    assert_eq!(status(port, "example.com", "A"), "SERVFAIL");
}

/// The first address and the port of a slice of the server's.
fn endpoint(admin: &Access, namespace: &str, name: &str) -> Option<SocketAddr> {
    let path = format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices/{name}");
    let slice = admin.ask("GET", &path, b"").json();
    let ip: IpAddr = slice["endpoints"][0]["addresses"][0]
        .as_str()?
        .parse()
        .ok()?;
    let port = slice["ports"][0]["port"].as_u64()?;
    Some(SocketAddr::new(ip, port.try_into().ok()?))
}

/// Whether this machine has an address that others could reach. If not, the test counts as skipped.
fn has_network() -> bool {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    let found = socket.connect("198.51.100.1:9").is_ok();
    if !found {
        kennel_test_support::skip("needs a default route");
    }
    found
}

/// What dig prints for a name of the cluster, asked at this address.
fn ask(server: SocketAddr, name: &str) -> String {
    let output = Command::new("dig")
        .arg(format!("@{}", server.ip()))
        .args(["-p", &server.port().to_string()])
        .args(["+tries=1", "+time=5", "+short", name])
        .output()
        .unwrap_or_else(|error| panic!("dig is missing: run scripts/packages.sh ({error})"));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

const API: &str = "kubernetes.default.svc.cluster.local";

#[test]
fn n3_every_server_answers_for_names_without_a_flag() {
    if !has_network() {
        return;
    }
    for verb in [&["server"][..], &["up", "--nodes", "0"]] {
        let kennel = Kennel::start(BINARY, verb);
        let admin = Access::admin(kennel.address(), &kennel.data_dir());
        let path = "/api/v1/namespaces/kube-system/services/kube-dns";
        let service = admin.ask("GET", path, b"").json();
        assert_eq!(service["spec"]["clusterIP"], "10.96.0.10", "{verb:?}");
        let server = endpoint(&admin, "kube-system", "kube-dns").unwrap();
        assert!(!server.ip().is_loopback(), "{server}");
        assert_ne!(server.port(), 53);
        eventually(Deadline::seconds(30), || match ask(server, API) {
            found if found == "10.96.0.1" => Ok(()),
            found => Err(found),
        });
        assert!(!kennel.log().contains("forbidden"), "{}", kennel.log());
    }
}

#[test]
fn n3_two_servers_on_one_machine_both_answer() {
    if !has_network() {
        return;
    }
    let servers = [(); 2].map(|()| Kennel::start(BINARY, &["server"]));
    let found = servers.each_ref().map(|kennel| {
        let admin = Access::admin(kennel.address(), &kennel.data_dir());
        endpoint(&admin, "kube-system", "kube-dns").unwrap()
    });
    assert_ne!(found[0], found[1]);
    for server in found {
        eventually(Deadline::seconds(30), || match ask(server, API) {
            found if found == "10.96.0.1" => Ok(()),
            found => Err(found),
        });
    }
}

#[test]
fn n3_names_can_be_switched_off() {
    let kennel = Kennel::start(BINARY, &["server", "--dns-listen", "off"]);
    let admin = Access::admin(kennel.address(), &kennel.data_dir());
    let path = "/api/v1/namespaces/kube-system/services/kube-dns";
    assert_eq!(admin.ask("GET", path, b"").code, 404);
    assert!(!kennel.log().contains("serving DNS"), "{}", kennel.log());
}

/// Pods cannot reach 127.0.0.1 of their machine. The certificate has the names of the Service.
#[test]
fn n2_6_a_server_on_the_loopback_interface_serves_pods_at_the_machines_address() {
    if !has_network() {
        return;
    }
    let kennel = Kennel::start(BINARY, &["server"]);
    assert!(kennel.address().ip().is_loopback());
    let admin = Access::admin(kennel.address(), &kennel.data_dir());
    let api = endpoint(&admin, "default", "kubernetes").unwrap();
    assert_eq!(api.port(), kennel.address().port());
    assert!(!api.ip().is_loopback(), "{api}");
    for host in ["kubernetes.default.svc", "kubernetes", API] {
        let output = Command::new("curl")
            .arg("--silent")
            .arg("--cacert")
            .arg(kennel.data_dir().join("pki/ca.crt"))
            .args(["--connect-to", &format!("{host}:443:{api}")])
            .arg(format!("https://{host}/version"))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("gitVersion"), "{host}: {output:?}");
    }
    let off = Kennel::start(BINARY, &["server", "--advertise-address", "off"]);
    let admin = Access::admin(off.address(), &off.data_dir());
    assert_eq!(endpoint(&admin, "default", "kubernetes"), None);
}
