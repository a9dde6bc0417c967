//! The client certificate of a controller's kubeconfig, which nobody renews: its end is warned of.

use std::fs;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kennel_testkit::Controller;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair};
use serde_json::{Value, json};

use super::processes::{BINARY, Cluster, WITHOUT};

const DAY: Duration = Duration::from_hours(24);

#[test]
fn the_end_of_a_kubeconfigs_certificate_is_warned_of() {
    let cluster = Cluster::start(WITHOUT);
    let pki = cluster.kennel.data_dir().join("pki");
    let read = |name: &str| fs::read_to_string(pki.join(name)).unwrap();
    let authority = KeyPair::from_pem(&read("ca.key")).unwrap();
    let authority = Issuer::from_ca_cert_pem(&read("ca.crt"), authority).unwrap();
    let mut params = CertificateParams::default();
    let subject = &mut params.distinguished_name;
    subject.push(DnType::OrganizationName, "system:masters");
    subject.push(DnType::CommonName, "controller");
    let now = SystemTime::now();
    let end = now + 10 * DAY + Duration::from_hours(1);
    (params.not_before, params.not_after) = ((now - 355 * DAY).into(), end.into());
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().unwrap();
    let signed = params.signed_by(&key, &authority).unwrap();

    let config = cluster.ask("config view --raw -o json");
    let mut config: Value = serde_json::from_str(&config).unwrap();
    config["users"][0]["user"] = json!({
        "client-certificate-data": STANDARD.encode(signed.pem()),
        "client-key-data": STANDARD.encode(key.serialize_pem()),
    });
    let kubeconfig = cluster.kennel.data_dir().join("controller.kubeconfig");
    fs::write(&kubeconfig, config.to_string()).unwrap();

    let controller = Controller::start(BINARY, &kubeconfig, &[]);
    controller.wait_for("the client certificate of the kubeconfig expires in 10 days");
    controller.wait_for("became leader");
    let end = end
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let line = format!("kennel_kubeconfig_certificate_expiration_timestamp_seconds {end}\n");
    let metrics = controller.get("/metrics");
    assert!(metrics.contains(&line), "{metrics}");
}
