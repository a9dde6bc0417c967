//! What a container gets: environment, volumes, security context, DNS. Inspected from inside the container.

use kennel_testkit::machine::Image;
use kennel_testkit::{Deadline, eventually};

use super::fleet::{Engine, Fleet, TIMEOUT, is_ready};

#[test]
fn what_containers_get() {
    if !kennel_testkit::machine::possible() {
        return;
    }
    let image = Image::new("kennel.test/app:1");
    let told = ["--cluster-dns=10.96.0.10"];
    let fleet = Fleet::with(Engine::Containerd, 1, &[image], &told);
    fleet.apply(THINGS);
    let host = tempfile::tempdir().unwrap();
    std::fs::write(host.path().join("of-the-host"), "yes").unwrap();
    fleet.apply(&POD.replace("THE-HOST", host.path().to_str().unwrap()));
    fleet.apply(HOST_POD);
    fleet.pod("given", is_ready);
    let inside = Inside { fleet: &fleet };
    environment(&inside);
    volumes(&inside, host.path());
    rights(&inside);
    names(&inside);
    changes_arrive(&inside);
    the_host_s(&inside);
}

const THINGS: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: blue, size: "3"}
---
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {password: hush}
"#;

const POD: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: given, labels: {app: given, tier: "1"}, annotations: {note: hello}}
spec:
  hostname: dog
  subdomain: pound
  terminationGracePeriodSeconds: 0
  hostAliases: [{ip: 192.0.2.7, hostnames: [cat, mouse]}]
  securityContext: {fsGroup: 2000, supplementalGroups: [3000], seccompProfile: {type: RuntimeDefault}}
  volumes:
  - {name: host, hostPath: {path: THE-HOST, type: Directory}}
  - {name: made, hostPath: {path: THE-HOST/made/here, type: DirectoryOrCreate}}
  - {name: disk, emptyDir: {}}
  - {name: memory, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
  - {name: settings, configMap: {name: settings, items: [{key: colour, path: paint/colour}], defaultMode: 0440}}
  - {name: all, configMap: {name: settings}}
  - {name: keys, secret: {secretName: keys, defaultMode: 0400}}
  - {name: about, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}, {path: cpu, resourceFieldRef: {containerName: c, resource: limits.cpu, divisor: 1m}}]}}
  - {name: mixed, projected: {sources: [{secret: {name: keys}}, {configMap: {name: settings, items: [{key: size, path: size}]}}, {serviceAccountToken: {path: token, audience: vault, expirationSeconds: 600}}]}}
  containers:
  - name: c
    image: kennel.test/app:1
    command: [sh, -c, "echo $0 $1; exec sleep infinity"]
    args: ["$(COLOUR)", "$$(COLOUR)"]
    workingDir: /tmp
    envFrom: [{configMapRef: {name: settings}, prefix: S_}]
    env:
    - {name: PLAIN, value: plain}
    - {name: COLOUR, valueFrom: {configMapKeyRef: {name: settings, key: colour}}}
    - {name: PASSWORD, valueFrom: {secretKeyRef: {name: keys, key: password}}}
    - {name: ABSENT, valueFrom: {secretKeyRef: {name: keys, key: nothing, optional: true}}}
    - {name: EXPANDED, value: "$(PLAIN)-$(COLOUR)-$$(PLAIN)-$(UNKNOWN)"}
    - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
    - {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
    - {name: HOST_IP, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}
    - {name: TIER, valueFrom: {fieldRef: {fieldPath: "metadata.labels['tier']"}}}
    - {name: MEMORY, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}
    resources: {limits: {cpu: 250m, memory: 64Mi}}
    securityContext: {runAsUser: 1000, runAsGroup: 1001, readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    volumeMounts:
    - {name: host, mountPath: /host, readOnly: true}
    - {name: made, mountPath: /made}
    - {name: disk, mountPath: /tmp}
    - {name: disk, mountPath: /sub, subPath: part/of}
    - {name: disk, mountPath: /named, subPathExpr: $(POD)}
    - {name: memory, mountPath: /memory}
    - {name: settings, mountPath: /settings}
    - {name: all, mountPath: /all}
    - {name: keys, mountPath: /keys}
    - {name: about, mountPath: /about}
    - {name: mixed, mountPath: /mixed}
"#;

const HOST_POD: &str = r"
apiVersion: v1
kind: Pod
metadata: {name: of-the-host}
spec:
  hostNetwork: true
  hostPID: true
  dnsPolicy: ClusterFirstWithHostNet
  terminationGracePeriodSeconds: 0
  containers:
  - name: c
    image: kennel.test/app:1
    command: [sleep, infinity]
    securityContext: {privileged: true}
";

struct Inside<'a> {
    fleet: &'a Fleet,
}

impl Inside<'_> {
    fn says(&self, pod: &str, script: &str) -> String {
        // Errors by way of stdout: what kubectl itself complains of (its 1.32 may hear of a stream before it knows
        // it, and says so) is none of the pod's.
        let script = format!("exec 2>&1\n{script}");
        let exec = ["exec", pod, "--", "sh", "-c", &script];
        self.fleet.kubectl.run(&exec).stdout
    }

    #[track_caller]
    fn check(&self, script: &str, expected: &str) {
        assert_eq!(self.says("given", script).trim_end(), expected, "{script}");
    }
}

