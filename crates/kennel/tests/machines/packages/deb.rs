//! Installs, upgrades, removes and purges the Debian package, and upgrades from that of the last release.

use std::path::{Path, PathBuf};
use std::process::Command;

use kennel_packages::deb;
use kennel_testkit::{machine, older};
use tempfile::TempDir;

use crate::packages::BINARY;
use crate::packages::systemd_machine::Machine;

/// A unique command line.
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

/// The package of this program in the directory; returns its path on the machine.
fn build_package(directory: &Path) -> (PathBuf, String) {
    let options = deb::Options {
        binary: Path::new(BINARY),
        version: &deb::default_version(),
        compression: "none",
    };
    let built = deb::build(&options, directory).unwrap();
    let name = built.file_name().unwrap().to_str().unwrap();
    let on_machine = format!("/packages/{name}");
    (built, on_machine)
}

/// The same package with a higher version.
fn repack(directory: &Path, package: &Path) -> String {
    let repack = "dpkg-deb -R \"$0\" tree && sed -i 's/^Version: .*/Version: 99-1/' tree/DEBIAN/control && \
                 dpkg-deb -Znone -b tree new.deb && rm -r tree";
    let repacked = Command::new("sh")
        .args(["-c", repack])
        .arg(package)
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(repacked.status.success(), "{repacked:?}");
    "/packages/new.deb".to_owned()
}

/// The daemon's pid.
fn daemon_pid(machine: &Machine) -> String {
    machine.until(&format!("pgrep -nxf '{DAEMON}'"))
}

/// Makes the machine a server and a node that runs the daemon, as in the guide. Returns the daemon's pid.
fn set_up_cluster(machine: &Machine) -> String {
    machine.run("systemctl start kennel-server");
    // `Type=notify`: the server is ready when systemctl returns.
    machine.run("kubectl get namespace default");
    let line = machine.run("kennel token create --data-dir /var/lib/kennel/server 2>/dev/null");
    let after = |flag: &str| {
        let mut words = line.split_whitespace().skip_while(|word| *word != flag);
        words.nth(1).unwrap().to_owned()
    };
    let (server, hash) = (after("--server"), after("--ca-hash"));
    // Up to 0.1.0, the token is an option.
    let token = match line.split_whitespace().next().unwrap() {
        variable if variable.starts_with("KENNEL_TOKEN=") => variable.to_owned(),
        _ => format!("KENNEL_TOKEN={}", after("--token")),
    };
    let flags = "--node-name node-1 --node-ip 127.0.0.1 --eviction-hard=memory.available<1Mi";
    machine.run(&format!(
        "cat >>/etc/default/kennel-agent <<'END'\n\
         KENNEL_AGENT_OPTIONS=\"--server {server} --ca-hash {hash} {flags}\"\n\
         {token}\nEND"
    ));
    machine.run("systemctl enable --now kennel-agent");
    machine.run(&format!("kubectl apply -f - <<'END'\n{DAEMON_SET}\nEND"));
    wait_until_ready(machine);
    daemon_pid(machine)
}

fn wait_until_ready(machine: &Machine) {
    machine.until("kubectl wait --for=condition=Ready node/node-1 --timeout=1s");
    machine.until("kubectl rollout status daemonset/daemon --timeout=1s");
}

/// State and pid of a service: `active 123` or `inactive 0`.
fn service_state(machine: &Machine, name: &str) -> String {
    let show = "systemctl show --value -p ActiveState -p MainPID";
    machine.run(&format!("{show} {name} | sort -r | xargs"))
}

#[test]
fn daemons_survive_upgrade_and_removal_and_are_purged() {
    if !machine::possible() {
        return;
    }
    let directory = TempDir::new().unwrap();
    let (built, old) = build_package(directory.path());
    let new = repack(directory.path(), &built);
    let machine = Machine::new(directory.path());

    machine.run(&format!("dpkg -i {old}"));
    check_installation(&machine);
    for name in ["kennel-server", "kennel-agent"] {
        assert_eq!(service_state(&machine, name), "inactive 0\n", "{name}");
    }
    let pid = set_up_cluster(&machine);
    check_watchdogs(&machine);
    for unit in ["kennel-server", "kennel-agent"] {
        restarts_when_it_hangs(&machine, unit);
    }
    wait_until_ready(&machine);
    assert_eq!(daemon_pid(&machine), pid, "the daemon notices nothing");
    upgrade(&machine, &new, &pid);
    let said = machine.run("kennel --version");
    assert!(said.contains(kennel_packages::VERSION), "{said}");

    let said = machine.run("dpkg -r kennel");
    assert!(said.contains("pods of this machine keep running"), "{said}");
    machine.run("! test -e /usr/bin/kennel && test -e /etc/default/kennel-agent");
    machine.run("! pgrep -x kennel");
    assert_eq!(
        daemon_pid(&machine),
        pid,
        "it keeps running without an agent"
    );

    machine.run(&format!("dpkg -i {new}"));
    machine.run("systemctl start kennel-server kennel-agent");
    wait_until_ready(&machine);
    assert_eq!(daemon_pid(&machine), pid, "the new agent takes it over");

    machine.run("dpkg -P kennel");
    machine.until(&format!("! pgrep -xf '{DAEMON}'"));
    let places = "/etc /var/lib/kennel /usr/bin /usr/lib/systemd /var/lib/systemd /usr/share";
    let left = machine.run(&format!("find {places} -name '*kennel*'"));
    assert_eq!(left, "/var/lib/kennel\n", "it is a mount point");
    assert_eq!(machine.run("ls -A /var/lib/kennel"), "");
}

