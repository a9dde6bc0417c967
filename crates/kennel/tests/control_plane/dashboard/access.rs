//! Access to the dashboard, and what other sites can make a browser do.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use kennel_testkit::{Dashboard, Deadline, eventually};
use rcgen::{CertificateParams, KeyPair};
use serde_json::json;

use super::fixture::KENNEL;
use crate::why::fixture::{Fixture as Cluster, answer};

fn dashboard(flags: &[&str]) -> (Cluster, Dashboard) {
    let cluster = Cluster::new();
    let dashboard = Dashboard::start(KENNEL, &cluster.kennel.kubeconfig(), flags);
    (cluster, dashboard)
}

#[test]
fn an_address_works_once_and_leads_to_one_without_the_token() {
    let (_cluster, dashboard) = dashboard(&[]);
    let stranger = dashboard.stranger();
    let path = dashboard.address().split_once(dashboard.host()).unwrap().1;
    let opened = stranger.get(path);
    assert_eq!((opened.status, &*opened.headers["location"]), (303, "/"));
    let cookie = &opened.headers["set-cookie"];
    assert!(cookie.contains("; HttpOnly; SameSite=Strict"), "{cookie}");
    let visitor = stranger.with("Cookie", cookie.split(';').next().unwrap());
    assert_eq!(visitor.get("/api/session").status, 200);

    let again = stranger.get(path);
    assert_eq!(again.status, 303);
    assert!(!again.headers.contains_key("set-cookie"), "{again:?}");
    let refused = stranger.get("/api/session");
    assert_eq!(
        (refused.status, refused.json()["code"].clone()),
        (401, "NoSession".into())
    );

    let next = dashboard.next_address();
    let other = stranger.get(next.split_once(dashboard.host()).unwrap().1);
    assert!(other.headers.contains_key("set-cookie"), "{other:?}");
    assert_eq!(visitor.get("/api/session").status, 200, "both have access");
}

