//! A server under test, and a check that it still works afterwards.

use kennel_testkit::{Access, Kennel, Reply};
use serde_json::{Value, json};

pub(crate) const KENNEL: &str = env!("CARGO_BIN_EXE_kennel");
pub(crate) const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A server with this read timeout.
pub(crate) const TIMEOUT_SECONDS: u64 = 1;

/// The DNS server in a server's process has watches of its own, which tests that count watches do not expect.
const NO_DNS: &str = "--dns-listen=off";

/// A server and the administrator's access to it.
pub(crate) struct Fixture {
    pub(crate) kennel: Kennel,
    pub(crate) admin: Access,
}

/// A server with the patience of every day.
pub(crate) fn server() -> Fixture {
    Fixture::of(Kennel::start(KENNEL, &["server", NO_DNS]))
}

/// A server with little patience.
pub(crate) fn impatient() -> Fixture {
    let seconds = TIMEOUT_SECONDS.to_string();
    Fixture::of(Kennel::start(
        KENNEL,
        &["server", NO_DNS, "--patience-seconds", &seconds],
    ))
}

impl Fixture {
    pub(crate) fn of(kennel: Kennel) -> Self {
        let admin = Access::admin(kennel.address(), &kennel.data_dir());
        Self { kennel, admin }
    }

    /// A client without credentials.
    pub(crate) fn stranger(&self) -> Access {
        Access::stranger(self.kennel.address(), &self.kennel.data_dir())
    }

    /// It is ready, takes an object, shows it and lets it go; and it has not panicked on the way here.
    pub(crate) fn is_well(&self, after: &str) {
        let ready = self.admin.ask("GET", "/readyz", b"");
        assert_eq!((ready.code, ready.text().as_str()), (200, "ok"), "{after}");
        let created = self.create("well", "yes");
        assert_eq!(created.code, 201, "{after}: {}", created.text());
        let path = format!("{CONFIGMAPS}/well");
        let shown = self.admin.ask("GET", &path, b"");
        assert_eq!(shown.json()["data"]["value"], "yes", "{after}");
        assert_eq!(self.admin.ask("DELETE", &path, b"").code, 200, "{after}");
        let log = self.kennel.log();
        assert!(!log.contains("panicked"), "{after}: {log}");
    }

    pub(crate) fn create(&self, name: &str, value: &str) -> Reply {
        self.admin.ask("POST", CONFIGMAPS, &configmap(name, value))
    }
}

/// A ConfigMap with one value.
pub(crate) fn configmap(name: &str, value: &str) -> Vec<u8> {
    let object = json!({"metadata": {"name": name}, "data": {"value": value}});
    object.to_string().into_bytes()
}

/// A refusal: its code, as HTTP and the Status in the body agree on it, and its reason.
pub(crate) fn refusal(reply: &Reply) -> (u16, String) {
    let status: Value = reply.json();
    let text = reply.text();
    assert_eq!(status["kind"], "Status", "{} {text}", reply.code);
    assert_eq!(status["apiVersion"], "v1", "{text}");
    assert_eq!(status["status"], "Failure", "{text}");
    assert_eq!(status["code"], reply.code, "{text}");
    assert_ne!(status["message"].as_str().unwrap_or_default(), "", "{text}");
    let reason = status["reason"].as_str().expect("a Status has a reason");
    (reply.code, reason.to_owned())
}
