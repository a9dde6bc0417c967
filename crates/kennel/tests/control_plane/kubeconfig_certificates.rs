//! The client certificates of the kubeconfigs of programs that run for long, which nobody renews: their end is warned of.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kennel_testkit::{Access, Controller, Deadline, Kennel, eventually};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair};
use serde_json::json;

const BINARY: &str = env!("CARGO_BIN_EXE_kennel");
const DAY: Duration = Duration::from_hours(24);
const WARNING: &str = "the client certificate of the kubeconfig expires in 10 days";

/// A server, and a kubeconfig with an administrator's certificate that ends in ten days.
struct Fixture {
    kennel: Kennel,
    kubeconfig: PathBuf,
    end: SystemTime,
}

impl Fixture {
    fn new() -> Self {
        let kennel = Kennel::start(
            BINARY,
            &["up", "--nodes=0", "--controllers=*,-daemonset-controller"],
        );
        let pki = kennel.data_dir().join("pki");
        let read = |name: &str| fs::read_to_string(pki.join(name)).unwrap();
        let authority = KeyPair::from_pem(&read("ca.key")).unwrap();
        let authority = Issuer::from_ca_cert_pem(&read("ca.crt"), authority).unwrap();
        let mut params = CertificateParams::default();
        let subject = &mut params.distinguished_name;
        subject.push(DnType::OrganizationName, "system:masters");
        subject.push(DnType::CommonName, "somebody");
        let now = SystemTime::now();
        let end = now + 10 * DAY + Duration::from_hours(1);
        (params.not_before, params.not_after) = ((now - 355 * DAY).into(), end.into());
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let signed = params.signed_by(&key, &authority).unwrap();
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {
                "server": format!("https://{}", kennel.address()),
                "certificate-authority-data": STANDARD.encode(read("ca.crt"))}}],
            "users": [{"name": "u", "user": {
                "client-certificate-data": STANDARD.encode(signed.pem()),
                "client-key-data": STANDARD.encode(key.serialize_pem())}}],
        });
        let kubeconfig = kennel.data_dir().join("somebody.kubeconfig");
        fs::write(&kubeconfig, config.to_string()).unwrap();
        Self {
            kennel,
            kubeconfig,
            end,
        }
    }

    /// Runs a verb of the program with this kubeconfig until its log warns.
    fn warns(&self, arguments: &[&str]) {
        let log = self.kennel.data_dir().join("log");
        let program = Program::start(arguments, &self.kubeconfig, &log);
        eventually(Deadline::seconds(60), || {
            let log = fs::read_to_string(&log).unwrap();
            log.contains(WARNING).then_some(()).ok_or(log)
        });
        drop(program);
    }
}

struct Program(Child);

impl Program {
    fn start(arguments: &[&str], kubeconfig: &Path, log: &Path) -> Self {
        let mut command = Command::new(BINARY);
        command
            .args(arguments)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(log).unwrap());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn a_controller_warns_in_its_log_a_metric_and_an_event() {
    let fixture = Fixture::new();
    let controller = Controller::start(BINARY, &fixture.kubeconfig, &[]);
    controller.wait_for(WARNING);
    controller.wait_for("became leader");
    let end = fixture.end.duration_since(SystemTime::UNIX_EPOCH);
    let end = end.unwrap().as_secs();
    let line = format!("kennel_kubeconfig_certificate_expiration_timestamp_seconds {end}\n");
    let metrics = controller.get("/metrics");
    assert!(metrics.contains(&line), "{metrics}");

    let admin = Access::admin(fixture.kennel.address(), &fixture.kennel.data_dir());
    let path = "/api/v1/namespaces/kube-system/events?fieldSelector=reason%3DCertificateExpiring";
    let event = eventually(Deadline::seconds(30), || {
        let events = admin.ask("GET", path, b"").json();
        let event = events["items"].get(0).cloned();
        event.ok_or("no event")
    });
    assert_eq!(event["type"], "Warning");
    let about = &event["involvedObject"];
    assert_eq!(about["kind"], "Lease");
    assert_eq!(about["name"], "kennel-daemonset-controller");
    let message = event["message"].as_str().unwrap();
    assert!(message.starts_with(WARNING), "{message}");
}

#[test]
fn a_dns_server_and_a_dashboard_warn_in_their_logs() {
    let fixture = Fixture::new();
    fixture.warns(&["dns", "--dns-listen=127.0.0.1:0"]);
    fixture.warns(&["dashboard", "--no-open", "--listen=127.0.0.1:0"]);
}
