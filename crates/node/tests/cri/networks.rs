//! Networks of pods: CNI with host ports, host networking, and a missing CNI configuration.

use std::io::Read;
use std::net::{IpAddr, TcpStream};

use kennel_node::runtime::{Dns, PortMapping, Runtime};
use kennel_testkit::machine::{Containerd, possible};
use kennel_testkit::{Deadline, eventually};

use crate::fixture::Fixture;

#[tokio::test]
async fn a_pod_has_an_address_a_host_port_and_dns() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new().await;
    let mut config = fixture.pod("web");
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
    let pod = fixture.start(config).await;
    let uid = pod.config.pod.uid.clone();
    let addresses = fixture.inspect(&uid).await.sandbox.unwrap().addresses;
    let [IpAddr::V4(address)] = addresses[..] else {
        panic!("{addresses:?}")
    };
    assert_eq!(address.octets()[..2], [10, 88]);

    let script = "while :; do hostname | nc -l -p 8080; done";
    fixture
        .run(&pod, &fixture.script("app", script).await)
        .await;
    let machine = fixture.containerd.address();
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
    let text = fixture
        .output(&pod, &fixture.script("names", script).await)
        .await;
    let expected = "search default.svc.cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n0";
    assert_eq!(text, expected);

    assert_eq!(
        fixture.cri.health().await,
        kennel_node::runtime::Health::default()
    );
}

#[tokio::test]
async fn without_cni_pods_with_host_networking_run() {
    if !possible() {
        return;
    }
    let fixture = Fixture::with(Containerd::builder().without_pod_network()).await;
    let health = fixture.cri.health().await;
    assert_eq!(health.runtime, None);
    assert_eq!(
        health.network.as_deref(),
        Some(
            "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady \
             message:Network plugin returns error: cni plugin not initialized"
        )
    );
    let pod = fixture.start(fixture.pod("host")).await;
    let text = fixture
        .output(&pod, &fixture.script("app", "ls /sys/class/net").await)
        .await;
    assert!(text.lines().any(|name| name == "eth0"), "{text}");
    assert!(
        fixture
            .inspect(&pod.config.pod.uid)
            .await
            .sandbox
            .unwrap()
            .addresses
            .is_empty()
    );

    let mut config = fixture.pod("own");
    config.host_network = false;
    config.hostname = "own".to_owned();
    let refused = fixture
        .cri
        .start_sandbox(&config)
        .await
        .unwrap_err()
        .to_string();
    let expected = "network is not ready: container runtime network not ready: NetworkReady=false";
    assert!(refused.starts_with(expected), "{refused}");
    assert!(
        fixture
            .cri
            .inspect(&config.pod.uid)
            .await
            .unwrap()
            .is_none(),
        "nothing is left of it"
    );

    // As soon as there is one, it is used.
    fixture.containerd.add_pod_network();
    let deadline = tokio::time::Instant::now() + crate::fixture::DEADLINE;
    while fixture.cri.health().await.network.is_some() {
        assert!(
            tokio::time::Instant::now() < deadline,
            "the network is not reported as ready"
        );
        tokio::task::yield_now().await;
    }
    let pod = fixture.start(config).await;
    assert_eq!(
        fixture
            .inspect(&pod.config.pod.uid)
            .await
            .sandbox
            .unwrap()
            .addresses
            .len(),
        1
    );
}
