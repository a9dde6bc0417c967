//! Services across a router: hints, no endpoints, datagrams whose endpoint goes, health checks, and the API from pods.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Stdio};

use kennel_testkit::machine::possible;
use kennel_testkit::{Deadline, eventually};
use serde_json::json;

use super::fixture::TIMEOUT;
use super::services::{Asker, Fixture, PODS};

/// Sends all datagrams from one socket, and prints the first word of each answer.
const CLIENT: &str = "import socket, sys\nmade = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nmade.settimeout(1)\n\
    for line in sys.stdin:\n    address, port = line.split()\n    try:\n        made.sendto(b'?', (address, int(port)))\n        \
    print(made.recv(200).decode().split()[0])\n    except OSError as error:\n        print(error)";
const ZONE: &str = "topology.kubernetes.io/zone";

#[test]
fn n5_hints_refusals_and_health_checks_hold_across_a_router() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new();
    the_api_is_reached(&fixture);
    hints(&fixture);
    datagrams(&fixture);
    health_checks(&fixture);
    refusals(&fixture);
}

/// From a pod of each machine.
fn the_api_is_reached(fixture: &Fixture) {
    let service = fixture.cluster.get(&["service", "kubernetes"]).unwrap();
    let ip = service["spec"]["clusterIP"].as_str().unwrap();
    for (name, machine) in PODS {
        eventually(Deadline::seconds(TIMEOUT), || {
            let mut command = fixture.cluster.in_pod(name, machine);
            let command = command.args(["curl", "-sk", "-m", "3"]);
            let output = command.arg(format!("https://{ip}/version")).output();
            let text = String::from_utf8_lossy(&output.unwrap().stdout).into_owned();
            text.contains("gitVersion")
                .then_some(())
                .ok_or_else(|| format!("{name}: {text}"))
        });
    }
}

fn hints(fixture: &Fixture) {
    let (ip, _) = fixture.service(&json!({"trafficDistribution": "PreferSameNode"}));
    for (name, machine) in PODS {
        for kind in ["tcp", "udp"] {
            fixture.until(Asker::Pod(name, machine), kind, &ip, 80, &[name]);
            fixture.until(Asker::Machine(machine), kind, &ip, 80, &[name]);
        }
    }
    for (machine, zone) in [(0, "east"), (1, "east"), (2, "west")] {
        let node = fixture.cluster.machines[machine].node();
        let label = ["label", "node", node, &format!("{ZONE}={zone}")];
        fixture.cluster.kubectl.run(&label).ok();
    }
    fixture.service(&json!({"trafficDistribution": "PreferSameZone"}));
    for (name, machine) in PODS {
        let near: &[&str] = if machine == 2 {
            &["far"]
        } else {
            &["here", "near"]
        };
        fixture.until(Asker::Pod(name, machine), "tcp", &ip, 80, near);
    }
    fixture.service(&json!({}));
}

/// The pods are still there: only their connections are deleted.
fn datagrams(fixture: &Fixture) {
    let (ip, _) = fixture.service(&json!({}));
    for pod in ["here", "near"] {
        fixture.relabel(pod, "app=none");
    }
    fixture.until(Asker::Pod("here", 0), "udp", &ip, 80, &["far"]);
    let mut client = client(fixture);
    let mut answers = BufReader::new(client.stdout.take().unwrap()).lines();
    let mut until = |expected: &str| {
        eventually(Deadline::seconds(TIMEOUT), || {
            writeln!(client.stdin.as_mut().unwrap(), "{ip} 80").unwrap();
            let found = answers.next().unwrap().unwrap();
            (found == expected).then_some(()).ok_or(found)
        });
    };
    until("far");
    fixture.relabel("near", "app=web");
    fixture.relabel("far", "app=none");
    until("near");
    fixture.relabel("far", "app=web");
    fixture.relabel("near", "app=none");
    until("far");
    client.kill().unwrap();
    client.wait().unwrap();
}

fn client(fixture: &Fixture) -> Child {
    let mut command = fixture.cluster.in_pod("here", 0);
    let command = command.args(["python3", "-uc", CLIENT]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().unwrap()
}

/// From the router. Of the pods, only the far one is an endpoint.
fn health_checks(fixture: &Fixture) {
    fixture.service(&json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local"}));
    let service = fixture.cluster.get(&["service", "web"]).unwrap();
    let port = &service["spec"]["healthCheckNodePort"];
    let until = |machine: usize, expected: &str| {
        let url = format!("http://{}:{port}/", fixture.node(machine));
        eventually(Deadline::seconds(TIMEOUT), || {
            let mut command = fixture.cluster.links.router().command("curl");
            let command = command.args(["-s", "-m", "3", "-o", "/dev/null", "-w", "%{http_code}"]);
            let output = command.arg(&url).output().unwrap();
            let found = String::from_utf8_lossy(&output.stdout).into_owned();
            (found == expected)
                .then_some(())
                .ok_or_else(|| format!("{url}: {found}"))
        });
    };
    for (machine, expected) in [(0, "503"), (1, "503"), (2, "200")] {
        until(machine, expected);
    }
    fixture.relabel("here", "app=web");
    fixture.relabel("far", "app=none");
    for (machine, expected) in [(0, "200"), (1, "503"), (2, "503")] {
        until(machine, expected);
    }
}

/// At once, from everywhere.
fn refusals(fixture: &Fixture) {
    let (ip, port) = fixture.service(&json!({}));
    for (name, _) in PODS {
        fixture.relabel(name, "app=none");
    }
    for (name, machine) in PODS {
        for kind in ["tcp", "udp"] {
            fixture.until_result(Asker::Pod(name, machine), kind, &ip, 80, "refused");
            fixture.until_result(Asker::Machine(machine), kind, &ip, 80, "refused");
            let node = fixture.node(machine);
            fixture.until_result(Asker::Outside, kind, &node, port, "refused");
        }
    }
}
