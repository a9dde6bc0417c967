//! The Debian package: installed, used, upgraded, removed, purged.

use std::path::Path;
use std::process::Command;

use kennel_packages::deb;
use kennel_testkit::machine;
use tempfile::TempDir;

use crate::packages::BINARY;
use crate::packages::machine::Machine;

/// A daemon that nobody else has.
const DAEMON: &str = "sleep 86461";

const DAEMON_SET: &str = r#"
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: daemon
spec:
  selector: {matchLabels: {app: daemon}}
  template:
    metadata: {labels: {app: daemon}}
    spec:
      hostNetwork: true
      containers:
      - name: daemon
        image: none
        command: [sleep, "86461"]
"#;

/// The package, and the same with a higher version, as the machine finds them.
fn packages(directory: &Path) -> (String, String) {
    let plan = deb::Options {
        binary: Path::new(BINARY),
        version: &deb::default_version(),
        compression: "none",
    };
    let old = deb::build(&plan, directory).unwrap();
    let again = "dpkg-deb -R \"$0\" tree && sed -i 's/^Version: .*/Version: 99-1/' tree/DEBIAN/control && \
                 dpkg-deb -Znone -b tree new.deb && rm -r tree";
    let made = Command::new("sh")
        .args(["-c", again])
        .arg(&old)
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let name = old.file_name().unwrap().to_str().unwrap();
    (format!("/packages/{name}"), "/packages/new.deb".to_owned())
}

/// The daemon's process.
fn daemon(machine: &Machine) -> String {
    machine.until(&format!("pgrep -nxf '{DAEMON}'"))
}

/// Makes the machine a server and its own node, with the daemon on it, as the guide says.
fn settle(machine: &Machine) -> String {
    machine.run("systemctl start kennel-server");
    // It is there when systemd says so: nothing is waited for.
    machine.run("kubectl get namespace default");
    let line = machine.run("kennel token create --data-dir /var/lib/kennel/server 2>/dev/null");
    let after = |flag: &str| {
        let mut words = line.split_whitespace().skip_while(|word| *word != flag);
        words.nth(1).unwrap().to_owned()
    };
    let (server, token, hash) = (after("--server"), after("--token"), after("--ca-hash"));
    let calm = "--node-name node-1 --node-ip 127.0.0.1 --eviction-hard=memory.available<1Mi";
    machine.run(&format!(
        "cat >>/etc/default/kennel-agent <<'END'\n\
         KENNEL_AGENT_OPTIONS=\"--server {server} --ca-hash {hash} {calm}\"\n\
         KENNEL_TOKEN={token}\nEND"
    ));
    machine.run("systemctl enable --now kennel-agent");
    machine.run(&format!("kubectl apply -f - <<'END'\n{DAEMON_SET}\nEND"));
    is_ready(machine);
    daemon(machine)
}

fn is_ready(machine: &Machine) {
    machine.until("kubectl wait --for=condition=Ready node/node-1 --timeout=1s");
    machine.until("kubectl rollout status daemonset/daemon --timeout=1s");
}

/// How systemd sees a service: `active 123` or `inactive 0`.
fn service(machine: &Machine, name: &str) -> String {
    let show = "systemctl show --value -p ActiveState -p MainPID";
    machine.run(&format!("{show} {name} | sort -r | xargs"))
}