fn environment(inside: &Inside<'_>) {
    let check = |name: &str, expected: &str| inside.check(&format!("echo \"${name}\""), expected);
    check("PLAIN", "plain");
    check("COLOUR", "blue");
    check("PASSWORD", "hush");
    check("ABSENT", "");
    check("EXPANDED", "plain-blue-$(PLAIN)-$(UNKNOWN)");
    check("POD", "given");
    check("NODE", "machine-1");
    check("TIER", "1");
    check("MEMORY", "64");
    check("S_colour", "blue");
    let machine = &inside.fleet.machines[0];
    check("HOST_IP", &machine.address().to_string());
    check(
        "KUBERNETES_SERVICE_HOST",
        &machine.network().gateway().to_string(),
    );
    let port = inside.fleet.server.address().port();
    check("KUBERNETES_SERVICE_PORT", &port.to_string());
    let pod = inside.fleet.get(&["pod", "given"]).unwrap();
    check("IP", pod["status"]["podIP"].as_str().unwrap());
    let logs = inside.fleet.kubectl.run(&["logs", "given"]).ok();
    assert_eq!(logs, "blue $(COLOUR)\n");
    inside.check("pwd", "/tmp");
}

fn volumes(inside: &Inside<'_>, host: &std::path::Path) {
    inside.check("cat /host/of-the-host", "yes");
    let refused = inside.says("given", "touch /host/x");
    assert!(refused.contains("Read-only file system"), "{refused}");
    assert!(host.join("made/here").is_dir());
    inside.check("echo x > /sub/file; cat /tmp/part/of/file", "x");
    inside.check("echo y > /named/file; cat /tmp/given/file", "y");
    inside.check("stat -f -c %T /memory", "tmpfs");
    let full = inside.says("given", "dd if=/dev/zero of=/memory/x bs=1M count=3");
    assert!(full.contains("No space left"), "{full}");
    inside.check("cat /settings/paint/colour", "blue");
    inside.check("ls /settings", "paint");
    inside.check("cat /keys/password", "hush");
    inside.check("stat -L -c %a /settings/paint/colour", "440");
    inside.check("stat -L -c %g /keys/password", "2000");
    inside.check("cat /about/labels", "app=\"given\"\ntier=\"1\"");
    inside.check("cat /about/cpu", "250");
    inside.check("cat /mixed/password /mixed/size", "hush3");
    inside.check("cut -d. -f3 /mixed/token | wc -l", "1");
    inside.check(
        "ls /var/run/secrets/kubernetes.io/serviceaccount",
        "ca.crt\nnamespace\ntoken",
    );
    inside.check(
        "cat /var/run/secrets/kubernetes.io/serviceaccount/namespace",
        "default",
    );
}

fn rights(inside: &Inside<'_>) {
    inside.check("id -u; id -g", "1000\n1001");
    inside.check("id -G", "1001 2000 3000");
    inside.check("stat -c %g /tmp", "2000");
    inside.check("grep NoNewPrivs /proc/self/status | cut -f2", "1");
    inside.check("grep Seccomp: /proc/self/status | cut -f2", "2");
    inside.check(
        "grep CapEff /proc/self/status | cut -f2",
        "0000000000000000",
    );
    let refused = inside.says("given", "touch /x");
    assert!(refused.contains("Read-only file system"), "{refused}");
}

fn names(inside: &Inside<'_>) {
    inside.check("hostname", "dog");
    inside.check("grep cat /etc/hosts", "192.0.2.7\tcat\tmouse");
    inside.check(
        "grep -c dog.pound.default.svc.cluster.local /etc/hosts",
        "1",
    );
    inside.check("grep nameserver /etc/resolv.conf", "nameserver 10.96.0.10");
    inside.check(
        "grep search /etc/resolv.conf | cut -d' ' -f2-4",
        "default.svc.cluster.local svc.cluster.local cluster.local",
    );
}

/// What has changed is seen by those that run, whole, without a restart.
fn changes_arrive(inside: &Inside<'_>) {
    let patch = r#"{"data":{"colour":"red"}}"#;
    let patch = ["patch", "configmap", "settings", "-p", patch];
    inside.fleet.kubectl.run(&patch).ok();
    eventually(Deadline::seconds(TIMEOUT), || {
        let seen = inside.says("given", "cat /settings/paint/colour /all/colour");
        (seen == "redred").then_some(()).ok_or(seen)
    });
    let label = ["label", "pod", "given", "tier=2", "--overwrite"];
    inside.fleet.kubectl.run(&label).ok();
    eventually(Deadline::seconds(TIMEOUT), || {
        let seen = inside.says("given", "cat /about/labels");
        seen.contains("tier=\"2\"").then_some(()).ok_or(seen)
    });
    inside.check("echo $COLOUR", "blue");
}

fn the_host_s(inside: &Inside<'_>) {
    let pod = inside.fleet.pod("of-the-host", is_ready);
    let address = inside.fleet.machines[0].address().to_string();
    assert_eq!(pod["status"]["podIP"], address);
    let says = |script| inside.says("of-the-host", script);
    let seen = says("cat /proc/1/comm");
    assert_eq!(seen, std::fs::read_to_string("/proc/1/comm").unwrap());
    let servers = says("grep nameserver /etc/resolv.conf");
    assert_eq!(servers, "nameserver 10.96.0.10\n");
    let devices = says("ls /dev | wc -l").trim().parse::<u32>().unwrap();
    assert!(
        devices > 20,
        "a privileged container has the machine's devices"
    );
}
