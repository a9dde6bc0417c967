//! TLS to a real etcd with client certificates, and users with passwords.

use std::path::{Path, PathBuf};

use kennel_store::{EtcdError, EtcdOptions, EtcdStore, EtcdTls, EtcdUser};
use kennel_test_support::Etcd;
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use crate::common::{Head, create, decode, etcd_options, value};
use crate::etcd::open;

/// An authority whose certificates are files.
struct Authority {
    dir: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(dir: &Path, name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let dir = dir.join(name);
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join("ca.pem"), certificate.pem()).unwrap();
        Self {
            dir,
            issuer: Issuer::new(params, key),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Makes these the files of another authority.
    fn replace_files_of(&self, other: &Self, names: &[&str]) {
        for name in names {
            std::fs::copy(self.file(name), other.file(name)).unwrap();
        }
    }

    /// Writes a certificate for this machine, and its key.
    fn issue(&self, name: &str) -> (PathBuf, PathBuf) {
        let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
        let mut params = CertificateParams::new(names).unwrap();
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let files = (
            self.file(&format!("{name}.pem")),
            self.file(&format!("{name}.key")),
        );
        std::fs::write(&files.0, certificate.pem()).unwrap();
        std::fs::write(&files.1, key.serialize_pem()).unwrap();
        files
    }
}

async fn refusal(options: EtcdOptions) -> EtcdError {
    match EtcdStore::<Head>::open(options, decode).await {
        Ok(_) => panic!("the store opened"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn etcd_and_the_server_show_each_other_certificates() {
    let dir = tempfile::tempdir().unwrap();
    let ours = Authority::new(dir.path(), "ours");
    let others = Authority::new(dir.path(), "others");
    let server = ours.issue("server");
    let flag = |name: &str, file: &Path| format!("--{name}={}", file.display());
    let arguments = [
        flag("cert-file", &server.0),
        flag("key-file", &server.1),
        flag("trusted-ca-file", &ours.file("ca.pem")),
        "--client-cert-auth".to_owned(),
    ];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some(etcd) = Etcd::start_with(&arguments) else {
        return;
    };
    let with = |authority: &Authority, client: Option<(PathBuf, PathBuf)>| EtcdOptions {
        tls: Some(EtcdTls {
            ca_file: authority.file("ca.pem"),
            client,
        }),
        ..etcd_options(&etcd)
    };
    let store = open(with(&ours, Some(ours.issue("client")))).await;
    create(&store, "/a/x", "over TLS").await.unwrap();
    store.close().await;
    let store = open(with(&ours, Some(ours.issue("another")))).await;
    assert_eq!(value(&store, "/a/x").as_deref(), Some("over TLS"));
    store.close().await;

    let unknown = refusal(with(&others, Some(ours.issue("client"))))
        .await
        .to_string();
    assert!(unknown.contains("certificate"), "{unknown}");
    let unproven = refusal(with(&ours, None)).await;
    assert!(matches!(unproven, EtcdError::Unreachable(_)), "{unproven}");
    let missing = refusal(EtcdOptions {
        tls: Some(EtcdTls {
            ca_file: dir.path().join("none.pem"),
            client: None,
        }),
        ..etcd_options(&etcd)
    })
    .await;
    assert!(missing.to_string().contains("none.pem"), "{missing}");
}

#[tokio::test]
async fn renewed_files_are_used_by_the_next_connection() {
    let dir = tempfile::tempdir().unwrap();
    let used = Authority::new(dir.path(), "used");
    let next = Authority::new(dir.path(), "next");
    let (server, client) = (used.issue("server"), used.issue("client"));
    next.issue("server");
    next.issue("client");
    let flag = |name: &str, file: &Path| format!("--{name}={}", file.display());
    let arguments = [
        flag("cert-file", &server.0),
        flag("key-file", &server.1),
        flag("trusted-ca-file", &used.file("ca.pem")),
        "--client-cert-auth".to_owned(),
    ];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some(mut etcd) = Etcd::start_with(&arguments) else {
        return;
    };
    let store = open(EtcdOptions {
        tls: Some(EtcdTls {
            ca_file: used.file("ca.pem"),
            client: Some(client),
        }),
        ..etcd_options(&etcd)
    })
    .await;
    create(&store, "/a/x", "1").await.unwrap();
    etcd.kill();
    // Neither side accepts the earlier certificates any more.
    let all = [
        "ca.pem",
        "server.pem",
        "server.key",
        "client.pem",
        "client.key",
    ];
    next.replace_files_of(&used, &all);
    etcd.restart();
    let started = std::time::Instant::now();
    while store.confirm().await.is_err() {
        assert!(started.elapsed().as_secs() < 60, "{:?}", store.health());
    }
    create(&store, "/a/y", "2").await.unwrap();
    store.close().await;
}

#[tokio::test]
async fn a_user_logs_in_and_again_when_its_token_is_forgotten() {
    let Some(mut etcd) = Etcd::start_in_memory() else {
        return;
    };
    etcd.ctl(&["user", "add", "root:secret"]);
    etcd.ctl(&["user", "grant-role", "root", "root"]);
    etcd.ctl(&["auth", "enable"]);
    let user = |password: &str| EtcdOptions {
        user: Some(EtcdUser {
            name: "root".to_owned(),
            password: password.to_owned(),
        }),
        ..etcd_options(&etcd)
    };
    let wrong = refusal(user("wrong")).await.to_string();
    assert!(wrong.contains("authentication failed"), "{wrong}");
    let nobody = refusal(etcd_options(&etcd)).await.to_string();
    assert!(nobody.contains("user name is empty"), "{nobody}");
    let store = open(user("secret")).await;
    create(&store, "/a/x", "1").await.unwrap();
    // Etcd's simple tokens do not survive it.
    etcd.kill();
    etcd.restart();
    let started = std::time::Instant::now();
    while store.confirm().await.is_err() {
        assert!(started.elapsed().as_secs() < 60, "{:?}", store.health());
    }
    create(&store, "/a/y", "2").await.unwrap();
    assert_eq!(value(&store, "/a/x").as_deref(), Some("1"));
}