#[test]
fn it_is_installed_upgraded_and_removed_and_daemons_do_not_notice() {
    if !machine::possible() {
        return;
    }
    let directory = TempDir::new().unwrap();
    let (old, new) = packages(directory.path());
    let machine = Machine::new(directory.path());

    machine.run(&format!("dpkg -i {old}"));
    is_sound(&machine);
    for name in ["kennel-server", "kennel-agent"] {
        assert_eq!(service(&machine, name), "inactive 0\n", "{name}");
    }
    let pid = settle(&machine);
    let (first, files) = (service(&machine, "kennel-agent"), "/etc/default/kennel-*");
    let options = machine.run(&format!("cat {files}"));

    machine.run(&format!("dpkg --force-confold -i {new}"));
    is_ready(&machine);
    let second = service(&machine, "kennel-agent");
    assert!(second.starts_with("active ") && second != first, "{second}");
    assert_eq!(daemon(&machine), pid, "a new agent has the same daemon");
    assert_eq!(machine.run(&format!("cat {files}")), options);
    let restarts = "{.items[*].status.containerStatuses[*].restartCount}";
    let restarts = machine.run(&format!("kubectl get pods -o jsonpath='{restarts}'"));
    assert_eq!(restarts, "0");

    let said = machine.run("dpkg -r kennel");
    assert!(said.contains("daemons of this machine run on"), "{said}");
    machine.run("! test -e /usr/bin/kennel && test -e /etc/default/kennel-agent");
    machine.run("! pgrep -x kennel");
    assert_eq!(daemon(&machine), pid, "it runs on without an agent");

    machine.run(&format!("dpkg -i {new}"));
    machine.run("systemctl start kennel-server kennel-agent");
    is_ready(&machine);
    assert_eq!(daemon(&machine), pid, "it was taken up again");

    machine.run("dpkg -P kennel");
    machine.until(&format!("! pgrep -xf '{DAEMON}'"));
    let places = "/etc /var/lib/kennel /usr/bin /usr/lib/systemd /var/lib/systemd /usr/share";
    let left = machine.run(&format!("find {places} -name '*kennel*'"));
    assert_eq!(left, "/var/lib/kennel\n", "a disk of its own");
    assert_eq!(machine.run("ls -A /var/lib/kennel"), "");
}

/// Files, user, units, pages and completions are as they should be.
fn is_sound(machine: &Machine) {
    let said = machine.run("kennel --version && kubectl-kennel --version");
    assert!(said.contains(kennel_packages::VERSION), "{said}");
    assert_eq!(machine.run("dpkg --verify kennel && dpkg --audit"), "");
    for (file, rights) in [
        ("/etc/default/kennel-agent", "640 root"),
        ("/usr/bin/kennel", "755 root"),
        ("/etc/kennel/manifests", "755 root"),
    ] {
        let found = machine.run(&format!("stat -c '%a %U' {file}"));
        assert_eq!(found.trim(), rights, "{file}");
    }

    // Scripts may be run again, and nothing comes of it.
    let again = "/var/lib/dpkg/info/kennel.postinst configure && getent passwd kennel";
    let user = machine.run(again);
    assert!(user.contains(":/var/lib/kennel/server:"), "{user}");

    units_are_sound(machine);

    // groff complains of what it cannot set; lines that it cannot fill are no fault.
    let pages = machine.run("ls /usr/share/man/man1/kennel*.1.gz");
    for page in pages.lines() {
        let set = format!("zcat {page} | groff -K utf8 -man -Tutf8 -ww -Wbreak 2>&1 >/dev/null");
        assert_eq!(machine.run(&set), "", "{page}");
    }
    assert!(pages.contains("/kennel-agent.1.gz"), "{pages}");
    let load = "bash -c '. /usr/share/bash-completion/completions/kennel && complete -p kennel'";
    let loaded = machine.run(load);
    assert!(loaded.ends_with(" kennel\n"), "{loaded}");
}

/// systemd understands the units, and finds the server's well protected.
fn units_are_sound(machine: &Machine) {
    let units = "/usr/lib/systemd/system/kennel-*.service";
    let verified = machine.run(&format!("systemd-analyze verify --man=no {units}"));
    assert_eq!(verified, "");
    let exposed = "systemd-analyze security --offline=true --no-pager --threshold=15";
    machine.run(&format!("{exposed} kennel-server.service"));
    for setting in ["Type=notify", "Delegate=yes", "KillMode=process"] {
        machine.run(&format!(
            "grep -qx {setting} /usr/lib/systemd/system/kennel-agent.service"
        ));
    }
}
