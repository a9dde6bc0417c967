//! Tables of names, good and bad.

use super::*;

/// `expected` is how the only complaint begins; empty for none.
fn check(rule: fn(&str) -> Vec<String>, input: &str, expected: &str) {
    let wrong = rule(input);
    if expected.is_empty() {
        assert!(wrong.is_empty(), "{input:?}: {wrong:?}");
    } else {
        assert_eq!(wrong.len(), 1, "{input:?}: {wrong:?}");
        assert!(wrong[0].starts_with(expected), "{input:?}: {wrong:?}");
    }
}

#[test]
fn subdomains() {
    let long = "a".repeat(254);
    for (input, expected) in [
        ("a", ""),
        ("example.com", ""),
        ("9web", ""),
        ("", "a lowercase RFC 1123 subdomain must consist"),
        ("Agent", "a lowercase RFC 1123 subdomain must consist"),
        ("a..b", "a lowercase RFC 1123 subdomain must consist"),
        ("a-.b", "a lowercase RFC 1123 subdomain must consist"),
        ("a_b", "a lowercase RFC 1123 subdomain must consist"),
        (long.as_str(), "must be no more than 253 characters"),
    ] {
        check(dns1123_subdomain, input, expected);
    }
    assert_eq!(
        dns1123_subdomain("Not_OK")[0],
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' \
         or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex \
         used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    );
}

#[test]
fn labels() {
    let long = "a".repeat(64);
    for (input, expected) in [
        ("my-name", ""),
        ("9web", ""),
        ("a.b", "must not contain dots"),
        ("A", "a lowercase RFC 1123 label must consist"),
        ("-a", "a lowercase RFC 1123 label must consist"),
        (long.as_str(), "must be no more than 63 characters"),
    ] {
        check(dns1123_label, input, expected);
    }
}

#[test]
fn label_keys_and_values() {
    let long = "a".repeat(64);
    for (input, expected) in [
        ("app", ""),
        ("example.com/My_Name.1", ""),
        ("a/b/c", "a valid label key must consist"),
        ("Ex/name", "prefix part a lowercase RFC 1123 subdomain"),
        ("/name", "prefix part must be non-empty"),
        ("-a", "name part must consist"),
        (long.as_str(), "name part must be no more than 63 bytes"),
    ] {
        check(qualified_name, input, expected);
    }
    assert_eq!(qualified_name("").len(), 2);
    check(label_value, "", "");
    check(label_value, "a_b", "");
    check(label_value, &long, "must be no more than 63 bytes");
    assert_eq!(
        label_value("not ok!")[0],
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
         '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or \
         'my_value',  or '12345', regex used for validation is \
         '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
    );
    let long_prefix = format!("{}/a", "a".repeat(254));
    check(
        qualified_name,
        &long_prefix,
        "prefix part must be no more than 253 bytes",
    );
}

#[test]
fn keys_ports_and_headers() {
    check(env_var_name, "9 a-b", "");
    check(env_var_name, "a=b", "a valid environment variable name");
    check(env_var_name, "ä", "a valid environment variable name");
    check(env_var_name, "", "environment variable name must be");
    check(config_map_key, "a.b_C-1", "");
    check(config_map_key, "a b", "a valid config key");
    check(config_map_key, "..", "must not be '..'");
    check(config_map_key, "..a", "must not start with '..'");
    check(port_name, "http-9", "");
    check(port_name, "9", "must contain at least one letter");
    check(port_name, "a--b", "must not contain consecutive");
    check(port_name, "a-", "must not begin or end");
    check(port_name, "HTTPa", "must contain only alpha-numeric");
    check(port_name, "abcdefghijklmnop", "must be no more than 15");
    check(percent, "10%", "");
    check(percent, "%", "a valid percent string");
    check(percent, "-1%", "a valid percent string");
    check(http_header_name, "X-A", "");
    check(http_header_name, "X:A", "a valid HTTP header");
    check(path_segment_name, "system:node", "");
    check(path_segment_name, "..", "may not be '..'");
    check(path_segment_name, "a/b", "may not contain '/'");
    check(c_identifier, "_a1", "");
    check(c_identifier, "1a", "a valid C identifier");
    assert!(is_valid_port_num(65535).is_empty());
    assert_eq!(
        is_valid_port_num(0),
        ["must be between 1 and 65535, inclusive"]
    );
}

#[test]
fn addresses() {
    check(ip, "10.0.0.1", "");
    check(ip, "::1", "");
    check(ip, "010.0.0.1", "must not have leading 0s");
    check(ip, "::ffff:1.2.3.4", "must not be an IPv4-mapped");
    check(ip, "10.0.0", "must be a valid IP address, (e.g. 10.9.8.7");
    check(ipv4, "::1", "must be a valid IPv4 address");
    check(ipv6, "1.2.3.4", "must be a valid IPv6 address");
    check(cidr, "10.0.0.0/8", "");
    check(cidr, "0.0.0.0/0", "");
    check(cidr, "10.0.0.1/32", "");
    check(cidr, "10.0.0.1/8", "must not have bits set beyond");
    check(cidr, "10.0.0.0/33", "must be a valid CIDR value");
    check(cidr, "10.0.0.0/08", "must be a valid CIDR value");
    check(special_ip, "10.0.0.1", "");
    check(special_ip, "0.0.0.0", "may not be unspecified (0.0.0.0)");
    check(special_ip, "127.0.0.1", "may not be in the loopback range");
    check(
        special_ip,
        "169.254.1.1",
        "may not be in the link-local range",
    );
    check(special_ip, "fe80::1", "may not be in the link-local range");
    check(
        special_ip,
        "224.0.0.1",
        "may not be in the link-local multi",
    );
}

#[test]
fn domain_names_have_two_segments() {
    check(fully_qualified_domain_name, "a.b.", "");
    check(
        fully_qualified_domain_name,
        "a",
        "should be a domain with at least two segments",
    );
}

#[test]
fn generated_names_keep_58_characters_of_the_prefix() {
    let mut next = 0;
    let mut count = |below: usize| {
        next += 1;
        assert_eq!(below, GENERATED_ALPHABET.len());
        next - 1
    };
    assert_eq!(generate_name("agent-", &mut count), "agent-bcdfg");
    let long = generate_name(&"x".repeat(80), &mut count);
    assert_eq!(long.len(), 63);
    assert!(long.ends_with("xhjklm"));
}

#[test]
fn a_trailing_dash_is_fine_in_a_prefix() {
    assert_eq!(mask_trailing_dash("agent-"), "agena");
    assert_eq!(mask_trailing_dash("-"), "-");
    assert_eq!(mask_trailing_dash("agent"), "agent");
}