#[test]
fn the_browser_is_opened_where_there_is_a_display() {
    let cluster = Cluster::new();
    let directory = tempfile::tempdir().unwrap();
    let opened = directory.path().join("opened");
    let program = directory.path().join("xdg-open");
    // Written under another name first: the file appears with all of its text.
    let script = format!(
        "#!/bin/sh\nprintf %s \"$1\" >{0}.new && mv {0}.new {0}\n",
        opened.display()
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", directory.path().display());
    let start = |display: &str, flags: &[&str]| {
        let mut command = Command::new(KENNEL);
        command.args(["dashboard", "--listen", "127.0.0.1:0", "--kubeconfig"]);
        command.arg(cluster.kennel.kubeconfig()).args(flags);
        command.env("PATH", &path).env("DISPLAY", display);
        Dashboard::of(command.env_remove("WAYLAND_DISPLAY"))
    };
    for (display, flags) in [(":7", &["--no-open"][..]), ("", &[])] {
        let dashboard = start(display, flags);
        assert_eq!(dashboard.visitor().get("/api/session").status, 200);
        assert!(!opened.exists(), "{display} {flags:?}");
    }
    let dashboard = start(":7", &[]);
    let address = eventually(Deadline::seconds(60), || std::fs::read_to_string(&opened));
    assert_eq!(address, dashboard.address());
}

#[test]
fn requests_that_other_sites_can_cause_are_refused() {
    let (_cluster, dashboard) = dashboard(&["--allow-changes"]);
    let visitor = dashboard.visitor();
    let check = |name: &str, value: &str, path: &str, status: u16| {
        let found = visitor.with(name, value).get(path);
        assert_eq!(
            found.status,
            status,
            "{name}: {value} {path}: {}",
            found.text()
        );
    };
    check("Host", "attacker.example", "/", 421);
    check("Host", "attacker.example", "/api/session", 421);
    check("Sec-Fetch-Site", "cross-site", "/", 200);
    check("Sec-Fetch-Site", "cross-site", "/main.js", 403);
    check("Sec-Fetch-Site", "same-site", "/api/session", 403);
    check("Sec-Fetch-Site", "same-origin", "/api/session", 200);
    check("Origin", "http://127.0.0.1:1", "/api/session", 403);

    let change = "/api/daemonsets/default/agent/rollout";
    let body = json!({"verb": "pause"}).to_string();
    let own = format!("http://{}", dashboard.host());
    let check = |headers: &[(&str, &str)], status: u16| {
        let with = headers.iter();
        let visitor = with.fold(visitor.clone(), |v, (name, value)| v.with(name, value));
        let found = visitor.send("POST", change, &body);
        assert_eq!(found.status, status, "{headers:?}: {}", found.text());
    };
    let (json, form) = ("application/json", "application/x-www-form-urlencoded");
    check(&[("Content-Type", json)], 403);
    check(
        &[
            ("Content-Type", json),
            ("Origin", "http://attacker.example"),
        ],
        403,
    );
    check(&[("Content-Type", json), ("Origin", "null")], 403);
    check(&[("Content-Type", form), ("Origin", &own)], 415);
    check(&[("Content-Type", "text/plain"), ("Origin", &own)], 415);
    check(&[("Origin", &own)], 415);
    // Nothing is wrong with this one, but that there is no such DaemonSet.
    check(&[("Content-Type", json), ("Origin", &own)], 404);
    assert_eq!(
        visitor.get(change).status,
        405,
        "a link cannot change anything"
    );
}

#[test]
fn a_read_only_dashboard_changes_nothing() {
    let (cluster, dashboard) = dashboard(&[]);
    cluster.apply(json!({}), json!({}));
    let visitor = dashboard.visitor();
    assert_eq!(visitor.get("/api/session").json()["allowChanges"], false);
    let change = "/api/daemonsets/default/agent/rollout";
    let refused = visitor.post(change, &json!({"verb": "pause"}));
    assert_eq!(
        (refused.status, refused.json()["code"].clone()),
        (403, "ReadOnly".into())
    );
    let set = cluster.kubectl.get(&["ds", "agent"]).unwrap();
    assert!(
        set["metadata"]["annotations"]["rollout.kennel.dev/pause"].is_null(),
        "{set}"
    );
}

#[test]
fn the_page_loads_from_nowhere_else_and_is_framed_by_nobody() {
    let (_cluster, dashboard) = dashboard(&[]);
    let page = dashboard.stranger().get("/");
    assert_eq!(page.status, 200);
    let policy = &page.headers["content-security-policy"];
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self';"),
        "{policy}"
    );
    assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.headers["x-content-type-options"], "nosniff");
    assert_eq!(page.headers["referrer-policy"], "no-referrer");
    assert_eq!(page.headers["cross-origin-resource-policy"], "same-origin");
    let text = page.text();
    assert!(
        !text.contains("http://") && !text.contains("https://"),
        "{text}"
    );
    let script = dashboard.stranger().get("/main.js");
    assert_eq!(
        script.headers["content-type"],
        "text/javascript; charset=utf-8"
    );
    let packed = dashboard
        .stranger()
        .with("Accept-Encoding", "gzip, br")
        .get("/main.js");
    assert_eq!(packed.headers["content-encoding"], "gzip");
    assert_eq!(dashboard.stranger().get("/Cargo.toml").status, 404);
}

