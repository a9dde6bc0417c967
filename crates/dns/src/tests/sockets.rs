//! Questions and answers over real sockets.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use simple_dns::rdata::RData;
use simple_dns::{Packet, PacketFlag, RCODE};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};

use super::resolver;
use crate::forward::Transport;
use crate::question::record_type::{A, AAAA, CNAME, SRV};
use crate::question::tests::packet;
use crate::resolver::{Action, Resolver};
use crate::serve::{self, Sockets};

const HERE: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

/// Serves this until the test ends; returns where.
async fn serve(resolver: Arc<Resolver>) -> SocketAddr {
    let sockets = Arc::new(Sockets::bind(HERE.into()).await.unwrap());
    let address = sockets.address();
    tokio::spawn(async move {
        tokio::join!(
            serve::udp(&sockets, &resolver),
            serve::tcp(&sockets, &resolver)
        );
    });
    address
}

async fn ask(server: SocketAddr, question: &[u8]) -> Vec<u8> {
    let socket = UdpSocket::bind(HERE).await.unwrap();
    socket.send_to(question, server).await.unwrap();
    let mut buffer = vec![0; 65535];
    let receive = socket.recv(&mut buffer);
    let count = tokio::time::timeout(Duration::from_secs(30), receive).await;
    let count = count.expect("an answer comes").unwrap();
    buffer.truncate(count);
    buffer
}

async fn ask_tcp(stream: &mut TcpStream, question: &[u8]) -> Vec<u8> {
    let length = u16::try_from(question.len()).unwrap();
    stream.write_u16(length).await.unwrap();
    stream.write_all(question).await.unwrap();
    let mut answer = vec![0; usize::from(stream.read_u16().await.unwrap())];
    stream.read_exact(&mut answer).await.unwrap();
    answer
}

fn addresses(packet: &Packet<'_>) -> Vec<String> {
    let address = |data: &RData<'_>| match data {
        RData::A(a) => Some(IpAddr::V4(a.address.into()).to_string()),
        _ => None,
    };
    packet
        .answers
        .iter()
        .filter_map(|r| address(&r.rdata))
        .collect()
}

