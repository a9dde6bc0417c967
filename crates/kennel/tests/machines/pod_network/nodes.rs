//! Nodes that join, leave and move (N1.4, N1.5).

use kennel_testkit::machine::possible;
use kennel_testkit::{Deadline, eventually};

use super::fixture::{Cluster, TIMEOUT};
use super::traffic::{PORTS, Traffic};

#[test]
fn n1_4_a_node_that_joins_is_reached_and_one_that_leaves_is_forgotten() {
    if !possible() {
        return;
    }
    let mut cluster = Cluster::with_proxy("auto", &[0, 1]);
    let (a, b) = (cluster.pod("a", 0, false), cluster.pod("b", 1, false));
    cluster.pod("served", 1, false);
    let service = cluster.service("served", &PORTS);
    assert_eq!(cluster.seen_by("a", service), a);
    // Between the others, traffic goes on meanwhile, also through a cluster IP.
    let traffic = [("b", b), ("served", service)];
    let traffic = traffic.map(|(to, address)| Traffic::start(&cluster, "a", to, address));
    cluster.join(0);
    cluster.ready();
    let c = cluster.pod("c", 2, false);
    assert_eq!(cluster.seen_by("a", c), a);
    assert_eq!(cluster.seen_by("c", a), c);
    assert_eq!(cluster.seen_by("c", service), c);

    let left = cluster.machines.pop().unwrap();
    let node = left.node().to_owned();
    drop(left);
    cluster.kubectl.run(&["delete", "node", &node]).ok();
    let range = c.octets();
    let range = format!("{}.{}.{}.", range[0], range[1], range[2]);
    for machine in &cluster.machines {
        eventually(Deadline::seconds(TIMEOUT), || {
            let traces = machine
                .run("ip route; ip neigh show dev kennel-vxlan; bridge fdb show dev kennel-vxlan");
            let found = traces.lines().find(|line| line.contains(&range));
            found.map_or(Ok(()), |line| Err(line.to_owned()))
        });
    }
    for traffic in traffic {
        traffic.end();
    }
    let objects = cluster.get(&[
        "configmaps",
        "-n",
        "kube-node-lease",
        "-l",
        "network.kennel.dev/node=true",
    ]);
    assert_eq!(objects.unwrap()["items"].as_array().unwrap().len(), 2);
}

#[test]
fn n1_5_a_node_whose_address_changes_is_followed() {
    if possible() {
        follows_an_address(&Cluster::new("auto", &[0, 0]));
    }
}

#[test]
fn n1_5_a_node_whose_address_changes_is_followed_over_vxlan() {
    if possible() {
        follows_an_address(&Cluster::new("vxlan", &[0, 0]));
    }
}

fn follows_an_address(cluster: &Cluster) {
    let (a, b) = (cluster.pod("a", 0, false), cluster.pod("b", 1, false));
    assert_eq!(cluster.seen_by("a", b), a);
    let moved = &cluster.machines[1];
    let (old, new, router) = (
        moved.address(),
        cluster.links.address(0, 77),
        cluster.links.address(0, 1),
    );
    moved.run(&format!(
        "ip addr del {old}/24 dev eth0; ip addr add {new}/24 dev eth0; ip route add default via {router}"
    ));
    eventually(Deadline::seconds(TIMEOUT), || {
        let node = cluster.get(&["node", moved.node()])?;
        let address = &node["status"]["addresses"][0]["address"];
        (*address == new.to_string())
            .then_some(())
            .ok_or_else(|| format!("{address} {}", moved.agent.log()))
    });
    assert_eq!(cluster.seen_by("a", b), a, "routes follow");
    cluster.host_seen_by(1, a);
    // The server reaches the agent at the new address, and accepts its certificate.
    eventually(Deadline::seconds(TIMEOUT), || {
        let logs = cluster.kubectl.run(&["logs", "b"]);
        (logs.code == 0)
            .then_some(())
            .ok_or_else(|| format!("{} {}", logs.stderr, moved.agent.log()))
    });
    // The agent learns of changes: its watches do not wait at the old address.
    let c = cluster.pod("c", 1, false);
    assert_eq!(cluster.seen_by("a", c), a);
}