#[test]
fn other_machines_reach_it_over_tls_only() {
    let cluster = Cluster::new();
    let kubeconfig = cluster.kennel.kubeconfig();
    let mut command = Command::new(KENNEL);
    command.args([
        "dashboard",
        "--no-open",
        "--listen",
        "0.0.0.0:0",
        "--kubeconfig",
    ]);
    let refused = answer(command.arg(&kubeconfig));
    assert_eq!(refused.code, 1);
    assert!(
        refused.stderr.contains("needs --tls-cert and --tls-key"),
        "{}",
        refused.stderr
    );

    let made = rcgen::generate_simple_self_signed(["dash.example".to_owned()]).unwrap();
    let files = Files::new();
    files.write(&made.cert, &made.signing_key);
    let dashboard = Dashboard::of(&mut files.dashboard(&kubeconfig));
    let (origin, path) = dashboard.address().split_once("/?").unwrap();
    let port: u16 = origin
        .strip_prefix("https://dash.example:")
        .unwrap()
        .parse()
        .unwrap();
    let reply = over_tls(
        port,
        made.cert.der(),
        &format!("/?{path}"),
        &format!("dash.example:{port}"),
    );
    assert!(reply.starts_with("HTTP/1.1 303"), "{reply}");
    assert!(reply.contains("; SameSite=Strict; Secure"), "{reply}");
    let reply = over_tls(port, made.cert.der(), "/", &format!("localhost:{port}"));
    assert!(reply.starts_with("HTTP/1.1 421"), "{reply}");
}

/// The certificate and key of a dashboard, and its log.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, certificate: &rcgen::Certificate, key: &rcgen::KeyPair) {
        std::fs::write(self.path("tls.crt"), certificate.pem()).unwrap();
        std::fs::write(self.path("tls.key"), key.serialize_pem()).unwrap();
    }

    /// Starts one on a free port.
    fn dashboard(&self, kubeconfig: &Path) -> Command {
        let mut command = Command::new("sh");
        command
            .env("LOG", self.path("log"))
            .args(["-c", "exec \"$@\" 2> \"$LOG\"", "sh", KENNEL])
            .args(["dashboard", "--no-open", "--listen", "127.0.0.1:0"])
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .arg("--tls-cert")
            .arg(self.path("tls.crt"))
            .arg("--tls-key")
            .arg(self.path("tls.key"));
        command
    }
}

#[test]
fn a_replaced_certificate_is_used_without_a_restart_and_the_end_of_one_is_warned_of() {
    let cluster = Cluster::new();
    let files = Files::new();
    let day = Duration::from_hours(24);
    let now = SystemTime::now();
    let mut ending = CertificateParams::new(["old.example".to_owned()]).unwrap();
    ending.not_before = (now - 355 * day).into();
    ending.not_after = (now + 10 * day + Duration::from_hours(1)).into();
    let key = KeyPair::generate().unwrap();
    files.write(&ending.self_signed(&key).unwrap(), &key);
    let dashboard = Dashboard::of(&mut files.dashboard(&cluster.kennel.kubeconfig()));
    let (_, port) = dashboard.host().rsplit_once(':').unwrap();
    let port: u16 = port.parse().unwrap();
    eventually(Deadline::seconds(30), || {
        let log = std::fs::read_to_string(files.path("log")).unwrap();
        let warns = log.contains("the TLS certificate of the dashboard expires in 10 days");
        warns.then_some(()).ok_or(log)
    });

    let made = rcgen::generate_simple_self_signed(["dash.example".to_owned()]).unwrap();
    files.write(&made.cert, &made.signing_key);
    let next = dashboard.next_address();
    let (_, path) = next
        .split_once(&format!("https://dash.example:{port}"))
        .unwrap();
    let reply = over_tls(port, made.cert.der(), path, &format!("dash.example:{port}"));
    assert!(reply.starts_with("HTTP/1.1 303"), "{reply}");
    let reply = over_tls(port, made.cert.der(), "/", &format!("old.example:{port}"));
    assert!(reply.starts_with("HTTP/1.1 421"), "{reply}");
}

/// The head of an answer.
fn over_tls(port: u16, authority: &[u8], path: &str, host: &str) -> String {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(authority.to_vec().into()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = "dash.example".try_into().unwrap();
    let session = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let socket = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut stream = rustls::StreamOwned::new(session, socket);
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut reply = Vec::new();
    // The server may close without a word of TLS.
    let _closed = stream.read_to_end(&mut reply);
    String::from_utf8_lossy(&reply).into_owned()
}