/// A resolver that answers every question for an address with this one, and counts them.
async fn fake_upstream(address: [u8; 4]) -> (SocketAddr, Arc<AtomicUsize>) {
    let socket = UdpSocket::bind(HERE).await.unwrap();
    let (here, asked) = (socket.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let counter = asked.clone();
    tokio::spawn(async move {
        let mut buffer = vec![0; 1500];
        loop {
            let (count, from) = socket.recv_from(&mut buffer).await.unwrap();
            counter.fetch_add(1, Ordering::SeqCst);
            let mut answer = buffer[..count].to_vec();
            answer[2] |= 0x80;
            answer[7] = 1;
            answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
            answer.extend(address);
            socket.send_to(&answer, from).await.unwrap();
        }
    });
    (here, asked)
}

#[tokio::test]
async fn names_in_the_zone_are_answered_authoritatively_and_case_insensitively() {
    let server = serve(resolver(3, Vec::new())).await;
    let answer = ask(server, &packet("wEb.Ns.SVC.cluster.LOCAL", A, None)).await;
    let answer = Packet::parse(&answer).unwrap();
    assert_eq!(answer.id(), 0x1234);
    assert_eq!(answer.rcode(), RCODE::NoError);
    assert!(answer.has_flags(PacketFlag::AUTHORITATIVE_ANSWER));
    assert!(answer.has_flags(PacketFlag::RECURSION_DESIRED));
    assert_eq!(addresses(&answer), ["10.96.0.9"]);
    assert_eq!(answer.answers[0].ttl, 5);
    assert_eq!(
        answer.questions[0].qname.to_string(),
        "wEb.Ns.SVC.cluster.LOCAL"
    );
    let one = ask(
        server,
        &packet("node-2.agent.ns.svc.cluster.local", A, None),
    )
    .await;
    assert_eq!(addresses(&Packet::parse(&one).unwrap()), ["10.1.0.2"]);
    let port = ask(
        server,
        &packet("_http._tcp.web.ns.svc.cluster.local", SRV, None),
    )
    .await;
    let port = Packet::parse(&port).unwrap();
    let RData::SRV(listener) = &port.answers[0].rdata else {
        panic!("{port:?}");
    };
    assert_eq!((listener.port, listener.priority), (80, 0));
    assert_eq!(listener.target.to_string(), "web.ns.svc.cluster.local");
}

#[tokio::test]
async fn nodata_and_nxdomain_differ_and_have_a_ttl() {
    let server = serve(resolver(3, Vec::new())).await;
    for (name, qtype, code) in [
        ("web.ns.svc.cluster.local", AAAA, RCODE::NoError),
        ("other.ns.svc.cluster.local", A, RCODE::NameError),
    ] {
        let answer = ask(server, &packet(name, qtype, Some(1232))).await;
        let answer = Packet::parse(&answer).unwrap();
        assert_eq!(answer.rcode(), code, "{name}");
        assert!(answer.answers.is_empty());
        let RData::SOA(authority) = &answer.name_servers[0].rdata else {
            panic!("{answer:?}");
        };
        assert_eq!(authority.minimum, 5);
        assert!(answer.opt().is_some());
    }
}

#[tokio::test]
async fn long_answers_are_truncated_and_complete_over_tcp() {
    let server = serve(resolver(300, Vec::new())).await;
    let name = "agent.ns.svc.cluster.local";
    for (size, most) in [(None, 512), (Some(600), 600), (Some(60_000), 1232)] {
        let answer = ask(server, &packet(name, A, size)).await;
        assert!(
            answer.len() <= most && answer.len() > most * 3 / 4,
            "{}",
            answer.len()
        );
        let answer = Packet::parse(&answer).unwrap();
        assert!(answer.has_flags(PacketFlag::TRUNCATION));
        assert!(!answer.answers.is_empty());
    }
    let mut stream = TcpStream::connect(server).await.unwrap();
    // One connection takes several questions.
    for _ in 0..2 {
        let answer = ask_tcp(&mut stream, &packet(name, A, None)).await;
        let answer = Packet::parse(&answer).unwrap();
        assert!(!answer.has_flags(PacketFlag::TRUNCATION));
        assert_eq!(answer.answers.len(), 300);
    }
}

#[tokio::test]
async fn more_records_than_fit_into_any_packet_fill_one() {
    let server = serve(resolver(6_000, Vec::new())).await;
    let mut stream = TcpStream::connect(server).await.unwrap();
    let question = packet("agent.ns.svc.cluster.local", A, None);
    let answer = ask_tcp(&mut stream, &question).await;
    assert!(answer.len() > 60_000, "{}", answer.len());
    assert!(Packet::parse(&answer).unwrap().answers.len() > 3_500);
    let one = packet("node-5999.agent.ns.svc.cluster.local", A, None);
    let answer = ask_tcp(&mut stream, &one).await;
    assert_eq!(addresses(&Packet::parse(&answer).unwrap()), ["10.1.23.111"]);
}

#[tokio::test]
async fn other_names_are_forwarded_and_answered_unchanged() {
    let (upstream, asked) = fake_upstream([192, 0, 2, 7]).await;
    let nobody: SocketAddr = "127.0.0.1:1".parse().unwrap();
    let server = serve(resolver(1, vec![nobody, upstream])).await;
    let answer = ask(server, &packet("Example.ORG", A, None)).await;
    let answer = Packet::parse(&answer).unwrap();
    assert_eq!(answer.id(), 0x1234);
    assert_eq!(addresses(&answer), ["192.0.2.7"]);
    assert_eq!(answer.questions[0].qname.to_string(), "Example.ORG");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    // Types that nobody here knows are others' business, too.
    let answer = ask(server, &packet("example.org", 64_999, None)).await;
    assert_eq!(answer[..2], [0x12, 0x34]);
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    // Our own names are never asked of others.
    ask(server, &packet("other.ns.svc.cluster.local", A, None)).await;
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_dead_upstream_is_waited_for_once() {
    let silent = UdpSocket::bind(HERE).await.unwrap();
    let (upstream, asked) = fake_upstream([192, 0, 2, 7]).await;
    let server = serve(resolver(1, vec![silent.local_addr().unwrap(), upstream])).await;
    for name in ["a.example", "b.example", "c.example"] {
        let answer = ask(server, &packet(name, A, None)).await;
        assert_eq!(addresses(&Packet::parse(&answer).unwrap()), ["192.0.2.7"]);
    }
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    let mut buffer = [0; 100];
    assert!(silent.try_recv(&mut buffer).is_ok());
    assert!(silent.try_recv(&mut buffer).is_err(), "asked again at once");
}

#[tokio::test]
async fn a_cname_to_a_missing_name_is_nxdomain() {
    let nowhere = UdpSocket::bind(HERE).await.unwrap();
    let upstream = nowhere.local_addr().unwrap();
    tokio::spawn(async move {
        let mut buffer = vec![0; 1500];
        loop {
            let (count, from) = nowhere.recv_from(&mut buffer).await.unwrap();
            buffer[2] |= 0x80;
            buffer[3] = 3;
            nowhere.send_to(&buffer[..count], from).await.unwrap();
        }
    });
    let server = serve(resolver(1, vec![upstream])).await;
    let answer = ask(server, &packet("alias.ns.svc.cluster.local", A, None)).await;
    let answer = Packet::parse(&answer).unwrap();
    assert!(answer.name_servers.is_empty(), "it is not ours to say");
    let said = answer.into_owned_answer();
    assert_eq!(said, (RCODE::NameError, vec!["Example.com".to_owned()]));
}

#[tokio::test]
async fn without_upstreams_or_before_the_sync_queries_fail() {
    let nobody: SocketAddr = "127.0.0.1:1".parse().unwrap();
    for upstreams in [vec![], vec![nobody]] {
        let server = serve(resolver(1, upstreams)).await;
        let answer = ask(server, &packet("example.org", A, None)).await;
        assert_eq!(
            Packet::parse(&answer).unwrap().rcode(),
            RCODE::ServerFailure
        );
    }
    let domain = vec!["cluster".to_owned(), "local".to_owned()];
    let server = serve(Arc::new(Resolver::new(domain, Vec::new(), Vec::new()))).await;
    let answer = ask(server, &packet("web.ns.svc.cluster.local", A, None)).await;
    assert_eq!(
        Packet::parse(&answer).unwrap().rcode(),
        RCODE::ServerFailure
    );
}

#[test]
fn n3_strangers_get_names_of_the_cluster_and_no_others() {
    let upstream = "127.0.0.1:1".parse().unwrap();
    let resolver = resolver(1, vec![upstream]);
    let stranger: IpAddr = "203.0.113.9".parse().unwrap();
    let code = |name: &str, client: IpAddr| {
        let handled = resolver.handle(&packet(name, A, None), Transport::Udp, client);
        match handled {
            Action::Reply(answer) => Some(Packet::parse(&answer).unwrap().rcode()),
            Action::Forward(_) => None,
            Action::Drop => panic!("{name} is answered"),
        }
    };
    let refused = Some(RCODE::Refused);
    assert_eq!(code("example.org", stranger), refused);
    // What an external name leads to would be asked of others, too.
    assert_eq!(code("alias.ns.svc.cluster.local", stranger), refused);
    assert_eq!(
        code("web.ns.svc.cluster.local", stranger),
        Some(RCODE::NoError)
    );
    assert_eq!(code("example.org", HERE.0.into()), None);
}

#[tokio::test]
async fn cnames_are_followed() {
    let (upstream, _) = fake_upstream([192, 0, 2, 7]).await;
    let server = serve(resolver(1, vec![upstream])).await;
    let look = async |name: &str, qtype: u16| {
        let answer = ask(
            server,
            &packet(&format!("{name}.ns.svc.cluster.local"), qtype, None),
        )
        .await;
        let answer = Packet::parse(&answer).unwrap().into_owned_answer();
        (answer.0, answer.1)
    };
    let outside = look("alias", A).await;
    assert_eq!(
        outside,
        (
            RCODE::NoError,
            vec!["Example.com".into(), "192.0.2.7".to_owned()]
        )
    );
    let inside = look("inner", A).await.1;
    assert_eq!(inside, ["web.ns.svc.cluster.local", "10.96.0.9"]);
    assert_eq!(look("alias", CNAME).await.1, ["Example.com"]);
    assert_eq!(look("circle", A).await, (RCODE::ServerFailure, vec![]));
}

/// What an answer says, for comparing.
trait IntoOwnedAnswer {
    fn into_owned_answer(self) -> (RCODE, Vec<String>);
}

impl IntoOwnedAnswer for Packet<'_> {
    fn into_owned_answer(self) -> (RCODE, Vec<String>) {
        let show = |data: &RData<'_>| match data {
            RData::A(a) => IpAddr::V4(a.address.into()).to_string(),
            RData::CNAME(name) => name.to_string(),
            other => format!("{other:?}"),
        };
        let shown = self.answers.iter().map(|record| show(&record.rdata));
        (self.rcode(), shown.collect())
    }
}

