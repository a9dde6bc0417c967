//! Parsers of `/proc` files: CPU time and memory of a process, CPU time of the machine, listening sockets and network
//! interfaces.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// The kernel counts CPU time in hundredths of a second (`USER_HZ`).
pub const TICK: Duration = Duration::from_millis(10);

/// CPU time in user space and kernel, from `/proc/PID/stat`.
pub fn cpu_time(stat: &str) -> Option<Duration> {
    // The name, in parentheses, may contain anything; the numbers follow it.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut times = rest.split_whitespace().skip(11);
    let mut ticks = || times.next()?.parse::<u32>().ok();
    let (user, system) = (ticks()?, ticks()?);
    Some(TICK * (user + system))
}

/// The CPU time of all processes of the machine, from `/proc/stat`: neither idle time, nor time that a hypervisor gave to
/// others.
pub fn machine_cpu_time(stat: &str) -> Option<Duration> {
    let times = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let times: Vec<u64> = times
        .split_whitespace()
        .map_while(|ticks| ticks.parse().ok())
        .collect();
    let [
        user,
        nice,
        system,
        _idle,
        _waiting,
        interrupts,
        soft_interrupts,
        ..,
    ] = times[..]
    else {
        return None;
    };
    let ticks = user + nice + system + interrupts + soft_interrupts;
    let millis = u64::try_from(TICK.as_millis()).ok()?;
    Some(Duration::from_millis(ticks.checked_mul(millis)?))
}

/// What an interface has received and transmitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    pub name: String,
    pub received: Traffic,
    pub transmitted: Traffic,
}

/// The traffic of an interface in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    pub bytes: u64,
    pub packets: u64,
    pub errors: u64,
    /// Packets.
    pub dropped: u64,
}

/// The interfaces in `/proc/PID/net/dev`, without the loopback interface.
pub fn interfaces(table: &str) -> impl Iterator<Item = Interface> {
    table.lines().filter_map(|line| {
        let (name, counters) = line.split_once(':')?;
        let name = name.trim();
        let counters: Vec<u64> = counters
            .split_whitespace()
            .map_while(|counter| counter.parse().ok())
            .collect();
        let traffic = |first: usize| {
            let [bytes, packets, errors, dropped] = *counters.get(first..first + 4)? else {
                return None;
            };
            Some(Traffic {
                bytes,
                packets,
                errors,
                dropped,
            })
        };
        let interface = Interface {
            name: name.to_owned(),
            received: traffic(0)?,
            transmitted: traffic(8)?,
        };
        (name != "lo").then_some(interface)
    })
}

/// A field in bytes, such as `VmRSS`, from `/proc/PID/status`.
pub fn memory_bytes(status: &str, field: &str) -> Option<u64> {
    let mut values = status.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = values.find(|(name, _)| *name == field)?;
    let kibibytes: u64 = value.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(1024 * kibibytes)
}

/// A listening TCP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listening {
    pub address: IpAddr,
    pub port: u16,
    pub inode: u64,
}

/// The state of a listening socket.
const LISTEN: &str = "0A";

/// The listening sockets in `/proc/net/tcp` or `/proc/net/tcp6`.
pub fn listening(table: &str) -> impl Iterator<Item = Listening> {
    // The first line has the names of the columns.
    table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, local, _, state, .., inode] = fields.get(..10)? else {
            return None;
        };
        let (address, port) = local.split_once(':').filter(|_| *state == LISTEN)?;
        Some(Listening {
            address: address_of(address)?,
            port: u16::from_str_radix(port, 16).ok()?,
            inode: inode.parse().ok()?,
        })
    })
}

/// The kernel prints the address in words of 32 bits, in its own byte order.
fn address_of(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let digits = hex.get(at * 8..at * 8 + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    if hex.len() == 8 {
        return Some(Ipv4Addr::from(word(0)?).into());
    }
    let mut bytes = [0; 16];
    for at in 0..4 {
        bytes[at * 4..at * 4 + 4].copy_from_slice(&word(at)?);
    }
    let address = Ipv6Addr::from(bytes);
    Some(address.to_ipv4_mapped().map_or(address.into(), IpAddr::V4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_endian = "little")]
    #[test]
    fn listening_sockets_are_found() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
               0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0 0 4242 1 0 100 0 0 10 0\n\
               1: 0100007F:1F91 0100007F:9999 01 00000000:00000000 00:00000000 00000000  0 0 4243 1 0 100 0 0 10 0\n\
               2: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A \
             00000000:00000000 00:00000000 00000000 0 0 7 1 0\n\
               3: short\n";
        let found: Vec<(String, u16, u64)> = listening(table)
            .map(|one| (one.address.to_string(), one.port, one.inode))
            .collect();
        let expected = [
            ("127.0.0.1".to_owned(), 8080, 4242),
            ("::1".to_owned(), 80, 7),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn times_follow_a_name_that_may_contain_anything() {
        let stat = "12 (a) b (c) S 1 1 1 0 -1 4194560 1 2 3 4 150 25 7 8 20 0 3 0 99\n";
        assert_eq!(cpu_time(stat), Some(Duration::from_millis(1_750)));
        assert_eq!(cpu_time("12 (a) S 1"), None);
        assert_eq!(cpu_time(""), None);
    }

    #[test]
    fn a_machine_is_busy_while_it_neither_idles_nor_waits() {
        let stat = "cpu  100 20 30 9999 9999 4 6 9999 50 0\ncpu0 1 1 1 1 1 1 1 1 0 0\nintr 5\n";
        assert_eq!(machine_cpu_time(stat), Some(Duration::from_millis(1_600)));
        assert_eq!(machine_cpu_time("cpu  1 2 3\n"), None);
        assert_eq!(machine_cpu_time(""), None);
    }

    #[test]
    fn interfaces_have_counters_of_both_directions() {
        let table = "Inter-|   Receive                                                |  Transmit\n \
             face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
             lo:    5050      50    0    0    0     0          0         0     5050      50    0    0    0     0       0          0\n  \
             eth0: 1234567    1000    1    2    0     0          0         0   765432     900    3    4    0     0       0          0\n\
             bad: 1 2\n";
        let found: Vec<Interface> = interfaces(table).collect();
        let expected = Interface {
            name: "eth0".to_owned(),
            received: Traffic {
                bytes: 1_234_567,
                packets: 1000,
                errors: 1,
                dropped: 2,
            },
            transmitted: Traffic {
                bytes: 765_432,
                packets: 900,
                errors: 3,
                dropped: 4,
            },
        };
        assert_eq!(found, [expected]);
    }

    #[test]
    fn memory_is_in_kibibytes() {
        let status = "Name:\tkennel\nVmHWM:\t   2048 kB\nVmRSS:\t    100 kB\n";
        assert_eq!(memory_bytes(status, "VmHWM"), Some(2 << 20));
        assert_eq!(memory_bytes(status, "VmRSS"), Some(100 << 10));
        assert_eq!(memory_bytes("Name:\tkthreadd\n", "VmRSS"), None);
    }
}
