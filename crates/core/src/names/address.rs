//! Validation of IP addresses and CIDR blocks.
//!
//! New values must be in standard form: leading zeros and IPv4-mapped IPv6 addresses are rejected, since programs
//! read them differently.

use std::net::{IpAddr, Ipv6Addr};

/// The address in `text`, if it is one in standard form.
pub fn ip_address(text: &str) -> Option<IpAddr> {
    text.parse().ok().filter(|ip| !is_mapped(ip))
}

fn is_mapped(ip: &IpAddr) -> bool {
    matches!(ip, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

/// Whether `text` is an IPv4 address with leading zeros.
fn has_leading_zeros(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    parts.len() == 4
        && parts.iter().all(|part| {
            let value = part.trim_start_matches('0');
            part.bytes().all(|b| b.is_ascii_digit())
                && !part.is_empty()
                && (value.is_empty() || value.parse::<u8>().is_ok())
        })
}

/// An IP address of either family.
pub fn ip(text: &str) -> Vec<String> {
    let words = match text.parse::<IpAddr>() {
        Ok(address) if is_mapped(&address) => "must not be an IPv4-mapped IPv6 address",
        Ok(_) => return Vec::new(),
        Err(_) if has_leading_zeros(text) => "must not have leading 0s",
        Err(_) => "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
    };
    vec![words.to_owned()]
}

/// An IPv4 address.
pub fn ipv4(text: &str) -> Vec<String> {
    match ip_address(text) {
        Some(IpAddr::V4(_)) => Vec::new(),
        _ => vec!["must be a valid IPv4 address".to_owned()],
    }
}

/// An IPv6 address.
pub fn ipv6(text: &str) -> Vec<String> {
    match ip_address(text) {
        Some(IpAddr::V6(_)) => Vec::new(),
        _ => vec!["must be a valid IPv6 address".to_owned()],
    }
}

/// The base address and prefix length of the block in `text`, if it is one.
pub fn parse_cidr(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = text.split_once('/')?;
    let address = ip_address(address)?;
    let plain = length.len() == 1 || !length.starts_with('0');
    let bits: u8 = length.parse().ok().filter(|_| plain)?;
    let bits_max = if address.is_ipv4() { 32 } else { 128 };
    (bits <= bits_max && length.bytes().all(|b| b.is_ascii_digit())).then_some((address, bits))
}

/// An address block such as `10.9.8.0/24`.
pub fn cidr(text: &str) -> Vec<String> {
    let Some((address, bits)) = parse_cidr(text) else {
        return vec!["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)".to_owned()];
    };
    let past_prefix = match address {
        IpAddr::V4(v4) => u32::from(v4).checked_shl(bits.into()).unwrap_or(0) != 0,
        IpAddr::V6(v6) => u128::from(v6).checked_shl(bits.into()).unwrap_or(0) != 0,
    };
    if past_prefix {
        return vec!["must not have bits set beyond the prefix length".to_owned()];
    }
    Vec::new()
}

fn is_link_local_v6(ip: Ipv6Addr) -> bool {
    ip.segments()[0] & 0xffc0 == 0xfe80
}

/// Why `text` cannot be the address of an endpoint: unspecified, loopback or link-local.
pub fn special_ip(text: &str) -> Vec<String> {
    let Some(ip) = ip_address(text) else {
        return vec!["must be a valid IP address".to_owned()];
    };
    let (link_local, link_multicast) = match ip {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(v6) => (is_link_local_v6(v6), v6.segments()[0] & 0xff0f == 0xff02),
    };
    [
        (
            ip.is_unspecified(),
            format!("may not be unspecified ({text})"),
        ),
        (
            ip.is_loopback(),
            "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned(),
        ),
        (
            link_local,
            "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned(),
        ),
        (
            link_multicast,
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned(),
        ),
    ]
    .into_iter()
    .filter_map(|(special, words)| special.then_some(words))
    .collect()
}
