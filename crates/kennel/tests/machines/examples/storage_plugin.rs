//! The storage plug-in: two containers that share a socket, and mounts that the machine sees.

use super::fixture::{Fixture, wait};

const NAME: &str = "storage-plugin";
const NAMESPACE: &str = "kube-system";
const DRIVER: &str = "/var/lib/kubelet/plugins/csi-hostpath/csi.sock";
const REGISTRATION: &str = "/var/lib/kubelet/plugins_registry/hostpath.csi.k8s.io-reg.sock";
const VOLUME: &str = "/var/lib/kubelet/pods/a-pod/volumes/data";

pub(crate) fn check(fixture: &Fixture) {
    fixture.apply(NAME);
    fixture.rolled_out(NAME, NAMESPACE);
    // The machine reaches both: a kubelet would ask the first for the second.
    let registered = wait(|| ask(fixture, REGISTRATION));
    assert_eq!(registered, DRIVER);
    assert_eq!(ask(fixture, DRIVER).unwrap(), "hostpath.csi.k8s.io");
    // What the driver mounts in its container is mounted on the machine.
    let mounted = format!("mountpoint -q {VOLUME}");
    fixture.on_machine(&mounted).unwrap();
    let pod = fixture.pod(NAME, NAMESPACE);
    let logs = ["logs", "-n", NAMESPACE, &pod, "-c", "driver"];
    assert_eq!(fixture.kubectl.run(&logs).ok(), "on node machine-1\n");
    let drivers = fixture
        .kubectl
        .run(&["get", "csidrivers", "-o", "name"])
        .ok();
    assert_eq!(
        drivers.trim(),
        "csidriver.storage.k8s.io/hostpath.csi.k8s.io"
    );
    fixture.delete(NAME);
    wait(|| match fixture.on_machine(&mounted) {
        Ok(_) => Err("the volume is still mounted".to_owned()),
        Err(_) => Ok(()),
    });
    assert!(ask(fixture, DRIVER).is_err());
}

/// What answers at a socket of the machine.
fn ask(fixture: &Fixture, path: &str) -> Result<String, String> {
    let connect =
        r#"socket S, 1, 1, 0; connect S, pack "Sa108", 1, shift or die "$!\n"; print <S>"#;
    fixture.on_machine(&format!("perl -e '{connect}' {path}"))
}