#[tokio::test]
async fn a_forwarding_loop_ends() {
    // A resolver that asks us whatever it is asked.
    let relay = UdpSocket::bind(HERE).await.unwrap();
    let server = serve(resolver(1, vec![relay.local_addr().unwrap()])).await;
    let passed = Arc::new(AtomicUsize::new(0));
    let counter = passed.clone();
    tokio::spawn(async move {
        let mut buffer = vec![0; 1500];
        loop {
            let (count, from) = relay.recv_from(&mut buffer).await.unwrap();
            if from != server {
                counter.fetch_add(1, Ordering::SeqCst);
                relay.send_to(&buffer[..count], server).await.unwrap();
            }
        }
    });
    let answer = ask(server, &packet("example.org", A, None)).await;
    assert_eq!(
        Packet::parse(&answer).unwrap().rcode(),
        RCODE::ServerFailure
    );
    assert_eq!(passed.load(Ordering::SeqCst), 1, "it goes round once");
}

#[tokio::test]
async fn an_unknown_edns_version_is_rejected() {
    let server = serve(resolver(1, Vec::new())).await;
    let mut question = packet("web.ns.svc.cluster.local", A, Some(1232));
    let version = question.len() - 5;
    question[version] = 1;
    let answer = ask(server, &question).await;
    assert_eq!(Packet::parse(&answer).unwrap().rcode(), RCODE::BADVERS);
}
