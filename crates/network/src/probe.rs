//! Whether a link carries packets of pods: many clouds drop packets whose addresses are not their machines'. An ICMP echo
//! between addresses of two pod ranges finds out for both directions; the other kernel answers, whether its agent runs or not.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto};

/// Echo requests to one address. The first may wait for an ARP answer.
const TRIES: u16 = 3;
/// For each answer. The other end is on the same link.
const TIMEOUT: Duration = Duration::from_millis(500);

const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;
/// Of the header of IPv4, without options.
const HEADER: usize = 20;

/// Whether `to` answers `from`, by the routes of this machine.
pub async fn answers(from: Ipv4Addr, to: Ipv4Addr) -> io::Result<bool> {
    let asked = tokio::task::spawn_blocking(move || ask(from, to)).await;
    asked.map_err(io::Error::other)?
}

fn ask(from: Ipv4Addr, to: Ipv4Addr) -> io::Result<bool> {
    let socket = rustix::net::socket_with(
        AddressFamily::INET,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(ipproto::ICMP),
    )?;
    rustix::net::bind(&socket, &SocketAddr::V4(SocketAddrV4::new(from, 0)))?;
    let id = u16::try_from(std::process::id() & 0xffff).unwrap_or(1);
    for sequence in 1..=TRIES {
        let to_socket = SocketAddr::V4(SocketAddrV4::new(to, 0));
        let sent = rustix::net::sendto(
            &socket,
            &request(id, sequence),
            SendFlags::empty(),
            &to_socket,
        );
        // Without a way there, the link carries nothing.
        if sent.is_ok() && wait(&socket, to, id)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn wait(socket: &OwnedFd, from: Ipv4Addr, id: u16) -> io::Result<bool> {
    let end = Instant::now() + TIMEOUT;
    let mut packet = [0_u8; 256];
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        let mut ready = [PollFd::new(socket, PollFlags::IN)];
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        if poll(&mut ready, Some(&left))? == 0 {
            break;
        }
        let (length, _) = rustix::net::recv(socket, &mut packet, RecvFlags::empty())?;
        if is_reply(&packet[..length.min(packet.len())], from, id) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn request(id: u16, sequence: u16) -> [u8; 8] {
    let [i, d] = id.to_be_bytes();
    let [s, q] = sequence.to_be_bytes();
    let mut packet = [ECHO_REQUEST, 0, 0, 0, i, d, s, q];
    let [high, low] = checksum(&packet).to_be_bytes();
    (packet[2], packet[3]) = (high, low);
    packet
}

fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.as_chunks().0.iter();
    let mut sum: u32 = words.map(|word| u32::from(u16::from_be_bytes(*word))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(0)
}

/// Whether a packet with its IPv4 header is the answer.
fn is_reply(packet: &[u8], from: Ipv4Addr, id: u16) -> bool {
    let source = packet.get(12..16) == Some(&from.octets());
    let header = packet
        .first()
        .map_or(HEADER, |first| usize::from(first & 15) * 4);
    let icmp = packet.get(header..).unwrap_or_default();
    source && icmp.first() == Some(&ECHO_REPLY) && icmp.get(4..6) == Some(&id.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_a_valid_checksum() {
        assert_eq!(checksum(&request(77, 2)), 0);
    }

    #[test]
    fn only_the_answer_counts() {
        let from = Ipv4Addr::new(10, 128, 1, 255);
        let mut packet = vec![0_u8; HEADER + 8];
        packet[0] = 0x45;
        packet[12..16].copy_from_slice(&from.octets());
        packet[HEADER + 4..HEADER + 6].copy_from_slice(&77_u16.to_be_bytes());
        assert!(is_reply(&packet, from, 77));
        assert!(!is_reply(&packet, from, 78));
        assert!(!is_reply(&packet, Ipv4Addr::LOCALHOST, 77));
        packet[HEADER] = ECHO_REQUEST;
        assert!(!is_reply(&packet, from, 77));
        assert!(!is_reply(&[], from, 77));
    }
}