#[test]
fn daemons_survive_the_upgrade_from_the_last_release() {
    if !machine::possible() {
        return;
    }
    let Some(older) = older::package() else {
        return;
    };
    let directory = TempDir::new().unwrap();
    std::fs::copy(older, directory.path().join("older.deb")).unwrap();
    let (_, new) = build_package(directory.path());
    let machine = Machine::new(directory.path());
    machine.run("dpkg -i /packages/older.deb");
    let before = machine.run("kennel --version");
    assert!(!before.contains(kennel_packages::VERSION), "{before}");
    let pid = set_up_cluster(&machine);
    upgrade(&machine, &new, &pid);
    let after = machine.run("kennel --version");
    assert!(after.contains(kennel_packages::VERSION), "{after}");
    // The new agent ends what the old one started.
    machine.run("kubectl delete daemonset/daemon");
    machine.until(&format!("! pgrep -xf '{DAEMON}'"));
}

/// Upgrades the package: services restart, data and options stay, and the daemon runs on.
fn upgrade(machine: &Machine, new: &str, pid: &str) {
    let services = ["kennel-server", "kennel-agent"];
    let states = || services.map(|name| service_state(machine, name));
    let before = states();
    // The file that was changed here; dpkg replaces those that were not.
    let changed = "cat /etc/default/kennel-agent";
    let options = machine.run(changed);
    let uid = "kubectl get daemonset/daemon -o jsonpath='{.metadata.uid}'";
    let stored = machine.run(uid);

    machine.run(&format!("dpkg --force-confold -i {new}"));
    wait_until_ready(machine);
    for (after, before) in states().iter().zip(&before) {
        assert!(after.starts_with("active ") && after != before, "{after}");
    }
    assert_eq!(machine.run(uid), stored, "the data stays");
    assert_eq!(daemon_pid(machine), pid, "the daemon survives the upgrade");
    assert_eq!(machine.run(changed), options);
    let restarts = "{.items[*].status.containerStatuses[*].restartCount}";
    let restarts = machine.run(&format!("kubectl get pods -o jsonpath='{restarts}'"));
    assert_eq!(restarts, "0");
}

/// Checks files, user, units, man pages and completions.
fn check_installation(machine: &Machine) {
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

    // Maintainer scripts are idempotent.
    let rerun = "/var/lib/dpkg/info/kennel.postinst configure && getent passwd kennel";
    let user = machine.run(rerun);
    assert!(user.contains(":/var/lib/kennel/server:"), "{user}");

    check_units(machine);

    // groff warns of invalid markup; -Wbreak ignores lines that it cannot adjust.
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

/// systemd accepts the units, and rates the sandboxing of the server's.
fn check_units(machine: &Machine) {
    let units = "/usr/lib/systemd/system/kennel-*.service";
    let verified = machine.run(&format!("systemd-analyze verify --man=no {units}"));
    assert_eq!(verified, "");
    let security = "systemd-analyze security --offline=true --no-pager --threshold=15";
    machine.run(&format!("{security} kennel-server.service"));
    for setting in ["Type=notify", "Delegate=yes", "KillMode=process"] {
        machine.run(&format!(
            "grep -qx {setting} /usr/lib/systemd/system/kennel-agent.service"
        ));
    }
}

/// systemd restarts services that hang: reads the watchdog of the running services, not of the unit files.
fn check_watchdogs(machine: &Machine) {
    for (unit, watchdog) in [("kennel-server", "1min"), ("kennel-agent", "2min")] {
        let show = format!("systemctl show -p Restart -p WatchdogUSec {unit}");
        let found = machine.run(&format!("{show} | sort"));
        assert_eq!(
            found,
            format!("Restart=always\nWatchdogUSec={watchdog}\n"),
            "{unit}"
        );
    }
}

/// Stops a service's process with a signal, as if it hung; systemd ends and restarts it.
fn restarts_when_it_hangs(machine: &Machine, unit: &str) {
    let drop_in = format!("/etc/systemd/system/{unit}.service.d");
    machine.run(&format!(
        "mkdir {drop_in} && printf '[Service]\\nWatchdogSec=3\\nRestartSec=0\\n' >{drop_in}/watchdog.conf && \
         systemctl daemon-reload && systemctl restart {unit}"
    ));
    let before = service_state(machine, unit);
    machine.run(&format!(
        "kill -STOP $(systemctl show --value -p MainPID {unit})"
    ));
    machine.until(&format!("systemctl show -p NRestarts {unit} | grep -v =0"));
    machine.until(&format!("systemctl is-active {unit}"));
    let after = service_state(machine, unit);
    assert!(after.starts_with("active ") && after != before, "{after}");
    machine.run(&format!(
        "rm -r {drop_in} && systemctl daemon-reload && systemctl restart {unit}"
    ));
}
