//! The networks of pods: their own by CNI, with host ports; the machine's; and none to be had.

use std::io::Read;
use std::net::{IpAddr, TcpStream};

use kennel_node::runtime::{Dns, PortMapping, Runtime};
use kennel_testkit::machine::{Containerd, possible};
use kennel_testkit::{Deadline, eventually};

use crate::world::World;

#[tokio::test]
async fn a_pod_has_an_address_a_host_port_and_names() {
    if !possible() {
        return;
    }
    let world = World::new().await;
    let mut config = world.pod("web");
    config.host_network = false;
    config.hostname = "web-0".to_owned();
    config.ports = vec![PortMapping {
        protocol: "TCP".to_owned(),
        container: 8080,
        host: 18080,
        host_ip: String::new(),
    }];
    config.dns = Some(Dns {
        servers: vec!["10.96.0.10".to_owned()],
        searches: vec!["default.svc.cluster.local".to_owned()],
        options: vec!["ndots:5".to_owned()],
    });
    config.sysctls.insert(
        "net.ipv4.ip_unprivileged_port_start".to_owned(),
        "0".to_owned(),
    );
    let pod = world.start(config).await;
    let uid = pod.config.pod.uid.clone();
    let addresses = world.look(&uid).await.sandbox.unwrap().addresses;
    let [IpAddr::V4(address)] = addresses[..] else {
        panic!("{addresses:?}")
    };
    assert_eq!(address.octets()[..2], [10, 88]);

    let script = "while :; do hostname | nc -l -p 8080; done";
    world.run(&pod, &world.script("app", script).await).await;
    let machine = world.containerd.address();
    let answer = eventually(Deadline::seconds(30), || {
        let mut answer = String::new();
        let mut connection = TcpStream::connect((machine, 18080))?;
        connection.read_to_string(&mut answer)?;
        if answer.is_empty() {
            Err(std::io::Error::other("no answer"))
        } else {
            Ok(answer)
        }
    });
    assert_eq!(answer, "web-0\n");

    let script = "cat /etc/resolv.conf /proc/sys/net/ipv4/ip_unprivileged_port_start";
    let text = world
        .output(&pod, &world.script("names", script).await)
        .await;
    let expected = "search default.svc.cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n0";
    assert_eq!(text, expected);

    assert_eq!(
        world.cri.health().await,
        kennel_node::runtime::Health::default()
    );
}

#[tokio::test]
async fn with_no_network_for_pods_those_with_the_machines_run() {
    if !possible() {
        return;
    }
    let world = World::with(Containerd::builder().without_pod_network()).await;
    let health = world.cri.health().await;
    assert_eq!(health.runtime, None);
    assert_eq!(
        health.network.as_deref(),
        Some(
            "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady \
             message:Network plugin returns error: cni plugin not initialized"
        )
    );
    let pod = world.start(world.pod("host")).await;
    let text = world
        .output(&pod, &world.script("app", "ls /sys/class/net").await)
        .await;
    assert!(text.lines().any(|name| name == "eth0"), "{text}");
    assert!(
        world
            .look(&pod.config.pod.uid)
            .await
            .sandbox
            .unwrap()
            .addresses
            .is_empty()
    );

    let mut config = world.pod("own");
    config.host_network = false;
    config.hostname = "own".to_owned();
    let refused = world
        .cri
        .start_sandbox(&config)
        .await
        .unwrap_err()
        .to_string();
    let expected = "network is not ready: container runtime network not ready: NetworkReady=false";
    assert!(refused.starts_with(expected), "{refused}");
    assert!(
        world.cri.look(&config.pod.uid).await.unwrap().is_none(),
        "nothing is left of it"
    );

    // As soon as there is one, it is used.
    world.containerd.add_pod_network();
    let deadline = tokio::time::Instant::now() + crate::world::PATIENCE;
    while world.cri.health().await.network.is_some() {
        assert!(
            tokio::time::Instant::now() < deadline,
            "the network is not seen"
        );
        tokio::task::yield_now().await;
    }
    let pod = world.start(config).await;
    assert_eq!(
        world
            .look(&pod.config.pod.uid)
            .await
            .sandbox
            .unwrap()
            .addresses
            .len(),
        1
    );
}
