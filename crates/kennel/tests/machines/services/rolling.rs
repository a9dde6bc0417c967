//! Clients that never stop, while endpoints roll and agents are killed at any moment.

use std::process::Child;
use std::time::Duration;

use kennel_test_support::fresh_seed;
use kennel_testkit::machine::{self, Network};
use kennel_testkit::{Deadline, eventually};
use serde_json::{Value, json};

use super::fixture::{Cluster, Pod, ask, say, start};

const ROUNDS: usize = 30;

/// Asks on new connections until a line comes, TCP and UDP in turn. Of datagrams, one may be lost: clients send them again, as
/// resolvers do. Prints how many were answered, and what failed.
const CLIENT: &str = "import select, socket, sys\n\
    host, port = sys.stdin.readline().split()\n\
    port, failed, answered = int(port), [], 0\n\
    def tcp():\n    with socket.create_connection((host, port), 10) as made:\n        made.sendall(b'?')\n        return made.recv(200)\n\
    def udp():\n    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:\n        made.settimeout(2)\n        \
    made.connect((host, port))\n        for last in (False, False, True):\n            made.send(b'?')\n            \
    try:\n                return made.recv(200)\n            except TimeoutError:\n                if last:\n                    raise\n\
    while not select.select([sys.stdin], [], [], 0)[0]:\n    for ask in (tcp, udp):\n        try:\n            assert ask()\n            \
    answered += 1\n        except Exception as error:\n            failed.append(f'{ask.__name__} after {answered}: {error!r}')\n\
    print(answered, failed)";

fn client(from: &Network, address: &str, port: u16) -> Child {
    let mut client = start(from, CLIENT);
    say(&mut client, &format!("{address} {port}"));
    client
}

#[test]
fn n5_no_request_fails_while_endpoints_roll_and_agents_are_killed() {
    if !machine::possible() {
        return;
    }
    let mut cluster = Cluster::new();
    let pods: Vec<Pod> = (11..15)
        .map(|number| cluster.pod(usize::from(number % 2), number))
        .collect();
    let ip = cluster.service("web", &json!({"type": "NodePort"}));
    let port = cluster.node_port("web");
    let all: Vec<&Pod> = pods.iter().collect();
    cluster.ready("web", &all);
    let node = cluster.nodes[1].address();
    let clients = [
        (&cluster.nodes[0].network, &ip, 80),
        (&cluster.nodes[1].network, &ip, 80),
        (&pods[0].network, &ip, 80),
        (&pods[3].network, &ip, 80),
        (&cluster.outside, &node, port),
    ];
    for (from, address, port) in clients {
        for kind in ["tcp", "udp"] {
            eventually(Deadline::seconds(60), || {
                let found = ask(from, kind, address, port, 1);
                let is_answered = ["1 a1", "1 b1"].iter().any(|one| found.starts_with(one));
                is_answered.then_some(()).ok_or(found)
            });
        }
    }
    let clients = clients.map(|(from, address, port)| client(from, address, port));
    let mut random = fastrand::Rng::with_seed(fresh_seed());
    for round in 0..ROUNDS {
        let count = random.usize(1..=all.len());
        let chosen = random.choose_multiple(&all, count);
        let endpoints: Vec<(&Pod, Value)> = chosen
            .into_iter()
            .map(|pod| (*pod, state(random.u8(..3))))
            .collect();
        cluster.endpoints("web", &endpoints);
        if round % 3 == 0 {
            let killed = random.usize(..cluster.nodes.len());
            let killed = &mut cluster.nodes[killed];
            killed.agent.kill();
            std::thread::sleep(Duration::from_millis(random.u64(..300)));
            killed.restart();
            // Whatever it does then, the next round finds it in the middle of it.
            std::thread::sleep(Duration::from_millis(random.u64(..1000)));
        }
    }
    for mut client in clients {
        say(&mut client, "end");
        let output = client.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let (answered, failed) = said.trim().split_once(' ').unwrap();
        assert_eq!(failed, "[]", "{answered} requests were answered");
        assert!(answered.parse::<u32>().unwrap() > 20, "{answered}");
    }
}

/// Each of these is used if no other is.
fn state(number: u8) -> Value {
    let terminating = json!({"conditions": {"ready": false, "serving": true, "terminating": true}});
    let hinted = json!({"hints": {"forNodes": [{"name": "a"}]}});
    [json!({}), terminating, hinted][usize::from(number)].clone()
}
