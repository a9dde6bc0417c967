//! The network in a real kernel, in a namespace of the test's own.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

use kennel_core::cidr::Cidr;
use kennel_core::pod_network::plan::plan;
use kennel_core::pod_network::{Member, Mode};
use rustix::thread::UnshareFlags;

use crate::Network;

const STEPS: usize = 40;
const MACHINE: &str = "ip link set lo up; ip link add eth0 type bridge; ip addr add 10.0.0.1/24 dev eth0; ip link set eth0 up; \
     ip route add default via 10.0.0.254";
const STATE: &str = "ip route show proto 75; ip neigh show dev kennel-vxlan; bridge fdb show dev kennel-vxlan; \
     nft list table ip kennel-network | tr -s ' ,\\t' '\\n'";

/// Gives this thread a network namespace. False if it may not.
#[expect(
    deprecated,
    reason = "the safe function; it is deprecated because of CLONE_FILES, which is not used here"
)]
pub(crate) fn own_network() -> bool {
    if !rustix::process::geteuid().is_root() {
        kennel_test_support::skip("network namespaces need root");
        return false;
    }
    rustix::thread::unshare(UnshareFlags::NEWNET).unwrap();
    true
}

/// The lines that a script prints, sorted.
pub(crate) fn lines(script: &str) -> Vec<String> {
    let output = Command::new("sh").args(["-ec", script]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {said}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn member(number: u8, random: &mut fastrand::Rng) -> Member {
    // On the link of the first one, or behind a router; sometimes another has the same address.
    let link = random.u8(0..2);
    let address = [10, 0, link, 2 + random.u8(0..20)].into();
    Member {
        node: format!("node-{number}").into(),
        range: Cidr::containing([10, 128, number, 0].into(), 24),
        address,
        link: Cidr::containing(address, 24),
        mode: *random
            .choice(&[Mode::Auto, Mode::HostGw, Mode::Vxlan])
            .unwrap(),
        direct: *random.choice(&[None, Some(true), Some(false)]).unwrap(),
    }
}

/// A change of one of 5,000 nodes has every agent make its plan anew, all of it.
#[test]
fn n1_4_the_plan_of_5000_nodes_takes_milliseconds() {
    let members: Vec<Member> = (0..5_000_u16)
        .map(|number| {
            let [high, low] = number.to_be_bytes();
            // Every second one is behind a router.
            let address = [10, low % 2, high, low].into();
            Member {
                node: format!("node-{number}").into(),
                range: Cidr::containing([10, 128 + high, low, 0].into(), 24),
                address,
                link: Cidr::containing(address, 16),
                mode: Mode::Auto,
                direct: Some(true),
            }
        })
        .collect();
    let mut fastest = Duration::MAX;
    for _ in 0..10 {
        let started_at = Instant::now();
        let plan = plan(&members[0], &members);
        fastest = fastest.min(started_at.elapsed());
        assert_eq!(plan.neighbours.len() + plan.direct_nodes.len(), 4_999);
    }
    println!("the plan of 5,000 nodes: {fastest:?}");
    // Of a debug build, on a busy machine.
    assert!(fastest < Duration::from_secs(1), "{fastest:?}");
}

#[test]
fn n1_4_changes_lead_to_the_state_of_the_whole_plan_in_random_histories() {
    kennel_test_support::with_seeds([1, 2, 3], |seed| {
        if !own_network() {
            return;
        }
        lines(MACHINE);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(history(&mut fastrand::Rng::with_seed(seed)));
    });
}

async fn history(random: &mut fastrand::Rng) {
    let cluster: Cidr = "10.128.0.0/9".parse().unwrap();
    let own = Member {
        address: [10, 0, 0, 1].into(),
        link: "10.0.0.0/24".parse().unwrap(),
        mode: Mode::Auto,
        direct: Some(true),
        ..member(0, random)
    };
    let mut network = Network::open().unwrap();
    let mut others: BTreeMap<u8, Member> = BTreeMap::new();
    for _ in 0..STEPS {
        for _ in 0..random.usize(1..4) {
            let number = random.u8(1..8);
            if random.u8(0..3) == 0 {
                others.remove(&number);
            } else {
                others.insert(number, member(number, random));
            }
        }
        let changed = network.update(&own, others.values(), cluster).await;
        let changed = changed.unwrap();
        let state = lines(STATE);
        let whole = network.apply(&own, others.values(), cluster).await.unwrap();
        assert_eq!(changed, whole);
        assert_eq!(state, lines(STATE), "{others:#?}");
        let routes = lines("ip route show proto 75");
        assert_eq!(routes.len(), whole.plan.routes.len(), "{routes:#?}");
    }
    drop(network);
    crate::cleanup(&[]).await.unwrap();
    assert_eq!(lines("ip route show proto 75; nft list ruleset"), [""; 0]);
    assert_eq!(
        lines("ip link show kennel-vxlan 2>/dev/null || true"),
        [""; 0]
    );
}
